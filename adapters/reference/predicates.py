"""Every predicate and every assignment of the reference runtime, named once, beside the clause it keeps.

`c` are the table's columns by standard name, `a` the statement's named parameters. This module must never know which
verb uses what: that stands in `rules.py`.
"""

from __future__ import annotations

from typing import Any

from fencepost.model.queues import CANCELLED, FAILED, PENDING, RUNNING, SKIPPED, SUCCEEDED
from sqlalchemy import and_, case, func, or_

from .terms import Args, Assign, Columns, Pred, assign

MAX_ATTEMPTS_CODE = "LEASE_TIMEOUT_MAX_ATTEMPTS"
"""What a job fails with when its lease expired on its last attempt (REC-01)."""
DEADLINE_CODE = "LEASE_TIMEOUT_DEADLINE"
"""What a job fails with that nobody ended before its deadline (DEAD-01)."""

# The row's state.
pending = Pred("pending", "CLAIM-01", "status", lambda c, a: c.status == PENDING)
running = Pred("running", "FENCE-02", "status", lambda c, a: c.status == RUNNING)
succeeded = Pred(
    "succeeded",
    "FENCE-05",
    "status",
    lambda c, a: c.status == SUCCEEDED,
    absent=False,
    binds=lambda queue: queue.repeats_complete,
)
not_terminal = Pred("not_terminal", "CANCEL-03", "status", lambda c, a: or_(c.status == PENDING, c.status == RUNNING))

# Whose it is, and for how long. A lease is valid up to, not at, the instant of its expiry.
owned = Pred("owned", "FENCE-02", "worker_id", lambda c, a: c.worker_id == a.owner)
same_generation = Pred(
    "same_generation", "FENCE-03", "lease_generation", lambda c, a: c.lease_generation == a.generation
)
same_attempt = Pred("same_attempt", "FENCE-03", "attempt_id", lambda c, a: c.attempt_id == a.attempt)
lease_valid = Pred("lease_valid", "FENCE-01", "lease_expires_at", lambda c, a: c.lease_expires_at > a.now)
lease_expired = Pred(
    "lease_expired",
    "REC-02",
    "lease_expires_at",
    lambda c, a: or_(c.lease_expires_at.is_(None), c.lease_expires_at <= a.now),
)
same_lease = Pred(
    "same_lease", "REC-07", "lease_expires_at", lambda c, a: c.lease_expires_at.is_not_distinct_from(a.seen_lease)
)
expired_or_own = Pred(
    "expired_or_own",
    "REC-05",
    "worker_id",
    lambda c, a: or_(lease_expired.sql(c, a), func.substr(c.worker_id, 1, func.length(a.prefix)) == a.prefix),
)
unleased = Pred("unleased", "CLAIM-15", "lease_expires_at", lease_expired.sql, binds=lambda queue: queue.claims_by_id)
this_job = Pred("this_job", "CLAIM-15", "id", lambda c, a: c.id == a.job)

# Until when it may run at all. A deadline has passed at its very instant.
begins_in_time = Pred(
    "begins_in_time", "CLAIM-04", "deadline_at", lambda c, a: or_(c.deadline_at.is_(None), c.deadline_at > a.begins_by)
)
in_time = Pred("in_time", "DEAD-01", "deadline_at", lambda c, a: or_(c.deadline_at.is_(None), c.deadline_at > a.now))
overdue = Pred("overdue", "DEAD-01", "deadline_at", lambda c, a: c.deadline_at <= a.now, absent=False)

# What was asked of it, and what it may still do.
cancel_requested = Pred(
    "cancel_requested", "CANCEL-05", "cancel_requested_at", lambda c, a: c.cancel_requested_at.is_not(None),
    absent=False,
)  # fmt: skip
no_cancel = Pred("no_cancel", "CLAIM-02", "cancel_requested_at", lambda c, a: c.cancel_requested_at.is_(None))
uncancelled = Pred(
    "uncancelled", "CANCEL-06", "cancel_requested_at", no_cancel.sql, binds=lambda queue: not queue.completion_wins
)
due = Pred(
    "due",
    "CLAIM-03",
    "next_attempt_at",
    lambda c, a: or_(c.next_attempt_at.is_(None), c.next_attempt_at <= a.now),
)
budget_left = Pred("budget_left", "REC-03", "attempt_count", lambda c, a: c.attempt_count < c.max_attempts)

