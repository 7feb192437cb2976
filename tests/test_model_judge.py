"""The judge of one job: where the boundaries of its rules lie, and whom a wrong row accuses."""

from __future__ import annotations

from typing import Any

import pytest
from fencepost.model import commands as c
from fencepost.model import outcomes as o
from fencepost.model.legal import possible
from fencepost.model.queues import BACKFILL, MUTATION
from fencepost.model.step import step
from fencepost.model.world import Context, Record, Step, Violation, World
from judging import EXPIRY, HANDLE, NOW, WRITE_WITH, judge, record, row_of

VERBS = ("renew", "complete", "fail", "release", "acknowledge")
WRITES = {verb: WRITE_WITH[verb](HANDLE) for verb in VERBS}


def test_after_a_cancel_request_success_is_refused_or_ends_cancelled() -> None:
    job = record(cancel=50)
    ended = job._replace(status="cancelled", owner=0, expires=None, lease=0)
    assert judge(job, c.Complete(HANDLE), o.REJECTED) == "right"
    assert judge(job, c.Complete(HANDLE), o.Accepted("canceled"), row_of(ended)) == "right"
    succeeded = row_of(ended, status="succeeded")
    assert judge(job, c.Complete(HANDLE), o.Accepted("succeeded"), succeeded) == "CANCEL-06"
    assert judge(job, c.Fail(HANDLE), o.Accepted("failed"), row_of(ended, status="failed")) == "CANCEL-06"
    assert judge(record(), c.Acknowledge(HANDLE), o.Accepted("canceled"), row_of(ended, cancel=None)) == "CANCEL-04"


# ------------------------------------------------------------------------------------------------------- boundaries


@pytest.mark.parametrize(("offset", "expired"), [(-1, False), (0, True), (1, True)])
def test_a_sweep_moves_a_job_from_the_tick_of_its_expiry_on(offset: int, expired: bool) -> None:
    world, context = World(BACKFILL, EXPIRY + offset, (record(BACKFILL),)), Context(EXPIRY + offset)
    moved = step(world, c.Recover(), o.Recovered((o.RecoveredRow(1, "pending"),), 1), context)
    left = step(world, c.Recover(), o.Recovered(dml=0), context)
    assert (isinstance(moved, Step), isinstance(left, Step)) == (expired, not expired)
    if expired:
        assert isinstance(left, Violation) and left.clause == "REC-01"
    else:
        assert isinstance(moved, Violation) and moved.clause == "REC-02"


@pytest.mark.parametrize(("offset", "due"), [(-1, False), (0, True), (1, True)])
def test_a_job_is_due_from_its_instant_on(offset: int, due: bool) -> None:
    job = record(status="pending", owner=0, expires=None, due=EXPIRY)
    world, context = World(MUTATION, EXPIRY + offset, (job,)), Context(EXPIRY + offset)
    won = step(world, c.Claim(1), o.Claimed((c.Handle(1, 1, 3),)), context)
    empty = step(world, c.Claim(1), o.Claimed(), context)
    assert (isinstance(won, Step), isinstance(empty, Step)) == (due, not due)
    if not due:
        assert isinstance(won, Violation) and won.clause == "CLAIM-03"


# ------------------------------------------------------------------------------------------------- whom a row accuses

WRONG: dict[str, Any] = {
    "status": "lost", "owner": "host-b:1:w2", "expires": 7, "heartbeat": 7, "started": 7, "attempts": 9,
    "max_attempts": 9, "token": 9, "due": 7, "cancel": 7, "error": "NO_FAMILY_AT_ALL",
}  # fmt: skip
"""A wrong value for each field; `finished` is wrong the other way about."""

