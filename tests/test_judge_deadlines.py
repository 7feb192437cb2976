"""Deadlines before the judge: no claim past one, no lease beyond one, no retry after one; where the boundaries lie."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from fencepost.model import commands as c
from fencepost.model import outcomes as o
from fencepost.model.queues import BACKFILL, BUILD, QueueSpec
from fencepost.model.step import step
from fencepost.model.world import SETUP, Context, Record, Step, World
from judging import ATTEMPT, NOW, broken, build, checks_of, judge, judged, record, row_of, unheld

DATED = replace(BACKFILL, key="dated", deadline=True)
"""A queue of one's own that has deadlines and, unlike build, cancels and stored codes."""
SHORT = replace(DATED, key="short of time", claim_margin_seconds=60)
BOTH = pytest.mark.parametrize("spec", [BUILD, DATED], ids=lambda spec: spec.key)
AROUND = pytest.mark.parametrize(("offset", "passed"), [(-1, False), (0, True), (1, True)])
MINTED: dict[str, c.Token] = {"owner": None, "attempt_id": "three"}


def pending(spec: QueueSpec, **changes: Any) -> Record:
    return record(spec, **{**unheld("pending"), **changes})


def claimed(job: Record, expires: int, heartbeat: int = NOW) -> tuple[o.Outcome, Record]:
    """The answer of a claim that takes this job, and the job after it."""
    token = MINTED[job.spec.fence]
    pair = (1, token)
    issued = (*(old for old in job.issued if old != pair), pair)
    after = job._replace(
        status="running", owner=1, token=token, expires=expires, lease=expires - heartbeat, issued=issued,
        attempts=job.attempts + 1, artifact=None,
    )  # fmt: skip
    return o.Claimed((c.Handle(1, 1, token),)), after


# ------------------------------------------------------------------------------------------------ no claim past one


@BOTH
@AROUND
def test_a_job_is_claimed_until_the_tick_before_its_deadline(spec: QueueSpec, offset: int, passed: bool) -> None:
    job = pending(spec, deadline=NOW - offset)
    won, after = claimed(job, NOW - offset)
    if passed:
        assert broken(judged(job, c.Claim(1), won)) == ("CLAIM-04", "claim: deadline passed")
        assert checks_of(judged(job, c.Claim(1), o.Claimed()))["CLAIM-04", "claim: deadline passed"]
    else:
        assert judge(job, c.Claim(1), won, row_of(after, started=NOW)) == "right"
        assert broken(judged(job, c.Claim(1), o.Claimed())) == ("CLAIM-08", "claim: oldest first")


@BOTH
def test_a_hook_that_was_given_a_job_past_its_deadline_tells_on_the_claim(spec: QueueSpec) -> None:
    job = pending(spec, deadline=NOW)
    raised = judged(job, c.Claim(1, hook=c.Hook("raise")), o.HookRaised((1,)))
    assert broken(raised) == ("CLAIM-04", "claim: deadline passed")


# ------------------------------------------------------------------------------------------------ no lease beyond one


@BOTH
@pytest.mark.parametrize(
    ("lease", "ahead", "cut"), [(None, -1, True), (None, 0, False), (None, 1, False), (7, -1, True), (7, 0, False)]
)
def test_a_claim_cuts_its_lease_to_a_deadline_that_comes_before_its_end(
    spec: QueueSpec, lease: int | None, ahead: int, cut: bool
) -> None:
    span = lease or spec.lease_seconds
    job = pending(spec, deadline=NOW + span + ahead)
    won, after = claimed(job, NOW + min(span, span + ahead))
    right = row_of(after, started=NOW)
    claim = c.Claim(1, lease=lease)
    found = checks_of(judged(job, claim, won, right))
    assert (("CLAIM-04", "claim: lease cut to the deadline") in found) is cut
    beyond = ("CLAIM-04", "claim: lease cut to the deadline") if cut else ("CLAIM-05", "claim: running row")
    for wrong in (NOW + span, NOW + span + 1) if cut else (NOW + span + 2,):
        assert broken(judged(job, claim, won, right._replace(expires=wrong))) == beyond
    for other in ({"expires": None}, {"expires": NOW + 1}, {"heartbeat": NOW + 1}):
        assert broken(judged(job, claim, won, right._replace(**other))) == ("CLAIM-05", "claim: running row")


