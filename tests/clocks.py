"""Plain queues with a clock of their own, each driven in one of the ways in which an adapter can move one."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest
from examples import plain_adapter, plain_queue
from fencepost.adapters.contract import Adapter, Capabilities
from fencepost.adapters.sync import served
from fencepost.conformance import wall
from fencepost.model import commands as c
from fencepost.model import outcomes as o

Plain: Any = plain_adapter.Plain
PlainActor: Any = plain_adapter.PlainActor
Queue: Any = plain_queue.Queue
VERBS = "enqueue", "claim", "renew", "complete", "recover"
INSTANTS = "lease_until", "heartbeat_at", "started_at", "finished_at"


class Telling(Queue):  # type: ignore[misc]
    """A queue that tells the time by a function of its database's."""

    valid = ">"
    """How the end of a valid lease compares with the clock."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.tell(time.time)

    def tell(self, clock: Callable[[], float]) -> None:
        self.db.create_function("unix_now", 0, clock)

    def now(self) -> float:
        (now,) = self.db.execute("SELECT unix_now()").fetchone()
        return float(now)

    def _write(self, changes: str, job: int, worker: str, now: float, **values: Any) -> bool:
        values |= {"job": job, "worker": worker, "now": now}
        held = f"id = :job AND status = 'running' AND worker = :worker AND lease_until {self.valid} :now"
        return bool(self.db.execute(f"UPDATE jobs SET {changes} WHERE {held}", values).rowcount == 1)


class Late(Telling):
    """A lease is valid still at the instant at which it ends."""

    valid = ">="


class TellingActor(PlainActor):  # type: ignore[misc]
    """A client of such a queue: what the time is, the queue alone knows."""

    def perform(self, command: c.Command, now: int) -> Any:
        return super().perform(command, self.queue.now())


def overridden(queue: type[Telling] = Telling) -> type[Adapter]:
    """The adapter puts a clock of its own in the place of the database's function."""

    class Overridden(Plain):  # type: ignore[misc]
        capabilities = Capabilities.only(*VERBS, clock="override")
        clock = 0

        def reset(self) -> None:
            super().reset()
            self.clock = 0

        def advance(self, seconds: int) -> None:
            self.clock += seconds

        def actor(self, worker: int) -> Any:
            client = self.queue(f"{self.folder}/jobs.db")
            client.tell(lambda: self.clock)
            return TellingActor(client)

        def snapshot(self) -> dict[c.JobId, o.Row]:
            return in_ticks(super().snapshot(), 0)

    Overridden.queue = queue
    return served(Overridden)


def in_ticks(rows: dict[c.JobId, o.Row], start: float, reads: Callable[[float], int] = round) -> dict[c.JobId, o.Row]:
    """The rows with seconds since the start for instants."""
    fields = "expires", "heartbeat", "started", "finished"

    def tick(instant: Any) -> int | None:
        return None if instant is None else reads(instant - start)

    return {job: row._replace(**{of: tick(getattr(row, of)) for of in fields}) for job, row in rows.items()}


class ShiftedActor(TellingActor):
    """The time that the real clock spends on the work between two commands is taken back before each of them."""

    def __init__(self, queue: Any, still: Callable[[int], None]) -> None:
        super().__init__(queue)
        self.still = still

    def perform(self, command: c.Command, now: int) -> Any:
        self.still(now)
        return super().perform(command, now)


class Shifted(Plain):  # type: ignore[misc]
    """The queue goes by the real clock; what is stored moves in its place."""

    capabilities = Capabilities.only(*VERBS, clock="shifted")
    start = 0.0
    """The real instant of the tick 0, as what is stored has been shifted by now."""

    def reset(self) -> None:
        super().reset()
        self.start = time.time()

    def advance(self, seconds: int) -> None:
        self.shift(-seconds)

    def still(self, now: int) -> None:
        self.shift(time.time() - now - self.start)

    def shift(self, seconds: float) -> None:
        changes = ", ".join(f"{column} = {column} + :seconds" for column in INSTANTS)
        assert not self.view.db.in_transaction
        self.view.db.execute(f"UPDATE jobs SET {changes}", {"seconds": seconds})
        self.start += seconds

    def snapshot(self) -> dict[c.JobId, o.Row]:
        return in_ticks(super().snapshot(), self.start)

    def actor(self, worker: int) -> Any:
        return ShiftedActor(self.queue(f"{self.folder}/jobs.db"), self.still)


def shifted(queue: type[Telling] = Telling) -> type[Adapter]:
    return served(type("Shifted", (Shifted,), {"queue": queue}))


class OnTheWall:
    """A clock on the wall that goes on only when somebody waits, or when a test lets it: `monotonic` tells the time."""

    def __init__(self, started: float = 1000.9) -> None:
        self.time = started
        self.waits: list[float] = []

    def monotonic(self) -> float:
        return self.time

    async def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.time += seconds

    def hang(self, monkeypatch: pytest.MonkeyPatch) -> OnTheWall:
        """Let everybody look at this clock."""
        monkeypatch.setattr(wall, "_monotonic", self.monotonic)
        monkeypatch.setattr(wall, "_sleep", self.sleep)
        return self


def real(clock: OnTheWall, verb_takes: float = 0.0, reads: Callable[[float], int] = round) -> type[Adapter]:
    """A queue that goes by this clock, which nobody can move; each verb lets so many seconds pass before it looks at
    it. `reads` is how the adapter counts seconds.
    """

    class Real(Plain):  # type: ignore[misc]
        capabilities = Capabilities.only(*VERBS, clock="real")
        start = 0.0

        def reset(self) -> None:
            super().reset()
            self.start = clock.time

        def actor(self, worker: int) -> Any:
            client = self.queue(f"{self.folder}/jobs.db")
            client.tell(self._late)
            return TellingActor(client)

        def _late(self) -> float:
            clock.time += verb_takes
            return clock.time

        def snapshot(self) -> dict[c.JobId, o.Row]:
            return in_ticks(super().snapshot(), self.start, reads)

    Real.queue = Telling
    return served(Real)
