"""Replaying a scenario file: does this queue still break the clause, does it do what the file expects?

A replay that diverges (a legal answer, but not the expected one) says so; it is neither pass nor fail.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from fencepost.model import outcomes as o
from fencepost.model.commands import JobId
from fencepost.model.world import Violation
from fencepost.scenarios import Scenario

from .driver import Run
from .session import Session


@dataclass(frozen=True, slots=True)
class Replayed:
    """`pass`: legal and as expected; `fail`: a clause was broken; `diverged`: legal, but not what the file expects."""

    verdict: Literal["pass", "fail", "diverged"]
    run: Run
    violation: Violation | None = None
    why: str = ""


def replay(session: Session, scenario: Scenario) -> Replayed:
    """Replay a sequential scenario from an empty queue of its kind."""
    run = session.play(scenario.trace)
    if run.violation is not None:
        return Replayed("fail", run, run.violation, run.violation.why)
    skipped = {each.label for each in scenario.trace.steps} - set(run.labels)
    if skipped:
        step = min(skipped)
        return Replayed("diverged", run, None, f"step {step} could not run: what it refers to was not made")
    jobs = _jobs(run)
    for label, (_, outcome) in zip(run.labels, run.done, strict=True):
        expected = scenario.expected.get(label)
        if expected is not None and not expected.matches(outcome, jobs):
            why = f"step {label}: expected {expected.describe()}, got {outcome}"
            return Replayed("diverged", run, None, why)
    return Replayed("pass", run)


def _jobs(run: Run) -> Mapping[int, JobId]:
    """The job that each enqueuing step made, by label."""
    return {
        label: outcome.job
        for label, (_, outcome) in zip(run.labels, run.done, strict=True)
        if isinstance(outcome, o.Enqueued)
    }
