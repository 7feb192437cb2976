"""The interleaved engine's mechanics: what can be found, certified and replayed with claimers on a toy table."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from fencepost.conformance.faults import Hung
from fencepost.conformance.interleave.exhaustive import Prefix
from fencepost.conformance.interleave.gate import kind_of, takes_locks
from fencepost.conformance.interleave.played import Diverged, Played, Stuck
from fencepost.conformance.interleave.random_walk import RandomWalk
from fencepost.conformance.interleave.replay import Replay
from interleave_toy import (
    CONFLICT,
    TAKE,
    Toy,
    Worker,
    both_rows,
    for_ever,
    immediately,
    naive,
    one_transaction,
    read,
    skip_locked,
    sub_select,
    toy_on,
)  # fmt: skip

Story: TypeAlias = Callable[[Toy], Coroutine[Any, Any, None]]
Told: TypeAlias = Callable[..., None]


@pytest.fixture
def tell(tmp_path: Path) -> Told:
    """Runs a story on a fresh toy."""

    def told(database: str, story: Story, **options: Any) -> None:
        async def whole() -> None:
            async with toy_on(database, tmp_path, **options) as toy:
                await story(toy)

        asyncio.run(whole())

    return told


everywhere = pytest.mark.parametrize("database", ["sqlite", "pg"])


def wins(played: Played) -> int:
    return sum(ran.outcome == 1 for ran in played.commands)


@everywhere
def test_two_independent_readers_meet_in_every_order_once(tell: Told, database: str) -> None:
    async def story(toy: Toy) -> None:
        search = toy.search([read], [read])
        seen = [played async for played in search.schedules()]
        assert sorted(p.schedule for p in seen) == ["1122", "1212", "1221", "2112", "2121", "2211"]
        assert search.exhaustive
        assert [p.preemptions for p in seen] == [0, 0, 1, 1, 2, 2]

    tell(database, story)


@pytest.mark.parametrize(("options", "count"), [({"bound": 0}, 2), ({"bound": 1}, 4), ({"most": 3}, 3)])
def test_a_search_that_was_cut_does_not_call_itself_exhaustive(tell: Told, options: dict[str, int], count: int) -> None:
    async def story(toy: Toy) -> None:
        search = toy.search([read], [read], **options)
        assert len([played async for played in search.schedules()]) == count
        assert not search.exhaustive

    tell("sqlite", story)


@pytest.mark.parametrize(("database", "simplest"), [("sqlite", "11222211"), ("pg", "11122212")])
def test_a_naive_claimer_claims_twice_and_the_simplest_such_schedule_comes_first(
    tell: Told, database: str, simplest: str
) -> None:
    async def story(toy: Toy) -> None:
        search = toy.search([naive], [naive])
        seen = [played async for played in search.schedules()]
        assert search.exhaustive
        assert len(seen) == len({p.schedule for p in seen}) == 50
        found = next(p for p in seen if wins(p) == 2)
        assert (found.schedule, found.preemptions) == (simplest, 1)
        assert [(s.kind, s.rowcount) for s in found.statements if s.kind == "UPDATE"] == [("UPDATE", 1)] * 2

    tell(database, story)


@pytest.mark.parametrize(("database", "schedule"), [("sqlite", "12122211"), ("pg", "12122211"), ("pg", "12122121")])
def test_a_found_schedule_replays_identically(tell: Told, database: str, schedule: str) -> None:
    async def story(toy: Toy) -> None:
        found = await toy.play(Replay(schedule), [naive], [naive])
        assert wins(found) == 2
        for _ in range(20):
            assert await toy.play(Replay(found.schedule), [naive], [naive]) == found

    tell(database, story)


def test_a_sub_select_without_a_row_lock_claims_twice_on_postgres(tell: Told) -> None:
    async def story(toy: Toy) -> None:
        search = toy.search([sub_select], [sub_select])
        seen = {p.schedule: wins(p) async for p in search.schedules()}
        assert search.exhaustive
        assert seen == {"1122": 1, "2211": 1, "1212": 2, "2121": 2}

    tell("pg", story)


def test_the_same_sub_select_is_right_on_sqlite_where_the_second_writer_loses(tell: Told) -> None:
    async def story(toy: Toy) -> None:
        search = toy.search([sub_select], [sub_select])
        seen = {p.schedule: p async for p in search.schedules()}
        assert search.exhaustive
        assert sorted(seen) == ["1122", "121", "212", "2211"]
        assert {wins(p) for p in seen.values()} == {1}
        lost = seen["121"].statements[1]
        assert (lost.lane, lost.kind, lost.failed, lost.conflict, lost.waited) == (2, "UPDATE", True, True, False)
        assert [ran.outcome for ran in seen["121"].commands] == [1, CONFLICT]
        assert [s.kind for s in seen["121"].statements] == ["UPDATE", "UPDATE", "ROLLBACK", "COMMIT"]

    tell("sqlite", story)


def test_skip_locked_is_certified_on_postgres(tell: Told) -> None:
    async def story(toy: Toy) -> None:
        search = toy.search([skip_locked], [skip_locked])
        seen = [p async for p in search.schedules()]
        assert search.exhaustive
        assert len(seen) == 12
        assert {wins(p) for p in seen} == {1}
        assert not any(s.waited for p in seen for s in p.statements)

    tell("pg", story)


def test_an_actor_that_waits_for_a_lock_cannot_be_chosen_until_it_is_freed(tell: Told) -> None:
    async def story(toy: Toy) -> None:
        played = await toy.play(Replay("1212"), [sub_select], [sub_select])
        assert played.enabled == ((1, 2), (1, 2), (1,), (2,))
        assert [(s.lane, s.kind, s.waited) for s in played.statements] == [
            (1, "UPDATE", False),
            (2, "UPDATE", True),
            (1, "COMMIT", False),
            (2, "COMMIT", False),
        ]
        assert [(ran.lane, ran.start, ran.end) for ran in played.commands] == [(1, 0, 2), (2, 1, 3)]

    tell("pg", story)


def test_a_deadlock_ends_as_the_outcome_of_one_actor(tell: Told) -> None:
    async def story(toy: Toy) -> None:
        toy.rows = 2
        lanes = [both_rows(1, 2)], [both_rows(2, 1)]
        played = await toy.play(Prefix("1212"), *lanes)
        assert sorted(ran.outcome for ran in played.commands) == ["both", CONFLICT]
        assert sum(s.conflict for s in played.statements) == 1
        assert {s.lane for s in played.statements if s.waited} == {1}
        again = await toy.play(Replay(played.schedule), *lanes)
        assert again == played

    tell("pg", story)


def test_nobody_is_chosen_while_others_are_deadlocked(tell: Told) -> None:
    async def story(toy: Toy) -> None:
        toy.rows = 3
        played = await toy.play(Prefix("31212"), [both_rows(1, 2)], [both_rows(2, 1)], [both_rows(3, 3)])
        assert sorted(ran.outcome for ran in played.commands[:2]) == ["both", CONFLICT]
        victim, survivor = sorted(played.commands[:2], key=lambda ran: str(ran.outcome != CONFLICT))
        assert victim.end == 4
        assert played.enabled[5] == (survivor.lane, 3)

    tell("pg", story, actors=3)


@everywhere
@pytest.mark.parametrize(
    ("schedule", "why"),
    [("1112", "token 2: the schedule lets lane 1 go, but only 2 can"), ("112", "ends after 3 tokens"),
     ("11221", "'1' is left over")],
)  # fmt: skip
def test_a_replay_that_diverges_says_so_and_leaves_the_actors_usable(
    tell: Told, database: str, schedule: str, why: str
) -> None:
    async def story(toy: Toy) -> None:
        with pytest.raises(Diverged, match=why):
            await toy.play(Replay(schedule), [read], [read])
        assert (await toy.play(Replay("2121"), [read], [read])).schedule == "2121"
        for worker in toy.workers:
            await read(worker)

    tell(database, story)


@everywhere
def test_the_clock_moves_between_statements_and_a_command_reads_it_when_it_starts(tell: Told, database: str) -> None:
    async def story(toy: Toy) -> None:
        search = toy.search([read], clock=1)
        seen = {p.schedule: p async for p in search.schedules()}
        assert search.exhaustive
        starts = {schedule: played.commands[1].now for schedule, played in seen.items()}
        assert starts == {"011": 5, "101": 0, "110": 0}
        moved = seen["101"].commands[0]
        assert (moved.lane, moved.start, moved.end, moved.now) == (0, 1, 1, 0)

    tell(database, story, actors=1)


@everywhere
def test_a_lane_with_commands_left_has_not_started_the_next_one(tell: Told, database: str) -> None:
    async def story(toy: Toy) -> None:
        played = await toy.play(Replay("11022101"), [read, read], [read], clock=2)
        assert [(ran.lane, ran.nth, ran.start, ran.end, ran.now) for ran in played.commands] == [
            (0, 0, 2, 2, 0),
            (0, 1, 6, 6, 5),
            (1, 0, 0, 1, 0),
            (1, 1, 5, 7, 5),
            (2, 0, 3, 4, 5),
        ]
        assert toy.workers[0].now == 5

    tell(database, story)


def test_begin_immediate_is_one_token_with_the_statement_after_it(tell: Told) -> None:
    async def story(toy: Toy) -> None:
        search = toy.search([immediately], [immediately])
        seen = {p.schedule: p async for p in search.schedules()}
        assert search.exhaustive
        assert {wins(p) for p in seen.values()} == {1}
        assert [(s.lane, s.token, s.kind, s.conflict) for s in seen["1211"].statements] == [
            (1, 0, "BEGIN IMMEDIATE", False),
            (1, 0, "SELECT", False),
            (2, 1, "BEGIN IMMEDIATE", True),
            (2, 1, "ROLLBACK", False),
            (1, 2, "UPDATE", False),
            (1, 3, "COMMIT", False),
        ]

    tell("sqlite", story, begins=False)


@pytest.mark.parametrize(("database", "double"), [("sqlite", False), ("pg", True)])
def test_looking_and_taking_in_one_transaction_is_safe_only_under_snapshots(
    tell: Told, database: str, double: bool
) -> None:
    async def story(toy: Toy) -> None:
        search = toy.search([one_transaction], [one_transaction])
        seen = [p async for p in search.schedules()]
        assert search.exhaustive
        assert any(wins(p) == 2 for p in seen) == double

    tell(database, story)


def test_a_seed_is_a_schedule(tell: Told) -> None:
    async def story(toy: Toy) -> None:
        once = [(await toy.play(RandomWalk(seed), [naive], [naive])).schedule for seed in range(20)]
        twice = [(await toy.play(RandomWalk(seed), [naive], [naive])).schedule for seed in range(20)]
        assert once == twice
        assert len(set(once)) > 10

    tell("sqlite", story)


@everywhere
def test_what_a_command_raises_is_passed_on_once_the_others_have_finished(tell: Told, database: str) -> None:
    async def broken(worker: Worker) -> None:
        await read(worker)
        raise LookupError("broken command")

    async def story(toy: Toy) -> None:
        with pytest.raises(LookupError, match="broken command"):
            await toy.play(Replay("2112"), [broken], [naive])
        owner = await toy.workers[0].run("SELECT owner FROM toy")
        await toy.workers[0].commit()
        assert owner == 2

    tell(database, story)


def test_an_alarm_that_rings_in_a_command_ends_the_run_and_is_no_end_of_a_lane(tell: Told) -> None:
    """It is no `Exception`: a lane that it ends has not run its commands, and nothing may be judged of them."""

    async def hangs(worker: Worker) -> None:
        await read(worker)
        raise Hung("it hangs")

    async def story(toy: Toy) -> None:
        with pytest.raises(Hung):
            await toy.play(RandomWalk(1), [hangs], [read])

    tell("sqlite", story)


def test_a_lock_left_by_a_finished_actor_is_told_and_not_waited_for(tell: Told) -> None:
    async def leaves_its_transaction_open(worker: Worker) -> None:
        await worker.run(TAKE, who=worker.number, id=1)

    async def story(toy: Toy) -> None:
        with pytest.raises(Stuck, match="lane 2 in UPDATE: the lock is held by an actor that has finished"):
            await toy.play(Replay("12"), [leaves_its_transaction_open], [sub_select])
        await toy.workers[0].connection.rollback()

    tell("pg", story)


def test_a_command_without_an_end_is_told(tell: Told) -> None:
    async def story(toy: Toy) -> None:
        with pytest.raises(Stuck, match="no end after"):
            await toy.play(Prefix(""), [for_ever], [read])

    tell("sqlite", story)


@everywhere
def test_a_run_that_is_cancelled_leaves_no_task_behind(tell: Told, database: str) -> None:
    async def story(toy: Toy) -> None:
        class Interrupt(Prefix):
            def choose(self, enabled: tuple[int, ...], previous: int | None) -> int:
                if previous == 2:
                    run.cancel()
                return super().choose(enabled, previous)

        before = asyncio.all_tasks()
        run = asyncio.create_task(toy.play(Interrupt("12"), [sub_select], [read]))
        with pytest.raises(asyncio.CancelledError):
            await run
        assert asyncio.all_tasks() == before

    tell(database, story)


@everywhere
def test_a_gate_on_two_connections_tells_conflicts_on_both_and_lets_go_of_both(tell: Told, database: str) -> None:
    async def story(toy: Toy) -> None:
        first, second = toy.workers
        second.gate.detach()
        first.gate.attach(second.connection)

        async def on_both(worker: Worker) -> None:
            await read(first)
            await read(second)

        assert (await toy.play(Prefix(""), [on_both])).schedule == "1111"
        first.gate.detach()
        assert (await toy.play(Prefix(""), [on_both])).schedule == "1"

    tell(database, story)


@pytest.mark.parametrize(
    ("sql", "kind", "locks"),
    [
        ("select 1", "SELECT", False),
        ("  -- why\n SELECT 1 FOR UPDATE SKIP LOCKED", "SELECT", True),
        ("SELECT 1 FOR NO KEY UPDATE", "SELECT", True),
        ("WITH a AS (SELECT 1 FOR UPDATE) UPDATE toy SET id = 1", "UPDATE", True),
        ("WITH a AS (SELECT 1 FOR UPDATE) SELECT * FROM a", "SELECT", True),
        ("WITH a AS (SELECT 1) SELECT * FROM a", "SELECT", False),
        ("/* note */ (SELECT 1)", "SELECT", False),
        ("BEGIN", "BEGIN", True),
        ("begin immediate", "BEGIN IMMEDIATE", True),
    ],
)
def test_a_statement_is_named_by_what_it_does(sql: str, kind: str, locks: bool) -> None:
    assert (kind_of(sql), takes_locks(sql)) == (kind, locks)
