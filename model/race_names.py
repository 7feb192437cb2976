"""Which clause a history breaks that no order of its operations explains. Nothing here decides that it breaks one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from . import commands as c
from . import outcomes as o
from .history import Change, Move, Operation
from .judge import step_part
from .outcomes import Row
from .part import Part
from .queues import PENDING, RUNNING
from .step import step
from .view import KEPT, blame, blame_rejected, mismatch, refers_to, row_fault, stray
from .world import SETUP, Checks, Context, Record, Violation, World, closed
from .writes import refusal


class _Race(NamedTuple):
    """A part refused for this reason (its beginning), beside one of these commands, breaks this clause."""

    reason: str
    beside: tuple[type[c.Command], ...]
    clause: str


_MOVES: tuple[type[c.Command], ...] = (*c.HANDLE_COMMANDS, c.RequestCancel, *c.SWEEPS)
"""What brings a job to a state that a sweep beside it has not read."""
_RACES = (
    _Race("claim: running job", (c.Claim,), "CLAIM-06"),
    _Race("claim: cancel requested", (c.RequestCancel,), "CANCEL-09"),
    _Race("claim: terminal job", (c.RequestCancel,), "CANCEL-09"),
    _Race("cancel: ", (c.Claim, c.Complete), "CANCEL-09"),
    _Race("complete: after a cancel request", (c.RequestCancel,), "CANCEL-09"),
    _Race("sweep: expired with a cancel request", (c.RequestCancel,), "REC-07"),
    _Race("sweep: pending before its deadline", _MOVES, "REC-07"),
    *(_Race(f"{kind.verb}: terminal row", _MOVES, "REC-07") for kind in c.SWEEPS),
)
"""First match first. A part that no line names breaks the clause that it would break alone: that of the clause-naming
table for a write, REC-07 for a sweep over a newer state, REC-02 for a sweep of a renewed lease."""


def named(violation: Violation, move: Move, moves: Sequence[Move]) -> Violation:
    """The violation of a part of this move under the clause of the race that it lost, if that has one of its own."""
    beside = {
        type(part.command)
        for other in moves
        if other is not move and other.operation.overlaps(move.operation)
        for part in other.parts
    }
    for race in _RACES:
        if violation.reason.startswith(race.reason) and beside.intersection(race.beside):
            return violation._replace(clause=race.clause)
    return violation


def changed_row(last: Change, row: Row, old: Row | None, moves: Sequence[Move]) -> Violation | None:
    """What is wrong with the row of a job that these changes, and no others, were made to; None if nothing is.

    `old` is the row before the first of them, None where nobody looked; `moves` are all that were made to the job.
    """
    # The row before the last of several changes was never seen.
    seen = old if last.previous is None else None
    wrong = mismatch(last.after, row)
    if wrong is None:
        return row_fault(last.part, last.before, last.after, row, seen, last.now, ())
    if wrong.field == "artifact":
        found = _deleted(last.after, row, moves) or _promoted(last.after, row, moves)
        if found is not None:
            return found
    decided = last.decided(wrong.field)
    return blame(decided.part, decided.before, decided.after, wrong, row, seen, ())


def _deleted(record: Record, row: Row, moves: Sequence[Move]) -> Violation | None:
    """That an upload which was refused has deleted what the job refers to, if one was and has (FENCE-07)."""
    if row.artifact is not None:
        return None
    for move in moves:
        refused = [part.command for part in move.parts if type(part.answer) is o.Rejected]
        if any(refers_to(record, each) for each in (*refused, move.lost) if each is not None):
            kept = KEPT[record.status]
            return Violation(kept.clause, kept.reason, "the job still refers to the artifact that was deleted")
    return None


def _promoted(record: Record, row: Row, moves: Sequence[Move]) -> Violation | None:
    """That an upload came after what should have refused it, if the row refers to what was accepted before that."""
    for move in moves:
        for part in move.parts:
            command = part.command
            if type(command) is c.PutArtifact and type(part.answer) is o.Accepted and _stores(command, row):
                check = refusal(record, command, move.operation.now)
                return Violation(check.clause, check.reason, "the upload of an attempt that was over came last")
    return None


def _stores(upload: c.PutArtifact, row: Row) -> bool:
    return row.artifact is not None and upload.handle.token == row.artifact  # type: ignore[union-attr]


def unexplained(world: World, job: int, row: Row, moves: Sequence[Move], operations: Sequence[Operation]) -> Violation:
    """The job's row changed, and no operation says so: the clause of the one that is the likeliest to have done it."""
    before, rows = world.jobs[job - 1], world.rows
    if rows is not None and rows[job - 1].artifact is not None:
        deleted = _deleted(before, row, moves)
        if deleted is not None:
            return deleted
    taken = row.status == RUNNING and before.status != RUNNING
    claims = [each for each in operations if type(each.command) is c.Claim]
    if not (taken and claims):
        for move in moves:
            if move.undone and rows is not None:
                found = _kept(world, move.operation, (*rows[: job - 1], row, *rows[job:]))
                if found is not None:
                    return found
            if move.parts:
                old = None if rows is None else rows[job - 1]
                return blame_rejected(move.parts[-1], before, row, old, move.operation.now)
    suspects = claims if taken and claims else operations
    if not suspects:
        return Violation(SETUP, "rows changed by themselves", "no command ran, yet a row changed")
    old = row._replace(status=before.spec.spell(before.status), cancel=before.cancel) if rows is None else rows[job - 1]
    return stray(suspects[0].command, suspects[0].outcome, job, before, old, row, suspects[0].now)


def _kept(world: World, operation: Operation, rows: tuple[Row, ...]) -> Violation | None:
    """The clause that a transaction breaks whose caller undid it, if these are the rows after it."""
    judged = step(world, operation.command, operation.outcome, Context(operation.now, True, rows))
    return judged if isinstance(judged, Violation) else None


def as_answered(record: Record, part: Part, now: int) -> tuple[Record, Checks] | Violation:
    """What the part would have done had the job stood as its answer implies: how a wrong part left the row."""
    command, answer = part.command, part.answer
    ahead = record._replace(deadline=None) if closed(record, now) else record
    if isinstance(answer, c.Handle):
        token = answer.token - 1 if isinstance(answer.token, int) else answer.token
        issued = tuple(pair for pair in record.issued if pair[1] != answer.token)
        implied = ahead._replace(status=PENDING, cancel=None, due=None, token=token, issued=issued, expires=None)
    elif isinstance(answer, o.RecoveredRow):
        cancel = None if answer.status != record.spec.cancelled else record.cancel or now
        implied = record._replace(status=RUNNING, expires=now, cancel=cancel)
    elif isinstance(answer, o.Accepted) and isinstance(command, c.HandleCommand):
        handle = command.handle
        assert isinstance(handle, c.Handle)
        cancel = None if type(command) is c.Complete else record.cancel
        implied = ahead._replace(
            status=RUNNING, owner=handle.worker, token=handle.token, expires=now + 1, cancel=cancel
        )
    elif isinstance(answer, o.CancelAnswer) and answer.answer != "terminal":
        implied = record._replace(status=PENDING if answer.answer == "cancelled" else RUNNING)
    else:
        return record, ()
    judged = step_part(implied, part, now)
    if isinstance(judged, Violation):
        return judged
    after = judged[0]._replace(deadline=record.deadline)
    # What the job was asked to do stays on its row.
    return after._replace(cancel=record.cancel) if isinstance(command, c.HandleCommand) else after, ()
