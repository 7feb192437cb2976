"""Faults of jobs that end `skipped` (TERM-01…03, REL-01).

This module must never know of claims or sweeps.
"""

from __future__ import annotations

from fencepost.adapters.reference.rules import Rules

from . import wrong as w
from .mutant import Mutant, both, drop, put


def _overwrites(rules: Rules) -> Rules:
    """No look at the status; and a null lease counts as one that has not run out, and ended rows keep their owner."""
    return both(
        drop("fence.skip", "running"),
        put("fence.skip", "lease_valid", w.lease_not_over),
        drop("writes.complete.succeeded", "worker_id"),
    )(rules)


SKIP_MUTANTS: tuple[Mutant, ...] = (
    Mutant(
        "skip-overwrites-success",
        "TERM-02",
        "A late skip overwrites a recorded success.",
        _overwrites,
        "screenshot",
    ),
    Mutant(
        "skip-ignores-cancel",
        "REL-01",
        "A job that is skipped after a cancel request ends skipped, not cancelled.",
        drop("writes.skip", "cancelled"),
        "screenshot",
    ),
    Mutant(
        "skip-other-spelling",
        "TERM-01",
        "A skipped job is stored as `ignored`.",
        put("writes.skip.skipped", "status", w.status("TERM-01", "ignored")),
        "screenshot",
    ),
    Mutant(
        "skip-succeeds",
        "TERM-01",
        "A skipped job is stored as succeeded.",
        put("writes.skip.skipped", "status", w.status("TERM-01", "succeeded")),
        "screenshot",
    ),
    Mutant(
        "skip-keeps-lease",
        "TERM-03",
        "A skipped job keeps its lease.",
        drop("writes.skip.skipped", "lease_expires_at"),
        "screenshot",
    ),
    Mutant(
        "skip-unfinished",
        "TERM-03",
        "A skipped job has no finish instant.",
        drop("writes.skip.skipped", "finished_at"),
        "screenshot",
    ),
)
