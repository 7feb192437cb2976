"""Checks bite, and violations can be looked for: every check that a step counts with teeth has, in that very step, an
answer or a row that breaks it; every violation carries the clause and reason of a check that explore knows, and names a
clause that applies to the queue.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

import pytest
from declared import EVERY, UNORDERED
from fencepost.model import commands as c
from fencepost.model import outcomes as o
from fencepost.model.applicability import cell
from fencepost.model.choices import Bounds, last
from fencepost.model.explore import Explorer
from fencepost.model.legal import outcomes
from fencepost.model.outcomes import Row, View
from fencepost.model.queues import RUNNING, QueueSpec
from fencepost.model.step import step
from fencepost.model.world import SETUP, Context, Record, Step, Violation, World
from judging import row_of
from test_model_law import beside, own_kind

EVERYWHERE = pytest.mark.parametrize("spec", EVERY, ids=lambda spec: spec.key)
STATES = 30
"""States looked at, spread over those that four commands reach."""

WRONG: dict[str, tuple[Any, ...]] = {
    "status": ("pending", "running", "succeeded", "failed", "cancelled", "canceled", "completed", "error", "lost"),
    "owner": ("host-b:1:w2", None),
    "expires": (7, 10**5, None),
    "heartbeat": (7, None),
    "started": (-7,),
    "finished": (5, None),
    "attempts": (9,),
    "max_attempts": (9,),
    "token": (9, 1, "stray", None),
    "due": (10**6,),
    "cancel": (7, 10**6),
    "error": ("NO_FAMILY_AT_ALL", "PAGE_VALIDATION_FAILED", "RENDER_SERVICE_UNAVAILABLE", None),
    "deadline": (7, 10**6, None),
    "artifact": ("stray", None),
}
TAKEN = {"status": RUNNING, "owner": "host-a:1:w1", "expires": 10**6, "heartbeat": 10**6, "finished": None}


def seen(job: Record, now: int) -> Row:
    """The row of a job; what ended it and when it started do not matter here."""
    started = job.expires - job.lease if job.status == RUNNING and job.expires is not None else 1
    lost = job.status == "failed" and job.spec.stores_code
    return row_of(job, started=started, error="LEASE_TIMEOUT_MAX_ATTEMPTS" if lost else None)


def right_view(before: World, after: World, command: c.Command, old: View) -> View:
    """The rows that a right queue shows after a legal step."""
    view = []
    for at, job in enumerate(after.jobs):
        if at < len(old) and job == before.jobs[at]:
            view.append(old[at])
        elif job.status == "failed" and isinstance(command, c.Fail) and job.spec.stores_code:
            view.append(seen(job, after.now)._replace(error=command.code))
        elif job.status == RUNNING and isinstance(command, c.Renew | c.RequestCancel | c.PutArtifact):
            kept = seen(job, after.now)
            view.append(kept._replace(started=old[at].started))
        else:
            view.append(seen(job, after.now))
    return tuple(view)


def wrong_views(view: View, old: View) -> Iterator[View]:
    """The rows with one of them otherwise: a field, another row's token or instant, all of it as before, or running."""
    for at, row in enumerate(view):
        for other in (
            *(row._replace(**{field: value}) for field, values in WRONG.items() for value in values),
            *(row._replace(token=each.token) for each in view),
            *(row._replace(due=each.due) for each in view),
            row._replace(**TAKEN),
            *old[at : at + 1],
        ):
            if other != row:
                yield (*view[:at], other, *view[at + 1 :])


def wrong_steps(world: World, command: c.Command, outcome: o.Outcome, view: View) -> Iterator[tuple[o.Outcome, View]]:
    """Other answers, and other rows, than these right ones."""
    old = world.rows or ()
    yield from ((outcome, wrong) for wrong in wrong_views(view, old))
    for other in (*beside(outcome), *own_kind(world, command, world.now), *given_otherwise(outcome)):
        if world.spec.hooks or not tells_of_hooks(other):
            yield from ((other, rows) for rows in (view, old))
    yield o.CONFLICT, old
    if isinstance(outcome, o.Accepted):
        yield from ((o.Accepted(outcome.status, due), view) for due in (None, world.now))


def tells_of_hooks(outcome: o.Outcome) -> bool:
    """Whether this answer speaks of a hook, which nobody gives to a queue that takes none."""
    return isinstance(outcome, o.HookRaised) or bool(
        getattr(outcome, "hooked", None) or getattr(outcome, "failed", False)
    )


