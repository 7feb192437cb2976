"""What the queue `build` has beyond the others, on both databases: named attempts, deadlines, claims of one job, a
success that may be reported again, and columns of its own.
"""

from __future__ import annotations

import pytest
from fencepost.adapters.contract import AdapterError
from fencepost.model import commands as c
from fencepost.model import outcomes as o
from fencepost.model.queues import BACKFILL, BUILD, MUTATION, SCREENSHOT
from reference_bench import NOW, RETRY, WRITES, Bench, empty_bench, on, one_runner, opened_bench  # noqa: F401

OF_BUILD = [write for write in WRITES if write.verb in BUILD.verbs]
each_write = pytest.mark.parametrize("write", OF_BUILD)
around = pytest.mark.parametrize("offset", [-1, 0, 1])


def claimed(bench: Bench, command: c.Claim, now: int = NOW) -> list[c.JobId]:
    outcome = bench.do(command, now, command.worker)
    assert isinstance(outcome, o.Claimed)
    return [handle.job for handle in outcome.handles]


# Columns.


@on(BUILD)
def test_a_queue_has_the_columns_that_it_declares_by_its_own_names(bench: Bench) -> None:
    names = {column.name for column in bench.adapter.runtime.table.columns}
    assert names == {
        "id", "created_at", "status", "lease_owner", "lease_expires_at", "claimed_at", "finished_at", "attempt_count",
        "max_attempts", "attempt_id", "deadline_at", "artifact_key",
    }  # fmt: skip


@on(BUILD)
def test_a_renewal_moves_the_one_instant_that_is_both_heartbeat_and_start(bench: Bench) -> None:
    handle = bench.held()
    assert (bench.row().heartbeat, bench.row().started) == (NOW, NOW)
    bench.do(c.Renew(handle), NOW + 7, 1)
    assert (bench.row().heartbeat, bench.row().started) == (NOW + 7, NOW + 7)


UNSERVED = [
    (BUILD, c.RequestCancel(1)), (BUILD, c.Acknowledge(c.Handle(1, 1))), (BUILD, c.Checkpoint(c.Handle(1, 1))),
    (BUILD, c.Skip(c.Handle(1, 1))), (BUILD, c.Atomically((c.Skip(c.Handle(1, 1)),))),
    (SCREENSHOT, c.PutArtifact(c.Handle(1, 1))), (SCREENSHOT, c.ReadArtifact(1)),
    (SCREENSHOT, c.Plant(1, "deadline", 1)), (MUTATION, c.Skip(c.Handle(1, 1))), (BACKFILL, c.Claim(1, job=1)),
]  # fmt: skip


@pytest.mark.parametrize(
    ("opened", "command"),
    [(("sqlite", queue), command) for queue, command in UNSERVED],
    ids=[f"sqlite-{queue.key}-{command.verb}" for queue, command in UNSERVED],
    indirect=["opened"],
)
def test_what_a_queue_does_not_serve_is_refused(bench: Bench, command: c.Command) -> None:
    with pytest.raises(AdapterError, match=bench.queue.key):
        bench.do(command)


# Attempts.


@on(BUILD)
def test_no_two_claims_name_the_same_attempt(bench: Bench) -> None:
    bench.enqueue(9)
    bench.enqueue(9)
    assert bench.row().token is None
    tokens = []
    for worker in (1, 2, 1):
        handles = bench.claim(worker, count=2)
        assert [row.token for row in bench.rows()] == [handle.token for handle in handles]
        tokens += [handle.token for handle in handles]
        for handle in handles:
            bench.do(c.Release(handle), NOW, worker)
    assert len(set(tokens)) == 6 and all(isinstance(token, str) and token for token in tokens)


@on(BUILD)
def test_after_a_reset_equal_claims_name_equal_attempts_so_that_schedules_can_be_replayed(bench: Bench) -> None:
    before = bench.held(2).token, bench.held(1).token
    bench.runner.run(bench.adapter.reset())
    assert (bench.held(2).token, bench.held(1).token) == before


@each_write
@on(BUILD)
def test_the_same_worker_s_older_attempt_may_write_no_more(bench: Bench, write: type[c.HandleCommand]) -> None:
    stale = bench.held()
    bench.do(c.Release(stale), NOW, 1)
    (current,) = bench.claim()
    before = bench.row()
    assert isinstance(bench.do(write(stale), NOW, 1), o.Rejected) and bench.row() == before
    assert isinstance(bench.do(write(current), NOW, 1), o.Accepted)


