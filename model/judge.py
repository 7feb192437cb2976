"""Judging one job's part of a command: the unit of the sequential fold and of the linearizability search.

The clause-naming table of contract.md stands here as data (`STANDINGS`). Where the contract leaves freedom the
judge follows what was observed; where it does not, it refuses and names the first matching clause.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from . import commands as c
from . import outcomes as o
from .errors import WHAT, classify
from .queues import CANCELLED, FAILED, OLD_SPELLINGS, PENDING, RUNNING, SUCCEEDED
from .world import Check, Checks, Record, Violation, claimable, expired, holder, sweepable

Answer: TypeAlias = "o.Outcome | o.RecoveredRow | c.Handle"
Judged: TypeAlias = "tuple[Record, Checks] | Violation"


class Part(NamedTuple):
    """What a command did to one job: a claim's handle, a sweep's row, or the whole outcome of a one-job command."""

    job: int
    command: c.Command
    answer: Answer


class Standing(NamedTuple):
    """How a row stands to the handle that writes it, and which clause a wrong answer breaks."""

    name: str
    renew: str
    write: str


TERMINAL = Standing("terminal", "LEASE-02", "TERM-02")
AGAIN = Standing("pending again", "LEASE-02", "FENCE-02")
OTHER = Standing("another owner", "LEASE-02", "FENCE-02")
OLDER = Standing("older token", "FENCE-03", "FENCE-03")
EXPIRED = Standing("expired", "LEASE-04", "FENCE-01")
HELD = Standing("held", "LEASE-03", "FENCE-01")
STANDINGS = (TERMINAL, AGAIN, OTHER, OLDER, EXPIRED, HELD)
"""Contract.md's table "which clause a wrong write breaks", first match first (the rows that part 1 can reach)."""


def standing(record: Record, handle: c.Handle, now: int) -> Standing:
    """The row of the clause-naming table that applies when this handle writes at `now`."""
    if record.status != RUNNING:
        return AGAIN if record.status == PENDING else TERMINAL
    if record.owner != handle.worker:
        return OTHER
    if record.token != handle.token:
        return OLDER
    return HELD if record.expires is not None and record.expires > now else EXPIRED


def step_part(record: Record, part: Part, now: int) -> Judged:
    """Judge one job's part of a command as one instant at `now` ticks, asked with the asker's clock.

    Returns the record after it and the checks it made, or the violation.
    """
    return _JUDGES[type(part.command)](record, part.command, part.answer, now)


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
    if record.cancel is not None:
        return CANCELLED, Check("CANCEL-06", "fail: after a cancel request", True)
    family = classify(fail.code)
    if family == "CANCEL":
        return CANCELLED, Check("ERR-02", "fail: CANCEL family ends cancelled", True)
    if family == "LEASE" or (family == "INFRA" and fail.code in record.spec.retryable_codes):
        if record.attempts < record.max_attempts:
            return PENDING, Check("ATT-02", "fail: retried", True)
        return FAILED, Check("ATT-02", "fail: budget used up", True)
    return FAILED, Check("ERR-02", f"fail: {family} not retried", True)


def recover_target(record: Record) -> tuple[str, Check]:
    """Where a sweep must bring this job, and the check that names the branch (REC-01, REC-03, CANCEL-05, CLAIM-02)."""
    if record.status == PENDING:
        return CANCELLED, _SWEPT
    if record.cancel is not None:
        return CANCELLED, _SWEEP_CANCELLED
    if record.attempts < record.max_attempts:
        return PENDING, _REQUEUED
    return FAILED, _EXHAUSTED


_SWEPT = Check("CLAIM-02", "sweep: pending with a cancel request", True)
_SWEEP_CANCELLED = Check("CANCEL-05", "sweep: expired with a cancel request", True)
_REQUEUED = Check("REC-01", "sweep: expired, re-queued", True)
_EXHAUSTED = Check("REC-03", "sweep: expired, budget used up", True)
_SWEPT_ONCE = Check("REC-07", "sweep: a job that nothing is left to do for", True)
_VALID = Check("REC-02", "sweep: valid lease untouched", True)
_RECORDED = Check("LEASE-07", "sweep: expiry as recorded", True)
_OWN_PREFIX = Check("REC-05", "start-up: own prefix recovered", True)
_FOREIGN = Check("REC-05", "start-up: foreign prefix untouched", True)


