"""Predicates and assignments that nobody should write, named once each, beside the clause they break.

This module must never know which mutant uses what.
"""

from __future__ import annotations

from fencepost.adapters.reference.terms import Assign, Pred, assign
from fencepost.model.queues import FAILED, PENDING, RUNNING
from sqlalchemy import and_, case, false, null, or_

# Claims.
pending_or_expired = Pred(
    "pending_or_expired", "CLAIM-01", "status",
    lambda c, a: or_(c.status == PENDING, and_(c.status == RUNNING, c.lease_expires_at <= a.now)),
)  # fmt: skip
lease_from_now = assign("lease_expires_at", "CLAIM-05", lambda c, a: a.now)
count_two = assign("attempt_count", "ATT-01", lambda c, a: c.attempt_count + 2)

# Leases.
expired_by_own_lease = Pred(
    "expired_by_own_lease", "LEASE-07", "heartbeat_at", lambda c, a: c.heartbeat_at <= a.lease_ago
)
lease_not_over = Pred(
    "lease_not_over", "TERM-02", "lease_expires_at",
    lambda c, a: or_(c.lease_expires_at.is_(None), c.lease_expires_at > a.now),
)  # fmt: skip

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
