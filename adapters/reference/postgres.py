"""The reference runtime on PostgreSQL: a schema of its own on a server that others may use too."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from collections.abc import Mapping, Sequence
from typing import Any

import asyncpg
from fencepost.adapters.contract import AdapterError
from sqlalchemy import Executable, MetaData, Row, Table
from sqlalchemy.ext.asyncio import AsyncConnection, create_async_engine
from sqlalchemy.pool import NullPool

from .advice import FAULTS, cause_of, postgres_advice
from .database import Database, driver_of
from .server import PostgresSource, acquire, describe

CONNECT_SECONDS = 10.0
LOCK_SECONDS = 10.0
DEADLOCK_MILLISECONDS = tuple(500 + 1500 * max(rank - 1, 0) for rank in range(10))
"""By rank: the first, and each one's distance to the next, are long against the time that all need to come to wait."""
RESETS_PER_VACUUM = 256


class PostgresDatabase(Database):
    """A schema of our own on a server that others may use too."""

    dialect = "pg"

    def __init__(self, source: PostgresSource | None = None) -> None:
        """Without a source, the one that the environment names."""
        super().__init__()
        self._source = source if source is not None else PostgresSource.from_environment()
        self.schema = f"fencepost_{secrets.token_hex(6)}"
        self._server = "an unknown server"
        self._control: AsyncConnection | None = None
        self._raw: Any = None
        self._lock = asyncio.Lock()  # one connection serves reset, read, probe and blocked, which may overlap
        self._resets = 0

    async def _make(self, metadata: MetaData) -> None:
        url = acquire(self._source)
        self._server = describe(url)
        self.engine = create_async_engine(
            url,
            poolclass=NullPool,
            connect_args={
                "timeout": CONNECT_SECONDS,
                "server_settings": {"search_path": self.schema, "application_name": self.schema},
            },
        )
        self._control = await self.engine.connect()
        self._raw = driver_of(self._control)
        await self._control.execution_options(isolation_level="AUTOCOMMIT")
        await self._raw.execute(f"SET lock_timeout = '{LOCK_SECONDS}s'")
        await self._raw.execute(f"CREATE SCHEMA {self.schema}")
        await self._control.run_sync(metadata.create_all, checkfirst=False)
        await self._control.rollback()

    def _advice(self, error: BaseException) -> str:
        return postgres_advice(error, self._server, ours=self._source.dsn is None)

    async def connect(self, name: str) -> AsyncConnection:
        connection = await super().connect(name)
        label = f"{self.schema}:{name}"
        with self._advised():
            await driver_of(connection).execute("SELECT set_config('application_name', $1, false)", label)
        return connection

    async def close(self) -> None:
        control, self._control = self._control, None
        if control is None:
            return
        self._connections.append(control)
        try:
            await self._drop(self._raw)
        except FAULTS as fault:
            await self._close_connections()  # the server may have no room for one more
            await self._drop_anew(fault)
        finally:
            await self._close_connections()

    async def _drop(self, raw: Any) -> None:
        """Actors may hold locks on the tables, or wait for one: their sessions end on the server first."""
        await raw.execute(f"SET lock_timeout = '{LOCK_SECONDS}s'")
        await raw.execute(_TERMINATE, self.schema)
        await raw.execute(f"DROP SCHEMA IF EXISTS {self.schema} CASCADE")

    async def _drop_anew(self, fault: BaseException) -> None:
        """The control connection was cut, or is in the middle of what was cancelled: drop over a fresh one."""
        try:
            async with self.engine.connect() as fresh:
                await self._drop(driver_of(fresh))
        except FAULTS as error:
            left = ""
            if self._source.dsn is not None:  # what a server of our own holds is gone with it
                left = (
                    f". A fresh connection failed too ({cause_of(error)}), so schema {self.schema} may be left there; "
                    f"drop it by hand: DROP SCHEMA {self.schema} CASCADE"
                )
            raise AdapterError(self._advice(fault) + left) from fault

    async def reset(self, *tables: Table) -> None:
        """By DELETE, seven times as fast as TRUNCATE. A vacuum now and then keeps long runs from slowing down, since
        every scan passes what the dead rows left behind.
        """
        async with self._lock:
            try:
                for table in tables:
                    await self._raw.execute(self._delete(table))
            except asyncpg.LockNotAvailableError as error:
                raise AdapterError("an actor's open transaction holds rows; roll it back first") from error
            self._resets += 1
            if self._resets % RESETS_PER_VACUUM == 0:
                for table in tables:
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
            await driver_of(connection).execute(f"SET deadlock_timeout = {DEADLOCK_MILLISECONDS[rank]}")

    async def blocked(self, connections: Mapping[str, AsyncConnection]) -> frozenset[str]:
        names = {_pid(connection): name for name, connection in connections.items()}
        return frozenset(names[row["pid"]] for row in await self._ask(_BLOCKED, list(names)))

    async def _ask(self, question: str, pids: list[int]) -> Any:
        async with self._lock:
            return await self._raw.fetch(question, pids)


_TERMINATE = """
SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE starts_with(application_name, $1) AND pid <> pg_backend_pid()
"""

_PROBE = """
WITH idle AS (SELECT pid, state FROM pg_stat_activity WHERE pid = ANY($1::int[]) AND state <> 'active')
SELECT (SELECT count(*) FROM idle WHERE state LIKE 'idle in transaction%') AS transactions,
       (SELECT count(*) FROM pg_locks JOIN idle USING (pid)
        WHERE granted AND locktype IN ('relation', 'tuple', 'transactionid', 'advisory')) AS locks
"""

_BLOCKED = "SELECT pid FROM unnest($1::int[]) AS pid WHERE pg_blocking_pids(pid) && $1::int[]"


def _pid(connection: AsyncConnection) -> int:
    pid: int = driver_of(connection).get_server_pid()
    return pid
