"""The databases of the reference runtime: what they make they remove, what they answer the server knows."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from fencepost.adapters.contract import AdapterError
from fencepost.adapters.reference.database import Database, Instant, PostgresDatabase, SqliteDatabase, is_conflict
from fencepost.adapters.reference.server import DSN_VARIABLE, IMAGE_VARIABLE, PostgresSource, acquire
from sqlalchemy import Column, Integer, MetaData, String, Table, select, text
from sqlalchemy.engine import make_url
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncConnection, create_async_engine

METADATA = MetaData()
JOBS = Table(
    "jobs", METADATA, Column("id", Integer, primary_key=True), Column("status", String), Column("due", Instant)
)
EMBEDDED = PostgresSource()
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


@BOTH
def test_a_reset_is_refused_while_an_open_transaction_holds_rows(
    make: Callable[[], Database], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fencepost.adapters.reference.database.LOCK_SECONDS", 0.001)

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
    async def schemas() -> set[str]:
        engine = create_async_engine(acquire(EMBEDDED))
        async with engine.connect() as connection:
            names = await connection.scalars(text("SELECT nspname FROM pg_namespace"))
            found = set(names)
        await engine.dispose()
        return found

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
            while not await database.blocked({"w2": waiter}):
                assert not waiting.done()
        await database.close()
        [answer] = await asyncio.gather(waiting, return_exceptions=True)
        assert isinstance(answer, Exception)

    asyncio.run(main())


def test_a_sqlite_database_leaves_no_directory() -> None:
    made: list[Path] = []

    async def story(database: SqliteDatabase) -> None:
        made.extend(Path(row.file).parent for row in await database.read(text("SELECT file FROM pragma_database_list")))
        assert made[0].is_dir()

    tell(SqliteDatabase(), story)
    assert not made[0].exists()


def open_with(dsn: str) -> str:
    """The message of the fault that opening a database by this DSN ends with."""
    with pytest.raises(AdapterError) as error:
        asyncio.run(PostgresDatabase(PostgresSource(dsn=dsn)).open(METADATA))
    return str(error.value)


@pytest.mark.parametrize(
    ("dsn", "advice"),
    [
        ("postgresql://me:hush@localhost:1/db", "check host and port"),
        ("postgresql://me:hush@host.invalid/db", "check host and port"),
        ("postgresql://me:hush@localhost:54x2/db", "cannot be read"),
        ("not a dsn with hush in it", "cannot be read"),
        ("mysql://me:hush@localhost/db", "needs postgresql"),
        ("postgresql://me:hush@localhost/db?colour=hush", "colour"),
    ],
)
def test_a_wrong_dsn_is_a_fault_that_says_what_to_do_and_not_the_password(dsn: str, advice: str) -> None:
    message = open_with(dsn)
    assert advice in message
    assert "hush" not in message


def test_a_server_that_refuses_says_what_to_do() -> None:
    async def make_roles() -> None:
        engine = create_async_engine(acquire(EMBEDDED), isolation_level="AUTOCOMMIT")
        async with engine.connect() as connection:
            await connection.execute(text("CREATE ROLE powerless LOGIN PASSWORD 'hush'"))
        await engine.dispose()

    asyncio.run(make_roles())
    url = make_url(acquire(EMBEDDED)).set(username="powerless", password="hush")
    messages = [
        open_with(changed.render_as_string(hide_password=False))
        for changed in (url, url.set(database="nowhere"), url.set(username="nobody_known"))
    ]
    for message, advice in zip(
        messages, ("GRANT CREATE", "create it or correct", "check user and password"), strict=True
    ):
        assert advice in message
        assert "hush" not in message


def test_the_environment_names_the_source() -> None:
    assert PostgresSource.from_environment({}) == EMBEDDED
    assert PostgresSource.from_environment({DSN_VARIABLE: ""}) == EMBEDDED
    assert PostgresSource.from_environment({DSN_VARIABLE: "postgresql://h/d"}) == PostgresSource(dsn="postgresql://h/d")
    assert PostgresSource.from_environment({IMAGE_VARIABLE: "postgres:17"}) == PostgresSource(image="postgres:17")
    with pytest.raises(AdapterError, match="at most one"):
        acquire(PostgresSource(dsn="postgresql://h/d", image="postgres:17"))


def test_an_image_without_a_docker_daemon_is_a_fault_that_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere/docker.sock")
    with pytest.raises(AdapterError, match="Docker daemon is running") as error:
        acquire(PostgresSource(image="postgres:17"))
    assert DSN_VARIABLE in str(error.value)


CHILD = """
import json, sys
from fencepost.adapters.reference.server import PostgresSource, acquire
if sys.argv[1] == "early":
    print("{}", flush=True)
print(json.dumps({"url": acquire(PostgresSource())}), flush=True)
if sys.argv[1] != "exit":
    sys.stdin.read()
"""


def start_child(how: str, temporary: Path) -> subprocess.Popen[str]:
    """A process that starts an embedded server of its own in this folder."""
    return subprocess.Popen(
        [sys.executable, "-c", CHILD, how],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"TMPDIR": str(temporary)},
    )


@pytest.fixture
def temporary() -> Iterator[Path]:
    """An empty folder that any user can reach, which pytest's own are not."""
    with tempfile.TemporaryDirectory(prefix="fencepost-test-") as name:
        folder = Path(name)
        folder.chmod(0o711)
        yield folder


def servers_of(process: psutil.Process) -> list[psutil.Process]:
    """The watchdog, the server, and all that the server started."""
    found = process.children(recursive=True)
    assert any(child.name() == "postgres" for child in found)
    return found


@pytest.mark.parametrize("ending", [signal.SIGKILL, signal.SIGTERM, None], ids=["killed", "terminated", "exits"])
def test_a_process_leaves_no_server_and_no_directory_however_it_ends(
    ending: signal.Signals | None, temporary: Path
) -> None:
    with start_child("stay", temporary) as child:
        assert child.stdout is not None
        url = make_url(json.loads(child.stdout.readline())["url"])
        directory = Path(str(url.query["host"]))
        servers = servers_of(psutil.Process(child.pid))
        assert directory.is_dir()
        if ending is None:
            child.communicate()
        else:
            child.send_signal(ending)
        _, alive = psutil.wait_procs(servers, timeout=30)
        assert alive == []
        assert not directory.exists()


def test_a_process_killed_while_its_server_starts_leaves_nothing(temporary: Path) -> None:
    with start_child("early", temporary) as child:
        assert child.stdout is not None
        child.stdout.readline()
        process = psutil.Process(child.pid)
        while not (started := process.children(recursive=True)):
            assert child.poll() is None
        child.kill()
        _, alive = psutil.wait_procs(started, timeout=30)
        assert alive == []
    assert list(temporary.iterdir()) == []


def test_servers_of_several_processes_are_apart(temporary: Path) -> None:
    with start_child("stay", temporary) as first, start_child("stay", temporary) as second:
        urls = set()
        for child in (first, second):
            assert child.stdout is not None
            urls.add(json.loads(child.stdout.readline())["url"])
        assert len(urls | {acquire(EMBEDDED)}) == 3
        first.communicate()
        second.communicate()
    assert list(temporary.iterdir()) == []


def test_a_forked_child_neither_ends_its_parents_server_nor_keeps_it() -> None:
    url = acquire(EMBEDDED)
    child = os.fork()
    if child == 0:
        os._exit(0 if acquire(EMBEDDED) != url else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert acquire(EMBEDDED) == url
    tell(PostgresDatabase(EMBEDDED), lambda database: database.read(select(JOBS)))
