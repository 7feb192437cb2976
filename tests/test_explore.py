"""The model explored: counts that do not move by accident, nothing legal left out, merges that lose nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from fencepost.model import commands as c
from fencepost.model.applicability import applies
from fencepost.model.choices import Bounds, building, last
from fencepost.model.clauses import BUILT, CLAUSES
from fencepost.model.edges import Edges, ModelError
from fencepost.model.explore import Explorer, explored
from fencepost.model.legal import outcomes
from fencepost.model.queues import BACKFILL, MUTATION, PENDING, RUNNING, QueueSpec
from fencepost.model.step import step
from fencepost.model.world import AS_EXPECTED, Check, Checks, Context, Step, World

BOTH = pytest.mark.parametrize("spec", [BACKFILL, MUTATION], ids=lambda spec: spec.key)


def lasting(check: Check) -> bool:
    """Whether merging keeps this check: it has teeth, compares no two jobs' generations, and no age of a request, of a
    lease that has run out, or of the lease that a renewal finds."""
    ages = "cancel: requested before", "expired in this tick", "expired", "renew: running row"
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
        (BACKFILL, Bounds(depth=6), 1925, 10854),
        (MUTATION, Bounds(depth=6), 3186, 17683),
        (BACKFILL, Bounds(jobs=2, workers=3, budgets=(3,), until=600), 54406, 1593164),
    ],
    ids=[
        "backfill: one of each", "mutation: one of each", "backfill: one job", "mutation: one job",
        "backfill: two jobs",
        "backfill: six steps", "mutation: six steps", "backfill: the benchmark's world",
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
    assert merged > 100


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


# ------------------------------------------------------------------------------------------------------ witnesses


REACHED: dict[str, set[str]] = {
    "ATT-01": {
        "claim: running row",
        "complete: cancelled row",
        "complete: succeeded row",
        "fail: cancelled row",
        "fail: failed row",
        "fail: pending row",
        "renew: running row",
    },
    "ATT-02": {
        "fail: INFRA retried",
        "fail: INFRA, budget of 1 used up",
        "fail: LEASE retried",
        "fail: LEASE, budget of 1 used up",
        "fail: pending row",
    },
    "CANCEL-01": {
        "cancel: pending",
        "request_cancel: cancelled row",
        "request_cancel: pending row",
        "request_cancel: undone by its caller",
    },
    "CANCEL-02": {
        "cancel: running",
        "cancel: running, by its parent",
        "request_cancel: another row",
        "request_cancel: running row",
    },
    "CANCEL-03": {"cancel: requested before", "cancel: requested before, by its parent", "cancel: terminal"},
    "CANCEL-04": {
        "acknowledge: cancelled row",
        "acknowledge: with a request",
        "acknowledge: without a request",
        "checkpoint: False",
        "checkpoint: True",
        "checkpoint: changes nothing",
    },
    "CANCEL-05": {"sweep: expired with a cancel request"},
    "CANCEL-06": {
        "complete: after a cancel request",
        "fail: CANCEL after a cancel request",
        "fail: CONTENT after a cancel request",
        "fail: INFRA after a cancel request",
        "fail: LEASE after a cancel request",
        "fail: LIMIT after a cancel request",
    },
    "CLAIM-01": {"claim: running job", "claim: terminal job"},
    "CLAIM-02": {"claim: cancel requested", "sweep: pending with a cancel request"},
    "CLAIM-05": {"claim: running row"},
    "CLAIM-07": {"claim: limit", "claim: max_claims", "claim: running but not returned"},
    "CLAIM-08": {"claim: oldest first"},
    "CLAIM-09": {"probe: after a claim", "probe: after an empty claim"},
    "CLAIM-12": {"claim: hook given the claimed jobs", "claim: hook raised, rolled back"},
    "CLAIM-14": {"claim: past an excluded head"},
    "ERR-01": {"classify: family", "fail: code of no family"},
    "ERR-02": {
        "fail: CANCEL family ends cancelled",
        "fail: CONTENT not retried",
        "fail: FENCE code",
        "fail: INFRA not retried",
        "fail: LIMIT not retried",
    },
    "ERR-03": {"fail: code of another family", "fail: failed row"},
    "FENCE-01": {
        "acknowledge: another row",
        "acknowledge: expired",
        "acknowledge: expired in this tick",
        "acknowledge: held",
        "acknowledge: held in its last tick",
        "checkpoint: another row",
        "complete: another row",
        "complete: expired",
        "complete: expired in this tick",
        "complete: held",
        "complete: held in its last tick",
        "complete: undone by its caller",
        "fail: another row",
        "fail: expired",
        "fail: expired in this tick",
        "fail: held",
        "fail: held in its last tick",
        "release: another row",
        "release: expired",
        "release: expired in this tick",
        "release: held",
        "release: held in its last tick",
        "renew: another row",
    },
    "FENCE-02": {
        "acknowledge: another owner",
        "acknowledge: pending again",
        "complete: another owner",
        "complete: pending again",
        "fail: another owner",
        "fail: pending again",
        "release: another owner",
        "release: pending again",
    },
    "FENCE-06": {
        "acknowledge: a rejection says so",
        "acknowledge: cancelled row",
        "complete: a rejection says so",
        "complete: cancelled row",
        "complete: succeeded row",
        "fail: a rejection says so",
        "fail: cancelled row",
        "fail: failed row",
        "fail: pending row",
        "release: a rejection says so",
        "release: cancelled row",
        "release: pending row",
        "renew: a rejection says so",
        "renew: running row",
    },
    "INV-6": {"a row with a cancel request stays unclaimed"},
    "INV-7": {"a terminal row stays unclaimed"},
    "LEASE-01": {"configure: broken ratio", "configure: kept ratio"},
    "LEASE-02": {
        "renew: another owner",
        "renew: pending again",
        "renew: terminal, cancelled",
        "renew: terminal, failed",
        "renew: terminal, succeeded",
    },
    "LEASE-03": {"renew: held", "renew: held in its last tick", "renew: running row"},
    "LEASE-04": {"renew: expired", "renew: expired in this tick"},
    "LEASE-07": {"sweep: expiry as recorded"},
    "REC-01": {"sweep: cancelled row", "sweep: expired, re-queued", "sweep: failed row", "sweep: pending row"},
    "REC-02": {"sweep: valid lease untouched", "sweep: valid lease untouched in its last tick"},
    "REC-03": {"sweep: cancelled row", "sweep: expired, budget used up", "sweep: failed row", "sweep: pending row"},
    "REC-04": {"tick: recovers"},
    "REC-05": {"start-up: foreign prefix untouched", "start-up: own prefix recovered"},
    "REC-06": {"sweep: nothing found, nothing written"},
    "REC-08": {"sweep: hook given the changed jobs", "sweep: hook raised, rolled back"},
    "REC-10": {"sweep: count", "sweep: count after a failed batch"},
    "REC-12": {"sweep: past a failed batch"},
    "REL-01": {
        "release: after a cancel request",
        "release: cancelled row",
        "release: given back",
        "release: pending row",
    },
    "TERM-01": {
        "acknowledge: cancelled row",
        "claim: running row",
        "complete: cancelled row",
        "complete: succeeded",
        "complete: succeeded row",
        "fail: cancelled row",
        "fail: failed row",
        "fail: pending row",
        "release: cancelled row",
        "release: pending row",
        "renew: running row",
        "request_cancel: cancelled row",
        "request_cancel: pending row",
        "request_cancel: running row",
        "sweep: cancelled row",
        "sweep: failed row",
        "sweep: pending row",
    },
    "TERM-02": {
        "acknowledge: terminal row",
        "acknowledge: terminal, cancelled",
        "atomically: terminal row",
        "checkpoint: terminal row",
        "claim: terminal row",
        "complete: terminal row",
        "complete: terminal, failed",
        "complete: terminal, succeeded",
        "fail: terminal row",
        "fail: terminal, cancelled",
        "fail: terminal, failed",
        "fail: terminal, succeeded",
        "probe: terminal row",
        "recover: terminal row",
        "release: terminal row",
        "release: terminal, cancelled",
        "release: terminal, failed",
        "release: terminal, succeeded",
        "renew: terminal row",
        "request_cancel: terminal row",
        "start_up: terminal row",
        "tick: terminal row",
    },
    "TERM-03": {
        "acknowledge: cancelled row",
        "complete: cancelled row",
        "complete: succeeded row",
        "fail: cancelled row",
        "fail: failed row",
        "sweep: cancelled row",
        "sweep: failed row",
    },
    "TERM-04": {
        "acknowledge: cancelled row",
        "complete: cancelled row",
        "complete: succeeded row",
        "fail: cancelled row",
        "fail: failed row",
        "release: cancelled row",
        "request_cancel: cancelled row",
        "sweep: cancelled row",
        "sweep: failed row",
    },
}
"""What six steps test with teeth on an owner-only queue without back-off: clause, reasons."""

MORE: dict[str, set[str]] = {
    "ATT-02": {"fail: due strictly later"},
    "CLAIM-03": {"claim: not due"},
    "CLAIM-05": {"claim: generation + 1"},
    "FENCE-03": {
        "acknowledge: older token",
        "claim: a token never repeats",
        "complete: older token",
        "fail: older token",
        "release: older token",
        "renew: older token",
    },
    "REC-09": {"sweep: generation per row"},
}
"""What a generation and a back-off add."""


@BOTH
def test_every_check_of_the_model_is_reached_with_teeth_in_six_steps(spec: QueueSpec) -> None:
    found: dict[str, set[str]] = {}
    for short in (False, True):
        search = Explorer(spec, Bounds(depth=5, short_leases=short)).run()
        for state in range(len(search.states)):
            for _, checks in search.judged(state):
                for check in checks:
                    if check.teeth:
                        found.setdefault(check.clause, set()).add(check.reason)
    more = MORE if spec is MUTATION else {}
    assert found == {clause: REACHED.get(clause, set()) | more.get(clause, set()) for clause in {*REACHED, *more}}


@BOTH
def test_every_clause_that_one_actor_can_break_has_a_witness(spec: QueueSpec) -> None:
    wanted = [
        clause
        for clause in BUILT
        if CLAUSES[clause].engine in ("sequential", "table") and applies(clause, spec.key).status == "applies"
    ]
    plain, short = Explorer(spec, Bounds(depth=7)), Explorer(spec, Bounds(depth=7, short_leases=True))
    lengths = {}
    for clause in wanted:
        trace = next((short if clause == "LEASE-07" else plain).witnesses(clause), None)
        assert trace is not None, clause
        lengths[clause] = len(trace.steps)
    assert len(wanted) == {"backfill": 43, "mutation": 46}[spec.key]
    assert max(lengths.values()) <= 6
    assert {clause for clause, length in lengths.items() if length == 1} == {"LEASE-01", "ERR-01", "REC-06"}


@BOTH
def test_a_path_of_commands_leads_to_its_state_by_first_outcomes(spec: QueueSpec) -> None:
    found = Explorer(spec, Bounds(depth=5, short_leases=True)).run()
    edges = Edges(spec, found.bounds)
    for state, expected in enumerate(found.states):
        world = World(spec)
        path = found.path(state)
        assert len(path) == found.depths[state]
        for command in path:
            context = Context(world.now)
            after = step(world, command, next(outcomes(world, command, context)), context)
            assert isinstance(after, Step)
            world = after.world
        assert edges.read(edges.state(world))[0] == expected


def test_witnesses_come_shortest_first_and_then_in_the_alphabets_order() -> None:
    found = Explorer(BACKFILL, Bounds(depth=6))
    traces = []
    for trace in found.witnesses("FENCE-02", verb="complete"):
        traces.append(trace)
        if len(traces) == 20:
            break
    lengths = [len(trace.steps) for trace in traces]
    assert lengths == sorted(lengths) and len(set(traces)) == 20
    assert max(found.depths) <= lengths[-1], "no further than it must"
    assert [type(each.command) for each in traces[0].steps] == [c.Enqueue, c.Claim, c.Release, c.Complete]
    assert next(Explorer(BACKFILL, Bounds(depth=6)).witnesses("FENCE-02", verb="complete")) == traces[0]


def test_witnesses_end_with_the_bounds() -> None:
    found = Explorer(BACKFILL, Bounds(depth=3))
    assert max(len(trace.steps) for trace in found.witnesses("FENCE-01")) == 3
    assert list(found.witnesses("FENCE-02")) == []
    assert list(found.witnesses("FENCE-03")) == []