# What an object is to it: its artifact, or one of its attempt's that may still be on the way to become that. An attempt
# that no longer runs never runs again, so that what was seen to be neither stays so.
refers = Pred("refers", "FENCE-07", "artifact_key", lambda c, a: c.artifact_key == a.key)
may_refer = Pred(
    "may_refer", "FENCE-07", "attempt_id", lambda c, a: and_(c.status == RUNNING, c.attempt_id == a.attempt)
)

# Where a sweep goes on: rows after the last one of its previous batch (REC-12).
beyond = Pred(
    "beyond",
    "REC-12",
    "created_at",
    lambda c, a: or_(c.created_at > a.after_instant, and_(c.created_at == a.after_instant, c.id > a.after_job)),
)


def until_deadline(c: Columns, a: Args) -> Any:
    """The end of the lease that is asked for, or the job's deadline if that comes before (CLAIM-04, LEASE-03)."""
    return case((c.deadline_at < a.lease_end, c.deadline_at), else_=a.lease_end)


# What the writes store.
to_pending = assign("status", "ATT-02", lambda c, a: a.spell(PENDING))
to_running = assign("status", "CLAIM-05", lambda c, a: a.spell(RUNNING))
to_succeeded = assign("status", "TERM-01", lambda c, a: a.spell(SUCCEEDED))
to_failed = assign("status", "TERM-01", lambda c, a: a.spell(FAILED))
to_cancelled = assign("status", "CANCEL-01", lambda c, a: a.spell(CANCELLED))
to_skipped = assign("status", "TERM-01", lambda c, a: a.spell(SKIPPED))

own = assign("worker_id", "CLAIM-05", lambda c, a: a.owner)
disown = assign("worker_id", "REC-01", lambda c, a: None)
lease = assign("lease_expires_at", "LEASE-03", lambda c, a: until_deadline(c, a) if a.spec.deadline else a.lease_end)
end_lease = assign("lease_expires_at", "TERM-03", lambda c, a: None)
beat = assign("heartbeat_at", "LEASE-03", lambda c, a: a.now)
start = assign("started_at", "CLAIM-05", lambda c, a: a.now)
finish = assign("finished_at", "TERM-03", lambda c, a: a.now)
unfinish = assign("finished_at", "CLAIM-05", lambda c, a: None)

count_attempt = assign("attempt_count", "ATT-01", lambda c, a: c.attempt_count + 1)
uncount_attempt = assign("attempt_count", "REL-01", lambda c, a: c.attempt_count - 1)
next_generation = assign("lease_generation", "FENCE-03", lambda c, a: c.lease_generation + 1)
next_attempt = assign("attempt_id", "FENCE-03", lambda c, a: a.fresh_attempt)
retry_later = assign("next_attempt_at", "ATT-02", lambda c, a: a.retry_at)
retry_now = assign("next_attempt_at", "REL-01", lambda c, a: None)

record_error = assign("error_code", "TERM-03", lambda c, a: a.error)
clear_error = assign("error_code", "TERM-03", lambda c, a: None)
give_up = assign("error_code", "REC-01", lambda c, a: MAX_ATTEMPTS_CODE)
miss_deadline = assign("error_code", "DEAD-01", lambda c, a: DEADLINE_CODE)
refer = assign("artifact_key", "FENCE-04", lambda c, a: a.key)
forget_artifact = assign("artifact_key", "CLAIM-05", lambda c, a: None)
# A repeated request keeps the first one's instant.
request_cancel = assign("cancel_requested_at", "CANCEL-03", lambda c, a: func.coalesce(c.cancel_requested_at, a.now))

RELEASED: tuple[Assign, ...] = (disown, end_lease)
"""Every write that ends a lease, whatever the job becomes."""
