"""A toy table, toy claimers and a clock, for the tests of the interleaved engine.

Raw SQLAlchemy Core, so that nothing here depends on the reference runtime or on a judge.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Coroutine, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from fencepost.adapters.conflicts import is_conflict
from fencepost.adapters.reference.postgres import DEADLOCK_MILLISECONDS
from fencepost.adapters.reference.server import PostgresSource, acquire
from fencepost.conformance.interleave.exhaustive import Exhaustive
from fencepost.conformance.interleave.gate import Gate
from fencepost.conformance.interleave.played import Played
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


async def one_transaction(worker: Worker) -> int | None:
    found: int | None = await worker.run(FREE)
    if found is not None:
        await worker.run(TAKE, who=worker.number, id=found)
    await worker.commit()
    return found


async def immediately(worker: Worker) -> int | None:
    """Locks all writers out before it looks; for a connection whose transactions begin only when told to."""
    await worker.connection.exec_driver_sql("BEGIN IMMEDIATE")
    return await one_transaction(worker)


async def sub_select(worker: Worker) -> int | None:
    """One statement, no row lock: right where writers exclude each other, wrong where they wait for each other."""
    found: int | None = await worker.run(TAKE_FIRST, who=worker.number)
    await worker.commit()
    return found


async def for_ever(worker: Worker) -> None:
    while True:
        await read(worker)


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

    def search(self, *lanes: Sequence[Verb], clock: int = 0, **options: Any) -> Exhaustive[Played]:
        return Exhaustive(lambda strategy: self.play(strategy, *lanes, clock=clock), **options)


def write_ahead(connection: Any, _record: Any) -> None:
    for pragma in ("journal_mode = WAL", "synchronous = OFF"):
        connection.cursor().execute(f"PRAGMA {pragma}")


@contextlib.asynccontextmanager
async def toy_on(database: str, place: Path, actors: int = 2, begins: bool = True) -> AsyncIterator[Toy]:
    if database == "pg":
        settings = {"synchronous_commit": "off", "search_path": "interleave_toy"}
        engine = create_async_engine(
            acquire(PostgresSource()), poolclass=NullPool, connect_args={"server_settings": settings}
        )
    else:
        engine = create_async_engine(
            f"sqlite+aiosqlite:///{place / 'toy.db'}",
            poolclass=NullPool,
            connect_args={"timeout": 0, "isolation_level": None},
        )
        event.listen(engine.sync_engine, "connect", write_ahead)
        if begins:
            event.listen(engine.sync_engine, "begin", lambda connection: connection.exec_driver_sql("BEGIN"))
    async with contextlib.AsyncExitStack() as stack:
        stack.push_async_callback(engine.dispose)
        control = await stack.enter_async_context(engine.connect())
        if database == "pg":
            await control.execute(text("DROP SCHEMA IF EXISTS interleave_toy CASCADE"))
            await control.execute(text("CREATE SCHEMA interleave_toy"))
        await control.execute(text("CREATE TABLE toy (id INTEGER PRIMARY KEY, owner INTEGER)"))
        await control.commit()
        workers, pids = [], []
        for number in range(1, actors + 1):
            worker = Worker(number, await stack.enter_async_context(engine.connect()))
            stack.callback(worker.gate.detach)
            workers.append(worker)
            if database == "pg":
                # Of deadlocked actors the one with the lowest number loses.
                await worker.run(f"SET deadlock_timeout = {DEADLOCK_MILLISECONDS[number]}")
                pids.append(await worker.run("SELECT pg_backend_pid()"))
                await worker.commit()
        yield Toy(engine, control, workers, pids)
