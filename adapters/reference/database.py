"""The databases that the reference runtime runs on: one connection for each actor, one more for whoever watches.

It opens and removes a place of its own (a file, a schema), and answers what the server knows about open transactions,
locks and waiters. It must never know a queue, a clause or a verdict.
"""

from __future__ import annotations

import abc
import asyncio
import contextlib
import secrets
import sqlite3
import tempfile
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, ClassVar, Literal

import asyncpg
from fencepost.adapters.conflicts import is_conflict
from fencepost.adapters.contract import AdapterError
from sqlalchemy import Connection, DateTime, Dialect, Executable, Integer, MetaData, Row, Table, create_engine, event
from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine
from sqlalchemy.pool import NullPool
from sqlalchemy.types import TypeDecorator, TypeEngine
from sqlalchemy.util import await_only

from .server import PostgresSource, acquire, describe

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)
"""The instant of tick 0."""

CONNECT_SECONDS = 10.0
LOCK_SECONDS = 10.0
DEADLOCK_MILLISECONDS = tuple(500 * 4 ** max(rank - 1, 0) for rank in range(10))
"""By rank: each long against the time that all need to come to wait, and against the wait of the rank before."""
RESETS_PER_VACUUM = 256


class Instant(TypeDecorator[int]):
    """An instant in ticks of one second: `TIMESTAMPTZ` in UTC on PostgreSQL, the bare integer on SQLite.

    Columns compare in both; a tick added to a column in SQL works on SQLite only, so compute in Python.
    """

    impl = DateTime(timezone=True)
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        return dialect.type_descriptor(Integer() if dialect.name == "sqlite" else DateTime(timezone=True))

    def process_bind_param(self, value: int | None, dialect: Dialect) -> Any:
        if value is None or dialect.name == "sqlite":
            return value
        return EPOCH + timedelta(seconds=value)

    def process_result_value(self, value: Any, dialect: Dialect) -> int | None:
        if isinstance(value, datetime):
            return round((value - EPOCH).total_seconds())
        tick: int | None = value
        return tick


class Database(abc.ABC):
    """One place for tables, reached by many actors."""

    dialect: ClassVar[Literal["sqlite", "pg"]]
    row_locks: ClassVar[bool]
    """Rows stay locked until commit, so that they can be skipped (`FOR UPDATE SKIP LOCKED`)."""

    engine: AsyncEngine
    """What `connect` connects with; there after `open`. A gate listens to its `sync_engine`."""

    def __init__(self) -> None:
        self._connections: list[AsyncConnection] = []
        self._deletes: dict[Table, str] = {}

    @abc.abstractmethod
    async def open(self, metadata: MetaData) -> None:
        """Make a place of our own and the tables in it.

        Raises:
            AdapterError: the database cannot be reached or refuses; the message says what to do.
        """

    @abc.abstractmethod
    async def close(self) -> None:
        """Drop every connection and the place that `open` made, and nothing else."""

    @abc.abstractmethod
    async def reset(self, table: Table) -> None:
        """Delete all rows. Ids of later rows keep growing, or start anew.

        Raises:
            AdapterError: an actor's open transaction stands in the way.
        """

    @abc.abstractmethod
    async def read(self, statement: Executable) -> Sequence[Row[Any]]:
        """Rows of committed state, by a connection of nobody's; no transaction stays open."""

    @abc.abstractmethod
    async def probe(self, connections: Mapping[str, AsyncConnection]) -> tuple[int, int]:
        """How many of these idle connections have a transaction open, and how many locks they hold."""

    @abc.abstractmethod
    async def blocked(self, connections: Mapping[str, AsyncConnection]) -> frozenset[str]:
        """The names of those whose running statement waits for a lock that another of them holds."""

    @abc.abstractmethod
    async def show_conflicts(self, connection: AsyncConnection, rank: int) -> None:
        """From now on a write conflict on this connection shows at once; nobody retries it unseen. Of connections that
        deadlock, the one with the lowest rank (1, 2, 3 …) loses, so that a deadlock can be replayed.
        """

    async def connect(self, name: str) -> AsyncConnection:
        """A physical connection for the one actor of this name, who keeps it and may close it.

        Its transactions begin unseen by cursor events, with their first statement.
        """
        connection = await self.engine.connect()
        self._connections = [other for other in self._connections if not other.closed]
        self._connections.append(connection)
        return connection

    async def _close_connections(self) -> None:
        for connection in self._connections:
            with contextlib.suppress(Exception):  # whatever state an actor left it in, it is going away
                await connection.close()
        self._connections.clear()

    def _delete(self, table: Table) -> str:
        sql = self._deletes.get(table)
        if sql is None:
            sql = self._deletes[table] = str(table.delete().compile(dialect=self.engine.dialect))
        return sql


