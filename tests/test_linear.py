"""Histories of commands that ran at once, made by hand: which ones some order explains, and what the others break."""

from __future__ import annotations

import pytest
from fencepost.model import commands as c
from fencepost.model import outcomes as o
from fencepost.model.linear import Operation, judge
from fencepost.model.outcomes import Row
from fencepost.model.queues import BACKFILL, CANCELLED, MUTATION, PENDING, RUNNING, SUCCEEDED, QueueSpec
from fencepost.model.step import step
from fencepost.model.world import SETUP, Context, Record, Step, Violation, World

W1, W2 = c.Handle(1, 1, None), c.Handle(1, 2, None)
EXPIRY = BACKFILL.lease_seconds
ANSWERED = tuple[c.Command, o.Outcome]
ENQUEUED: ANSWERED = (c.Enqueue(), o.Enqueued(1))
HELD: tuple[ANSWERED, ...] = (ENQUEUED, (c.Claim(1), o.Claimed((W1,))))
DONE = o.Accepted(SUCCEEDED)
SWEPT = o.Recovered((o.RecoveredRow(1, PENDING),), 1)


def after(*answered: ANSWERED, spec: QueueSpec = BACKFILL) -> World:
    """The world that these commands, one after another, come to."""
    world = World(spec)
    for command, outcome in answered:
        judged = step(world, command, outcome, Context(world.now))
        assert isinstance(judged, Step), judged
        world = judged.world
    return world


def row(record: Record, **changed: object) -> Row:
    """How a record looks from outside."""
    running = record.status == RUNNING
    begun = record.expires - record.lease if running and record.expires is not None else None
    ended = None if record.status in (PENDING, RUNNING) else 0
    token = record.token if isinstance(record.token, int) else None
    seen = Row(
        record.spec.spell(record.status), c.WORKER_NAMES[record.owner] or None, record.expires, begun, begun, ended,
        record.attempts, record.max_attempts, token, record.due, record.cancel, None,
    )  # fmt: skip
    return seen._replace(**changed)  # type: ignore[arg-type]


def at_once(*each: ANSWERED, now: int = 0) -> list[Operation]:
    """Operations that all overlap."""
    return [Operation(command, outcome, 0, 9, now) for command, outcome in each]


def broken(found: object) -> str:
    assert isinstance(found, Violation), found
    return found.clause


ONE = after(ENQUEUED)
ONE_HELD = after(*HELD)
TAKEN = ONE_HELD.jobs[0]


def test_one_of_two_claims_wins() -> None:
    history = at_once((c.Claim(1), o.Claimed((W1,))), (c.Claim(2), o.Claimed()))
    assert isinstance(judge(ONE, history, (row(TAKEN),)), tuple)


def test_two_claims_may_both_come_back_empty_while_they_overlap() -> None:
    history = at_once((c.Claim(1), o.CONFLICT), (c.Claim(2), o.Claimed()))
    assert judge(ONE, history, (row(ONE.jobs[0]),)) == ()


def test_two_claims_of_one_job_break_the_clause_of_duplicates() -> None:
    history = at_once((c.Claim(1), o.Claimed((W1,))), (c.Claim(2), o.Claimed((W2,))))
    assert broken(judge(ONE, history, (row(TAKEN, owner=c.worker_name(2), attempts=2),))) == "CLAIM-06"


def test_a_claim_after_another_has_ended_is_a_claim_of_a_running_job() -> None:
    history = [
        Operation(c.Claim(1), o.Claimed((W1,)), 0, 3, 0),
        Operation(c.Claim(2), o.Claimed((W2,)), 4, 7, 0),
    ]
    assert broken(judge(ONE, history, (row(TAKEN, owner=c.worker_name(2), attempts=2),))) == "CLAIM-01"


def test_real_time_order_binds() -> None:
    ended = row(TAKEN, status=SUCCEEDED, owner=None, expires=None, finished=0)
    complete, renew = (c.Complete(W1), DONE), (c.Renew(W1), o.Accepted(RUNNING))
    assert isinstance(judge(ONE_HELD, at_once(complete, renew), (ended,)), tuple)
    one_by_one = [Operation(*complete, 0, 1, 0), Operation(*renew, 2, 3, 0)]
    assert broken(judge(ONE_HELD, one_by_one, (ended,))) == "LEASE-02"


def test_each_operation_is_judged_by_the_clock_that_it_read() -> None:
    late = Operation(c.Complete(W1), DONE, 0, 9, EXPIRY)
    ended = row(TAKEN, status=SUCCEEDED, owner=None, expires=None, finished=EXPIRY)
    assert isinstance(judge(ONE_HELD, [late._replace(now=EXPIRY - 1)], (ended,)), tuple)
    assert broken(judge(ONE_HELD, [late], (ended,))) == "FENCE-01"


