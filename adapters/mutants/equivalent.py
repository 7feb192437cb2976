"""Candidates that break nothing: a second condition refuses what they let through, or the contract leaves it open.

Each was reviewed; `tests/test_equivalent.py` plays the model's shortest traces to every check on it, and races a
changed condition with all that may come between, in every order of statements.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TypeAlias

from fencepost.adapters.reference.rules import Verb

from .mutant import Mutant, but, drop, shift

Candidate: TypeAlias = tuple[Mutant, str]
"""A change of the rules, and why it breaks nothing."""

_ON_EVERY_QUEUE: tuple[Candidate, ...] = (
    *(
        (
            Mutant(f"{verb}-any-status", clause, f"The {verb}'s update does not look at the status.",
                   drop(f"fence.{verb}", "running")),
            "a pending or ended row has no owner, so the look at the owner refuses it",
        )
        for verb, clause in (
            (Verb.RENEW, "LEASE-02"), (Verb.COMPLETE, "TERM-02"), (Verb.FAIL, "TERM-02"), (Verb.RELEASE, "TERM-02"),
        )
    ),
    (
        Mutant("claim-keeps-finish", "CLAIM-05", "A claim does not clear the finish instant.",
               drop("claim_set", "finished_at")),
        "a pending row never has one: whatever re-queues a job leaves it null",
    ),
    (
        Mutant("complete-keeps-owner", "TERM-03", "A completed job still names its owner.",
               drop("writes.complete.succeeded", "worker_id")),
        "the owner of an ended row is unspecified",
    ),
    (
        Mutant("requeue-keeps-finish", "REC-01", "Recovery does not clear the finish instant.",
               drop("recover.requeue", "finished_at")),
        "a running row has none: its claim cleared it",
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
)  # fmt: skip

_OF_CANCELS: tuple[Candidate, ...] = (
    (
        Mutant("acknowledge-any-status", "TERM-02", "The acknowledge's update does not look at the status.",
               drop("fence.acknowledge", "running")),
        "a pending or ended row has no owner, so the look at the owner refuses it",
    ),
    (
        Mutant("checkpoint-unfenced", "CANCEL-04", "Anybody is told whether a cancel was requested.",
               but("fence.checkpoint", ())),
        "a checkpoint changes nothing, and the contract says only what the current holder is told",
    ),
    (
        Mutant("cancel-keeps-owner-and-lease", "CANCEL-01", "A job cancelled while pending keeps owner and lease.",
               drop("writes.cancel.pending", "worker_id", "lease_expires_at")),
        "a pending row has neither",
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

_OF_CODES_AND_BACKOFF: tuple[Candidate, ...] = (
    *(
        (
            Mutant(f"{verb}-keeps-error", "TERM-03", f"The {verb}'s update does not clear the error.",
                   drop(f"writes.{verb}.{status}", "error_code"), queue),
            "the claim before it cleared the error, and nothing writes one while the job runs",
        )
        for verb, status, queue in (
            (Verb.COMPLETE, "succeeded", "backfill"), (Verb.SKIP, "skipped", "screenshot"),
        )
    ),
    (
        Mutant("retry-without-code", "ATT-02", "A retried failure does not record its code.",
               drop("writes.retry.requeue", "error_code")),
        "the error of a re-queued row is unspecified, and the next claim clears it",
    ),
    (
        Mutant("release-keeps-due", "REL-01", "A released job keeps the instant at which it became due.",
               drop("writes.release.requeue", "next_attempt_at"), "mutation"),
        "a job that was claimed was due, so that instant has passed",
    ),
)  # fmt: skip

_OF_SKIPS_AND_BUILDS: tuple[Candidate, ...] = (
    (
        Mutant("skip-any-status", "TERM-02", "The skip's update does not look at the status.",
               drop("fence.skip", "running"), "screenshot"),
        "a pending or ended row has no owner, so the look at the owner refuses it",
    ),
    (
        Mutant("put-artifact-any-status", "TERM-02", "The promotion does not look at the status.",
               drop("fence.put_artifact", "running"), "build"),
        "a pending or ended row has no owner, so the look at the owner refuses it",
    ),
    (
        Mutant("put-artifact-any-owner", "FENCE-02", "The promotion does not look at the owner.",
               drop("fence.put_artifact", "owned"), "build"),
        "no other worker's attempt has the id that the promotion looks at, and only a running row has a valid lease",
    ),
    *(
        (
            Mutant(f"claim-again-{title}", "CLAIM-04", f"The claim's update {what}.",
                   change("claim_again", "begins_in_time"), "build"),
            "nothing moves a deadline between a claim's read and its update, which look at it at the same instant",
        )
        for title, what, change in (
            ("past-deadline", "does not look at the deadline again", drop),
            ("at-deadline", "takes a job at the instant of its deadline", shift),
        )
    ),
    (
        Mutant("claim-again-over-lease", "CLAIM-15", "The claim's update does not look again for a lease that was left "
               "on the job.", drop("claim_again", "unleased"), "build"),
        "a lease that came after the read is that of another claim, which has set the job running",
    ),
    (
        Mutant("lapse-again-in-time", "REC-07", "A sweep ends a pending job without looking at its deadline again.",
               drop("lapsed_again", "overdue"), "build"),
        "nothing moves the deadline of a job that has passed it",
    ),
)  # fmt: skip


def _on_build(candidates: Iterable[Candidate]) -> Iterator[Candidate]:
    """The same changes where attempts are named, jobs have deadlines, and pending ones may have leases."""
    for mutant, reason in candidates:
        yield replace(mutant, id=f"{mutant.id}-of-a-build", queue="build", adapters=("sqlite",)), reason


EQUIVALENT: tuple[Candidate, ...] = (
    *_ON_EVERY_QUEUE,
    *_on_build(_ON_EVERY_QUEUE),
    *_OF_CANCELS,
    *_OF_CODES_AND_BACKOFF,
    *_OF_SKIPS_AND_BUILDS,
)
