"""Builds in histories of commands that ran at once: uploads, claims of one job, attempt ids, deadlines that pass
between two statements, and what lost replies may have done to them.
"""

from __future__ import annotations

import pytest
from fencepost.model import commands as c
from fencepost.model import outcomes as o
from fencepost.model.history import Operation
from fencepost.model.linear import judge
from fencepost.model.queues import BUILD, FAILED, PENDING, RUNNING, SUCCEEDED
from fencepost.model.world import Violation, World
from histories import DONE, ENQUEUED, W1, W2, after, at_once, broken, legal, row

LEASE = BUILD.lease_seconds
FIRST, SECOND, THIRD = c.Handle(1, 1, "a"), c.Handle(1, 1, "b"), c.Handle(1, 2, "c")
ONE = after(ENQUEUED, spec=BUILD)
TWO = after(ENQUEUED, (c.Enqueue(), o.Enqueued(2)), spec=BUILD)
HELD = after(ENQUEUED, (c.Claim(1), o.Claimed((FIRST,))), spec=BUILD)
TAKEN = HELD.jobs[0]
STORED = row(TAKEN, artifact="a")
PUT = c.PutArtifact(FIRST)
ACCEPTED = o.Accepted(RUNNING)


def seen(world: World) -> World:
    """The same world, its rows looked at."""
    return world._replace(rows=tuple(row(job) for job in world.jobs))


# ------------------------------------------------------------------------------------------------------------ uploads


def test_an_upload_beside_a_completion_is_stored_before_it_or_refused() -> None:
    ended = row(TAKEN, status=SUCCEEDED, owner=None, expires=None, finished=0)
    complete = (c.Complete(FIRST), DONE)
    legal(judge(HELD, at_once((PUT, ACCEPTED), complete), (ended._replace(artifact="a"),)))
    legal(judge(HELD, at_once((PUT, o.REJECTED), complete), (ended,)))
    assert broken(judge(HELD, at_once((PUT, ACCEPTED), complete), (ended,))) == "FENCE-04", "it was lost"
    assert broken(judge(HELD, at_once((PUT, o.REJECTED), complete), (ended._replace(artifact="a"),))) == "FENCE-04"


AGAIN = (c.Release(FIRST), o.Accepted(PENDING)), (c.Claim(1), o.Claimed((SECOND,)))
"""What the same worker does beside its upload: it gives the job back and claims it once more."""


def test_an_upload_of_an_attempt_that_was_given_back_is_not_the_next_ones() -> None:
    upload = Operation(PUT, ACCEPTED, 0, 9, 0)
    history = [upload, Operation(*AGAIN[0], 1, 2, 0), Operation(*AGAIN[1], 3, 4, 0)]
    claimed = row(TAKEN, token="b")
    legal(judge(HELD, history, (claimed,)))
    legal(judge(HELD, [upload._replace(outcome=o.REJECTED), *history[1:]], (claimed,)))
    assert broken(judge(HELD, history, (claimed._replace(artifact="a"),))) == "FENCE-04"


def test_a_refused_upload_deletes_nothing_that_its_attempt_has_stored_meanwhile() -> None:
    """Sent twice: once in time, and once read with a clock at which the lease has run out."""
    history = [Operation(PUT, ACCEPTED, 0, 9, LEASE - 1), Operation(PUT, o.REJECTED, 1, 8, LEASE)]
    legal(judge(HELD, history, (STORED,)))
    assert broken(judge(HELD, history, (row(TAKEN),))) == "FENCE-07"
    lost = [history[0], history[1]._replace(outcome=o.UNKNOWN)]
    legal(judge(HELD, lost, (STORED,)))
    assert broken(judge(HELD, lost, (row(TAKEN),))) == "FENCE-07"


def test_refused_uploads_alone_may_have_deleted_what_was_stored_before() -> None:
    world = seen(after(ENQUEUED, (c.Claim(1), o.Claimed((FIRST,))), (PUT, ACCEPTED), spec=BUILD))
    refused = at_once((c.Complete(W2), o.REJECTED), (PUT, o.REJECTED), now=LEASE)
    legal(judge(world, refused, (STORED,)))
    assert broken(judge(world, refused, (row(TAKEN),))) == "FENCE-07"


