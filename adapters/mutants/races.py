"""Faults that take two actors at once. This module must never know how they are scheduled.

`pair` names what must overlap as a race's program does: lanes parted by a bar, each one's verbs by spaces.
"""

from __future__ import annotations

from fencepost.adapters.reference import predicates as p
from fencepost.adapters.reference.rules import HOLDER, Shape

from . import wrong as w
from .mutant import Mutant, both, but, drop, put

UPGRADED = Shape(skip_locked=False, ends_read=False)
SPLIT = Shape(skip_locked=False, ends_read=True)
SUBSELECT = Shape(skip_locked=False, ends_read=False, subselect=True)
LIMITED = Shape(skip_locked=True, ends_read=False, limits_first=True)
WAITING = Shape(skip_locked=False, ends_read=False, waits=True)

ONE_JOB = "claim ‖ claim, one job"
TWO_JOBS = "claim ‖ claim, two jobs"

RACES: tuple[Mutant, ...] = (
    Mutant(
        "claim-select-then-update",
        "CLAIM-06",
        "A claim reads a candidate and then updates it by id alone, so two claimers win (django-q#234).",
        both(but("claim_again", ()), but("claim_shape.pg", SPLIT)),
        also=("CANCEL-09",),
        pair=ONE_JOB,
    ),
    Mutant(
        "claim-again-any-status",
        "CLAIM-06",
        "The claim's update does not look at the status again, so the slower of two claimers wins as well.",
        both(drop("claim_again", "pending"), but("claim_shape.pg", SPLIT)),
        also=("CLAIM-11",),
        pair=ONE_JOB,
    ),
    Mutant(
        "claim-by-subselect",
        "CLAIM-06",
        "A claim updates `WHERE id = (SELECT … LIMIT 1)`: who waited for the row takes it once more (rtcstats PR#336).",
        both(but("claim_again", ()), but("claim_shape.pg", SUBSELECT)),
        adapters=("pg",),
        also=("CANCEL-09",),
        pair=ONE_JOB,
    ),
    Mutant(
        "claim-loser-acts",
        "CLAIM-06",
        "A claimer whose update changed no row acts as the winner (dbos-transact-py#742).",
        both(but("claim_returns", "tried"), but("claim_shape.pg", SPLIT)),
        also=("CANCEL-09",),
        pair=ONE_JOB,
    ),
    Mutant(
        "claim-waits",
        "CLAIM-11",
        "A claim waits for rows that another one has locked, and does not skip them.",
        but("claim_shape.pg", WAITING),
        adapters=("pg",),
        pair=ONE_JOB,
    ),
    Mutant(
        "claim-split",
        "CLAIM-11",
        "On PostgreSQL the read locks nothing, so claimers update in vain.",
        but("claim_shape.pg", SPLIT),
        also=("CLAIM-14",),
        adapters=("pg",),
        pair=ONE_JOB,
    ),
    Mutant(
        "claim-limit-before-lock",
        "CLAIM-14",
        "The limit applies before locked rows are skipped, so a locked head starves the rest (procrastinate#1599).",
        but("claim_shape.pg", LIMITED),
        adapters=("pg",),
        pair=TWO_JOBS,
    ),
    Mutant(
        "write-checks-then-acts",
        "FENCE-02",
        "A write looks at the lease first and then updates by id, while recovery takes the job (litestar-queues#36).",
        but("fence_at", "transaction_before"),
        also=("CANCEL-09", "LEASE-02"),
        pair="complete ‖ start_up",
    ),
    Mutant(
        "write-by-status",
        "FENCE-02",
        "The lease is checked by a read, the update carries the status alone: a successor's run is ended (clevis#215).",
        both(but("fence_at", "transaction_before"), but("late_fence", (p.running,))),
        also=("CANCEL-09",),
        pair="complete ‖ recover claim, another worker",
    ),
    Mutant(
        "write-by-owner",
        "FENCE-03",
        "The token is checked by a read, the update carries status and owner: the same worker's next run is ended.",
        both(but("fence_at", "transaction_before"), but("late_fence", (p.running, p.owned))),
        queue="mutation",
        also=("CANCEL-09",),
        pair="complete ‖ release claim, the same worker",
    ),
    Mutant(
        "complete-checks-cancel-before",
        "CANCEL-09",
        "A completion looks for a cancel request first, and not in its update.",
        both(but("fence_at", "transaction_before"), but("late_fence", HOLDER)),
        pair="complete ‖ request_cancel",
    ),
    Mutant(
        "cancel-checks-then-acts",
        "CANCEL-09",
        "A cancel looks at the status first, and ends a job that somebody claimed meanwhile.",
        but("cancel_at", "transaction_before"),
        also=("REC-07",),
        pair="claim ‖ request_cancel",
    ),
    Mutant(
        "recover-by-id",
        "REC-07",
        "Recovery updates what it read by id alone, over a newer end (river#1302).",
        but("expired_again", ()),
        also=("REC-02",),
        pair="complete ‖ recover",
    ),
    Mutant(
        "recover-over-renewal",
        "REC-02",
        "Recovery does not look at the lease again, and takes a job that was renewed meanwhile.",
        drop("expired_again", "lease_expired", "same_lease"),
        pair="renew ‖ recover",
    ),
    Mutant(
        "start-up-by-id",
        "REC-07",
        "A starting process takes what it read by id alone, over an end that came meanwhile.",
        but("left_behind_again", ()),
        pair="complete ‖ start_up",
    ),
    Mutant(
        "call-off-by-id",
        "REC-07",
        "A sweep ends a called-off job by id alone, so two sweeps both count it.",
        but("called_off_again", ()),
        pair="recover ‖ recover, a job called off",
    ),
    Mutant(
        "call-off-again-any-status",
        "REC-07",
        "A sweep ends a called-off job once more that another one ended meanwhile.",
        drop("called_off_again", "pending"),
        pair="recover ‖ recover, a job called off",
    ),
    Mutant(
        "claim-again-without-due",
        "CLAIM-03",
        "The claim's update does not look at the due instant again, and takes a job that began to back off meanwhile.",
        both(drop("claim_again", "due"), but("claim_shape.pg", SPLIT)),
        queue="mutation",
        also=("CLAIM-11", "CLAIM-14"),
        pair="claim ‖ claim fail",
    ),
    Mutant(
        "claim-scanned-by-id",
        "CLAIM-06",
        "A claim scans ten candidates and then updates each by id alone, so two claimers take the same one.",
        both(but("claim_again", ()), but("claim_shape.pg", SPLIT)),
        queue="build",
        also=("CLAIM-01", "CLAIM-11"),
        pair="claim ‖ claim, two jobs, both scanned for one",
    ),
    Mutant(
        "claim-again-ended",
        "CLAIM-01",
        "The claim's update does not look at the status again, and takes a job that a sweep has ended meanwhile.",
        both(drop("claim_again", "pending"), but("claim_shape.pg", SPLIT)),
        queue="build",
        also=("CLAIM-11", "CLAIM-14"),
        pair="claim ‖ recover",
    ),
    Mutant(
        "claim-upgrades-read",
        "CLAIM-11",
        "On SQLite a claim writes in the transaction that it has read in, which fails once others wrote "
        "(jentic-one PR#529).",
        but("claim_shape.sqlite", UPGRADED),
        adapters=("sqlite",),
        pair=ONE_JOB,
    ),
    Mutant(
        "claim-in-pieces",
        "CLAIM-07",
        "Each job of a claim is taken in a transaction of its own; a conflict in the second leaves the first running "
        "with nobody.",
        but("claim_commits", "row"),
        adapters=("sqlite",),
        also=("CLAIM-11",),
        pair="claim ‖ claim, two jobs each",
    ),
    Mutant(
        "claim-token-as-read",
        "FENCE-03",
        "A claim raises the generation that it read, so one that others took and gave back meanwhile gets their token "
        "again (quartz#107).",
        both(put("claim_set", "lease_generation", w.generation_as_seen), but("claim_shape.pg", SPLIT)),
        queue="mutation",
        also=("CLAIM-11", "CLAIM-14"),
        pair="claim ‖ claim release",
    ),
    Mutant(
        "promote-by-owner",
        "FENCE-04",
        "The attempt is checked by a read, the promotion carries status and owner: a late upload becomes the artifact "
        "of the same worker's next attempt.",
        both(but("fence_at", "transaction_before"), but("late_fence", (p.running, p.owned))),
        queue="build",
        also=("FENCE-03",),
        pair="put_artifact ‖ release claim, the same worker",
    ),
    Mutant(
        "clean-up-while-promoting",
        "FENCE-07",
        "A clean-up deletes an object whose promotion is under way.",
        drop("kept_if", "may_refer"),
        queue="build",
        pair="put_artifact ‖ put_artifact",
    ),
    Mutant(
        "recover-as-read",
        "REC-07",
        "Recovery decides what becomes of a job when it reads the row, and re-queues one that was cancelled meanwhile.",
        but("recover_at", "read"),
        pair="request_cancel ‖ recover",
    ),
    Mutant(
        "sweep-hook-gets-read",
        "REC-08",
        "A sweep's hook is given every job that was read, also those that somebody else was faster with.",
        but("sweep_hook_gets", "read"),
        pair="complete ‖ recover, with a hook",
    ),
    Mutant(
        "lapse-by-id",
        "REC-07",
        "A sweep ends a pending job past its deadline by id alone, so two sweeps both count it.",
        but("lapsed_again", ()),
        queue="build",
        pair="recover ‖ recover, a job overdue",
    ),
    Mutant(
        "lapse-again-any-status",
        "REC-07",
        "A sweep ends a job past its deadline once more that another one ended meanwhile.",
        drop("lapsed_again", "pending"),
        queue="build",
        pair="recover ‖ recover, a job overdue",
    ),
)
