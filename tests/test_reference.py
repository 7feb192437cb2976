"""The reference runtime, verb by verb, on both databases and all queues: what it answers and what it leaves behind."""

from __future__ import annotations

import pytest
from fencepost.model import commands as c
from fencepost.model import outcomes as o
from fencepost.model.queues import SCREENSHOT
from reference_bench import (  # noqa: F401
    NOW,
    RETRY,
    WRITES,
    Bench,
    asked,
    cancelling,
    empty_bench,
    on,
    one_runner,
    opened_bench,
)


def test_a_claim_sets_what_the_contract_says(bench: Bench) -> None:
    job = bench.enqueue()
    outcome = bench.do(c.Claim(2, lease=90), NOW, 2)
    assert isinstance(outcome, o.Claimed)
    (handle,) = outcome.handles
    assert handle == c.Handle(job, 2, bench.token(1, handle))
    assert bench.row() == o.Row(
        "running", c.worker_name(2), NOW + 90, NOW, NOW, None, 1, 3, handle.token, None, None, None
    )


def test_claims_take_the_oldest_and_no_more_than_asked(bench: Bench) -> None:
    third, second = bench.enqueue(now=NOW + 2), bench.enqueue(now=NOW + 1)
    first = bench.enqueue(now=NOW)
    outcome = bench.do(c.Claim(1, limit=3, max_claims=2), NOW + 9, 1)
    assert isinstance(outcome, o.Claimed) and [handle.job for handle in outcome.handles] == [first, second]
    bench.enqueue(now=NOW + 3)
    outcome = bench.do(c.Claim(1, limit=1, max_claims=2), NOW + 9, 1)
    assert isinstance(outcome, o.Claimed) and [handle.job for handle in outcome.handles] == [third]


def test_a_job_is_claimed_at_the_instant_it_is_due(bench: Bench) -> None:
    delayed = bench.enqueue(due_in=10)
    if bench.queue.backs_off:
        assert bench.claim(now=NOW + 9) == ()
    assert [handle.job for handle in bench.claim(now=NOW + 10)] == [delayed]


@cancelling
def test_a_job_is_never_claimed_after_a_cancel_request(bench: Bench) -> None:
    marked = bench.enqueue()
    assert bench.do(c.RequestCancel(marked, by_parent=True)) == o.CancelAnswer("recorded")
    assert (bench.row().status, bench.row().cancel) == ("pending", NOW)
    assert bench.claim() == ()


@cancelling
def test_an_excluded_head_does_not_starve_the_rest(bench: Bench) -> None:
    head, follower = bench.enqueue(), bench.enqueue()
    bench.do(c.RequestCancel(head, by_parent=True))
    assert [handle.job for handle in bench.claim()] == [follower]


@pytest.mark.parametrize("kind", ["raise", "cancel"])
def test_a_claim_whose_hook_raises_claims_nothing(bench: Bench, kind: c.HookKind) -> None:
    jobs = (bench.enqueue(), bench.enqueue())
    before = bench.rows()
    assert bench.do(c.Claim(1, 2, 2, hook=c.Hook(kind)), NOW, 1) == o.HookRaised(jobs)
    assert bench.rows() == before
    assert bench.do(c.Probe()) == o.Probed(0, 0)
    outcome = bench.do(c.Claim(1, 2, 2, hook=c.Hook("ok")), NOW, 1)
    assert isinstance(outcome, o.Claimed) and outcome.hooked == jobs


def test_a_claim_that_finds_nothing_leaves_nothing_open(bench: Bench) -> None:
    assert bench.do(c.Claim(1, hook=c.Hook("raise")), NOW, 1) == o.Claimed()
    assert bench.do(c.Probe()) == o.Probed(0, 0)


def test_handles_outlive_their_transaction_and_a_rollback_elsewhere(bench: Bench) -> None:
    bench.enqueue()
    (handle,) = bench.claim()
    bench.do(c.Atomically((c.Complete(handle),), "rollback"), NOW, 1)
    assert (handle.worker, handle.token) == (1, bench.token(1, handle))
    assert bench.do(c.Complete(handle), NOW, 1) == o.Accepted("succeeded")


