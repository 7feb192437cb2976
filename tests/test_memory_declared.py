"""The memory adapter on queues that declare more: deadlines, attempt ids, artifacts, skips, claims of one job."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from random import Random

import pytest
from fencepost.adapters.contract import AdapterError
from fencepost.adapters.memory import MemoryAdapter
from fencepost.conformance.generate import NUMBERS
from fencepost.conformance.session import Session
from fencepost.model import commands as c
from fencepost.model import outcomes as o
from fencepost.model.queues import BACKFILL, BUILD, MUTATION, SCREENSHOT, QueueSpec
from memory_bench import NOW, Bench

LEASE = BUILD.lease_seconds
SEEDS = range(40)


def build(seed: int = 0, max_attempts: int = 3) -> tuple[Bench, c.Handle]:
    """A build queue whose only job worker 1 holds."""
    bench = Bench(BUILD, seed)
    return bench, bench.held(max_attempts=max_attempts)


def test_every_claim_mints_an_attempt_id_that_never_repeats() -> None:
    bench, first = build()
    assert bench.do(c.Enqueue()) == o.Enqueued(2, None)
    assert bench.row(2).token is None
    seen = [first]
    for _ in range(20):
        bench.do(c.Release(seen[-1]))
        seen.append(bench.claim())
    tokens = {handle.token for handle in seen}
    assert len(tokens) == len(seen)
    assert all(isinstance(token, str) and token for token in tokens)
    assert bench.row().token == seen[-1].token
    assert bench.do(c.Complete(seen[-2])) == o.REJECTED
    assert bench.do(c.Complete(seen[-1])) == o.Accepted("succeeded")


def test_a_claim_and_a_renewal_cut_the_lease_to_the_deadline() -> None:
    bench = Bench(BUILD)
    bench.do(c.Enqueue(deadline_in=100))
    assert bench.row().deadline == NOW + 100
    handle = bench.claim()
    assert (bench.row().expires, bench.row().deadline) == (NOW + 100, NOW + 100)
    bench.do(c.Renew(handle, 30), NOW + 10)
    assert bench.row().expires == NOW + 40
    bench.do(c.Renew(handle), NOW + 20)
    assert bench.row().expires == NOW + 100


@pytest.mark.parametrize(("at", "claimed"), [(NOW + 9, True), (NOW + 10, False)])
def test_a_job_is_claimed_until_its_deadline(at: int, claimed: bool) -> None:
    bench = Bench(BUILD)
    bench.do(c.Enqueue(deadline_in=10))
    outcome = bench.do(c.Claim(1), at)
    assert isinstance(outcome, o.Claimed)
    assert bool(outcome.handles) is claimed


WRITES: tuple[Callable[[c.Handle], c.HandleCommand], ...] = (c.Renew, c.Complete, c.Fail, c.Release, c.PutArtifact)


@pytest.mark.parametrize("write", WRITES, ids=lambda write: write.__name__)
def test_past_the_deadline_nothing_is_written_by_handle(write: Callable[[c.Handle], c.HandleCommand]) -> None:
    bench, handle = build()
    assert bench.do(c.Plant(1, "deadline", 10)) == o.DONE
    before = bench.row()
    assert (before.deadline, before.expires) == (NOW + 10, NOW + LEASE)
    assert bench.do(write(handle), NOW + 10) == o.REJECTED
    assert bench.row() is before
    assert bench.do(write(handle), NOW + 9) != o.REJECTED


def test_a_sweep_fails_what_is_past_its_deadline_whatever_the_budget() -> None:
    spec = replace(SCREENSHOT, deadline=True)
    bench = Bench(spec)
    bench.enqueue(4)
    for worker in (1, 2, 3):
        bench.claim(worker)
    for job in (1, 2, 4):
        bench.do(c.Plant(job, "deadline", 10))
    bench.do(c.RequestCancel(2))
    overdue = o.Recovered((o.RecoveredRow(4, "failed"),), 1, None, False, 1)
    assert bench.do(c.Recover(), NOW + 9) == o.Recovered(dml=0)
    assert bench.do(c.Tick(), NOW + 10) == overdue  # the leases of the others are valid
    expiry = NOW + spec.lease_seconds
    moved = tuple(o.RecoveredRow(job, status) for job, status in ((1, "failed"), (2, "cancelled"), (3, "pending")))
    assert bench.do(c.Recover(), expiry) == o.Recovered(moved, 3, None, False, 3)
    assert (bench.row(1).error, bench.row(1).attempts) == ("LEASE_TIMEOUT_DEADLINE", 1)
    assert bench.row(4).error == "LEASE_TIMEOUT_DEADLINE"


def test_a_skipped_job_ends_and_stays() -> None:
    bench = Bench(SCREENSHOT)
    handle = bench.held()
    assert bench.do(c.Skip(c.Handle(1, 2))) == o.REJECTED
    assert bench.do(c.Skip(handle), NOW + SCREENSHOT.lease_seconds) == o.REJECTED
    assert bench.do(c.Skip(handle), NOW + 3) == o.Accepted("skipped")
    row = bench.row()
    assert (row.status, row.expires, row.finished, row.error) == ("skipped", None, NOW + 3, None)
    for write in (c.Skip(handle), c.Complete(handle), c.Renew(handle)):
        assert bench.do(write, NOW + 4) == o.REJECTED
    assert bench.do(c.RequestCancel(1), NOW + 4) == o.CancelAnswer("terminal")
    assert bench.row() is row


def test_after_a_cancel_request_a_skip_ends_cancelled() -> None:
    bench = Bench(SCREENSHOT)
    assert bench.do(c.Skip(bench.held(cancelled=True))) == o.Accepted("cancelled")
    assert bench.row().status == "cancelled"


def test_an_artifact_is_the_current_attempts_and_the_next_claim_drops_it() -> None:
    bench, handle = build()
    assert bench.do(c.ReadArtifact(1)) == o.Artifact(None)
    assert bench.do(c.PutArtifact(handle)) == o.Accepted("running")
    assert bench.row().artifact == bench.row().token == handle.token
    kept_back = {bench.do(c.ReadArtifact(1)) for _ in range(20)}
    assert kept_back == {o.Artifact(handle.token), o.Artifact(None)}, "until it succeeds a job may keep it back"
    bench.do(c.Recover(), NOW + LEASE)
    again = bench.claim(now=NOW + LEASE)
    assert bench.row().artifact is None
    assert bench.do(c.ReadArtifact(1)) == o.Artifact(None)
    before = bench.row()
    assert bench.do(c.PutArtifact(handle), NOW + LEASE) == o.REJECTED
    assert bench.row() is before
    bench.do(c.PutArtifact(again), NOW + LEASE)
    bench.do(c.Complete(again), NOW + LEASE)
    for _ in range(10):  # a success keeps it, whatever is drawn
        assert bench.do(c.ReadArtifact(1)) == o.Artifact(again.token)
    before = bench.row()
    assert before.artifact == again.token
    assert bench.do(c.PutArtifact(again), NOW + LEASE) == o.REJECTED
    assert bench.row() is before


LOST: tuple[tuple[str, Callable[[c.Handle], c.Command], int], ...] = (
    ("released", c.Release, 0),
    ("failed", c.Fail, 0),
    ("retried", lambda handle: c.Fail(handle, "lease", "PAGE_JOB_INTERRUPTED"), 0),
    ("recovered", lambda handle: c.Recover(), LEASE),
)


@pytest.mark.parametrize(("move", "later"), [each[1:] for each in LOST], ids=[each[0] for each in LOST])
def test_an_attempt_without_success_keeps_id_and_artifact_or_loses_both(
    move: Callable[[c.Handle], c.Command], later: int
) -> None:
    kept, given = set(), set()
    for seed in SEEDS:
        bench, handle = build(seed)
        bench.do(c.PutArtifact(handle))
        bench.do(move(handle), NOW + later)
        row = bench.row()
        assert row.token == row.artifact
        assert row.token in (handle.token, None)
        kept.add(row.token is not None)
        answer = bench.do(c.ReadArtifact(1))
        if row.artifact is None:
            assert answer == o.Artifact(None)
        else:
            given.add(answer == o.Artifact(handle.token))
    assert kept == given == {True, False}


def test_a_lost_generations_artifact_goes_with_it() -> None:
    bench = Bench(replace(MUTATION, artifacts=True))
    handle = bench.held()
    bench.do(c.PutArtifact(handle))
    assert bench.row().artifact == 1
    bench.do(c.Recover(), NOW + MUTATION.lease_seconds)
    assert (bench.row().token, bench.row().artifact) == (2, None)


@pytest.mark.parametrize("fence", ["owner", "generation", "attempt_id"])
def test_a_success_reported_again_by_its_attempt_is_accepted_and_changes_nothing(fence: str) -> None:
    for seed in SEEDS:
        bench = Bench(replace(BACKFILL, fence=fence, repeats_complete=True), seed)
        first = bench.held()
        bench.do(c.Release(first))
        handle = bench.claim(2)
        bench.do(c.Complete(handle), NOW + 1)
        row = bench.row()
        assert bench.do(c.Complete(handle), NOW + 2) == o.Accepted("succeeded")
        assert bench.do(c.Complete(first), NOW + 2) == o.REJECTED
        assert bench.do(c.Release(handle), NOW + 2) == o.REJECTED
        assert bench.row() is row


def test_one_column_for_heartbeat_and_start_shows_one_instant() -> None:
    cleared = set()
    for seed in SEEDS:
        bench, handle = build(seed)
        bench.do(c.Renew(handle), NOW + 5)
        assert bench.row().started == bench.row().heartbeat == NOW + 5
        bench.do(c.Release(handle), NOW + 6)
        assert bench.row().started == bench.row().heartbeat
        cleared.add(bench.row().started is None)
        bench.do(c.Complete(bench.claim()), NOW + 7)
        assert bench.row().started == bench.row().heartbeat
    assert cleared == {True, False}


def test_a_queue_without_codes_retries_by_them_and_stores_none() -> None:
    for seed in SEEDS:
        bench, handle = build(seed, max_attempts=2)
        assert bench.do(c.Fail(handle, "infra", "RENDER_SERVICE_UNAVAILABLE")) == o.Accepted("pending")
        assert bench.row().error is None
        assert bench.do(c.Fail(bench.claim(), "infra", "RENDER_SERVICE_UNAVAILABLE")) == o.Accepted("failed")
        assert bench.row().error is None


def test_where_nothing_can_be_cancelled_a_cancel_code_is_a_failure() -> None:
    bench, handle = build()
    assert bench.do(c.Fail(handle, "cancel", "AI_RUN_CANCELLED")) == o.Accepted("failed")
    with pytest.raises(AdapterError, match="'build' has no verb 'request_cancel'"):
        bench.do(c.RequestCancel(1))


def test_a_claim_may_name_its_job() -> None:
    bench = Bench(BUILD)
    bench.enqueue(3)
    outcome = bench.do(c.Claim(1, 10, 1, job=2))
    assert isinstance(outcome, o.Claimed)
    assert [handle.job for handle in outcome.handles] == [2]
    assert bench.do(c.Claim(1, 10, 1, job=2)) == o.Claimed()
    assert bench.do(c.Claim(1, 0, 1, job=3)) == o.Claimed()
    with pytest.raises(AdapterError, match="no job 4"):
        bench.do(c.Claim(1, job=4))


def test_a_lease_left_on_a_pending_job_keeps_it_from_being_claimed_until_it_expires() -> None:
    bench = Bench(BUILD)
    bench.enqueue(2)
    assert bench.do(c.Plant(1, "lease", 10)) == o.DONE
    assert bench.claim(now=NOW + 9).job == 2
    assert bench.claim(now=NOW + 10).job == 1
    with pytest.raises(AdapterError, match="no job 3"):
        bench.do(c.Plant(3, "lease", 10))


def test_a_queue_without_order_claims_any_of_the_due_jobs() -> None:
    firsts, batches = set(), set()
    for seed in SEEDS:
        bench = Bench(replace(BACKFILL, ordered=False), seed)
        bench.enqueue(4)
        bench.do(c.RequestCancel(4, by_parent=True))
        firsts.add(bench.claim().job)
        outcome = bench.do(c.Claim(1, 3, 2))
        assert isinstance(outcome, o.Claimed)
        jobs = [handle.job for handle in outcome.handles]
        assert 1 <= len(set(jobs)) == len(jobs) <= 2
        assert sum(row.status == "running" for row in bench.rows().values()) == 1 + len(jobs)
        batches.add(len(jobs))
    assert firsts == {1, 2, 3}
    assert batches == {1, 2}


def test_where_completion_wins_a_cancel_request_does_not_stop_it() -> None:
    for seed in SEEDS:
        bench = Bench(replace(BACKFILL, completion_wins=True), seed)
        assert bench.do(c.Complete(bench.held(cancelled=True))) == o.Accepted("succeeded")
        assert bench.row().status == "succeeded"


DECLARED = (
    BUILD,
    SCREENSHOT,
    replace(BUILD, key="counting", fence="generation", stores_code=True, backoff_seconds=5),
    replace(SCREENSHOT, key="everything", deadline=True, claims_by_id=True, repeats_complete=True),
    replace(BACKFILL, key="winning", completion_wins=True, stores_code=False, ordered=False, bounds=(4, 4)),
)


@pytest.mark.parametrize("queue", DECLARED, ids=lambda queue: queue.key)
def test_the_judge_accepts_every_draw(queue: QueueSpec) -> None:
    random = Random(7)
    with Session(MemoryAdapter(), queue) as session:
        for _ in range(150):
            run = session.draw([random.randrange(NUMBERS) for _ in range(random.randint(1, 40))])
            assert run.violation is None, (run.violation, run.done)
        assert any(check.teeth for check in session.driver.tally)
