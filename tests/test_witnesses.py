"""The shortest ways to the model's checks: every check has one, in one order, whatever process asks."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from declared import CONTRACT, EVERY
from fencepost.conformance.reduce import first_witnesses
from fencepost.model import commands as c
from fencepost.model.applicability import cell
from fencepost.model.choices import Bounds
from fencepost.model.clauses import BUILT, CLAUSES
from fencepost.model.edges import Edges
from fencepost.model.explore import Explorer, checks_of
from fencepost.model.legal import outcomes
from fencepost.model.queues import BACKFILL, BUILD, QueueSpec, narrowed
from fencepost.model.step import step
from fencepost.model.world import Context, Step, World
from reached import reached

EVERYWHERE = pytest.mark.parametrize("spec", EVERY, ids=lambda spec: spec.key)
CONTRACTS = pytest.mark.parametrize("spec", CONTRACT, ids=lambda spec: spec.key)


@CONTRACTS
def test_every_check_of_the_model_is_reached_with_teeth_in_six_steps(spec: QueueSpec) -> None:
    found: dict[str, set[str]] = {}
    for short in (False, True):
        search = Explorer(spec, Bounds(depth=5, short_leases=short)).run()
        for state in range(len(search.states)):
            for _, checks, _ in search.judged(state):
                for check in checks:
                    if check.teeth:
                        found.setdefault(check.clause, set()).add(check.reason)
    assert found == reached(spec.key, spec.cancels)
    assert first_witnesses(spec).keys() == {(clause, reason) for clause, reasons in found.items() for reason in reasons}


def wanted_of(spec: QueueSpec) -> list[str]:
    """The clauses that one actor can break on this queue."""
    built = [clause for clause in BUILT if CLAUSES[clause].engine in ("sequential", "table")]
    return [clause for clause in built if cell(clause, spec).status == "applies"]


def lengths_of(spec: QueueSpec) -> dict[str, int]:
    """How long the shortest trace to each of them is."""
    plain, short = Explorer(spec, Bounds(depth=7)), Explorer(spec, Bounds(depth=7, short_leases=True))
    lengths = {}
    for clause in wanted_of(spec):
        trace = next((short if clause == "LEASE-07" else plain).witnesses(clause), None)
        assert trace is not None, clause
        lengths[clause] = len(trace.steps)
    return lengths


@EVERYWHERE
def test_every_clause_that_one_actor_can_break_has_a_witness(spec: QueueSpec) -> None:
    lengths = lengths_of(spec)
    assert max(lengths.values()) <= 6
    assert {clause for clause, length in lengths.items() if length == 1} == {"LEASE-01", "ERR-01", "REC-06"}


def test_so_many_clauses_one_actor_can_break() -> None:
    assert {spec.key: len(wanted_of(spec)) for spec in CONTRACT} == {
        "build": 43, "screenshot": 43, "backfill": 43, "mutation": 46,
    }  # fmt: skip


@pytest.mark.parametrize("spec", CONTRACT, ids=lambda spec: spec.key)
def test_a_clause_that_applies_where_a_verb_is_not_served_has_a_witness_still(spec: QueueSpec) -> None:
    needed = {"enqueue", "claim", "complete"}
    for verb in sorted(spec.verbs - needed):
        assert lengths_of(narrowed(spec, hooks=True, exact_clock=True, without=frozenset({verb}))), verb


@CONTRACTS
def test_what_was_judged_once_is_judged_alike_wherever_it_looks_the_same(spec: QueueSpec) -> None:
    search = Explorer(spec, Bounds(depth=4, short_leases=True)).run()
    for state, world in enumerate(search.states):
        for command, checks, _ in search.judged(state):
            assert checks == checks_of(world, command), (world, command)


SHORTEST: dict[str, list[str]] = {
    "CLAIM-04": ["enqueue", "claim"],
    "CLAIM-15": ["enqueue", "claim"],
    "FENCE-03": ["enqueue", "enqueue", "claim"],
    "FENCE-04": ["enqueue", "read_artifact"],
    "FENCE-05": ["enqueue", "claim", "complete", "complete"],
    "FENCE-07": ["enqueue", "claim", "put_artifact", "advance", "put_artifact"],
    "DEAD-01": ["enqueue", "recover"],
    "INV-5": ["enqueue", "claim", "put_artifact", "complete"],
}


@pytest.mark.parametrize("clause", SHORTEST)
def test_the_shortest_way_to_what_builds_alone_test(clause: str) -> None:
    found = next(Explorer(BUILD, Bounds(depth=6)).witnesses(clause))
    assert [each.command.verb for each in found.steps] == SHORTEST[clause]


@CONTRACTS
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


CHECKS_IN_ORDER = """
from fencepost.model.choices import Bounds
from fencepost.model.explore import Explorer, checks_of
from fencepost.model.queues import BACKFILL
search = Explorer(BACKFILL, Bounds(depth=3)).run()
for state in range(len(search.states)):
    for command, checks, _ in search.judged(state):
        print(command, [(check.clause, check.reason) for check in checks])
"""


def test_the_order_of_checks_does_not_hang_on_how_a_process_hashes_strings() -> None:
    """What is played first, and so what is found first, must be the same for the same seed."""
    told = {
        subprocess.run(
            [sys.executable, "-c", CHECKS_IN_ORDER],
            env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True,
        ).stdout
        for seed in ("1", "2", "3")
    }  # fmt: skip
    assert len(told) == 1 and len(next(iter(told)).splitlines()) > 100
