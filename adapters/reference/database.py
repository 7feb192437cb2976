"""What the reference runtime asks of a database: one connection for each actor, one more for whoever watches.

A database opens and removes a place of its own (a file, a schema), and answers what the server knows about open
transactions, locks and waiters. It must never know a queue, a clause or a verdict.
"""

from __future__ import annotations

import abc
import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, Literal

from fencepost.adapters.contract import AdapterError
from sqlalchemy import Executable, MetaData, Row, Table
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from .advice import FAULTS


class Database(abc.ABC):
    """One place for tables, reached by many actors."""

    dialect: ClassVar[Literal["sqlite", "pg"]]

    engine: AsyncEngine
    """What `connect` connects with; there after `open`. A gate listens to its `sync_engine`."""

    def __init__(self) -> None:
        self._connections: list[AsyncConnection] = []
        self._deletes: dict[Table, str] = {}

    async def open(self, metadata: MetaData) -> None:
        """Make a place of our own and the tables in it. However this fails, nothing stays; what could not be removed
        is named in a note on the fault.

        Raises:
            AdapterError: the database cannot be reached or refuses; the message says what to do.
        """
        try:
            with self._advised():
                await self._make(metadata)
        except BaseException as fault:
            try:
                await self.close()
            except AdapterError as left:
                fault.add_note(str(left))
            raise

    @abc.abstractmethod
    async def _make(self, metadata: MetaData) -> None:
        """What `open` does; it may raise any of `FAULTS`."""

    @abc.abstractmethod
    async def close(self) -> None:
        """Drop every connection and the place that `open` made, and nothing else.

        Raises:
            AdapterError: the place could not be removed; the message says what is left.
        """

    @abc.abstractmethod
    async def reset(self, *tables: Table) -> None:
        """Delete all rows of these tables. Ids of later rows keep growing, or start anew.

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
        deadlock, the one with the lowest rank (1, 2, 3 … 9) loses, so that a deadlock can be replayed.
        """

    async def connect(self, name: str) -> AsyncConnection:
        """A physical connection for the one actor of this name, who keeps it and may close it.

        Its transactions begin unseen by cursor events, with their first statement.

        Raises:
            AdapterError: there is none to be had; the message says what to do.
        """
        with self._advised():
            connection = await self.engine.connect()
            self._connections = [other for other in self._connections if not other.closed]
            self._connections.append(connection)
        return connection

    @contextlib.contextmanager
    def _advised(self) -> Iterator[None]:
        try:
            yield
        except FAULTS as error:
            raise AdapterError(self._advice(error)) from error

    @abc.abstractmethod
    def _advice(self, error: BaseException) -> str:
        """The message that says what to do about one of `FAULTS`."""

    async def _close_connections(self) -> None:
        for connection in self._connections:
            with contextlib.suppress(Exception):  # whatever state an actor left it in, it is going away
                await connection.invalidate()  # so that nothing is rolled back on a session that is gone
                await connection.close()
        self._connections.clear()

    def _delete(self, table: Table) -> str:
        sql = self._deletes.get(table)
        if sql is None:
            sql = self._deletes[table] = str(table.delete().compile(dialect=self.engine.dialect))
        return sql


def driver_of(connection: AsyncConnection) -> Any:
    """The driver's own connection, also while a statement of it is running."""
    assert connection.sync_connection is not None
    return connection.sync_connection.connection.driver_connection