def given_otherwise(outcome: o.Outcome) -> Iterator[o.Outcome]:
    """What a hook may have been given, and a token that two jobs are given at once."""
    if isinstance(outcome, o.Claimed) and outcome.handles:
        token = outcome.handles[0].token
        yield o.Claimed(tuple(c.Handle(each.job, each.worker, token) for each in outcome.handles), outcome.hooked)
    if isinstance(outcome, o.HookRaised):
        yield from (o.HookRaised(given) for given in ((), (1,), (2,), (1, 2)))


class Bitten(NamedTuple):
    """By verb, clause and reason how often a check was counted with teeth, and a step in which nothing could break it;
    and the clauses and reasons that wrong steps were refused for.
    """

    counted: dict[tuple[str, str, str], int]
    hollow: dict[tuple[str, str, str], str]
    refused: set[tuple[str, str]]


@cache
def bites(spec: QueueSpec) -> Bitten:
    found = Explorer(spec, Bounds(depth=4, short_leases=True)).run()
    bitten = Bitten({}, {}, set())
    for blind in found.states[:: max(len(found.states) // STATES, 1)]:
        now = blind.now
        old = tuple(seen(job, now) for job in blind.jobs)
        world = blind._replace(rows=old)
        for command in last(world, found.bounds):
            given = isinstance(command, c.Advance | c.Enqueue | c.Plant)
            if given or (isinstance(command, c.Atomically) and world.jobs[1:]):
                continue
            for outcome in outcomes(world, command, Context(now)):
                after = step(blind, command, outcome, Context(now))
                assert isinstance(after, Step), (command, outcome, after)
                view = right_view(blind, after.world, command, old)
                right = step(world, command, outcome, Context(now, False, view))
                assert isinstance(right, Step), (command, outcome, right, view)
                broken = set()
                for other, rows in wrong_steps(world, command, outcome, view):
                    verdict = step(world, command, other, Context(now, False, rows))
                    if isinstance(verdict, Violation):
                        broken.add((verdict.clause, verdict.reason))
                bitten.refused.update(broken)
                for check in right.checks:
                    if check.teeth:
                        key = command.verb, check.clause, check.reason
                        bitten.counted[key] = bitten.counted.get(key, 0) + 1
                        if (check.clause, check.reason) not in broken:
                            bitten.hollow[key] = f"{command} {outcome} in {world.jobs}"
    return bitten


@EVERYWHERE
def test_every_check_with_teeth_bites_wherever_it_is_counted(spec: QueueSpec) -> None:
    bitten = bites(spec)
    assert bitten.hollow == {}
    assert len(bitten.counted) > 150


UNTESTED = {
    "claim: another row", "probe: another row", "read_artifact: another row",  # nobody expects FENCE-01 in these
    "conflict with nobody", "claim: hook raised by itself", "sweep: hook raised by itself",  # any step might
    "sweep: a job that nothing is left to do for",  # REC-07's certificates test it
}  # fmt: skip
"""Reasons that wrong steps are refused for, and that no right step is counted for."""


@EVERYWHERE
def test_every_bite_is_a_check_that_explore_knows(spec: QueueSpec) -> None:
    known = set()
    for short in (False, True):
        search = Explorer(spec, Bounds(depth=4, short_leases=short)).run()
        for state in range(len(search.states)):
            for _, checks, _ in search.judged(state):
                known |= {(check.clause, check.reason) for check in checks}
    allowed = BINDING if spec is UNORDERED else set()
    strange = {each for each in bites(spec).refused - known - allowed if each[0] != SETUP and each[1] not in UNTESTED}
    deeper = Explorer(spec, Bounds(depth=6))
    assert {each for each in strange if next(deeper.witnesses(*each), None) is None} == set()


BINDING = {("CLAIM-08", "claim: oldest first"), ("CLAIM-14", "claim: past an excluded head")}
"""That a due job is claimed at all binds a queue without order too; a failure outranks what it declares."""


@EVERYWHERE
def test_only_clauses_that_apply_are_counted_or_broken(spec: QueueSpec) -> None:
    bitten = bites(spec)
    named = {(clause, reason) for _, clause, reason in bitten.counted} | bitten.refused
    strange = {each for each in named if each[0] != SETUP and cell(each[0], spec).status != "applies"}
    assert strange <= (BINDING if spec is UNORDERED else set())
