"""Faults of what a worker writes by its handle: leases, fences, ends, cancels, failures. Each verb's fence is taken
apart in the same way. This module must never know of claims or sweeps.
"""

from __future__ import annotations

from collections.abc import Callable

from fencepost.adapters.reference import predicates as p
from fencepost.adapters.reference.rules import Rules, Verb
from fencepost.adapters.reference.terms import Case

from . import codes
from . import wrong as w
from .mutant import Change, Mutant, add, both, but, drop, put, shift

WRITES = (Verb.COMPLETE, Verb.FAIL, Verb.RELEASE, Verb.ACKNOWLEDGE)
"""The writes that end a lease; a renewal's faults have clauses of their own."""

_REPORT = {
    ("anybody", Verb.RELEASE): " (ShedLock#1986)",
    ("anybody", Verb.FAIL): " (litestar-queues#36)",
    ("older-token", Verb.COMPLETE): " (bull#308)",
    ("silent", Verb.COMPLETE): " (queue-jobs-worker#24)",
}


def _each(kind: str, clause: str, title: str, change: Callable[[Verb], Change], queue: str = "backfill") -> tuple[Mutant, ...]:
    """The same fault in each of the writes."""
    return tuple(
        Mutant(f"{verb}-{kind}", clause, f"{title.format(verb)}{_REPORT.get((kind, verb), '')}.", change(verb), queue)
        for verb in WRITES
    )


FENCE_MUTANTS = (
    *_each("expired", "FENCE-01", "An expired lease does not stop its holder's {}",
           lambda verb: drop(f"fence.{verb}", "lease_valid")),
    *_each("at-expiry", "FENCE-01", "The lease still counts as valid at the instant of its expiry, for {}",
           lambda verb: shift(f"fence.{verb}", "lease_valid")),
    *_each("anybody", "FENCE-02", "A superseded worker's {} is accepted while another one holds the job",
           lambda verb: drop(f"fence.{verb}", "owned")),
    *_each("older-token", "FENCE-03", "The same worker's older handle still passes for {}",
           lambda verb: drop(f"fence.{verb}", "same_generation"), "mutation"),
    *_each("silent", "FENCE-06", "A refused {} is reported as done", lambda verb: but("silent", frozenset({verb}))),
    Mutant("renew-silent", "FENCE-06", "A refused renewal is reported as done, so a worker that lost its job goes on "
           "(db-scheduler#402).", but("silent", frozenset({Verb.RENEW}))),
)  # fmt: skip

LEASE_MUTANTS = (
    Mutant("configure-any-lease", "LEASE-01", "A lease of one heartbeat is taken (airflow#57618).", but("lease_ratio", 1)),
    Mutant("configure-two-heartbeats", "LEASE-01", "A lease of two heartbeats is taken.", but("lease_ratio", 2)),
    Mutant("renew-takes-over", "LEASE-02", "A superseded worker's heartbeat makes the job its own again.",
           both(drop("fence.renew", "owned"), add("writes.renew.renewed", p.own))),
    Mutant("renew-without-heartbeat", "LEASE-03", "A renewal leaves the heartbeat as it was.",
           drop("writes.renew.renewed", "heartbeat_at")),
    Mutant("renew-without-lease", "LEASE-03", "A renewal beats, and the lease runs out all the same (dramatiq#692).",
           drop("writes.renew.renewed", "lease_expires_at")),
    Mutant("renew-ends-lease", "LEASE-03", "A renewal sets the expiry to now.",
           put("writes.renew.renewed", "lease_expires_at", w.lease_from_now)),
    Mutant("renew-revives", "LEASE-04", "A late heartbeat revives an expired lease.", drop("fence.renew", "lease_valid")),
    Mutant("renew-at-expiry", "LEASE-04", "A heartbeat at the very instant of expiry revives the lease.",
           shift("fence.renew", "lease_valid")),
    Mutant("renew-older-token", "FENCE-03", "The same worker's older handle renews its newer lease, and writes its own "
           "generation back.",
           both(drop("fence.renew", "same_generation"), add("writes.renew.renewed", w.generation_of_handle)), "mutation"),
)  # fmt: skip


def _fail_overwrites(rules: Rules) -> Rules:
    """No look at the status; and a null lease counts as one that has not run out, and ended rows keep their owner."""
    return both(
        drop("fence.fail", "running"),
        put("fence.fail", "lease_valid", w.lease_not_over),
        drop("writes.complete.succeeded", "worker_id"),
    )(rules)