PENDING_ROW = record(status="pending", owner=0, expires=None, lease=0, attempts=1)
STEPS: dict[str, tuple[Record, c.Command, o.Outcome, Record]] = {
    "claim": (
        PENDING_ROW,
        c.Claim(1),
        o.Claimed((c.Handle(1, 1, 3),)),
        record(token=3, expires=NOW + 45, issued=((1, 2), (1, 3))),
    ),
    "renew": (record(), c.Renew(HANDLE), o.Accepted("running"), record(expires=NOW + 45)),
    "complete": (
        record(),
        c.Complete(HANDLE),
        o.Accepted("succeeded"),
        record(status="succeeded", owner=0, expires=None, lease=0),
    ),
    "fail": (record(), c.Fail(HANDLE), o.Accepted("failed"), record(status="failed", owner=0, expires=None, lease=0)),
    "retry": (
        record(),
        c.Fail(HANDLE, "infra", "RENDER_SERVICE_UNAVAILABLE"),
        o.Accepted("pending", 150),
        record(status="pending", owner=0, expires=None, lease=0, due=150),
    ),
    "release": (record(), c.Release(HANDLE), o.Accepted("pending"), PENDING_ROW),
    "acknowledge": (
        record(cancel=50),
        c.Acknowledge(HANDLE),
        o.Accepted("canceled"),
        record(status="cancelled", owner=0, expires=None, lease=0, cancel=50),
    ),
    "cancel, pending": (
        PENDING_ROW,
        c.RequestCancel(1),
        o.CancelAnswer("cancelled"),
        PENDING_ROW._replace(status="cancelled", cancel=NOW),
    ),
    "cancel, running": (record(), c.RequestCancel(1), o.CancelAnswer("recorded"), record(cancel=NOW)),
    "sweep": (
        record(expires=NOW),
        c.Recover(),
        o.Recovered((o.RecoveredRow(1, "pending", 150),), 1),
        record(status="pending", owner=0, token=3, expires=None, lease=0, due=150),
    ),
}


ALL = ("owner", "expires", "attempts", "max_attempts", "cancel", "finished")
ENDED = ("expires", "attempts", "max_attempts", "cancel", "finished")
UNASKED = tuple(field for field in ENDED if field != "cancel")
"""Fields that every row must have right, those that a terminal row must (owner and token are then unspecified), and
those that a cancelled one must, which need not say when that was asked for.
"""


def blames(fields: tuple[str, ...], clause: str, **finer: str) -> dict[str, str]:
    """One clause for all these fields but the finer ones; a word that is no status is TERM-01's everywhere."""
    return {**dict.fromkeys(fields, clause), "status": "TERM-01", **finer}


ACCUSED: dict[str, dict[str, str]] = {
    "claim": blames(
        (*ALL, "token", "heartbeat", "started", "error"), "CLAIM-05", attempts="ATT-01", max_attempts="ATT-01"
    ),
    "renew": blames((*ALL, "token", "heartbeat"), "LEASE-03", attempts="ATT-01"),
    "complete": blames((*ENDED, "error"), "TERM-03", attempts="ATT-01"),
    "fail": blames((*ENDED, "error"), "TERM-03", attempts="ATT-01"),
    "retry": blames((*ALL, "token", "due"), "ATT-02", attempts="ATT-01"),
    "release": blames((*ALL, "token", "due"), "REL-01"),
    "acknowledge": blames(UNASKED, "TERM-03"),
    "cancel, pending": blames(UNASKED, "CANCEL-01"),
    "cancel, running": blames((*ALL, "token", "heartbeat", "started", "due", "error"), "CANCEL-02"),
    "sweep": blames((*ALL, "token", "due"), "REC-01", attempts="REC-03", max_attempts="REC-03"),
}


def accused(name: str) -> dict[str, str]:
    """Per field the clause that a wrong value of it breaks; a field that the contract leaves open is left out."""
    before, command, outcome, after = STEPS[name]
    right = row_of(after, started=NOW) if name == "claim" else row_of(after)
    assert judge(before, command, outcome, right) == "right"
    wrong = {**WRONG, "finished": NOW if right.finished is None else None}
    verdicts = {
        field: judge(before, command, outcome, right._replace(**{field: value})) for field, value in wrong.items()
    }
    return {field: clause for field, clause in verdicts.items() if clause != "right"}


@pytest.mark.parametrize("name", STEPS)
def test_a_wrong_field_accuses_the_clause_that_sets_it(name: str) -> None:
    assert accused(name) == ACCUSED[name]


@pytest.mark.parametrize(
    ("name", "status", "clause"),
    [
        ("complete", "completed", "TERM-04"),
        ("fail", "error", "TERM-04"),
        ("acknowledge", "cancelled", "TERM-04"),
        ("complete", "lost", "TERM-01"),
    ],
)
def test_a_wrong_spelling_in_the_row_is_told_from_a_wrong_word(name: str, status: str, clause: str) -> None:
    before, command, outcome, after = STEPS[name]
    assert judge(before, command, outcome, row_of(after, status=status)) == clause


@pytest.mark.parametrize("name", ["renew", "complete", "fail", "release", "acknowledge"])
def test_an_accepted_write_that_changed_nothing_is_a_silent_refusal(name: str) -> None:
    before, command, outcome, _ = STEPS[name]
    assert judge(before, command, outcome, row_of(before)) == "FENCE-06"


