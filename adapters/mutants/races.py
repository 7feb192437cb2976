"""Faults that take two actors at once. This module must never know how they are scheduled.

`pair` names what must overlap as a race's program does: lanes parted by a bar, each one's verbs by spaces.
"""

from __future__ import annotations

from fencepost.adapters.reference import predicates as p
from fencepost.adapters.reference.rules import HOLDER, Shape

from .mutant import Mutant, both, but, drop

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
        also=("CLAIM-11", "CANCEL-09"),
        pair=ONE_JOB,
    ),
    Mutant(
        "claim-again-any-status",
        "CLAIM-06",
        "The claim's update does not look at the status again, so the slower of two claimers wins as well.",
        both(drop("claim_again", "pending"), but("claim_shape.pg", SPLIT)),
        also=("CLAIM-11", "CANCEL-09"),
        pair=ONE_JOB,
    ),
    Mutant(
        "claim-by-subselect",
        "CLAIM-06",
        "A claim updates `WHERE id = (SELECT … LIMIT 1)`: who waited for the row takes it once more (rtcstats PR#336).",
        both(but("claim_again", ()), but("claim_shape.pg", SUBSELECT)),
        adapters=("pg",),
        also=("CLAIM-11", "CANCEL-09"),
        pair=ONE_JOB,
    ),
    Mutant(
        "claim-loser-acts",
        "CLAIM-06",
        "A claimer whose update changed no row acts as the winner (dbos-transact-py#742).",
        both(but("claim_returns", "tried"), but("claim_shape.pg", SPLIT)),
        also=("CLAIM-11", "CANCEL-09"),
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
)