def spelling(record: Record, standard: str, stored: str, check: Check, why: str) -> Violation | None:
    """None if `stored` is how the queue spells `standard`; else TERM-04, TERM-01 or the rule that chose the status."""
    spec = record.spec
    if stored == spec.spell(standard):
        return None
    if stored not in spec.terminal and OLD_SPELLINGS.get(stored) == standard:
        return Violation("TERM-04", check.reason, f"the queue spells it {spec.spell(standard)!r}, not {stored!r}")
    if stored not in spec.terminal and stored not in (PENDING, RUNNING):
        return Violation("TERM-01", check.reason, f"{stored!r} is no status of this queue")
    return Violation(check.clause, check.reason, f"{why} {spec.spell(standard)!r}, got {stored!r}")


# ---------------------------------------------------------------------------------------------- writes with a handle


def _teeth(record: Record, command: c.HandleCommand, handle: c.Handle, now: int, at: Standing) -> bool:
    """Whether nothing but the standing could have refused this write."""
    if at is TERMINAL or at is AGAIN:
        alone = holder(record, handle)
    elif at is OTHER or at is OLDER:
        alone = record.expires is not None and record.expires > now
    else:
        alone = True
    kind = type(command)
    if kind is c.Complete:
        return alone and record.cancel is None
    if kind is c.Acknowledge:
        return alone and record.cancel is not None
    if kind is c.Fail:
        return alone and refusal_of_code(command) is None  # type: ignore[arg-type]
    return alone


_REFUSED: dict[tuple[type, Standing, bool], tuple[Check, ...]] = {
    (kind, at, teeth): (Check(at.renew if kind is c.Renew else at.write, f"{kind.verb}: {at.name}", teeth),)
    for kind in c.HANDLE_COMMANDS
    for at in STANDINGS
    for teeth in (True, False)
}
_ACCEPTED_AS_HOLDER = {kind: Check("FENCE-01", f"{kind.verb}: held", True) for kind in c.HANDLE_COMMANDS}
_RENEWED = (Check("LEASE-03", "renew: held", True),)
_AFTER_CANCEL = Check("CANCEL-06", "complete: after a cancel request", True)
_NO_REQUEST = Check("CANCEL-04", "acknowledge: without a request", True)
_ACKNOWLEDGED = Check("CANCEL-04", "acknowledge: with a request", True)
_RELEASED = Check("REL-01", "release: given back", True)
_RELEASE_CANCELLED = Check("REL-01", "release: after a cancel request", True)
_CHECKPOINT = {flag: (Check("CANCEL-04", f"checkpoint: {flag}", True),) for flag in (True, False)}
_COMPLETED = Check("TERM-01", "complete: succeeded", True)


def _judge_write(record: Record, command: c.Command, answer: Answer, now: int) -> Judged:
    assert isinstance(command, c.HandleCommand)
    handle = command.handle
    assert isinstance(handle, c.Handle)
    at = standing(record, handle, now)
    kind = type(command)
    accepted = type(answer) is o.Accepted
    if at is not HELD:
        if not accepted:
            return record, _REFUSED[kind, at, _teeth(record, command, handle, now, at)]
        check = _REFUSED[kind, at, True][0]
        return Violation(check.clause, check.reason, f"must be rejected: {_because(at, record, handle)}")
    refused = _own_refusal(record, command)
    if refused is not None:
        if not accepted:
            return record, (refused,)
        if refused is _AFTER_CANCEL:
            return _end(record, CANCELLED, answer, _AFTER_CANCEL, "after a cancel request it must end", command)
        return Violation(refused.clause, refused.reason, f"must be rejected: {_OWN_REASONS[refused]}")
    if not accepted:
        check = _REFUSED[kind, HELD, True][0]
        return Violation(check.clause, check.reason, "must be accepted: the current holder, its lease valid")
    return _ACCEPTS[kind](record, command, answer, now)


