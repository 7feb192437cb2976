"""Judging commands that ran at once: is there an order of their parts, job by job, that the sequential judge accepts?

The search is that of Wing and Gong ("Testing and Verifying Concurrent Objects", JPDC 1993) with Lowe's cache of states
seen ("Testing for Linearizability", CCPE 2017), one job at a time. This module has no opinion of its own about what is
legal: `step_part` judges each part, with the clock that its own command read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import NamedTuple

from . import commands as c
from . import outcomes as o
from .history import Change, Move, Operation, moves_of
from .judge import step_part
from .legal import outcomes
from .outcomes import Row, View
from .part import Part
from .queues import PENDING
from .race_names import as_answered, changed_row, named, unexplained
from .step import outcome_fault, parts
from .view import checks_of_view, mismatch
from .whole_claim import OF_NO_OTHER, repeats_id, whole_claim
from .whole_sweep import whole_sweep
from .world import SETUP, Checks, Context, Record, Violation, World


def judge(world: World, operations: Sequence[Operation], view: View) -> Checks | Violation:
    """Judge operations that ran at once from `world` on, with the rows seen once all had ended, in enqueue order.

    Where `world` has the rows before them, a job that no operation changed must have its row of then. Returns the
    checks made, or the clause that no order of the operations keeps. `Conflict` and `HookRaised` have no effect,
    `Unknown` has one or none, at any time after its start.
    """
    if len(view) != len(world.jobs):
        return Violation(
            SETUP, "rows lost or added", f"{len(world.jobs)} jobs were enqueued, {len(view)} rows are there"
        )
    for operation in operations:
        fault = _kind_fault(operation, operations)
        if fault is not None:
            return fault
    refused: Violation | None = None
    for settled in _settled(operations):
        explained = _explained(world, settled, view)
        if not isinstance(explained, Violation):
            wholes = _wholes(world, operations)
            return wholes if isinstance(wholes, Violation) else explained + wholes
        refused = refused or explained
    assert refused is not None
    return refused


def _kind_fault(operation: Operation, operations: Sequence[Operation]) -> Violation | None:
    """An outcome that this command cannot have, inside a caller's transaction too, or a conflict with nobody."""
    command, outcome = operation.command, operation.outcome
    if type(outcome) is o.Unknown:
        return None
    overlapped = any(other is not operation and operation.overlaps(other) for other in operations)
    context = Context(operation.now, overlapped)
    fault = outcome_fault(command, outcome, context)
    if fault is not None or not (isinstance(command, c.Atomically) and isinstance(outcome, o.Atomic)):
        return fault
    if len(outcome.outcomes) != len(command.commands):
        return Violation(SETUP, "outcome of another kind", "atomically answers one outcome per command")
    inner = (outcome_fault(*each, context) for each in zip(command.commands, outcome.outcomes, strict=True))
    return next((each for each in inner if each is not None), None)


def _settled(operations: Sequence[Operation]) -> Iterator[Sequence[Operation]]:
    """The operations less those of the lost transactions that never took effect, in each way; first with all of them.

    A transaction takes effect on all of its jobs or on none, which no single job shows.
    """
    lost = [
        n for n, each in enumerate(operations) if type(each.outcome) is o.Unknown and type(each.command) is c.Atomically
    ]
    for count in range(len(lost) + 1):
        for without in combinations(lost, count):
            yield [each for n, each in enumerate(operations) if n not in without]


def _explained(world: World, operations: Sequence[Operation], view: View) -> Checks | Violation:
    """The checks of an order for each job, or the clause that the first job without one breaks."""
    moves = moves_of(operations, len(world.jobs))
    if isinstance(moves, Violation):
        return moves
    checks: Checks = ()
    for job, (row, mine) in enumerate(zip(view, moves, strict=True), 1):
        judged = _Job(world, job, row, mine, operations).judge()
        if isinstance(judged, Violation):
            return judged
        checks += judged
    return checks


def _wholes(world: World, operations: Sequence[Operation]) -> Checks | Violation:
    """What whole claims and whole sweeps show where they overlap."""
    checks: Checks = ()
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
    if world.spec.fence == "attempt_id":
        claims = [each.outcome for each in operations if isinstance(each.outcome, o.Claimed)]
        if repeats_id(world, [handle for claimed in claims for handle in claimed.handles]):
            return Violation(OF_NO_OTHER.clause, OF_NO_OTHER.reason, "claims that overlapped have minted one id twice")
    return checks


class _Fault(NamedTuple):
    """Where an explanation could not go on."""

    depth: int
    violation: Violation
    move: Move | None


_NOT_YET = _Fault(-1, Violation("", "", ""), None)


class _State(NamedTuple):
    """What is left to explain depends on nothing else: the moves done, as bits, and what they made of the job."""

    done: int
    record: Record
    part: Part | None
    before: Record | None
    now: int
    several: bool
    may_err: bool


