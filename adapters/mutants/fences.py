"""Faults of leases and fences: each write's fence is taken apart in the same way (LEASE-01…04, FENCE-01…06).

This module must never know of claims or sweeps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from fencepost.adapters.reference import predicates as p
from fencepost.adapters.reference.rules import Verb

from . import wrong as w
from .mutant import Change, Mutant, add, both, but, drop, each, put, shift

WRITES = (Verb.COMPLETE, Verb.FAIL, Verb.RELEASE, Verb.ACKNOWLEDGE)
"""The writes that end a lease; a renewal's faults have clauses of their own."""

UPLOAD_ALSO = ("FENCE-06",)
"""Stored once more by the same attempt, an artifact that is accepted changes nothing."""


def _everywhere(kind: str, clause: str, title: str, change: Callable[[Verb], Change]) -> Iterator[Mutant]:
    yield from each(kind, clause, title, change, WRITES)
    yield from each(kind, clause, title, change, (Verb.SKIP,), "screenshot")
    yield from each(kind, clause, title, change, (Verb.PUT_ARTIFACT,), "build", also=UPLOAD_ALSO)


LEASE_MUTANTS: tuple[Mutant, ...] = (
    Mutant(
        "configure-any-lease", "LEASE-01", "A lease of one heartbeat is taken (airflow#57618).", but("lease_ratio", 1)
    ),
    Mutant("configure-two-heartbeats", "LEASE-01", "A lease of two heartbeats is taken.", but("lease_ratio", 2)),
    Mutant(
        "renew-anybody",
        "LEASE-02",
        "A superseded worker's heartbeat prolongs the lease of its successor.",
        drop("fence.renew", "owned"),
        also=("FENCE-06",),
    ),
    Mutant(
        "renew-takes-over",
        "LEASE-02",
        "A superseded worker's heartbeat makes the job its own again.",
        both(drop("fence.renew", "owned"), add("writes.renew.renewed", p.own)),
    ),
    Mutant(
        "renew-without-heartbeat",
        "LEASE-03",
        "A renewal leaves the heartbeat as it was.",
        drop("writes.renew.renewed", "heartbeat_at"),
    ),
    Mutant(
        "renew-empties-heartbeat",
        "LEASE-03",
        "A renewal empties the heartbeat.",
        put("writes.renew.renewed", "heartbeat_at", w.beat_lost),
    ),
    Mutant(
        "renew-without-lease",
        "LEASE-03",
        "A renewal beats, and the lease runs out all the same (dramatiq#692).",
        drop("writes.renew.renewed", "lease_expires_at"),
        also=("FENCE-06",),
    ),
    Mutant(
        "renew-ends-lease",
        "LEASE-03",
        "A renewal sets the expiry to now.",
        put("writes.renew.renewed", "lease_expires_at", w.lease_from_now),
    ),
    Mutant(
        "renew-revives", "LEASE-04", "A late heartbeat revives an expired lease.", drop("fence.renew", "lease_valid")
    ),
    Mutant(
        "renew-at-expiry",
        "LEASE-04",
        "A heartbeat at the very instant of expiry revives the lease.",
        shift("fence.renew", "lease_valid"),
    ),
    Mutant(
        "renew-older-token",
        "FENCE-03",
        "The same worker's older handle renews its newer lease, and writes its own generation back.",
        both(drop("fence.renew", "same_generation"), add("writes.renew.renewed", w.generation_of_handle)),
        "mutation",
    ),
)

FENCE_MUTANTS: tuple[Mutant, ...] = (
    *_everywhere(
        "expired",
        "FENCE-01",
        "An expired lease does not stop its holder's {}",
        lambda verb: drop(f"fence.{verb}", "lease_valid"),
    ),
    *_everywhere(
        "at-expiry",
        "FENCE-01",
        "The lease still counts as valid at the instant of its expiry, for {}",
        lambda verb: shift(f"fence.{verb}", "lease_valid"),
    ),
    *(
        mutant
        for verbs, queue in ((WRITES, "backfill"), ((Verb.SKIP,), "screenshot"))
        for mutant in each(
            "anybody",
            "FENCE-02",
            "A superseded worker's {} is accepted while another one holds the job",
            lambda verb: drop(f"fence.{verb}", "owned"),
            verbs,
            queue,
            {Verb.RELEASE: "ShedLock#1986", Verb.FAIL: "litestar-queues#36"},
        )
    ),
    *each(
        "older-token",
        "FENCE-03",
        "The same worker's older handle still passes for {}",
        lambda verb: drop(f"fence.{verb}", "same_generation"),
        WRITES,
        "mutation",
        {Verb.COMPLETE: "bull#308"},
    ),
    *(
        mutant
        for verbs, queue in ((WRITES, "backfill"), ((Verb.SKIP,), "screenshot"), ((Verb.PUT_ARTIFACT,), "build"))
        for mutant in each(
            "silent",
            "FENCE-06",
            "A refused {} is reported as done",
            lambda verb: but("silent", frozenset({verb})),
            verbs,
            queue,
            {Verb.COMPLETE: "queue-jobs-worker#24"},
        )
    ),
    Mutant(
        "renew-silent",
        "FENCE-06",
        "A refused renewal is reported as done, so a worker that lost its job goes on (db-scheduler#402).",
        but("silent", frozenset({Verb.RENEW})),
    ),
    Mutant(
        "complete-commits-for-caller",
        "FENCE-01",
        "A completion commits inside its caller's transaction, and stands although the caller rolled back.",
        but("commits_for_caller", frozenset({Verb.COMPLETE})),
    ),
)
