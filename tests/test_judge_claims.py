"""Claims of queues that declare more before the judge: claims of one job, leases left on pending ones, attempt ids that
come again, and claims without an order.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from fencepost.model import commands as c
from fencepost.model import outcomes as o
from fencepost.model.queues import BACKFILL, BUILD
from fencepost.model.world import SETUP, Violation
from judging import ATTEMPT, NOW, Told, broken, build, checks_of, clause_of, judge, judged, row_of, unheld

TAKEN = "CLAIM-15", "claim: the job asked for"
NO_OTHER = "CLAIM-15", "claim: no other job than the one asked for"
LEFT_OVER = "CLAIM-15", "claim: a lease left on it"


def asked(job: int, worker: int = 1, **more: object) -> c.Claim:
    return c.Claim(worker, *BUILD.bounds, job=job, **more)  # type: ignore[arg-type]


def won(job: int, token: str = "new", worker: int = 1) -> o.Claimed:
    return o.Claimed((c.Handle(job, worker, token),))


# ------------------------------------------------------------------------------------------------------ of one job


def test_a_claim_takes_the_job_that_it_asks_for_be_it_the_oldest_or_not() -> None:
    story = Told(BUILD).enqueued().enqueued()
    for job, other in ((1, 2), (2, 1)):
        found = checks_of(story.judged(asked(job), won(job)))
        assert found[TAKEN] and found[NO_OTHER]
        assert story.broken(asked(job), won(other)) == NO_OTHER
        assert story.broken(asked(job), o.Claimed()) == TAKEN
    both = o.Claimed((c.Handle(1, 1, "a"), c.Handle(2, 1, "b")))
    assert story.broken(asked(1), both) == NO_OTHER


def test_a_claim_that_asks_for_the_only_job_can_take_no_other() -> None:
    found = checks_of(Told(BUILD).enqueued().judged(asked(1), won(1)))
    assert found[TAKEN] and NO_OTHER not in found


def by_its_id(named: tuple[str, str]) -> tuple[str, str]:
    return named[0], f"{named[1]}, asked for by its id"


WHY_NOT: dict[str, tuple[Told, tuple[str, str]]] = {
    "running": (Told(BUILD).enqueued().claimed(1, token="a"), ("CLAIM-01", "claim: running job")),
    "ended": (
        Told(BUILD).enqueued().claimed(1, token="a").answers(c.Complete(c.Handle(1, 1, "a")), o.Accepted("succeeded")),
        ("CLAIM-01", "claim: terminal job"),
    ),
    "past its deadline": (
        Told(BUILD).enqueued(c.Enqueue(deadline_in=5)).later(5),
        ("CLAIM-04", "claim: deadline passed"),
    ),
    "leased": (Told(BUILD).enqueued().answers(c.Plant(1, "lease", 5), o.DONE), LEFT_OVER),
}


@pytest.mark.parametrize("why", WHY_NOT)
def test_a_job_that_must_not_be_claimed_is_not_claimed_by_name_either(why: str) -> None:
    story, named = WHY_NOT[why]
    story = story.enqueued()
    found = checks_of(story.judged(asked(1), o.Claimed()))
    assert found[by_its_id(named)] and found[NO_OTHER], "job 2 was there to be taken instead"
    assert story.broken(asked(1), won(1)) == by_its_id(named)
    assert story.broken(c.Claim(1), won(1)) == named
    assert story.broken(asked(1), won(2)) == NO_OTHER


def test_a_hook_of_a_claim_of_one_job_is_given_that_one() -> None:
    story = Told(BUILD).enqueued().enqueued()
    claim = asked(2, hook=c.Hook("raise"))
    assert checks_of(story.judged(claim, o.HookRaised((2,))))["CLAIM-12", "claim: hook raised, rolled back"]
    assert story.broken(claim, o.HookRaised((1,))) == NO_OTHER
    assert story.broken(claim, o.HookRaised())[0] == "CLAIM-12"


# ----------------------------------------------------------------------------------------------- a lease left behind


@pytest.mark.parametrize(("offset", "free"), [(-1, False), (0, True), (1, True)])
def test_a_lease_that_is_left_on_a_pending_job_keeps_it_until_the_tick_of_its_expiry(offset: int, free: bool) -> None:
    story = Told(BUILD).enqueued().answers(c.Plant(1, "lease", 10), o.DONE).later(10 + offset)
    usual = c.Claim(1, *BUILD.bounds)
    for claim in (usual, asked(1)):
        if free:
            empty = story.broken(claim, o.Claimed())
            assert empty == (TAKEN if claim.job else ("CLAIM-08", "claim: oldest first"))
            assert clause_of(story.judged(claim, won(1))) == "right"
        else:
            named = by_its_id(LEFT_OVER) if claim.job else LEFT_OVER
            assert checks_of(story.judged(claim, o.Claimed()))[named]
            assert story.broken(claim, won(1)) == named


def test_a_lease_that_is_left_behind_is_the_rows_until_a_claim_writes_another() -> None:
    job = build(**{**unheld("pending"), "expires": NOW})
    after = build(token="three", expires=NOW + 960, lease=960, attempts=3, issued=((1, "two"), (1, "three")))
    right = row_of(after, started=NOW)
    assert judge(job, c.Claim(1), won(1, "three"), right) == "right"
    assert broken(judged(job, c.Claim(1), won(1, "three"), right._replace(expires=NOW)))[0] == "CLAIM-05"
    assert broken(judged(job, c.Recover(), o.Recovered(dml=0), row_of(job, expires=None)))[0] == "REC-10"


def test_other_jobs_are_claimed_past_one_that_a_lease_is_left_on() -> None:
    story = Told(BUILD).enqueued().enqueued().answers(c.Plant(1, "lease", 10), o.DONE)
    one = c.Claim(1)
    assert checks_of(story.judged(one, won(2)))["CLAIM-14", "claim: past an excluded head"]
    assert story.broken(one, o.Claimed()) == ("CLAIM-14", "claim: past an excluded head")


# ---------------------------------------------------------------------------------------------- ids that come again

OWN = "FENCE-03", "claim: a token never repeats"
OF_NO_OTHER = "FENCE-03", "claim: a token that no other job has had"


def given_back() -> Told:
    """Job 1 was claimed as attempt "a" and given back; job 2 waits beside it."""
    story = Told(BUILD).enqueued().enqueued().claimed(1, token="a")
    return story.answers(c.Release(c.Handle(1, 1, "a")), o.Accepted("pending"))


def test_an_attempt_id_does_not_come_again_for_the_same_job() -> None:
    story = given_back()
    for worker in (1, 2):
        assert story.broken(asked(1, worker), won(1, "a", worker)) == OWN
    assert checks_of(story.judged(asked(1), won(1, "b")))[OWN]


def test_an_attempt_id_does_not_come_again_for_another_job() -> None:
    story = given_back()
    assert story.broken(asked(2), won(2, "a")) == OF_NO_OTHER
    found = checks_of(story.judged(asked(2), won(2, "b")))
    assert found[OF_NO_OTHER] and OWN not in found


def test_an_attempt_id_does_not_come_twice_in_one_claim() -> None:
    story = Told(BUILD).enqueued().enqueued()
    both = c.Claim(1, 2, 2)
    assert story.broken(both, o.Claimed((c.Handle(1, 1, "a"), c.Handle(2, 1, "a")))) == OF_NO_OTHER
    assert checks_of(story.judged(both, o.Claimed((c.Handle(1, 1, "a"), c.Handle(2, 1, "b")))))[OF_NO_OTHER]


def test_the_first_attempt_of_all_has_no_id_to_repeat() -> None:
    found = checks_of(Told(BUILD).enqueued().judged(asked(1), won(1, "a")))
    assert not [reason for clause, reason in found if clause == "FENCE-03"]


@pytest.mark.parametrize("token", ["", None, 7])
def test_an_attempt_id_is_a_word(token: c.Token) -> None:
    story = Told(BUILD).enqueued()
    answer = o.Claimed((c.Handle(1, 1, token),))
    assert story.broken(c.Claim(1), answer) == (SETUP, "a token of another kind")


@pytest.mark.parametrize("token", ["a", 0])
def test_a_job_that_has_had_no_attempt_has_no_id(token: c.Token) -> None:
    new = Told(BUILD).judged(c.Enqueue(), o.Enqueued(1, token))  # type: ignore[arg-type]
    assert broken(new) == (SETUP, "a token of another kind")


def test_recovery_and_release_leave_an_attempt_id_and_a_claim_overwrites_it() -> None:
    job = build()
    released = job._replace(**unheld("pending"), attempts=1)
    release = c.Release(ATTEMPT), o.Accepted("pending")
    for token in ("two", None, "whatever"):
        assert judge(job, *release, row_of(released, token=token)) == "right", "it is spent, and nobody reads it"
    after = build(token="three", expires=NOW + 960, lease=960, issued=((1, "two"), (1, "three")))
    claimed = judged(released, c.Claim(1), won(1, "three"), row_of(after, started=NOW, token="two"))
    assert broken(claimed) == ("CLAIM-05", "claim: running row")


# -------------------------------------------------------------------------------------------------- without an order

UNORDERED = replace(BACKFILL, key="unordered", ordered=False)


def of(*jobs: int) -> o.Claimed:
    return o.Claimed(tuple(c.Handle(job, 1) for job in jobs))


def test_a_queue_without_order_may_claim_any_due_jobs_as_many_as_it_likes() -> None:
    story = Told(UNORDERED).enqueued().enqueued().enqueued()
    ordered = Told(BACKFILL).enqueued().enqueued().enqueued()
    for jobs in ((1, 2), (2, 1), (1, 3), (3, 2), (2,), (3,)):
        found = story.judged(c.Claim(1, 2, 2), of(*jobs))
        assert "CLAIM-08" not in {clause for clause, _ in checks_of(found)}
        if sorted(jobs) != [1, 2]:
            assert ordered.broken(c.Claim(1, 2, 2), of(*jobs)) == ("CLAIM-08", "claim: oldest first")


def test_a_queue_without_order_still_claims_what_is_due_and_nothing_else() -> None:
    """That somebody gets a due job at all binds it too, whatever its order."""
    story = Told(UNORDERED).enqueued().enqueued().answers(c.RequestCancel(1, True), o.CancelAnswer("recorded"))
    assert story.broken(c.Claim(1), o.Claimed())[0] == "CLAIM-14"
    assert story.broken(c.Claim(1), of(1)) == ("CLAIM-02", "claim: cancel requested")
    assert clause_of(story.judged(c.Claim(1), of(2))) == "right"
    alone = Told(UNORDERED).enqueued()
    assert alone.broken(c.Claim(1), o.Claimed()) == ("CLAIM-14", "claim: a due job, where there is one")
    assert checks_of(alone.judged(c.Claim(1), of(1)))["CLAIM-14", "claim: a due job, where there is one"]


TIED = replace(BACKFILL, key="tied", monotonic_ids=False)


def test_where_ids_do_not_rise_jobs_of_one_instant_are_claimed_in_any_order() -> None:
    story = Told(TIED).enqueued().enqueued().later(1).enqueued()
    for jobs in ((1,), (2,), (1, 2), (2, 1)):
        found = checks_of(story.judged(c.Claim(1, 2, 2), of(*jobs)))
        assert found["CLAIM-08", "claim: oldest first"]
    for jobs in ((3,), (1, 3), (2, 3)):
        assert story.broken(c.Claim(1, 2, 2), of(*jobs)) == ("CLAIM-08", "claim: oldest first")
    even = Told(TIED).enqueued().enqueued()
    assert ("CLAIM-08", "claim: oldest first") not in checks_of(even.judged(c.Claim(1), of(2))), "no order to break"


def test_a_job_of_the_same_instant_stands_before_none_where_ids_do_not_rise() -> None:
    for spec, barred in ((TIED, False), (BACKFILL, True)):
        story = Told(spec).enqueued().enqueued().answers(c.RequestCancel(1, True), o.CancelAnswer("recorded"))
        found = checks_of(story.judged(c.Claim(1, 1, 1), of(2)))
        assert (("CLAIM-14", "claim: past an excluded head") in found) is barred
        assert (("CLAIM-02", "claim: cancel requested") in found) is barred
        assert story.broken(c.Claim(1, 1, 1), o.Claimed())[0] == ("CLAIM-14" if barred else "CLAIM-08")


def test_a_hook_is_given_any_of_the_jobs_of_one_instant_where_ids_do_not_rise() -> None:
    story = Told(TIED).enqueued().enqueued().later(1).enqueued()
    for given, clause in (((2,), "right"), ((1, 2), "right"), ((3,), "CLAIM-08"), ((2, 3), "CLAIM-08")):
        assert clause_of(story.judged(c.Claim(1, 2, 2, hook=c.Hook("raise")), o.HookRaised(given))) == clause
    poisoned = c.Claim(1, 1, 1, hook=c.Hook("poison", 2))
    assert clause_of(story.judged(poisoned, o.HookRaised((2,)))) == "right"
    assert clause_of(story.judged(poisoned, o.Claimed(of(1).handles, (1,)))) == "right"
    late = c.Claim(1, 1, 1, hook=c.Hook("poison", 3))
    assert story.broken(late, o.HookRaised((3,))) == ("CLAIM-12", "claim: hook raised by itself")


def test_a_hook_of_a_queue_without_order_is_given_any_due_jobs_within_the_bounds() -> None:
    story = Told(UNORDERED).enqueued().enqueued().enqueued()
    raising = c.Claim(1, 2, 2, hook=c.Hook("raise"))
    for given in ((1,), (3,), (2, 3), (3, 1)):
        assert not isinstance(story.judged(raising, o.HookRaised(given)), Violation)
    assert story.broken(raising, o.HookRaised((1, 2, 3)))[0] == "CLAIM-07"
    assert story.broken(raising, o.HookRaised((7,))) == ("CLAIM-12", "claim: hook given the claimed jobs")
    poisoned = c.Claim(1, 2, 2, hook=c.Hook("poison", 3))
    assert not isinstance(story.judged(poisoned, o.HookRaised((3, 1))), Violation)
    assert story.broken(poisoned, o.HookRaised((1, 2))) == ("CLAIM-12", "claim: hook given the claimed jobs")
