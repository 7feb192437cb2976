"""The memory adapter, verb by verb: what it answers, what it leaves in the row, and what it draws."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from itertools import product

import pytest
from fencepost.adapters.contract import AdapterError
from fencepost.adapters.memory import MemoryAdapter
from fencepost.model import commands as c
from fencepost.model import outcomes as o
from fencepost.model.queues import BACKFILL, MUTATION, QueueSpec
from memory_bench import NOW, Bench

QUEUES = pytest.mark.parametrize("queue", [BACKFILL, MUTATION], ids=lambda queue: queue.key)


def token(queue: QueueSpec, generation: int) -> int | None:
    return generation if queue.has_token else None


@QUEUES
def test_a_job_starts_pending_and_a_claim_writes_all_of_its_fields(queue: QueueSpec) -> None:
    bench = Bench(queue)
    assert bench.do(c.Enqueue(2)) == o.Enqueued(1, token(queue, 0))
    assert bench.row() == o.Row("pending", None, None, None, None, None, 0, 2, token(queue, 0), None, None, None)
    handle = bench.claim(worker=2)
    assert handle == c.Handle(1, 2, token(queue, 1))
    assert bench.row() == o.Row(
        "running", "host-b:1:w2", NOW + queue.lease_seconds, NOW, NOW, None, 1, 2, token(queue, 1), None, None, None
    )


def test_a_job_is_claimed_from_the_instant_it_is_due_for_the_lease_asked_for() -> None:
    bench = Bench(MUTATION)
    bench.do(c.Enqueue(3, 10))
    assert bench.do(c.Claim(1), NOW + 9) == o.Claimed()
    assert bench.do(c.Claim(1, lease=7), NOW + 10) == o.Claimed((c.Handle(1, 1, 1),))
    assert bench.row().expires == NOW + 17


def test_a_claim_takes_the_oldest_claimable_jobs_within_both_bounds() -> None:
    for limit, most, seed in product((2, 5), (2, 5), range(10)):
        bench = Bench(BACKFILL, seed)
        bench.enqueue(4)
        bench.do(c.RequestCancel(1, by_parent=True))
        outcome = bench.do(c.Claim(1, limit, most))
        assert isinstance(outcome, o.Claimed)
        jobs = [handle.job for handle in outcome.handles]
        assert jobs == [2, 3, 4][: len(jobs)]
        assert 1 <= len(jobs) <= min(limit, most)
        assert [job for job, row in bench.rows().items() if row.status == "running"] == jobs


WRITES: tuple[Callable[[c.Handle], c.HandleCommand], ...] = (
    c.Renew, c.Complete, c.Fail, c.Release, c.Acknowledge, c.Checkpoint,
)  # fmt: skip


@QUEUES
@pytest.mark.parametrize("write", WRITES, ids=lambda write: write.__name__)
def test_a_handle_serves_until_its_lease_expires_and_no_other_serves_at_all(
    queue: QueueSpec, write: Callable[[c.Handle], c.HandleCommand]
) -> None:
    expiry = NOW + queue.lease_seconds
    # Acknowledge alone needs a cancel request, which in turn would spoil Complete.
    bench = Bench(queue)
    handle = bench.held(cancelled=write is c.Acknowledge)
    before = bench.row()
    strangers = [c.Handle(1, 2, handle.token), c.Handle(2, 1, handle.token)]
    strangers += [c.Handle(1, 1, 0)] if queue.has_token else []
    for stranger in strangers:
        assert bench.do(write(stranger)) == o.REJECTED
    assert bench.do(write(handle), expiry) == o.REJECTED
    assert bench.row() is before
    assert bench.do(write(handle), expiry - 1) != o.REJECTED


@QUEUES
def test_a_renewal_extends_the_lease_from_now(queue: QueueSpec) -> None:
    bench = Bench(queue)
    handle = bench.held()
    assert bench.do(c.Renew(handle), NOW + 5) == o.Accepted("running")
    assert (bench.row().heartbeat, bench.row().expires) == (NOW + 5, NOW + 5 + queue.lease_seconds)
    assert bench.do(c.Renew(handle, 8), NOW + 6) == o.Accepted("running")
    assert (bench.row().heartbeat, bench.row().expires) == (NOW + 6, NOW + 14)


UNSPECIFIED = "unspecified"
ENDS: tuple[tuple[str, Callable[[c.Handle], c.HandleCommand], bool, str, str | None], ...] = (
    ("complete", c.Complete, False, "succeeded", None),
    ("content", lambda h: c.Fail(h, "content", "PAGE_VALIDATION_FAILED"), False, "failed", "PAGE_VALIDATION_FAILED"),
    ("limit", lambda h: c.Fail(h, "limit", "RENDER_QUEUE_FULL"), False, "failed", "RENDER_QUEUE_FULL"),
    ("unlisted infra", lambda h: c.Fail(h, "infra", "PROVIDER_TIMEOUT"), False, "failed", "PROVIDER_TIMEOUT"),
    ("cancel code", lambda h: c.Fail(h, "cancel", "AI_RUN_CANCELLED"), False, "cancelled", UNSPECIFIED),
    ("fail after cancel", lambda h: c.Fail(h, "lease", "PAGE_JOB_INTERRUPTED"), True, "cancelled", UNSPECIFIED),
    ("release after cancel", c.Release, True, "cancelled", UNSPECIFIED),
    ("acknowledge", c.Acknowledge, True, "cancelled", UNSPECIFIED),
)


@QUEUES
@pytest.mark.parametrize(("write", "cancelled", "status", "error"), [e[1:] for e in ENDS], ids=[e[0] for e in ENDS])
def test_a_write_that_ends_the_job(
    queue: QueueSpec, write: Callable[[c.Handle], c.HandleCommand], cancelled: bool, status: str, error: str | None
) -> None:
    bench = Bench(queue)
    handle = bench.held(cancelled)
    assert bench.do(write(handle), NOW + 3) == o.Accepted(queue.spell(status))
    row = bench.row()
    assert (row.status, row.expires, row.finished, row.attempts) == (queue.spell(status), None, NOW + 3, 1)
    assert row.token == token(queue, 1)
    assert error is UNSPECIFIED or row.error == error
    assert bench.do(write(handle), NOW + 4) == o.REJECTED
    assert bench.do(c.RequestCancel(1), NOW + 4) == o.CancelAnswer("terminal")
    assert bench.do(c.Claim(2), NOW + 4) == o.Claimed()
    assert bench.row() is row


@pytest.mark.parametrize(("what", "code"), [("lease", "PAGE_JOB_INTERRUPTED"), ("infra", "RENDER_SERVICE_UNAVAILABLE")])
@pytest.mark.parametrize("seed", range(8))
@QUEUES
def test_a_retry_stays_within_the_budget(queue: QueueSpec, seed: int, what: c.What, code: str) -> None:
    bench = Bench(queue, seed)
    outcome = bench.do(c.Fail(bench.held(max_attempts=2), what, code))
    row = bench.row()
    assert outcome == o.Accepted("pending", row.due)
    assert (row.status, row.owner, row.expires, row.finished, row.attempts) == ("pending", None, None, None, 1)
    assert row.due is None if not queue.backs_off else row.due is not None and row.due > NOW
    again = bench.claim(now=row.due or NOW)
    assert (again, bench.row().error) == (c.Handle(1, 1, token(queue, 2)), None)
    assert bench.do(c.Fail(again, what, code), row.due or NOW) == o.Accepted("failed")
    assert (bench.row().error, bench.row().attempts) == (code, 2)


@pytest.mark.parametrize(
    ("what", "code"),
    [("content", "SOMETHING_WENT_WRONG"), ("lease", "PAGE_LEASE_LOST"), ("content", "RENDER_SERVICE_UNAVAILABLE")],
    ids=["no family", "fence", "another family"],
)
def test_a_failure_with_the_wrong_code_is_refused(what: c.What, code: str) -> None:
    bench = Bench(BACKFILL)
    handle = bench.held()
    before = bench.row()
    assert bench.do(c.Fail(handle, what, code)) == o.REJECTED
    assert bench.row() is before


@QUEUES
def test_a_release_uncounts_the_attempt_and_spends_the_token(queue: QueueSpec) -> None:
    bench = Bench(queue)
    assert bench.do(c.Release(bench.held())) == o.Accepted("pending")
    row = bench.row()
    assert (row.status, row.owner, row.expires, row.due) == ("pending", None, None, None)
    assert (row.attempts, row.token) == (0, token(queue, 1))


def test_a_checkpoint_tells_of_a_cancel_and_an_acknowledgement_needs_one() -> None:
    bench = Bench(BACKFILL)
    handle = bench.held()
    before = bench.row()
    assert bench.do(c.Checkpoint(handle)) == o.Checkpointed(False)
    assert bench.do(c.Acknowledge(handle)) == o.REJECTED
    assert bench.row() is before
    bench.do(c.RequestCancel(1))
    assert bench.do(c.Checkpoint(handle)) == o.Checkpointed(True)


@QUEUES
def test_a_cancel_ends_a_pending_job_and_is_recorded_on_a_running_one(queue: QueueSpec) -> None:
    bench = Bench(queue)
    bench.enqueue(2)
    handle = bench.claim()
    held = bench.row()
    assert bench.do(c.RequestCancel(1), NOW + 1) == o.CancelAnswer("recorded")
    assert bench.do(c.RequestCancel(1), NOW + 2) == o.CancelAnswer("recorded")
    assert bench.row() == held._replace(cancel=NOW + 1)
    assert bench.do(c.Renew(handle)) == o.Accepted("running")
    assert bench.do(c.RequestCancel(2), NOW + 1) == o.CancelAnswer("cancelled")
    row = bench.row(2)
    assert (row.status, row.finished, row.cancel) == (queue.spell("cancelled"), NOW + 1, NOW + 1)


def test_a_parents_cancel_waits_for_the_sweep_or_a_direct_cancel() -> None:
    bench = Bench(BACKFILL)
    bench.enqueue(2)
    for job in (1, 2):
        assert bench.do(c.RequestCancel(job, True), NOW + 1) == o.CancelAnswer("recorded")
        assert (bench.row(job).status, bench.row(job).cancel) == ("pending", NOW + 1)
    assert bench.do(c.RequestCancel(1), NOW + 2) == o.CancelAnswer("cancelled")
    assert bench.do(c.Recover()) == o.Recovered((o.RecoveredRow(2, "cancelled"),), 1, None, False, 1)
    assert bench.row(1).cancel == bench.row(2).cancel == NOW + 1


@QUEUES
def test_a_sweep_takes_the_first_case_that_holds_and_raises_the_generation(queue: QueueSpec) -> None:
    bench = Bench(queue)
    for budget in (1, 2, 2, 2):
        bench.enqueue(max_attempts=budget)
    for worker in (1, 2, 3):
        bench.claim(worker)
    bench.do(c.RequestCancel(3))
    expiry = NOW + queue.lease_seconds
    assert bench.do(c.Recover(), expiry - 1) == o.Recovered(dml=0)
    outcome = bench.do(c.Recover(), expiry)
    due = bench.row(2).due
    assert due is None if not queue.backs_off else due is not None and due > expiry
    moved = [("failed", None), ("pending", due), (queue.spell("cancelled"), None)]
    rows = tuple(o.RecoveredRow(job, status, when) for job, (status, when) in enumerate(moved, 1))
    assert outcome == o.Recovered(rows, 3, None, False, 3)
    assert [bench.row(job).token for job in (1, 2, 3, 4)] == [token(queue, n) for n in (2, 2, 2, 0)]
    assert [bench.row(job).attempts for job in (1, 2, 3, 4)] == [1, 1, 1, 0]
    assert [bench.row(job).finished for job in (1, 2, 3, 4)] == [expiry, None, expiry, None]
    assert bench.row(1).error == "LEASE_TIMEOUT_MAX_ATTEMPTS"
    assert all(row.expires is None for row in bench.rows().values())
    assert bench.do(c.Tick(), expiry) == o.Recovered(dml=0)


def test_start_up_takes_over_the_jobs_of_its_own_host_alone() -> None:
    bench = Bench(BACKFILL)
    bench.enqueue(2)
    bench.claim(1)
    bench.claim(2)
    assert bench.do(c.Tick()) == o.Recovered(dml=0)
    assert bench.do(c.StartUp(0)) == o.Recovered((o.RecoveredRow(1, "pending"),), 1, None, False, 1)
    assert bench.row(2).owner == "host-b:1:w2"


@pytest.mark.parametrize("kind", ["raise", "cancel"])
def test_a_claims_hook_is_given_what_was_claimed_and_undoes_it_by_raising(kind: c.HookKind) -> None:
    bench = Bench(MUTATION)
    bench.enqueue(2)
    before = bench.rows()
    outcome = bench.do(c.Claim(1, 2, 2, hook=c.Hook(kind)))
    assert outcome in (o.HookRaised((1,)), o.HookRaised((1, 2)))
    assert bench.rows() == before
    assert bench.do(c.Claim(1, hook=c.Hook("ok"))) == o.Claimed((c.Handle(1, 1, 1),), (1,))
    bench.do(c.RequestCancel(2))
    assert bench.do(c.Claim(1, hook=c.Hook(kind))) == o.Claimed()  # nothing claimed, no hook


def swept(*jobs: int, hooked: bool = False, failed: bool = False, dml: int) -> o.Recovered:
    """A sweep's answer when these jobs had no attempt left."""
    rows = tuple(o.RecoveredRow(job, "failed") for job in jobs)
    return o.Recovered(rows, len(jobs), jobs if hooked else None, failed, dml)


