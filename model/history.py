"""A history of operations that ran at once, and what each of them did to each job. Values; nothing here judges.

An operation is a bag of moves, one per job: no other operation comes between the parts that it did to one job.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from . import commands as c
from . import outcomes as o
from .part import Part
from .step import parts, parts_inside
from .world import SETUP, Record, Violation


class Operation(NamedTuple):
    """A bound command that ran, in the model's terms, and its outcome.

    `start` and `end` are tokens of the schedule: it precedes another iff its end is smaller than the other's start.
    `now` is the clock in ticks that it read when it started.
    """

    command: c.Command
    outcome: o.Outcome
    start: int
    end: int
    now: int

    @property
    def until(self) -> float:
        """The token by which it has taken effect: its end, or never where its reply was lost."""
        return float("inf") if type(self.outcome) is o.Unknown else self.end

    def overlaps(self, other: Operation) -> bool:
        """Whether neither precedes the other."""
        return self.start <= other.until and other.start <= self.until


@dataclass(slots=True)
class Move:
    """What one operation did to one job, in one instant; `undone` by its own caller right after.

    A `lost` one is the command as it would be to a queue that holds this job alone; it has no parts, since nobody
    knows what it did.
    """

    operation: Operation
    parts: tuple[Part, ...]
    undone: bool = False
    lost: c.Command | None = None


class Change(NamedTuple):
    """A part that changed the record: the record before and after it, its clock, the change before this one."""

    part: Part
    before: Record
    after: Record
    now: int
    previous: Change | None

    def decided(self, field: str) -> Change:
        """The change that decided how this field of the row looks."""
        at: Change | None = self
        name = _DECIDED_WITH.get(field, field)
        while at is not None:
            if getattr(at.before, name) != getattr(at.after, name):
                return at
            at = at.previous
        return self


_DECIDED_WITH = {"heartbeat": "expires", "finished": "status", "attempt": "status"}
"""Fields of a row that a record has no field for."""


def moves_of(operations: Sequence[Operation], jobs: int) -> list[list[Move]] | Violation:
    """The moves of each of so many jobs, job 1 first; SETUP where an outcome names a job that is not among them."""
    moves: list[list[Move]] = [[] for _ in range(jobs)]
    for operation in operations:
        command, outcome = operation.command, operation.outcome
        if type(outcome) is o.Unknown:
            for job, mine in enumerate(moves, 1):
                alone = _alone(command, job)
                if alone is not None:
                    mine.append(Move(operation, (), lost=alone))
            continue
        undone = isinstance(command, c.Atomically) and isinstance(outcome, o.Atomic) and command.end != "commit"
        for part in parts_inside(command, outcome) if undone else parts(command, outcome):  # type: ignore[arg-type]
            if type(part.job) is not int or not 1 <= part.job <= jobs:
                return Violation(SETUP, "unknown job", f"an outcome names job {part.job}, which was never enqueued")
            mine = moves[part.job - 1]
            if mine and mine[-1].operation is operation:
                mine[-1].parts += (part,)
            else:
                mine.append(Move(operation, (part,), undone))
    return moves


_NOT_HERE = 2
"""The ordinal of every other job to a queue that holds one job alone."""


def _alone(command: c.Command, job: int) -> c.Command | None:
    """The command as it is to a queue that holds this one job, or None if it has no business with the job."""
    if isinstance(command, c.HandleCommand):
        handle = command.handle
        assert isinstance(handle, c.Handle)
        return command.with_handle(c.Handle(1, handle.worker, handle.token)) if handle.job == job else None
    if isinstance(command, c.JobCommand):
        return command.with_job(1) if command.job == job else None
    if isinstance(command, c.Atomically):
        inner = tuple(alone for each in command.commands if (alone := _alone(each, job)) is not None)
        return c.Atomically(inner, command.end) if inner else None
    if isinstance(command, (c.Claim, c.Recover)):
        return command.renamed(lambda named: 1 if named == job else _NOT_HERE)
    return command if type(command) in c.SWEEPS else None
