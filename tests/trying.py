"""Tiny runs of adapters that may be anything, and how they ended."""

from __future__ import annotations

import dataclasses

from fencepost.adapters.contract import Adapter
from fencepost.adapters.reference.adapter import SqliteAdapter
from fencepost.adapters.reference.rules import CONTRACT
from fencepost.conformance.run import Outcome
from fencepost.conformance.watchdog import USUAL, Limits
from fencepost.reports.result import exit_code
from runs import mutant_named, planned, went


def tried(make: type[Adapter], *clauses: str, limits: Limits = USUAL, queue: str = "") -> Outcome:
    """A tiny run on the adapter's first queue."""
    plan = planned(make, *clauses, queues=(queue or next(iter(make.queues)),))
    return went(dataclasses.replace(plan, limits=limits))


def broken_by(mutant: str) -> type[SqliteAdapter]:
    """The reference queue with this fault in it."""

    class Broken(SqliteAdapter):
        def __init__(self) -> None:
            super().__init__(rules=mutant_named(mutant).change(CONTRACT))

    return Broken


def faulted(outcome: Outcome) -> str:
    """What ended a run that says nothing about any clause."""
    assert outcome.result.verdict == "harness error" and exit_code(outcome.result) == 3
    assert outcome.result.failures == (), "the queue is blamed for nothing"
    return outcome.fault


def broken(outcome: Outcome) -> list[str]:
    assert outcome.fault == ""
    return [failure.clause for failure in outcome.result.failures]