def test_a_write_that_left_the_status_alone_but_not_the_rest_is_no_silence() -> None:
    before, command, outcome, _ = STEPS["release"]
    assert judge(before, command, outcome, row_of(before, owner=None, expires=None)) == "REL-01"


@pytest.mark.parametrize("status", ["failed", "cancelled"])
def test_a_sweep_that_ends_a_job_spends_its_token_too(status: str) -> None:
    before = record(expires=NOW, attempts=3, cancel=50 if status == "cancelled" else None)
    swept = o.Recovered((o.RecoveredRow(1, MUTATION.spell(status)),), 1)
    ended = before._replace(status=status, token=3, expires=None, owner=0)
    code = "LEASE_TIMEOUT_MAX_ATTEMPTS" if status == "failed" else None
    assert judge(before, c.Recover(), swept, row_of(ended, error=code)) == "right"
    assert judge(before, c.Recover(), swept, row_of(ended, error=code, token=2)) == "REC-01"


def test_a_hook_that_was_given_a_job_nobody_may_claim_tells_on_the_claim() -> None:
    claim = c.Claim(1, hook=c.Hook("raise"))
    ended = record(status="succeeded", owner=0, expires=None, lease=0)
    asked = record(status="pending", owner=0, expires=None, lease=0, cancel=50)
    assert judge(record(), claim, o.HookRaised((1,))) == "CLAIM-01"
    assert judge(ended, claim, o.HookRaised((1,))) == "CLAIM-01"
    assert judge(asked, claim, o.HookRaised((1,))) == "CLAIM-02"


def test_a_hook_that_was_given_a_job_nobody_may_sweep_tells_on_the_sweep() -> None:
    sweep = c.Recover(hook=c.Hook("raise"))
    assert judge(record(), sweep, o.HookRaised((1,))) == "REC-02"
    assert judge(record(status="succeeded", owner=0, expires=None, lease=0), sweep, o.HookRaised((1,))) == "TERM-02"


def test_a_sweep_that_keeps_a_token_is_told_from_one_that_copies_it() -> None:
    """Kept is REC-01; another row's is REC-09."""
    jobs = (record(expires=NOW), record(expires=NOW, token=1, issued=((1, 1),)))
    world = World(MUTATION, NOW, jobs, tuple(row_of(job) for job in jobs))
    due = NOW + 50
    swept = o.Recovered((o.RecoveredRow(1, "pending", due), o.RecoveredRow(2, "pending", due)), 2)

    def clause(first: int, second: int) -> str:
        after = [
            row_of(job._replace(status="pending", owner=0, expires=None, lease=0, due=due), token=token)
            for job, token in zip(jobs, (first, second), strict=True)
        ]
        judged = step(world, c.Recover(), swept, Context(NOW, False, tuple(after)))
        return judged.clause if isinstance(judged, Violation) else "right"

    assert clause(3, 2) == "right"
    assert clause(3, 3) == "REC-09"
    assert clause(2, 2) == "REC-01"


def test_success_reported_after_a_cancel_with_the_row_unchanged_is_a_silent_refusal() -> None:
    assert judge(record(cancel=50), WRITES["complete"], o.Accepted("succeeded")) == "FENCE-06"


# ------------------------------------------------------------------------------------------- replies that are lost


def test_after_an_unknown_outcome_a_write_took_effect_or_did_not() -> None:
    world = World(BACKFILL, NOW, (record(BACKFILL),))
    handle = c.Handle(1, 1)
    worlds = possible(world, c.Complete(handle), Context(NOW))
    assert {each.jobs[0].status for each in worlds} == {"running", "succeeded"} and world in worlds
    assert possible(world, c.Complete(c.Handle(1, 2)), Context(NOW)) == {world}, "refused or lost, nothing changed"
    assert possible(world, c.Checkpoint(handle), Context(NOW)) == {world}


def test_after_an_unknown_claim_any_number_of_the_due_jobs_runs() -> None:
    pending = record(BACKFILL, status="pending", owner=0, expires=None, lease=0, issued=())
    world = World(BACKFILL, NOW, (pending, pending))
    worlds = possible(world, c.Claim(1, 2, 2), Context(NOW))
    assert {tuple(job.status for job in each.jobs) for each in worlds} == {
        ("pending", "pending"), ("running", "pending"), ("running", "running"),
    }  # fmt: skip
