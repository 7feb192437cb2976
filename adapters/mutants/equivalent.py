"""Candidates that break nothing: a second condition refuses what they let through, or the contract leaves it open.

Each was replayed over every trace of explore up to five commands, and raced through every program to the end.
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
    (
        Mutant("claim-again-without-cancel", "CLAIM-02", "The claim's update does not look for a cancel request again.",
               drop("claim_again", "no_cancel")),
        "a request that came after the read is one on a job that was running already, in the order claim, cancel",
    ),
)  # fmt: skip
