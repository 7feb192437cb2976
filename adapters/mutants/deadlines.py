"""Faults of deadlines: of claims past them, of leases that reach beyond, of jobs that nobody ends (CLAIM-04, LEASE-03,
DEAD-01). This module must never know of attempts or artifacts.
"""

from __future__ import annotations

from fencepost.adapters.reference.rules import Verb

from . import wrong as w
from .fences import UPLOAD_ALSO
from .mutant import Mutant, add, both, drop, each, put, shift, swap, twice

_WRITES = (Verb.COMPLETE, Verb.FAIL, Verb.RELEASE)

DEADLINE_MUTANTS: tuple[Mutant, ...] = (
    Mutant(
        "claim-past-deadline",
        "CLAIM-04",
        "A claim takes a job whose deadline has passed.",
        twice(drop, "claim_where", "begins_in_time"),
        "build",
    ),
    Mutant(
        "claim-at-deadline",
        "CLAIM-04",
        "A job can still be claimed at the very instant of its deadline.",
        twice(shift, "claim_where", "begins_in_time"),
        "build",
    ),
    Mutant(
        "claim-one-past-deadline",
        "CLAIM-04",
        "A claim that names its job does not look at the deadline.",
        both(drop("claim_named", "begins_in_time"), drop("claim_again", "begins_in_time")),
        "build",
    ),
    Mutant(
        "claim-lease-uncut",
        "CLAIM-04",
        "A new lease reaches beyond the job's deadline.",
        put("claim_set", "lease_expires_at", w.lease_uncut),
        "build",
    ),
    Mutant(
        "claim-lease-to-deadline",
        "CLAIM-05",
        "A new lease lasts until the deadline, however far that is, so a dead worker's job waits for it.",
        put("claim_set", "lease_expires_at", w.lease_to_deadline),
        "build",
    ),
    Mutant(
        "claim-forgets-deadline",
        "CLAIM-05",
        "A claim clears the deadline, so the next one may run for ever.",
        add("claim_set", w.deadline_lost),
        "build",
    ),
    Mutant(
        "renew-lease-uncut",
        "LEASE-03",
        "A renewal prolongs the lease beyond the job's deadline.",
        put("writes.renew.renewed", "lease_expires_at", w.lease_uncut),
        "build",
        also=("FENCE-06",),
    ),
    Mutant(
        "renew-moves-deadline",
        "LEASE-03",
        "A heartbeat moves the deadline on with the lease.",
        add("writes.renew.renewed", w.deadline_moved),
        "build",
    ),
    Mutant(
        "renew-past-deadline",
        "LEASE-03",
        "A heartbeat is accepted although the deadline has passed.",
        drop("fence.renew", "in_time"),
        "build",
    ),
    Mutant(
        "renew-at-deadline",
        "LEASE-03",
        "A heartbeat is accepted at the very instant of the deadline.",
        shift("fence.renew", "in_time"),
        "build",
    ),
    *(
        mutant
        for verbs, also in ((_WRITES, ()), ((Verb.PUT_ARTIFACT,), UPLOAD_ALSO))
        for mutant in each(
            "past-deadline",
            "DEAD-01",
            "A deadline that has passed does not stop the holder's {}",
            lambda verb: drop(f"fence.{verb}", "in_time"),
            verbs,
            "build",
            also=also,
        )
    ),
    *each(
        "at-deadline",
        "DEAD-01",
        "The holder's {} is still accepted at the very instant of the deadline",
        lambda verb: shift(f"fence.{verb}", "in_time"),
        _WRITES[:1],
        "build",
    ),
    Mutant(
        "sweep-leaves-overdue",
        "DEAD-01",
        "No sweep ends a pending job whose deadline has passed, so it waits for ever.",
        add("lapsed", w.never),
        "build",
        also=("REC-04", "REC-12"),
    ),
    Mutant(
        "sweep-overdue-late",
        "DEAD-01",
        "A sweep ends a pending job only after the instant of its deadline, not at it.",
        twice(shift, "lapsed", "overdue"),
        "build",
        also=("REC-04", "REC-12"),
    ),
    Mutant(
        "recover-requeues-overdue",
        "DEAD-01",
        "Recovery re-queues an expired job whose deadline has passed (asyncjobs#66).",
        drop("recover", "overdue"),
        "build",
    ),
    Mutant(
        "recover-budget-before-deadline",
        "DEAD-01",
        "Recovery looks at the budget before it looks at the deadline.",
        swap("recover", "overdue", "requeue"),
        "build",
    ),
    Mutant(
        "recover-overdue-late",
        "DEAD-01",
        "At the very instant of its deadline an expired job is queued again.",
        shift("recover.overdue.when", "overdue"),
        "build",
    ),
    Mutant(
        "recover-overdue-expires",
        "TERM-01",
        "A running job past its deadline is stored as `expired`, a status this queue does not have.",
        put("recover.overdue", "status", w.status("TERM-01", "expired")),
        "build",
    ),
    Mutant(
        "lapse-in-time",
        "DEAD-01",
        "A sweep ends every pending job that has a deadline, passed or not.",
        twice(put, "lapsed", "overdue", w.dated),
        "build",
    ),
    Mutant(
        "lapse-expires",
        "TERM-01",
        "A pending job past its deadline is stored as `expired`, a status this queue does not have.",
        put("lapse.failed", "status", w.status("TERM-01", "expired")),
        "build",
    ),
    Mutant(
        "lapse-old-spelling",
        "TERM-04",
        "A pending job past its deadline is stored as `error`.",
        put("lapse.failed", "status", w.status("TERM-04", "error")),
        "build",
    ),
    Mutant(
        "lapse-unfinished",
        "TERM-03",
        "A job that ended at its deadline has no finish instant.",
        drop("lapse.failed", "finished_at"),
        "build",
    ),
)
