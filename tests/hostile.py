"""Adapters that nobody should write, each hostile in one way; most of them serve the plain queue of the examples."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
import threading
from collections.abc import Callable
from datetime import datetime
from typing import Any, ClassVar

from examples import plain_adapter, plain_queue
from fencepost.adapters.contract import Adapter, Capabilities
from fencepost.adapters.memory import MemoryActor, MemoryAdapter
from fencepost.adapters.reference.adapter import ReferenceActor, SqliteAdapter
from fencepost.adapters.sync import SyncActor, hook_of, served
from fencepost.model import commands as c
from fencepost.model import outcomes as o

Plain: Any = plain_adapter.Plain
PlainActor: Any = plain_adapter.PlainActor
Queue: Any = plain_queue.Queue


def with_actor(kind: type[Any], **more: Any) -> type[Adapter]:
    """The plain adapter with clients of another kind."""

    class Changed(Plain):  # type: ignore[misc]
        def actor(self, worker: int) -> Any:
            return kind(self.queue(f"{self.folder}/jobs.db"))

    for name, value in more.items():
        setattr(Changed, name, value)
    return served(Changed)


def answering(verb: str, answer: Callable[[Any], Any]) -> type[Adapter]:
    """The plain adapter, where one verb's right answer is changed on the way."""

    class Answering(PlainActor):  # type: ignore[misc]
        def perform(self, command: c.Command, now: int) -> Any:
            outcome = super().perform(command, now)
            return answer(outcome) if command.verb == verb else outcome

    return with_actor(Answering)


def showing(change: Callable[[dict[c.JobId, o.Row]], Any]) -> type[Adapter]:
    """The plain adapter, where a snapshot of some jobs is changed on the way."""

    class Showing(Plain):  # type: ignore[misc]
        def snapshot(self) -> Any:
            rows = super().snapshot()
            return change(rows) if rows else rows

    return served(Showing)


# ------------------------------------------------------------------------------------------------------------- hanging


def never() -> None:
    """Block this thread for ever."""
    threading.Event().wait()


async def never_async() -> None:
    await asyncio.Event().wait()


def hanging(where: str, after: int = 0) -> type[Adapter]:
    """A plain adapter that blocks in this method, or in this verb, from its `after`th call on."""
    calls = 0

    def hang() -> None:
        nonlocal calls
        calls += 1
        if calls > after:
            never()

    class HangingActor(PlainActor):  # type: ignore[misc]
        def perform(self, command: c.Command, now: int) -> Any:
            if command.verb == where:
                hang()
            return super().perform(command, now)

    class Hanging(Plain):  # type: ignore[misc]
        def actor(self, worker: int) -> Any:
            return HangingActor(self.queue(f"{self.folder}/jobs.db"))

    def method(self: Any, *arguments: Any) -> Any:
        hang()
        return getattr(Plain, where)(self, *arguments)

    if hasattr(Plain, where):
        setattr(Hanging, where, method)
    return served(Hanging)


Stuck = hanging("claim")


class Swallowing(PlainActor):  # type: ignore[misc]
    """A completion blocks, and goes on as if nothing had been once it is interrupted."""

    def complete(self, command: c.Complete, now: int) -> Any:
        with contextlib.suppress(BaseException):
            never()
        return super().complete(command, now)


def awaiting(where: str) -> type[Adapter]:
    """An adapter in memory that waits for ever in this method, or in this verb."""

    class WaitingActor(MemoryActor):
        async def perform(self, command: c.Command, now: int) -> o.Outcome:  # type: ignore[override]
            if command.verb == where:
                await never_async()
            return await super().perform(command, now)

    class Waiting(MemoryAdapter):
        def actor(self, worker: int) -> MemoryActor:
            return WaitingActor(self._opened())

    async def method(self: Any, *arguments: Any) -> Any:
        await never_async()

    method.__code__ = method.__code__.replace(co_name=where)
    if hasattr(MemoryAdapter, where):
        setattr(Waiting, where, method)
    return Waiting


