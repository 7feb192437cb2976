"""Judging what moves a job without a handle: cancels, claims, sweeps."""

from __future__ import annotations

from . import commands as c
from . import outcomes as o
from .part import Answer, Judged, requeued, spelling, terminal
from .queues import CANCELLED, FAILED, PENDING, RUNNING
from .world import SETUP, Check, Checks, Record, Violation, closed, expired, lease_end, overdue, sweepable


def recover_target(record: Record, now: int) -> tuple[str, Check]:
    """Where a sweep must bring this job, and the check that names the branch (REC-01, REC-03, CANCEL-05, CLAIM-02,
    DEAD-01).
    """
    if record.cancel is not None:
        return CANCELLED, _SWEPT if record.status == PENDING else _SWEEP_CANCELLED
    if record.status == PENDING:
        return FAILED, _SWEPT_OVERDUE
    if overdue(record, now):
        # Without budget the job would come to the same.
        return FAILED, _SWEEP_OVERDUE[record.attempts < record.max_attempts]
    if record.attempts < record.max_attempts:
        return PENDING, _REQUEUED
    return FAILED, _EXHAUSTED


_SWEPT = Check("CLAIM-02", "sweep: pending with a cancel request", True)
_SWEPT_OVERDUE = Check("DEAD-01", "sweep: pending past its deadline", True)
_SWEEP_OVERDUE = {teeth: Check("DEAD-01", "sweep: expired past its deadline", teeth) for teeth in (False, True)}
_SWEEP_CANCELLED = Check("CANCEL-05", "sweep: expired with a cancel request", True)
_REQUEUED = Check("REC-01", "sweep: expired, re-queued", True)
_EXHAUSTED = Check("REC-03", "sweep: expired, budget used up", True)
_SWEPT_ONCE = Check("REC-07", "sweep: a job that nothing is left to do for", True)
IN_TIME = Check("DEAD-01", "sweep: pending before its deadline", True)
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
_TOO_LATE = Check("CLAIM-04", "claim: deadline passed", True)
_TOO_SHORT = Check("CLAIM-04", "claim: too little time left", True)
_LEASED = Check("CLAIM-15", "claim: a lease left on it", True)
ASKED_FOR = {
    fault: Check(fault.clause, f"{fault.reason}, asked for by its id", True)
    for fault in (_RUNS, _ENDED, _ASKED, _NOT_DUE, _TOO_LATE, _TOO_SHORT, _LEASED)
}
"""The same of a claim that names its job: queues send another statement for it."""


def claimable(record: Record, now: int) -> bool:
    """Whether a claim may take this job (CLAIM-01, 02, 03, 04, 15)."""
    return (
        record.status == PENDING
        and record.cancel is None
        and (record.due is None or record.due <= now)
        and not closed(record, now)
        and (record.expires is None or record.expires <= now)
    )


def claim_fault(record: Record, now: int) -> Check | None:
    """Why this job must not be claimed at `now`, or None if it may be."""
    if claimable(record, now):
        return None
    if record.status != PENDING:
        return _RUNS if record.status == RUNNING else _ENDED
    if record.cancel is not None:
        return _ASKED
    if record.due is not None and record.due > now:
        return _NOT_DUE
    if overdue(record, now):
        return _TOO_LATE
    return _TOO_SHORT if closed(record, now) else _LEASED


def only_fault(record: Record, now: int) -> bool:
    """Whether just one predicate keeps this job from being claimed, so that leaving it has teeth.

    Of a job that has ended a deadline is taken to have passed, or to be about to.
    """
    ended = record.status not in (PENDING, RUNNING)
    faults = (
        (record.status != PENDING)
        + (record.cancel is not None)
        + (record.due is not None and record.due > now)
        + (record.deadline is not None if ended else closed(record, now))
        + (record.status == PENDING and record.expires is not None and record.expires > now)
    )
    return faults == 1


TOKEN = Check("FENCE-03", "claim: a token never repeats", True)
_TOKEN_NEXT = Check("CLAIM-05", "claim: generation + 1", True)


