"""Aimed generation: each number is a command that the world allows, and few scripts meet every clause often."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from random import Random
from typing import Any

import pytest
from declared import BLURRED, BY_ID, CONTRACT, EVERY
from fencepost.adapters.memory import MemoryAdapter
from fencepost.conformance import generate
from fencepost.conformance.examine import Examination, sequential_clauses
from fencepost.conformance.generate import NUMBERS, Aim, scripts
from fencepost.conformance.profiles import PROFILES
from fencepost.conformance.session import Session
from fencepost.model import commands as c
from fencepost.model.choices import meets
from fencepost.model.legal import outcomes
from fencepost.model.queues import QueueSpec
from fencepost.model.step import step
from fencepost.model.values import Value, field_values
from fencepost.model.world import Context, Step, World
from hypothesis import HealthCheck, given, settings

everywhere = pytest.mark.parametrize("spec", CONTRACT, ids=lambda spec: spec.key)
of_any_kind = pytest.mark.parametrize("spec", EVERY, ids=lambda spec: spec.key)
aim_of = cache(Aim)


def choose(world: World, number: int) -> c.Command:
    """What a number stands for in this world, by the aim of its queue."""
    return aim_of(world.spec).choose(world, number)


def drawn(spec: QueueSpec, count: int, longest: int = 50, seed: int = 11) -> Iterator[World]:
    """The worlds that random scripts come to on the memory adapter, the empty one first."""
    random = Random(seed)
    worlds: list[World] = []

    def recorded(world: World, number: int) -> c.Command:
        worlds.append(world)
        return choose(world, number)

    with Session(MemoryAdapter(), spec) as session:
        for _ in range(count):
            numbers = [random.randrange(NUMBERS) for _ in range(longest)]
            run = session.run(session.driver.draw(recorded, numbers))
            assert run.violation is None
            yield from worlds
            worlds.clear()


def references(item: Any) -> Iterator[Value]:
    """The symbolic references that stand anywhere in a command."""
    if isinstance(item, (c.JobRef, c.HandleRef, c.AdvanceTo)):
        yield item
    elif isinstance(item, tuple):
        for each in item:
            yield from references(each)
    elif isinstance(item, Value):
        yield from references(field_values(item))


def answerable(world: World, command: c.Command) -> bool:
    """Whether some outcome of this command is legal in this world, by the judge's own word."""
    context = Context(world.now)
    return any(isinstance(step(world, command, each, context), Step) for each in outcomes(world, command, context))


@of_any_kind
def test_every_number_is_a_bound_command_that_can_be_answered_in_every_world(spec: QueueSpec) -> None:
    random = Random(5)
    asked = set()
    for world in drawn(spec, 40):
        for number in (0, 1, NUMBERS - 1, *(random.randrange(NUMBERS) for _ in range(8))):
            command = choose(world, number)
            assert not list(references(command)), command
            assert (world, command) in asked or answerable(world, command), (world, command)
            asked.add((world, command))
            if isinstance(command, c.Advance):
                assert command.seconds > 0
    assert len(asked) > 5000


@of_any_kind
def test_every_verb_that_a_queue_serves_is_asked_and_no_other(spec: QueueSpec) -> None:
    random = Random(7)
    asked: set[str] = set()
    for world in drawn(spec, 200):
        asked |= verbs_of(choose(world, random.randrange(NUMBERS)))
    tables = {"configure", "classify"}
    assert asked == (spec.verbs | {"advance"}) - tables


def verbs_of(command: c.Command) -> set[str]:
    """Its own verb, and those of the commands that it holds."""
    held = command.commands if isinstance(command, c.Atomically) else ()
    return {command.verb, *(each.verb for each in held)}


@pytest.mark.parametrize(
    "verb",
    ["renew", "fail", "release", "recover", "tick", "start_up", "probe", "atomically", "crash", "request_cancel",
     "acknowledge", "checkpoint", "skip", "put_artifact", "read_artifact", "plant"],
)  # fmt: skip
def test_a_verb_that_an_adapter_does_not_serve_is_asked_of_no_queue(verb: str) -> None:
    random = Random(9)
    for spec in CONTRACT:
        if verb in spec.verbs:
            left = replace(spec, without=frozenset({verb}))
            asked = set().union(*(verbs_of(choose(world, random.randrange(NUMBERS))) for world in drawn(left, 25)))
            assert verb not in asked and len(asked) > 8


