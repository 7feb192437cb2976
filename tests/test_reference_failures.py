"""The reference adapters when something fails: they say what to do, and leave nothing behind."""

from __future__ import annotations

import asyncio
import resource
import tempfile
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import asyncpg
import pytest
from embedded import EMBEDDED, ask, schemas
from fencepost.adapters.contract import AdapterError
from fencepost.adapters.reference.adapter import PostgresAdapter, ReferenceAdapter, SqliteAdapter
from fencepost.adapters.reference.advice import postgres_advice
from fencepost.adapters.reference.database import Database
from fencepost.adapters.reference.postgres import PostgresDatabase
from fencepost.adapters.reference.server import PostgresSource, acquire
from fencepost.adapters.reference.sqlite import SqliteDatabase
from fencepost.model import commands as c
from fencepost.model.queues import BACKFILL, BUILD, QueueSpec
from sqlalchemy import Column, Integer, MetaData, Table, create_engine, event, text
from sqlalchemy.engine import make_url
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.pool import NullPool

ADAPTERS = pytest.mark.parametrize(
    "make", [SqliteAdapter, lambda: PostgresAdapter(source=EMBEDDED)], ids=["sqlite", "pg"]
)
DATABASES = pytest.mark.parametrize("make", [SqliteDatabase, lambda: PostgresDatabase(EMBEDDED)], ids=["sqlite", "pg"])


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder that temporary files go to; each test leaves it as empty as it found it."""
    acquire(EMBEDDED)  # its directory must not lie there
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    yield tmp_path
    assert list(tmp_path.iterdir()) == []


def jobs() -> MetaData:
    """One table."""
    metadata = MetaData()
    Table("jobs", metadata, Column("id", Integer, primary_key=True))
    return metadata


def refused(database: Database) -> str:
    """The message of the fault that opening this database ends with."""
    with pytest.raises(AdapterError) as fault:
        asyncio.run(database.open(jobs()))
    return str(fault.value)


# Closing.


@ADAPTERS
def test_closing_before_opening_and_closing_twice_do_nothing(make: Callable[[], ReferenceAdapter]) -> None:
    async def story() -> None:
        adapter = make()
        await adapter.close()
        await adapter.open(BACKFILL)
        await adapter.close()
        await adapter.close()
        with pytest.raises(AdapterError, match="not open"):
            await adapter.snapshot()

    asyncio.run(story())


@ADAPTERS
def test_an_adapter_closes_over_an_open_transaction(make: Callable[[], ReferenceAdapter]) -> None:
    async def story() -> None:
        adapter = make()
        await adapter.open(BACKFILL)
        await adapter.actor(0).perform(c.Enqueue(), 0)
        await (await adapter.actor(1).connect()).execute(adapter.runtime.table.update().values(heartbeat_at=1))
        await adapter.close()

    asyncio.run(story())


def on_postgres(story: Callable[[PostgresAdapter], Awaitable[Any]], source: PostgresSource = EMBEDDED) -> None:
    """Run the story on an adapter with one job, close it, and look for what it left."""

    async def main() -> None:
        before = await schemas()
        adapter = PostgresAdapter(source=source)
        await adapter.open(BACKFILL)
        await adapter.actor(0).perform(c.Enqueue(), 0)
        left = await story(adapter)
        async with asyncio.timeout(60):
            await adapter.close()
        assert await schemas() == before
        if isinstance(left, asyncio.Future):
            await asyncio.wait([left])
            left.exception()

    asyncio.run(main())


async def waits(count: int = 1) -> None:
    """Return once so many sessions wait for a lock."""
    async with asyncio.timeout(30):
        while await ask("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'") != [count]:
            pass


async def end_sessions(application: str) -> None:
    """End the sessions of this name on the server, and return once they are gone."""
    await ask("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = :it", it=application)
    async with asyncio.timeout(30):
        while await ask("SELECT 1 FROM pg_stat_activity WHERE application_name = :it", it=application):
            pass


def schema_of(adapter: PostgresAdapter) -> str:
    assert isinstance(adapter.database, PostgresDatabase)
    return adapter.database.schema


def test_an_adapter_closes_while_an_actor_waits_for_a_lock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fencepost.adapters.reference.postgres.LOCK_SECONDS", 3600)  # nobody would wait so long

    async def story(adapter: PostgresAdapter) -> asyncio.Future[Any]:
        change = adapter.runtime.table.update().values(heartbeat_at=1)
        waiter, holder = await adapter.actor(1).connect(), await adapter.actor(2).connect()
        await holder.execute(change)
        waiting = asyncio.ensure_future(waiter.execute(change))
        await waits()
        return waiting

    on_postgres(story)


def test_an_adapter_closes_quietly_over_sessions_that_have_just_ended(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def cut(*_: Any, **__: Any) -> None:
        raise BrokenPipeError

    async def story() -> None:
        adapter = PostgresAdapter(source=EMBEDDED)
        await adapter.open(BACKFILL)
        await adapter.actor(1).connect()
        with monkeypatch.context() as patch:
            patch.setattr(asyncpg.Connection, "close", cut)
            await adapter.close()

    asyncio.run(story())
    assert caplog.messages == []


@pytest.mark.parametrize("noticed", [False, True])
def test_an_adapter_closes_although_the_session_of_an_actor_died(noticed: bool) -> None:
    async def story(adapter: PostgresAdapter) -> None:
        connection = await adapter.actor(1).connect()
        await connection.execute(adapter.runtime.table.select())
        await end_sessions(f"{schema_of(adapter)}:w1")
        if noticed:
            with pytest.raises(DBAPIError):
                await connection.execute(adapter.runtime.table.select())

    on_postgres(story)


def test_a_schema_is_dropped_although_the_control_connection_was_cut() -> None:
    on_postgres(lambda adapter: end_sessions(schema_of(adapter)))


def test_a_schema_is_dropped_although_a_question_was_cancelled_on_its_way() -> None:
    async def story(adapter: PostgresAdapter) -> None:
        holder = await adapter.actor(1).connect()
        await holder.execute(text(f"LOCK TABLE {adapter.runtime.table.name} IN ACCESS EXCLUSIVE MODE"))
        question = asyncio.ensure_future(adapter.snapshot())
        await waits()
        question.cancel()
        with pytest.raises(asyncio.CancelledError):
            await question

    on_postgres(story)


@pytest.mark.parametrize("own", [False, True], ids=["a user's server", "our own server"])
def test_a_schema_that_cannot_be_dropped_is_named_with_the_first_fault(own: bool) -> None:
    async def story() -> None:
        database = PostgresDatabase(EMBEDDED if own else PostgresSource(dsn=acquire(EMBEDDED)))
        await database.open(jobs())
        await end_sessions(database.schema)
        database.engine = create_async_engine("postgresql+asyncpg://me@localhost:1/db", poolclass=NullPool)
        with pytest.raises(AdapterError) as fault:
            await database.close()
        await ask(f"DROP SCHEMA {database.schema} CASCADE")
        message = str(fault.value)
        assert "cannot be used: " in message
        if own:
            assert "by hand" not in message
        else:
            assert f"DROP SCHEMA {database.schema} CASCADE" in message
            assert "Connect call failed" in message

    asyncio.run(story())


# Opening.


class Stop(BaseException):
    """No exception that anybody translates."""


@DATABASES
def test_whatever_ends_an_opening_leaves_nothing(make: Callable[[], Database]) -> None:
    def stop(*_: Any, **__: Any) -> None:
        raise Stop

    async def story() -> None:
        before = await schemas()
        metadata = jobs()
        event.listen(metadata, "after_create", stop)
        with pytest.raises(Stop):
            await make().open(metadata)
        assert await schemas() == before

    asyncio.run(story())


def test_what_an_interrupted_opening_could_not_remove_is_named_in_a_note() -> None:
    class Clinging(SqliteDatabase):
        async def close(self) -> None:
            await super().close()
            raise AdapterError("a schema is left")

    def stop(*_: Any, **__: Any) -> None:
        raise Stop

    metadata = jobs()
    event.listen(metadata, "after_create", stop)
    with pytest.raises(Stop) as fault:
        asyncio.run(Clinging().open(metadata))
    assert fault.value.__notes__ == ["a schema is left"]


def test_a_cancelled_opening_leaves_no_schema() -> None:
    def cancel(*_: Any, **__: Any) -> None:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()

    async def story() -> None:
        before = await schemas()
        metadata = jobs()
        event.listen(metadata, "before_create", cancel)
        with pytest.raises(asyncio.CancelledError):
            await asyncio.ensure_future(PostgresDatabase(EMBEDDED).open(metadata))
        assert await schemas() == before

    asyncio.run(story())


@pytest.mark.parametrize("room", [1000, 8192], ids=lambda room: f"{room} bytes")
def test_a_full_disk_is_a_fault_without_a_statement(room: int) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (room, hard))
    try:
        message = refused(SqliteDatabase())
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert "make room there" in message
    assert "CREATE TABLE" not in message


def test_a_temporary_folder_that_is_not_there_is_a_fault(monkeypatch: pytest.MonkeyPatch, temporary: Path) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(temporary / "nowhere"))
    assert "set TMPDIR" in refused(SqliteDatabase())

    def none_usable() -> str:
        raise FileNotFoundError("no usable temporary directory found")

    monkeypatch.setattr(tempfile, "gettempdir", none_usable)
    assert "no usable temporary directory found" in refused(SqliteDatabase())


def test_a_file_system_without_a_write_ahead_log_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def in_memory(url: str, **options: Any) -> Any:
        return create_engine("sqlite://", **options)

    monkeypatch.setattr("fencepost.adapters.reference.sqlite.create_engine", in_memory)
    message = refused(SqliteDatabase())
    assert "'memory'" in message
    assert "set TMPDIR" in message


# Connecting.


def test_a_server_without_a_connection_left_says_so_whenever_it_happens() -> None:
    async def story() -> None:
        await ask("CREATE ROLE few LOGIN CONNECTION LIMIT 2")
        await ask("GRANT CREATE ON DATABASE postgres TO few")
        url = make_url(acquire(EMBEDDED)).set(username="few")
        database = PostgresDatabase(PostgresSource(dsn=url.render_as_string()))
        await database.open(jobs())
        await database.connect("w1")
        with pytest.raises(AdapterError, match="no connection left"):
            await database.connect("w2")
        await database.close()
        await ask("DROP OWNED BY few")
        await ask("DROP ROLE few")

    asyncio.run(story())


def test_a_folder_that_somebody_removed_is_a_fault(temporary: Path) -> None:
    async def story() -> None:
        database = SqliteDatabase()
        await database.open(jobs())
        (folder,) = temporary.iterdir()
        for file in folder.iterdir():
            file.unlink()
        folder.rmdir()
        with pytest.raises(AdapterError, match="set TMPDIR"):
            await database.connect("w1")
        await database.close()

    asyncio.run(story())


# What is asked.

UNFIT: list[tuple[QueueSpec, str]] = [
    (replace(BACKFILL, lease_seconds=29, heartbeat_seconds=10), r"29 s .* 10 s.*at least 3 .*LEASE-01"),
    (replace(BACKFILL, heartbeat_seconds=0), "must be positive"),
    (replace(BUILD, fence="generation"), "name no attempts.*'attempt_id'"),
]


@ADAPTERS
@pytest.mark.parametrize(("queue", "advice"), UNFIT)
def test_a_queue_that_the_runtime_cannot_serve_is_refused(
    make: Callable[[], ReferenceAdapter], queue: QueueSpec, advice: str
) -> None:
    with pytest.raises(AdapterError, match=advice):
        asyncio.run(make().open(queue))


@ADAPTERS
def test_a_sweep_of_no_rows_is_refused(make: Callable[[], ReferenceAdapter]) -> None:
    async def story() -> None:
        adapter = make()
        await adapter.open(BACKFILL)
        with pytest.raises(AdapterError, match="at least 1"):
            await adapter.actor(0).perform(c.Recover(0), 0)
        await adapter.close()

    asyncio.run(story())


def test_who_gave_no_dsn_is_not_told_to_look_at_it() -> None:
    gone = ConnectionRefusedError(111, "Connection refused")
    assert "run again" in postgres_advice(gone, "postgres@localhost", ours=True)
    assert "DSN" not in postgres_advice(gone, "postgres@localhost", ours=True)
    assert "DSN" in postgres_advice(gone, "me@db.example:5432/test", ours=False)