@BOTH
@pytest.mark.parametrize(("ahead", "cut"), [(-1, True), (0, False), (1, False)])
def test_a_renewal_cuts_its_lease_to_a_deadline_that_comes_before_its_end(
    spec: QueueSpec, ahead: int, cut: bool
) -> None:
    span = spec.lease_seconds
    job = record(spec, deadline=NOW + span + ahead)
    expires = NOW + min(span, span + ahead)
    right = row_of(job._replace(expires=expires, lease=expires - NOW))
    renew, accepted = c.Renew(c.Handle(1, 1, job.token)), o.Accepted("running")
    found = checks_of(judged(job, renew, accepted, right))
    assert (("LEASE-03", "renew: lease cut to the deadline") in found) is cut
    beyond = "LEASE-03", "renew: lease cut to the deadline" if cut else "renew: running row"
    assert broken(judged(job, renew, accepted, right._replace(expires=NOW + span + 2))) == beyond
    for other in ({"expires": NOW + 7}, {"heartbeat": 7}):
        assert broken(judged(job, renew, accepted, right._replace(**other))) == ("LEASE-03", "renew: running row")
    assert broken(judged(job, renew, accepted)) == ("FENCE-06", "renew: running row"), "it did nothing"


@BOTH
def test_a_lease_that_was_cut_ends_when_its_row_says_not_after_the_usual_time(spec: QueueSpec) -> None:
    """LEASE-07: by its own reckoning an asker would come to another answer; the deadline of this one was moved on."""
    job = record(spec, expires=NOW, lease=5, deadline=NOW + 500)
    left = judged(job, c.Recover(), o.Recovered(dml=0))
    assert broken(left) == ("LEASE-07", "sweep: expiry as recorded")


# ------------------------------------------------------------------------------------------------- no retry after one


def moved(status: str) -> o.Recovered:
    return o.Recovered((o.RecoveredRow(1, status),), 1)


@BOTH
@AROUND
def test_a_sweep_ends_a_pending_job_from_its_deadline_on(spec: QueueSpec, offset: int, passed: bool) -> None:
    job = pending(spec, deadline=NOW - offset)
    failed = row_of(job._replace(status="failed"))
    if passed:
        named = "DEAD-01", "sweep: pending past its deadline"
        assert checks_of(judged(job, c.Recover(), moved("failed"), failed))[named]
        assert broken(judged(job, c.Recover(), o.Recovered(dml=0))) == named
        assert broken(judged(job, c.Recover(), moved("pending"))) == named
        assert broken(judged(job, c.StartUp(1), o.Recovered(dml=0))) == named
        assert broken(judged(job, c.Tick(), o.Recovered(dml=0))) == ("REC-04", "tick: recovers")
    else:
        named = "DEAD-01", "sweep: pending before its deadline"
        assert checks_of(judged(job, c.Recover(), o.Recovered(dml=0)))[named]
        assert broken(judged(job, c.Recover(), moved("failed"), failed)) == named
        undated = pending(spec)
        assert named not in checks_of(judged(undated, c.Recover(), o.Recovered(dml=0)))
        assert broken(judged(undated, c.Recover(), moved("failed"), row_of(undated)))[0] == "REC-07"


def test_a_pending_job_that_a_sweep_ended_keeps_no_lease() -> None:
    job = build(**unheld("pending"), deadline=NOW)._replace(expires=NOW)
    kept = row_of(job._replace(status="failed"))
    assert broken(judged(job, c.Recover(), moved("failed"), kept)) == ("TERM-03", "sweep: failed row")
    lost = build(expires=NOW, attempts=3)
    kept = row_of(lost._replace(status="failed", owner=0))
    assert broken(judged(lost, c.Recover(), moved("failed"), kept)) == ("REC-01", "sweep: failed row")


