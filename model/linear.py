"""Judging commands that ran at once: is there an order of their parts, job by job, that the sequential judge accepts?

The search is that of Wing and Gong ("Testing and Verifying Concurrent Objects", JPDC 1993) with Lowe's cache of states
seen ("Testing for Linearizability", CCPE 2017), one job at a time. This module has no opinion of its own about what is
legal: `step_part` judges each part, with the clock that its own command read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from . import commands as c
from . import outcomes as o
from .judge import step_part
from .legal import outcomes
from .outcomes import Row, View
from .part import Part
from .queues import PENDING, RUNNING
from .step import parts
from .view import blame, blame_rejected, checks_of_view, mismatch, row_fault, stray
from .whole import whole_claim, whole_sweep
from .world import SETUP, Checks, Context, Record, Violation, World


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


def judge(world: World, operations: Sequence[Operation], view: View) -> Checks | Violation:
    """Judge operations that ran at once from `world` on, with the rows seen once all had ended, in enqueue order.

    Returns the checks made, or the clause that no order of the operations keeps. `Conflict` and `HookRaised` have no
    effect, `Unknown` has one or none, at any time after its start.
    """
    if len(view) != len(world.jobs):
        return Violation(
            SETUP, "rows lost or added", f"{len(world.jobs)} jobs were enqueued, {len(view)} rows are there"
        )
    moves = _by_job(world, operations)
    if isinstance(moves, Violation):
        return moves
    checks: Checks = ()
    for at, (record, row) in enumerate(zip(world.jobs, view, strict=True)):
        judged = _Job(record, row, moves[at], operations).judge()
        if isinstance(judged, Violation):
            return judged
        checks += judged
    for operation in operations:
        context = Context(operation.now, True)
        if type(operation.command) is c.Claim:
            whole = whole_claim(world, operation.command, operation.outcome, context)
        elif type(operation.command) in c.SWEEPS:
            whole = whole_sweep(world, operation.command, operation.outcome, context)
        else:
            continue
        if isinstance(whole, Violation):
            return whole
        checks += whole
    return checks


@dataclass(slots=True)
class _Move:
    """What one operation did to one job, in one instant. No parts: nobody knows whether it did anything."""

    operation: Operation
    parts: tuple[Part, ...]
    lost: c.Command | None = None

    @property
    def end(self) -> float:
        return self.operation.end if self.lost is None else float("inf")


def _by_job(world: World, operations: Sequence[Operation]) -> list[list[_Move]] | Violation:
    moves: list[list[_Move]] = [[] for _ in world.jobs]
    for operation in operations:
        if type(operation.outcome) is o.Unknown:
            for at, mine in enumerate(moves):
                alone = _alone(operation.command, at + 1)
                if alone is not None:
                    mine.append(_Move(operation, (), alone))
            continue
        for part in parts(operation.command, operation.outcome):
            if not 1 <= part.job <= len(moves):
                return Violation(SETUP, "unknown job", f"an outcome names job {part.job}, which was never enqueued")
            mine = moves[part.job - 1]
            if mine and mine[-1].operation is operation:  # one transaction of a caller: no other comes between
                mine[-1].parts += (part,)
            else:
                mine.append(_Move(operation, (part,)))
    return moves


def _alone(command: c.Command, job: int) -> c.Command | None:
    """The command as it is to a queue that holds this one job, or None if it has no business with the job."""
    if isinstance(command, c.HandleCommand):
        handle = command.handle
        assert isinstance(handle, c.Handle)
        return command.with_handle(c.Handle(1, handle.worker, handle.token)) if handle.job == job else None
    if isinstance(command, c.RequestCancel):
        return c.RequestCancel(1, command.by_parent) if command.job == job else None
    if isinstance(command, c.Atomically):
        inner = tuple(alone for each in command.commands if (alone := _alone(each, job)) is not None)
        return c.Atomically(inner, command.end) if inner else None
    return command if type(command) is c.Claim or type(command) in c.SWEEPS else None


class _Fault(NamedTuple):
    """Where an explanation could not go on."""

    depth: int
    violation: Violation
    move: _Move | None


@dataclass(slots=True)
class _Job:
    """The search for one job."""

    before: Record
    row: Row
    moves: list[_Move]
    operations: Sequence[Operation]
    deepest: _Fault | None = None
    earlier: list[int] = field(default_factory=list)
    """For each move the set of moves that had ended when it started, as bits."""
    seen: set[tuple[int, Record, Part | None, bool]] = field(default_factory=set)

    def judge(self) -> Checks | Violation:
        """The checks of the first order that explains everything; else the clause that the fault breaks."""
        self.earlier = [
            sum(1 << n for n, other in enumerate(self.moves) if other.end < move.operation.start) for move in self.moves
        ]
        found = self._search(0, 0, self.before, None, None)
        if found is not None:
            return found[0]
        # Name it by the one part that must be wrong if all else went as the rows show; failing that, by the first
        # point that the longest explanation cannot pass.
        deepest = self.deepest
        found = self._search(0, 0, self.before, None, _NOT_YET)
        fault = found[1] if found is not None and found[1] is not None else deepest
        assert fault is not None
        return fault.violation if fault.move is None else _named(fault.violation, fault.move, self.moves)

    def _search(
        self, done: int, depth: int, record: Record, last: _Last | None, fault: _Fault | None
    ) -> tuple[Checks, _Fault | None] | None:
        """Go on from here; `fault` is None where none is allowed, `_NOT_YET` where one may still be made."""
        if depth == len(self.moves):
            wrong = self._wrong_row(record, last)
            if wrong is None:
                return (() if last is None else checks_of_view(last.part.command, record)), fault
            self._note(_Fault(depth, wrong, None))
            return None
        key = (done, record, None if last is None else last.part, fault is _NOT_YET)
        if key in self.seen:
            return None
        self.seen.add(key)
        for n, move in enumerate(self.moves):
            if done >> n & 1 or self.earlier[n] & ~done:
                continue
            for after, checks, made in self._go(record, move, depth, last, fault):
                found = self._search(done | 1 << n, depth + 1, after[0], after[1], made)
                if found is not None:
                    return checks + found[0], found[1]
        return None

    def _go(
        self, record: Record, move: _Move, depth: int, last: _Last | None, fault: _Fault | None
    ) -> Iterator[tuple[tuple[Record, _Last | None], Checks, _Fault | None]]:
        """The records that this move may leave, each with the part that decided it."""
        if move.lost is not None:
            yield (record, last), (), fault
            for after, part in _effects(record, move.lost, move.operation.now):
                yield (after, _Last(part, record, after, move.operation.now, last)), (), fault
            return
        now = move.operation.now
        checks: Checks = ()
        for part in move.parts:
            judged = step_part(record, part, now)
            if isinstance(judged, Violation):
                stopped = _Fault(depth, judged, move)
                self._note(stopped)
                if fault is not _NOT_YET:
                    return
                fault, judged = stopped, _as_answered(record, part, now)
                if isinstance(judged, Violation):
                    return
            if judged[0] is not record:
                last = _Last(part, record, judged[0], now, last)
            record, checks = judged[0], checks + judged[1]
        yield (record, last), checks, fault

    def _note(self, fault: _Fault) -> None:
        if self.deepest is None or fault.depth > self.deepest.depth:
            self.deepest = fault

    def _wrong_row(self, record: Record, last: _Last | None) -> Violation | None:
        """The clause that the row breaks if this order is what happened."""
        wrong, row = mismatch(record, self.row), self.row
        if last is None:
            return None if wrong is None else self._unexplained()
        if wrong is not None:
            winners = [move for move in self.moves if type(move.operation.command) is c.Claim and move.lost is None]
            if any(
                _overlap(one.operation, other.operation) for one in winners for other in winners if one is not other
            ):
                return Violation("CLAIM-06", "claim: two winners", f"{wrong.field} is {wrong.found} after two claims")
            decided = last.decided(wrong.field)
            return blame(decided.part, decided.before, decided.after, wrong, row, None, ())
        return row_fault(last.part, last.before, record, row, None, last.now, ())

    def _unexplained(self) -> Violation:
        """The row changed, and no operation says so: the clause of the one that is the likeliest to have done it."""
        before, row = self.before, self.row
        taken = row.status == RUNNING and before.status != RUNNING
        claims = [each for each in self.operations if type(each.command) is c.Claim]
        if not (taken and claims):
            for move in self.moves:
                if move.parts:
                    return blame_rejected(move.parts[-1], before, move.operation.now)
        suspects = claims if taken and claims else self.operations
        if not suspects:
            return Violation(SETUP, "rows changed by themselves", "no command ran, yet a row changed")
        old = row._replace(status=before.spec.spell(before.status), cancel=before.cancel)
        return stray(suspects[0].command, suspects[0].outcome, before, old, row, suspects[0].now)


class _Last(NamedTuple):
    """The part that last changed the record: the record before and after it, its clock, the change before this one."""

    part: Part
    before: Record
    after: Record
    now: int
    previous: _Last | None

    def decided(self, field: str) -> _Last:
        """The change that decided how this field of the row looks."""
        at: _Last | None = self
        name = _DECIDED_WITH.get(field, field)
        while at is not None:
            if getattr(at.before, name) != getattr(at.after, name):
                return at
            at = at.previous
        return self


_DECIDED_WITH = {"heartbeat": "expires", "finished": "status"}
"""Fields of a row that a record has no field for."""


_NOT_YET = _Fault(-1, Violation("", "", ""), None)


def _effects(record: Record, lost: c.Command, now: int) -> Iterator[tuple[Record, Part]]:
    """What a command whose reply was lost may have done to a job."""
    alone = World(record.spec, now, (record,))
    for outcome in outcomes(alone, lost, Context(now)):
        after = record
        for part in parts(lost, outcome):
            judged = step_part(after, part, now)
            if isinstance(judged, Violation):
                break
            if judged[0] is not after:
                after = judged[0]
                yield after, part


def _as_answered(record: Record, part: Part, now: int) -> tuple[Record, Checks] | Violation:
    """What the part would have done had the job stood as its answer implies: how a wrong part left the row."""
    command, answer = part.command, part.answer
    if isinstance(answer, c.Handle):
        token = answer.token - 1 if isinstance(answer.token, int) else answer.token
        issued = tuple(pair for pair in record.issued if pair[1] != answer.token)
        implied = record._replace(status=PENDING, cancel=None, due=None, token=token, issued=issued)
    elif isinstance(answer, o.RecoveredRow):
        cancel = None if answer.status != record.spec.cancelled else record.cancel or now
        implied = record._replace(status=RUNNING, expires=now, cancel=cancel)
    elif isinstance(answer, o.Accepted) and isinstance(command, c.HandleCommand):
        handle = command.handle
        assert isinstance(handle, c.Handle)
        cancel = None if type(command) is c.Complete else record.cancel
        implied = record._replace(
            status=RUNNING, owner=handle.worker, token=handle.token, expires=now + 1, cancel=cancel
        )
        judged = step_part(implied, part, now)
        # What the job was asked to do stays on its row.
        return judged if isinstance(judged, Violation) else (judged[0]._replace(cancel=record.cancel), ())
    elif isinstance(answer, o.CancelAnswer) and answer.answer != "terminal":
        implied = record._replace(status=PENDING if answer.answer == "cancelled" else RUNNING)
    else:
        return record, ()
    judged = step_part(implied, part, now)
    return judged if isinstance(judged, Violation) else (judged[0], ())


class _Race(NamedTuple):
    """A part refused for this reason (its beginning), beside one of these commands, breaks this clause."""

    reason: str
    beside: tuple[type[c.Command], ...]
    clause: str


_RACES = (
    _Race("claim: running job", (c.Claim,), "CLAIM-06"),
    _Race("claim: ", (c.RequestCancel,), "CANCEL-09"),
    _Race("cancel: ", (c.Claim, c.Complete), "CANCEL-09"),
    _Race("complete: after a cancel request", (c.RequestCancel,), "CANCEL-09"),
)
"""First match first. A part that no line names breaks the clause that it would break alone: that of the clause-naming
table for a write, REC-07 for a sweep over a newer state, REC-02 for a sweep of a renewed lease."""


def _named(violation: Violation, move: _Move, moves: Sequence[_Move]) -> Violation:
    beside = {
        type(part.command)
        for other in moves
        if other is not move and _overlap(other.operation, move.operation)
        for part in other.parts
    }
    for race in _RACES:
        if violation.reason.startswith(race.reason) and beside.intersection(race.beside):
            return violation._replace(clause=race.clause)
    return violation


def _overlap(one: Operation, other: Operation) -> bool:
    return one.start <= other.end and other.start <= one.end
