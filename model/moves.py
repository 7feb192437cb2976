"""Judging what moves a job without a handle: cancels, claims, sweeps."""

from __future__ import annotations

from . import commands as c
from . import outcomes as o
from .part import Answer, Judged, requeued, spelling, terminal
from .queues import CANCELLED, FAILED, PENDING, RUNNING
from .world import SETUP, Check, Checks, Record, Violation, expired, sweepable


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
_LAST_TICK = Check("REC-02", "sweep: valid lease untouched in its last tick", True)
RECORDED = Check("LEASE-07", "sweep: expiry as recorded", True)
OWN_PREFIX = Check("REC-05", "start-up: own prefix recovered", True)
_FOREIGN = Check("REC-05", "start-up: foreign prefix untouched", True)


_AT_ONCE = o.CancelAnswer("cancelled")


def asked_before(by_parent: bool) -> str:
    """The reason of what a repeated cancel of a running job tests."""
    return f"cancel: requested before{', by its parent' if by_parent else ''}"


_CANCELS = {
    "cancelled": Check("CANCEL-01", "cancel: pending", True),
    "parent": Check("CLAIM-02", "cancel: pending, by its parent", False),
    "ended": Check("CANCEL-01", "cancel: pending, by its parent", False),
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
    if record.status == PENDING and not command.by_parent:
        return "cancelled", _CANCELS["cancelled"]
    if record.status not in (PENDING, RUNNING):
        return "terminal", _CANCELS["terminal"]
    if record.cancel is not None:
        return "recorded", _ASKED_BEFORE[command.by_parent, record.cancel != now]
    return "recorded", _CANCELS["parent"] if record.status == PENDING else _RECORDED_CANCEL[command.by_parent]


def judge_cancel(record: Record, command: c.Command, answer: Answer, now: int) -> Judged:
    """A cancel request, and its answer (CANCEL-01, 02, 03)."""
    assert isinstance(command, c.RequestCancel)
    expected, check = cancel_target(record, command, now)
    if command.by_parent and record.status == PENDING and answer == _AT_ONCE:
        # A parent's cancel may leave a pending child to the sweep, or end it (R§6.1 L4).
        expected, check = "cancelled", _CANCELS["ended"]
    if type(answer) is not o.CancelAnswer or answer.answer != expected:
        got = answer.answer if type(answer) is o.CancelAnswer else type(answer).__name__
        return Violation(check.clause, check.reason, f"a cancel of a {record.status} job answers {expected}, got {got}")
    if expected == "terminal":
        return record, (check,)
    first = now if record.cancel is None else record.cancel
    if expected == "cancelled":
        return terminal(record, CANCELLED, record.token, first), (check,)
    return record._replace(cancel=first), (check,)


_RUNS = Check("CLAIM-01", "claim: running job", True)
_ENDED = Check("CLAIM-01", "claim: terminal job", True)
_ASKED = Check("CLAIM-02", "claim: cancel requested", True)
_NOT_DUE = Check("CLAIM-03", "claim: not due", True)


def claimable(record: Record, now: int) -> bool:
    """Whether a claim may take this job (CLAIM-01, 02, 03)."""
    return record.status == PENDING and record.cancel is None and (record.due is None or record.due <= now)


def claim_fault(record: Record, now: int) -> Check | None:
    """Why this job must not be claimed at `now`, or None if it may be."""
    if claimable(record, now):
        return None
    if record.status != PENDING:
        return _RUNS if record.status == RUNNING else _ENDED
    return _ASKED if record.cancel is not None else _NOT_DUE


def only_fault(record: Record, now: int) -> bool:
    """Whether just one predicate keeps this job from being claimed, so that leaving it has teeth."""
    faults = (record.status != PENDING) + (record.cancel is not None) + (record.due is not None and record.due > now)
    return faults == 1


_TOKEN = Check("FENCE-03", "claim: a token never repeats", True)
_TOKEN_NEXT = Check("CLAIM-05", "claim: generation + 1", True)


def judge_claim(record: Record, command: c.Command, answer: Answer, now: int) -> Judged:
    """One handle that a claim won (CLAIM-01, 02, 03, 05, ATT-01, FENCE-03)."""
    assert isinstance(command, c.Claim) and isinstance(answer, c.Handle)
    fault = claim_fault(record, now)
    if fault is not None:
        return Violation(fault.clause, fault.reason, f"must not be claimed: {_claim_why(record)}")
    spec = record.spec
    token = answer.token
    checks: Checks = ()
    if spec.has_token:
        if type(token) is not int or type(record.token) is not int:
            return Violation(SETUP, "a token of another kind", f"{spec.key} counts generations, got {token!r}")
        if any(token == old for _, old in record.issued):
            return Violation(_TOKEN.clause, _TOKEN.reason, f"token {token} was issued before")
        if token != record.token + 1:
            return Violation(
                _TOKEN_NEXT.clause,
                _TOKEN_NEXT.reason,
                f"the token must rise from {record.token} to {record.token + 1}, is {token}",
            )
        checks = (_TOKEN, _TOKEN_NEXT)
    elif token is not None:
        return Violation(SETUP, "a token of another kind", f"{spec.key} has no token beyond the owner, got {token!r}")
    lease = command.lease or spec.lease_seconds
    pair = (answer.worker, token)
    # An owner-only handle is the same whichever claim returned it; the newest stays last (`holder`).
    issued = (*(old for old in record.issued if old != pair), pair) if pair in record.issued else (*record.issued, pair)
    after = Record(
        spec, RUNNING, answer.worker, token, now + lease, lease, record.attempts + 1, record.max_attempts, record.due,
        None, issued,
    )  # fmt: skip
    return after, checks


def _claim_why(record: Record) -> str:
    if record.status == RUNNING:
        return f"the job runs at w{record.owner}"
    if record.status != PENDING:
        return f"the job has ended {record.status}"
    return "a cancel was requested" if record.cancel is not None else f"it is due only at +{record.due} s"


def judge_sweep(record: Record, command: c.Command, answer: Answer, now: int) -> Judged:
    """One row that a sweep moved (REC-01, 02, 03, 05, 07, CANCEL-05, CLAIM-02, LEASE-07)."""
    assert isinstance(answer, o.RecoveredRow)
    if not sweepable(record, now) and not own_leftover(record, command):
        return swept_wrongly(record, command, now)
    status, check = recover_target(record)
    wrong = spelling(record, command, status, answer.status, check, "the sweep must leave the job")
    if wrong is not None:
        return wrong
    checks: Checks = (check,)
    if record.status == RUNNING and not expired(record, now):
        checks += (OWN_PREFIX,)
    elif differs_by_own_lease(record, now) and type(command) is not c.Tick:  # what a tick leaves is REC-04's
        checks += (RECORDED,)
    token = record.token
    if record.status == RUNNING and type(token) is int:
        token += 1
    if status != PENDING:
        return terminal(record, status, token, record.cancel), checks
    if record.spec.backs_off and (answer.due is None or answer.due <= now):
        return Violation("REC-01", _REQUEUED.reason, f"the queue backs off: due later than +{now} s, not {answer.due}")
    if answer.due is not None and not record.spec.backs_off:
        return Violation(
            "REC-01", _REQUEUED.reason, f"there is no back-off, so it is due at once, not at +{answer.due} s"
        )
    return requeued(record, token, record.attempts, answer.due), checks


def own_leftover(record: Record, command: c.Command) -> bool:
    """Whether this start-up must settle the row although its lease is valid (REC-05)."""
    return type(command) is c.StartUp and record.status == RUNNING and c.host_of(record.owner) == command.host


def differs_by_own_lease(record: Record, now: int) -> bool:
    """Whether an asker that judged expiry by its own configured lease would come to another answer (LEASE-07)."""
    if record.status != RUNNING or record.expires is None:
        return False
    by_own = record.expires - record.lease + record.spec.lease_seconds
    return (by_own <= now) != (record.expires <= now)


def swept_wrongly(record: Record, command: c.Command, now: int) -> Violation:
    """The clause that a sweep breaks by moving this job at `now`."""
    if record.status != RUNNING:
        why = f"the job was {record.status}; a sweep moves each job at most once and overwrites nothing newer"
        return Violation(_SWEPT_ONCE.clause, _SWEPT_ONCE.reason, why)
    check = valid_lease(record, command, now)
    return Violation(
        check.clause, check.reason, f"w{record.owner}'s lease is valid until +{record.expires} s, it is +{now} s"
    )


def valid_lease(record: Record, command: c.Command, now: int) -> Check:
    """The check that a sweep makes by leaving this running job alone (REC-02, REC-05, LEASE-07)."""
    if differs_by_own_lease(record, now):
        return RECORDED
    if type(command) is c.StartUp:
        return _FOREIGN
    return _LAST_TICK if record.expires == now + 1 else _VALID