@pytest.mark.parametrize("offset", [-1, 0, 1])
@asked("write", WRITES)
def test_the_holder_writes_until_the_instant_before_expiry_and_not_after(
    bench: Bench, write: type[c.HandleCommand], offset: int
) -> None:
    handle = bench.held()
    if write is c.Acknowledge:
        bench.do(c.RequestCancel(handle.job))
    before = bench.row()
    outcome = bench.do(write(handle), NOW + bench.lease + offset, 1)
    assert isinstance(outcome, o.Accepted if offset < 0 else o.Rejected)
    assert (bench.row() == before) == (offset >= 0)


@asked("write", (*WRITES, c.Checkpoint))
def test_a_superseded_worker_is_refused_everything(bench: Bench, write: type[c.HandleCommand]) -> None:
    stale = bench.held()
    bench.sweep(NOW + bench.lease)
    later = NOW + bench.lease + 100
    assert isinstance(bench.do(write(stale), later, 1), o.Rejected)
    (current,) = bench.claim(2, later)
    if write in (c.Acknowledge, c.Checkpoint):
        bench.do(c.RequestCancel(current.job), later)
    before = bench.row()
    assert isinstance(bench.do(write(stale), later, 1), o.Rejected)
    assert bench.row() == before
    expected = o.Accepted if write is not c.Checkpoint else o.Checkpointed
    assert isinstance(bench.do(write(current), later, 2), expected)


def test_an_older_handle_of_the_same_worker_is_stale_where_there_is_a_token(bench: Bench) -> None:
    stale = bench.held()
    bench.do(c.Release(stale), NOW, 1)
    (current,) = bench.claim()
    assert isinstance(bench.do(c.Renew(stale), NOW, 1), o.Rejected if bench.queue.has_token else o.Accepted)
    assert bench.do(c.Renew(current), NOW, 1) == o.Accepted("running")


def test_a_renewal_moves_heartbeat_and_expiry(bench: Bench) -> None:
    handle = bench.held()
    assert bench.do(c.Renew(handle), NOW + 7, 1) == o.Accepted("running")
    assert (bench.row().heartbeat, bench.row().expires) == (NOW + 7, NOW + 7 + bench.lease)
    bench.do(c.Renew(handle, 60), NOW + 8, 1)
    assert (bench.row().heartbeat, bench.row().expires) == (NOW + 8, NOW + 68)
    one_column = bench.queue.column("heartbeat_at") == bench.queue.column("started_at")
    assert bench.row().started == (NOW + 8 if one_column else NOW)


@asked("write", (*(kind for kind in WRITES if kind is not c.Complete), c.Checkpoint))
def test_a_terminal_job_stays_as_it_is(bench: Bench, write: type[c.HandleCommand]) -> None:
    handle = bench.held()
    assert bench.do(c.Complete(handle), NOW + 1, 1) == o.Accepted("succeeded")
    before = bench.row()
    assert before[:3] == ("succeeded", None, None) and before.finished == NOW + 1 and before.error is None
    assert isinstance(bench.do(write(handle), NOW + 2, 1), o.Rejected)
    repeated = bench.do(c.Complete(handle), NOW + 2, 1)
    assert repeated == o.Accepted("succeeded") if bench.queue.repeats_complete else isinstance(repeated, o.Rejected)
    if bench.queue.cancels:
        assert bench.do(c.RequestCancel(handle.job), NOW + 2) == o.CancelAnswer("terminal")
    assert bench.claim() == () and bench.sweep(NOW + 9999).rows == ()
    assert bench.row() == before


