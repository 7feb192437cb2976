"""The reference runtime with synchronous hands, on both databases and all queues: fixtures for its tests."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pytest
from fencepost.adapters.reference.adapter import PostgresAdapter, ReferenceAdapter, SqliteAdapter
from fencepost.adapters.reference.rules import CONTRACT, Rules
from fencepost.adapters.reference.server import PostgresSource
from fencepost.model import commands as c
from fencepost.model import outcomes as o
from fencepost.model.queues import BACKFILL, BUILD, CANCELLED, MUTATION, SCREENSHOT, QueueSpec

NOW = 1000
RETRY = ("lease", "LEASE_TIMEOUT_RECOVERED")
QUEUES = (BACKFILL, MUTATION, SCREENSHOT, BUILD)
WRITES: tuple[type[c.HandleCommand], ...] = (
    c.Renew, c.Complete, c.Fail, c.Skip, c.Release, c.Acknowledge, c.PutArtifact,
)  # fmt: skip


def opened_on(*queues: QueueSpec) -> list[tuple[str, QueueSpec]]:
    """These queues on both databases."""
    return [(name, queue) for name in ("sqlite", "pg") for queue in queues]


def named(param: tuple[str, QueueSpec]) -> str:
    return f"{param[0]}-{param[1].key}"


def on(*queues: QueueSpec) -> pytest.MarkDecorator:
    """Run a test on these queues alone."""
    return pytest.mark.parametrize("opened", opened_on(*queues), ids=named, indirect=True)


cancelling = on(*(queue for queue in QUEUES if queue.cancels))


def asked(name: str, kinds: Sequence[type[c.Command]]) -> pytest.MarkDecorator:
    """Run a test with each of these commands, as `name`, on every queue that serves it."""
    pairs = [(at, kind) for at in opened_on(*QUEUES) for kind in kinds if kind.verb in at[1].verbs]
    ids = [f"{named(at)}-{kind.verb}" for at, kind in pairs]
    return pytest.mark.parametrize(("opened", name), pairs, ids=ids, indirect=["opened"])


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

    def enqueue(self, max_attempts: int = 3, due_in: int = 0, now: int = NOW, deadline_in: int = 0) -> c.JobId:
        outcome = self.do(c.Enqueue(max_attempts, due_in, deadline_in), now)
        assert isinstance(outcome, o.Enqueued)
        return outcome.job

    def claim(self, worker: int = 1, now: int = NOW, count: int = 1) -> tuple[c.Handle, ...]:
        outcome = self.do(c.Claim(worker, count, count), now, worker)
        assert isinstance(outcome, o.Claimed)
        return outcome.handles

    def held(self, worker: int = 1, max_attempts: int = 3, deadline_in: int = 0) -> c.Handle:
        """One more job, claimed at `NOW`."""
        job = self.enqueue(max_attempts, deadline_in=deadline_in)
        (handle,) = self.claim(worker)
        assert handle.job == job
        return handle

    def sweep(self, now: int, batch: int = 10, hook: c.Hook | None = None) -> o.Recovered:
        outcome = self.do(c.Recover(batch, hook), now)
        assert isinstance(outcome, o.Recovered)
        return outcome

    def token(self, generation: int, handle: c.Handle) -> c.Token:
        """The token of a row that this handle was the last to claim, whatever the generation has risen to since."""
        if self.queue.fence == "attempt_id":
            assert isinstance(handle.token, str) and handle.token
            return handle.token
        return generation if self.queue.has_token else None

    def due(self, instant: int) -> int | None:
        return instant if self.queue.backs_off else None


@pytest.fixture(name="runner", scope="module")
def one_runner() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as runner:
        yield runner


@pytest.fixture(name="opened", scope="module", params=opened_on(*QUEUES), ids=named)
def opened_bench(runner: asyncio.Runner, request: pytest.FixtureRequest) -> Iterator[Bench]:
    with bench_on(runner, *request.param) as bench:
        yield bench


@pytest.fixture(name="bench")
def empty_bench(opened: Bench) -> Bench:
    opened.runner.run(opened.adapter.reset())
    return opened


@contextmanager
def bench_on(runner: asyncio.Runner, database: str, queue: QueueSpec, rules: Rules = CONTRACT) -> Iterator[Bench]:
    """A bench of a queue of one's own, or under other rules."""
    adapter: ReferenceAdapter = SqliteAdapter(rules=rules)
    if database == "pg":
        adapter = PostgresAdapter(rules=rules, source=PostgresSource())
    runner.run(adapter.open(queue))
    try:
        yield Bench(runner, adapter, queue)
    finally:
        runner.run(adapter.close())
