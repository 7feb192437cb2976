"""Faults of named attempts and of claims of one job: ids that repeat, jobs mixed up, successes reported again
(FENCE-03, FENCE-05, CLAIM-15). This module must never know of deadlines or artifacts.
"""

from __future__ import annotations

from fencepost.adapters.reference.rules import Attempt, Rules, Verb

from . import wrong as w
from .mutant import Mutant, add, both, but, drop, each, put, shift, twice


def _of_owner(attempt: Attempt) -> str:
    return attempt.owner


def _of_instant(attempt: Attempt) -> str:
    return f"{attempt.owner}@{attempt.now}"


def _repeated_rewrites(rules: Rules) -> Rules:
    """An ended row keeps its owner and has no lease, so that the fence lets the same attempt in once more."""
    return both(
        put("fence.complete", "running", w.running_or_succeeded),
        put("fence.complete", "lease_valid", w.lease_not_over),
        drop("writes.complete.succeeded", "worker_id"),
    )(rules)


ATTEMPT_MUTANTS: tuple[Mutant, ...] = (
    *each(
        "older-attempt",
        "FENCE-03",
        "The same worker's older attempt still passes for {}",
        lambda verb: drop(f"fence.{verb}", "same_attempt"),
        (Verb.COMPLETE, Verb.FAIL, Verb.RELEASE),
        "build",
    ),
    Mutant(
        "renew-older-attempt",
        "FENCE-03",
        "The same worker's older attempt renews its newer lease, and writes its own id back.",
        both(drop("fence.renew", "same_attempt"), add("writes.renew.renewed", w.attempt_of_handle)),
        "build",
    ),
    Mutant(
        "attempt-id-of-job-and-count",
        "FENCE-03",
        "An attempt is named by its job and its number, which comes again after a release.",
        put("claim_set", "attempt_id", w.attempt_of_count),
        "build",
    ),
    Mutant(
        "attempt-id-of-process",
        "FENCE-03",
        "An attempt is named by the process that makes it, so all attempts of one worker are the same (bull#308).",
        but("attempt_id", _of_owner),
        "build",
    ),
    Mutant(
        "attempt-id-of-instant",
        "FENCE-03",
        "An attempt is named by its worker and the instant, so two claims within a second are the same.",
        but("attempt_id", _of_instant),
        "build",
    ),
    Mutant(
        "claim-keeps-attempt-id",
        "FENCE-03",
        "A claim keeps the attempt that the job has had before.",
        put("claim_set", "attempt_id", w.attempt_kept),
        "build",
    ),
    Mutant(
        "complete-not-repeatable",
        "FENCE-05",
        "A success that is reported again is rejected, so a lost reply counts as a failure.",
        put("repeated", "succeeded", w.never),
        "build",
    ),
    Mutant(
        "complete-repeated-rewrites",
        "FENCE-05",
        "A success that is reported again overwrites when the job was finished.",
        _repeated_rewrites,
        "build",
    ),
    Mutant(
        "complete-repeated-by-any",
        "FENCE-06",
        "Any attempt of a job that has succeeded is told that its own success was recorded.",
        drop("repeated", "same_attempt"),
        "build",
    ),
    Mutant(
        "complete-repeated-in-any-state",
        "FENCE-06",
        "A completion that was refused is reported as a repeated one whatever the job's status.",
        drop("repeated", "succeeded"),
        "build",
    ),
)

CLAIM_ONE_MUTANTS: tuple[Mutant, ...] = (
    Mutant(
        "claim-over-lease",
        "CLAIM-15",
        "A claim takes a pending job that a valid lease was left on.",
        twice(drop, "claim_where", "unleased"),
        "build",
    ),
    Mutant(
        "claim-one-over-lease",
        "CLAIM-15",
        "A claim that names its job does not look whether a lease was left on it.",
        both(drop("claim_named", "unleased"), drop("claim_again", "unleased")),
        "build",
    ),
    Mutant(
        "claim-lease-left-late",
        "CLAIM-08",
        "A lease that was left on a job still stands in the way at the instant of its expiry.",
        twice(shift, "claim_where", "unleased"),
        "build",
        also=("CLAIM-14", "CLAIM-15"),
    ),
    Mutant(
        "claim-keeps-lease-left",
        "CLAIM-05",
        "A claim keeps the lease that was left on the job, which is over already (asyncjobs#66).",
        put("claim_set", "lease_expires_at", w.lease_left),
        "build",
    ),
    Mutant(
        "claim-one-takes-oldest",
        "CLAIM-15",
        "A claim that names its job takes the oldest one all the same.",
        drop("claim_named", "this_job"),
        "build",
    ),
    Mutant(
        "claim-one-or-older",
        "CLAIM-15",
        "A claim that names its job takes an older one if there is any.",
        put("claim_named", "this_job", w.this_or_older),
        "build",
    ),
    Mutant(
        "claim-one-finds-nothing",
        "CLAIM-15",
        "A claim that names its job never finds it.",
        put("claim_named", "this_job", w.never),
        "build",
    ),
    Mutant(
        "claim-one-any-status",
        "CLAIM-01",
        "A claim that names its job takes it whatever has become of it.",
        both(drop("claim_named", "pending"), drop("claim_again", "pending")),
        "build",
    ),
    Mutant(
        "claim-takes-all-scanned",
        "CLAIM-07",
        "A claim that scans ten candidates for one job takes them all (odd-jobs#115).",
        but("claim_takes", "limit"),
        "build",
    ),
)

BUILD_END_MUTANTS: tuple[Mutant, ...] = (
    Mutant(
        "fail-writes-cancelled",
        "TERM-01",
        "A failure is stored as `cancelled`, a status that a queue without cancels does not have.",
        put("writes.fail.failed", "status", w.status("TERM-01", "cancelled")),
        "build",
    ),
    Mutant(
        "cancel-code-retried",
        "ERR-02",
        "A failure with a CANCEL code is retried where jobs cannot be cancelled.",
        but("policy.CANCEL", "retry"),
        "build",
    ),
)
