"""Checks bite, and violations can be looked for: every check with teeth has a step that breaks it, and every violation
carries the clause and reason of a check that explore knows.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from fencepost.model import commands as c
from fencepost.model import outcomes as o
from fencepost.model.choices import Bounds, last
from fencepost.model.explore import Explorer
from fencepost.model.legal import outcomes
from fencepost.model.outcomes import Row, View
from fencepost.model.queues import BACKFILL, MUTATION, RUNNING, QueueSpec
from fencepost.model.step import step
from fencepost.model.world import SETUP, Context, Record, Step, Violation, World
from test_model_judge import row_of
from test_model_law import beside, own_kind

BOTH = pytest.mark.parametrize("spec", [BACKFILL, MUTATION], ids=lambda spec: spec.key)
STATES = 60
"""States looked at, spread over those that four commands reach."""

WRONG: dict[str, tuple[Any, ...]] = {
    "status": ("pending", "running", "succeeded", "failed", "cancelled", "canceled", "completed", "error", "lost"),
    "owner": ("host-b:1:w2", None),
    "expires": (7, None),
    "heartbeat": (7, None),
    "started": (-7,),
    "finished": (5, None),
    "attempts": (9,),
    "max_attempts": (9,),
    "token": (9, 1),
    "due": (10**6,),
    "cancel": (7, 10**6),
    "error": ("NO_FAMILY_AT_ALL", "PAGE_VALIDATION_FAILED", "RENDER_SERVICE_UNAVAILABLE", None),
}
TAKEN = {"status": RUNNING, "owner": "host-a:1:w1", "expires": 10**6, "heartbeat": 10**6, "finished": None}


def seen(job: Record, now: int) -> Row:
    """The row of a job; what ended it and when it started do not matter here."""
    started = job.expires - job.lease if job.status == RUNNING and job.expires is not None else 1
    return row_of(job, started=started, error="LEASE_TIMEOUT_MAX_ATTEMPTS" if job.status == "failed" else None)


def right_view(before: World, after: World, command: c.Command, old: View) -> View:
    """The rows that a right queue shows after a legal step."""
    view = []
    for at, job in enumerate(after.jobs):
        if at < len(old) and job == before.jobs[at]:
            view.append(old[at])
        elif job.status == "failed" and isinstance(command, c.Fail):
            view.append(seen(job, after.now)._replace(error=command.code))
        elif job.status == RUNNING and isinstance(command, c.Renew | c.RequestCancel):
            kept = seen(job, after.now)
            view.append(kept._replace(started=old[at].started))
        else:
            view.append(seen(job, after.now))
    return tuple(view)


def wrong_views(view: View, old: View) -> Iterator[View]:
    """The rows with one of them otherwise: a field, all of it as before, or set running."""
    for at, row in enumerate(view):
        for other in (
            *(row._replace(**{field: value}) for field, values in WRONG.items() for value in values),
            *(row._replace(token=each.token) for each in view),
            row._replace(**TAKEN),
            *old[at : at + 1],
        ):
            if other != row:
                yield (*view[:at], other, *view[at + 1 :])


def judged(spec: QueueSpec) -> tuple[dict[tuple[str, str, str], bool], set[tuple[str, str]]]:
    """By verb, clause and reason of each check with teeth whether a wrong step was refused for just that; and every
    clause and reason that wrong steps were refused for.
    """
    found = Explorer(spec, Bounds(depth=4, short_leases=True)).run()
    bitten: dict[tuple[str, str, str], bool] = {}
    refused: set[tuple[str, str]] = set()
    for blind in found.states[:: max(len(found.states) // STATES, 1)]:
        now = blind.now
        old = tuple(seen(job, now) for job in blind.jobs)
        world = blind._replace(rows=old)
        for command in last(world, found.bounds):
            if isinstance(command, c.Advance | c.Enqueue) or (isinstance(command, c.Atomically) and world.jobs[1:]):
                continue
            for outcome in outcomes(world, command, Context(now)):
                after = step(blind, command, outcome, Context(now))
                assert isinstance(after, Step), (command, outcome, after)
                view = right_view(blind, after.world, command, old)
                right = step(world, command, outcome, Context(now, False, view))
                assert isinstance(right, Step), (command, outcome, right, view)
                steps = (
                    *((outcome, wrong) for wrong in wrong_views(view, old)),
                    *(
                        (other, rows)
                        for other in (*beside(outcome), *own_kind(world, command, now))
                        for rows in (view, old)
                    ),
                    (o.CONFLICT, old),
                    *(
                        (o.Accepted(outcome.status, due), view)
                        for due in (None, now)
                        if isinstance(outcome, o.Accepted)
                    ),
                )
                broken = set()
                for other, rows in steps:
                    verdict = step(world, command, other, Context(now, False, rows))
                    if isinstance(verdict, Violation):
                        broken.add((verdict.clause, verdict.reason))
                refused |= broken
                for check in right.checks:
                    if check.teeth:
                        key = command.verb, check.clause, check.reason
                        bitten[key] = bitten.get(key, False) or key[1:] in broken
    return bitten, refused


UNTESTED = {
    "claim: another row", "probe: another row",  # no reader of FENCE-01 expects them to be its business
    "conflict with nobody", "claim: hook raised by itself", "sweep: hook raised by itself",  # any step might
    "sweep: a job that nothing is left to do for",  # REC-07's certificates test it
}  # fmt: skip
"""Reasons that wrong steps are refused for, and that no right step is counted for."""


@BOTH
def test_every_check_with_teeth_bites_and_every_bite_is_a_check(spec: QueueSpec) -> None:
    bitten, refused = judged(spec)
    known = set()
    for short in (False, True):
        search = Explorer(spec, Bounds(depth=5, short_leases=short)).run()
        for state in range(len(search.states)):
            for _, checks in search.judged(state):
                known |= {(check.clause, check.reason) for check in checks}
    assert len(bitten) > 100
    assert sorted(key for key, bit in bitten.items() if not bit) == []
    assert {reason for clause, reason in refused - known if clause != SETUP} == UNTESTED
