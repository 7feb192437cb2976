"""The reference runtime as fencepost's adapters `sqlite` and `pg`: connections, roll-backs, snapshots.

It gives each actor a connection of its own and turns what a database raises into outcomes. It must never know what a
verb means.
"""

from __future__ import annotations

import abc
from collections.abc import Awaitable, Callable, Collection
from typing import Any, ClassVar, TypeVar

from fencepost.adapters.conflicts import is_conflict
from fencepost.adapters.contract import Actor, Adapter, AdapterError, Capabilities, HookRun
from fencepost.model import commands as c
from fencepost.model import outcomes as o
from fencepost.model.queues import QueueSpec
from sqlalchemy import ColumnElement, MetaData, Select, Table, event, null, select
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncConnection

from .artifacts import put_artifact, read_artifact
from .claims import claim
from .database import Database
from .postgres import PostgresDatabase
from .rules import CONTRACT, Rules
from .runtime import Runtime
from .server import PostgresSource
from .sqlite import SqliteDatabase
from .sweep import sweep
from .table import columns_of, objects_of, table_for

C = TypeVar("C", bound=c.Command)
Verb = Callable[[AsyncConnection, C, int], Awaitable[o.Outcome]]

_ROW: tuple[tuple[str, ...], ...] = (
    ("status",), ("worker_id",), ("lease_expires_at",), ("heartbeat_at",), ("started_at",), ("finished_at",),
    ("attempt_count",), ("max_attempts",), ("lease_generation", "attempt_id"), ("next_attempt_at",),
    ("cancel_requested_at",), ("error_code",), ("deadline_at",),
)  # fmt: skip
"""The standard columns in the order of `Row`'s fields, all but the last one; of several the queue has one at most."""


class ReferenceAdapter(Adapter):
    """The reference runtime on one database, under any rules."""

    def __init__(self, rules: Rules = CONTRACT) -> None:
        self.rules = rules
        self.runtime: Runtime
        self._opened: Database | None = None
        self._actors: dict[int, ReferenceActor] = {}

    @abc.abstractmethod
    def _database(self) -> Database:
        """The database to open."""

    @property
    def database(self) -> Database:
        """What the queue stands on while it is open.

        Raises:
            AdapterError: it is not.
        """
        if self._opened is None:
            raise AdapterError(f"the adapter {self.name!r} is not open; await open(queue) first")
        return self._opened

    async def open(self, queue: QueueSpec) -> None:
        """Make the queue's table in a place of its own, and build the statements once.

        Raises:
            AdapterError: the runtime cannot serve such a queue, or the database cannot be had.
        """
        self._check(queue)
        metadata = MetaData()
        table = table_for(queue, metadata)
        database = self._database()
        self.runtime = Runtime(queue, table, database.dialect, self.rules)
        self._tables = [each for each in (table, objects_of(queue, table)) if each is not None]
        self._snapshot = _rows(queue, table)
        await database.open(metadata)
        self._opened = database

    def _check(self, queue: QueueSpec) -> None:
        if queue.artifacts and queue.fence != "attempt_id":
            raise AdapterError(
                f"queue {queue.key!r} stores artifacts by attempt, and its claims name no attempts; "
                "give it the fence 'attempt_id'"
            )
        if not self.rules.lasts(queue.lease_seconds, queue.heartbeat_seconds):
            raise AdapterError(
                f"queue {queue.key!r} has a lease of {queue.lease_seconds} s and a heartbeat every "
                f"{queue.heartbeat_seconds} s; the heartbeat must be positive and the lease last at least "
                f"{self.rules.lease_ratio} of them (LEASE-01)"
            )

    async def close(self) -> None:
        """Drop the actors' connections and the place that `open` made; before `open` there is nothing to drop.

        Raises:
            AdapterError: the place could not be removed; the message says what is left.
        """
        self._actors.clear()
        database, self._opened = self._opened, None
        if database is not None:
            await database.close()  # it owns the connections, and knows how to end one that waits for a lock

    async def reset(self) -> None:
        """Delete all jobs; transactions that a faulty runtime left open are rolled back first."""
        for connection in self.connections().values():
            if connection.in_transaction():
                await connection.rollback()
        await self.database.reset(*self._tables)
        self.runtime.restart()

    async def snapshot(self) -> dict[c.JobId, o.Row]:
        """All committed jobs in the order of their ids."""
        make = o.Row._make
        return {row[0]: make(row[1:]) for row in await self.database.read(self._snapshot)}

    def actor(self, worker: int) -> ReferenceActor:
        """The client that acts as this worker."""
        known = self._actors.get(worker)
        if known is None:
            known = self._actors[worker] = ReferenceActor(self, worker)
        return known

    async def connection(self, worker: int) -> AsyncConnection:
        """This actor's connection, on which a write conflict shows at once."""
        connection = await self.actor(worker).connect()
        await self.database.show_conflicts(connection, worker)
        return connection

    async def blocked(self, workers: Collection[int]) -> frozenset[int]:
        """Those of these actors that wait for a lock which another of them holds."""
        actors = {self._actors[worker].name: worker for worker in workers if worker in self._actors}
        connections = {name: on for name, on in self.connections().items() if name in actors}
        return frozenset(actors[name] for name in await self.database.blocked(connections))

    def connections(self) -> dict[str, AsyncConnection]:
        """The actors' open connections by actor name."""
        return {actor.name: actor.connection for actor in self._actors.values() if actor.connection is not None}