def test_a_queue_that_takes_no_hooks_is_given_none() -> None:
    random = Random(10)
    commands = {choose(world, random.randrange(NUMBERS)) for world in drawn(BY_ID, 100)}
    assert [each for each in commands if getattr(each, "hook", None) is not None] == []


def test_a_queue_is_planted_with_what_it_has() -> None:
    random = Random(12)
    planted = {
        spec.key: {each.field for each in (choose(world, random.randrange(NUMBERS)) for world in drawn(spec, 100))
                   if isinstance(each, c.Plant)}
        for spec in EVERY
    }  # fmt: skip
    assert planted == {
        **{key: set() for key in ("screenshot", "backfill", "mutation", "winning", "unordered", "tied")},
        **{key: {"deadline", "lease"} for key in ("build", "blurred", "everything")},
        **{key: {"deadline"} for key in ("dated", "short of time")},
        "by id": {"lease"},
    }


@everywhere
def test_handles_are_ones_that_a_claim_returned_and_jobs_ones_that_exist(spec: QueueSpec) -> None:
    random = Random(6)
    stale = current = 0
    for world in drawn(spec, 60):
        command = choose(world, random.randrange(NUMBERS))
        if isinstance(command, c.HandleCommand):
            handle = command.handle
            assert isinstance(handle, c.Handle) and isinstance(handle.job, int)
            issued = world.jobs[handle.job - 1].issued
            assert (handle.worker, handle.token) in issued
            stale += issued[-1] != (handle.worker, handle.token)
            current += issued[-1] == (handle.worker, handle.token)
        elif isinstance(command, c.RequestCancel):
            assert isinstance(command.job, int) and 1 <= command.job <= len(world.jobs)
        elif isinstance(command, c.Recover) and command.hook is not None and command.hook.kind == "poison":
            assert isinstance(command.hook.job, int) and 1 <= command.hook.job <= len(world.jobs)
    assert stale > 50 and current > 200


@everywhere
def test_the_same_number_in_the_same_world_is_the_same_command(spec: QueueSpec) -> None:
    numbers = [Random(2).randrange(NUMBERS) for _ in range(5)]
    for world in drawn(spec, 5):
        assert [choose(world, number) for number in numbers] == [choose(world, number) for number in numbers]


@everywhere
def test_neighbouring_numbers_are_commands_of_many_kinds(spec: QueueSpec) -> None:
    # Hypothesis likes small numbers; they must not all mean the same.
    busy = [world for world in drawn(spec, 30) if len(world.jobs) > 2 and any(each.issued for each in world.jobs)]
    assert len(busy) > 100
    for world in busy:
        assert len({type(choose(world, number)) for number in range(64)}) >= 5


@everywhere
def test_every_maker_is_reached(spec: QueueSpec, monkeypatch: pytest.MonkeyPatch) -> None:
    made: Counter[str] = Counter()

    def counted(maker: generate.Maker) -> generate.Maker:
        def make(world: World, number: int) -> c.Command:
            made[maker.__name__] += 1
            return maker(world, number)

        return make

    makers = {maker.__name__ for maker, _, _, fits in generate._WEIGHTS if fits(spec)}
    assert len(makers) > 15
    weights = tuple((counted(maker), *how) for maker, *how in generate._WEIGHTS)
    monkeypatch.setattr(generate, "_WEIGHTS", weights)
    monkeypatch.setattr(generate, "_TABLES", {})
    aim_of.cache_clear()
    worlds = list(drawn(spec, 150))
    aim_of.cache_clear()
    assert sum(made.values()) == len(worlds)
    # Without back-off no job waits for a due instant, without cancels nobody is asked for one.
    unmet = {"to_due": spec.backs_off, "asked_write": spec.cancels}
    assert makers - set(made) == {name for name, met in unmet.items() if not met}