FAILURES = [
    # what, code, attempts allowed, the status it leads to or None for a refusal
    ("content", "PAGE_VALIDATION_FAILED", 3, "failed"),
    ("limit", "RENDER_QUEUE_FULL", 3, "failed"),
    ("infra", "RENDER_SERVICE_UNAVAILABLE", 2, "pending"),
    ("infra", "RENDER_SERVICE_UNAVAILABLE", 1, "failed"),
    ("infra", "RUNTIME_VITE_QUEUE_FULL", 3, "pending"),
    ("infra", "STORAGE_UNAVAILABLE", 3, "failed"),
    ("lease", "PAGE_SCREENSHOT_JOB_INTERRUPTED", 3, "pending"),
    ("lease", "PAGE_SCREENSHOT_JOB_INTERRUPTED", 1, "failed"),
    ("cancel", "AI_RUN_CANCELLED", 3, "cancelled"),
    ("infra", "PAGE_VALIDATION_FAILED", 3, None),
    ("content", "RENDER_SERVICE_UNAVAILABLE", 3, None),
    ("lease", "AI_PAGE_MUTATION_LEASE_LOST", 3, None),
    ("content", "AI_RUN_PROCESS_STOPPED", 3, None),
]


@pytest.mark.parametrize(("what", "code", "max_attempts", "status"), FAILURES)
def test_a_failure_ends_as_its_family_says(
    bench: Bench, what: c.What, code: str, max_attempts: int, status: str | None
) -> None:
    handle = bench.held(max_attempts=max_attempts)
    before = bench.row()
    outcome = bench.do(c.Fail(handle, what, code), NOW + 1, 1)
    row = bench.row()
    if status is None:
        assert isinstance(outcome, o.Rejected) and row == before
        return
    if status == "cancelled" and not bench.queue.cancels:
        status = "failed"
    due = bench.due(NOW + 6) if status == "pending" else None
    assert outcome == o.Accepted(bench.queue.spell(status), due)
    assert (row.status, row.owner, row.expires, row.due) == (bench.queue.spell(status), None, None, due)
    assert row.finished == (None if status == "pending" else NOW + 1) and row.attempts == 1
    assert row.error == (code if status != "cancelled" and bench.queue.stores_code else None)


def test_back_off_doubles_with_the_attempts_of_that_job(bench: Bench) -> None:
    bench.enqueue()
    for attempt, seconds in ((1, 5), (2, 10)):
        (handle,) = bench.claim(now=NOW * attempt)
        assert handle.token == bench.token(attempt, handle)
        expected = o.Accepted("pending", bench.due(NOW * attempt + seconds))
        assert bench.do(c.Fail(handle, *RETRY), NOW * attempt, 1) == expected


def test_a_released_job_has_its_attempt_back_and_its_token_spent(bench: Bench) -> None:
    handle = bench.held(max_attempts=1)
    assert bench.do(c.Release(handle), NOW + 1, 1) == o.Accepted("pending")
    row = bench.row()
    assert (row.status, row.owner, row.expires, row.attempts) == ("pending", None, None, 0)
    assert row.token == bench.token(1, handle)
    (again,) = bench.claim()
    assert again.token == bench.token(2, again) and (again != handle) == bench.queue.has_token


@cancelling
def test_a_pending_job_is_cancelled_at_once(bench: Bench) -> None:
    job = bench.enqueue()
    assert bench.do(c.RequestCancel(job), NOW + 1) == o.CancelAnswer("cancelled")
    row = bench.row()
    assert (row.status, row.finished, row.cancel) == (bench.cancelled, NOW + 1, NOW + 1)
    assert bench.do(c.RequestCancel(job), NOW + 2) == o.CancelAnswer("terminal") and bench.row() == row


@cancelling
def test_on_a_running_job_only_the_first_request_is_recorded(bench: Bench) -> None:
    handle = bench.held()
    before = bench.row()
    assert isinstance(bench.do(c.Acknowledge(handle), NOW, 1), o.Rejected)
    assert bench.do(c.Checkpoint(handle), NOW, 1) == o.Checkpointed(False)
    for instant in (NOW + 1, NOW + 2):
        assert bench.do(c.RequestCancel(handle.job), instant) == o.CancelAnswer("recorded")
        assert bench.row() == before._replace(cancel=NOW + 1)
    assert bench.do(c.Checkpoint(handle), NOW, 1) == o.Checkpointed(True)
    assert isinstance(bench.do(c.Complete(handle), NOW, 1), o.Rejected)
    assert bench.do(c.Acknowledge(handle), NOW + 3, 1) == o.Accepted(bench.cancelled)
    assert (bench.row().finished, bench.row().expires) == (NOW + 3, None)