@pytest.mark.parametrize("artifact", ["a", None])
def test_a_lost_upload_was_stored_or_not(artifact: str | None) -> None:
    lost = at_once((PUT, o.UNKNOWN))
    legal(judge(HELD, lost, (row(TAKEN, artifact=artifact),)))
    assert isinstance(judge(HELD, lost, (row(TAKEN, artifact="stray"),)), Violation)
    assert isinstance(judge(HELD, at_once((PUT, o.UNKNOWN), now=LEASE), (STORED,)), Violation), "it came too late"


def test_a_lost_upload_may_be_stored_before_a_completion_that_has_ended() -> None:
    ended = row(TAKEN, status=SUCCEEDED, owner=None, expires=None, finished=0)
    history = [Operation(PUT, o.UNKNOWN, 0, 1, 0), Operation(c.Complete(FIRST), DONE, 2, 3, 0)]
    for artifact in ("a", None):
        legal(judge(HELD, history, (ended._replace(artifact=artifact),)))


def test_an_artifact_that_outlives_its_attempts_id_breaks_the_invariant_in_races_too() -> None:
    world = after(ENQUEUED, (c.Claim(1), o.Claimed((FIRST,))), (PUT, ACCEPTED), spec=BUILD)
    ended = row(world.jobs[0], status=SUCCEEDED, owner=None, expires=None, finished=0)
    history = at_once((c.Complete(FIRST), DONE), (c.Renew(FIRST), ACCEPTED))
    legal(judge(world, history, (ended,)))
    assert broken(judge(world, history, (ended._replace(token=None),))) == "INV-5"


# ------------------------------------------------------------------------------------------------ repeated successes


def test_a_success_that_is_reported_twice_at_once_is_one() -> None:
    twice = at_once((c.Complete(FIRST), DONE), (c.Complete(FIRST), DONE))
    ended = row(TAKEN, status=SUCCEEDED, owner=None, expires=None, finished=0)
    legal(judge(HELD, twice, (ended,)))
    owners = after(ENQUEUED, (c.Claim(1), o.Claimed((W1,))))
    other = at_once((c.Complete(W1), DONE), (c.Complete(W1), DONE))
    assert broken(judge(owners, other, (ended._replace(token=None),))) == "TERM-02", "on other queues only one is"


def test_a_success_may_be_reported_again_after_a_reply_that_was_lost() -> None:
    history = [Operation(c.Complete(FIRST), o.UNKNOWN, 0, 1, 0), Operation(c.Complete(FIRST), DONE, 2, 3, LEASE)]
    ended = row(TAKEN, status=SUCCEEDED, owner=None, expires=None, finished=0)
    legal(judge(HELD, history, (ended,)))
    refused = [history[0], history[1]._replace(outcome=o.REJECTED, now=0)]
    assert broken(judge(HELD, refused, (ended,))) == "FENCE-05"
    too_late = [history[0], history[1]._replace(outcome=o.REJECTED)]
    legal(judge(HELD, too_late, (row(TAKEN),)))


# ---------------------------------------------------------------------------------------------- claims, and their ids


def test_a_claim_of_one_job_beside_a_usual_one() -> None:
    usual, asked = c.Claim(1), c.Claim(2, job=2)
    first, second = row(TAKEN), row(TAKEN, owner=c.worker_name(2), token="c")
    both = at_once((usual, o.Claimed((FIRST,))), (asked, o.Claimed((c.Handle(2, 2, "c"),))))
    legal(judge(TWO, both, (first, second)))
    wrong = at_once((usual, o.Claimed()), (asked, o.Claimed((THIRD,))))
    assert broken(judge(TWO, wrong, (second, row(TWO.jobs[1])))) == "CLAIM-15"
    same = at_once((usual, o.Claimed((FIRST,))), (c.Claim(2, job=1), o.Claimed((THIRD,))))
    assert broken(judge(TWO, same, (second._replace(attempts=2), row(TWO.jobs[1])))) == "CLAIM-06"


def test_claims_that_overlap_mint_no_id_twice() -> None:
    claims = (c.Claim(1), o.Claimed((FIRST,))), (c.Claim(2), o.Claimed((c.Handle(2, 2, "a"),)))
    rows = row(TAKEN), row(TAKEN, owner=c.worker_name(2))
    assert broken(judge(TWO, at_once(*claims), rows)) == "FENCE-03"
    apart = claims[0], (c.Claim(2), o.Claimed((c.Handle(2, 2, "c"),)))
    legal(judge(TWO, at_once(*apart), (rows[0], rows[1]._replace(token="c"))))


