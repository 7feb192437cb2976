"""What a queue declares before the judge: skips, completions that are repeated or win over a cancel, no cancel at all,
no stored codes.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from fencepost.model import commands as c
from fencepost.model import outcomes as o
from fencepost.model.queues import BACKFILL, BUILD, SCREENSHOT
from fencepost.model.world import Record
from judging import ATTEMPT, NOW, broken, build, checks_of, judge, judged, record, row_of, unheld


def answered(job: Record, command: c.HandleCommand, status: str) -> tuple[str, str]:
    """What an acceptance with this status breaks, if something was written."""
    return broken(judged(job, command, o.Accepted(status), row_of(job, attempts=9)))


# --------------------------------------------------------------------------------------------------------------- skip

SKIP = c.Skip(c.Handle(1, 1))
SKIPPED = o.Accepted("skipped")


def test_a_skipped_job_ends_skipped() -> None:
    job = record(SCREENSHOT)
    right = row_of(job._replace(**unheld("skipped")))
    found = checks_of(judged(job, SKIP, SKIPPED, right))
    assert found["TERM-01", "skip: skipped"] and found["TERM-03", "skip: skipped row"]
    assert ("TERM-04", "skip: skipped row") not in found, "it was never spelled otherwise"
    assert judge(job, SKIP, SKIPPED, right._replace(error="PAGE_SCREENSHOT_JOB_STALE")) == "right", "the code is open"
    for status in ("succeeded", "failed", "cancelled", "pending"):
        assert answered(job, SKIP, status) == ("TERM-01", "skip: skipped")
    assert answered(job, SKIP, "stale") == ("TERM-01", "skip: skipped row")


@pytest.mark.parametrize(
    ("changes", "clause"),
    [
        ({"status": "stale"}, "TERM-01"),
        ({"status": "cancelled"}, "TERM-03"),
        ({"finished": None}, "TERM-03"),
        ({"expires": NOW}, "TERM-03"),
        ({"attempts": 1}, "ATT-01"),
        ({"max_attempts": 9}, "TERM-03"),
    ],
)
def test_a_skipped_row_is_a_terminal_row(changes: dict[str, Any], clause: str) -> None:
    job = record(SCREENSHOT)
    wrong = row_of(job._replace(**unheld("skipped")), **changes)
    assert broken(judged(job, SKIP, SKIPPED, wrong)) == (clause, "skip: skipped row")


def test_a_skip_that_did_nothing_is_a_silent_refusal() -> None:
    job = record(SCREENSHOT)
    assert broken(judged(job, SKIP, SKIPPED)) == ("FENCE-06", "skip: skipped row")


def test_after_a_cancel_request_a_skip_ends_cancelled() -> None:
    job = record(SCREENSHOT, cancel=50)
    cancelled = row_of(job._replace(**unheld("cancelled")))
    named = "REL-01", "skip: after a cancel request"
    assert checks_of(judged(job, SKIP, o.Accepted("cancelled"), cancelled))[named]
    assert answered(job, SKIP, "skipped") == named
    assert broken(judged(job, SKIP, o.REJECTED)) == ("FENCE-01", "skip: held")


def test_a_skipped_job_is_over() -> None:
    job = record(SCREENSHOT, **unheld("skipped"))
    assert judge(job, c.RequestCancel(1), o.CancelAnswer("terminal")) == "right"
    assert broken(judged(job, c.RequestCancel(1), o.CancelAnswer("recorded"))) == ("CANCEL-03", "cancel: terminal")
    assert broken(judged(job, c.Claim(1), o.Claimed((c.Handle(1, 1),)))) == ("CLAIM-01", "claim: terminal job")
    swept = o.Recovered((o.RecoveredRow(1, "pending"),), 1)
    assert broken(judged(job, c.Recover(), swept)) == ("TERM-02", "recover: terminal row")


# ---------------------------------------------------------------------------------------------- repeated completions

DONE = build(**unheld("succeeded"), issued=((1, "one"), (2, "other"), (1, "two")))
AGAIN = c.Complete(ATTEMPT)
REPEATED = "FENCE-05", "complete: repeated by the same attempt"


def test_a_success_reported_again_by_its_attempt_is_accepted_and_changes_nothing() -> None:
    for now in (NOW, NOW + 10_000):
        assert checks_of(judged(DONE, AGAIN, o.Accepted("succeeded"), now=now))[REPEATED]
        assert broken(judged(DONE, AGAIN, o.REJECTED, now=now)) == REPEATED
    assert broken(judged(DONE, AGAIN, o.Accepted("failed"))) == REPEATED


@pytest.mark.parametrize("changes", [{"finished": NOW + 1}, {"heartbeat": NOW}, {"attempts": 3}, {"token": "four"}])
@pytest.mark.parametrize("answer", [o.Accepted("succeeded")])
def test_a_repeated_success_that_changes_its_row_breaks_the_same_clause(
    changes: dict[str, Any], answer: o.Outcome
) -> None:
    assert broken(judged(DONE, AGAIN, answer, row_of(DONE, **changes))) == REPEATED


@pytest.mark.parametrize("handle", [c.Handle(1, 1, "one"), c.Handle(1, 2, "other"), c.Handle(1, 2, "two")])
def test_another_attempt_has_no_success_to_repeat(handle: c.Handle) -> None:
    named = "TERM-02", "complete: terminal, succeeded"
    assert named in checks_of(judged(DONE, c.Complete(handle), o.REJECTED))
    finished = row_of(DONE, finished=NOW + 1)
    assert broken(judged(DONE, c.Complete(handle), o.Accepted("succeeded"), finished)) == named


@pytest.mark.parametrize("write", [c.Renew, c.Fail, c.Release, c.PutArtifact])
def test_nothing_but_a_success_is_repeated(write: type[c.HandleCommand]) -> None:
    verb = write.verb
    clause = "LEASE-02" if write is c.Renew else "TERM-02"
    assert checks_of(judged(DONE, write(ATTEMPT), o.REJECTED))[clause, f"{verb}: terminal, succeeded"]
    accepted = judged(DONE, write(ATTEMPT), o.Accepted("succeeded"), row_of(DONE, finished=NOW + 1))
    assert broken(accepted) == (clause, f"{verb}: terminal, succeeded")


def test_a_success_is_not_repeated_of_a_job_that_failed() -> None:
    failed = build(**unheld("failed"))
    assert checks_of(judged(failed, AGAIN, o.REJECTED))["TERM-02", "complete: terminal, failed"]


def test_where_no_success_may_be_repeated_it_is_refused() -> None:
    done = record(BACKFILL, **unheld("succeeded"))
    again = c.Complete(c.Handle(1, 1))
    assert checks_of(judged(done, again, o.REJECTED))["TERM-02", "complete: terminal, succeeded"]
    assert broken(judged(done, again, o.Accepted("succeeded")))[0] == "FENCE-06", "the row is unchanged"


def test_a_repeated_success_inside_a_callers_transaction_is_the_same() -> None:
    for end in ("commit", "rollback"):
        both = c.Atomically((AGAIN,), end)  # type: ignore[arg-type]
        assert checks_of(judged(DONE, both, o.Atomic((o.Accepted("succeeded"),))))[REPEATED]
        assert broken(judged(DONE, both, o.Atomic((o.REJECTED,)))) == REPEATED
        changed = row_of(DONE, finished=NOW + 1)
        assert broken(judged(DONE, both, o.Atomic((o.Accepted("succeeded"),)), changed)) == REPEATED


# -------------------------------------------------------------------------------------------------- completion wins

WINS = replace(BACKFILL, key="winning", completion_wins=True)
COMPLETE = c.Complete(c.Handle(1, 1))


def test_where_completion_wins_a_success_stands_after_a_cancel_request() -> None:
    job = record(WINS, cancel=50)
    named = "CANCEL-06", "complete: after a cancel request, and wins"
    succeeded = row_of(job._replace(**unheld("succeeded")))
    found = checks_of(judged(job, COMPLETE, o.Accepted("succeeded"), succeeded))
    assert found[named] and ("FENCE-01", "complete: held") not in found
    assert broken(judged(job, COMPLETE, o.REJECTED)) == named
    assert answered(job, COMPLETE, "cancelled") == named
    assert broken(judged(job, COMPLETE, o.Accepted("succeeded"))) == ("FENCE-06", "complete: succeeded row")
    plain = record(WINS)
    assert broken(judged(plain, COMPLETE, o.REJECTED)) == ("FENCE-01", "complete: held"), "nobody asked"


def test_where_completion_wins_nothing_else_does() -> None:
    job = record(WINS, cancel=50)
    fail = c.Fail(c.Handle(1, 1))
    assert answered(job, fail, "failed") == ("CANCEL-06", "fail: CONTENT after a cancel request")
    expired = record(WINS, cancel=50, expires=NOW)
    assert checks_of(judged(expired, COMPLETE, o.REJECTED))["FENCE-01", "complete: expired in this tick"]
    other = record(BACKFILL, cancel=50)
    named = "CANCEL-06", "complete: after a cancel request"
    assert broken(judged(other, COMPLETE, o.Accepted("succeeded"), row_of(other, attempts=9))) == named


# ------------------------------------------------------------------------------------- no cancel, and no stored code

CALLED_OFF = c.Fail(ATTEMPT, "cancel", "AI_RUN_CANCELLED")


def test_where_there_is_no_cancel_a_failure_of_its_family_is_final() -> None:
    job = build()
    failed = row_of(job._replace(**unheld("failed")))
    named = "ERR-02", "fail: CANCEL family ends failed"
    assert checks_of(judged(job, CALLED_OFF, o.Accepted("failed"), failed))[named]
    assert answered(job, CALLED_OFF, "pending") == named, "it is not retried"
    assert answered(job, CALLED_OFF, "cancelled") == ("TERM-01", "fail: failed row"), "no such word"
    assert broken(judged(job, CALLED_OFF, o.REJECTED)) == ("FENCE-01", "fail: held")
    last = build(attempts=3)
    spent = checks_of(judged(last, CALLED_OFF, o.Accepted("failed"), row_of(last._replace(**unheld("failed")))))
    assert spent[named] is False, "without budget a retry would come to the same"


def test_where_there_is_a_cancel_such_a_failure_ends_cancelled() -> None:
    job = record(SCREENSHOT)
    fail = c.Fail(c.Handle(1, 1), "cancel", "AI_RUN_CANCELLED")
    cancelled = row_of(job._replace(**unheld("cancelled")))
    named = "ERR-02", "fail: CANCEL family ends cancelled"
    assert checks_of(judged(job, fail, o.Accepted("cancelled"), cancelled))[named]
    assert answered(job, fail, "failed") == named


OPEN_ENDED = replace(BACKFILL, key="open-ended", cancels=False)
"""It may end jobs as cancelled, though nobody can ask for that."""


def test_where_only_the_end_is_there_and_no_cancel_such_a_failure_may_end_either_way() -> None:
    job = record(OPEN_ENDED)
    fail = c.Fail(c.Handle(1, 1), "cancel", "AI_RUN_CANCELLED")
    named = "ERR-02", "fail: CANCEL family ends failed"
    for status in ("failed", "cancelled"):
        ended = row_of(job._replace(**unheld(status)), error="AI_RUN_CANCELLED")
        assert checks_of(judged(job, fail, o.Accepted(status), ended))[named]
    assert answered(job, fail, "pending") == named


def test_a_limit_is_retried_where_the_queue_lists_its_code_and_there_alone() -> None:
    listing = replace(BACKFILL, key="listing", retryable_codes=frozenset({"RENDER_QUEUE_FULL"}))
    for spec, status in ((listing, "pending"), (BACKFILL, "failed")):
        job = record(spec)
        after = row_of(job._replace(**unheld(status)), error="RENDER_QUEUE_FULL")
        full = c.Fail(c.Handle(1, 1), "limit", "RENDER_QUEUE_FULL")
        assert judge(job, full, o.Accepted(status), after) == "right"
        assert answered(job, full, "failed" if status == "pending" else "pending")[0] in ("ATT-02", "ERR-02")


@pytest.mark.parametrize(
    ("code", "stored", "clause"),
    [
        ("RENDER_SERVICE_UNAVAILABLE", None, "right"),
        ("RENDER_SERVICE_UNAVAILABLE", "RENDER_DEADLINE_EXCEEDED", "right"),
        ("RENDER_SERVICE_UNAVAILABLE", "RETRYING", "right"),
        ("RENDER_SERVICE_UNAVAILABLE", "PAGE_VALIDATION_FAILED", "ERR-03"),
        ("RENDER_SERVICE_UNAVAILABLE", "AI_RUN_CANCELLED", "ERR-03"),
    ],
)
def test_a_retried_job_is_not_said_to_have_failed_of_something_else(code: str, stored: str | None, clause: str) -> None:
    job = record(BACKFILL)
    retried = row_of(job._replace(**unheld("pending")), error=stored)
    fail = c.Fail(c.Handle(1, 1), "infra", code)
    found = judged(job, fail, o.Accepted("pending"), retried)
    if clause == "right":
        assert checks_of(found)["ERR-03", "fail: pending row"]
    else:
        assert broken(found) == (clause, "fail: pending row")


@pytest.mark.parametrize(
    ("stored", "clause"),
    [(None, "right"), ("RENDER_SERVICE_UNAVAILABLE", "right"), ("AI_RUN_CANCELLED", "right"), ("PAGE_STALE", "ERR-03")],
)
def test_a_job_called_off_by_its_failure_says_what_happened_or_that(stored: str | None, clause: str) -> None:
    job = record(BACKFILL, cancel=50)
    ended = row_of(job._replace(**unheld("cancelled")), error=stored)
    fail = c.Fail(c.Handle(1, 1), "infra", "RENDER_SERVICE_UNAVAILABLE")
    assert judge(job, fail, o.Accepted("cancelled"), ended) == clause


def test_where_no_code_is_stored_a_failed_row_needs_none() -> None:
    job = build(expires=NOW, attempts=3)
    failed = row_of(job._replace(**unheld("failed")))
    swept = o.Recovered((o.RecoveredRow(1, "failed"),), 1)
    assert failed.error is None and judge(job, c.Recover(), swept, failed) == "right"
    held = build()
    found = checks_of(judged(held, c.Fail(ATTEMPT), o.Accepted("failed"), row_of(held._replace(**unheld("failed")))))
    assert ("ERR-03", "fail: failed row") not in found
    other = c.Fail(ATTEMPT, "infra", "PAGE_VALIDATION_FAILED")
    assert checks_of(judged(held, other, o.REJECTED))["ERR-03", "fail: code of another family"], "it still decides"


# ------------------------------------------------------------------------------------------------ names of one's own


def test_where_heartbeat_and_start_are_one_column_a_renewal_moves_both() -> None:
    assert BUILD.column("heartbeat_at") == BUILD.column("started_at")
    job = build()
    right = row_of(job._replace(expires=NOW + 960, lease=960), started=NOW)
    assert judge(job, c.Renew(ATTEMPT), o.Accepted("running"), right) == "right"
    assert broken(judged(job, c.Renew(ATTEMPT), o.Accepted("running"), right._replace(heartbeat=1)))[0] == "LEASE-03"