def test_a_sweep_may_miss_what_expires_beside_it() -> None:
    history = [Operation(c.Recover(), o.Recovered(dml=0), 0, 5, EXPIRY)]
    assert isinstance(judge(ONE_HELD, history, (row(TAKEN),)), tuple)


PENDING_AGAIN = row(TAKEN, status=PENDING, owner=None, expires=None, heartbeat=None)


@pytest.mark.parametrize(
    ("write", "seen", "clause"),
    [
        (c.Complete(W1), row(TAKEN, status=SUCCEEDED, owner=None, expires=None, finished=0), "FENCE-02"),
        (c.Complete(W1), PENDING_AGAIN, "REC-07"),
        (c.Renew(W1), row(TAKEN, expires=2 * EXPIRY - 1, heartbeat=EXPIRY - 1), "LEASE-02"),
        (c.Renew(W1), PENDING_AGAIN, "REC-02"),
    ],
    ids=["late completion", "sweep over a completion", "late renewal", "sweep over a renewal"],
)
def test_the_row_tells_which_of_a_write_and_a_sweep_came_too_late(
    write: c.HandleCommand, seen: Row, clause: str
) -> None:
    accepted = DONE if isinstance(write, c.Complete) else o.Accepted(RUNNING)
    history = [Operation(write, accepted, 0, 9, EXPIRY - 1), Operation(c.Recover(), SWEPT, 1, 8, EXPIRY)]
    assert broken(judge(ONE_HELD, history, (seen,))) == clause


def test_a_late_completion_of_the_same_workers_next_run_breaks_the_token_fence() -> None:
    old, new = c.Handle(1, 1, 1), c.Handle(1, 1, 2)
    world = after((c.Enqueue(), o.Enqueued(1, 0)), (c.Claim(1), o.Claimed((old,))), spec=MUTATION)
    history = [
        Operation(c.Complete(old), DONE, 0, 9, 0),
        Operation(c.Release(old), o.Accepted(PENDING), 1, 2, 0),
        Operation(c.Claim(1), o.Claimed((new,)), 3, 4, 0),
    ]
    seen = row(world.jobs[0], status=SUCCEEDED, owner=None, expires=None, finished=0, token=2)
    assert broken(judge(world, history, (seen,))) == "FENCE-03"


def test_a_job_swept_by_two_sweeps_moved_twice() -> None:
    history = at_once((c.Recover(), SWEPT), (c.Recover(), SWEPT), now=EXPIRY)
    assert broken(judge(ONE_HELD, history, (PENDING_AGAIN,))) == "REC-07"


@pytest.mark.parametrize("answer", ["cancelled", "recorded"])
def test_cancel_beside_a_claim_ends_cancelled_or_recorded_but_never_both_ways(answer: str) -> None:
    claim = (c.Claim(1), o.Claimed((W1,)))
    cancel = (c.RequestCancel(1), o.CancelAnswer(answer))  # type: ignore[arg-type]
    found = judge(ONE, at_once(claim, cancel), (row(TAKEN, cancel=0),))
    if answer == "recorded":
        assert isinstance(found, tuple)
    else:
        assert broken(found) == "CANCEL-09"


def test_a_claim_that_came_to_nothing_beside_a_cancel_is_legal() -> None:
    cancelled = row(ONE.jobs[0], status=CANCELLED, cancel=0, finished=0)
    history = at_once((c.Claim(1), o.Claimed()), (c.RequestCancel(1), o.CancelAnswer("cancelled")))
    assert isinstance(judge(ONE, history, (cancelled,)), tuple)


def test_a_success_beside_a_recorded_cancel_breaks_the_clause_of_the_race() -> None:
    ended = row(TAKEN, status=SUCCEEDED, owner=None, expires=None, finished=0)
    complete = (c.Complete(W1), DONE)
    late = at_once(complete, (c.RequestCancel(1), o.CancelAnswer("terminal")))
    assert isinstance(judge(ONE_HELD, late, (ended,)), tuple)
    both = at_once(complete, (c.RequestCancel(1), o.CancelAnswer("recorded")))
    assert broken(judge(ONE_HELD, both, (ended._replace(cancel=0),))) == "CANCEL-09"


@pytest.mark.parametrize("effect", [False, True])
def test_a_lost_reply_explains_either_row(effect: bool) -> None:
    history = [Operation(c.Complete(W1), o.UNKNOWN, 0, 1, 0)]
    ended = row(TAKEN, status=SUCCEEDED, owner=None, expires=None, finished=0)
    assert isinstance(judge(ONE_HELD, history, (ended if effect else row(TAKEN),)), tuple)
    assert broken(judge(ONE_HELD, history, (ended._replace(attempts=7),))) != SETUP