def _complete_overwrites(rules: Rules) -> Rules:
    return both(
        drop("fence.complete", "running"),
        put("fence.complete", "lease_valid", w.lease_not_over),
        drop("writes.fail.failed", "worker_id"),
    )(rules)


END_MUTANTS = (
    Mutant("release-counts", "REL-01", "A released job has lost an attempt.", drop("writes.release.requeue", "attempt_count")),
    Mutant("release-keeps-owner", "REL-01", "A released job still names its former owner.",
           drop("writes.release.requeue", "worker_id")),
    Mutant("release-keeps-lease", "REL-01", "A released job keeps its lease.",
           drop("writes.release.requeue", "lease_expires_at")),
    Mutant("release-gives-token-back", "REL-01", "Release takes the generation back, so the next claim repeats it.",
           add("writes.release.requeue", w.back_a_generation), "mutation"),
    Mutant("release-ignores-cancel", "REL-01", "A job released after a cancel request goes back to the queue.",
           drop("writes.release", "cancelled")),
    Mutant("complete-writes-skipped", "TERM-01", "Success is stored as `skipped`, a status this queue does not have.",
           put("writes.complete.succeeded", "status", w.status("TERM-01", "skipped"))),
    Mutant("fail-overwrites-success", "TERM-02", "A late failure overwrites a recorded success: the guard forgets the "
           "status, and a null lease counts as valid (river#1302).", _fail_overwrites),
    Mutant("complete-overwrites-failure", "TERM-02", "A late success overwrites a recorded failure.", _complete_overwrites),
    Mutant("complete-keeps-lease", "TERM-03", "A completed job keeps its lease (rq#2424).",
           drop("writes.complete.succeeded", "lease_expires_at")),
    Mutant("complete-unfinished", "TERM-03", "A completed job has no finish instant.",
           drop("writes.complete.succeeded", "finished_at")),
    Mutant("fail-keeps-lease", "TERM-03", "A failed job keeps its lease.", drop("writes.fail.failed", "lease_expires_at")),
    Mutant("fail-unfinished", "TERM-03", "A failed job has no finish instant.", drop("writes.fail.failed", "finished_at")),
    Mutant("fail-without-code", "TERM-03", "A failed job has no error code.", drop("writes.fail.failed", "error_code")),
    Mutant("complete-old-spelling", "TERM-04", "Success is stored as `completed`.",
           put("writes.complete.succeeded", "status", w.status("TERM-04", "completed"))),
    Mutant("fail-old-spelling", "TERM-04", "Failure is stored as `error`.",
           put("writes.fail.failed", "status", w.status("TERM-04", "error"))),
    Mutant("acknowledge-other-spelling", "TERM-04", "A cancelled job is stored in another queue's spelling.",
           put("writes.acknowledge.cancelled", "status", w.status("TERM-04", "canceled"))),
    Mutant("acknowledge-other-spelling-mutation", "TERM-04", "The mutation queue's `canceled` is stored as `cancelled`.",
           put("writes.acknowledge.cancelled", "status", w.status("TERM-04", "cancelled")), "mutation"),
)  # fmt: skip

CANCEL_MUTANTS = (
    Mutant("cancel-only-records", "CANCEL-01", "Cancelling a pending job only records the request.",
           drop("writes.cancel", "pending")),
    Mutant("cancel-unfinished", "CANCEL-01", "A job cancelled while pending has no finish instant.",
           drop("writes.cancel.pending", "finished_at")),
    Mutant("cancel-commits-for-caller", "CANCEL-01", "A cancel commits inside its caller's transaction, whose rollback "
           "then undoes nothing.", but("joins_caller", False), also=("FENCE-01",)),
    Mutant("cancel-kills-running", "CANCEL-02", "Cancelling a running job ends it under its executor (bk-lite#2964).",
           put("writes.cancel", "pending", Case("pending", (p.not_terminal,), (p.to_cancelled, *p.RELEASED, p.finish, p.request_cancel)))),
    Mutant("cancel-drops-lease", "CANCEL-02", "Recording a cancel request takes the lease from the executor.",
           add("writes.cancel.running", p.end_lease)),
    Mutant("cancel-marks-ended", "CANCEL-03", "An ended job takes a cancel request, and the canceller is told that it "
           "was cancelled.", drop("cancel_where", "not_terminal")),
    Mutant("cancel-moves-request", "CANCEL-03", "A repeated request overwrites the first one's instant.",
           put("writes.cancel.running", "cancel_requested_at", w.cancel_now)),
    Mutant("acknowledge-unasked", "CANCEL-04", "An executor can cancel a job that nobody asked to cancel.",
           drop("fence.acknowledge", "cancel_requested")),
    Mutant("acknowledge-fails", "CANCEL-04", "An acknowledged cancel is stored as a failure.",
           put("writes.acknowledge.cancelled", "status", w.failed_status)),
    Mutant("complete-after-cancel", "CANCEL-06", "A success is recorded after a cancel request (node-rethinkdb-job-queue#82).",
           drop("fence.complete", "no_cancel")),
    Mutant("retry-after-cancel", "CANCEL-06", "A failure after a cancel request is retried (term-llm PR#790, river PR#141).",
           drop("writes.retry", "cancelled")),
    Mutant("fail-after-cancel", "CANCEL-06", "A failure after a cancel request ends failed, not cancelled.",
           drop("writes.fail", "cancelled")),
)  # fmt: skip

