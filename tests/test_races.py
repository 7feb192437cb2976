"""Races of the reference runtime, certified in every order of statements, and planted ones, found under their names."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace

import pytest
from fencepost.adapters.contract import AdapterError
from fencepost.adapters.memory import MemoryAdapter
from fencepost.adapters.mutants.catalogue import MUTANTS
from fencepost.adapters.mutants.mutant import Mutant
from fencepost.adapters.reference.adapter import PostgresAdapter, ReferenceActor, ReferenceAdapter, SqliteAdapter
from fencepost.adapters.reference.rules import CONTRACT, Rules
from fencepost.adapters.reference.server import PostgresSource
from fencepost.conformance.interleave.bench import gate_bench
from fencepost.conformance.interleave.engine import (
    certify,
    first_failure,
    replay_history,
    replay_schedule,
    search,
)
from fencepost.conformance.interleave.lanes import History
from fencepost.conformance.interleave.played import Diverged
from fencepost.conformance.interleave.programs import PROGRAMS, Program, programs_of
from fencepost.conformance.interleave.reduce_race import reduce_race
from fencepost.model import commands as c
from fencepost.model import outcomes as o
from fencepost.model.clauses import CLAUSES
from fencepost.model.queues import BACKFILL, QUEUES
from fencepost.model.trace import Trace, TraceStep
from fencepost.scenarios import load
from shipped import STORIES
from sqlalchemy import update

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
    "claim ‖ claim, two jobs, both scanned for one": (50, 12),
    "claim ‖ request_cancel": (11, 6),
    "complete ‖ request_cancel": (4, 4),
    "complete ‖ recover": (36, 40),
    "renew ‖ recover": (36, 40),
    "recover ‖ recover": (50, 50),
    "request_cancel ‖ recover": (11, 11),
    "recover ‖ recover, a job called off": (50, 50),
    "complete ‖ start_up": (11, 11),
    "complete ‖ recover claim, another worker": (118, 125),
    "complete ‖ release claim, the same worker": (16, 15),
    "claim ‖ claim fail": (270, 38),
    "put_artifact ‖ release claim, the same worker": (164, 345),
    "claim ‖ recover": (124, 69),
    "claim ‖ claim release": (119, 25),
    "put_artifact ‖ put_artifact": (180, 1062),
    "recover ‖ recover, a job overdue": (50, 50),
    "complete ‖ recover, with a hook": (37, 46),
}
"""The number of all schedules, on SQLite and on PostgreSQL."""
OF_BUILDS = SCHEDULES | {
    "complete ‖ recover": (85, 97),
    "complete ‖ recover, with a hook": (114, 153),
    "complete ‖ release claim, the same worker": (63, 51),
}
"""A build whose success is refused looks whether its own attempt has reported it before (FENCE-05)."""
IDLE = {"claim ‖ recover": (4, 4)}
"""The number of schedules in which nothing is left to test: the deadline passes before anybody writes."""


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
        schedules = OF_BUILDS if opened.spec.repeats_complete else SCHEDULES
        for program in programs_of(opened.spec):
            seen: list[History] = []
            found = opened.run(certify(opened.adapter, opened.spec, program, on_schedule=seen.append))
            assert (found.violation, found.trace, found.exhaustive) == (None, None, True), program.name
            assert len({history.played.schedule for history in seen}) == len(seen) == found.schedules
            assert found.schedules == schedules[program.name][name == "pg"], program.name
            clauses = program.certified(opened.adapter.capabilities.row_locks)
            assert [each.clause for each in found.certificates] == list(clauses)
            assert all(each.exhaustive and each.pair == program.name for each in found.certificates)
            empty = sum(not history.checks for history in seen)
            assert empty == IDLE.get(program.name, (0, 0))[name == "pg"], "what tests nothing certifies nothing"


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
        assert shorter.trace.length == load(STORIES / f"{mutant.id}.yaml").trace.length
        assert opened.run(replay_schedule(adapter, spec, shorter.trace)) == shorter.violation
    # The contract's statements are others, so that the schedule need not fit; no other breaks the clause either.
    with Opened(runner, name, mutant.queue) as opened:
        right = opened.run(first_failure(opened.adapter, opened.spec, shorter.trace, mutant.clause, most=50))
        assert (right.violation, right.schedules > 0) == (None, True)


@pytest.mark.parametrize(
    "mutant", [mutant for mutant in MUTANTS if mutant.race and "sqlite" in mutant.adapters], ids=lambda m: m.id
)
def test_random_schedules_find_the_planted_races_too(runner: asyncio.Runner, mutant: Mutant) -> None:
    with Opened(runner, "sqlite", mutant.queue, mutant.change(CONTRACT)) as opened:
        program = program_named(mutant.pair)
        one, again = (opened.run(search(opened.adapter, opened.spec, program, seed=3, most=MOST)) for _ in range(2))
        assert one == again
        assert one.violation is not None and one.violation.clause == mutant.clause
        assert (one.exhaustive, one.certificates) == (False, ())


def test_random_schedules_are_counted_as_they_turned_up(runner: asyncio.Runner) -> None:
    with Opened(runner, "sqlite", "backfill") as opened:
        program = program_named("complete ‖ request_cancel")
        found = opened.run(search(opened.adapter, opened.spec, program, seed=3, most=50))
        assert (found.schedules, found.exhaustive, found.certificates) == (4, False, ())


def test_a_search_that_was_cut_says_by_what(runner: asyncio.Runner) -> None:
    with Opened(runner, "sqlite", "backfill") as opened:
        found = opened.run(certify(opened.adapter, opened.spec, PROGRAMS[0], most=7))
    assert (found.schedules, found.exhaustive) == (7, False)
    assert {each.bound for each in found.certificates} == {
        "1 job, 2 actors, 2 commands at once, orders of whole statements; the first 7 in the order of switches"
    }


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


def rules_of(name: str) -> Rules:
    (mutant,) = (each for each in MUTANTS if each.id == name)
    return mutant.change(CONTRACT)


LATE_COMPLETION = replace(
    program_named("claim ‖ claim, one job"),
    before=(c.Enqueue(), c.Claim(3), c.AdvanceTo("expiry", c.JobRef(1)), c.Complete(c.HandleRef(2)), c.Enqueue()),
)


@pytest.mark.parametrize(
    ("mutant", "program", "clause", "steps"),
    [
        ("complete-expired", LATE_COMPLETION, "FENCE-01", 4),
        ("claim-without-heartbeat", program_named("complete ‖ recover"), "CLAIM-05", 2),
    ],
    ids=["by the answer", "by the row alone"],
)
def test_a_clause_that_is_broken_before_the_lanes_is_a_violation(
    runner: asyncio.Runner, mutant: str, program: Program, clause: str, steps: int
) -> None:
    with Opened(runner, "sqlite", "backfill", rules_of(mutant)) as opened:
        adapter, spec = opened.adapter, opened.spec
        history = opened.run(replay_history(adapter, spec, replace(program.trace(), schedule="1122")))
        assert history.violation is not None and history.violation.clause == clause
        assert [each.label for each in history.trace.steps] == list(range(1, steps + 1))
        assert None not in [each.outcome for each in history.trace.steps]
        assert history.trace.lanes == ()
        for found in (
            opened.run(certify(adapter, spec, program)),
            opened.run(search(adapter, spec, program, seed=1, most=5)),
            opened.run(first_failure(adapter, spec, program.trace(), clause, most=5)),
        ):
            assert (found.trace, found.violation) == (history.trace, history.violation)
            assert (found.schedules, found.certificates, found.exhaustive) == (0, (), False)
        assert opened.run(first_failure(adapter, spec, program.trace(), "REC-09", most=5)).violation is None
        shorter = opened.run(reduce_race(adapter, spec, history.trace, clause))
        assert (shorter.trace, shorter.violation) == (history.trace, history.violation), "it was the shortest already"


def test_a_clause_that_is_broken_before_the_lanes_only_now_and_then_ends_the_search(runner: asyncio.Runner) -> None:
    with Opened(runner, "sqlite", "backfill") as opened:
        actor, looked = opened.adapter.actor(1), 0
        complete = actor.complete

        async def forgetful(command: c.Complete, now: int) -> o.Outcome:
            nonlocal looked
            looked += 1
            return o.REJECTED if looked == 5 else await complete(command, now)

        actor.complete = forgetful  # type: ignore[method-assign]
        program = replace(PROGRAMS[0], before=(c.Enqueue(), c.Claim(1), c.Complete(c.HandleRef(2)), c.Enqueue()))
        found = opened.run(certify(opened.adapter, opened.spec, program))
        assert found.violation is not None and found.violation.clause == "FENCE-01"
        assert (found.schedules, found.certificates, found.exhaustive) == (3, (), False)


def labelled(*commands: c.Command, first: int) -> tuple[TraceStep, ...]:
    return tuple(TraceStep(n, command) for n, command in enumerate(commands, first))


def test_a_step_before_the_lanes_that_cannot_run_is_told(runner: asyncio.Runner) -> None:
    before = labelled(c.Enqueue(), c.Claim(3), c.Release(c.HandleRef(12, 1)), first=11)
    trace = Trace(before, ((), labelled(c.Claim(1), first=21), labelled(c.Claim(2), first=31)), "111122")
    with (
        Opened(runner, "sqlite", "backfill") as opened,
        pytest.raises(Diverged, match=r"step 13 could not run: step 12 claimed no 2\. job"),
    ):
        opened.run(replay_history(opened.adapter, opened.spec, trace))


def test_a_replayed_race_tells_what_every_step_answered_by_its_label(runner: asyncio.Runner) -> None:
    before = labelled(c.Enqueue(), c.Enqueue(), c.Claim(3), c.Complete(c.HandleRef(13)), first=11)
    lanes = (labelled(c.Advance(7), first=21), labelled(c.Claim(1), first=31), labelled(c.Claim(2), first=41))
    with Opened(runner, "sqlite", "backfill") as opened:
        history = opened.run(replay_history(opened.adapter, opened.spec, Trace(before, lanes, "0111122")))
    every = [each for lane in (history.trace.steps, *history.trace.lanes) for each in lane]
    assert {each.label: each.outcome for each in every} == {
        11: o.Enqueued(1),
        12: o.Enqueued(2),
        13: o.Claimed((c.Handle(1, 3),)),
        14: o.Accepted("succeeded"),
        21: o.DONE,
        31: o.Claimed((c.Handle(2, 1),)),
        41: o.Claimed(),
    }
    assert history.violation is None
    assert {"TERM-03", "CLAIM-05"} <= {check.clause for check in history.checks}, "of both, rows included"


def test_each_move_of_the_clock_goes_on_from_the_one_before(runner: asyncio.Runner) -> None:
    job = c.JobRef(1)
    clock = labelled(*(c.AdvanceTo("expiry", job, offset) for offset in (-1, 0, 0)), first=3)
    trace = Trace(
        labelled(c.Enqueue(), c.Claim(1), first=1), (clock, labelled(c.Renew(c.HandleRef(2)), first=6)), "00011"
    )
    with Opened(runner, "sqlite", "backfill") as opened:
        history = opened.run(replay_history(opened.adapter, opened.spec, trace))
    assert [ran.now for ran in history.played.commands] == [0, 299, 300, 300]
    assert [each.outcome for each in history.trace.lanes[0]] == [o.DONE, o.DONE, None]
    assert isinstance(history.trace.lanes[1][0].outcome, o.Rejected)


class Scribbler(ReferenceActor):
    """Rejects a completion, and writes its error code into the row all the same."""

    async def complete(self, command: c.Complete, now: int) -> o.Outcome:
        answer = await super().complete(command, now)
        if isinstance(answer, o.Rejected):
            connection = await self.connect()
            await connection.execute(update(self._runtime.table).values(error_code="PAGE_VALIDATION_FAILED"))
            await connection.commit()
        return answer


def test_a_rejected_write_beside_a_sweep_leaves_a_row_that_has_ended_alone(runner: asyncio.Runner) -> None:
    ended = (c.Enqueue(), c.Claim(1), c.Complete(c.HandleRef(2)))
    program = replace(
        program_named("complete ‖ recover"),
        before=ended,
        clock=(),
        lanes=((c.Complete(c.HandleRef(2)),), (c.Recover(),)),
    )
    with Opened(runner, "sqlite", "backfill") as opened:
        assert opened.run(certify(opened.adapter, opened.spec, program)).violation is None
        opened.adapter._actors[1] = Scribbler(opened.adapter, 1)
        found = opened.run(certify(opened.adapter, opened.spec, program))
        assert found.violation is not None and found.violation.clause == "TERM-02"
        assert found.schedules == 1


def test_a_worker_that_crashed_before_the_lanes_is_held_at_its_statements_all_the_same(runner: asyncio.Runner) -> None:
    one_job = program_named("claim ‖ claim, one job")
    with Opened(runner, "sqlite", "backfill") as opened:
        found = opened.run(certify(opened.adapter, opened.spec, replace(one_job, before=(c.Enqueue(), c.Crash(1)))))
        assert (found.violation, found.exhaustive, found.schedules) == (None, True, SCHEDULES[one_job.name][0])


def test_an_adapter_without_a_gate_says_so() -> None:
    async def main() -> None:
        adapter = MemoryAdapter()
        await adapter.open(BACKFILL)
        await certify(adapter, BACKFILL, PROGRAMS[0])

    with pytest.raises(AdapterError, match="no gate"):
        asyncio.run(main())


def test_a_job_that_is_enqueued_while_others_run_is_refused(runner: asyncio.Runner) -> None:
    program = replace(program_named("claim ‖ claim, one job"), lanes=((c.Claim(1),), (c.Enqueue(),)))
    with (
        Opened(runner, "sqlite", "backfill") as opened,
        pytest.raises(AdapterError, match=r"step 3 enqueues a job .*: enqueue it before them"),
    ):
        opened.run(certify(opened.adapter, opened.spec, program))


@everywhere
def test_the_gate_bench_measures_both_sides(runner: asyncio.Runner, name: str) -> None:
    with Opened(runner, name, "backfill") as opened:
        rates = opened.run(gate_bench(opened.adapter, opened.spec, 0.1))
        assert set(rates) == {"gated_per_s", "ungated_per_s"} and min(rates.values()) > 0