@on(BUILD)
def test_a_job_that_was_given_back_or_recovered_keeps_its_attempt_and_its_artifact_until_the_next_claim(
    bench: Bench,
) -> None:
    for give_back in (c.Release, None):
        handle = bench.held()
        bench.do(c.PutArtifact(handle), NOW, 1)
        if give_back is None:
            bench.sweep(NOW + bench.lease)
        else:
            bench.do(give_back(handle), NOW, 1)
        row = bench.row(-1)
        assert (row.status, row.token, row.artifact) == ("pending", handle.token, handle.token)
        (again,) = bench.claim(2, NOW + bench.lease)
        row = bench.row(-1)
        assert (row.token, row.artifact) == (again.token, None) and again.token != handle.token
        bench.do(c.Complete(again), NOW + bench.lease, 2)


# Deadlines.


@on(BUILD)
@around
def test_a_job_is_claimed_before_its_deadline_and_not_from_it_on(bench: Bench, offset: int) -> None:
    job = bench.enqueue(deadline_in=50)
    assert [handle.job for handle in bench.claim(now=NOW + 50 + offset)] == ([job] if offset < 0 else [])
    assert bench.row().deadline == NOW + 50


@on(BUILD)
@pytest.mark.parametrize("named", [False, True])
@around
def test_the_lease_of_a_claim_ends_at_the_deadline_at_the_latest(bench: Bench, offset: int, named: bool) -> None:
    job = bench.enqueue(deadline_in=90)
    assert claimed(bench, c.Claim(1, lease=90 + offset, job=job if named else None)) == [job]
    assert bench.row().expires == NOW + 90 + min(offset, 0)


@on(BUILD)
def test_without_a_deadline_a_lease_is_as_long_as_asked(bench: Bench) -> None:
    handle = bench.held()
    assert (bench.row().deadline, bench.row().expires) == (None, NOW + bench.lease)
    bench.do(c.Renew(handle, 99), NOW + 1, 1)
    assert bench.row().expires == NOW + 100


@on(BUILD)
@around
def test_a_renewed_lease_ends_at_the_deadline_at_the_latest(bench: Bench, offset: int) -> None:
    handle = bench.held(deadline_in=2000)
    assert bench.do(c.Renew(handle, 1100 + offset), NOW + 900, 1) == o.Accepted("running")
    assert bench.row().expires == NOW + 2000 + min(offset, 0)


@each_write
@on(BUILD)
@around
def test_a_holder_writes_nothing_from_the_deadline_on(bench: Bench, write: type[c.HandleCommand], offset: int) -> None:
    handle = bench.held()
    assert bench.do(c.Plant(handle.job, "deadline", 50)) == o.DONE  # below the lease that the claim was given
    before = bench.row()
    assert (before.deadline, before.expires) == (NOW + 50, NOW + bench.lease)
    outcome = bench.do(write(handle), NOW + 50 + offset, 1)
    assert isinstance(outcome, o.Accepted if offset < 0 else o.Rejected)
    assert (bench.row() == before) == (offset >= 0)


@on(BUILD)
@around
@pytest.mark.parametrize("sweep", [c.Recover(), c.Tick(1), c.StartUp(0)])
def test_every_sweep_fails_a_pending_job_from_its_deadline_on(bench: Bench, sweep: c.Command, offset: int) -> None:
    job = bench.enqueue(deadline_in=50)
    before, now = bench.row(), NOW + 50 + offset
    if offset < 0:
        assert bench.do(sweep, now) == o.Recovered(dml=0) and bench.row() == before
        return
    assert bench.do(sweep, now) == o.Recovered((o.RecoveredRow(job, "failed"),), 1, dml=1)
    row = bench.row()
    assert (row.status, row.finished, row.attempts, row.error) == ("failed", now, 0, None)


@on(BUILD)
def test_an_expired_job_fails_past_its_deadline_whatever_the_budget_and_is_retried_before_it(bench: Bench) -> None:
    cut, early, planted = bench.held(deadline_in=50), bench.held(), bench.held()
    bench.do(c.Plant(early.job, "deadline", bench.lease + 1))
    bench.do(c.Plant(planted.job, "deadline", bench.lease))
    assert [(row.job, row.status) for row in bench.sweep(NOW + 50).rows] == [(cut.job, "failed")]
    now = NOW + bench.lease
    assert [(row.job, row.status) for row in bench.sweep(now).rows] == [
        (early.job, "pending"), (planted.job, "failed"),
    ]  # fmt: skip
    for row, finished in zip(bench.rows(), (NOW + 50, None, now), strict=True):
        assert (row.attempts, row.expires, row.owner, row.finished) == (1, None, None, finished)


@on(BUILD)
def test_a_valid_lease_is_left_alone_past_a_deadline_that_somebody_moved(bench: Bench) -> None:
    handle = bench.held()
    bench.do(c.Plant(handle.job, "deadline", 50))
    before = bench.row()
    assert bench.sweep(NOW + 60) == o.Recovered(dml=0) and bench.row() == before
    outcome = bench.do(c.StartUp(0), NOW + 60)  # but for the process that held it, and has died
    assert isinstance(outcome, o.Recovered) and outcome.rows == (o.RecoveredRow(handle.job, "failed"),)


