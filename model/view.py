"""How a job must look from outside, and which clause a row that looks otherwise breaks.

Compares rows with records field by field. Where the contract is silent a field is not looked at; a row that the
command had no business with must equal what was seen before, whatever its fields.
"""

from __future__ import annotations

from typing import NamedTuple

from . import commands as c
from . import outcomes as o
from .errors import classify
from .moves import asked_before, swept_wrongly
from .outcomes import Row
from .part import Part, row_reason
from .queues import CANCELLED, FAILED, OLD_SPELLINGS, PENDING, RUNNING, SKIPPED, SUCCEEDED, QueueSpec
from .world import Check, Checks, Record, Violation, overdue, sweepable
from .writes import refusal


class Mismatch(NamedTuple):
    """The first field in which a row is not as it must be."""

    field: str
    expected: object
    found: object


_FIELDS = {
    "expires": "lease expiry", "heartbeat": "heartbeat", "started": "start", "finished": "finish time",
    "attempts": "attempt count", "max_attempts": "retry budget", "due": "due instant", "cancel": "cancel request",
    "error": "error code", "artifact": "artifact's attempt", "attempt": "attempt, with the artifact that it has,",
}  # fmt: skip
"""What people call a field, where that is not its name."""
_INSTANTS = frozenset({"expires", "heartbeat", "started", "finished", "due", "cancel", "deadline"})


def _told(job: int, field: str, expected: object, found: object) -> str:
    """A wrong field, for people; instants are seconds since the story began."""

    def shown(value: object) -> str:
        if value is None:
            return "none"
        if field == "owner":
            return str(value).rpartition(":")[2]
        return f"+{value} s" if field in _INSTANTS and isinstance(value, int) else str(value)

    return f"job {job}: {_FIELDS.get(field, field)} should be {shown(expected)}, is {shown(found)}"


def mismatch(record: Record, row: Row) -> Mismatch | None:
    """The first field of the row that differs from what the record demands, or None."""
    spec = record.spec
    status = record.status
    if row.status != (spec.cancelled if status == CANCELLED else status):
        return Mismatch("status", spec.spell(status), row.status)
    if row.expires != record.expires:
        return Mismatch("expires", record.expires, row.expires)
    if row.attempts != record.attempts:
        return Mismatch("attempts", record.attempts, row.attempts)
    if row.max_attempts != record.max_attempts:
        return Mismatch("max_attempts", record.max_attempts, row.max_attempts)
    # Whether a job that has ended cancelled says when that was asked for, the contract leaves open.
    if row.cancel != record.cancel and status != CANCELLED:
        return Mismatch("cancel", record.cancel, row.cancel)
    if status == RUNNING:
        if row.owner != c.WORKER_NAMES[record.owner]:
            return Mismatch("owner", c.WORKER_NAMES[record.owner], row.owner)
        if row.token != record.token and spec.has_token:
            return Mismatch("token", record.token, row.token)
        if record.expires is not None and row.heartbeat != record.expires - record.lease:
            return Mismatch("heartbeat", record.expires - record.lease, row.heartbeat)
        if row.finished is not None:
            return Mismatch("finished", None, row.finished)
    elif status == PENDING:
        if row.owner is not None:
            return Mismatch("owner", None, row.owner)
        if spec.counts_generations and row.token != record.token:
            return Mismatch("token", record.token, row.token)
        if row.due != record.due:
            return Mismatch("due", record.due, row.due)
        if row.finished is not None:
            return Mismatch("finished", None, row.finished)
    elif row.finished is None:
        return Mismatch("finished", "set", None)
    if spec.deadline and row.deadline != record.deadline:
        return Mismatch("deadline", record.deadline, row.deadline)
    return _artifact_mismatch(record, row) if spec.artifacts else None