class SqliteDatabase(Database):
    """A file in a fresh directory, with a write-ahead log."""

    dialect = "sqlite"
    row_locks = False

    def __init__(self, busy_timeout: int = 5000) -> None:
        """`busy_timeout` in milliseconds; with 0 a conflict shows at once and nobody ever waits."""
        super().__init__()
        self._busy_seconds = busy_timeout / 1000
        self._directory: tempfile.TemporaryDirectory[str] | None = None

    async def open(self, metadata: MetaData) -> None:
        try:
            self._directory = tempfile.TemporaryDirectory(prefix="fencepost-sqlite-")
            file = Path(self._directory.name) / "queue.db"
            self._watch(file, metadata)
        except (OSError, SQLAlchemyError) as error:
            await self.close()
            raise AdapterError(
                f"no SQLite file can be made in {tempfile.gettempdir()} ({error}); make room there or set TMPDIR"
            ) from error
        self.engine = create_async_engine(
            f"sqlite+aiosqlite:///{file}",
            poolclass=NullPool,
            # The driver's own transactions leave a SELECT outside; ours begin before it.
            connect_args={"isolation_level": None, "timeout": self._busy_seconds},
        )
        event.listen(self.engine.sync_engine, "connect", _relax)
        event.listen(self.engine.sync_engine, "begin", _begin)

    def _watch(self, file: Path, metadata: MetaData) -> None:
        # A synchronous connection: with a write-ahead log a reader never waits, so a thread between would only cost.
        engine = create_engine(
            f"sqlite+pysqlite:///{file}",
            poolclass=NullPool,
            connect_args={"isolation_level": None, "timeout": 0, "check_same_thread": False},
        )
        event.listen(engine, "connect", _relax)
        self._observer: Connection = engine.connect()
        raw = self._observer.connection.driver_connection
        assert isinstance(raw, sqlite3.Connection)
        self._raw = raw
        self._raw.execute("PRAGMA journal_mode=WAL")
        metadata.create_all(self._observer, checkfirst=False)
        self._observer.rollback()

    async def close(self) -> None:
        await self._close_connections()
        if hasattr(self, "_observer"):
            self._observer.close()
        if self._directory is not None:
            self._directory.cleanup()
            self._directory = None

    async def reset(self, table: Table) -> None:
        try:
            self._raw.execute(self._delete(table))
        except sqlite3.OperationalError as error:
            if is_conflict(error):
                raise AdapterError("an actor's open transaction holds the write lock; roll it back first") from error
            raise

    async def read(self, statement: Executable) -> Sequence[Row[Any]]:
        rows = self._observer.execute(statement).fetchall()
        self._observer.rollback()
        return rows

    async def probe(self, connections: Mapping[str, AsyncConnection]) -> tuple[int, int]:
        """One write lock is all that there can be, and only a transaction can hold it."""
        transactions = sum(_driver(connection).in_transaction for connection in connections.values())
        return transactions, int(transactions > 0 and self._write_locked())

    async def show_conflicts(self, connection: AsyncConnection, rank: int) -> None:
        await _driver(connection).execute("PRAGMA busy_timeout = 0")

    async def blocked(self, connections: Mapping[str, AsyncConnection]) -> frozenset[str]:
        """Nobody: this database does not queue its writers, it refuses them."""
        return frozenset()

    def _write_locked(self) -> bool:
        try:
            self._raw.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError as error:
            if is_conflict(error):
                return True
            raise
        self._raw.execute("ROLLBACK")
        return False


