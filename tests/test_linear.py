"""Which histories of commands that ran at once some order explains, and what the others break."""

from __future__ import annotations

import pytest
from fencepost.model import commands as c
from fencepost.model import outcomes as o
from fencepost.model.history import Operation
from fencepost.model.linear import judge
from fencepost.model.outcomes import Row
from fencepost.model.queues import CANCELLED, MUTATION, PENDING, RUNNING, SUCCEEDED
from fencepost.model.world import SETUP
from histories import (
    DONE,
    ENQUEUED,
    EXPIRY,
    HELD,
    ONE,
    ONE_HELD,
    SWEPT,
    TAKEN,
    W1,
    W2,
    after,
    at_once,
    broken,
    legal,
    row,
)


def test_one_of_two_claims_wins() -> None:
    history = at_once((c.Claim(1), o.Claimed((W1,))), (c.Claim(2), o.Claimed()))
    legal(judge(ONE, history, (row(TAKEN),)))


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
    legal(judge(ONE_HELD, at_once(complete, renew), (ended,)))
    one_by_one = [Operation(*complete, 0, 1, 0), Operation(*renew, 2, 3, 0)]
    assert broken(judge(ONE_HELD, one_by_one, (ended,))) == "LEASE-02"


def test_each_operation_is_judged_by_the_clock_that_it_read() -> None:
    late = Operation(c.Complete(W1), DONE, 0, 9, EXPIRY)
    ended = row(TAKEN, status=SUCCEEDED, owner=None, expires=None, finished=EXPIRY)
    legal(judge(ONE_HELD, [late._replace(now=EXPIRY - 1)], (ended,)))
    assert broken(judge(ONE_HELD, [late], (ended,))) == "FENCE-01"


def test_a_sweep_may_miss_what_expires_beside_it() -> None:
    history = [Operation(c.Recover(), o.Recovered(dml=0), 0, 5, EXPIRY)]
    legal(judge(ONE_HELD, history, (row(TAKEN),)))


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
        legal(found)
    else:
        assert broken(found) == "CANCEL-09"


def test_a_claim_that_came_to_nothing_beside_a_cancel_is_legal() -> None:
    cancelled = row(ONE.jobs[0], status=CANCELLED, cancel=0, finished=0)
    history = at_once((c.Claim(1), o.Claimed()), (c.RequestCancel(1), o.CancelAnswer("cancelled")))
    legal(judge(ONE, history, (cancelled,)))


def test_a_success_beside_a_recorded_cancel_breaks_the_clause_of_the_race() -> None:
    ended = row(TAKEN, status=SUCCEEDED, owner=None, expires=None, finished=0)
    complete = (c.Complete(W1), DONE)
    late = at_once(complete, (c.RequestCancel(1), o.CancelAnswer("terminal")))
    legal(judge(ONE_HELD, late, (ended,)))
    both = at_once(complete, (c.RequestCancel(1), o.CancelAnswer("recorded")))
    assert broken(judge(ONE_HELD, both, (ended._replace(cancel=0),))) == "CANCEL-09"


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
    legal(judge(world, at_once((c.Claim(1, 2, 2), both)), seen))
    assert broken(judge(world, at_once((c.Claim(1, 2, 1), both)), seen)) == "CLAIM-07"


def test_parts_of_one_command_take_effect_job_by_job() -> None:
    """Two claimers that take one job each of two, in opposite orders, are legal although no order of both is one."""
    world = after(ENQUEUED, (c.Enqueue(), o.Enqueued(2)))
    history = at_once((c.Claim(1, 2, 2), o.Claimed((c.Handle(2, 1, None),))), (c.Claim(2, 2, 2), o.Claimed((W2,))))
    legal(judge(world, history, (row(TAKEN, owner=c.worker_name(2)), row(TAKEN))))


def test_a_callers_transaction_is_one_instant() -> None:
    answers = o.Atomic((o.Accepted(RUNNING), DONE))
    together = (c.Atomically((c.Renew(W1), c.Complete(W1))), answers)
    ended = row(TAKEN, status=SUCCEEDED, owner=None, expires=None, finished=0)
    cancel = (c.RequestCancel(1), o.CancelAnswer("terminal"))
    legal(judge(ONE_HELD, at_once(together, cancel), (ended,)))


UNDONE = c.Atomically((c.Renew(W1), c.Complete(W1)), "rollback")
IN_VAIN = o.Atomic((o.Accepted(RUNNING), DONE))


def test_a_transaction_that_its_caller_undid_is_judged_and_leaves_nothing() -> None:
    found = judge(ONE_HELD, at_once((UNDONE, IN_VAIN)), (row(TAKEN),))
    assert {check.clause for check in legal(found)} >= {"LEASE-03", "FENCE-01"}
    again = at_once((UNDONE, IN_VAIN), (c.Complete(W1), DONE))
    ended = row(TAKEN, status=SUCCEEDED, owner=None, expires=None, finished=0)
    legal(judge(ONE_HELD, again, (ended,)))
    superseded = ONE_HELD._replace(jobs=(TAKEN._replace(owner=2, issued=((1, None), (2, None))),))
    history = at_once((c.Atomically((c.Complete(W1),), "rollback"), o.Atomic((DONE,))))
    assert broken(judge(superseded, history, (row(superseded.jobs[0]),))) == "FENCE-02"


