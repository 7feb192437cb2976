"""Predicates and assignments that nobody should write, named once each, beside the clause they break.

This module must never know which mutant uses what.
"""

from __future__ import annotations

from typing import Any, cast

from fencepost.adapters.reference.predicates import until_deadline
from fencepost.adapters.reference.terms import Args, Assign, Columns, Pred, assign
from fencepost.model.queues import FAILED, PENDING, RUNNING, SUCCEEDED
from sqlalchemy import Column, ColumnElement, String, and_, case, false, func, null, or_, select

# Claims.
pending_or_expired = Pred(
    "pending_or_expired", "CLAIM-01", "status",
    lambda c, a: or_(c.status == PENDING, and_(c.status == RUNNING, c.lease_expires_at <= a.now)),
)  # fmt: skip
lease_from_now = assign("lease_expires_at", "CLAIM-05", lambda c, a: a.now)
overlooked = Pred("overlooked", "CLAIM-08", "id", lambda c, a: c.id % 2 == 1)
"""A job with an even number is not seen."""
count_two = assign("attempt_count", "ATT-01", lambda c, a: c.attempt_count + 2)

# Leases.
expired_by_own_lease = Pred(
    "expired_by_own_lease", "LEASE-07", "heartbeat_at", lambda c, a: c.heartbeat_at <= a.lease_ago
)
lease_uncut = assign("lease_expires_at", "CLAIM-04", lambda c, a: a.lease_end)
lease_to_deadline = assign("lease_expires_at", "CLAIM-05", lambda c, a: func.coalesce(c.deadline_at, a.lease_end))
lease_left = assign(
    "lease_expires_at", "CLAIM-05", lambda c, a: func.coalesce(c.lease_expires_at, until_deadline(c, a))
)
lease_not_over = Pred(
    "lease_not_over", "TERM-02", "lease_expires_at",
    lambda c, a: or_(c.lease_expires_at.is_(None), c.lease_expires_at > a.now),
)  # fmt: skip

expired_lately = Pred(
    "expired_lately", "REC-01", "lease_expires_at",
    lambda c, a: and_(c.lease_expires_at <= a.now, c.lease_expires_at > a.lease_ago),
)  # fmt: skip
"""Only so long ago as a lease lasts."""


def _owner_is_idle(c: Columns, a: Args) -> ColumnElement[bool]:
    other = cast(Column[Any], c.worker_id).table.alias("other")
    beats = select(other.c.id).where(other.c.worker_id == c.worker_id, other.c.lease_expires_at > a.now)
    return and_(c.lease_expires_at <= a.now, ~beats.exists())


owner_is_idle = Pred("owner_is_idle", "REC-01", "worker_id", _owner_is_idle)
"""The lease has expired, and its owner has no valid one on any other job."""

not_pending = Pred("not_pending", "TERM-02", "status", lambda c, a: c.status != PENDING)

# Deadlines.
dated = Pred("dated", "DEAD-01", "deadline_at", lambda c, a: c.deadline_at.is_not(None), absent=False)
deadline_lost = assign("deadline_at", "CLAIM-05", lambda c, a: None)
deadline_moved = assign(
    "deadline_at", "LEASE-03", lambda c, a: case((c.deadline_at.is_not(None), a.lease_end), else_=null())
)

# Attempts, and claims of one job.
attempt_of_count = assign(
    "attempt_id", "FENCE-03",
    lambda c, a: c.id.cast(String) + "/" + (c.attempt_count + 1).cast(String),
)  # fmt: skip
attempt_kept = assign("attempt_id", "FENCE-03", lambda c, a: func.coalesce(c.attempt_id, a.fresh_attempt))
attempt_of_handle = assign("attempt_id", "FENCE-03", lambda c, a: a.attempt)
attempt_lost = assign("attempt_id", "INV-5", lambda c, a: None)
artifact_lost = assign("artifact_key", "FENCE-04", lambda c, a: None)
this_or_older = Pred("this_or_older", "CLAIM-15", "id", lambda c, a: c.id <= a.job)
running_or_succeeded = Pred(
    "running_or_succeeded", "FENCE-05", "status", lambda c, a: or_(c.status == RUNNING, c.status == SUCCEEDED)
)

# Budgets.
three_attempts = Pred("three_attempts", "REC-03", "attempt_count", lambda c, a: c.attempt_count < 3)
never = Pred("never", "CLAIM-02", "status", lambda c, a: false())


def status(clause: str, stored: str) -> Assign:
    """A status spelled as `stored`, whatever the queue calls it."""
    return assign("status", clause, lambda c, a: stored)


def code(clause: str, stored: str) -> Assign:
    """This error code, whatever happened."""
    return assign("error_code", clause, lambda c, a: stored)


retry_at_once = assign("next_attempt_at", "ATT-02", lambda c, a: a.now)
beat_lost = assign("heartbeat_at", "LEASE-03", lambda c, a: None)
start_lost = assign("started_at", "CANCEL-02", lambda c, a: None)
cancel_toggled = assign(
    "cancel_requested_at", "CANCEL-03", lambda c, a: case((c.cancel_requested_at.is_(None), a.now), else_=null())
)
cancel_moved = assign("cancel_requested_at", "CANCEL-03", lambda c, a: a.now)
generation_as_seen = assign("lease_generation", "REC-09", lambda c, a: a.seen_generation + 1)
generation_of_handle = assign("lease_generation", "FENCE-03", lambda c, a: a.generation)
back_a_generation = assign("lease_generation", "REL-01", lambda c, a: c.lease_generation - 1)
failed_status = assign("status", "CANCEL-04", lambda c, a: a.spell(FAILED))
