"""Scenarios of a queue that has all that a file can ask for, and what a run of them has made."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest
from fencepost.model import commands as c
from fencepost.model import outcomes as o
from fencepost.model.paths import Binding, Naming
from fencepost.model.queues import MUTATION, QUEUES
from fencepost.model.trace import Trace
from fencepost.scenarios import Scenario

EVERYTHING = replace(
    MUTATION,
    key="everything",
    terminal=MUTATION.terminal | {"skipped"},
    deadline=True,
    artifacts=True,
    claims_by_id=True,
)

JOBS: tuple[c.JobId, ...] = (101, "job-2")
"""What steps 1 and 2 have enqueued."""
ATTEMPTS = ("a7", "b1")
"""What step 3 has begun, one of each job."""


@contextmanager
def declared() -> Iterator[None]:
    """Meanwhile files may be of the queue `everything`."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(QUEUES, EVERYTHING.key, EVERYTHING)
        yield


def run_of(*outcomes: o.Outcome) -> tuple[Binding, Naming]:
    """What steps 1, 2, 3 … have made, both ways."""
    binding, naming = Binding(), Naming()
    for label, outcome in enumerate(outcomes, 1):
        binding.note(label, outcome)
        naming.note(label, outcome)
    return binding, naming


MADE, NAMING = run_of(
    *map(o.Enqueued, JOBS), o.Claimed(tuple(c.Handle(job, 1, each) for job, each in zip(JOBS, ATTEMPTS, strict=True)))
)


def scenario(trace: Trace, **other: object) -> Scenario:
    fields: dict[str, object] = {"id": "made-up", "clause": "FENCE-02", "queue": "everything", "title": "made up"}
    return Scenario(trace=trace, **(fields | other))  # type: ignore[arg-type]