@pytest.mark.parametrize(("left", "open_to"), [(61, True), (60, False), (1, False)])
def test_a_job_that_has_too_little_time_left_is_not_begun(left: int, open_to: bool) -> None:
    job = pending(SHORT, deadline=NOW + left)
    answer, after = claimed(job, expires=NOW + left)
    named = "CLAIM-04", "claim: too little time left"
    if open_to:
        assert judge(job, c.Claim(1), answer, row_of(after, started=NOW)) == "right"
        assert judge(job, c.Claim(1), o.Claimed()) == "CLAIM-08"
    else:
        assert checks_of(judged(job, c.Claim(1), o.Claimed()))[named]
        assert broken(judged(job, c.Claim(1), answer, row_of(after, started=NOW))) == named
    assert judge(job, c.Recover(), o.Recovered(dml=0)) == "right", "it is not over yet"


LATE = build(deadline=NOW)
"""Its deadline was moved, so that its lease runs on beyond it."""
RETRIED = c.Fail(ATTEMPT, "lease", "PAGE_JOB_INTERRUPTED")
PAST = "DEAD-01", "fail: deadline passed"


def test_a_failure_past_a_deadline_is_refused_or_final_and_never_retried() -> None:
    assert checks_of(judged(LATE, RETRIED, o.REJECTED))[PAST]
    ended = row_of(LATE._replace(**unheld("failed")))
    assert checks_of(judged(LATE, RETRIED, o.Accepted("failed"), ended))[PAST]
    again = row_of(LATE._replace(**unheld("pending")))
    assert broken(judged(LATE, RETRIED, o.Accepted("pending"), again)) == PAST
    assert broken(judged(LATE, RETRIED, o.Accepted("failed"), again))[0] == "TERM-03"
    for write in (c.Complete, c.Release, c.PutArtifact):
        assert broken(judged(LATE, write(ATTEMPT), o.Accepted("running"), ended))[0] == "DEAD-01"


def test_a_code_that_nobody_may_fail_with_is_refused_past_a_deadline_too() -> None:
    ended = row_of(LATE._replace(**unheld("failed")))
    wrong = c.Fail(ATTEMPT, "infra", "PAGE_VALIDATION_FAILED")
    assert checks_of(judged(LATE, wrong, o.REJECTED))
    assert broken(judged(LATE, wrong, o.Accepted("failed"), ended)) == PAST


def test_past_a_deadline_a_failure_may_say_so_in_its_code() -> None:
    job = record(DATED, deadline=NOW)
    infra = c.Fail(c.Handle(1, 1), "infra", "RENDER_SERVICE_UNAVAILABLE")
    for code, clause in (
        ("RENDER_SERVICE_UNAVAILABLE", "right"), ("LEASE_TIMEOUT_DEADLINE", "right"),
        ("PAGE_VALIDATION_FAILED", "ERR-03"), (None, "TERM-03"),
    ):  # fmt: skip
        ended = row_of(job._replace(**unheld("failed")), error=code)
        assert judge(job, infra, o.Accepted("failed"), ended) == clause
    asked = job._replace(cancel=50)
    cancelled = row_of(asked._replace(**unheld("cancelled")))
    assert judge(asked, infra, o.Accepted("cancelled"), cancelled) == "right"
    assert judge(asked, infra, o.Accepted("failed"), row_of(asked._replace(**unheld("failed")))) == "DEAD-01"


@BOTH
@AROUND
def test_a_sweep_ends_an_expired_job_past_its_deadline_whatever_its_budget(
    spec: QueueSpec, offset: int, passed: bool
) -> None:
    # The lease, cut to a deadline that somebody has moved since, ran out before.
    job = record(spec, expires=NOW - 9, lease=spec.lease_seconds, deadline=NOW - offset)
    again, failed = row_of(job._replace(**unheld("pending"))), row_of(job._replace(**unheld("failed")))
    failed = failed._replace(error="LEASE_TIMEOUT_DEADLINE" if spec.stores_code else None)
    named = ("DEAD-01", "sweep: expired past its deadline") if passed else ("REC-01", "sweep: expired, re-queued")
    right, wrong = (("failed", failed), ("pending", again)) if passed else (("pending", again), ("failed", failed))
    assert checks_of(judged(job, c.Recover(), moved(right[0]), right[1]))[named]
    assert broken(judged(job, c.Recover(), moved(wrong[0]), wrong[1])) == named
    assert broken(judged(job, c.Recover(), o.Recovered(dml=0))) == named


