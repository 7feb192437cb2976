"""A trace that broke nothing, as lines for people."""

from __future__ import annotations

from collections.abc import Iterator

from fencepost.model import outcomes as o
from fencepost.model.trace import Trace, TraceStep
from fencepost.reports.story import command_phrase, outcome_phrase


def trace_lines(trace: Trace) -> Iterator[str]:
    """A line per command: those that run alone, then those of each lane that run at once."""
    for step in trace.steps:
        yield f"  {_line(step, trace)}"
    for number, lane in enumerate(trace.lanes):
        for step in lane:
            yield f"  at once, {f'actor {number}' if number else 'the clock'}: {_line(step, trace)}"


def _line(step: TraceStep, trace: Trace) -> str:
    told = step.outcome is not None and not isinstance(step.outcome, o.Done)
    answer = f"  → {outcome_phrase(step.outcome, trace)}" if told and step.outcome is not None else ""
    return f"{step.label}  {command_phrase(step.command, trace)}{answer}"
