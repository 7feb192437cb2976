"""The reference runtime's recovery, on both databases and all queues."""

from __future__ import annotations

import pytest
from fencepost.model import commands as c
from fencepost.model import outcomes as o
from reference_bench import NOW, RETRY, Bench, cancelling, empty_bench, one_runner, opened_bench  # noqa: F401

MAX_ATTEMPTS = "LEASE_TIMEOUT_MAX_ATTEMPTS"


@pytest.mark.parametrize("offset", [-1, 0, 1])
def test_a_lease_expires_at_its_instant(bench: Bench, offset: int) -> None:
    handle = bench.held()
    before = bench.row()
    now = NOW + bench.lease + offset
    swept = bench.sweep(now)
    if offset < 0:
        assert swept == o.Recovered(dml=0) and bench.row() == before
        return
    due = bench.due(now + 5)
    assert swept == o.Recovered((o.RecoveredRow(handle.job, "pending", due),), 1, dml=1)
    row = bench.row()
    assert row[:3] == ("pending", None, None) and (row.attempts, row.due) == (1, due)
    assert row.token == bench.token(2, handle)
    assert row.finished is None


@cancelling
def test_a_cancel_request_outranks_the_budget_and_the_budget_ends_a_crash_loop(bench: Bench) -> None:
    requeued, cancelled = bench.held(max_attempts=2), bench.held(max_attempts=1)
    failed = bench.held(max_attempts=1)
    bench.do(c.RequestCancel(cancelled.job))
    now = NOW + bench.lease
    assert [(row.job, row.status) for row in bench.sweep(now).rows] == [
        (requeued.job, "pending"), (cancelled.job, bench.cancelled), (failed.job, "failed"),
    ]  # fmt: skip
    for row, handle in zip(bench.rows(), (requeued, cancelled, failed), strict=True):
        assert row.expires is None and row.attempts == 1 and row.token == bench.token(2, handle)
    assert [row.finished for row in bench.rows()] == [None, now, now]
    assert bench.row(2).error == MAX_ATTEMPTS


@cancelling
def test_a_pending_job_that_its_parent_cancelled_is_swept(bench: Bench) -> None:
    job = bench.enqueue()
    bench.do(c.RequestCancel(job, by_parent=True))
    assert bench.sweep(NOW + 1) == o.Recovered((o.RecoveredRow(job, bench.cancelled),), 1, dml=1)
    row = bench.row()
    assert (row.status, row.finished, row.cancel) == (bench.cancelled, NOW + 1, NOW)
    assert row.token == (0 if bench.queue.has_token else None)


def test_a_sweep_that_finds_nothing_writes_nothing(bench: Bench) -> None:
    bench.held()
    bench.enqueue()
    assert bench.sweep(NOW, hook=c.Hook("raise")) == o.Recovered(dml=0)
    assert bench.do(c.Probe()) == o.Probed(0, 0)


def test_a_renewed_lease_is_left_alone(bench: Bench) -> None:
    handle = bench.held()
    bench.do(c.Renew(handle), NOW + bench.lease - 1, 1)
    assert bench.sweep(NOW + bench.lease) == o.Recovered(dml=0)


def test_back_off_is_each_row_s_own(bench: Bench) -> None:
    twice = bench.held()
    bench.do(c.Fail(twice, *RETRY), NOW, 1)
    once = bench.enqueue()
    late = NOW + 20
    handles = bench.claim(1, late, 2)
    assert {handle.job for handle in handles} == {once, twice.job}
    now = late + bench.lease
    due = {row.job: row.due for row in bench.sweep(now).rows}
    assert due == {once: bench.due(now + 5), twice.job: bench.due(now + 10)} or not bench.queue.backs_off
    first, again = (next(each for each in handles if each.job == job) for job in (once, twice.job))
    assert {row.attempts: row.token for row in bench.rows()} == {1: bench.token(2, first), 2: bench.token(3, again)}


def test_a_sweep_walks_all_batches(bench: Bench) -> None:
    jobs = tuple(bench.held().job for _ in range(5))
    swept = bench.sweep(NOW + bench.lease, batch=2, hook=c.Hook("ok"))
    assert tuple(row.job for row in swept.rows) == jobs
    assert (swept.count, swept.hooked, swept.failed, swept.dml) == (5, jobs, False, 5)


def test_a_poisoned_batch_is_undone_and_the_walk_gets_past_it(bench: Bench) -> None:
    jobs = tuple(bench.held().job for _ in range(5))
    now = NOW + bench.lease
    before = bench.rows()
    swept = bench.sweep(now, batch=2, hook=c.Hook("poison", jobs[2]))
    assert (swept.hooked, swept.count, swept.failed) == ((jobs[0], jobs[1], jobs[4]), 3, True)
    assert [row.status for row in bench.rows()] == ["pending", "pending", "running", "running", "pending"]
    assert bench.rows()[2:4] == before[2:4]
    again = bench.sweep(now, batch=1, hook=c.Hook("poison", jobs[2]))
    assert (again.hooked, again.failed) == ((jobs[3],), True)


@pytest.mark.parametrize(("kind", "given"), [("raise", slice(2, 3)), ("cancel", slice(0, 2))])
def test_a_sweep_that_committed_nothing_passes_on_what_its_hook_raised(
    bench: Bench, kind: c.HookKind, given: slice
) -> None:
    jobs = tuple(bench.held().job for _ in range(3))
    before = bench.rows()
    assert bench.do(c.Recover(2, c.Hook(kind)), NOW + bench.lease) == o.HookRaised(jobs[given])
    assert bench.rows() == before
    assert bench.do(c.Probe()) == o.Probed(0, 0)


def test_an_idle_tick_sweeps(bench: Bench) -> None:
    handle = bench.held()
    outcome = bench.do(c.Tick(2), NOW + bench.lease, 2)
    assert isinstance(outcome, o.Recovered) and [row.job for row in outcome.rows] == [handle.job]


def test_a_start_takes_its_own_host_s_jobs_and_leaves_the_other_s(bench: Bench) -> None:
    own, foreign = bench.held(worker=1), bench.held(worker=2)
    before = bench.rows()
    outcome = bench.do(c.StartUp(0), NOW + 1)
    assert isinstance(outcome, o.Recovered) and [row.job for row in outcome.rows] == [own.job]
    assert bench.row(0).status == "pending" and bench.row(1) == before[1]
    outcome = bench.do(c.StartUp(0), NOW + bench.lease)
    assert isinstance(outcome, o.Recovered) and [row.job for row in outcome.rows] == [foreign.job]