def test_an_id_that_comes_again_to_the_same_job_breaks_the_fence() -> None:
    history = [Operation(c.Release(FIRST), o.Accepted(PENDING), 0, 5, 0),
               Operation(c.Claim(1), o.Claimed((FIRST,)), 1, 9, 0)]  # fmt: skip
    assert broken(judge(HELD, history, (row(TAKEN),))) == "FENCE-03"


@pytest.mark.parametrize("token", ["a", "whatever it minted"])
def test_a_lost_claim_has_whatever_id_its_row_tells(token: str) -> None:
    lost = at_once((c.Claim(1), o.UNKNOWN))
    legal(judge(ONE, lost, (row(TAKEN, token=token),)))
    legal(judge(ONE, lost, (row(ONE.jobs[0]),)))
    for wrong in ({"token": None}, {"owner": c.worker_name(2)}, {"expires": LEASE + 1}):
        assert isinstance(judge(ONE, lost, (row(TAKEN, token=token)._replace(**wrong),)), Violation)


def test_a_lost_claim_takes_no_id_that_another_attempt_has_had() -> None:
    pending = after(ENQUEUED, (c.Claim(1), o.Claimed((FIRST,))), (c.Release(FIRST), o.Accepted(PENDING)), spec=BUILD)
    lost = at_once((c.Claim(1), o.UNKNOWN))
    legal(judge(pending, lost, (row(TAKEN, token="b"),)))
    assert isinstance(judge(pending, lost, (row(TAKEN, token="a"),)), Violation)


def test_a_lost_claim_of_one_job_took_that_one() -> None:
    lost = at_once((c.Claim(1, job=2), o.UNKNOWN))
    pending, taken = row(TWO.jobs[0]), row(TAKEN)
    legal(judge(TWO, lost, (pending, taken)))
    legal(judge(TWO, lost, (pending, pending)))
    assert isinstance(judge(TWO, lost, (taken, pending)), Violation)


def test_what_follows_a_lost_claim_need_not_know_its_id() -> None:
    """The lost attempt runs out, a sweep puts the job back, and another claim takes it."""
    history = [
        Operation(c.Claim(1), o.UNKNOWN, 0, 1, 0),
        Operation(c.Recover(), o.Recovered((o.RecoveredRow(1, PENDING),), 1), 2, 3, LEASE),
        Operation(c.Claim(2), o.Claimed((THIRD,)), 4, 5, LEASE),
    ]
    again = row(TAKEN, owner=c.worker_name(2), token="c", attempts=2, expires=2 * LEASE, heartbeat=LEASE, started=LEASE)
    legal(judge(ONE, history, (again,)))
    assert isinstance(judge(ONE, history, (again._replace(attempts=1),)), Violation)


# ----------------------------------------------------------------------------- a deadline between two statements

DUE = 60
DATED = after((c.Enqueue(deadline_in=DUE), o.Enqueued(1)), spec=BUILD)
ENDED = o.Recovered((o.RecoveredRow(1, FAILED),), 1)
NOTHING = o.Recovered(dml=0)


def test_a_claim_in_the_last_instant_beside_a_sweep_after_the_deadline() -> None:
    claim = Operation(c.Claim(1), o.Claimed((FIRST,)), 0, 9, DUE - 1)
    sweep = Operation(c.Recover(), ENDED, 1, 8, DUE)
    running = row(TAKEN, expires=DUE, heartbeat=DUE - 1, started=DUE - 1, deadline=DUE)
    pending = row(DATED.jobs[0])
    failed = pending._replace(status=FAILED, finished=DUE)
    legal(judge(DATED, [claim, sweep._replace(outcome=NOTHING)], (running,)))
    legal(judge(DATED, [claim._replace(outcome=o.Claimed()), sweep], (failed,)))
    legal(judge(DATED, [claim, sweep], (failed._replace(attempts=1, token="a"),)))
    late = running._replace(expires=DUE + LEASE, heartbeat=DUE, started=DUE)
    assert broken(judge(DATED, [claim._replace(now=DUE)], (late,))) == "CLAIM-04"
    uncut = running._replace(expires=DUE - 1 + LEASE)
    assert broken(judge(DATED, [claim, sweep._replace(outcome=NOTHING)], (uncut,))) == "CLAIM-04"
    assert broken(judge(DATED, [claim, sweep], (running,))) == "CLAIM-01", "what the sweep had ended was claimed"