class SqliteAdapter(ReferenceAdapter):
    """On SQLite: a file with a write-ahead log."""

    name = "sqlite"
    capabilities: ClassVar[Capabilities] = Capabilities(gate="sqlite")

    def __init__(self, *, rules: Rules = CONTRACT, busy_timeout: int = 5000) -> None:
        """`busy_timeout` in milliseconds; with 0 a write conflict shows at once."""
        super().__init__(rules)
        self._busy_timeout = busy_timeout

    def _database(self) -> Database:
        return SqliteDatabase(self._busy_timeout)


class PostgresAdapter(ReferenceAdapter):
    """On PostgreSQL: a schema of its own on the server that the source or the environment names."""

    name = "pg"
    capabilities: ClassVar[Capabilities] = Capabilities(gate="pg", row_locks=True)

    def __init__(self, *, rules: Rules = CONTRACT, source: PostgresSource | None = None) -> None:
        super().__init__(rules)
        self._source = source

    def _database(self) -> Database:
        return PostgresDatabase(self._source)


class ReferenceActor(Actor):
    """One client with one physical connection, opened at its first verb and again at the first one after a crash."""

    def __init__(self, adapter: ReferenceAdapter, worker: int) -> None:
        self.name = f"w{worker}"
        self.connection: AsyncConnection | None = None
        self._adapter = adapter
        self._changing = 0
        """Data-changing statements that the driver was handed so far."""

    async def connect(self) -> AsyncConnection:
        """This actor's connection; who schedules statements opens it before they count."""
        if self.connection is None:
            self.connection = await self._adapter.database.connect(self.name)
            event.listen(self.connection.sync_connection, "before_cursor_execute", self._count)
        return self.connection

    def _count(self, connection: Any, cursor: Any, statement: str, *rest: Any) -> None:
        self._changing += statement.lstrip().startswith(_CHANGING)

    async def close(self) -> None:
        """Drop the connection; what it had not committed is rolled back."""
        connection, self.connection = self.connection, None
        if connection is not None:
            await connection.close()

    async def enqueue(self, command: c.Enqueue, now: int) -> o.Outcome:
        return await self._run(self._runtime.enqueue, command, now)

    async def claim(self, command: c.Claim, now: int) -> o.Outcome:
        if command.job is not None and not self._runtime.spec.claims_by_id:
            raise AdapterError(f"queue {self._runtime.spec.key!r} has no claim of one job; give no job")
        hook = _hook(command.hook)
        return await self._run(lambda on, asked, at: claim(self._runtime, on, asked, at, hook), command, now)

    async def renew(self, command: c.Renew, now: int) -> o.Outcome:
        return await self._run(self._runtime.renew, command, now)

    async def complete(self, command: c.Complete, now: int) -> o.Outcome:
        return await self._run(self._runtime.complete, command, now)

    async def fail(self, command: c.Fail, now: int) -> o.Outcome:
        return await self._run(self._runtime.fail, command, now)

    async def skip(self, command: c.Skip, now: int) -> o.Outcome:
        return await self._run(self._runtime.skip, command, now)

    async def put_artifact(self, command: c.PutArtifact, now: int) -> o.Outcome:
        return await self._run(lambda on, asked, at: put_artifact(self._runtime, on, asked, at), command, now)

    async def read_artifact(self, command: c.ReadArtifact, now: int) -> o.Outcome:
        return await self._run(lambda on, asked, at: read_artifact(self._runtime, on, asked, at), command, now)

    async def plant(self, command: c.Plant, now: int) -> o.Outcome:
        return await self._run(self._runtime.plant, command, now)

    async def release(self, command: c.Release, now: int) -> o.Outcome:
        return await self._run(self._runtime.release, command, now)

    async def acknowledge(self, command: c.Acknowledge, now: int) -> o.Outcome:
        return await self._run(self._runtime.acknowledge, command, now)

    async def checkpoint(self, command: c.Checkpoint, now: int) -> o.Outcome:
        return await self._run(self._runtime.checkpoint, command, now)

    async def request_cancel(self, command: c.RequestCancel, now: int) -> o.Outcome:
        return await self._run(self._runtime.request_cancel, command, now)

    async def atomically(self, command: c.Atomically, now: int) -> o.Outcome:
        return await self._run(self._runtime.atomically, command, now)

    async def recover(self, command: c.Recover, now: int) -> o.Outcome:
        if command.batch < 1:
            raise AdapterError(f"a sweep cannot take {command.batch} rows per transaction; give a batch of at least 1")
        hook = _hook(command.hook)
        return await self._swept(lambda on, _, at: sweep(self._runtime, on, at, command.batch, hook), command, now)

    async def tick(self, command: c.Tick, now: int) -> o.Outcome:
        if not self._runtime.rules.tick_sweeps:
            return NOTHING_SWEPT
        return await self._swept(lambda on, _, at: sweep(self._runtime, on, at), command, now)

    async def start_up(self, command: c.StartUp, now: int) -> o.Outcome:
        if not self._runtime.rules.start_up_sweeps:
            return NOTHING_SWEPT
        return await self._swept(lambda on, _, at: sweep(self._runtime, on, at, host=command.host), command, now)

    async def configure(self, command: c.Configure, now: int) -> o.Outcome:
        return self._runtime.configure(command)

    async def classify(self, command: c.Classify, now: int) -> o.Outcome:
        return o.Classified(self._runtime.rules.classify(command.code))

    async def probe(self, command: c.Probe, now: int) -> o.Outcome:
        return o.Probed(*await self._adapter.database.probe(self._adapter.connections()))

    async def crash(self, command: c.Crash, now: int) -> o.Outcome:
        await self._adapter.actor(command.worker).close()
        return o.DONE

    @property
    def _runtime(self) -> Runtime:
        return self._adapter.runtime

    async def _swept(self, walk: Verb[C], command: C, now: int) -> o.Outcome:
        """A sweep, with the data-changing statements counted that it sent (REC-06): by the driver, not by itself."""
        before = self._changing
        outcome = await self._run(walk, command, now)
        if isinstance(outcome, o.Recovered):
            dml = self._changing - before
            outcome = o.Recovered(outcome.rows, outcome.count, outcome.hooked, outcome.failed, dml)
        return outcome

    async def _run(self, verb: Verb[C], command: C, now: int) -> o.Outcome:
        """Serve one verb; whatever is raised is rolled back, and a write conflict is an outcome (RETRY-01).

        Raises:
            AdapterError: the queue has no such verb.
        """
        spec = self._runtime.spec
        for asked in command.commands if isinstance(command, c.Atomically) else (command,):
            if asked.verb not in spec.verbs:
                raise AdapterError(f"queue {spec.key!r} has no verb {asked.verb!r}; ask what `QueueSpec.verbs` names")
        connection = await self.connect()
        try:
            return await verb(connection, command, now)
        except DBAPIError as error:
            await connection.rollback()
            if is_conflict(error):
                return o.CONFLICT
            raise
        except BaseException:
            await connection.rollback()
            raise


_CHANGING = ("INSERT", "UPDATE", "DELETE")
NOTHING_SWEPT = o.Recovered(dml=0)


def _rows(spec: QueueSpec, table: Table) -> Select[Any]:
    """Every job's id and its `Row`."""
    columns, objects = columns_of(spec, table), objects_of(spec, table)

    def field(names: tuple[str, ...]) -> ColumnElement[Any]:
        return next((columns[name] for name in names if name in columns), null())

    query = select(columns["id"], *map(field, _ROW), null() if objects is None else objects.c.attempt)
    if objects is not None:
        query = query.select_from(table.outerjoin(objects, objects.c.key == columns["artifact_key"]))
    return query.order_by(columns["id"])


def _hook(hook: c.Hook | None) -> HookRun | None:
    return None if hook is None else HookRun(hook)