def racing(hang: Callable[[], Any]) -> type[SqliteAdapter]:
    """The reference queue, where a completion hangs. Its statements can be scheduled."""

    class RacingActor(ReferenceActor):
        async def complete(self, command: c.Complete, now: int) -> o.Outcome:
            waiting = hang()
            if waiting is not None:
                await waiting
            return o.REJECTED

    class Racing(SqliteAdapter):
        def actor(self, worker: int) -> ReferenceActor:
            if worker not in self._actors:
                self._actors[worker] = RacingActor(self, worker)
            return self._actors[worker]

    return Racing


# -------------------------------------------------------------------------------------------------------------- lying


class HookedActor(PlainActor):  # type: ignore[misc]
    """It claims within a transaction of its own, and can run a hook in it."""

    runs_hooks = True

    def claim(self, command: c.Claim, now: int) -> o.Outcome:
        queue, db = self.queue, self.queue.db
        db.execute("BEGIN IMMEDIATE")
        found = "SELECT id FROM jobs WHERE status = 'pending' ORDER BY id LIMIT ?"
        jobs = tuple(row[0] for row in db.execute(found, (min(command.limit, command.max_claims),)).fetchall())
        lease = now + (command.lease or plain_queue.LEASE)
        for job in jobs:
            db.execute(
                "UPDATE jobs SET status = 'running', worker = ?, lease_until = ?, heartbeat_at = ?, started_at = ?,"
                " finished_at = NULL, error = NULL, attempts = attempts + 1 WHERE id = ?",
                (c.worker_name(command.worker), lease, now, now, job),
            )
        if jobs and self.runs_hooks:
            try:
                hook_of(command)(jobs)
            except BaseException:
                db.execute("ROLLBACK")
                return o.HookRaised(jobs)
        queue.db.execute("COMMIT")
        hooked = jobs if command.hook is not None and jobs and self.runs_hooks else None
        return o.Claimed(tuple(c.Handle(job, command.worker) for job in jobs), hooked)


def hooked(kind: type[Any], *verbs: str) -> type[Adapter]:
    capabilities = Capabilities.only("enqueue", "claim", "renew", "complete", *verbs, hooks=True)
    return with_actor(kind, capabilities=capabilities)


class Deaf(HookedActor):
    """It declares hooks, and never calls one."""

    runs_hooks = False


class Blind(HookedActor):
    """Its probe sees nothing, whatever is open."""

    def probe(self, command: c.Probe, now: int) -> o.Outcome:
        return o.Probed(0, 0)


class Seeing(HookedActor):
    """Its probe asks its own adapter's connections."""

    connections: ClassVar[list[Any]] = []

    def __init__(self, queue: Any) -> None:
        super().__init__(queue)
        self.connections.append(queue.db)
        self.close = self.closed

    def closed(self) -> None:
        self.connections.remove(self.queue.db)
        self.queue.close()

    def probe(self, command: c.Probe, now: int) -> o.Outcome:
        transactions = sum(db.in_transaction for db in self.connections)
        return o.Probed(transactions, transactions)


class Counting(PlainActor):  # type: ignore[misc]
    """It declares that it counts statements, and says nothing of them, or always the same."""


def frozen() -> type[Adapter]:
    """Its clock does not move."""

    class Frozen(Plain):  # type: ignore[misc]
        capabilities = Capabilities.only("enqueue", "claim", "complete", clock="override")

        def advance(self, seconds: int) -> None:
            pass

        def actor(self, worker: int) -> Any:
            return Timeless(self.queue(f"{self.folder}/jobs.db"))

    return served(Frozen)


class Timeless(PlainActor):  # type: ignore[misc]
    """It does as if no time passed."""

    def perform(self, command: c.Command, now: int) -> Any:
        return super().perform(command, 0)


