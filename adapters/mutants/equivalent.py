"""Candidates that break nothing: a second condition refuses what they let through, or the contract leaves it open.

Each was reviewed; `tests/test_equivalent.py` plays the model's shortest traces to every check on it, and races a
changed condition with all that may come between, in every order of statements.
"""

from __future__ import annotations

from fencepost.adapters.reference.rules import Verb

from .mutant import Mutant, but, drop

EQUIVALENT: tuple[tuple[Mutant, str], ...] = (
    *(
        (
            Mutant(f"{verb}-any-status", clause, f"The {verb}'s update does not look at the status.",
                   drop(f"fence.{verb}", "running")),
            "a pending or ended row has no lease, so the look at the lease refuses it",
        )
        for verb, clause in (
            (Verb.RENEW, "LEASE-02"), (Verb.COMPLETE, "TERM-02"), (Verb.FAIL, "TERM-02"), (Verb.RELEASE, "TERM-02"),
            (Verb.ACKNOWLEDGE, "TERM-02"),
        )
    ),
    (
        Mutant("checkpoint-unfenced", "CANCEL-04", "Anybody is told whether a cancel was requested.",
               but("fence.checkpoint", ())),
        "a checkpoint changes nothing, and the contract says only what the current holder is told",
    ),
    (
        Mutant("claim-keeps-finish", "CLAIM-05", "A claim does not clear the finish instant.",
               drop("claim_set", "finished_at")),
        "a pending row never has one: whatever re-queues a job leaves it null",
    ),
    (
        Mutant("complete-keeps-error", "TERM-03", "A completion does not clear the error.",
               drop("writes.complete.succeeded", "error_code")),
        "the claim before it cleared the error, and nothing writes one while the job runs",
    ),
    (
        Mutant("complete-keeps-owner", "TERM-03", "A completed job still names its owner.",
               drop("writes.complete.succeeded", "worker_id")),
        "the owner of an ended row is unspecified",
    ),
    (
        Mutant("retry-without-code", "ATT-02", "A retried failure does not record its code.",
               drop("writes.retry.requeue", "error_code")),
        "the error of a re-queued row is unspecified, and the next claim clears it",
    ),
    (
        Mutant("release-keeps-due", "REL-01", "A released job keeps the instant at which it became due.",
               drop("writes.release.requeue", "next_attempt_at"), queue="mutation"),
        "a job that was claimed was due, so that instant has passed",
    ),
    (
        Mutant("requeue-keeps-finish", "REC-01", "Recovery does not clear the finish instant.",
               drop("recover.requeue", "finished_at")),
        "a running row has none: its claim cleared it",
    ),
    (
        Mutant("cancel-keeps-owner-and-lease", "CANCEL-01", "A job cancelled while pending keeps owner and lease.",
               drop("writes.cancel.pending", "worker_id", "lease_expires_at")),
        "a pending row has neither",
    ),
    (
        Mutant("recover-again-any-status", "REC-07", "The sweep's update does not look at the status again.",
               drop("expired_again", "running")),
        "a row that ended or was re-queued meanwhile has lost the lease that the sweep read",
    ),
    (
        Mutant("recover-again-any-lease", "REC-07", "The sweep's update does not look for the lease that it read.",
               drop("expired_again", "same_lease")),
        "a newer lease is valid at the sweep's own instant, so the look at its expiry refuses it",
    ),
    (
        Mutant("recover-again-expired-or-not", "REC-02", "The sweep's update does not look at the expiry again.",
               drop("expired_again", "lease_expired")),
        "a renewed row has lost the lease that the sweep read",
    ),
    *(
        (
            Mutant(f"start-up-again-{title}", "REC-07", f"A starting process's update does not look {what} again.",
                   drop("left_behind_again", name)),
            reason,
        )
        for title, name, what, reason in (
            ("any-status", "running", "at the status",
             "a row that ended or was re-queued meanwhile has lost the lease that was read"),
            ("any-lease", "same_lease", "for the lease that it read",
             "a newer lease has not run out, and a row of the process's own prefix is its to take whatever the lease"),
            ("anybody", "expired_or_own", "at expiry and owner",
             "a row that was renewed or claimed meanwhile has lost the lease that was read"),
        )
    ),
    (
        Mutant("call-off-again-without-cancel", "REC-07", "A sweep ends a pending job without looking for the request "
               "again.", drop("called_off_again", "cancel_requested")),
        "nothing withdraws a request from a pending job, and nobody claims one that has it",
    ),
    (
        Mutant("cancel-pending-unstamped", "CANCEL-01", "A job cancelled while pending does not say when.",
               drop("writes.cancel.pending", "cancel_requested_at")),
        "the instant at which an ended job was asked to end is unspecified",
    ),
    (
        Mutant("claim-again-without-cancel", "CLAIM-02", "The claim's update does not look for a cancel request again.",
               drop("claim_again", "no_cancel")),
        "a request that came after the read is one on a job that was running already, in the order claim, cancel",
    ),
)  # fmt: skip
