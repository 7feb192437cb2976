"""`pytest scenarios`: one item for each scenario file and each adapter that it is meant for.

It replays and says what came of it; only a pass is green: a replay that diverged, or that never tested the file's
clause, is red and says so.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from fencepost.model.queues import QueueSpec
from fencepost.reports.junit import classname
from fencepost.reports.result import Exit
from fencepost.scenarios import Scenario, ScenarioError, load

from .faults import Hung, fault_of
from .plugin import FINISHERS, TELLERS, is_worker
from .pytest_settings import limits_of, plan_of, settings_of
from .replay import replay, told
from .selection import UnknownName, chosen_adapter
from .session import Session
from .watchdog import BLOCKED, leave, watching

EVERYWHERE = ("memory", "sqlite", "pg")
"""Where a file is replayed that names no adapter."""
AT_ONCE = ("sqlite", "pg")
"""The same for a race: where statements can be scheduled."""


class Unexpected(Exception):
    """The replay did not pass; the message is all that there is to say."""


class ScenarioFile(pytest.File):
    """A scenario file, once for each adapter."""

    def collect(self) -> Iterable[pytest.Item]:
        asked = settings_of(self.config).adapter
        if asked is not None:
            plan_of(self.config)  # refuses a name that stands for nothing

        def queues_of(named: Sequence[str]) -> Mapping[str, QueueSpec]:
            return chosen_adapter(asked or (*named, EVERYWHERE[0])[0]).queues

        try:
            scenario = load(self.path, queues_of)
        except (ScenarioError, UnknownName) as error:
            raise self.CollectError(str(error)) from None
        for adapter in adapters_for(scenario, asked):
            yield ScenarioItem.from_parent(self, name=adapter, scenario=scenario)


class ScenarioItem(pytest.Item):
    """One scenario on one adapter; the item is named after the adapter."""

    def __init__(self, *, scenario: Scenario, **rest: Any) -> None:
        super().__init__(**rest)
        self.scenario = scenario
        self.fencepost_junit = classname(self.name, scenario.clause), scenario.id
        # By keyword, since that is what `-m "clause(id='FENCE-01')"` compares.
        self.add_marker(pytest.mark.clause(id=scenario.clause))

    def runtest(self) -> None:
        sessions = sessions_of(self.session)
        with watching(limits_of(self.config), self._last_words):
            try:
                session = sessions.session(self.name, self.scenario.queue)
                replayed = replay(session, self.scenario)
            except pytest.UsageError:
                raise
            except (Exception, Hung) as error:  # whatever a verb raises is a harness fault
                sessions.abandon(self.name, self.scenario.queue, error)
                said = self._stopped(error)
                if is_worker(self.config):  # an exit in here would be told as a fault of pytest-xdist's
                    raise Unexpected(said) from None
                pytest.exit(said, Exit.HARNESS)
        if replayed.verdict != "pass":
            raise Unexpected(told(self.scenario, session.spec, self.name, str(self.path), replayed))

    def _stopped(self, error: BaseException) -> str:
        return f"fencepost could not go on: {fault_of(error, self.name)}"

    def _last_words(self, hung: Hung) -> None:
        print(f"\n{self._stopped(hung)}\n{BLOCKED}", file=sys.__stderr__)
        leave(Exit.HARNESS)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], *rest: Any, **more: Any) -> Any:
        if isinstance(excinfo.value, Unexpected):
            return str(excinfo.value)
        return super().repr_failure(excinfo, *rest, **more)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        return self.path, 0, f"{self.scenario.id}[{self.name}]"


def adapters_for(scenario: Scenario, asked: str | None) -> Iterator[str]:
    """Where to replay it: on the adapter that was asked for if the file is meant for it, or on all it is meant for.

    What was found in somebody's own queue stays a test of that queue.
    """
    meant = scenario.adapters
    if asked is not None:
        yield from (asked,) if meant is None or asked in meant else ()
    elif meant is not None:
        yield from meant
    elif scenario.found is not None and scenario.found.adapter not in EVERYWHERE:
        yield scenario.found.adapter
    else:
        yield from AT_ONCE if any(scenario.trace.lanes) else EVERYWHERE


def is_scenario(path: Path) -> bool:
    """Whether the first key of this YAML file is `fencepost:`. Other people's YAML is none of our business."""
    try:
        with path.open(encoding="utf-8") as lines:
            first = next((line for line in lines if line.strip() and not line.startswith(("#", "---", "%"))), "")
    except (OSError, UnicodeDecodeError):
        return False
    return first.startswith("fencepost:")


class Sessions:
    """The open adapters of a pytest session, by adapter and queue."""

    def __init__(self) -> None:
        self._open: dict[tuple[str, str], Session] = {}

    def session(self, adapter: str, queue: str) -> Session:
        """The open session of this place; it is opened when first asked for.

        Raises:
            pytest.UsageError: there is no such adapter.
        """
        place = adapter, queue
        if place not in self._open:
            try:
                made = chosen_adapter(adapter)()
            except UnknownName as error:
                raise pytest.UsageError(str(error)) from None
            self._open[place] = Session(made, made.serves(queue)).__enter__()
        return self._open[place]

    def abandon(self, adapter: str, queue: str, error: BaseException) -> None:
        """Close what `error` has ended, if it is open; a fault in that is a note on the error."""
        session = self._open.pop((adapter, queue), None)
        if session is not None:
            session.__exit__(type(error), error, None)

    def close(self, session: pytest.Session) -> None:
        """Close all of them; what goes wrong in that is told at the end and ends the session as a harness fault."""
        while self._open:
            (adapter, _), opened = self._open.popitem()
            try:
                with watching(limits_of(session.config)):
                    opened.__exit__(None, None, None)
            except (Exception, Hung) as error:
                said = f"fencepost could not close what a scenario was replayed on: {fault_of(error, adapter)}"
                if is_worker(session.config):
                    print(f"\n{said}", file=sys.__stderr__)
                session.config.stash.setdefault(TELLERS, []).append(lambda to, said=said: to.write_line(said))
                session.exitstatus = Exit.HARNESS


_SESSIONS = pytest.StashKey[Sessions]()


def sessions_of(session: pytest.Session) -> Sessions:
    """The open adapters of this pytest session."""
    stash = session.config.stash
    if _SESSIONS not in stash:
        stash[_SESSIONS] = Sessions()
        stash.setdefault(FINISHERS, []).append(stash[_SESSIONS].close)
    return stash[_SESSIONS]
