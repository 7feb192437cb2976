"""Small runs of any adapter, for the tests of whole runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from fencepost.adapters.contract import Adapter
from fencepost.adapters.mutants.catalogue import MUTANTS
from fencepost.adapters.mutants.mutant import Mutant
from fencepost.adapters.reference.adapter import SqliteAdapter
from fencepost.adapters.reference.rules import CONTRACT
from fencepost.conformance.profiles import Profile
from fencepost.conformance.run import Outcome, Plan, run
from fencepost.model.queues import QUEUES
from fencepost.reports.result import ClauseResult, FailureResult, Result

TINY = Profile("tiny", examples=40, longest=30, minimum=1)
BOTH = tuple(QUEUES)
OWN = "team.queue:Adapter"


@dataclass
class Watching:
    tasks: dict[str, int | None] = field(default_factory=dict)
    advanced: dict[str, int] = field(default_factory=dict)
    failures: list[FailureResult] = field(default_factory=list)

    def task(self, name: str, total: int | None) -> None:
        self.tasks[name] = total

    def advance(self, name: str, amount: int = 1) -> None:
        assert name in self.tasks
        self.advanced[name] = self.advanced.get(name, 0) + amount

    def failed(self, failure: FailureResult) -> None:
        self.failures.append(failure)


def planned(
    make: Callable[[], Adapter],
    *clauses: str,
    queues: tuple[str, ...] = ("backfill",),
    profile: Profile = TINY,
    seed: int = 1,
) -> Plan:
    return Plan(OWN, make, queues, frozenset(clauses) or None, profile, seed)


def went(plan: Plan) -> Outcome:
    return run(plan, Watching())


def mutant_named(name: str) -> Mutant:
    return next(mutant for mutant in MUTANTS if mutant.id == name)


def broken(name: str) -> Callable[[], SqliteAdapter]:
    rules = mutant_named(name).change(CONTRACT)
    return lambda: SqliteAdapter(rules=rules)


def pairs_of(result: Result) -> dict[tuple[str, str], ClauseResult]:
    return {(each.id, each.queue): each for each in result.clauses}


class Stopping(SqliteAdapter):
    """A faulty queue on which something happens at the `at`th reset."""

    def __init__(self, at: int, what: Callable[[], BaseException]) -> None:
        super().__init__(rules=mutant_named("complete-keeps-lease").change(CONTRACT))
        self._resets = 0
        self._at = at
        self._what = what

    async def reset(self) -> None:
        self._resets += 1
        if self._resets == self._at:
            raise self._what()
        await super().reset()
