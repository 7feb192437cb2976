"""Shortens a failing race: fewer commands first, then the simplest schedule of those that are left.

The search in the order of context switches meets the simplest failing schedule first, so that only commands are left
to try. It knows traces and the engine; never what a command means.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from fencepost.adapters.contract import Adapter
from fencepost.model.queues import QueueSpec
from fencepost.model.trace import Trace
from fencepost.model.world import Violation

from .engine import Certified, first_failure, replay_history

MOST_SCHEDULES = 200
"""How many schedules of one candidate are tried."""


@dataclass(frozen=True, slots=True)
class Reduced:
    """The shortest race found that breaks the same clause; `evaluations` are schedules that were played for it."""

    trace: Trace
    violation: Violation
    evaluations: int


async def reduce_race(
    adapter: Adapter, spec: QueueSpec, trace: Trace, clause: str, *, most: int = MOST_SCHEDULES
) -> Reduced:
    """Leave out command after command of a race that breaks this clause, for as long as some schedule still does.

    The result no longer breaks it if any one more command is left out, as far as `most` schedules with no more
    preemptions show. A trace's own schedule is kept where no command can be left out and none of its first `most`
    schedules breaks the clause.

    Raises:
        LookupError: neither the trace's own schedule nor one of the first `most` breaks the clause.
        Diverged, Stuck, AdapterError: as `replay_history`.
    """
    found = await first_failure(adapter, spec, trace, clause, most=most)
    if found.violation is None and trace.schedule is not None:
        found = await _as_found(adapter, spec, trace, clause, found.schedules)
    if found.trace is None or found.violation is None:
        raise LookupError(f"no schedule of this race breaks {clause}")
    best = Reduced(found.trace, found.violation, found.schedules)
    bound, evaluations, shortened = found.preemptions, found.schedules, True
    while shortened:
        shortened = False
        for candidate in _shorter(best.trace):
            found = await first_failure(adapter, spec, candidate, clause, most=most, bound=bound)
            evaluations += found.schedules
            if found.trace is not None and found.violation is not None:
                best, bound, shortened = Reduced(found.trace, found.violation, 0), found.preemptions, True
                break
    return replace(best, evaluations=evaluations)


async def _as_found(adapter: Adapter, spec: QueueSpec, trace: Trace, clause: str, played: int) -> Certified:
    """The trace in its own schedule, after so many others that were legal."""
    history = await replay_history(adapter, spec, trace)
    if history.violation is None or history.violation.clause != clause:
        return Certified((), played + 1, False)
    return Certified((), played + 1, False, history.trace, history.violation, history.played.preemptions)


def _shorter(trace: Trace) -> Iterator[Trace]:
    """The trace less one command: of the prefix, from its end; then of the lanes, the clock's first."""
    steps = trace.steps
    for n in reversed(range(len(steps))):
        yield replace(trace, steps=steps[:n] + steps[n + 1 :], schedule=None)
    for at, lane in enumerate(trace.lanes):
        for n in reversed(range(len(lane))):
            lanes = (*trace.lanes[:at], lane[:n] + lane[n + 1 :], *trace.lanes[at + 1 :])
            yield replace(trace, lanes=lanes, schedule=None)