def judge_claim(record: Record, command: c.Command, answer: Answer, now: int) -> Judged:
    """One handle that a claim won (CLAIM-01…05, CLAIM-15, ATT-01, FENCE-03)."""
    assert isinstance(command, c.Claim) and isinstance(answer, c.Handle)
    fault = claim_fault(record, now)
    if fault is not None:
        fault = fault if command.job is None else ASKED_FOR[fault]
        return Violation(fault.clause, fault.reason, f"must not be claimed: {_claim_why(record, now)}")
    spec = record.spec
    token = answer.token
    checks = _minted(record, token)
    if isinstance(checks, Violation):
        return checks
    expires = lease_end(command.lease or spec.lease_seconds, record.deadline, now)
    pair = (answer.worker, token)
    # An owner-only handle is the same whichever claim returned it; the newest stays last (`holder`).
    issued = (*(old for old in record.issued if old != pair), pair) if pair in record.issued else (*record.issued, pair)
    after = Record(
        spec, RUNNING, answer.worker, token, expires, expires - now, record.attempts + 1, record.max_attempts,
        record.due, None, issued, record.deadline, None, record.created,
    )  # fmt: skip
    return after, checks


def _minted(record: Record, token: c.Token) -> Checks | Violation:
    """What a claim tests by the token that it mints (FENCE-03, CLAIM-05)."""
    spec = record.spec
    if not spec.has_token:
        if token is None:
            return ()
        todo = "declare fence='generation' or 'attempt_id', or return none"
        why = f"{spec.key} has no token beyond the owner, got {token!r}; {todo}"
        return Violation(SETUP, "a token of another kind", why)
    if spec.counts_generations:
        if type(token) is not int or type(record.token) is not int:
            return Violation(SETUP, "a token of another kind", f"{spec.key} counts generations, got {token!r}")
    elif type(token) is not str or not token:
        return Violation(SETUP, "a token of another kind", f"{spec.key} mints attempt ids, got {token!r}")
    if any(token == old for _, old in record.issued):
        return Violation(TOKEN.clause, TOKEN.reason, f"token {token} was issued before")
    # Before its first claim there is no token that could come again.
    again = (TOKEN,) if record.issued else ()
    if not spec.counts_generations:
        return again
    if token != record.token + 1:  # type: ignore[operator]
        why = f"the token must rise from {record.token} to {record.token + 1}, is {token}"  # type: ignore[operator]
        return Violation(_TOKEN_NEXT.clause, _TOKEN_NEXT.reason, why)
    return (*again, _TOKEN_NEXT)


def _claim_why(record: Record, now: int) -> str:
    if record.status == RUNNING:
        return f"the job runs at w{record.owner}"
    if record.status != PENDING:
        return f"the job has ended {record.status}"
    if record.cancel is not None:
        return "a cancel was requested"
    if record.due is not None and record.due > now:
        return f"it is due only at +{record.due} s"
    if overdue(record, now):
        return f"its deadline was at +{record.deadline} s"
    if closed(record, now):
        return (
            f"its deadline is at +{record.deadline} s, and more than {record.spec.claim_margin_seconds} s must be left"
        )
    return f"a lease is left on it until +{record.expires} s"


def judge_sweep(record: Record, command: c.Command, answer: Answer, now: int) -> Judged:
    """One row that a sweep moved (REC-01, 02, 03, 05, 07, CANCEL-05, CLAIM-02, LEASE-07)."""
    assert isinstance(answer, o.RecoveredRow)
    if not sweepable(record, now) and not own_leftover(record, command):
        return swept_wrongly(record, command, now)
    status, check = recover_target(record, now)
    wrong = spelling(record, command, status, answer.status, check, "the sweep must leave the job")
    if wrong is not None:
        return wrong
    checks: Checks = (check,)
    if record.status == RUNNING and not expired(record, now):
        checks += (OWN_PREFIX,)
    elif differs_by_own_lease(record, now) and type(command) is not c.Tick:  # what a tick leaves is REC-04's
        checks += (RECORDED,)
    token = record.token
    if record.spec.counts_generations and record.status == RUNNING:
        token += 1  # type: ignore[operator]
        if record.artifact is not None:  # of the generation that is spent now (INV-5)
            record = record._replace(artifact=None)
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
    # What is past its deadline a sweep may judge by that alone.
    if record.status != RUNNING or record.expires is None or overdue(record, now):
        return False
    by_own = record.expires - record.lease + record.spec.lease_seconds
    return (by_own <= now) != (record.expires <= now)


def swept_wrongly(record: Record, command: c.Command, now: int) -> Violation:
    """The clause that a sweep breaks by moving this job at `now`."""
    if record.status == PENDING:
        check = _SWEPT_ONCE if record.deadline is None else IN_TIME
        until = "" if record.deadline is None else f", its deadline is at +{record.deadline} s, it is +{now} s"
        return Violation(check.clause, check.reason, f"the job is pending and nobody cancelled it{until}")
    if record.status != RUNNING:
        why = f"the job has ended {record.status}, and the sweep moved it"
        return Violation("TERM-02", f"{command.verb}: terminal row", why)
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