def test_a_sweep_that_ends_what_was_given_back_meanwhile_has_overwritten_it() -> None:
    """It read a used-up budget; the release gave the attempt back, and the deadline is far."""
    given = c.Enqueue(max_attempts=1, deadline_in=2 * LEASE), o.Enqueued(1)
    world = after(given, (c.Claim(1), o.Claimed((FIRST,))), spec=BUILD)
    release = Operation(c.Release(FIRST), o.Accepted(PENDING), 0, 9, LEASE - 1)
    sweep = Operation(c.Recover(), ENDED, 1, 8, LEASE)
    pending = row(world.jobs[0], status=PENDING, owner=None, expires=None, heartbeat=None, attempts=0)
    legal(judge(world, [release, sweep._replace(outcome=NOTHING)], (pending,)))
    failed = pending._replace(status=FAILED, finished=LEASE)
    assert broken(judge(world, [release, sweep], (failed,))) == "REC-07"
    alone = [Operation(release.command, release.outcome, 0, 1, LEASE - 1), Operation(c.Recover(), ENDED, 2, 3, LEASE)]
    assert broken(judge(world, alone, (failed,))) == "DEAD-01", "nothing is overwritten that came before it"


@pytest.mark.parametrize(("status", "clause"), [(SUCCEEDED, "TERM-02"), (FAILED, "REC-07")])
def test_the_row_tells_which_of_a_success_and_a_sweep_past_the_deadline_came_too_late(status: str, clause: str) -> None:
    world = after((c.Enqueue(deadline_in=DUE), o.Enqueued(1)), (c.Claim(1), o.Claimed((FIRST,))), spec=BUILD)
    ended = row(world.jobs[0], status=status, owner=None, expires=None, finished=DUE)
    history = [Operation(c.Complete(FIRST), DONE, 0, 9, DUE - 1), Operation(c.Recover(), ENDED, 1, 8, DUE)]
    assert broken(judge(world, history, (ended,))) == clause


@pytest.mark.parametrize(
    ("write", "clause"),
    [(c.Complete(FIRST), "DEAD-01"), (c.Release(FIRST), "DEAD-01"), (PUT, "DEAD-01"), (c.Renew(FIRST), "LEASE-03")],
    ids=lambda each: each.verb if isinstance(each, c.Command) else each,
)
def test_a_write_is_judged_by_the_clock_that_it_read_whatever_deadline_passes(
    write: c.HandleCommand, clause: str
) -> None:
    """The deadline was planted, so that the lease runs on beyond it."""
    world = after(
        ENQUEUED, (c.Claim(1), o.Claimed((FIRST,))), (c.Plant(1, "deadline", DUE), o.DONE), spec=BUILD
    )  # fmt: skip
    job = world.jobs[0]
    answer, changed = {
        "complete": (DONE, {"status": SUCCEEDED, "owner": None, "expires": None, "finished": DUE}),
        "release": (o.Accepted(PENDING), {"status": PENDING, "owner": None, "expires": None, "attempts": 0}),
        "put_artifact": (ACCEPTED, {"artifact": "a"}),
        "renew": (ACCEPTED, {"expires": DUE, "heartbeat": DUE - 1}),
    }[write.verb]
    done = row(job, **changed)
    in_time = Operation(write, answer, 0, 9, DUE - 1)
    beside = Operation(c.Recover(), NOTHING, 1, 8, DUE)
    legal(judge(world, [in_time, beside], (done,)))
    assert broken(judge(world, [in_time._replace(now=DUE), beside], (done,))) == clause
    refused = in_time._replace(outcome=o.REJECTED)
    assert broken(judge(world, [refused, beside], (row(job),))) == ("LEASE-03" if write.verb == "renew" else "FENCE-01")
    legal(judge(world, [refused._replace(now=DUE), beside], (row(job),)))


def test_a_lost_claim_cut_its_lease_to_the_deadline() -> None:
    lost = at_once((c.Claim(1), o.UNKNOWN))
    running = row(TAKEN, expires=DUE, heartbeat=0, deadline=DUE)
    legal(judge(DATED, lost, (running,)))
    assert isinstance(judge(DATED, lost, (running._replace(expires=LEASE),)), Violation)
    assert isinstance(judge(DATED, at_once((c.Claim(1), o.UNKNOWN), now=DUE), (running,)), Violation)