def _artifact_mismatch(record: Record, row: Row) -> Mismatch | None:
    """What is wrong with the artifact that a reader is given: of another attempt, lost, or not that of the row's own
    attempt (FENCE-04, INV-5). A job that is to run again, or has failed, may have lost it.
    """
    if row.artifact is None:
        kept = record.artifact is None or record.status not in (RUNNING, SUCCEEDED)
        return None if kept else Mismatch("artifact", record.artifact, None)
    if row.artifact != record.artifact:
        return Mismatch("artifact", record.artifact, row.artifact)
    return None if row.token == row.artifact else Mismatch("attempt", row.artifact, row.token)


_BY_VERB: dict[type, dict[str, str]] = {
    c.Claim: {"": "CLAIM-05", "attempts": "ATT-01", "max_attempts": "ATT-01"},
    c.Renew: {"": "LEASE-03", "attempts": "ATT-01"},
    c.Complete: {"": "TERM-03", "attempts": "ATT-01"},
    c.Fail: {"": "TERM-03", "attempts": "ATT-01"},
    c.Skip: {"": "TERM-03", "attempts": "ATT-01"},
    c.Release: {"": "REL-01"},
    c.PutArtifact: {"": "FENCE-04", "attempts": "ATT-01"},
    c.Acknowledge: {"": "TERM-03", "status": "CANCEL-04"},
    c.RequestCancel: {"": "CANCEL-01"},
    c.Recover: {"": "REC-01", "attempts": "REC-03", "max_attempts": "REC-03"},
    c.Tick: {"": "REC-01", "attempts": "REC-03", "max_attempts": "REC-03"},
    c.StartUp: {"": "REC-01", "attempts": "REC-03", "max_attempts": "REC-03"},
}
"""Which clause a wrong field breaks after this command, where no finer rule of `blame` applies."""


_LEASE_LEFT = "expires", PENDING
"""A lease on a row that was swept without having run: that a sweep ends leases, REC-01 says of those that ran."""


def blame(
    part: Part, before: Record, after: Record, wrong: Mismatch, row: Row, old: Row | None, others: tuple[Record, ...]
) -> Violation:
    """The clause that a wrong row breaks after an accepted part.

    `old` is the row before it, None where nobody looked; `others` are the records of rows moved before it, whose rows
    are right.
    """
    command = part.command
    kind = type(command)
    clause = _BY_VERB[kind].get(wrong.field, _BY_VERB[kind][""])
    reason = row_reason(command, after.status)
    if wrong.field == "expires" and cut_short(command, after) and _beyond(wrong, after):
        clause, reason = _CUT[kind].clause, _CUT[kind].reason
    elif wrong.field == "attempt":
        clause, reason = "INV-5", row_reason(command, after.status)
    elif wrong.field == "artifact" and kind is not c.Claim:
        clause = "FENCE-04"
    elif kind is c.Fail and after.status == PENDING and wrong.field != "attempts":
        clause = "ATT-02"
    elif isinstance(command, c.RequestCancel):
        clause = _cancel_clause(before, wrong.field)
        if clause == "CANCEL-03":
            reason = asked_before(command.by_parent)
    elif kind in c.SWEEPS:
        if wrong.field in ("token", "due") and not _same(wrong, before) and any(_same(wrong, each) for each in others):
            clause, reason = "REC-09", PER_ROW
        elif after.status != PENDING and (wrong.field == "finished" or (wrong.field, before.status) == _LEASE_LEFT):
            clause = "TERM-03"
    if row == old and isinstance(command, c.HandleCommand):
        clause, reason = "FENCE-06", row_reason(command, after.status)
    elif wrong.field == "status" and wrong.found not in (*after.spec.terminal, PENDING, RUNNING):
        clause = "TERM-04" if OLD_SPELLINGS.get(str(wrong.found)) == after.status else "TERM-01"
    return Violation(clause, reason, _told(part.job, *wrong))


_CUT: dict[type, Check] = {
    kind: Check(clause, f"{kind.verb}: lease cut to the deadline", True)
    for kind, clause in ((c.Claim, "CLAIM-04"), (c.Renew, "LEASE-03"))
}


def cut_short(command: c.Command, after: Record) -> bool:
    """Whether the lease that this claim or renewal has made ends early, at the job's deadline (CLAIM-04, LEASE-03)."""
    if not isinstance(command, (c.Claim, c.Renew)) or after.deadline is None:
        return False
    return after.lease < (command.lease or after.spec.lease_seconds)


