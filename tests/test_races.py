"""Races of the reference runtime, certified in every order of statements, and planted ones, found under their names."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator
from dataclasses import replace

import pytest
from fencepost.adapters.contract import AdapterError
from fencepost.adapters.memory import MemoryAdapter
from fencepost.adapters.mutants.catalogue import MUTANTS
from fencepost.adapters.mutants.mutant import Mutant
from fencepost.adapters.reference.adapter import PostgresAdapter, ReferenceAdapter, SqliteAdapter
from fencepost.adapters.reference.rules import CONTRACT, Rules
from fencepost.adapters.reference.server import PostgresSource
from fencepost.conformance.interleave.bench import gate_bench
from fencepost.conformance.interleave.engine import certify, replay_history, replay_schedule, search
from fencepost.conformance.interleave.lanes import History
from fencepost.conformance.interleave.played import Diverged
from fencepost.conformance.interleave.programs import PROGRAMS, Program, programs_of
from fencepost.conformance.interleave.reduce_race import reduce_race
from fencepost.model import commands as c
from fencepost.model.clauses import CLAUSES
from fencepost.model.queues import BACKFILL, QUEUES

MOST = 200
RACES = [(mutant, adapter) for mutant in MUTANTS if mutant.race for adapter in mutant.adapters]
planted = pytest.mark.parametrize(("mutant", "name"), RACES, ids=[f"{mutant.id}-{name}" for mutant, name in RACES])
everywhere = pytest.mark.parametrize("name", ["sqlite", "pg"])


def adapter_of(name: str, rules: Rules = CONTRACT) -> ReferenceAdapter:
    return SqliteAdapter(rules=rules) if name == "sqlite" else PostgresAdapter(rules=rules, source=PostgresSource())


class Opened:
    """An adapter with a queue open, and synchronous hands."""

    def __init__(self, runner: asyncio.Runner, name: str, queue: str, rules: Rules = CONTRACT) -> None:
        self.run = runner.run
        self.adapter = adapter_of(name, rules)
        self.spec = QUEUES[queue]

    def __enter__(self) -> Opened:
        self.run(self.adapter.open(self.spec))
        return self

    def __exit__(self, *_: object) -> None:
        self.run(self.adapter.close())


@pytest.fixture(scope="module")
def runner() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as one:
        yield one


def program_named(name: str | None) -> Program:
    (found,) = (program for program in PROGRAMS if program.name == name)
    return found


SCHEDULES = {
    "claim ‖ claim, one job": (50, 12),
    "claim ‖ claim, two jobs": (50, 20),
    "claim ‖ claim, two jobs each": (92, 20),
    "claim ‖ request_cancel": (11, 6),
    "complete ‖ request_cancel": (4, 4),
    "complete ‖ recover": (36, 40),
    "renew ‖ recover": (36, 40),
    "recover ‖ recover": (50, 50),
    "complete ‖ recover claim, another worker": (118, 125),
    "complete ‖ release claim, the same worker": (16, 15),
}
"""The number of all schedules, on SQLite and on PostgreSQL."""


def test_programs_have_names_of_their_own_and_are_about_every_clause_of_two_actors() -> None:
    assert sorted(program.name for program in PROGRAMS) == sorted(SCHEDULES)
    about = {clause for program in PROGRAMS for clause in program.certified(row_locks=True)}
    assert {"CLAIM-06", "CLAIM-11", "CLAIM-14", "REC-02", "REC-07", "CANCEL-09"} <= about <= set(CLAUSES)


@everywhere
@pytest.mark.parametrize("queue", QUEUES)
def test_the_reference_runtime_is_certified_in_every_order_of_its_statements(
    runner: asyncio.Runner, name: str, queue: str
) -> None:
    with Opened(runner, name, queue) as opened:
        for program in programs_of(queue):
            seen: list[History] = []
            found = opened.run(certify(opened.adapter, opened.spec, program, on_schedule=seen.append))
            assert (found.violation, found.trace, found.exhaustive) == (None, None, True), program.name
            assert len({history.played.schedule for history in seen}) == len(seen) == found.schedules
            assert found.schedules == SCHEDULES[program.name][name == "pg"], program.name
            clauses = program.certified(opened.adapter.capabilities.row_locks)
            assert [each.clause for each in found.certificates] == list(clauses)
            assert all(each.exhaustive and each.pair == program.name for each in found.certificates)
            assert all(history.checks for history in seen), "a schedule that tested nothing certifies nothing"


def test_a_locked_head_certifies_only_where_rows_stay_locked() -> None:
    two_jobs = program_named("claim ‖ claim, two jobs")
    assert set(two_jobs.certified(True)) - set(two_jobs.certified(False)) == {"CLAIM-14"}


@planted
def test_every_planted_race_is_found_under_its_own_clause_shortened_and_replayed(
    runner: asyncio.Runner, mutant: Mutant, name: str
) -> None:
    with Opened(runner, name, mutant.queue, mutant.change(CONTRACT)) as opened:
        adapter, spec = opened.adapter, opened.spec
        found = opened.run(certify(adapter, spec, program_named(mutant.pair), most=MOST))
        assert found.violation is not None and found.trace is not None
        assert (found.violation.clause, found.schedules <= MOST) == (mutant.clause, True)

        first = opened.run(replay_history(adapter, spec, found.trace))
        assert (first.trace, first.violation) == (found.trace, found.violation)
        for _ in range(20):
            assert opened.run(replay_history(adapter, spec, found.trace)) == first

        shorter = opened.run(reduce_race(adapter, spec, found.trace, mutant.clause))
        assert shorter.violation.clause == mutant.clause
        assert shorter.trace.length <= found.trace.length
        assert opened.run(replay_schedule(adapter, spec, shorter.trace)) == shorter.violation
    # The contract's statements are others, so that the schedule need not fit; where it does, it is legal.
    with contextlib.suppress(Diverged), Opened(runner, name, mutant.queue) as opened:
        assert opened.run(replay_schedule(opened.adapter, opened.spec, shorter.trace)) is None


@pytest.mark.parametrize(
    "mutant", [mutant for mutant in MUTANTS if mutant.race and "sqlite" in mutant.adapters], ids=lambda m: m.id
)
def test_random_schedules_find_the_planted_races_too(runner: asyncio.Runner, mutant: Mutant) -> None:
    with Opened(runner, "sqlite", mutant.queue, mutant.change(CONTRACT)) as opened:
        program = program_named(mutant.pair)
        one, again = (opened.run(search(opened.adapter, opened.spec, program, seed=3, most=MOST)) for _ in range(2))
        assert one == again
        assert one.violation is not None and one.violation.clause == mutant.clause
        assert not one.exhaustive and not any(each.exhaustive for each in one.certificates)


def test_a_search_that_was_cut_says_by_what() -> None:
    async def main() -> None:
        adapter = adapter_of("sqlite")
        await adapter.open(BACKFILL)
        try:
            found = await certify(adapter, BACKFILL, PROGRAMS[0], most=7)
            assert (found.schedules, found.exhaustive) == (7, False)
            assert {each.bound for each in found.certificates} == {
                "1 job, 2 actors, 2 commands at once; the first 7 in the order of switches"
            }
        finally:
            await adapter.close()

    asyncio.run(main())


@everywhere
def test_a_schedule_that_does_not_fit_is_neither_pass_nor_fail(runner: asyncio.Runner, name: str) -> None:
    with Opened(runner, name, "backfill") as opened:
        for schedule in ("1", "1111111111", "3"):
            trace = replace(program_named("claim ‖ claim, one job").trace(), schedule=schedule)
            with pytest.raises(Diverged):
                opened.run(replay_schedule(opened.adapter, opened.spec, trace))
        found = opened.run(certify(opened.adapter, opened.spec, PROGRAMS[0]))
        assert found.exhaustive and found.violation is None, "what diverged left nothing behind"


def test_a_command_about_a_job_that_its_lane_did_not_win_is_left_out(runner: asyncio.Runner) -> None:
    claim = program_named("claim ‖ claim, one job")
    first, second = (label.label for lane in claim.trace().lanes[1:] for label in lane)
    assert (first, second) == (2, 3)
    lanes = ((c.Claim(1), c.Complete(c.HandleRef(2))), (c.Claim(2), c.Complete(c.HandleRef(4))))
    with Opened(runner, "sqlite", "backfill") as opened:
        seen: list[History] = []
        found = opened.run(
            certify(opened.adapter, opened.spec, replace(claim, lanes=lanes), most=60, on_schedule=seen.append)
        )
        assert found.violation is None
        completed = [[lane[1].outcome for lane in history.trace.lanes[1:]] for history in seen]
        assert all(outcomes.count(None) >= 1 for outcomes in completed)


def test_leaving_commands_out_gives_the_shortest_race_whatever_stood_around_it(runner: asyncio.Runner) -> None:
    (mutant,) = (each for each in MUTANTS if each.id == "claim-select-then-update")
    with Opened(runner, "sqlite", "backfill", mutant.change(CONTRACT)) as opened:
        one_job = program_named("claim ‖ claim, one job")
        wordy = replace(
            one_job,
            before=(c.Enqueue(), c.Advance(3), c.Enqueue(), c.RequestCancel(c.JobRef(3))),
            lanes=((c.Claim(1), c.Renew(c.HandleRef(5))), (c.Recover(), c.Claim(2))),
        )
        reduced = opened.run(reduce_race(opened.adapter, opened.spec, wordy.trace(), "CLAIM-06", most=400))
        assert reduced.trace.length == 3
        assert [type(step.command) for step in reduced.trace.steps] == [c.Enqueue]
        with pytest.raises(LookupError):
            opened.run(reduce_race(opened.adapter, opened.spec, wordy.trace(), "REC-07", most=5))


def test_an_adapter_without_a_gate_says_so() -> None:
    async def main() -> None:
        adapter = MemoryAdapter()
        await adapter.open(BACKFILL)
        await certify(adapter, BACKFILL, PROGRAMS[0])

    with pytest.raises(AdapterError, match="no gate"):
        asyncio.run(main())


@everywhere
def test_the_gate_bench_measures_both_sides(runner: asyncio.Runner, name: str) -> None:
    with Opened(runner, name, "backfill") as opened:
        rates = opened.run(gate_bench(opened.adapter, opened.spec, 0.1))
        assert set(rates) == {"gated_per_s", "ungated_per_s"} and min(rates.values()) > 0
