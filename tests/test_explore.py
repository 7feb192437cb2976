"""The model explored: counts that do not move by accident, nothing legal left out, merges that lose nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from declared import BLURRED, BY_ID, EVERY, EVERYTHING
from fencepost.model import commands as c
from fencepost.model.choices import Bounds, building, last, meets
from fencepost.model.edges import Edges, ModelError
from fencepost.model.explore import Explorer, explored
from fencepost.model.legal import outcomes
from fencepost.model.queues import BACKFILL, BUILD, MUTATION, PENDING, RUNNING, SCREENSHOT, QueueSpec
from fencepost.model.step import step
from fencepost.model.world import AS_EXPECTED, Check, Checks, Context, Step, World

BOTH = pytest.mark.parametrize("spec", [BUILD, SCREENSHOT, BACKFILL, MUTATION], ids=lambda spec: spec.key)


def lasting(check: Check) -> bool:
    """Whether merging keeps this check: it has teeth, compares no two jobs' generations, and no age of a request, of a
    lease that has run out, of what a job waited for, or of the lease that a renewal finds."""
    ages = "cancel: requested before", "expired in this tick", "expired", "claim: oldest first", "renew: running row"
    return check.teeth and check.clause != "REC-09" and not any(age in check.reason for age in ages)


def edges_of(world: World, commands: Iterator[c.Command]) -> Iterator[tuple[c.Command, Step]]:
    """Every legal step of these commands, judged one by one with nothing remembered."""
    context = Context(world.now, False, AS_EXPECTED)
    for command in commands:
        for outcome in outcomes(world, command, context):
            judged = step(world, command, outcome, context)
            assert isinstance(judged, Step), (world, command, outcome, judged)
            yield command, judged


# -------------------------------------------------------------------------------------------------------- counts


@pytest.mark.parametrize(
    ("spec", "bounds", "states", "edges"),
    [
        (BACKFILL, Bounds(jobs=1, workers=1, budgets=(1,), until=300), 22, 176),
        (MUTATION, Bounds(jobs=1, workers=1, budgets=(1,), until=45), 53, 510),
        (BACKFILL, Bounds(jobs=1, workers=3, budgets=(3,), until=600), 232, 3362),
        (MUTATION, Bounds(jobs=1, workers=2, budgets=(2,), until=60), 351, 5290),
        (BACKFILL, Bounds(jobs=2, workers=2, budgets=(2, 1), until=300), 6817, 154675),
        (BUILD, Bounds(jobs=1, workers=1, budgets=(1,), until=960), 272, 2402),
        (BUILD, Bounds(jobs=1, workers=2, budgets=(2,), until=960), 838, 10452),
        (SCREENSHOT, Bounds(jobs=1, workers=3, budgets=(3,), until=600), 236, 3842),
        (SCREENSHOT, Bounds(jobs=2, workers=2, budgets=(2, 1), until=300), 7151, 180675),
        (BACKFILL, Bounds(depth=6), 1925, 10854),
        (MUTATION, Bounds(depth=6), 3327, 18449),
        (BUILD, Bounds(depth=5), 2388, 6429),
        (SCREENSHOT, Bounds(depth=6), 2064, 12738),
        (BACKFILL, Bounds(jobs=2, workers=3, budgets=(3,), until=600), 54406, 1593164),
    ],
    ids=[
        "backfill: one of each", "mutation: one of each", "backfill: one job", "mutation: one job",
        "backfill: two jobs", "build: one of each", "build: one job", "screenshot: one job", "screenshot: two jobs",
        "backfill: six steps", "mutation: six steps", "build: five steps", "screenshot: six steps",
        "backfill: the benchmark's world",
    ],
)  # fmt: skip
def test_a_bounded_world_has_exactly_so_many_states_and_edges(
    spec: QueueSpec, bounds: Bounds, states: int, edges: int
) -> None:
    found = explored(spec, bounds)
    assert (found.states, found.edges) == (states, edges)


def test_what_was_explored_is_told_by_clause() -> None:
    bounds = Bounds(jobs=1, workers=2, budgets=(2,), until=300)
    counted: dict[str, tuple[int, int]] = {}

    def count(world: World, command: c.Command, checks: Checks) -> None:
        for check in checks:
            checked, teeth = counted.get(check.clause, (0, 0))
            counted[check.clause] = checked + 1, teeth + check.teeth

    Explorer(BACKFILL, bounds).run(count)
    found = explored(BACKFILL, bounds)
    assert found.clauses == counted
    assert found.clauses["TERM-02"][1] < found.clauses["TERM-02"][0], "an older handle's refusals have no teeth"


# ------------------------------------------------------------------------------------------------ what is declared


def asked_of(spec: QueueSpec, depth: int = 4) -> list[tuple[World, c.Command]]:
    """Every command that any state of a small world offers."""
    found = Explorer(spec, Bounds(depth=depth, short_leases=True)).run()
    return [(world, command) for world in found.states for command in last(world, found.bounds)]


@pytest.mark.parametrize("spec", EVERY, ids=lambda spec: spec.key)
def test_every_verb_that_a_queue_serves_is_offered_and_no_other(spec: QueueSpec) -> None:
    offered = {command.verb for _, command in asked_of(spec, depth=3)}
    assert offered == (spec.verbs | {"advance"}) - {"crash"}


@pytest.mark.parametrize("spec", [BLURRED, EVERYTHING], ids=lambda spec: spec.key)
def test_only_an_exact_clock_meets_an_instant(spec: QueueSpec) -> None:
    moves = [(world, each.seconds) for world, each in asked_of(spec) if isinstance(each, c.Advance)]
    met = [meets(world, world.now + seconds) for world, seconds in moves]
    planted = {each.seconds for _, each in asked_of(spec, 3) if isinstance(each, c.Plant) and each.field == "deadline"}
    in_this_tick = False
    search = Explorer(spec, Bounds(depth=4)).run()
    for state in range(len(search.states)):
        for _, checks, _ in search.judged(state):
            in_this_tick |= any("in this tick" in check.reason for check in checks)
    assert (any(met), planted, in_this_tick) == (
        (True, {0}, True) if spec.exact_clock else (False, {-1}, False)
    )  # fmt: skip
    assert len(moves) > 300


def test_a_bounded_clock_that_is_not_exact_meets_no_instant_either() -> None:
    found = Explorer(BLURRED, Bounds(jobs=1, workers=2, budgets=(2,), until=2 * BLURRED.lease_seconds)).run()
    moves = [
        (world, each.seconds)
        for world in found.states
        for each in building(world, found.bounds)
        if isinstance(each, c.Advance)
    ]
    assert not any(meets(world, world.now + seconds) for world, seconds in moves)
    assert len(moves) > 300


def test_a_queue_that_takes_no_hooks_is_offered_none() -> None:
    assert [command for _, command in asked_of(BY_ID, 3) if getattr(command, "hook", None) is not None] == []


# ------------------------------------------------------------------------------------------------- nothing is left out

SMALL: dict[str, Callable[[QueueSpec], Bounds]] = {
    "clock of a lease": lambda spec: Bounds(jobs=2, workers=3, budgets=(2,), until=spec.lease_seconds),
    "two leases": lambda spec: Bounds(jobs=1, workers=3, budgets=(2,), until=2 * spec.lease_seconds),
    "short leases": lambda spec: Bounds(jobs=2, workers=2, budgets=(2, 1), until=spec.lease_seconds, short_leases=True),
    "free clock": lambda spec: Bounds(),
    "free clock, short leases": lambda spec: Bounds(short_leases=True),
}
SOME = 900
"""States that are looked at in each small world, from the empty queue on."""


@BOTH
@pytest.mark.parametrize("small", SMALL)
def test_what_is_remembered_of_an_edge_is_what_the_judge_says_of_it(spec: QueueSpec, small: str) -> None:
    bounds = SMALL[small](spec)
    edges = Edges(spec, bounds)
    key = edges.state(World(spec))
    keys, known = [key], {key}
    for at, key in enumerate(keys):
        if at > SOME:
            break
        world, numbers = edges.read(key)
        groups = edges.leaving(world, numbers)
        base = edges.key(world.now, numbers)
        remembered = [
            (command, checks, edges.canonical(base + delta))
            for group in groups
            for delta, command, checks in (*group.usual, *group.other)
        ]
        judged = [
            (command, after.checks, edges.state(after.world))
            for command, after in edges_of(world, building(world, bounds))
        ]
        assert sorted(remembered, key=repr) == sorted(judged, key=repr)
        firsts = [command for group in groups for _, command, _ in group.usual]
        assert firsts == list(building(world, bounds)), "in the alphabet's order"
        for _, _, reached in judged:
            if reached not in known:
                known.add(reached)
                keys.append(reached)


@BOTH
@pytest.mark.parametrize("small", SMALL)
def test_merged_worlds_cannot_be_told_apart(spec: QueueSpec, small: str) -> None:
    """Every world that is reached, merged with none, does what its state's first world does: same checks, same ways on.

    Workers' names, how many workers may do a thing alike, and checks without teeth are what merging gives up.
    """
    bounds = SMALL[small](spec)
    edges = Edges(spec, bounds)
    worlds, known = [World(spec)], {World(spec)}
    behaviour: dict[int, set[object]] = {}
    merged = 0
    for world in worlds:
        if len(behaviour) + merged > SOME:
            break
        found: set[object] = set()
        for command, after in edges_of(world, building(world, bounds)):
            reached = edges.state(after.world)
            verb = (command.verb, getattr(command, "limit", 0), getattr(command, "lease", None))
            found |= {(verb, reached), *((verb, reached, check) for check in after.checks if lasting(check))}
            if after.world not in known:
                known.add(after.world)
                worlds.append(after.world)
        key = edges.state(world)
        merged += key in behaviour
        assert behaviour.setdefault(key, found) == found, world
    assert merged > 90


@BOTH
def test_no_edge_breaks_an_invariant(spec: QueueSpec) -> None:
    """INV-6: a pending job with a cancel request never runs. INV-7: a terminal one never changes again."""
    found = Explorer(spec, Bounds(depth=5, short_leases=True)).run()
    claims = ended = 0
    for world in found.states:
        for command, after in edges_of(world, last(world, found.bounds)):
            for old, new in zip(world.jobs, after.world.jobs, strict=False):
                if new.status == RUNNING and old.status != RUNNING:
                    claims += 1
                    assert (old.status, old.cancel) == (PENDING, None), (world, command)
                    assert isinstance(command, c.Claim)
                if old.status not in (PENDING, RUNNING):
                    ended += 1
                    assert new == old, (world, command)
    assert min(claims, ended) > 1_000


def test_a_model_that_contradicts_itself_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    from fencepost.model import edges, legal

    def generous(world: World, command: c.Command, context: Context) -> Iterator[object]:
        yield from legal.outcomes(world, command, context)
        if isinstance(command, c.Complete):
            yield from legal.outcomes(world, c.Renew(command.handle), context)

    monkeypatch.setattr(edges, "outcomes", generous)
    with pytest.raises(ModelError, match="TERM-01"):
        Explorer(BACKFILL, Bounds(depth=4)).run()