SWEEPS: tuple[tuple[c.Recover, o.Outcome, set[int]], ...] = (
    (c.Recover(2, c.Hook("ok")), swept(1, 2, 3, hooked=True, dml=3), {1, 2, 3}),
    (c.Recover(1, c.Hook("poison", 2)), swept(1, 3, hooked=True, failed=True, dml=3), {1, 3}),
    (c.Recover(2, c.Hook("poison", 2)), swept(3, hooked=True, failed=True, dml=3), {3}),
    (c.Recover(10, c.Hook("poison", 2)), o.HookRaised((1, 2, 3)), set()),
    (c.Recover(1, c.Hook("raise")), o.HookRaised((3,)), set()),
    (c.Recover(1, c.Hook("cancel")), o.HookRaised((1,)), set()),
)


@pytest.mark.parametrize(("sweep", "answer", "moved"), SWEEPS, ids=lambda value: repr(value)[:40])
def test_a_sweep_rolls_back_the_batches_whose_hook_raises(sweep: c.Recover, answer: o.Outcome, moved: set[int]) -> None:
    bench = Bench(BACKFILL)
    bench.enqueue(3, max_attempts=1)
    for worker in (1, 2, 3):
        bench.claim(worker)
    before = bench.rows()
    expiry = NOW + BACKFILL.lease_seconds
    assert bench.do(sweep, expiry) == answer
    after = bench.rows()
    assert {job for job in after if after[job] != before[job]} == moved
    left = sorted({1, 2, 3} - moved)
    assert bench.do(c.Recover(), expiry) == swept(*left, dml=len(left))