@dataclass(slots=True)
class _Job:
    """The search for one job."""

    world: World
    job: int
    row: Row
    moves: list[Move]
    operations: Sequence[Operation]
    deepest: _Fault | None = None
    earlier: list[int] = field(default_factory=list)
    """For each move the set of moves that had ended when it started, as bits."""
    seen: set[_State] = field(default_factory=set)

    def judge(self) -> Checks | Violation:
        """The checks of the first order that explains everything; else the clause that the fault breaks."""
        self.earlier = [
            sum(1 << n for n, other in enumerate(self.moves) if other.operation.until < move.operation.start)
            for move in self.moves
        ]
        before = self.world.jobs[self.job - 1]
        found = self._search(0, 0, before, None, None)
        if found is not None:
            return found[0]
        # Name it by the one part that must be wrong if all else went as the rows show; failing that, by the first
        # point that the longest explanation cannot pass.
        found = self._search(0, 0, before, None, _NOT_YET)
        fault = found[1] if found is not None else self.deepest
        assert fault is not None
        return fault.violation if fault.move is None else named(fault.violation, fault.move, self.moves)

    def _search(
        self, done: int, depth: int, record: Record, last: Change | None, fault: _Fault | None
    ) -> tuple[Checks, _Fault | None] | None:
        """Go on from here; `fault` is None where none is allowed, `_NOT_YET` where one may still be made."""
        if depth == len(self.moves):
            wrong = self._wrong_row(record, last)
            if wrong is None:
                return (() if last is None else checks_of_view(last.part.command, record)), fault
            self._note(_Fault(depth, wrong, None), fault)
            return None
        state = _state(done, record, last, fault is _NOT_YET)
        if state in self.seen:
            return None
        self.seen.add(state)
        for n, move in enumerate(self.moves):
            if done >> n & 1 or self.earlier[n] & ~done:
                continue
            for after, change, checks, made in self._go(record, move, depth, last, fault):
                found = self._search(done | 1 << n, depth + 1, after, change, made)
                if found is not None:
                    return checks + found[0], found[1]
        return None

    def _go(
        self, record: Record, move: Move, depth: int, last: Change | None, fault: _Fault | None
    ) -> Iterator[tuple[Record, Change | None, Checks, _Fault | None]]:
        """The records that this move may leave, each with the change that decided it."""
        now = move.operation.now
        if move.lost is not None:
            for outcome in outcomes(World(record.spec, now, (record,)), move.lost, Context(now)):
                for after, change in _effects(record, last, parts(move.lost, outcome), now, self.row):
                    yield after, change, (), fault
            if type(move.lost) is not c.Atomically:  # a transaction that never took effect is not among the moves
                yield record, last, (), fault
            return
        after, change = record, last
        checks: Checks = ()
        for part in move.parts:
            judged = step_part(after, part, now)
            if isinstance(judged, Violation):
                stopped = _Fault(depth, judged, move)
                self._note(stopped, fault)
                if fault is not _NOT_YET:
                    return
                fault, judged = stopped, as_answered(after, part, now)
                if isinstance(judged, Violation):
                    return
            if judged[0] is not after:
                change = Change(part, after, judged[0], now, change)
            after, checks = judged[0], checks + judged[1]
        if move.undone:
            after, change = record, last
        yield after, change, checks, fault

    def _note(self, stopped: _Fault, fault: _Fault | None) -> None:
        """Remember the deepest point; what follows from a part assumed to be wrong says nothing of its own."""
        if fault is None and (self.deepest is None or stopped.depth > self.deepest.depth):
            self.deepest = stopped

    def _wrong_row(self, record: Record, last: Change | None) -> Violation | None:
        """The clause that the row breaks if this order is what happened."""
        old = None if self.world.rows is None else self.world.rows[self.job - 1]
        if last is not None:
            return changed_row(last, self.row, old, self.moves)
        if self.row == old or (old is None and mismatch(record, self.row) is None):
            return None
        return unexplained(self.world, self.job, self.row, self.moves, self.operations)


def _state(done: int, record: Record, last: Change | None, may_err: bool) -> _State:
    if last is None:
        return _State(done, record, None, None, 0, False, may_err)
    return _State(done, record, last.part, last.before, last.now, last.previous is not None, may_err)


def _effects(
    record: Record, last: Change | None, pieces: tuple[Part, ...], now: int, row: Row
) -> Iterator[tuple[Record, Change | None]]:
    """What a job may have become by parts that nobody saw the answers of, all of them together."""
    if not pieces:
        yield record, last
        return
    for part in _as_shown(pieces[0], now, row):
        judged = step_part(record, part, now)
        if not isinstance(judged, Violation):
            change = last if judged[0] is record else Change(part, record, judged[0], now, last)
            yield from _effects(judged[0], change, pieces[1:], now, row)


def _as_shown(part: Part, now: int, row: Row) -> Iterator[Part]:
    """The part with each value that the queue may have chosen, legal or not. An instant at which a job is due again: as
    `outcomes` has it, as the row tells and, where the job went on from there, the earliest. An attempt's id: as the row
    tells and, where the job went on from there, one that nobody has seen.
    """
    yield part
    answer = part.answer
    if isinstance(answer, c.Handle) and type(row.token) is str:
        yield part._replace(answer=c.Handle(answer.job, answer.worker, row.token))
    if isinstance(answer, (o.Accepted, o.RecoveredRow)) and answer.status == PENDING:
        for due in (row.due, now + 1):
            again = (
                o.Accepted(PENDING, due) if isinstance(answer, o.Accepted) else o.RecoveredRow(answer.job, PENDING, due)
            )
            yield part._replace(answer=again)