@BOTH
def test_a_deadline_that_passed_when_no_attempt_was_left_tests_nothing(spec: QueueSpec) -> None:
    job = record(spec, expires=NOW, lease=spec.lease_seconds, deadline=NOW, attempts=3)
    failed = row_of(job._replace(**unheld("failed")))
    failed = failed._replace(error="LEASE_TIMEOUT_DEADLINE" if spec.stores_code else None)
    found = judged(job, c.Recover(), moved("failed"), failed)
    assert checks_of(found)["DEAD-01", "sweep: expired past its deadline"] is False


@BOTH
def test_a_deadline_is_no_reason_to_sweep_a_job_whose_lease_is_valid(spec: QueueSpec) -> None:
    job = record(spec, deadline=NOW)
    assert broken(judged(job, c.Recover(), moved("failed"))) == ("REC-02", "sweep: valid lease untouched")
    assert judge(job, c.Recover(), o.Recovered(dml=0)) == "right"


@BOTH
def test_a_process_that_starts_ends_its_own_jobs_past_their_deadlines(spec: QueueSpec) -> None:
    job = record(spec, deadline=NOW)
    failed = row_of(job._replace(**unheld("failed")))
    failed = failed._replace(error="LEASE_TIMEOUT_DEADLINE" if spec.stores_code else None)
    found = checks_of(judged(job, c.StartUp(0), moved("failed"), failed))
    assert found["DEAD-01", "sweep: expired past its deadline"] and found["REC-05", "start-up: own prefix recovered"]
    assert broken(judged(job, c.StartUp(0), moved("pending"))) == ("DEAD-01", "sweep: expired past its deadline")
    assert broken(judged(job, c.StartUp(0), o.Recovered(dml=0))) == ("REC-05", "start-up: own prefix recovered")
    assert broken(judged(job, c.StartUp(1), moved("failed"))) == ("REC-05", "start-up: foreign prefix untouched")


@pytest.mark.parametrize(
    ("job", "named"),
    [
        (record(DATED, expires=NOW, cancel=50, deadline=NOW), ("CANCEL-05", "sweep: expired with a cancel request")),
        (pending(DATED, cancel=50, deadline=NOW), ("CLAIM-02", "sweep: pending with a cancel request")),
    ],
    ids=["expired", "pending"],
)
def test_a_cancel_request_outranks_a_deadline(job: Record, named: tuple[str, str]) -> None:
    cancelled = row_of(job._replace(**unheld("cancelled")))
    assert checks_of(judged(job, c.Recover(), moved("cancelled"), cancelled))[named]
    assert broken(judged(job, c.Recover(), moved("failed"))) == named


def test_a_failure_past_the_deadline_is_not_retried() -> None:
    job = build(deadline=NOW)
    retry = c.Fail(ATTEMPT, "lease", "PAGE_SCREENSHOT_JOB_INTERRUPTED")
    again = row_of(job._replace(**unheld("pending")))
    assert broken(judged(job, retry, o.Accepted("pending"), again)) == ("DEAD-01", "fail: deadline passed")
    assert checks_of(judged(job, retry, o.REJECTED))["DEAD-01", "fail: deadline passed"]


# --------------------------------------------------------------------------------------------------- codes and fields


