"""Faults of what ends a job, of release and of cancels (REL-01, TERM-01…04, CANCEL-01…06).

This module must never know of claims or sweeps.
"""

from __future__ import annotations

from fencepost.adapters.reference import predicates as p
from fencepost.adapters.reference.rules import Rules
from fencepost.adapters.reference.terms import Case

from . import wrong as w
from .mutant import Mutant, add, both, but, drop, put


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
        drop("writes.retry.failed", "worker_id"),
    )(rules)


END_MUTANTS: tuple[Mutant, ...] = (
    Mutant(
        "release-counts",
        "REL-01",
        "A released job has lost an attempt.",
        drop("writes.release.requeue", "attempt_count"),
    ),
    Mutant(
        "release-keeps-owner",
        "REL-01",
        "A released job still names its former owner.",
        drop("writes.release.requeue", "worker_id"),
    ),
    Mutant(
        "release-keeps-lease",
        "REL-01",
        "A released job keeps its lease.",
        drop("writes.release.requeue", "lease_expires_at"),
    ),
    Mutant(
        "release-gives-token-back",
        "REL-01",
        "Release takes the generation back, so the next claim repeats it.",
        add("writes.release.requeue", w.back_a_generation),
        "mutation",
    ),
    Mutant(
        "release-ignores-cancel",
        "REL-01",
        "A job released after a cancel request goes back to the queue.",
        drop("writes.release", "cancelled"),
    ),
    Mutant(
        "complete-writes-skipped",
        "TERM-01",
        "Success is stored as `skipped`, a status this queue does not have.",
        put("writes.complete.succeeded", "status", w.status("TERM-01", "skipped")),
    ),
    Mutant(
        "fail-overwrites-success",
        "TERM-02",
        "A late failure overwrites a recorded success: the guard forgets the "
        "status, and a null lease counts as valid (river#1302).",
        _fail_overwrites,
    ),
    Mutant(
        "complete-overwrites-failure", "TERM-02", "A late success overwrites a recorded failure.", _complete_overwrites
    ),
    Mutant(
        "complete-keeps-lease",
        "TERM-03",
        "A completed job keeps its lease (rq#2424).",
        drop("writes.complete.succeeded", "lease_expires_at"),
    ),
    Mutant(
        "complete-unfinished",
        "TERM-03",
        "A completed job has no finish instant.",
        drop("writes.complete.succeeded", "finished_at"),
    ),
    Mutant(
        "fail-keeps-lease", "TERM-03", "A failed job keeps its lease.", drop("writes.fail.failed", "lease_expires_at")
    ),
    Mutant(
        "fail-unfinished", "TERM-03", "A failed job has no finish instant.", drop("writes.fail.failed", "finished_at")
    ),
    Mutant("fail-without-code", "TERM-03", "A failed job has no error code.", drop("writes.fail.failed", "error_code")),
    Mutant(
        "complete-old-spelling",
        "TERM-04",
        "Success is stored as `completed`.",
        put("writes.complete.succeeded", "status", w.status("TERM-04", "completed")),
    ),
    Mutant(
        "fail-old-spelling",
        "TERM-04",
        "Failure is stored as `error`.",
        put("writes.fail.failed", "status", w.status("TERM-04", "error")),
    ),
    Mutant(
        "acknowledge-other-spelling",
        "TERM-04",
        "A cancelled job is stored in another queue's spelling.",
        put("writes.acknowledge.cancelled", "status", w.status("TERM-04", "canceled")),
    ),
    Mutant(
        "acknowledge-other-spelling-mutation",
        "TERM-04",
        "The mutation queue's `canceled` is stored as `cancelled`.",
        put("writes.acknowledge.cancelled", "status", w.status("TERM-04", "cancelled")),
        "mutation",
    ),
)

CANCEL_MUTANTS: tuple[Mutant, ...] = (
    Mutant(
        "cancel-only-records",
        "CANCEL-01",
        "Cancelling a pending job only records the request.",
        drop("writes.cancel", "pending"),
    ),
    Mutant(
        "cancel-unfinished",
        "CANCEL-01",
        "A job cancelled while pending has no finish instant.",
        drop("writes.cancel.pending", "finished_at"),
    ),
    Mutant(
        "cancel-commits-for-caller",
        "CANCEL-01",
        "A cancel commits inside its caller's transaction, whose rollback then undoes nothing.",
        but("commits_for_caller", frozenset({"request_cancel"})),
    ),
    Mutant(
        "cancel-kills-running",
        "CANCEL-02",
        "Cancelling a running job ends it under its executor (bk-lite#2964).",
        put(
            "writes.cancel",
            "pending",
            Case("pending", (p.not_terminal,), (p.to_cancelled, *p.RELEASED, p.finish, p.request_cancel)),
        ),
    ),
    Mutant(
        "cancel-drops-lease",
        "CANCEL-02",
        "Recording a cancel request takes the lease from the executor.",
        add("writes.cancel.running", p.end_lease),
    ),
    Mutant(
        "cancel-forgets-start",
        "CANCEL-02",
        "Recording a cancel request wipes when the running job started.",
        add("writes.cancel.running", w.start_lost),
    ),
    Mutant(
        "cancel-marks-ended",
        "CANCEL-03",
        "An ended job takes a cancel request, and the canceller is told that it was cancelled.",
        drop("cancel_where", "not_terminal"),
    ),
    Mutant(
        "cancel-twice-withdraws",
        "CANCEL-03",
        "A repeated request withdraws the first one.",
        put("writes.cancel.running", "cancel_requested_at", w.cancel_toggled),
    ),
    Mutant(
        "cancel-twice-moves",
        "CANCEL-03",
        "A repeated request moves the instant of the first one.",
        put("writes.cancel.running", "cancel_requested_at", w.cancel_moved),
    ),
    Mutant(
        "parent-cancel-twice-moves",
        "CANCEL-03",
        "A parent's repeated request moves the instant of its first one.",
        put("writes.cancel_by_parent.marked", "cancel_requested_at", w.cancel_moved),
    ),
    Mutant(
        "acknowledge-unasked",
        "CANCEL-04",
        "An executor can cancel a job that nobody asked to cancel.",
        drop("fence.acknowledge", "cancel_requested"),
    ),
    Mutant(
        "checkpoint-refused-after-cancel",
        "CANCEL-04",
        "A checkpoint of a job that was asked to cancel is refused, so its executor never learns of it "
        "(procrastinate#1598).",
        add("fence.checkpoint", p.uncancelled),
    ),
    Mutant(
        "acknowledge-fails",
        "CANCEL-04",
        "An acknowledged cancel is stored as a failure.",
        put("writes.acknowledge.cancelled", "status", w.failed_status),
    ),
    Mutant(
        "complete-after-cancel",
        "CANCEL-06",
        "A success is recorded after a cancel request (node-rethinkdb-job-queue#82).",
        drop("fence.complete", "uncancelled"),
    ),
    Mutant(
        "retry-after-cancel",
        "CANCEL-06",
        "A failure after a cancel request is retried (term-llm PR#790, river PR#141).",
        drop("writes.retry", "cancelled"),
    ),
    Mutant(
        "fail-after-cancel",
        "CANCEL-06",
        "A failure after a cancel request ends failed, not cancelled.",
        drop("writes.fail", "cancelled"),
    ),
)