class PostgresDatabase(Database):
    """A schema of our own on a server that others may use too."""

    dialect = "pg"
    row_locks = True

    def __init__(self, source: PostgresSource | None = None) -> None:
        """Without a source, the one that the environment names."""
        super().__init__()
        self._source = source
        self.schema = f"fencepost_{secrets.token_hex(6)}"
        self._control: AsyncConnection | None = None
        self._raw: Any = None
        self._lock = asyncio.Lock()  # one connection serves reset, read, probe and blocked, which may overlap
        self._resets = 0

    async def open(self, metadata: MetaData) -> None:
        url = acquire(self._source if self._source is not None else PostgresSource.from_environment())
        self.engine = create_async_engine(
            url,
            poolclass=NullPool,
            connect_args={
                "timeout": CONNECT_SECONDS,
                "server_settings": {"search_path": self.schema, "application_name": self.schema},
            },
        )
        try:
            self._control = await self.engine.connect()
            await self._control.execution_options(isolation_level="AUTOCOMMIT")
            self._raw = _driver(self._control)
            await self._raw.execute(f"SET lock_timeout = '{LOCK_SECONDS}s'")
            await self._raw.execute(f"CREATE SCHEMA {self.schema}")
            await self._control.run_sync(metadata.create_all, checkfirst=False)
            await self._control.rollback()
        except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError, SQLAlchemyError) as error:
            with contextlib.suppress(AdapterError):  # the first fault is the one to tell
                await self.close()
            raise AdapterError(_advice(error, describe(url))) from error

    async def connect(self, name: str) -> AsyncConnection:
        connection = await super().connect(name)
        label = f"{self.schema}:{name}"
        await _driver(connection).execute("SELECT set_config('application_name', $1, false)", label)
        return connection

    async def close(self) -> None:
        control, self._control = self._control, None
        if control is None:
            return
        try:
            # An actor may hold locks on the tables, or wait for one: its session ends on the server first.
            pids = [_pid(connection) for connection in self._connections if not connection.closed]
            await self._raw.execute("SELECT pg_terminate_backend(pid) FROM unnest($1::int[]) AS pid", pids)
            await self._raw.execute(f"DROP SCHEMA IF EXISTS {self.schema} CASCADE")
        except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError) as error:
            raise AdapterError(f"schema {self.schema} could not be dropped; drop it by hand ({error})") from error
        finally:
            await self._close_connections()
            await control.close()
            await self.engine.dispose()

    async def reset(self, table: Table) -> None:
        """By DELETE, seven times as fast as TRUNCATE. A vacuum now and then keeps long runs from slowing down, since
        every scan passes what the dead rows left behind.
        """
        async with self._lock:
            try:
                await self._raw.execute(self._delete(table))
            except asyncpg.LockNotAvailableError as error:
                raise AdapterError("an actor's open transaction holds rows; roll it back first") from error
            self._resets += 1
            if self._resets % RESETS_PER_VACUUM == 0:
                await self._raw.execute(f"VACUUM {self.schema}.{table.name}")

    async def read(self, statement: Executable) -> Sequence[Row[Any]]:
        assert self._control is not None
        async with self._lock:
            rows = (await self._control.execute(statement)).fetchall()
            await self._control.rollback()
            return rows

    async def probe(self, connections: Mapping[str, AsyncConnection]) -> tuple[int, int]:
        """The locks counted are those on rows (through the transaction's id) and tables, and advisory ones."""
        row = await self._ask(_PROBE, [_pid(connection) for connection in connections.values()])
        return row[0]["transactions"], row[0]["locks"]

    async def show_conflicts(self, connection: AsyncConnection, rank: int) -> None:
        """Nothing is retried here; whoever first looks for a deadlock that he is in loses. A role that is no superuser
        may not say when, and then whoever waited first loses, by a hair.
        """
        with contextlib.suppress(asyncpg.InsufficientPrivilegeError):
            await _driver(connection).execute(f"SET deadlock_timeout = {DEADLOCK_MILLISECONDS[rank]}")

    async def blocked(self, connections: Mapping[str, AsyncConnection]) -> frozenset[str]:
        names = {_pid(connection): name for name, connection in connections.items()}
        return frozenset(names[row["pid"]] for row in await self._ask(_BLOCKED, list(names)))

    async def _ask(self, question: str, pids: list[int]) -> Any:
        async with self._lock:
            return await self._raw.fetch(question, pids)


_PROBE = """
WITH idle AS (SELECT pid, state FROM pg_stat_activity WHERE pid = ANY($1::int[]) AND state <> 'active')
SELECT (SELECT count(*) FROM idle WHERE state LIKE 'idle in transaction%') AS transactions,
       (SELECT count(*) FROM pg_locks JOIN idle USING (pid)
        WHERE granted AND locktype IN ('relation', 'tuple', 'transactionid', 'advisory')) AS locks
"""

_BLOCKED = "SELECT pid FROM unnest($1::int[]) AS pid WHERE pg_blocking_pids(pid) && $1::int[]"


def _driver(connection: AsyncConnection) -> Any:
    """The driver's own connection, also while a statement of it is running."""
    assert connection.sync_connection is not None
    return connection.sync_connection.connection.driver_connection


def _pid(connection: AsyncConnection) -> int:
    pid: int = _driver(connection).get_server_pid()
    return pid


def _relax(connection: Any, record: Any) -> None:
    """Leave flushing to the operating system: a killed process loses nothing by it, and the file outlives no run."""
    cursor = connection.cursor()
    cursor.execute("PRAGMA synchronous=OFF")
    cursor.close()


def _begin(connection: Connection) -> None:
    await_only(connection.connection.driver_connection.execute("BEGIN"))  # type: ignore[union-attr]


def _advice(error: BaseException, server: str) -> str:
    cause = error.orig if isinstance(error, DBAPIError) and error.orig is not None else error
    state = getattr(cause, "sqlstate", None) or ""
    if state.startswith("28"):
        what = "refuses the log-in; check user and password of the DSN"
    elif state == "3D000":
        what = "has no such database; create it or correct the DSN"
    elif state == "42501":
        what = "forbids this role to make a schema; GRANT CREATE ON DATABASE to it, or use another role"
    elif state == "53300":
        what = "has no connection left; raise max_connections or run fewer processes"
    elif isinstance(cause, OSError):
        what = "cannot be reached; check host and port of the DSN, and that the server is running"
    else:
        what = f"cannot be used: {cause}"
    return f"PostgreSQL at {server} {what}"
