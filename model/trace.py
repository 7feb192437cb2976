"""Traces: the currency of every engine, the reducer, the scenario files and the reports.

A trace is a list of labelled commands with symbolic references ("the handle of step 2"). Labels survive deletion,
so a shortened trace still says what it said. A trace with lanes ends in commands that run at once, in the order
that its schedule gives.
"""

from __future__ import annotations

from dataclasses import dataclass

from .commands import Command
from .outcomes import Outcome


@dataclass(frozen=True, slots=True)
class TraceStep:
    """One labelled command, and its outcome once a run or a scenario file supplied one."""

    label: int
    command: Command
    outcome: Outcome | None = None


@dataclass(frozen=True, slots=True)
class Trace:
    """Commands of one actor after another, then, where there are lanes, commands that run at once.

    `lanes[0]` is the clock: advances that may fall between the statements of the others, each in one instant.
    `lanes[1:]` are the actors; each runs its own commands in order. `schedule` is a string of lane digits: `0`
    moves the clock by its next advance, any other digit lets that lane's next statement go.
    """

    steps: tuple[TraceStep, ...]
    lanes: tuple[tuple[TraceStep, ...], ...] = ()
    schedule: str | None = None

    @property
    def length(self) -> int:
        """The number of commands, in all lanes."""
        return len(self.steps) + sum(len(lane) for lane in self.lanes)


def trace_of(*commands: Command) -> Trace:
    """A sequential trace with labels 1, 2, 3 …"""
    return Trace(tuple(TraceStep(n, command) for n, command in enumerate(commands, 1)))
