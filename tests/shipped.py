"""The scenario files that come with fencepost, by hand and of mutants, and the queues that they are replayed on."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

from fencepost.adapters.contract import Adapter
from fencepost.adapters.mutants.catalogue import MUTANTS
from fencepost.adapters.reference.adapter import PostgresAdapter, SqliteAdapter
from fencepost.adapters.reference.rules import CONTRACT
from fencepost.conformance.session import Session
from fencepost.model.queues import QUEUES
from fencepost.scenarios import load

FOLDER = Path(__file__).parent.parent / "scenarios"
STORIES = FOLDER / "regressions"
REGRESSIONS = sorted(STORIES.glob("*.yaml"))
HAND = sorted(path for path in FOLDER.glob("*/*.yaml") if path.parent != STORIES)
EXPORT = "fencepost mutants --export=scenarios/regressions"
"""What writes the mutants' stories."""

SHIPPED = {path.stem: load(path) for path in HAND}
RACES = {name: scenario for name, scenario in SHIPPED.items() if any(scenario.trace.lanes)}
DATABASES: dict[str, type[SqliteAdapter] | type[PostgresAdapter]] = {"sqlite": SqliteAdapter, "pg": PostgresAdapter}
BY_ID = {mutant.id: mutant for mutant in MUTANTS}


class Sessions(ExitStack):
    """Adapters that are open while a test runs, one for each queue."""

    def __init__(self) -> None:
        super().__init__()
        self._right: dict[str, Session] = {}

    def of(self, adapter: Adapter, queue: str) -> Session:
        return self.enter_context(Session(adapter, QUEUES[queue]))

    def right(self, queue: str) -> Session:
        """The contract's own queue on SQLite."""
        if queue not in self._right:
            self._right[queue] = self.of(SqliteAdapter(), queue)
        return self._right[queue]


def mutated(name: str, database: str = "sqlite") -> Adapter:
    """The contract's own queue with this mutant's fault in it."""
    return DATABASES[database](rules=BY_ID[name].change(CONTRACT))
