"""Faults of the claim (CLAIM-01…14) and of what it counts (ATT-01). This module must never know of recovery."""

from __future__ import annotations

import dataclasses

from fencepost.adapters.reference.rules import OLDEST_FIRST

from . import wrong as w
from .mutant import Mutant, add, but, drop, put, shift, twice

CLAIM_MUTANTS: tuple[Mutant, ...] = (
    Mutant(
        "claim-any-status",
        "CLAIM-01",
        "A claim takes jobs of every status, so an ended job runs again.",
        twice(drop, "claim_where", "pending"),
    ),
    Mutant(
        "claim-takes-over-expired",
        "CLAIM-01",
        "A claim takes over a running job whose lease has expired, past recovery and its budget.",
        twice(put, "claim_where", "pending", w.pending_or_expired),
    ),
    Mutant(
        "claim-cancelled",
        "CLAIM-02",
        "A claim does not look for a cancel request (camunda#2784).",
        twice(drop, "claim_where", "no_cancel"),
    ),
    Mutant(
        "sweep-leaves-cancelled-pending",
        "CLAIM-02",
        "No sweep ends a pending job that a parent cancelled, so it waits for ever (dive PR#1768).",
        add("called_off", w.never),
        also=("REC-04", "REC-12"),
    ),
    Mutant(
        "claim-not-due",
        "CLAIM-03",
        "A claim ignores when a job is due, so back-off has no effect.",
        twice(drop, "claim_where", "due"),
        queue="mutation",
    ),
    *(
        Mutant(f"claim-without-{what}", "CLAIM-05", f"A claim does not write {title}.", drop("claim_set", name))
        for what, name, title in (
            ("status", "status", "that the job runs"),
            ("owner", "worker_id", "its owner"),
            ("lease", "lease_expires_at", "a lease, so that the job counts as expired at once (saq#277)"),
            ("heartbeat", "heartbeat_at", "a heartbeat"),
            ("start", "started_at", "a start, or keeps the first run's (gbrain PR#2974)"),
            ("clearing-the-error", "error_code", "over the error of the attempt before"),
        )
    ),
    Mutant(
        "claim-without-token",
        "CLAIM-05",
        "A claim mints no new generation, so two attempts share one (bull#308).",
        drop("claim_set", "lease_generation"),
        queue="mutation",
    ),
    Mutant(
        "claim-lease-already-over",
        "CLAIM-05",
        "The lease ends at the instant of the claim: its length was lost on the way (ShedLock#132).",
        put("claim_set", "lease_expires_at", w.lease_from_now),
    ),
    Mutant(
        "claim-scans-max-claims",
        "CLAIM-07",
        "The candidate read is bounded by max_claims, not by limit.",
        but("claim_scans", "max_claims"),
    ),
    Mutant(
        "claim-takes-limit",
        "CLAIM-07",
        "A claim takes every candidate it scanned, beyond max_claims (flower PR#7161).",
        but("claim_takes", "limit"),
    ),
    Mutant(
        "claim-returns-first",
        "CLAIM-07",
        "A claim sets several jobs running and returns one; the others run with nobody (odd-jobs#115).",
        but("claim_returns", "first"),
    ),
    Mutant(
        "claim-newest-first",
        "CLAIM-08",
        "The newest job is claimed first, so the oldest may wait for ever.",
        but("claim_order", tuple(dataclasses.replace(key, descending=True) for key in OLDEST_FIRST)),
    ),
    Mutant(
        "claim-ties-newest-first",
        "CLAIM-08",
        "Of jobs enqueued at the same instant the newest is claimed first (procrastinate#212).",
        but("claim_order", (OLDEST_FIRST[0], dataclasses.replace(OLDEST_FIRST[1], descending=True))),
    ),
    Mutant(
        "claim-overlooks",
        "CLAIM-08",
        "A claim passes over jobs that nobody has locked, and comes back empty (cockroach#121917).",
        add("claim_where", w.overlooked),
        also=("CLAIM-14",),
    ),
    Mutant(
        "claim-due-late",
        "CLAIM-08",
        "A job is claimed only after the instant it is due, not at it.",
        twice(shift, "claim_where", "due"),
        queue="mutation",
        also=("CLAIM-14",),
    ),
    Mutant(
        "claim-empty-stays-open",
        "CLAIM-09",
        "A claim that found nothing leaves its transaction open.",
        but("claim_ends_idle", False),
        also=("CLAIM-08", "CLAIM-14", "REC-04", "REC-06"),
    ),
    Mutant(
        "claim-hook-after-commit",
        "CLAIM-12",
        "The claim's hook runs after the commit, too late to undo anything.",
        but("claim_hook", "after_commit"),
    ),
    Mutant(
        "claim-hook-cancelled-commits",
        "CLAIM-12",
        "A cancelled hook is taken for one that passed, since only an Exception rolls back.",
        but("claim_undone_by", Exception),
    ),
    Mutant(
        "claim-commits-row-by-row",
        "CLAIM-12",
        "Each job is claimed in a transaction of its own, so a hook that raises undoes the last claim only.",
        but("claim_commits", "row"),
    ),
    Mutant(
        "claim-lazy-handles",
        "CLAIM-13",
        "A claim returns rows that cannot be read any more once the worker's session has gone on.",
        but("claim_handles", "lazy"),
    ),
    Mutant(
        "claim-limit-before-cancel",
        "CLAIM-14",
        "The limit applies before cancel requests are looked for, so a cancelled head starves the rest.",
        drop("claim_where", "no_cancel"),
    ),
    Mutant(
        "claim-limit-before-due",
        "CLAIM-14",
        "The limit applies before due times, so a far-future head blocks all ready jobs (procrastinate#1599).",
        drop("claim_where", "due"),
        queue="mutation",
    ),
    Mutant(
        "claim-counts-nothing",
        "ATT-01",
        "A claim does not count its attempt (hindsight#2675).",
        drop("claim_set", "attempt_count"),
    ),
    Mutant(
        "claim-counts-twice", "ATT-01", "A claim counts two attempts.", put("claim_set", "attempt_count", w.count_two)
    ),
)
