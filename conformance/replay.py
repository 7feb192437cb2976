"""Replaying a scenario file: does this queue still break the clause, does it do what the file expects?

A replay that diverges (a legal answer, but not the expected one) says so; it is neither pass nor fail.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from fencepost.adapters.contract import AdapterError, Gated
from fencepost.model import outcomes as o
from fencepost.model.commands import JobId
from fencepost.model.trace import Trace
from fencepost.model.world import Violation
from fencepost.reports.story import Failure, story
from fencepost.scenarios import Scenario

from .driver import Run
from .interleave.engine import replay_history
from .interleave.played import Diverged, Stuck
from .session import Session


@dataclass(frozen=True, slots=True)
class Replayed:
    """`pass`: legal and as expected; `fail`: a clause was broken; `diverged`: legal so far, but not what the file says.

    `trace` holds what was answered.
    """

    verdict: Literal["pass", "fail", "diverged"]
    trace: Trace
    violation: Violation | None = None
    why: str = ""


def replay(session: Session, scenario: Scenario) -> Replayed:
    """Replay a scenario from an empty queue of its kind; commands that ran at once run in the file's own schedule.

    Raises:
        AdapterError: the adapter cannot be driven, or its statements cannot be scheduled.
    """
    if any(scenario.trace.lanes):
        return _race(session, scenario)
    run = session.play(scenario.trace)
    if run.violation is not None:
        return Replayed("fail", run.trace(), run.violation, run.violation.why)
    skipped = {each.label for each in scenario.trace.steps} - set(run.labels)
    if skipped:
        step = min(skipped)
        return Replayed("diverged", run.trace(), None, f"step {step} could not run: what it refers to was not made")
    jobs = _jobs(run)
    for label, (_, outcome) in zip(run.labels, run.done, strict=True):
        expected = scenario.expected.get(label)
        if expected is not None and not expected.matches(outcome, jobs):
            why = f"step {label}: expected {expected.describe()}, got {outcome}"
            return Replayed("diverged", run.trace(), None, why)
    return Replayed("pass", run.trace())


def told(scenario: Scenario, adapter: str, path: str, replayed: Replayed) -> str:
    """What came of a replay, for people: the story of a failure, or one line."""
    if replayed.verdict == "pass":
        return f"pass      {path}: {scenario.clause} holds on {adapter}, queue {scenario.queue}"
    if replayed.violation is None:
        return f"diverged  {path}: on {adapter} it went another way than the file says: {replayed.why}"
    violation = replayed.violation
    return story(
        Failure(
            clause=violation.clause,
            reason=violation.reason,
            why=violation.why,
            queue=scenario.queue,
            adapter=adapter,
            trace=replayed.trace,
            scenario=path,
            replay=f"fencepost replay {path} --adapter={adapter}",
        )
    )


def _race(session: Session, scenario: Scenario) -> Replayed:
    if scenario.trace.schedule is None:
        return Replayed("diverged", scenario.trace, None, "it runs commands at once, but has no schedule to follow")
    if not isinstance(session.adapter, Gated):
        raise AdapterError(
            f"{session.adapter.name}: its statements cannot be scheduled; replay this file on {_meant(scenario)}"
        )
    try:
        history = session.run(replay_history(session.adapter, session.spec, scenario.trace))
    except Diverged as error:
        return Replayed("diverged", scenario.trace, None, str(error))
    except Stuck as error:
        raise AdapterError(f"{session.adapter.name}: {error}") from error
    violation = history.violation
    return Replayed("fail" if violation else "pass", history.trace, violation, violation.why if violation else "")


def _meant(scenario: Scenario) -> str:
    return " or ".join(scenario.adapters or ("sqlite", "pg"))


def _jobs(run: Run) -> Mapping[int, JobId]:
    """The job that each enqueuing step made, by label."""
    return {
        label: outcome.job
        for label, (_, outcome) in zip(run.labels, run.done, strict=True)
        if isinstance(outcome, o.Enqueued)
    }