class Epochal(PlainActor):  # type: ignore[misc]
    """It tells the time by a clock of its own."""

    def perform(self, command: c.Command, now: int) -> Any:
        return super().perform(command, now + 1_700_000_000)


# ------------------------------------------------------------------------------------------- leaking, leaving, wavering


class Leaking(PlainActor):  # type: ignore[misc]
    """Each claim opens a connection that nobody closes."""

    leaked: ClassVar[list[Any]] = []

    def claim(self, command: c.Claim, now: int) -> Any:
        (_, _, file) = self.queue.db.execute("PRAGMA database_list").fetchone()
        leaked = sqlite3.connect(file)
        leaked.execute("SELECT 1 FROM jobs").fetchall()
        self.leaked.append(leaked)
        return super().claim(command, now)


def unclosing() -> tuple[type[Adapter], list[Any]]:
    """`close` leaves the connection open that `open` opened; the list is of those."""
    left: list[Any] = []

    class Unclosing(Plain):  # type: ignore[misc]
        def close(self) -> None:
            left.append(self.view)

    return served(Unclosing), left


class Unreset(Plain):  # type: ignore[misc]
    """A reset leaves the jobs that have ended."""

    def reset(self) -> None:
        self.view.db.execute("DELETE FROM jobs WHERE finished_at IS NULL")


class OpenEnded(PlainActor):  # type: ignore[misc]
    """A claim that finds nothing leaves its transaction open."""

    def claim(self, command: c.Claim, now: int) -> Any:
        db = self.queue.db
        db.execute("PRAGMA busy_timeout = 0")
        if db.in_transaction:
            db.execute("COMMIT")
        claimed = super().claim(command, now)
        if not claimed.handles:
            db.execute("BEGIN IMMEDIATE")
        return claimed


class Impatient(OpenEnded):
    """The same, and it tells of the conflict that it makes."""

    def perform(self, command: c.Command, now: int) -> Any:
        self.queue.db.execute("PRAGMA busy_timeout = 0")
        try:
            return super().perform(command, now)
        except sqlite3.OperationalError:
            return o.CONFLICT


class Wavering(PlainActor):  # type: ignore[misc]
    """Every fifth completion is refused, whosever it is."""

    asked = 0

    def complete(self, command: c.Complete, now: int) -> Any:
        Wavering.asked += 1
        return o.REJECTED if Wavering.asked % 5 == 0 else super().complete(command, now)


class Forgetful(SyncActor):
    """It has no `renew`, and does not say so."""

    def __init__(self, queue: Any) -> None:
        other = PlainActor(queue)
        self.close = other.close
        self.enqueue, self.claim, self.complete = other.enqueue, other.claim, other.complete
        self.fail, self.recover = other.fail, other.recover


def dated(rows: dict[c.JobId, o.Row]) -> Any:
    """Rows with times of day for instants."""
    return {job: row._replace(expires=row.expires and datetime.fromtimestamp(row.expires)) for job, row in rows.items()}


class Silent(PlainActor):  # type: ignore[misc]
    """It says that a job is done, and does nothing."""

    def complete(self, command: c.Complete, now: int) -> Any:
        return o.Accepted("succeeded")


class Tokened(PlainActor):  # type: ignore[misc]
    """Its handles carry tokens that the queue does not declare."""

    def claim(self, command: c.Claim, now: int) -> Any:
        claimed = super().claim(command, now)
        return o.Claimed(tuple(c.Handle(handle.job, handle.worker, 1) for handle in claimed.handles))


class Nameless(PlainActor):  # type: ignore[misc]
    """Whoever claims, the queue calls him by another name."""

    def claim(self, command: c.Claim, now: int) -> Any:
        claimed = super().claim(command, now)
        for handle in claimed.handles:
            self.queue.db.execute("UPDATE jobs SET worker = 'worker' WHERE id = ?", (handle.job,))
        return claimed