FAILURE_MUTANTS = (
    Mutant("retry-counts", "ATT-01", "A retried failure counts a second attempt.", add("writes.retry.requeue", p.count_attempt)),
    Mutant("retry-uncounts", "ATT-01", "A retried failure gives its attempt back, so a job may fail for ever.",
           add("writes.retry.requeue", p.uncount_attempt)),
    Mutant("retry-at-once", "ATT-02", "A retry is due at once: the back-off was multiplied by zero (console PR#3727).",
           put("writes.retry.requeue", "next_attempt_at", w.retry_at_once), "mutation"),
    Mutant("retry-without-due", "ATT-02", "A retry forgets to write when it is due.",
           drop("writes.retry.requeue", "next_attempt_at"), "mutation"),
    Mutant("retry-without-end", "ATT-02", "A retryable failure is retried whatever the budget says.",
           drop("writes.retry.requeue.when", "budget_left")),
    Mutant("retry-once-too-often", "ATT-02", "A used-up budget still buys one more retry.",
           shift("writes.retry.requeue.when", "budget_left")),
    Mutant("retry-budget-hard-coded", "ATT-02", "A retry asks for three attempts, not for the row's own maximum.",
           put("writes.retry.requeue.when", "budget_left", w.three_attempts)),
    Mutant("retry-keeps-owner", "ATT-02", "A retried job still names its former owner.",
           drop("writes.retry.requeue", "worker_id")),
    Mutant("infra-never-retried", "ATT-02", "An infrastructure failure that is listed as retryable ends the job.",
           but("policy.INFRA", "fail")),
    Mutant("codes-precedence", "ERR-01", "LIMIT patterns are read before CANCEL patterns.", but("classify", codes.limit_before_cancel)),
    Mutant("codes-unanchored", "ERR-01", "Patterns match anywhere in a code.", but("classify", codes.unanchored)),
    Mutant("codes-without-exact", "ERR-01", "The exact entry is missing, so a full Vite queue is a limit.",
           but("classify", codes.without_exact)),
    Mutant("codes-any-failed", "ERR-01", "Every code that ends in `_FAILED` counts as CONTENT.", but("classify", codes.any_failed)),
    Mutant("fail-takes-any-code", "ERR-01", "A code of no family is recorded as a failure.", but("unknown_code", "fail")),
    Mutant("content-retried", "ERR-02", "A content failure is retried.", but("policy.CONTENT", "retry")),
    Mutant("infra-always-retried", "ERR-02", "Every infrastructure failure is retried, listed or not (ArcReel PR#793).",
           but("policy.INFRA", "retry")),
    Mutant("limit-retried", "ERR-02", "A limit failure is retried.", but("policy.LIMIT", "retry")),
    Mutant("cancel-code-fails", "ERR-02", "A failure with a CANCEL code ends failed, not cancelled.", but("policy.CANCEL", "fail")),
    Mutant("fence-code-recorded", "ERR-02", "The holder records a FENCE code as its own failure.", but("policy.FENCE", "fail")),
    Mutant("infra-as-content", "ERR-03", "A code of another family than what happened is taken.", but("match_what", False)),
    Mutant("fail-records-content", "ERR-03", "Every failure is recorded as a failed validation.",
           put("writes.fail.failed", "error_code", w.code("ERR-03", "PAGE_VALIDATION_FAILED"))),
)  # fmt: skip

WRITE_MUTANTS: tuple[Mutant, ...] = (
    *LEASE_MUTANTS, *FENCE_MUTANTS, *END_MUTANTS, *CANCEL_MUTANTS, *FAILURE_MUTANTS,
)  # fmt: skip