def test_a_lost_write_may_take_effect_after_others_have_started_and_ended() -> None:
    ended = row(TAKEN, status=SUCCEEDED, owner=None, expires=None, finished=0)
    history = [
        Operation(c.Complete(W1), o.UNKNOWN, 0, 1, 0),
        Operation(c.Renew(W1), o.Accepted(RUNNING), 2, 3, 0),
    ]
    assert isinstance(judge(ONE_HELD, history, (ended,)), tuple)


@pytest.mark.parametrize(
    ("command", "outcome", "seen", "clause"),
    [
        (c.Claim(1), o.Claimed(), row(TAKEN), "CLAIM-07"),
        (c.Claim(1, hook=c.Hook("raise")), o.HookRaised((1,)), row(TAKEN), "CLAIM-12"),
    ],
    ids=["not returned", "hook raised"],
)
def test_a_row_that_nobody_answers_for_is_blamed_on_who_must_have_changed_it(
    command: c.Command, outcome: o.Outcome, seen: Row, clause: str
) -> None:
    assert broken(judge(ONE, at_once((command, outcome)), (seen,))) == clause


def test_an_unreturned_claim_is_not_blamed_on_a_rejection_beside_it() -> None:
    history = at_once((c.Complete(W2), o.REJECTED), (c.Claim(1), o.Claimed()))
    assert broken(judge(ONE, history, (row(TAKEN),))) == "CLAIM-07"


def test_a_rejected_write_that_changed_the_row_is_blamed() -> None:
    world = after(*HELD)._replace(now=EXPIRY)
    history = at_once((c.Complete(W1), o.REJECTED), now=EXPIRY)
    ended = row(TAKEN, status=SUCCEEDED, owner=None, expires=None, finished=EXPIRY)
    assert broken(judge(world, history, (ended,))) == "FENCE-01"


def test_a_wrong_field_is_blamed_on_the_part_that_wrote_it() -> None:
    history = at_once((c.Claim(1), o.Claimed((W1,))), (c.RequestCancel(1), o.CancelAnswer("recorded")))
    assert broken(judge(ONE, history, (row(TAKEN, cancel=0, attempts=2),))) == "ATT-01"
    assert broken(judge(ONE, history, (row(TAKEN, cancel=4),))) == "CANCEL-02"


def test_bounds_hold_also_where_claims_overlap() -> None:
    world = after(ENQUEUED, (c.Enqueue(), o.Enqueued(2)))
    both = o.Claimed((W1, c.Handle(2, 1, None)))
    seen = (row(TAKEN), row(TAKEN))
    assert isinstance(judge(world, at_once((c.Claim(1, 2, 2), both)), seen), tuple)
    assert broken(judge(world, at_once((c.Claim(1, 2, 1), both)), seen)) == "CLAIM-07"


def test_parts_of_one_command_take_effect_job_by_job() -> None:
    """Two claimers that take one job each of two, in opposite orders, are legal although no order of both is one."""
    world = after(ENQUEUED, (c.Enqueue(), o.Enqueued(2)))
    history = at_once((c.Claim(1, 2, 2), o.Claimed((c.Handle(2, 1, None),))), (c.Claim(2, 2, 2), o.Claimed((W2,))))
    assert isinstance(judge(world, history, (row(TAKEN, owner=c.worker_name(2)), row(TAKEN))), tuple)


def test_a_callers_transaction_is_one_instant() -> None:
    answers = o.Atomic((o.Accepted(RUNNING), DONE))
    together = (c.Atomically((c.Renew(W1), c.Complete(W1))), answers)
    ended = row(TAKEN, status=SUCCEEDED, owner=None, expires=None, finished=0)
    cancel = (c.RequestCancel(1), o.CancelAnswer("terminal"))
    assert isinstance(judge(ONE_HELD, at_once(together, cancel), (ended,)), tuple)
    undone = (c.Atomically((c.Renew(W1), c.Complete(W1)), "rollback"), answers)
    assert judge(ONE_HELD, at_once(undone), (row(TAKEN),)) == ()


@pytest.mark.parametrize(
    ("history", "view"),
    [
        (at_once((c.Claim(1), o.Claimed((c.Handle(7, 1, None),)))), (row(TAKEN),)),
        (at_once((c.Claim(1), o.Claimed((W1,)))), ()),
        ([], (row(TAKEN),)),
    ],
    ids=["unknown job", "row lost", "changed by itself"],
)
def test_what_no_queue_does_is_a_fault_of_the_harness(history: list[Operation], view: tuple[Row, ...]) -> None:
    assert broken(judge(ONE, history, view)) == SETUP
