"""The interleaved engine's mechanics, on a toy table with toy claimers: what can be found, certified and replayed.

The claimers are raw SQLAlchemy Core, so that nothing here depends on the reference runtime or on a judge.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Coroutine, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from fencepost.adapters.reference.server import PostgresSource, acquire
from fencepost.conformance.interleave.exhaustive import Exhaustive, Prefix
from fencepost.conformance.interleave.gate import Gate, is_conflict, kind_of, takes_locks
from fencepost.conformance.interleave.played import Diverged, Played, Stuck
from fencepost.conformance.interleave.random_walk import RandomWalk
from fencepost.conformance.interleave.replay import Replay
from fencepost.conformance.interleave.scheduler import Strategy, run_schedule
from sqlalchemy import event, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine
from sqlalchemy.pool import NullPool

FREE = "SELECT id FROM toy WHERE owner IS NULL ORDER BY id LIMIT 1"
TAKE = "UPDATE toy SET owner = :who WHERE id = :id"
TAKE_FIRST = f"UPDATE toy SET owner = :who WHERE id = ({FREE}) RETURNING id"
CONFLICT = "conflict"
Verb: TypeAlias = "Callable[[Worker], Awaitable[Any]]"


class Worker:
    """One actor: a connection, and the gate on it."""

    def __init__(self, number: int, connection: AsyncConnection) -> None:
        self.number = number
        self.connection = connection
        self.gate = Gate(f"actor {number}")
        self.gate.attach(connection)
        self.now: int | None = None

    async def run(self, sql: str, **values: Any) -> Any:
        """The first column of the first row, or the row count of a statement without rows."""
        result = await self.connection.execute(text(sql), values)
        return result.scalar() if result.returns_rows else result.rowcount

    async def commit(self) -> None:
        await self.connection.commit()

    def command(self, verb: Verb) -> Callable[[int], Coroutine[Any, Any, Any]]:
        """The verb as the scheduler starts it; a write conflict is an answer."""

        async def started(now: int) -> Any:
            self.now = now
            try:
                return await verb(self)
            except DBAPIError as error:
                if not is_conflict(error.orig):
                    raise
                await self.connection.rollback()
                return CONFLICT

        return started


async def read(worker: Worker) -> None:
    await worker.run("SELECT count(*) FROM toy")
    await worker.commit()


async def naive(worker: Worker) -> int | None:
    """Looks in one transaction and takes in the next: claims what has been claimed meanwhile."""
    found: int | None = await worker.run(FREE)
    await worker.commit()
    if found is not None:
        await worker.run(TAKE, who=worker.number, id=found)
        await worker.commit()
    return found


async def sub_select(worker: Worker) -> int | None:
    """One statement, no row lock: right where writers exclude each other, wrong where they wait for each other."""
    found: int | None = await worker.run(TAKE_FIRST, who=worker.number)
    await worker.commit()
    return found


async def skip_locked(worker: Worker) -> int | None:
    found: int | None = await worker.run(FREE + " FOR UPDATE SKIP LOCKED")
    if found is not None:
        await worker.run(TAKE, who=worker.number, id=found)
    await worker.commit()
    return found


def both_rows(first: int, second: int) -> Verb:
    """Touches two rows in this order, in one transaction."""

    async def touch(worker: Worker) -> str:
        await worker.run(TAKE, who=worker.number, id=first)
        await worker.run(TAKE, who=worker.number, id=second)
        await worker.commit()
        return "both"

    return touch


class Toy:
    """The table, its actors, and a clock in ticks."""

    def __init__(self, engine: AsyncEngine, control: AsyncConnection, workers: list[Worker], pids: list[int]) -> None:
        self.engine = engine
        self.control = control
        self.workers = workers
        self.actors = {pid: worker.gate.actor for pid, worker in zip(pids, workers, strict=False)}
        self.rows = 1
        self.time = 0

    async def blocked(self, names: Collection[str]) -> set[str]:
        pids = [pid for pid, name in self.actors.items() if name in names]
        ask = text("SELECT pid FROM unnest(CAST(:pids AS int[])) AS pid WHERE pg_blocking_pids(pid) && :pids")
        found = await self.control.execute(ask, {"pids": pids})
        waiting = {self.actors[pid] for pid in found.scalars()}
        await self.control.commit()
        return waiting

    async def play(self, strategy: Strategy, *lanes: Sequence[Verb], clock: int = 0) -> Played:
        """Reset, then run lane n on worker n; `clock` advances of 5 ticks may fall in between."""
        self.time = 0
        await self.control.execute(text("DELETE FROM toy"))
        await self.control.execute(text("INSERT INTO toy (id) VALUES (:id)"), [{"id": n + 1} for n in range(self.rows)])
        await self.control.commit()
        return await run_schedule(
            [self.advance] * clock,
            [
                (worker.gate, [worker.command(verb) for verb in lane])
                for worker, lane in zip(self.workers, lanes, strict=False)
            ],
            strategy,
            now=lambda: self.time,
            blocked=self.blocked if self.actors else None,
        )

    def advance(self) -> None:
        self.time += 5

    def search(self, *lanes: Sequence[Verb], clock: int = 0, **options: Any) -> Exhaustive:
        return Exhaustive(lambda strategy: self.play(strategy, *lanes, clock=clock), **options)


@contextlib.asynccontextmanager
async def toy_on(database: str, place: Path, actors: int = 2) -> AsyncIterator[Toy]:
    if database == "pg":
        settings = {"synchronous_commit": "off", "deadlock_timeout": "100ms", "search_path": "interleave_toy"}
        engine = create_async_engine(
            acquire(PostgresSource()), poolclass=NullPool, connect_args={"server_settings": settings}
        )
    else:
        engine = create_async_engine(
            f"sqlite+aiosqlite:///{place / 'toy.db'}",
            poolclass=NullPool,
            connect_args={"timeout": 0, "isolation_level": None},
        )
        event.listen(engine.sync_engine, "begin", lambda connection: connection.exec_driver_sql("BEGIN"))
    async with contextlib.AsyncExitStack() as stack:
        stack.push_async_callback(engine.dispose)
        control = await stack.enter_async_context(engine.connect())
        if database == "pg":
            await control.execute(text("DROP SCHEMA IF EXISTS interleave_toy CASCADE"))
            await control.execute(text("CREATE SCHEMA interleave_toy"))
        else:
            await control.rollback()
            await (await control.get_raw_connection()).driver_connection.execute("PRAGMA journal_mode = WAL")  # type: ignore[union-attr]
        await control.execute(text("CREATE TABLE toy (id INTEGER PRIMARY KEY, owner INTEGER)"))
        await control.commit()
        workers, pids = [], []
        for number in range(1, actors + 1):
            worker = Worker(number, await stack.enter_async_context(engine.connect()))
            stack.callback(worker.gate.detach)
            workers.append(worker)
            if database == "pg":
                pids.append(await worker.run("SELECT pg_backend_pid()"))
                await worker.commit()
        yield Toy(engine, control, workers, pids)


Story: TypeAlias = Callable[[Toy], Coroutine[Any, Any, None]]
Told: TypeAlias = Callable[..., None]


@pytest.fixture
def tell(tmp_path: Path) -> Iterator[Told]:
    """Runs a story on a fresh toy."""

    def told(database: str, story: Story, actors: int = 2) -> None:
        async def whole() -> None:
            async with toy_on(database, tmp_path, actors) as toy:
                await story(toy)

        asyncio.run(whole())

    yield told


everywhere = pytest.mark.parametrize("database", ["sqlite", "pg"])


def wins(played: Played) -> int:
    return sum(ran.outcome == 1 for ran in played.commands)


@everywhere
@pytest.mark.parametrize("order", ["switches", "depth"])
def test_two_independent_readers_meet_in_every_order_once(tell: Told, database: str, order: str) -> None:
    async def story(toy: Toy) -> None:
        search = toy.search([read], [read], order=order)
        seen = [played async for played in search.schedules()]
        assert sorted(p.schedule for p in seen) == ["1122", "1212", "1221", "2112", "2121", "2211"]
        assert search.exhaustive
        if order == "switches":
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
    async def locking(worker: Worker) -> int:
        driver = worker.connection
        await driver.rollback()
        await driver.exec_driver_sql("ROLLBACK")
        await driver.exec_driver_sql("BEGIN IMMEDIATE")
        found: int = await worker.run(FREE)
        await worker.commit()
        return found

    async def story(toy: Toy) -> None:
        played = await toy.play(Prefix(""), [locking])
        assert [(s.token, s.kind) for s in played.statements] == [
            (0, "ROLLBACK"),
            (1, "BEGIN IMMEDIATE"),
            (1, "SELECT"),
            (2, "COMMIT"),
        ]

    tell("sqlite", story, actors=1)


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


def test_a_lock_left_by_a_finished_actor_is_told_and_not_waited_for(tell: Told) -> None:
    async def leaves_its_transaction_open(worker: Worker) -> None:
        await worker.run(TAKE, who=worker.number, id=1)

    async def story(toy: Toy) -> None:
        with pytest.raises(Stuck, match="lane 2 in UPDATE: the lock is held by an actor that has finished"):
            await toy.play(Replay("12"), [leaves_its_transaction_open], [sub_select])
        await toy.workers[0].connection.rollback()

    tell("pg", story)


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