def _beyond(wrong: Mismatch, after: Record) -> bool:
    """Whether the wrong expiry is one that was not cut to the deadline."""
    return isinstance(wrong.found, int) and after.deadline is not None and wrong.found > after.deadline


def _same(wrong: Mismatch, record: Record) -> bool:
    """Whether the wrong value is that of this record: what another row of the same sweep should have got (REC-09), or,
    if of the row itself, that nothing was written.
    """
    return wrong.found == (record.token if wrong.field == "token" else record.due)


def _cancel_clause(before: Record, field: str) -> str:
    if field == "cancel" and before.cancel is not None:
        return "CANCEL-03"
    return "CANCEL-01" if before.status == PENDING else "CANCEL-02"


def blame_rejected(part: Part, before: Record, row: Row, old: Row | None, now: int) -> Violation:
    """The clause that a call breaks which reports no effect, if the row changed all the same: the rule that forbade it,
    that of the naming table's row, or that of a look that changes what it looks at. `old` is the row before it, None
    where nobody looked.
    """
    command = part.command
    if type(command) is c.RequestCancel:
        return Violation("CANCEL-03", "cancel: terminal", f"answered as too late, yet job {part.job}'s row changed")
    looked = LOOKS.get(type(command))
    if looked is not None:
        return Violation(looked.clause, looked.reason, f"a look changed job {part.job}'s row")
    if refers_to(before, command) and row.artifact is None and (old is None or old.artifact is not None):
        kept = KEPT[before.status]
        return Violation(kept.clause, kept.reason, f"job {part.job} still refers to the artifact that was deleted")
    assert isinstance(command, c.HandleCommand)
    check = overwriting(before, command, now) or refusal(before, command, now)
    said = "as a success already reported" if type(part.answer) is o.Accepted else "as a rejection"
    return Violation(check.clause, check.reason, f"answered {said}, yet job {part.job}'s row changed")


def refers_to(record: Record, command: c.Command) -> bool:
    """Whether this uploads what the job refers to already: its clean-up must leave the object alone (FENCE-07)."""
    if type(command) is not c.PutArtifact or record.artifact is None:
        return False
    return record.artifact == command.handle.token  # type: ignore[union-attr]


def overwriting(record: Record, command: c.Command, now: int) -> Check | None:
    """What a refused upload tests where a job that has not ended refers to an artifact of another attempt."""
    if type(command) is not c.PutArtifact or record.artifact is None or refers_to(record, command):
        return None
    if record.status not in (PENDING, RUNNING):
        return None
    check = refusal(record, command, now)
    return Check(check.clause, f"{check.reason}, over another attempt's artifact", True)


def row_fault(
    part: Part, before: Record, after: Record, row: Row, old: Row | None, now: int, others: tuple[Record, ...]
) -> Violation | None:
    """What is wrong with the row of an accepted part beside the fields that every row of its status has.

    `old` and `others` as in `blame`.
    """
    command = part.command
    if type(command) is c.Claim:
        return _claim_fault(part.job, command, row, now)
    if type(command) is c.Fail and after.status in (PENDING, CANCELLED) and after.spec.stores_code:
        return _other_family(part.job, command, after, row)
    if after.status in (PENDING, RUNNING):
        if type(command) is c.RequestCancel and old is not None and row != old._replace(cancel=row.cancel):
            clause = _cancel_clause(before, "")
            why = f"more of job {part.job}'s row changed than its cancel request"
            return Violation(clause, row_reason(command, after.status), why)
        return None
    lost = before.status == RUNNING and type(command) in c.SWEEPS
    if lost and row.token != after.token and after.spec.counts_generations:
        why = _told(part.job, "token", after.token, row.token)
        if row.token != before.token and any(record.token == row.token for record in others):
            return Violation("REC-09", PER_ROW, why)
        return Violation("REC-01", row_reason(command, after.status), why)
    return _error_fault(part.job, command, after, row, now) if after.spec.stores_code else None


