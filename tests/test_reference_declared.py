"""Queues that nobody has yet, declared in other combinations: the reference runtime reads the declaration alone."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from fencepost.adapters.reference.rules import CONTRACT, Attempt, Rules, Shape
from fencepost.model import commands as c
from fencepost.model import outcomes as o
from fencepost.model.errors import classify
from fencepost.model.queues import BACKFILL, BUILD, MUTATION, SCREENSHOT, QueueSpec
from reference_bench import NOW, Bench, bench_on, one_runner  # noqa: F401

databases = pytest.mark.parametrize("database", ["sqlite", "pg"])
TIMED = replace(MUTATION, key="timed", deadline=True)
"""Everything that a sweep may look at: cancels, deadlines, back-off, generations and stored codes."""


# Deadlines beside cancels, codes and generations.


@databases
def test_recovery_looks_for_a_cancel_then_at_the_deadline_then_at_the_budget(
    runner: asyncio.Runner, database: str
) -> None:
    with bench_on(runner, database, TIMED) as bench:
        cancelled, overdue = bench.held(deadline_in=45), bench.held(deadline_in=45)
        retried, used_up = bench.held(deadline_in=46), bench.held(max_attempts=1)
        bench.do(c.RequestCancel(cancelled.job))
        now = NOW + bench.lease
        assert bench.sweep(now).rows == (
            o.RecoveredRow(cancelled.job, "canceled"), o.RecoveredRow(overdue.job, "failed"),
            o.RecoveredRow(retried.job, "pending", now + 5), o.RecoveredRow(used_up.job, "failed"),
        )  # fmt: skip
        rows = bench.rows()
        assert [row.token for row in rows] == [2, 2, 2, 2]
        assert [row.finished for row in rows] == [now, now, None, now]
        assert {row.error for row in rows[1::2]} == {"LEASE_TIMEOUT_DEADLINE", "LEASE_TIMEOUT_MAX_ATTEMPTS"}
        assert classify("LEASE_TIMEOUT_DEADLINE") == "LEASE"


@databases
def test_a_job_is_claimed_while_enough_time_is_left(runner: asyncio.Runner, database: str) -> None:
    with bench_on(runner, database, replace(TIMED, claim_margin_seconds=10)) as bench:
        short, enough, endless = bench.enqueue(deadline_in=10), bench.enqueue(deadline_in=11), bench.enqueue()
        assert [handle.job for handle in bench.claim(count=3)] == [enough, endless]
        assert bench.row(0).status == "pending" and bench.sweep(NOW + 9).rows == ()
        assert [row.job for row in bench.sweep(NOW + 10).rows] == [short]


@databases
def test_a_pending_job_that_was_called_off_is_cancelled_also_past_its_deadline(
    runner: asyncio.Runner, database: str
) -> None:
    with bench_on(runner, database, TIMED) as bench:
        both, called_off = bench.enqueue(deadline_in=5), bench.enqueue()
        late, kept = bench.enqueue(deadline_in=5), bench.enqueue(deadline_in=6)
        for job in (both, called_off):
            bench.do(c.RequestCancel(job, by_parent=True))
        swept = bench.sweep(NOW + 5, batch=2)
        assert [(row.job, row.status) for row in swept.rows] == [
            (both, "canceled"), (called_off, "canceled"), (late, "failed"),
        ]  # fmt: skip
        assert (bench.row(2).error, bench.row(2).token) == ("LEASE_TIMEOUT_DEADLINE", 0)
        assert [handle.job for handle in bench.claim(now=NOW + 5)] == [kept]


# Cancels.


@databases
@pytest.mark.parametrize("wins", [False, True])
def test_a_success_after_a_request_stands_where_the_queue_declares_it(
    runner: asyncio.Runner, database: str, wins: bool
) -> None:
    with bench_on(runner, database, replace(BACKFILL, completion_wins=wins)) as bench:
        handle = bench.held()
        bench.do(c.RequestCancel(handle.job))
        before = bench.row()
        outcome = bench.do(c.Complete(handle), NOW + 1, 1)
        if not wins:
            assert isinstance(outcome, o.Rejected) and bench.row() == before
            return
        assert outcome == o.Accepted("succeeded")
        assert (bench.row().status, bench.row().finished, bench.row().cancel) == ("succeeded", NOW + 1, NOW)


@databases
def test_a_cancelled_pending_job_is_not_claimed_where_completions_win(runner: asyncio.Runner, database: str) -> None:
    with bench_on(runner, database, replace(BACKFILL, completion_wins=True)) as bench:
        bench.do(c.RequestCancel(bench.enqueue(), by_parent=True))
        assert bench.claim() == ()


# Names.

STANDARD = (
    "created_at", "status", "worker_id", "lease_expires_at", "heartbeat_at", "started_at", "finished_at",
    "attempt_count", "max_attempts", "cancel_requested_at", "error_code", "lease_generation", "attempt_id",
    "next_attempt_at", "deadline_at", "artifact_key",
)  # fmt: skip
OWN_NAMES = tuple((name, f"own_{name}") for name in STANDARD)


@databases
@pytest.mark.parametrize("spec", [BACKFILL, MUTATION, SCREENSHOT, BUILD, TIMED], ids=lambda spec: spec.key)
def test_a_queue_may_call_every_column_otherwise(runner: asyncio.Runner, database: str, spec: QueueSpec) -> None:
    with bench_on(runner, database, replace(spec, columns=OWN_NAMES)) as bench:
        deadline = bench.lease if spec.deadline else 0
        expired, done, failed = bench.held(deadline_in=deadline), bench.held(), bench.held()
        assert bench.do(c.Renew(done), NOW + 1, 1) == o.Accepted("running")
        assert bench.do(c.Complete(done), NOW + 1, 1) == o.Accepted("succeeded")
        assert bench.do(c.Fail(failed), NOW + 1, 1) == o.Accepted("failed")
        if spec.artifacts:
            assert bench.do(c.PutArtifact(expired), NOW, 1) == o.Accepted("running")
        (swept,) = bench.sweep(NOW + bench.lease).rows
        assert (swept.job, swept.status) == (expired.job, "failed" if spec.deadline else "pending")
        assert [row.status for row in bench.rows()] == [swept.status, "succeeded", "failed"]
        assert bench.row(1).finished == NOW + 1


# Fences.


@databases
def test_named_attempts_need_no_artifacts_deadlines_or_claims_of_one_job(runner: asyncio.Runner, database: str) -> None:
    with bench_on(runner, database, replace(BACKFILL, fence="attempt_id")) as bench:
        stale = bench.held()
        bench.do(c.Release(stale), NOW, 1)
        (current,) = bench.claim()
        assert isinstance(bench.do(c.Complete(stale), NOW, 1), o.Rejected)
        assert bench.do(c.Complete(current), NOW, 1) == o.Accepted("succeeded")
        assert isinstance(bench.do(c.Complete(current), NOW, 1), o.Rejected)  # it declares no repeated success


# What the runtime reads of the rules, wherever a queue has it.


def older_and_newer(bench: Bench) -> tuple[c.Handle, c.Handle]:
    """Two claims of one job by one worker within one instant."""
    older = bench.held()
    bench.do(c.Release(older), NOW, 1)
    (newer,) = bench.claim()
    return older, newer


@databases
@pytest.mark.parametrize(
    "name", [lambda attempt: str(attempt.job), lambda attempt: attempt.owner, lambda attempt: f"at {attempt.now}"]
)
def test_an_attempt_is_named_as_the_rules_say(runner: asyncio.Runner, database: str, name: object) -> None:
    with bench_on(runner, database, BUILD, CONTRACT.but("attempt_id", name)) as bench:
        older, newer = older_and_newer(bench)
        assert older.token == newer.token == bench.row().token
        assert bench.do(c.Complete(older), NOW, 1) == o.Accepted("succeeded")


def test_what_an_attempt_is_named_after() -> None:
    known = Attempt(job=7, owner="host-a:1:w1", now=NOW, nth=3)
    names = {CONTRACT.attempt_id(each) for each in (known, known._replace(nth=4), known._replace(owner="host-b:1:w1"))}
    assert len(names) == 3


@databases
def test_without_the_attempt_in_the_look_any_success_counts_as_repeated(runner: asyncio.Runner, database: str) -> None:
    with bench_on(runner, database, BUILD, CONTRACT.without("repeated", "same_attempt")) as bench:
        older, newer = older_and_newer(bench)
        bench.do(c.Complete(newer), NOW, 1)
        assert bench.do(c.Complete(older), NOW, 1) == o.Accepted("succeeded")


@databases
def test_a_claim_that_is_not_narrowed_takes_the_oldest_and_not_the_one_it_names(
    runner: asyncio.Runner, database: str
) -> None:
    with bench_on(runner, database, BUILD, CONTRACT.without("claim_named", "this_job")) as bench:
        oldest, named = bench.enqueue(), bench.enqueue()
        outcome = bench.do(c.Claim(1, job=named), NOW, 1)
        assert isinstance(outcome, o.Claimed) and [handle.job for handle in outcome.handles] == [oldest]


SUBSELECT = Shape(skip_locked=False, ends_read=False, subselect=True)


@databases
def test_a_claim_that_picks_its_row_by_itself_can_name_it_too(runner: asyncio.Runner, database: str) -> None:
    rules: Rules = CONTRACT.but(f"claim_shape.{database}", SUBSELECT)
    with bench_on(runner, database, BUILD, rules) as bench:
        bench.enqueue()
        named = bench.enqueue()
        outcome = bench.do(c.Claim(1, 10, 10, job=named), NOW, 1)
        assert isinstance(outcome, o.Claimed) and [handle.job for handle in outcome.handles] == [named]
        assert [row.token is None for row in bench.rows()] == [True, False]


@databases
def test_who_acts_on_what_he_only_tried_has_the_name_of_his_attempt(runner: asyncio.Runner, database: str) -> None:
    rules = CONTRACT.but("claim_returns", "tried").without("claim_set", "attempt_id")
    with bench_on(runner, database, BUILD, rules) as bench:
        handle = bench.held()
        assert isinstance(handle.token, str) and bench.row().token is None
