"""Many seeds of the right runtime, and many replays of wrong ones: false alarms, and schedules that do not repeat."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

from fencepost.adapters.contract import Adapter
from fencepost.model.queues import QUEUES
from fencepost.model.world import Violation

from .examine import Examination
from .interleave.engine import first_failure, replay_schedule
from .interleave.played import Diverged
from .mutation import Planted, program_of
from .profiles import Profile
from .races import race_all
from .session import Session


@dataclass(slots=True)
class Soaked:
    """What one seed of one adapter has come to so far; `complete` once it has been run to its end.

    `false_alarms` are the violations of a runtime that keeps the contract.
    """

    adapter: str
    seed: int
    examples: int = 0
    steps: int = 0
    schedules: int = 0
    false_alarms: list[str] = field(default_factory=list)
    complete: bool = False


def soak_seed(
    into: Soaked, make: Callable[[], Adapter], profile: Profile, on_step: Callable[[], None] = lambda: None
) -> None:
    """Run every engine on every queue under one seed, as a run of this profile does.

    `on_step` is called after each script and each schedule; if it raises, `into` keeps what had been found.
    """
    for queue, spec in QUEUES.items():
        with Session(make(), spec) as session:
            examination = Examination(session, profile, into.seed, on_example=on_step)
            try:
                for found in examination.violations():
                    assert found.violation is not None
                    into.false_alarms.append(_told(queue, found.violation))
            finally:
                into.examples += examination.examples
                into.steps += session.driver.steps
        for raced in race_all(make(), queue, on_schedule=on_step):
            into.schedules += raced.schedules
            if raced.finding is not None:
                into.false_alarms.append(_told(queue, raced.finding.violation))
    into.complete = True


def _told(queue: str, violation: Violation) -> str:
    return f"{queue}: {violation.clause}: {violation.reason}: {violation.why}"


@dataclass(frozen=True, slots=True)
class Repeated:
    """A found schedule, replayed: how many of `runs` ended in the very same violation."""

    mutant: str
    adapter: str
    clause: str
    schedule: str
    runs: int
    identical: int


def repeat_races(
    races: Iterable[Planted], runs: int, on_replay: Callable[[], None] = lambda: None
) -> Iterator[Repeated]:
    """Find each race's simplest schedule, then replay it `runs` times from its trace alone."""
    for mutant in races:
        spec = QUEUES[mutant.queue]
        program = program_of(mutant)
        with Session(mutant.make(), spec) as session:
            adapter = session.adapter
            found = session.run(first_failure(adapter, spec, program.trace(), mutant.clause, most=1000))
            if found.trace is None or found.trace.schedule is None:
                yield Repeated(mutant.id, mutant.adapter, mutant.clause, "", runs, 0)
                continue
            identical = 0
            for _ in range(runs):
                try:
                    again = session.run(replay_schedule(adapter, spec, found.trace))
                except Diverged:
                    again = None
                identical += again == found.violation
                on_replay()
            yield Repeated(mutant.id, mutant.adapter, mutant.clause, found.trace.schedule, runs, identical)


def document(
    profile: Profile, seeds: list[Soaked], replays: list[Repeated], *, interrupted: bool = False
) -> dict[str, Any]:
    """The result of a soak as a JSON document, without its footer; `interrupted`: it is about a part of what was asked
    for.
    """
    return {
        "schema": 1,
        "interrupted": interrupted,
        "profile": profile.name,
        "seeds": [asdict(each) for each in seeds],
        "replays": [asdict(each) for each in replays],
        "false_alarms": sum(len(each.false_alarms) for each in seeds),
        "diverged": sum(each.runs - each.identical for each in replays),
    }