def _error_fault(job: int, command: c.Command, after: Record, row: Row, now: int) -> Violation | None:
    """A wrong error code in a row that has just ended (TERM-03, ERR-03, REC-01)."""
    status, error = after.status, row.error
    if status in (CANCELLED, SKIPPED):
        return None
    if status != FAILED:
        if error is None:
            return None
        return Violation("TERM-03", row_reason(command, status), f"job {job}: succeeded, yet has error code {error}")
    family = None if error is None else classify(error)
    if type(command) is c.Fail or overdue(after, now):
        if family is None:
            why = f"job {job}: a failed job needs an error code of a known family, has {error or 'none'}"
            return Violation("TERM-03", row_reason(command, status), why)
        missed = overdue(after, now) and family in ("LEASE", "LIMIT")  # the deadline may be what is recorded
        if type(command) is c.Fail and family != classify(command.code) and not missed:
            why = f"job {job}: {command.code} happened, {error} ({family}) is recorded"
            return Violation("ERR-03", row_reason(command, status), why)
    elif type(command) in c.SWEEPS and family not in ("LEASE", "LIMIT"):
        why = f"job {job}: recovery must record a LEASE or LIMIT code, has {error or 'none'}"
        return Violation("REC-01", row_reason(command, status), why)
    return None


def _other_family(job: int, fail: c.Fail, after: Record, row: Row) -> Violation | None:
    """A code in the row of a failure that was retried or called off, of another family than what happened (ERR-03).

    Whether such a row keeps a code, and whether one that was called off says that instead, the contract leaves open.
    """
    happened, stored = classify(fail.code), None if row.error is None else classify(row.error)
    if stored in (None, happened) or (after.status == CANCELLED and stored == "CANCEL"):
        return None
    why = f"job {job}: {fail.code} happened, {row.error} ({stored}) is recorded"
    return Violation("ERR-03", row_reason(fail, after.status), why)


def _claim_fault(job: int, claim: c.Claim, row: Row, now: int) -> Violation | None:
    """A field that a claim must set or clear beside those that every running row has (CLAIM-05)."""
    if row.started == now and row.heartbeat == now and row.error is None:
        return None
    wanted = (("started", row.started, now), ("heartbeat", row.heartbeat, now), ("error", row.error, None))
    field, found, expected = next(each for each in wanted if each[1] != each[2])
    return Violation("CLAIM-05", row_reason(claim, RUNNING), _told(job, field, expected, found))


def stray(command: c.Command, outcome: o.Outcome, job: int, before: Record, old: Row, new: Row, now: int) -> Violation:
    """The clause that a change of a job's row breaks which the command did not report."""
    kind = type(command)
    if type(outcome) is o.HookRaised or (type(outcome) is o.Recovered and outcome.failed):
        verb, clause = ("claim", "CLAIM-12") if kind is c.Claim else ("sweep", "REC-08")
        return Violation(clause, f"{verb}: hook raised, rolled back", f"the hook raised, yet job {job}'s row changed")
    if new.status == RUNNING and old.status != RUNNING:
        if kind is c.Claim:
            return Violation(
                "CLAIM-07", "claim: running but not returned", f"job {job} runs, and nobody holds its handle"
            )
        if old.status != PENDING:
            return Violation(INV_7.clause, INV_7.reason, f"job {job} runs again")
        if old.cancel is not None:
            return Violation(INV_6.clause, INV_6.reason, f"job {job} runs")
    if old.status in before.spec.terminal:
        return Violation("TERM-02", f"{command.verb}: terminal row", f"job {job} has ended, yet its row changed")
    if kind in c.SWEEPS:
        if before.status == RUNNING and not sweepable(before, now):
            return swept_wrongly(before, command, now)
        return Violation("REC-10", "sweep: count", f"job {job}'s row changed, the summary does not say so")
    check = another_row(command)
    return Violation(check.clause, check.reason, f"job {job}'s row changed, the command was about another job")