def _because(at: Standing, record: Record, handle: c.Handle) -> str:
    who = f"w{handle.worker}"
    return {
        TERMINAL.name: f"the job has ended {record.status}",
        AGAIN.name: f"{who} was superseded, the job is pending again",
        OTHER.name: f"{who} was superseded, the job runs at w{record.owner}",
        OLDER.name: f"{who} was superseded by its own newer claim (token {record.token}, not {handle.token})",
        EXPIRED.name: f"{who}'s lease has expired",
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
        return None if record.cancel is None else _AFTER_CANCEL
    if kind is c.Acknowledge:
        return _NO_REQUEST if record.cancel is None else None
    if kind is c.Fail:
        return refusal_of_code(command)  # type: ignore[arg-type]
    return None


def _end(record: Record, status: str, answer: Answer, check: Check, why: str, command: c.Command) -> Judged:
    """The record in a terminal status, if the answer spells it right."""
    assert isinstance(answer, o.Accepted)
    wrong = spelling(record, status, answer.status, check, why)
    if wrong is not None:
        return wrong
    return terminal(record, status), (_ACCEPTED_AS_HOLDER[type(command)], check)  # type: ignore[index]


def terminal(record: Record, status: str) -> Record:
    """The record ended: no owner, no lease."""
    return Record(
        record.spec, status, 0, record.token, None, 0, record.attempts, record.max_attempts, None, record.cancel,
        record.issued,
    )  # fmt: skip


def requeued(record: Record, token: c.Token, attempts: int, due: int | None) -> Record:
    """The record pending again."""
    return Record(
        record.spec, PENDING, 0, token, None, 0, attempts, record.max_attempts, due, record.cancel, record.issued
    )


def _renewed(record: Record, command: c.Renew, answer: o.Accepted, now: int) -> Judged:
    wrong = spelling(record, RUNNING, answer.status, _RENEWED[0], "a renewed job stays")
    if wrong is not None:
        return wrong
    lease = command.lease or record.spec.lease_seconds
    return record._replace(expires=now + lease, lease=lease), _RENEWED


def _completed(record: Record, command: c.Complete, answer: o.Accepted, now: int) -> Judged:
    return _end(record, SUCCEEDED, answer, _COMPLETED, "a completed job is", command)


def _failed(record: Record, command: c.Fail, answer: o.Accepted, now: int) -> Judged:
    status, check = fail_target(record, command)
    if status != PENDING:
        return _end(record, status, answer, check, "this failure must end in", command)
    wrong = spelling(record, PENDING, answer.status, check, "this failure must leave the job")
    if wrong is not None:
        return wrong
    if record.spec.backs_off and (answer.due is None or answer.due <= now):
        return Violation("ATT-02", "fail: due strictly later", f"due at {answer.due}, not after {now}")
    checks: Checks = (_ACCEPTED_AS_HOLDER[c.Fail], check)
    if record.spec.backs_off:
        checks += (_LATER,)
    return requeued(record, record.token, record.attempts, answer.due), checks


_LATER = Check("ATT-02", "fail: due strictly later", True)


def _released(record: Record, command: c.Release, answer: o.Accepted, now: int) -> Judged:
    if record.cancel is not None:
        return _end(record, CANCELLED, answer, _RELEASE_CANCELLED, "after a cancel request it must end", command)
    wrong = spelling(record, PENDING, answer.status, _RELEASED, "a released job is")
    if wrong is not None:
        return wrong
    after = requeued(record, record.token, record.attempts - 1, answer.due)
    return after, (_ACCEPTED_AS_HOLDER[c.Release], _RELEASED)


def _acknowledged(record: Record, command: c.Acknowledge, answer: o.Accepted, now: int) -> Judged:
    return _end(record, CANCELLED, answer, _ACKNOWLEDGED, "an acknowledged cancel ends", command)


_ACCEPTS: dict[type, Callable[..., Judged]] = {
    c.Renew: _renewed, c.Complete: _completed, c.Fail: _failed, c.Release: _released, c.Acknowledge: _acknowledged,
}  # fmt: skip


def _judge_checkpoint(record: Record, command: c.Command, answer: Answer, now: int) -> Judged:
    assert isinstance(command, c.Checkpoint) and isinstance(command.handle, c.Handle)
    if standing(record, command.handle, now) is not HELD:
        return record, ()
    asked = record.cancel is not None
    if type(answer) is o.Checkpointed and answer.cancel == asked:
        return record, _CHECKPOINT[asked]
    why = "must tell the holder that a cancel was requested" if asked else "no cancel was requested"
    return Violation("CANCEL-04", f"checkpoint: {asked}", why)


# ------------------------------------------------------------------------------------------------- cancel, claim, sweep


def asked_before(by_parent: bool) -> str:
    """The reason of what a repeated cancel of a running job tests."""
    return f"cancel: requested before{', by its parent' if by_parent else ''}"


_CANCELS = {
    "cancelled": Check("CANCEL-01", "cancel: pending", True),
    "parent": Check("CLAIM-02", "cancel: pending, by its parent", False),
    "terminal": Check("CANCEL-03", "cancel: terminal", True),
}
_RECORDED_CANCEL = {
    by_parent: Check("CANCEL-02", f"cancel: running{', by its parent' if by_parent else ''}", True)
    for by_parent in (False, True)
}
_ASKED_BEFORE = {
    (by_parent, teeth): Check("CANCEL-03", asked_before(by_parent), teeth)
    for by_parent in (False, True)
    for teeth in (False, True)
}


def cancel_target(record: Record, command: c.RequestCancel, now: int) -> tuple[str, Check]:
    """The answer that a cancel must give, and the check that names its branch.

    A request repeated in the very instant of the first one has no teeth: nobody can tell which of them was kept.
    """
    if record.status == PENDING:
        if command.by_parent:
            return "recorded", _CANCELS["parent"]
        return "cancelled", _CANCELS["cancelled"]
    if record.status == RUNNING:
        if record.cancel is None:
            return "recorded", _RECORDED_CANCEL[command.by_parent]
        return "recorded", _ASKED_BEFORE[command.by_parent, record.cancel != now]
    return "terminal", _CANCELS["terminal"]


def _judge_cancel(record: Record, command: c.Command, answer: Answer, now: int) -> Judged:
    assert isinstance(command, c.RequestCancel)
    expected, check = cancel_target(record, command, now)
    if type(answer) is not o.CancelAnswer or answer.answer != expected:
        got = answer.answer if type(answer) is o.CancelAnswer else type(answer).__name__
        return Violation(check.clause, check.reason, f"a cancel of a {record.status} job answers {expected}, got {got}")
    if expected == "terminal":
        return record, (check,)
    first = now if record.cancel is None else record.cancel
    after = record._replace(cancel=first)
    return (terminal(after, CANCELLED) if expected == "cancelled" else after), (check,)


def claim_fault(record: Record, now: int) -> Check | None:
    """Why this job must not be claimed at `now`, or None if it may be."""
    if record.status == RUNNING:
        return _CLAIMS["running"]
    if record.status != PENDING:
        return _CLAIMS["terminal"]
    if record.cancel is not None:
        return _CLAIMS["cancel"]
    return None if claimable(record, now) else _CLAIMS["due"]


_CLAIMS = {
    "running": Check("CLAIM-01", "claim: running job", True),
    "terminal": Check("CLAIM-01", "claim: terminal job", True),
    "cancel": Check("CLAIM-02", "claim: cancel requested", True),
    "due": Check("CLAIM-03", "claim: not due", True),
}
_CLAIMED = (Check("ATT-01", "claim: one attempt more", True),)
_TOKEN = Check("FENCE-03", "claim: a token never repeats", True)
_TOKEN_NEXT = Check("CLAIM-05", "claim: generation + 1", True)


def _judge_claim(record: Record, command: c.Command, answer: Answer, now: int) -> Judged:
    assert isinstance(command, c.Claim) and isinstance(answer, c.Handle)
    fault = claim_fault(record, now)
    if fault is not None:
        return Violation(fault.clause, fault.reason, f"must not be claimed: {_claim_why(record)}")
    spec = record.spec
    token = answer.token
    if spec.has_token:
        if any(token == old for _, old in record.issued):
            return Violation(_TOKEN.clause, _TOKEN.reason, f"token {token} was issued before")
        if type(record.token) is int and token != record.token + 1:
            return Violation(_TOKEN_NEXT.clause, _TOKEN_NEXT.reason, f"token {token} after {record.token}")
    lease = command.lease or spec.lease_seconds
    issued = record.issued if (answer.worker, token) in record.issued else (*record.issued, (answer.worker, token))
    if not spec.has_token and issued is record.issued:
        # An owner-only handle is the same whichever claim returned it; the newest stays last (`holder`).
        issued = (*(pair for pair in issued if pair[0] != answer.worker), (answer.worker, token))
    after = Record(
        spec, RUNNING, answer.worker, token, now + lease, lease, record.attempts + 1, record.max_attempts, record.due,
        None, issued,
    )  # fmt: skip
    return after, (*_CLAIMED, _TOKEN, _TOKEN_NEXT) if spec.has_token else _CLAIMED


def _claim_why(record: Record) -> str:
    if record.status == RUNNING:
        return f"the job runs at w{record.owner}"
    if record.status != PENDING:
        return f"the job has ended {record.status}"
    return "a cancel was requested" if record.cancel is not None else f"it is due only at {record.due}"


def _judge_sweep(record: Record, command: c.Command, answer: Answer, now: int) -> Judged:
    assert isinstance(answer, o.RecoveredRow)
    if not sweepable(record, now) and not _own_leftover(record, command):
        return _swept_wrongly(record, command, now)
    status, check = recover_target(record)
    wrong = spelling(record, status, answer.status, check, "the sweep must leave the job")
    if wrong is not None:
        return wrong
    checks: Checks = (check,)
    if record.status == RUNNING and not expired(record, now):
        checks += (_OWN_PREFIX,)
    elif differs_by_own_lease(record, now):
        checks += (_RECORDED,)
    token = record.token
    if record.status == RUNNING and type(token) is int:
        token += 1
    if status != PENDING:
        return terminal(record._replace(token=token), status), checks
    if record.spec.backs_off and (answer.due is None or answer.due <= now):
        return Violation("REC-01", _REQUEUED.reason, f"backs off, so it is due after {now}, not at {answer.due}")
    return requeued(record, token, record.attempts, answer.due), checks


def _own_leftover(record: Record, command: c.Command) -> bool:
    """Whether this start-up must settle the row although its lease is valid (REC-05)."""
    return type(command) is c.StartUp and record.status == RUNNING and c.host_of(record.owner) == command.host


def differs_by_own_lease(record: Record, now: int) -> bool:
    """Whether an asker that judged expiry by its own configured lease would come to another answer (LEASE-07)."""
    if record.status != RUNNING or record.expires is None:
        return False
    by_own = record.expires - record.lease + record.spec.lease_seconds
    return (by_own <= now) != (record.expires <= now)


def _swept_wrongly(record: Record, command: c.Command, now: int) -> Violation:
    if record.status != RUNNING:
        why = f"the job was {record.status}; a sweep moves each job at most once and overwrites nothing newer"
        return Violation(_SWEPT_ONCE.clause, _SWEPT_ONCE.reason, why)
    if differs_by_own_lease(record, now):
        return Violation(
            _RECORDED.clause, _RECORDED.reason, f"the recorded lease runs until {record.expires}, now {now}"
        )
    if type(command) is c.StartUp:
        return Violation(
            _FOREIGN.clause, _FOREIGN.reason, f"w{record.owner} belongs to another process, its lease is valid"
        )
    return Violation(_VALID.clause, _VALID.reason, f"w{record.owner}'s lease runs until {record.expires}, now {now}")


_JUDGES: dict[type, Callable[[Record, c.Command, Answer, int], Judged]] = {
    c.Claim: _judge_claim,
    c.Renew: _judge_write,
    c.Complete: _judge_write,
    c.Fail: _judge_write,
    c.Release: _judge_write,
    c.Acknowledge: _judge_write,
    c.Checkpoint: _judge_checkpoint,
    c.RequestCancel: _judge_cancel,
    c.Recover: _judge_sweep,
    c.Tick: _judge_sweep,
    c.StartUp: _judge_sweep,
}
