"""What commands whose reply was lost may have done while others ran, and what they can't have done."""

from __future__ import annotations

import pytest
from fencepost.model import commands as c
from fencepost.model import outcomes as o
from fencepost.model.history import Operation
from fencepost.model.linear import judge
from fencepost.model.queues import CANCELLED, MUTATION, PENDING, RUNNING, SUCCEEDED
from fencepost.model.world import SETUP, Violation
from histories import ENQUEUED, ONE, ONE_HELD, TAKEN, W1, after, at_once, broken, legal, row


@pytest.mark.parametrize("effect", [False, True])
def test_a_lost_reply_explains_either_row(effect: bool) -> None:
    history = [Operation(c.Complete(W1), o.UNKNOWN, 0, 1, 0)]
    ended = row(TAKEN, status=SUCCEEDED, owner=None, expires=None, finished=0)
    legal(judge(ONE_HELD, history, (ended if effect else row(TAKEN),)))
    assert broken(judge(ONE_HELD, history, (ended._replace(attempts=7),))) != SETUP


def test_a_lost_write_may_take_effect_after_others_have_started_and_ended() -> None:
    ended = row(TAKEN, status=SUCCEEDED, owner=None, expires=None, finished=0)
    history = [
        Operation(c.Complete(W1), o.UNKNOWN, 0, 1, 0),
        Operation(c.Renew(W1), o.Accepted(RUNNING), 2, 3, 0),
    ]
    legal(judge(ONE_HELD, history, (ended,)))


def test_a_lost_transaction_takes_effect_whole_or_not_at_all() -> None:
    lost = at_once((c.Atomically((c.RequestCancel(1), c.Acknowledge(W1))), o.UNKNOWN))
    cancelled = row(TAKEN, status=CANCELLED, owner=None, expires=None, finished=0, cancel=0)
    legal(judge(ONE_HELD, lost, (cancelled,)))
    legal(judge(ONE_HELD, lost, (row(TAKEN),)))
    assert broken(judge(ONE_HELD, lost, (row(TAKEN, cancel=0),))) == "CANCEL-04"


def test_a_lost_transaction_takes_effect_on_all_of_its_jobs_or_on_none() -> None:
    world = after(ENQUEUED, (c.Enqueue(), o.Enqueued(2)))
    lost = at_once((c.Atomically((c.RequestCancel(1), c.RequestCancel(2))), o.UNKNOWN))
    kept = row(ONE.jobs[0])
    ended = kept._replace(status=CANCELLED, cancel=0, finished=0)
    legal(judge(world, lost, (kept, kept)))
    legal(judge(world, lost, (ended, ended)))
    assert broken(judge(world, lost, (ended, kept))) == "CANCEL-01"
    undone = at_once((c.Atomically((c.RequestCancel(1), c.RequestCancel(2)), "rollback"), o.UNKNOWN))
    assert isinstance(judge(world, undone, (ended, ended)), Violation)


BACKING_OFF = after((c.Enqueue(), o.Enqueued(1, 0)), (c.Claim(1), o.Claimed((c.Handle(1, 1, 1),))), spec=MUTATION)
LOST_RETRY = (c.Fail(c.Handle(1, 1, 1), "infra", "RENDER_SERVICE_UNAVAILABLE"), o.UNKNOWN)


@pytest.mark.parametrize(("due", "wrong"), [(1, False), (7, False), (10, False), (0, True), (None, True)])
def test_a_lost_retry_may_be_due_at_any_later_instant(due: int | None, wrong: bool) -> None:
    seen = row(BACKING_OFF.jobs[0], status=PENDING, owner=None, expires=None, heartbeat=None, due=due)
    assert isinstance(judge(BACKING_OFF, at_once(LOST_RETRY), (seen,)), Violation) == wrong


def test_a_lost_sweep_may_make_a_job_due_at_any_later_instant() -> None:
    now = MUTATION.lease_seconds
    history = at_once((c.Recover(), o.UNKNOWN), now=now)
    swept = row(BACKING_OFF.jobs[0], status=PENDING, owner=None, expires=None, heartbeat=None, token=2, due=now + 3)
    legal(judge(BACKING_OFF, history, (swept,)))
    assert isinstance(judge(BACKING_OFF, history, (swept._replace(due=now),)), Violation)


def test_a_claim_after_a_lost_retry_needs_no_more_than_the_shortest_back_off() -> None:
    again = c.Handle(1, 2, 2)
    seen = row(BACKING_OFF.jobs[0], owner=c.worker_name(2), token=2, attempts=2)
    for later, wrong in ((1, False), (0, True)):
        history = [*at_once(LOST_RETRY), Operation(c.Claim(2), o.Claimed((again,)), 2, 3, later)]
        expires = later + MUTATION.lease_seconds
        found = judge(BACKING_OFF, history, (seen._replace(expires=expires, heartbeat=later, started=later),))
        assert isinstance(found, Violation) == wrong


def test_the_hook_of_a_lost_claim_raises_for_its_own_job_alone() -> None:
    world = after(ENQUEUED, (c.Enqueue(), o.Enqueued(2)))
    pending, taken = row(ONE.jobs[0]), row(TAKEN)
    for poisoned, wrong in ((1, False), (2, True)):
        history = at_once((c.Claim(1, 2, 2, None, c.Hook("poison", poisoned)), o.UNKNOWN))
        assert isinstance(judge(world, history, (pending, taken)), Violation) == wrong