LOOKS: dict[type, Check] = {
    kind: Check(clause, f"{kind.verb}: changes nothing", True)
    for kind, clause in ((c.Checkpoint, "CANCEL-04"), (c.ReadArtifact, "FENCE-04"))
}
KEPT = {
    status: Check("FENCE-07", f"put_artifact: refused, and the {status} job refers to its key", True)
    for status in (PENDING, RUNNING, SUCCEEDED, FAILED, CANCELLED, SKIPPED)
}
"""By what the job is: whoever cleans up may look at more than its reference."""
INV_6 = Check("INV-6", "a row with a cancel request stays unclaimed", True)
INV_7 = Check("INV-7", "a terminal row stays unclaimed", True)
PER_ROW = "sweep: generation per row"


def another_row(command: c.Command) -> Check:
    """What the look at the row of a job tests that the command had no business with."""
    return Check("CANCEL-02" if type(command) is c.RequestCancel else "FENCE-01", f"{command.verb}: another row", True)


_BESIDE: dict[tuple[type, bool, bool, bool], Checks] = {}


def checks_beside(command: c.Command, asked: bool, ended: bool, other: bool) -> Checks:
    """What the look at rows has tested that the command had no business with: whether among them were pending ones with
    a cancel request, ended ones, and any others.

    A claim that takes one breaks a clause of its own, and a sweep has business with every asked one.
    """
    kind = type(command)
    known = _BESIDE.get((kind, asked, ended, other))
    if known is None:
        found = []
        if asked and kind is not c.Claim and kind not in c.SWEEPS:
            found.append(INV_6)
        if ended:
            found.append(Check("TERM-02", f"{command.verb}: terminal row", True))
            if kind is not c.Claim:
                found.append(INV_7)
        if other and (kind is c.RequestCancel or isinstance(command, c.HandleCommand)):
            found.append(another_row(command))
        known = _BESIDE[kind, asked, ended, other] = tuple(found)
    return known


_AFTER: dict[tuple[type, str, QueueSpec, bool, bool], Checks] = {}


def checks_of_view(command: c.Command, after: Record) -> Checks:
    """What the look at the row of an accepted part has tested (all with teeth: a differing row breaks this clause)."""
    kind, spec, stored = type(command), after.spec, after.artifact is not None
    cut = after.deadline is not None and cut_short(command, after)
    key = (kind, after.status, spec, stored, cut)
    known = _AFTER.get(key)
    if known is None:
        known = _AFTER[key] = tuple(
            # Sorted: what is played and told first must not hang on how a process hashes strings.
            Check(clause, row_reason(command, after.status), True)
            for clause in sorted(_view_clauses(kind, after.status, spec, stored))
        )
        if cut:
            known = _AFTER[key] = (*known, _CUT[kind])
    return known


def _view_clauses(kind: type, status: str, spec: QueueSpec, stored: bool) -> set[str]:
    """The clauses that `blame` and `row_fault` name for a row that this command has brought to this status; `stored`
    tells that the job refers to an artifact.
    """
    clauses = set(_BY_VERB[kind].values())
    ended = status not in (PENDING, RUNNING)
    if issubclass(kind, c.HandleCommand):
        clauses.add("FENCE-06")
    if kind is c.RequestCancel:
        clauses = {"CANCEL-02" if status == RUNNING else "CANCEL-01"}
    if kind is c.Fail and status == PENDING:
        clauses = {"ATT-01", "ATT-02", "FENCE-06"}
    if kind is c.Fail and spec.stores_code:
        clauses.add("ERR-03")
    if spec.artifacts and kind is not c.Claim:
        clauses.add("FENCE-04")
    # Where a row's token is looked at for itself, another one breaks the clause that set it.
    if stored and status != RUNNING and not (status == PENDING and spec.counts_generations):
        clauses.add("INV-5")
    if kind in c.SWEEPS and ended:
        clauses.add("TERM-03")
    if status in _MISSPELLED:
        clauses.add("TERM-04")
    return clauses | {"TERM-01"}


_MISSPELLED = frozenset(OLD_SPELLINGS.values())
"""The ends that some queue has spelled otherwise: of any other no word but the right one could be meant (TERM-04)."""