@on(BUILD)
def test_a_head_past_its_deadline_or_still_leased_does_not_starve_the_rest(bench: Bench) -> None:
    bench.enqueue(deadline_in=50)
    leased, follower = bench.enqueue(), bench.enqueue()
    bench.do(c.Plant(leased, "lease", 100))
    assert [handle.job for handle in bench.claim(now=NOW + 60)] == [follower]


@on(BUILD)
def test_a_deadline_can_be_moved_whatever_the_status(bench: Bench) -> None:
    handle = bench.held()
    bench.do(c.Complete(handle), NOW, 1)
    row = bench.row()
    bench.do(c.Plant(handle.job, "deadline", -5))
    assert bench.row() == row._replace(deadline=NOW - 5)
    assert bench.sweep(NOW) == o.Recovered(dml=0)


# Claims.


@on(BUILD)
@pytest.mark.parametrize("named", [False, True])
@around
def test_a_pending_job_is_claimed_once_the_lease_that_was_left_on_it_has_run_out(
    bench: Bench, offset: int, named: bool
) -> None:
    job = bench.enqueue()
    assert bench.do(c.Plant(job, "lease", 100)) == o.DONE and bench.row().expires == NOW + 100
    asked = c.Claim(1, job=job if named else None)
    assert claimed(bench, asked, NOW + 100 + offset) == ([] if offset < 0 else [job])


@on(BUILD)
def test_a_lease_is_left_on_pending_jobs_only(bench: Bench) -> None:
    handle = bench.held()
    before = bench.row()
    assert bench.do(c.Plant(handle.job, "lease", 5)) == o.DONE and bench.row() == before


@on(BUILD)
def test_a_claim_of_one_job_takes_it_or_nothing(bench: Bench) -> None:
    first, second = bench.enqueue(), bench.enqueue()
    assert claimed(bench, c.Claim(2, 10, 10, job=second)) == [second]
    assert [row.owner for row in bench.rows()] == [None, c.worker_name(2)]
    before = bench.rows()
    assert claimed(bench, c.Claim(1, job=second)) == [] and bench.rows() == before
    assert bench.do(c.Probe()) == o.Probed(0, 0)
    overdue = bench.enqueue(deadline_in=1)
    assert claimed(bench, c.Claim(1, job=overdue), NOW + 1) == []
    assert bench.do(c.Claim(1, job=first, hook=c.Hook("raise")), NOW, 1) == o.HookRaised((first,))
    assert claimed(bench, c.Claim(1)) == [first]


@on(BUILD)
def test_a_worker_s_usual_claim_scans_many_and_takes_one(bench: Bench) -> None:
    jobs = [bench.enqueue() for _ in range(3)]
    assert claimed(bench, c.Claim(1, *BUILD.bounds)) == jobs[:1]
    assert [row.status for row in bench.rows()] == ["running", "pending", "pending"]


# A success reported again.


@on(BUILD)
def test_a_success_is_accepted_again_of_the_same_attempt_and_changes_nothing(bench: Bench) -> None:
    stale = bench.held()
    bench.do(c.Release(stale), NOW, 1)
    (handle,) = bench.claim()
    bench.do(c.Complete(handle), NOW + 1, 1)
    row = bench.row()
    for now in (NOW + 2, NOW + 2 * bench.lease):
        assert bench.do(c.Complete(handle), now, 1) == o.Accepted("succeeded")
        assert isinstance(bench.do(c.Complete(stale), now, 1), o.Rejected)
        assert bench.row() == row
    assert bench.do(c.Probe()) == o.Probed(0, 0)


@on(BUILD)
def test_only_a_success_can_be_reported_again(bench: Bench) -> None:
    failed, released = bench.held(), bench.held()
    bench.do(c.Fail(failed), NOW, 1)
    bench.do(c.Release(released), NOW, 1)
    before = bench.rows()
    for handle in (failed, released):
        assert isinstance(bench.do(c.Complete(handle), NOW, 1), o.Rejected)
    assert bench.rows() == before


@on(BUILD)
@pytest.mark.parametrize("end", ["commit", "rollback", "raise"])
def test_a_success_is_reported_again_inside_of_its_caller_s_transaction(bench: Bench, end: c.End) -> None:
    first, second = bench.held(), bench.held()
    before = bench.rows()
    outcome = bench.do(c.Atomically((c.Complete(first), c.Complete(first), c.Fail(second, *RETRY)), end), NOW, 1)
    done = o.Accepted("succeeded")
    assert outcome == o.Atomic((done, done, o.Accepted("pending")))
    after = [row.status for row in bench.rows()]
    assert after == ["succeeded", "pending"] if end == "commit" else bench.rows() == before
    assert bench.do(c.Probe()) == o.Probed(0, 0)