@pytest.mark.parametrize(
    ("command", "answer", "clause"),
    [
        (c.Complete(W1), DONE, "FENCE-01"),
        (c.Renew(W1), o.Accepted(RUNNING), "LEASE-03"),
        (c.RequestCancel(1), o.CancelAnswer("recorded"), "CANCEL-01"),
    ],
    ids=lambda each: each.verb if isinstance(each, c.Command) else "",
)
def test_a_transaction_that_stays_although_its_caller_undid_it_is_named(
    command: c.Command, answer: o.Outcome, clause: str
) -> None:
    history = at_once((c.Atomically((command,), "rollback"), o.Atomic((answer,))))
    kept = row(TAKEN, cancel=0, error="KEPT")
    assert broken(judge(ONE_HELD._replace(rows=(row(TAKEN),)), history, (kept,))) == clause


@pytest.mark.parametrize(
    ("history", "view"),
    [
        (at_once((c.Claim(1), o.Claimed((c.Handle(7, 1, None),)))), (row(TAKEN),)),
        (at_once((c.Claim(1), o.Claimed((c.Handle("x", 1, None),)))), (row(TAKEN),)),
        (at_once((c.Claim(1), o.Claimed((W1,)))), ()),
        ([], (row(TAKEN),)),
        (at_once((c.Claim(1), o.Accepted(RUNNING))), (row(ONE.jobs[0]),)),
        (at_once((c.Recover(), o.REJECTED)), (row(ONE.jobs[0]),)),
        (at_once((c.Complete(W2), o.DONE)), (row(ONE.jobs[0]),)),
        (at_once((c.Atomically((c.Complete(W2),)), o.Atomic((o.DONE,)))), (row(ONE.jobs[0]),)),
        (at_once((c.Atomically((c.Complete(W2),), "raise"), o.Atomic((o.Claimed(),)))), (row(ONE.jobs[0]),)),
        (at_once((c.Atomically((c.Complete(W2), c.Renew(W2))), o.Atomic((o.REJECTED,)))), (row(ONE.jobs[0]),)),
    ],
    ids=[
        "unknown job", "job of another kind", "row lost", "changed by itself", "claim accepted", "sweep rejected",
        "write done", "inside a transaction", "inside one that was undone", "too few answers",
    ],
)  # fmt: skip
def test_what_no_queue_does_is_a_fault_of_the_harness(history: list[Operation], view: tuple[Row, ...]) -> None:
    assert broken(judge(ONE, history, view)) == SETUP


def test_a_conflict_needs_somebody_to_conflict_with() -> None:
    alone = [Operation(c.Claim(1), o.CONFLICT, 0, 3, 0), Operation(c.Claim(2), o.Claimed((W2,)), 4, 7, 0)]
    seen = (row(TAKEN, owner=c.worker_name(2)),)
    assert broken(judge(ONE, alone, seen)) == "CLAIM-09"
    legal(judge(ONE, [alone[0], alone[1]._replace(start=3)], seen))
    lost = Operation(c.Renew(W2), o.UNKNOWN, 0, 1, 0)
    legal(judge(ONE, [lost, alone[0]._replace(start=2)], (row(ONE.jobs[0]),)))


def test_a_row_that_no_operation_changed_stays_as_it_was_in_every_field() -> None:
    ended = after(*HELD, (c.Complete(W1), DONE))
    before = row(ended.jobs[0])
    history = at_once((c.Fail(W1), o.REJECTED), (c.Recover(), o.Recovered(dml=0)))
    legal(judge(ended._replace(rows=(before,)), history, (before,)))
    for changed in (before._replace(error="PAGE_VALIDATION_FAILED"), before._replace(finished=99)):
        assert broken(judge(ended._replace(rows=(before,)), history, (changed,))) == "TERM-02"


@pytest.mark.parametrize(
    ("command", "answer", "seen", "clause"),
    [
        (c.Complete(W1), DONE, row(TAKEN), "FENCE-06"),
        (c.RequestCancel(1), o.CancelAnswer("recorded"), row(TAKEN, cancel=0, error="KEPT"), "CANCEL-02"),
    ],
    ids=["accepted without effect", "more than the request"],
)
def test_the_row_before_names_what_one_change_did_to_it(
    command: c.Command, answer: o.Outcome, seen: Row, clause: str
) -> None:
    world = ONE_HELD._replace(rows=(row(TAKEN),))
    beside = (c.Complete(W2), o.REJECTED)
    assert broken(judge(world, at_once((command, answer), beside), (seen,))) == clause


def test_a_wrong_field_after_claims_that_followed_each_other_is_no_duplicate_claim() -> None:
    history = [
        Operation(c.Claim(1), o.Claimed((W1,)), 0, 9, 0),
        Operation(c.Release(W1), o.Accepted(PENDING), 3, 9, 0),
        Operation(c.Claim(2), o.Claimed((W2,)), 0, 9, 0),
    ]
    seen = row(TAKEN, owner=c.worker_name(2))
    legal(judge(ONE, history, (seen,)))
    assert broken(judge(ONE, history, (seen._replace(heartbeat=7),))) == "CLAIM-05"
    assert broken(judge(ONE, history, (seen._replace(status="Running"),))) == "TERM-01"


def test_a_repeated_token_beside_a_cancel_is_no_race() -> None:
    old = c.Handle(1, 1, 1)
    released = (c.Release(old), o.Accepted(PENDING))
    world = after((c.Enqueue(), o.Enqueued(1, 0)), (c.Claim(1), o.Claimed((old,))), released, spec=MUTATION)
    history = at_once((c.Claim(1), o.Claimed((old,))), (c.RequestCancel(1), o.CancelAnswer("recorded")))
    assert (
        broken(
            judge(
                world,
                history,
                (
                    row(
                        world.jobs[0],
                        status=RUNNING,
                        owner=c.worker_name(1),
                        expires=45,
                        heartbeat=0,
                        started=0,
                        attempts=1,
                        cancel=0,
                    ),
                ),
            )
        )
        == "FENCE-03"
    )