@pytest.mark.parametrize(
    ("code", "named"),
    [
        ("RENDER_DEADLINE_EXCEEDED", None),
        ("LEASE_TIMEOUT_DEADLINE", None),
        ("PAGE_VALIDATION_FAILED", None),
        ("AI_RUN_PROCESS_STOPPED", "TERM-03"),
        (None, "TERM-03"),
    ],
)
@pytest.mark.parametrize("job", [record(DATED, expires=NOW, deadline=NOW), pending(DATED, deadline=NOW)])
def test_whoever_ends_a_job_past_its_deadline_records_a_code_of_any_family(
    job: Record, code: str | None, named: str | None
) -> None:
    found = judged(job, c.Recover(), moved("failed"), row_of(job._replace(**unheld("failed")), error=code))
    if named is None:
        assert ("TERM-03", "sweep: failed row") in checks_of(found)
    else:
        assert broken(found) == (named, "sweep: failed row")


def test_before_the_deadline_recovery_records_what_it_is() -> None:
    job = record(DATED, expires=NOW, attempts=3, deadline=NOW + 1)
    ended = row_of(job._replace(**unheld("failed")), error="RENDER_DEADLINE_EXCEEDED")
    assert broken(judged(job, c.Recover(), moved("failed"), ended)) == ("REC-01", "sweep: failed row")


@pytest.mark.parametrize(
    ("command", "answer", "after", "clause"),
    [
        (c.Renew(ATTEMPT), o.Accepted("running"), {"expires": NOW + 500, "lease": 500}, "LEASE-03"),
        (c.Complete(ATTEMPT), o.Accepted("succeeded"), unheld("succeeded"), "TERM-03"),
        (c.Release(ATTEMPT), o.Accepted("pending"), {**unheld("pending"), "attempts": 1}, "REL-01"),
        (c.PutArtifact(ATTEMPT), o.Accepted("running"), {"artifact": "two"}, "FENCE-04"),
    ],
    ids=["renew", "complete", "release", "put_artifact"],
)
def test_whoever_moves_a_deadline_breaks_his_own_clause(
    command: c.HandleCommand, answer: o.Outcome, after: dict[str, Any], clause: str
) -> None:
    job = build(deadline=NOW + 500)
    right = row_of(job._replace(**after))
    assert judge(job, command, answer, right) == "right"
    for deadline in (NOW + 499, None):
        assert judge(job, command, answer, right._replace(deadline=deadline)) == clause


@BOTH
def test_a_deadline_stands_in_the_row_from_the_start(spec: QueueSpec) -> None:
    new = record(spec, **unheld("pending"), attempts=0, token=None, issued=(), deadline=NOW + 60)
    world = World(spec, NOW, (), ())
    for deadline, right in ((NOW + 60, True), (NOW + 61, False), (None, False)):
        found = step(
            world, c.Enqueue(deadline_in=60), o.Enqueued(1), Context(NOW, False, (row_of(new, deadline=deadline),))
        )
        assert isinstance(found, Step) is right
        assert right or broken(found) == (SETUP, "enqueue")


# -------------------------------------------------------------------------------------------------------- planted ones


@BOTH
@pytest.mark.parametrize("status", ["pending", "running", "succeeded"])
def test_a_deadline_may_be_planted_in_any_job(spec: QueueSpec, status: str) -> None:
    job = record(spec) if status == "running" else record(spec, **unheld(status))
    plant = c.Plant(1, "deadline", -3)
    right = row_of(job, deadline=NOW - 3)
    assert judge(job, plant, o.DONE, right) == "right"
    for wrong in (row_of(job), right._replace(deadline=NOW), right._replace(attempts=9), right._replace(started=7)):
        assert broken(judged(job, plant, o.DONE, wrong)) == (SETUP, "plant")


def test_nothing_is_planted_that_the_queue_does_not_know() -> None:
    job = record(BACKFILL)
    assert broken(judged(job, c.Plant(1, "deadline", 5), o.DONE)) == (SETUP, "plant")
    assert broken(judged(pending(DATED), c.Plant(1, "lease", 5), o.DONE)) == (SETUP, "plant")
    assert broken(judged(build(), c.Plant(1, "lease", 5), o.DONE)) == (SETUP, "plant"), "it is not pending"
    assert broken(judged(build(), c.Plant(2, "deadline", 5), o.DONE)) == (SETUP, "unknown job")
