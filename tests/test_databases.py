"""The databases of the reference runtime: what they make they remove, what they answer the server knows."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from embedded import EMBEDDED, schemas
from fencepost.adapters.conflicts import is_conflict
from fencepost.adapters.contract import AdapterError
from fencepost.adapters.reference.database import Database, driver_of
from fencepost.adapters.reference.instant import Instant
from fencepost.adapters.reference.postgres import DEADLOCK_MILLISECONDS, PostgresDatabase
from fencepost.adapters.reference.sqlite import SqliteDatabase
from sqlalchemy import Column, Integer, MetaData, String, Table, select, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncConnection

METADATA = MetaData()
JOBS = Table(
    "jobs", METADATA, Column("id", Integer, primary_key=True), Column("status", String), Column("due", Instant)
)
Story = Callable[[Any], Awaitable[None]]


def tell(database: Database, story: Story) -> None:
    """Run the story on an opened database, and close it."""

    async def main() -> None:
        await database.open(METADATA)
        try:
            await story(database)
        finally:
            await database.close()

    asyncio.run(main())


async def add_job(connection: AsyncConnection, due: int | None = None) -> None:
    await connection.execute(JOBS.insert().values(status="pending", due=due))
    await connection.commit()


BOTH = pytest.mark.parametrize(
    "make", [lambda: SqliteDatabase(busy_timeout=0), lambda: PostgresDatabase(EMBEDDED)], ids=["sqlite", "pg"]
)


@BOTH
def test_only_what_was_committed_is_read_and_a_reset_removes_it(make: Callable[[], Database]) -> None:
    async def story(database: Database) -> None:
        actor = await database.connect("w1")
        await add_job(actor)
        await actor.execute(JOBS.insert().values(status="uncommitted"))
        assert [row.status for row in await database.read(select(JOBS))] == ["pending"]
        await actor.rollback()
        await database.reset(JOBS)
        assert await database.read(select(JOBS)) == []

    tell(make(), story)


@BOTH
def test_a_read_belongs_to_the_transaction_that_it_begins(make: Callable[[], Database]) -> None:
    async def story(database: Database) -> None:
        reader = await database.connect("w1")
        await reader.execute(select(JOBS))
        assert (await database.probe({"w1": reader}))[0] == 1
        await reader.commit()
        assert await database.probe({"w1": reader}) == (0, 0)

    tell(make(), story)


@BOTH
def test_a_probe_sees_the_open_transaction_and_the_locks_of_the_idle_actor_alone(make: Callable[[], Database]) -> None:
    async def story(database: Database) -> None:
        leaker, clean = await database.connect("w1"), await database.connect("w2")
        await add_job(leaker)
        assert await database.probe({"w1": leaker, "w2": clean}) == (0, 0)
        await leaker.execute(JOBS.update().values(status="running"))
        transactions, locks = await database.probe({"w1": leaker, "w2": clean})
        assert transactions == 1
        assert locks >= 1
        assert await database.probe({"w2": clean}) == (0, 0)
        await leaker.rollback()
        assert await database.probe({"w1": leaker, "w2": clean}) == (0, 0)

    tell(make(), story)


def test_resets_go_on_past_their_vacuum(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fencepost.adapters.reference.postgres.RESETS_PER_VACUUM", 2)

    async def story(database: PostgresDatabase) -> None:
        actor = await database.connect("w1")
        await actor.execute(select(JOBS))  # an open transaction that only read is in nobody's way
        for _ in range(3):
            writer = await database.connect("w2")
            await add_job(writer)
            await writer.close()
            await database.reset(JOBS)
            assert await database.read(select(JOBS)) == []
        vacuumed = await database.read(text("SELECT vacuum_count FROM pg_stat_user_tables WHERE relname = 'jobs'"))
        assert [row.vacuum_count for row in vacuumed] == [1]

    tell(PostgresDatabase(EMBEDDED), story)


@BOTH
def test_a_reset_is_refused_while_an_open_transaction_holds_rows(
    make: Callable[[], Database], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fencepost.adapters.reference.postgres.LOCK_SECONDS", 0.001)

    async def story(database: Database) -> None:
        actor = await database.connect("w1")
        await add_job(actor)
        await actor.execute(JOBS.update().values(status="running"))
        with pytest.raises(AdapterError, match="roll it back first"):
            await database.reset(JOBS)
        await actor.rollback()
        await database.reset(JOBS)

    tell(make(), story)


@BOTH
@pytest.mark.parametrize("tick", [-1, 0, 1, 86_400 * 400])
def test_instants_come_back_as_ticks_and_compare_as_ticks(make: Callable[[], Database], tick: int) -> None:
    async def story(database: Database) -> None:
        actor = await database.connect("w1")
        await add_job(actor, due=tick)
        await add_job(actor, due=None)
        assert [row.due for row in await database.read(select(JOBS.c.due).order_by(JOBS.c.id))] == [tick, None]
        due = select(JOBS.c.id).where(JOBS.c.due <= tick)
        overdue = select(JOBS.c.id).where(JOBS.c.due < tick)
        assert (len(await database.read(due)), len(await database.read(overdue))) == (1, 0)

    tell(make(), story)


def test_the_server_names_the_actor_that_waits_for_a_lock() -> None:
    async def story(database: PostgresDatabase) -> None:
        actors = {"w1": await database.connect("w1"), "w2": await database.connect("w2")}
        await add_job(actors["w1"])
        await actors["w1"].execute(JOBS.update().values(status="running"))
        assert await database.blocked(actors) == frozenset()
        waiting = asyncio.ensure_future(actors["w2"].execute(JOBS.update().values(status="failed")))
        async with asyncio.timeout(30):
            while not (blocked := await database.blocked(actors)):
                assert not waiting.done()
        assert blocked == {"w2"}
        await actors["w1"].commit()
        await waiting
        assert await database.blocked(actors) == frozenset()

    tell(PostgresDatabase(EMBEDDED), story)


def test_a_refused_sqlite_writer_has_a_conflict_and_waits_for_nothing() -> None:
    async def story(database: SqliteDatabase) -> None:
        first, second = await database.connect("w1"), await database.connect("w2")
        await add_job(first)
        await second.execute(select(JOBS))  # a read that the next write of the other makes stale
        await first.execute(JOBS.update().values(status="running"))
        with pytest.raises(DBAPIError) as busy:
            await second.execute(JOBS.update().values(status="failed"))
        await first.commit()
        with pytest.raises(DBAPIError) as stale:
            await second.execute(JOBS.update().values(status="failed"))
        assert busy.value.orig is not None
        assert stale.value.orig is not None
        for error in (busy.value, busy.value.orig, stale.value, stale.value.orig):
            assert is_conflict(error)

    tell(SqliteDatabase(busy_timeout=0), story)


def test_a_serialization_failure_is_a_conflict() -> None:
    async def story(database: PostgresDatabase) -> None:
        first, second = await database.connect("w1"), await database.connect("w2")
        await add_job(first)
        await second.execution_options(isolation_level="REPEATABLE READ")
        await second.execute(select(JOBS))
        await first.execute(JOBS.update().values(status="running"))
        await first.commit()
        with pytest.raises(DBAPIError) as error:
            await second.execute(JOBS.update().values(status="failed"))
        assert getattr(error.value.orig, "sqlstate", None) == "40001"
        assert is_conflict(error.value)

    tell(PostgresDatabase(EMBEDDED), story)


def test_a_deadlock_is_a_conflict_of_one_of_the_two() -> None:
    async def story(database: PostgresDatabase) -> None:
        first, second = await database.connect("w1"), await database.connect("w2")
        await add_job(first)
        await add_job(first)
        jobs = [row.id for row in await database.read(select(JOBS.c.id).order_by(JOBS.c.id))]

        async def write(actor: AsyncConnection, job: int) -> BaseException | None:
            try:
                await actor.execute(JOBS.update().where(JOBS.c.id == job).values(status="running"))
            except DBAPIError as error:
                await actor.rollback()
                return error
            return None

        await write(first, jobs[0])
        await write(second, jobs[1])
        answers = await asyncio.gather(write(first, jobs[1]), write(second, jobs[0]))
        lost = [answer for answer in answers if answer is not None]
        assert [is_conflict(error) for error in lost] == [True]
        assert [getattr(error, "orig").sqlstate for error in lost] == ["40P01"]  # noqa: B009

    tell(PostgresDatabase(EMBEDDED), story)


@pytest.mark.parametrize("waits_first", [1, 2])
def test_of_deadlocked_actors_the_one_of_the_lowest_rank_loses_whoever_waited_first(waits_first: int) -> None:
    async def story(database: PostgresDatabase) -> None:
        actors = {f"w{rank}": await database.connect(f"w{rank}") for rank in (1, 2)}
        first, second = actors[f"w{waits_first}"], actors[f"w{3 - waits_first}"]
        for rank in (1, 2):
            await database.show_conflicts(actors[f"w{rank}"], rank)
            await add_job(first)
        jobs = [row.id for row in await database.read(select(JOBS.c.id).order_by(JOBS.c.id))]

        def write(actor: AsyncConnection, job: int) -> Awaitable[Any]:
            return actor.execute(JOBS.update().where(JOBS.c.id == job).values(status="running"))

        await write(first, jobs[0])
        await write(second, jobs[1])
        waiting = asyncio.ensure_future(write(first, jobs[1]))
        async with asyncio.timeout(30):
            while not await database.blocked(actors):
                assert not waiting.done()
        answers = dict(
            zip(
                (waits_first, 3 - waits_first),
                await asyncio.gather(waiting, write(second, jobs[0]), return_exceptions=True),
                strict=True,
            )
        )
        assert isinstance(answers[1], DBAPIError)
        assert is_conflict(answers[1])
        assert not isinstance(answers[2], BaseException)

    tell(PostgresDatabase(EMBEDDED), story)


def test_ranks_are_apart_by_as_much_as_the_first_waits_and_nobody_waits_for_ever() -> None:
    ranked = DEADLOCK_MILLISECONDS[1:]
    assert min(after - before for before, after in pairwise(ranked)) >= ranked[0]
    assert max(ranked) <= 15_000


@BOTH
def test_another_fault_is_no_conflict(make: Callable[[], Database]) -> None:
    async def story(database: Database) -> None:
        actor = await database.connect("w1")
        with pytest.raises(DBAPIError) as error:
            await actor.execute(text("SELECT nothing_of_this_name"))
        assert not is_conflict(error.value)
        assert not is_conflict(ValueError("unrelated"))

    tell(make(), story)


def test_runs_on_one_server_see_their_own_jobs_and_close_drops_one_schema_alone() -> None:
    async def main() -> None:
        mine, other = PostgresDatabase(EMBEDDED), PostgresDatabase(EMBEDDED)
        before = await schemas()
        await asyncio.gather(mine.open(METADATA), other.open(METADATA))
        assert await schemas() - before == {mine.schema, other.schema}
        await add_job(await mine.connect("w1"))
        assert (len(await mine.read(select(JOBS))), len(await other.read(select(JOBS)))) == (1, 0)
        await mine.close()
        assert await schemas() - before == {other.schema}
        assert await other.read(select(JOBS)) == []
        await other.close()
        assert await schemas() == before

    asyncio.run(main())


def test_a_schema_is_dropped_although_an_actor_left_a_transaction_open_and_another_waits_for_it() -> None:
    async def main() -> None:
        database = PostgresDatabase(EMBEDDED)
        await database.open(METADATA)
        holder, waiter = await database.connect("w1"), await database.connect("w2")
        await add_job(holder)
        await holder.execute(JOBS.update().values(status="running"))
        waiting = asyncio.ensure_future(waiter.execute(JOBS.update().values(status="failed")))
        async with asyncio.timeout(30):
            while not await database.blocked({"w1": holder, "w2": waiter}):
                assert not waiting.done()
        assert database.schema in await schemas()
        await database.close()
        assert database.schema not in await schemas()
        await asyncio.wait([waiting])  # its lock may have come before its end did, so either answer will do
        waiting.exception()

    asyncio.run(main())


def test_sqlite_runs_in_the_thread_of_who_asks() -> None:
    """So that no call waits for its turn in another one."""

    async def story(database: SqliteDatabase) -> None:
        actor = await database.connect("w1")
        await driver_of(actor).create_function("thread", 0, threading.get_ident)
        assert (await actor.execute(text("SELECT thread()"))).scalar_one() == threading.get_ident()

    tell(SqliteDatabase(), story)


def test_a_sqlite_database_leaves_no_directory() -> None:
    made: list[Path] = []

    async def story(database: SqliteDatabase) -> None:
        made.extend(Path(row.file).parent for row in await database.read(text("SELECT file FROM pragma_database_list")))
        assert made[0].is_dir()

    tell(SqliteDatabase(), story)
    assert not made[0].exists()