@pytest.mark.parametrize("end", ["commit", "rollback", "raise"])
def test_a_callers_transaction_keeps_all_or_nothing(end: c.End) -> None:
    bench = Bench(MUTATION)
    bench.enqueue(2)
    handle = bench.claim()
    before = bench.rows()
    outcome = bench.do(c.Atomically((c.Complete(handle), c.Renew(handle), c.RequestCancel(2)), end))
    assert outcome == o.Atomic((o.Accepted("succeeded"), o.REJECTED, o.CancelAnswer("cancelled")))
    if end == "commit":
        assert [row.status for row in bench.rows().values()] == ["succeeded", "canceled"]
    else:
        assert bench.rows() == before
        assert bench.do(c.Complete(handle)) == o.Accepted("succeeded")


@pytest.mark.parametrize(
    ("command", "answer"),
    [
        (c.Probe(), o.Probed(0, 0)),
        (c.Configure(90, 30), o.Accepted("configured")),
        (c.Configure(89, 30), o.REJECTED),
        (c.Configure(0, 0), o.REJECTED),
        (c.Classify("RENDER_QUEUE_FULL"), o.Classified("LIMIT")),
        (c.Classify("SOMETHING_WENT_WRONG"), o.Classified(None)),
        (c.Crash(1), o.DONE),
        (c.Advance(5), o.DONE),
    ],
    ids=repr,
)
def test_what_never_touches_a_job(command: c.Command, answer: o.Outcome) -> None:
    bench = Bench(BACKFILL)
    bench.held()
    before = bench.row()
    assert bench.do(command) == answer
    assert bench.row() is before


