"""Judging what a worker does with a lease handle: renewals, ends, releases, checkpoints.

The clause-naming table of contract.md stands here as data (`STANDINGS`); the first row that matches names the clause.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from . import commands as c
from . import outcomes as o
from .errors import LISTED, WHAT, classify
from .part import Answer, Judged, requeued, spelling, terminal
from .queues import CANCELLED, FAILED, PENDING, RUNNING, SKIPPED, SUCCEEDED
from .world import Check, Checks, Record, Violation, holder, lease_end, overdue


class Standing(NamedTuple):
    """How a row stands to the handle that writes it, and which clause a wrong answer breaks."""

    name: str
    renew: str
    write: str
    upload: str = ""
    """Where it is not that of any other write."""

    def clause(self, kind: type[c.Command]) -> str:
        """The clause that a wrong answer to this kind of command breaks."""
        if kind is c.Renew:
            return self.renew
        return self.upload or self.write if kind is c.PutArtifact else self.write


ENDED = {
    status: Standing(f"terminal, {status}", "LEASE-02", "TERM-02") for status in (SUCCEEDED, FAILED, CANCELLED, SKIPPED)
}
AGAIN = Standing("pending again", "LEASE-02", "FENCE-02")
OTHER = Standing("another owner", "LEASE-02", "FENCE-02")
OLDER = Standing("older token", "FENCE-03", "FENCE-03", "FENCE-04")
EXPIRED = Standing("expired", "LEASE-04", "FENCE-01")
EXPIRING = Standing("expired in this tick", "LEASE-04", "FENCE-01")
OVERDUE = Standing("deadline passed", "LEASE-03", "DEAD-01")
HELD = Standing("held", "LEASE-03", "FENCE-01")
LAST_TICK = Standing("held in its last tick", "LEASE-03", "FENCE-01")
STANDINGS = (*ENDED.values(), AGAIN, OTHER, OLDER, EXPIRED, EXPIRING, OVERDUE, HELD, LAST_TICK)
"""Contract.md's table "which clause a wrong write breaks", first match first. Both sides of a lease's end stand apart,
and each way to end, since that is where writes go wrong."""


def standing(record: Record, handle: c.Handle, now: int) -> Standing:
    """The row of the clause-naming table that applies when this handle writes at `now`."""
    if record.status != RUNNING:
        return AGAIN if record.status == PENDING else ENDED[record.status]
    if record.owner != handle.worker:
        return OTHER
    if record.token != handle.token:
        return OLDER
    left = -1 if record.expires is None else record.expires - now
    if left > 0:
        if overdue(record, now):
            return OVERDUE
        return HELD if left > 1 else LAST_TICK
    return EXPIRED if left else EXPIRING


def _holds(at: Standing) -> bool:
    return at is HELD or at is LAST_TICK


def refusal_of_code(fail: c.Fail) -> Check | None:
    """The check that a refused code makes (ERR-01, 02, 03), or None if the code must be taken."""
    family = classify(fail.code)
    if family is None:
        return _NO_FAMILY
    if family == "FENCE":
        return _FENCE_CODE
    return None if WHAT[family] == fail.what else _OTHER_FAMILY


_NO_FAMILY = Check("ERR-01", "fail: code of no family", True)
_FENCE_CODE = Check("ERR-02", "fail: FENCE code", True)
_OTHER_FAMILY = Check("ERR-03", "fail: code of another family", True)


def fail_target(record: Record, fail: c.Fail) -> tuple[str, Check]:
    """The standard status that an accepted failure leads to, and the check that names the rule (CANCEL-06, ERR-02)."""
    family = classify(fail.code)
    if record.cancel is not None:
        return CANCELLED, Check("CANCEL-06", f"fail: {family} after a cancel request", True)
    if family == "CANCEL":
        if record.spec.cancels:
            return CANCELLED, Check("ERR-02", "fail: CANCEL family ends cancelled", True)
        return FAILED, Check("ERR-02", "fail: CANCEL family ends failed", record.attempts < record.max_attempts)
    if family == "LEASE" or (family in LISTED and fail.code in record.spec.retryable_codes):
        if record.attempts < record.max_attempts:
            return PENDING, Check("ATT-02", f"fail: {family} retried", True)
        return FAILED, Check("ATT-02", f"fail: {family}, budget of {record.max_attempts} used up", True)
    # Without budget a retry would come to the same, so only a job that has some left can tell.
    return FAILED, Check("ERR-02", f"fail: {family} not retried", record.attempts < record.max_attempts)


def may_call_off(record: Record, fail: c.Fail) -> bool:
    """Whether this failure may end a job `cancelled` that nobody can have cancelled: the queue has that end, and the
    code says so (ERR-02). It may end `failed` as well.
    """
    return record.spec.ends_cancelled and not record.spec.cancels and classify(fail.code) == "CANCEL"


def _teeth(record: Record, command: c.HandleCommand, handle: c.Handle, now: int, at: Standing) -> bool:
    """Whether nothing but the standing could have refused this write."""
    if record.status != RUNNING:
        # Only by its attempt is another's completion told from one that is repeated (FENCE-05).
        again = type(command) is c.Complete and record.status == SUCCEEDED and record.spec.repeats_complete
        alone = again or holder(record, handle)
    elif at is OTHER or at is OLDER:
        alone = record.expires is not None and record.expires > now
    else:
        alone = True
    kind = type(command)
    if kind is c.Complete:
        return alone and (record.cancel is None or record.spec.completion_wins)
    if kind is c.Acknowledge:
        return alone and record.cancel is not None
    if kind is c.Fail:
        return alone and refusal_of_code(command) is None  # type: ignore[arg-type]
    return alone


_REFUSED: dict[tuple[type, Standing, bool], tuple[Check, ...]] = {
    (kind, at, teeth): (Check(at.clause(kind), f"{kind.verb}: {at.name}", teeth),)
    for kind in c.HANDLE_COMMANDS
    if kind is not c.Checkpoint
    for at in STANDINGS
    for teeth in (True, False)
}
_RENEWED = Check("LEASE-03", "renew: held", True)
_AFTER_CANCEL = Check("CANCEL-06", "complete: after a cancel request", True)
_NO_REQUEST = Check("CANCEL-04", "acknowledge: without a request", True)
_ACKNOWLEDGED = Check("CANCEL-04", "acknowledge: with a request", True)
_RELEASED = Check("REL-01", "release: given back", True)
_RELEASE_CANCELLED = Check("REL-01", "release: after a cancel request", True)
_CHECKPOINT = {flag: (Check("CANCEL-04", f"checkpoint: {flag}", True),) for flag in (True, False)}
_COMPLETED = Check("TERM-01", "complete: succeeded", True)
_WINS = Check("CANCEL-06", "complete: after a cancel request, and wins", True)
_REPEATED = Check("FENCE-05", "complete: repeated by the same attempt", True)
_SKIPPED = Check("TERM-01", "skip: skipped", True)
_SKIP_CANCELLED = Check("REL-01", "skip: after a cancel request", True)
_STORED = {teeth: Check("FENCE-04", "put_artifact: stored", teeth) for teeth in (False, True)}


def judge_write(record: Record, command: c.Command, answer: Answer, now: int) -> Judged:
    """A renewal, an end or a release (the clause-naming table of contract.md)."""
    assert isinstance(command, c.HandleCommand)
    handle = command.handle
    assert isinstance(handle, c.Handle)
    at = standing(record, handle, now)
    kind = type(command)
    accepted = type(answer) is o.Accepted
    if kind is c.Complete and repeats(record, handle):
        if accepted and answer.status == SUCCEEDED:  # type: ignore[union-attr]
            return record, (_REPEATED,)
        return Violation(_REPEATED.clause, _REPEATED.reason, "must be accepted: the same attempt has succeeded")
    if not _holds(at):
        if not accepted:
            return record, _REFUSED[kind, at, _teeth(record, command, handle, now, at)]
        check = _REFUSED[kind, at, True][0]
        if at is OVERDUE and kind is c.Fail and refusal_of_code(command) is None:  # type: ignore[arg-type]
            return _failed_late(record, command, answer, check)  # type: ignore[arg-type]
        return Violation(check.clause, check.reason, f"must be rejected: {_because(at, record, handle)}")
    refused = _own_refusal(record, command)
    if refused is not None:
        if not accepted:
            return record, (refused,)
        if refused is _AFTER_CANCEL:
            return _end(record, CANCELLED, answer, _AFTER_CANCEL, "after a cancel request it must end", command)
        return Violation(refused.clause, refused.reason, f"must be rejected: {_OWN_REASONS[refused]}")
    # Where completion wins, the table's row of a success after a cancel request comes before that of the holder.
    held = () if kind is c.Complete and record.cancel is not None else _REFUSED[kind, at, True]
    if not accepted:
        check = held[0] if held else _WINS
        return Violation(check.clause, check.reason, "must be accepted: the current holder, its lease valid")
    judged = _ACCEPTS[kind](record, command, answer, now)
    return judged if isinstance(judged, Violation) else (judged[0], held + judged[1])


def refusal(record: Record, command: c.HandleCommand, now: int) -> Check:
    """The check whose clause is broken if this write has an effect that its answer denies."""
    assert isinstance(command.handle, c.Handle)
    if type(command) is c.Complete and repeats(record, command.handle):
        return _REPEATED
    at = standing(record, command.handle, now)
    refused = _own_refusal(record, command) if _holds(at) else None
    return _REFUSED[type(command), at, True][0] if refused is None else refused


def repeats(record: Record, handle: c.Handle) -> bool:
    """Whether a success by this handle is one that its attempt has reported before (FENCE-05)."""
    return record.status == SUCCEEDED and record.spec.repeats_complete and holder(record, handle)


def _because(at: Standing, record: Record, handle: c.Handle) -> str:
    who = f"w{handle.worker}"
    return {
        **{at.name: f"the job has ended {status}" for status, at in ENDED.items()},
        AGAIN.name: f"{who} was superseded, the job is pending again",
        OTHER.name: f"{who} was superseded, the job runs at w{record.owner}",
        OLDER.name: f"{who} was superseded by its own newer claim (token {record.token}, not {handle.token})",
        EXPIRED.name: f"{who}'s lease has expired",
        EXPIRING.name: f"{who}'s lease has expired",
        OVERDUE.name: f"the deadline has passed, at +{record.deadline} s",
    }[at.name]


_OWN_REASONS = {
    _NO_REQUEST: "no cancel was requested",
    _NO_FAMILY: "the code belongs to no error family",
    _FENCE_CODE: "a FENCE code says that somebody else holds the job",
    _OTHER_FAMILY: "the code is of another family than what happened",
}


def _own_refusal(record: Record, command: c.Command) -> Check | None:
    """What besides the fence refuses this write of the current holder."""
    kind = type(command)
    if kind is c.Complete:
        return None if record.cancel is None or record.spec.completion_wins else _AFTER_CANCEL
    if kind is c.Acknowledge:
        return _NO_REQUEST if record.cancel is None else None
    if kind is c.Fail:
        return refusal_of_code(command)  # type: ignore[arg-type]
    return None


def _end(record: Record, status: str, answer: Answer, check: Check, why: str, command: c.Command) -> Judged:
    """The record in a terminal status, if the answer spells it right."""
    assert isinstance(answer, o.Accepted)
    wrong = spelling(record, command, status, answer.status, check, why)
    if wrong is not None:
        return wrong
    return terminal(record, status, record.token, record.cancel), (check,)


def _renewed(record: Record, command: c.Renew, answer: o.Accepted, now: int) -> Judged:
    wrong = spelling(record, command, RUNNING, answer.status, _RENEWED, "a renewed job stays")
    if wrong is not None:
        return wrong
    spec, status, owner, token, _, _, attempts, budget, due, cancel, issued, deadline, artifact, created = record
    expires = lease_end(command.lease or spec.lease_seconds, deadline, now)
    return Record(
        spec, status, owner, token, expires, expires - now, attempts, budget, due, cancel, issued, deadline, artifact,
        created,
    ), ()  # fmt: skip


def _completed(record: Record, command: c.Complete, answer: o.Accepted, now: int) -> Judged:
    check = _COMPLETED if record.cancel is None else _WINS
    return _end(record, SUCCEEDED, answer, check, "a completed job is", command)


def _skipped(record: Record, command: c.Skip, answer: o.Accepted, now: int) -> Judged:
    if record.cancel is not None:
        return _end(record, CANCELLED, answer, _SKIP_CANCELLED, "after a cancel request it must end", command)
    return _end(record, SKIPPED, answer, _SKIPPED, "a skipped job is", command)


def _uploaded(record: Record, command: c.PutArtifact, answer: o.Accepted, now: int) -> Judged:
    wrong = spelling(record, command, RUNNING, answer.status, _STORED[True], "a job whose artifact is stored stays")
    if wrong is not None:
        return wrong
    assert isinstance(command.handle, c.Handle)
    # Stored again, the job refers to it already: whatever is answered, the row says nothing.
    teeth = record.artifact != command.handle.token
    return record._replace(artifact=command.handle.token), (_STORED[teeth],)


def _failed(record: Record, command: c.Fail, answer: o.Accepted, now: int) -> Judged:
    status, check = fail_target(record, command)
    if may_call_off(record, command) and answer.status == record.spec.cancelled:
        status = CANCELLED
    if status != PENDING:
        return _end(record, status, answer, check, "this failure must end in", command)
    wrong = spelling(record, command, PENDING, answer.status, check, "this failure must leave the job")
    if wrong is not None:
        return wrong
    if record.spec.backs_off and (answer.due is None or answer.due <= now):
        return Violation(
            _LATER.clause, _LATER.reason, f"a retry must be due later than +{now} s, is due at {_instant(answer.due)}"
        )
    if answer.due is not None and not record.spec.backs_off:
        return Violation(
            check.clause, check.reason, f"there is no back-off, so it is due at once, not at +{answer.due} s"
        )
    checks: Checks = (check,)
    if record.spec.backs_off:
        checks += (_LATER,)
    return requeued(record, record.token, record.attempts, answer.due), checks


def _failed_late(record: Record, command: c.Fail, answer: o.Accepted, check: Check) -> Judged:
    """A failure past a deadline that was moved, so that the lease runs on: refused like any other write, or final
    (DEAD-01).
    """
    status = fail_target(record._replace(attempts=record.max_attempts), command)[0]
    if may_call_off(record, command) and answer.status == record.spec.cancelled:
        status = CANCELLED
    return _end(record, status, answer, check, "a failure past the deadline is not retried, and ends", command)


def _instant(tick: int | None) -> str:
    return "no instant" if tick is None else f"+{tick} s"


_LATER = Check("ATT-02", "fail: due strictly later", True)


def _released(record: Record, command: c.Release, answer: o.Accepted, now: int) -> Judged:
    if record.cancel is not None:
        return _end(record, CANCELLED, answer, _RELEASE_CANCELLED, "after a cancel request it must end", command)
    wrong = spelling(record, command, PENDING, answer.status, _RELEASED, "a released job is")
    if wrong is not None:
        return wrong
    if answer.due is not None and not record.spec.backs_off:
        return Violation(
            "REL-01", _RELEASED.reason, f"there is no back-off, so it is due at once, not at +{answer.due} s"
        )
    return requeued(record, record.token, record.attempts - 1, answer.due), (_RELEASED,)


def _acknowledged(record: Record, command: c.Acknowledge, answer: o.Accepted, now: int) -> Judged:
    return _end(record, CANCELLED, answer, _ACKNOWLEDGED, "an acknowledged cancel ends", command)


_ACCEPTS: dict[type, Callable[..., Judged]] = {
    c.Renew: _renewed, c.Complete: _completed, c.Fail: _failed, c.Skip: _skipped, c.Release: _released,
    c.Acknowledge: _acknowledged, c.PutArtifact: _uploaded,
}  # fmt: skip


def judge_checkpoint(record: Record, command: c.Command, answer: Answer, now: int) -> Judged:
    """A look at the cancel request at a safe boundary (CANCEL-04)."""
    assert isinstance(command, c.Checkpoint) and isinstance(command.handle, c.Handle)
    if not _holds(standing(record, command.handle, now)):
        return record, ()
    asked = record.cancel is not None
    if type(answer) is o.Checkpointed and answer.cancel == asked:
        return record, _CHECKPOINT[asked]
    why = "must tell the holder that a cancel was requested" if asked else "no cancel was requested"
    return Violation("CANCEL-04", f"checkpoint: {asked}", why)
