"""Faults of recovery (REC-01…12). This module must never know of claims."""

from __future__ import annotations

from fencepost.adapters.reference import predicates as p
from fencepost.adapters.reference.rules import Rules

from . import wrong as w
from .mutant import Mutant, add, but, drop, put, shift, swap, twice


def _generation_of_the_first(rules: Rules) -> Rules:
    changed = rules.but("sweep_values", "first")
    for case in ("cancelled", "requeue", "failed"):
        changed = changed.replaced(f"recover.{case}", "lease_generation", w.generation_as_seen)
    return changed


SWEEP_MUTANTS: tuple[Mutant, ...] = (
    Mutant(
        "sweep-by-own-lease",
        "LEASE-07",
        "A sweep judges expiry by its own configured lease, not by the recorded one (kubernetes PR#114872, arq#402).",
        twice(put, "expired", "lease_expired", w.expired_by_own_lease),
        also=("REC-04", "REC-12"),
    ),
    Mutant(
        "sweep-revives-cancelled",
        "CANCEL-05",
        "Recovery re-queues an expired job with a cancel request (asset-studio#4).",
        drop("recover", "cancelled"),
    ),
    Mutant(
        "sweep-requeues-before-cancel",
        "CANCEL-05",
        "Recovery looks at the budget before it looks for a cancel request.",
        swap("recover", "cancelled", "requeue"),
    ),
    Mutant(
        "requeue-keeps-owner",
        "REC-01",
        "A recovered job still names its dead owner (Hangfire.Redis.StackExchange#135).",
        drop("recover.requeue", "worker_id"),
    ),
    Mutant(
        "requeue-keeps-lease",
        "REC-01",
        "A recovered job keeps its expired lease.",
        drop("recover.requeue", "lease_expires_at"),
    ),
    Mutant(
        "requeue-finished",
        "REC-01",
        "A recovered job is pending and has a finish instant.",
        put("recover.requeue", "finished_at", p.finish),
    ),
    Mutant(
        "requeue-keeps-token",
        "REC-01",
        "Recovery leaves the generation to its dead holder.",
        drop("recover.requeue", "lease_generation"),
        "mutation",
    ),
    Mutant(
        "requeue-without-backoff",
        "REC-01",
        "A recovered job is due at once although its queue backs off.",
        put("recover.requeue", "next_attempt_at", w.retry_at_once),
        "mutation",
    ),
    Mutant(
        "recover-fails-all",
        "REC-01",
        "An expired job fails with budget left (airflow#24906).",
        swap("recover", "requeue", "failed"),
    ),
    Mutant(
        "recover-nothing",
        "REC-01",
        "No sweep looks for running jobs, so those of the dead run for ever (taskiq-redis#130, saq#127).",
        put("expired", "lease_expired", w.never),
        also=("CANCEL-05", "LEASE-07", "REC-03", "REC-04", "REC-12"),
    ),
    Mutant(
        "recover-within-window",
        "REC-01",
        "A job that expired longer ago than a lease lasts is never recovered (celery#6229).",
        put("expired", "lease_expired", w.expired_lately),
        also=("CANCEL-05", "REC-03", "REC-04", "REC-12"),
    ),
    Mutant(
        "recover-spares-busy-owner",
        "REC-01",
        "An expired job is left to its owner while that one beats for another job (oban#862).",
        put("expired", "lease_expired", w.owner_is_idle),
        also=("CANCEL-05", "LEASE-07", "REC-03", "REC-04", "REC-12"),
    ),
    Mutant(
        "recover-content-code",
        "REC-01",
        "A job that was lost fails with a CONTENT code.",
        put("recover.failed", "error_code", w.code("REC-01", "PAGE_VALIDATION_FAILED")),
    ),
    Mutant(
        "recover-without-code",
        "REC-01",
        "A job that was lost fails without a code.",
        drop("recover.failed", "error_code"),
    ),
    Mutant(
        "recover-failed-keeps-lease",
        "REC-01",
        "A job that failed in recovery keeps its lease (worker#254).",
        drop("recover.failed", "lease_expires_at"),
    ),
    Mutant(
        "recover-unfinished",
        "TERM-03",
        "A job that failed in recovery has no finish instant.",
        drop("recover.failed", "finished_at"),
    ),
    Mutant(
        "recover-discards",
        "TERM-01",
        "A job whose budget is used up is stored as `discarded`.",
        put("recover.failed", "status", w.status("TERM-01", "discarded")),
    ),
    Mutant(
        "sweep-reopens-ended",
        "TERM-02",
        "A sweep takes every job that holds no lease for one whose lease has run out, those that have ended too.",
        twice(put, "expired", "running", w.not_pending),
    ),
    Mutant(
        "recover-too-early",
        "REC-02",
        "Recovery takes running jobs whose leases are valid.",
        twice(drop, "expired", "lease_expired"),
    ),
    Mutant(
        "recover-hard-coded-budget",
        "REC-03",
        "Recovery asks for three attempts, not for the row's own maximum (eliza#10854).",
        put("recover.requeue.when", "budget_left", w.three_attempts),
    ),
    Mutant(
        "recover-without-end",
        "REC-03",
        "A crash loop never ends (faktory#99).",
        drop("recover.requeue.when", "budget_left"),
    ),
    Mutant(
        "recover-once-too-often",
        "REC-03",
        "A used-up budget still buys one more attempt.",
        shift("recover.requeue.when", "budget_left"),
    ),
    Mutant(
        "recover-failed-keeps-token",
        "REC-01",
        "A job that recovery ends as failed keeps its generation.",
        drop("recover.failed", "lease_generation"),
        queue="mutation",
    ),
    Mutant(
        "recover-cancelled-keeps-token",
        "REC-01",
        "A job that recovery ends as cancelled keeps its generation.",
        drop("recover.cancelled", "lease_generation"),
        queue="mutation",
    ),
    Mutant(
        "recover-counts",
        "REC-03",
        "Recovery counts an attempt that nobody made (river#1165).",
        add("recover.requeue", p.count_attempt),
    ),
    Mutant(
        "recover-uncounts",
        "REC-03",
        "Recovery gives the lost attempt back (hindsight#2675).",
        add("recover.requeue", p.uncount_attempt),
    ),
    Mutant(
        "loop-never-sweeps", "REC-04", "Recovery runs only at start-up (OpenViking PR#4751).", but("tick_sweeps", False)
    ),
    Mutant(
        "start-up-spares-own",
        "REC-05",
        "A restarted process waits for the leases of what it left behind.",
        twice(put, "left_behind", "expired_or_own", p.lease_expired),
    ),
    Mutant(
        "start-up-takes-all",
        "REC-05",
        "A starting process takes every running job for its own.",
        twice(drop, "left_behind", "expired_or_own"),
    ),
    Mutant(
        "sweep-writes-for-nothing",
        "REC-06",
        "A sweep sends its update although it found nothing.",
        but("sweep_probes", False),
    ),
    Mutant(
        "sweep-hook-after-commit",
        "REC-08",
        "The sweep's hook runs after the commit, too late to undo anything.",
        but("sweep_hook", "after_commit"),
    ),
    Mutant(
        "sweep-hook-cancelled-commits",
        "REC-08",
        "A cancelled hook does not undo its batch.",
        but("sweep_undone_by", Exception),
    ),
    Mutant(
        "sweep-commits-row-by-row",
        "REC-08",
        "Each row of a batch is moved in a transaction of its own, so a hook that raises undoes the last one only "
        "(huey#915).",
        but("sweep_commits", "row"),
    ),
    Mutant(
        "sweep-generation-of-first",
        "REC-09",
        "Every row of a batch gets the first row's generation.",
        _generation_of_the_first,
        "mutation",
        also=("REC-01",),
    ),
    Mutant(
        "sweep-counts-read",
        "REC-10",
        "The summary counts rows read, also those of a batch that was rolled back.",
        but("sweep_counts", "read"),
    ),
    Mutant(
        "sweep-stops-at-failure",
        "REC-12",
        "One batch that fails stops the sweep (procrastinate#1446).",
        but("sweep_after_failure", "stop"),
    ),
)