def story(bench: Bench) -> tuple[int, o.Row, o.Outcome, list[o.Row]]:
    """Every verb that draws: how many were claimed, the job retried, the answer to a late success, and the end."""
    bench.enqueue(4)
    claimed = bench.do(c.Claim(1, 3, 3))
    assert isinstance(claimed, o.Claimed)
    bench.do(c.Fail(claimed.handles[0], "infra", "RENDER_SERVICE_UNAVAILABLE"))
    retried = bench.row()
    other = bench.claim(2)
    bench.do(c.RequestCancel(other.job))
    completed = bench.do(c.Complete(other))
    bench.do(c.Recover(), NOW + 60)
    return len(claimed.handles), retried, completed, list(bench.rows().values())


def test_equal_seeds_answer_alike_also_after_a_reset() -> None:
    for seed in range(5):
        bench = Bench(MUTATION, seed)
        first = story(bench)
        asyncio.run(bench.adapter.reset())
        assert bench.rows() == {}
        assert story(bench) == first == story(Bench(MUTATION, seed))


def test_every_legal_draw_is_reached_over_the_seeds() -> None:
    stories = [story(Bench(MUTATION, seed)) for seed in range(100)]
    assert {claimed for claimed, _, _, _ in stories} == {1, 2, 3}
    assert {retried.due for _, retried, _, _ in stories} == {NOW + delay for delay in (1, 2, 5, 20, 60)}
    assert {completed for _, _, completed, _ in stories} == {o.REJECTED, o.Accepted("canceled")}
    ended = [row for _, _, _, rows in stories for row in rows if row.status == "canceled"]
    again = [row for _, _, _, rows in stories for row in rows if row.status == "pending" and row.attempts]
    for drawn in (
        [row.owner for row in ended], [row.heartbeat for row in ended], [row.heartbeat for row in again],
        [row.started for row in again], [row.error for row in again],
    ):  # fmt: skip
        assert {field is None for field in drawn} == {True, False}


def test_faults_of_the_harness_are_told_apart() -> None:
    bench = Bench(BACKFILL)
    with pytest.raises(AdapterError, match="no job 7"):
        bench.do(c.RequestCancel(7))
    with pytest.raises(AdapterError, match="bind it"):
        bench.do(c.Renew(c.HandleRef(1)))
    with pytest.raises(AdapterError, match="which attempt has made one"):
        asyncio.run(MemoryAdapter().open(replace(BACKFILL, artifacts=True)))
    with pytest.raises(AdapterError, match="'backfill' has no verb 'skip'"):
        bench.do(c.Skip(c.Handle(1, 1)))
    with pytest.raises(AdapterError, match="open"):
        MemoryAdapter().actor(1)


def test_each_worker_keeps_an_actor_of_its_own() -> None:
    bench = Bench(BACKFILL)
    assert bench.adapter.actor(1) is bench.adapter.actor(1) is not bench.adapter.actor(2)
