"""The reference runtime with synchronous hands, on both databases and both queues: fixtures for its tests."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
from fencepost.adapters.reference.adapter import PostgresAdapter, ReferenceAdapter, SqliteAdapter
from fencepost.adapters.reference.server import PostgresSource
from fencepost.model import commands as c
from fencepost.model import outcomes as o
from fencepost.model.queues import BACKFILL, CANCELLED, MUTATION, QueueSpec

NOW = 1000
RETRY = ("lease", "LEASE_TIMEOUT_RECOVERED")


class Bench:
    """A queue with synchronous hands: `do` performs a command, `row` shows a job."""

    def __init__(self, runner: asyncio.Runner, adapter: ReferenceAdapter, queue: QueueSpec) -> None:
        self.runner = runner
        self.adapter = adapter
        self.queue = queue
        self.lease = queue.lease_seconds
        self.cancelled = queue.spell(CANCELLED)

    def do(self, command: c.Command, now: int = NOW, worker: int = 0) -> o.Outcome:
        return self.runner.run(self.adapter.actor(worker).perform(command, now))

    def rows(self) -> list[o.Row]:
        return list(self.runner.run(self.adapter.snapshot()).values())

    def row(self, nth: int = 0) -> o.Row:
        return self.rows()[nth]

    def enqueue(self, max_attempts: int = 3, due_in: int = 0, now: int = NOW) -> c.JobId:
        outcome = self.do(c.Enqueue(max_attempts, due_in), now)
        assert isinstance(outcome, o.Enqueued)
        return outcome.job

    def claim(self, worker: int = 1, now: int = NOW, count: int = 1) -> tuple[c.Handle, ...]:
        outcome = self.do(c.Claim(worker, count, count), now, worker)
        assert isinstance(outcome, o.Claimed)
        return outcome.handles

    def held(self, worker: int = 1, max_attempts: int = 3) -> c.Handle:
        """One more job, claimed at `NOW`."""
        job = self.enqueue(max_attempts)
        (handle,) = self.claim(worker)
        assert handle.job == job
        return handle

    def sweep(self, now: int, batch: int = 10, hook: c.Hook | None = None) -> o.Recovered:
        outcome = self.do(c.Recover(batch, hook), now)
        assert isinstance(outcome, o.Recovered)
        return outcome

    def token(self, generation: int) -> int | None:
        return generation if self.queue.has_token else None

    def due(self, instant: int) -> int | None:
        return instant if self.queue.backs_off else None


@pytest.fixture(name="runner", scope="module")
def one_runner() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as runner:
        yield runner


@pytest.fixture(
    name="opened",
    scope="module",
    params=[(make, queue) for make in ("sqlite", "pg") for queue in (BACKFILL, MUTATION)],
    ids=lambda param: f"{param[0]}-{param[1].key}",
)
def opened_bench(runner: asyncio.Runner, request: pytest.FixtureRequest) -> Iterator[Bench]:
    name, queue = request.param
    adapter = SqliteAdapter() if name == "sqlite" else PostgresAdapter(source=PostgresSource())
    runner.run(adapter.open(queue))
    try:
        yield Bench(runner, adapter, queue)
    finally:
        runner.run(adapter.close())


@pytest.fixture(name="bench")
def empty_bench(opened: Bench) -> Bench:
    opened.runner.run(opened.adapter.reset())
    return opened