@everywhere
def test_every_command_of_a_running_queue_occurs_in_every_form(spec: QueueSpec) -> None:
    random = Random(8)
    commands = {choose(world, random.randrange(NUMBERS)) for world in drawn(spec, 300)}
    claims = [each for each in commands if isinstance(each, c.Claim)]
    sweeps = [each for each in commands if isinstance(each, c.Recover)]
    assert {each.hook and each.hook.kind for each in claims} == {None, "ok", "raise", "cancel"}
    assert {each.hook and each.hook.kind for each in sweeps} == {None, "ok", "raise", "cancel", "poison"}
    assert {each.batch for each in sweeps} == {1, 2, 10}
    assert {(each.limit, each.max_claims) for each in claims} >= {spec.bounds, (2, 1), (1, 2), (3, 3), (10, 1)}
    assert {each.job is None for each in claims} == ({True, False} if spec.claims_by_id else {True})
    assert {each.lease for each in claims} == {None, spec.lease_seconds // 3}
    assert {each.end for each in commands if isinstance(each, c.Atomically)} == {"commit", "rollback", "raise"}
    by_parent = {each.by_parent for each in commands if isinstance(each, c.RequestCancel)}
    assert by_parent == ({True, False} if spec.cancels else set())
    assert {each.host for each in commands if isinstance(each, c.StartUp)} == {0, 1}
    assert {each.max_attempts for each in commands if isinstance(each, c.Enqueue)} == {1, 2, 3}
    late = {each.due_in for each in commands if isinstance(each, c.Enqueue)}
    assert late == ({0, spec.backoff_seconds} if spec.backs_off else {0})
    dated = {each.deadline_in for each in commands if isinstance(each, c.Enqueue)}
    assert len(dated) == (5 if spec.deadline else 1) and 0 in dated
    whats = {each.what for each in commands if isinstance(each, c.Fail)}
    assert whats == {"infra", "content", "cancel", "lease", "limit"}


@everywhere
def test_the_interesting_instants_are_met_to_the_second(spec: QueueSpec) -> None:
    expiries, dues, deadlines, left = (Counter[int]() for _ in range(4))
    for world in drawn(spec, 150):
        for record in world.jobs:
            if record.status == "running" and record.expires is not None:
                expiries[record.expires - world.now] += 1
            elif record.status == "pending":
                dues[(record.due or 0) - world.now] += 1
                deadlines[(record.deadline or 0) - world.now] += 1
                left[(record.expires or 0) - world.now] += 1
    asked = [expiries] + [dues] * spec.backs_off + [deadlines] * spec.deadline + [left] * spec.claims_by_id
    assert [met for met in asked if not all(met[offset] > 10 for offset in (-1, 0, 1))] == []


def test_a_clock_that_cannot_meet_an_instant_does_not() -> None:
    beside: Counter[int] = Counter()
    worlds = list(drawn(BLURRED, 150))
    for world in worlds:
        assert not meets(world, world.now)
        for record in world.jobs:
            if record.status == "running" and record.expires is not None:
                beside[record.expires - world.now] += 1
    assert beside[1] > 10 and beside[-1] > 10 and beside[0] == 0


@settings(max_examples=50, database=None, deadline=None, suppress_health_check=list(HealthCheck))
@given(scripts(7))
def test_a_script_is_some_numbers_within_bounds(numbers: list[int]) -> None:
    assert 1 <= len(numbers) <= 7
    first = min(numbers)
    assert first >= 1 << 64 and max(numbers) - first < NUMBERS


@everywhere
def test_a_run_in_continuous_integration_meets_each_clause_often_enough(spec: QueueSpec) -> None:
    profile = PROFILES["ci"]
    with Session(MemoryAdapter(), spec) as session:
        examination = Examination(session, profile, seed=1)
        assert list(examination.violations()) == []
        teeth = examination.teeth()
    clauses = sequential_clauses(spec)
    seldom = {clause: teeth.get(clause, (0, 0)) for clause in clauses if teeth.get(clause, (0, 0))[1] < profile.minimum}
    assert seldom == {}
    assert len(clauses) > 25
    assert examination.complete == {"LEASE-01", "ERR-01", "CLAIM-13"}


@everywhere
def test_scripts_alone_meet_every_clause(spec: QueueSpec) -> None:
    random = Random(3)
    with Session(MemoryAdapter(), spec) as session:
        for _ in range(500):
            session.draw([random.randrange(NUMBERS) for _ in range(random.randint(1, 50))])
        met: Counter[str] = Counter()
        for check, times in session.driver.tally.items():
            met[check.clause] += times * check.teeth
    assert {clause: met[clause] for clause in sequential_clauses(spec) if met[clause] < 20} == {}
