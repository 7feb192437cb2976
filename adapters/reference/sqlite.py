"""The reference runtime on SQLite: a file with a write-ahead log, in a folder of its own."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import aiosqlite
from fencepost.adapters.conflicts import is_conflict
from fencepost.adapters.contract import AdapterError
from sqlalchemy import Connection, Executable, MetaData, Row, Table, create_engine, event
from sqlalchemy.ext.asyncio import AsyncConnection, create_async_engine
from sqlalchemy.pool import NullPool
from sqlalchemy.util import await_only

from .advice import sqlite_advice
from .database import Database, driver_of
from .folder import own_folder


class SqliteDatabase(Database):
    """A file in a fresh directory, with a write-ahead log."""

    dialect = "sqlite"

    def __init__(self, busy_timeout: int = 5000) -> None:
        """`busy_timeout` in milliseconds; with 0 a conflict shows at once and nobody ever waits."""
        super().__init__()
        self._busy_seconds = busy_timeout / 1000
        self._folder = "a temporary folder"
        self._made = contextlib.ExitStack()

    async def _make(self, metadata: MetaData) -> None:
        folder = self._made.enter_context(own_folder())
        self._folder = str(folder.parent)
        file = folder / "queue.db"
        self._watch(file, metadata)
        self.engine = create_async_engine(
            f"sqlite+aiosqlite:///{file}", poolclass=NullPool, async_creator=partial(_connect, file, self._busy_seconds)
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
        self._observer: Connection = self._made.enter_context(engine.connect())
        raw = self._observer.connection.driver_connection
        assert isinstance(raw, sqlite3.Connection)
        self._raw = raw
        (mode,) = self._raw.execute("PRAGMA journal_mode=WAL").fetchone()
        if mode != "wal":
            raise AdapterError(
                f"SQLite keeps no write-ahead log in {self._folder} (its journal mode stays {mode!r}), and without one "
                "readers and writers wait for each other; set TMPDIR to a folder on a local disk"
            )
        metadata.create_all(self._observer, checkfirst=False)
        self._observer.rollback()

    def _advice(self, error: BaseException) -> str:
        return sqlite_advice(error, self._folder)

    async def close(self) -> None:
        await self._close_connections()
        with self._advised():
            self._made.close()

    async def reset(self, *tables: Table) -> None:
        try:
            for table in tables:
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
        transactions = sum(driver_of(connection).in_transaction for connection in connections.values())
        return transactions, int(transactions > 0 and self._write_locked())

    async def show_conflicts(self, connection: AsyncConnection, rank: int) -> None:
        await driver_of(connection).execute("PRAGMA busy_timeout = 0")

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


class _InPlace(aiosqlite.Connection):
    """Runs every call in the thread of whoever makes it instead of one of its own.

    Handing a call over and its answer back takes many times as long as the call. And there is nobody whom a call that
    waits for a lock could keep from going on: no two actors of one event loop have a statement under way.
    """

    async def _execute(self, fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        return fn(*args, **kwargs)


async def _connect(file: Path, busy_seconds: float) -> aiosqlite.Connection:
    def connect() -> sqlite3.Connection:
        # The driver's own transactions leave a SELECT outside; ours begin before it.
        return sqlite3.connect(file, busy_seconds, isolation_level=None, check_same_thread=False)

    return await _InPlace(connect, iter_chunk_size=64)


def _relax(connection: Any, record: Any) -> None:
    """Leave flushing to the operating system: a killed process loses nothing by it, and the file outlives no run."""
    cursor = connection.cursor()
    cursor.execute("PRAGMA synchronous=OFF")
    cursor.close()


def _begin(connection: Connection) -> None:
    await_only(connection.connection.driver_connection.execute("BEGIN"))  # type: ignore[union-attr]