@cancelling
@pytest.mark.parametrize("ending", [c.Release, c.Fail])
def test_after_a_request_failure_and_release_end_cancelled(bench: Bench, ending: type[c.HandleCommand]) -> None:
    for arguments in ((), RETRY) if ending is c.Fail else ((),):
        handle = bench.held()
        bench.do(c.RequestCancel(handle.job))
        assert bench.do(ending(handle, *arguments), NOW, 1) == o.Accepted(bench.cancelled)
        assert bench.row(-1).attempts == 1 and bench.row(-1).finished == NOW


@on(SCREENSHOT)
def test_a_job_that_need_not_run_ends_skipped_and_after_a_request_cancelled(bench: Bench) -> None:
    handle = bench.held()
    assert bench.do(c.Skip(handle), NOW + 1, 1) == o.Accepted("skipped")
    row = bench.row()
    assert (row.status, row.owner, row.expires, row.finished, row.error) == ("skipped", None, None, NOW + 1, None)
    assert isinstance(bench.do(c.Skip(handle), NOW + 2, 1), o.Rejected) and bench.row() == row
    handle = bench.held()
    bench.do(c.RequestCancel(handle.job))
    assert bench.do(c.Skip(handle), NOW + 1, 1) == o.Accepted("cancelled")
    assert (bench.row(1).status, bench.row(1).finished, bench.row(1).attempts) == ("cancelled", NOW + 1, 1)


@on(SCREENSHOT)
def test_a_retried_job_that_is_skipped_tells_no_error(bench: Bench) -> None:
    bench.do(c.Fail(bench.held(), *RETRY), NOW, 1)
    (handle,) = bench.claim()
    assert bench.do(c.Skip(handle), NOW, 1) == o.Accepted("skipped")
    assert bench.row().error is None


@cancelling
@pytest.mark.parametrize("end", ["commit", "rollback", "raise"])
def test_a_caller_ends_its_own_transaction(bench: Bench, end: c.End) -> None:
    first, second = bench.held(), bench.held()
    before = bench.rows()
    asked = (c.Complete(first), c.RequestCancel(second.job), c.Complete(second), c.Fail(second, *RETRY))
    outcome = bench.do(c.Atomically(asked, end), NOW, 1)
    assert isinstance(outcome, o.Atomic)
    accepted, recorded, refused, cancelled = outcome.outcomes
    assert (accepted, recorded) == (o.Accepted("succeeded"), o.CancelAnswer("recorded"))
    assert isinstance(refused, o.Rejected) and cancelled == o.Accepted(bench.cancelled)
    after = [row.status for row in bench.rows()]
    assert after == ["succeeded", bench.cancelled] if end == "commit" else bench.rows() == before
    assert bench.do(c.Probe()) == o.Probed(0, 0)


def test_a_crash_leaves_what_was_held_until_recovery(bench: Bench) -> None:
    handle = bench.held()
    assert bench.do(c.Crash(1)) == o.DONE
    assert bench.row().status == "running"
    assert bench.do(c.Renew(handle), NOW, 1) == o.Accepted("running")


def test_a_lease_lasts_three_heartbeats_or_is_refused(bench: Bench) -> None:
    assert bench.do(c.Configure(30, 10)) == o.Accepted("configured")
    for lease, heartbeat in ((29, 10), (30, 0), (0, 0)):
        assert isinstance(bench.do(c.Configure(lease, heartbeat)), o.Rejected)


def test_a_code_is_classified(bench: Bench) -> None:
    assert bench.do(c.Classify("RUNTIME_VITE_QUEUE_FULL")) == o.Classified("INFRA")
    assert bench.do(c.Classify("AI_RUN_PROCESS_STOPPED")) == o.Classified(None)
