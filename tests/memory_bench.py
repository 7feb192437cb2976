"""A queue in memory with synchronous hands, for the tests of the memory adapter."""

from __future__ import annotations

import asyncio

from fencepost.adapters.memory import MemoryAdapter
from fencepost.model import commands as c
from fencepost.model import outcomes as o
from fencepost.model.queues import QueueSpec

NOW = 1000


class Bench:
    """A memory queue with synchronous hands: `do` performs a command, `row` shows a job."""

    def __init__(self, queue: QueueSpec, seed: int = 0) -> None:
        self.queue = queue
        self.adapter = MemoryAdapter(seed)
        asyncio.run(self.adapter.open(queue))

    def do(self, command: c.Command, now: int = NOW, worker: int = 0) -> o.Outcome:
        return asyncio.run(self.adapter.actor(worker).perform(command, now))

    def rows(self) -> dict[c.JobId, o.Row]:
        return asyncio.run(self.adapter.snapshot())

    def row(self, job: c.JobId = 1) -> o.Row:
        return self.rows()[job]

    def enqueue(self, count: int = 1, max_attempts: int = 3) -> None:
        for _ in range(count):
            self.do(c.Enqueue(max_attempts))

    def claim(self, worker: int = 1, now: int = NOW) -> c.Handle:
        outcome = self.do(c.Claim(worker), now, worker)
        assert isinstance(outcome, o.Claimed)
        return outcome.handles[0]

    def held(self, cancelled: bool = False, max_attempts: int = 3) -> c.Handle:
        """One job, claimed by worker 1; with `cancelled` a cancel has been requested since."""
        self.enqueue(max_attempts=max_attempts)
        handle = self.claim()
        if cancelled:
            assert self.do(c.RequestCancel(1)) == o.CancelAnswer("recorded")
        return handle
