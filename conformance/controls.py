"""What an adapter declares, held against what it does: before anything is judged, and once more at the end.

A declaration that is not true would let a clause pass that nobody has looked at, or be told as a fault of the queue. A
fault of the queue is left alone here: whatever does not go as in a right one, the engines find under its own name.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator

import psutil
from fencepost.adapters.contract import VERBS, Adapter, AdapterError, Capabilities, Gated, while_hooked
from fencepost.adapters.registry import unknown
from fencepost.model import commands as c
from fencepost.model import outcomes as o
from fencepost.model.queues import QueueSpec
from fencepost.model.world import World

from .driver import Driver
from .session import Session

NEEDED = frozenset({"enqueue", "claim", "complete"})
"""Verbs without which there is nothing to test."""
LEAK = 64
"""How many descriptors more than at its start a queue may have open at the end of many examples: there is one
connection for each worker, of up to three files.
"""
ROUNDS = 2
_MOVE = 7
_FAR = 10**6


def declaration_faults(adapter: Adapter) -> Iterator[str]:
    """What cannot be true of the adapter's declarations, each with what to do."""
    capabilities, queues = adapter.capabilities, adapter.queues
    if not isinstance(capabilities, Capabilities):
        yield f"capabilities is {capabilities!r}; make it a Capabilities(…)"
        return
    for verb in sorted(capabilities.without):
        if verb not in VERBS:
            yield f"`without`: {unknown('verb', verb, sorted(VERBS))}"
        elif verb in NEEDED:
            yield f"`without` names {verb!r}; write it: without {', '.join(sorted(NEEDED))} there is nothing to test"
    if capabilities.clock not in ("argument", "override", "shifted", "real"):
        yield f"clock is {capabilities.clock!r}; declare 'argument', 'override', 'shifted' or 'real'"
    if capabilities.gate != "none" and capabilities.clock == "real":
        yield (
            f"gate is {capabilities.gate!r}, and the real clock goes on while statements are held; declare "
            "gate='none', or a clock that can be moved"
        )
    if capabilities.gate != "none" and not isinstance(adapter, Gated):
        yield (
            f"gate is {capabilities.gate!r}, and what goes with it is missing; write `connection` and `blocked` as "
            "fencepost.adapters.contract.Gated says, or declare gate='none'"
        )
    if capabilities.row_locks and capabilities.gate != "pg":
        gate = capabilities.gate
        yield f"row_locks is declared with gate={gate!r}, which sees none; declare gate='pg', or no row_locks"
    if not queues:
        yield "queues is empty; declare at least one QueueSpec"
    for key, spec in queues.items():
        if not isinstance(spec, QueueSpec):
            yield f"queues[{key!r}] is {spec!r}; make it a QueueSpec(…)"
        elif spec.key != key:
            yield f"queues[{key!r}] has the key {spec.key!r}; call both the same"
        elif spec.lease_seconds < 3 * spec.heartbeat_seconds or spec.heartbeat_seconds < 1:
            yield (
                f"queue {key!r}: a lease of {spec.lease_seconds} s with a heartbeat every {spec.heartbeat_seconds} s; "
                "let it last at least three heartbeats (LEASE-01)"
            )
        elif spec.artifacts and not spec.has_token:
            yield (
                f"queue {key!r}: artifacts with an owner for a fence, which does not tell one attempt from the next "
                "(INV-5); declare fence='generation' or 'attempt_id', or artifacts=False"
            )


def unclaimed(adapter: Adapter) -> tuple[str, ...]:
    """What the adapter, while it is open, has and declares that it has not."""
    capabilities = adapter.capabilities
    actor = adapter.actor(0)
    found = [f"{verb}: there, although `without` names it" for verb in sorted(capabilities.without) if actor.has(verb)]
    if capabilities.gate == "none" and isinstance(adapter, Gated):
        found.append("connection and blocked: there, although gate is 'none'")
    return tuple(found)


async def check_capabilities(driver: Driver) -> None:
    """Try what is declared on the open queue, and leave it empty.

    Raises:
        AdapterError: a declaration is not true; the message says which.
    """
    trial = _Trial(driver)
    await trial.check_clock()
    await trial.check_count()
    await trial.check_probe()
    await driver.reset()


class _Trial:
    """A few commands on an open queue. What they answer in a wrong queue may be anything, and proves nothing."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self._adapter = driver.adapter
        self._spec = driver.spec
        self._control, self._worker = driver.adapter.actor(0), driver.adapter.actor(1)

    def _lie(self, why: str) -> AdapterError:
        return AdapterError(f"{self._adapter.name}: {why}")

    async def _claimed(self, now: int) -> o.Row | None:
        """The row of a job that was added and claimed; None if that is not what it came to."""
        job = await self._control.perform(c.Enqueue(), now)
        claimed = await self._worker.perform(c.Claim(1, *self._spec.bounds), now)
        rows = await self._adapter.snapshot()
        if not isinstance(job, o.Enqueued) or not isinstance(claimed, o.Claimed) or not claimed.handles:
            return None
        row = rows.get(job.job) if isinstance(rows, dict) else None
        return row if isinstance(row, o.Row) else None

    async def check_clock(self) -> None:
        await self._driver.reset()
        clock = self._adapter.capabilities.clock
        await self._driver.advance(0, _MOVE)
        row = await self._claimed(_MOVE)
        if row is None or type(row.expires) is not int:
            return
        if abs(row.expires) > _FAR:
            raise self._lie(
                f"the lease of a claim at +{_MOVE} s ends at {row.expires}: that is no time since the beginning. "
                + (
                    "Give your queue the `now` of the verb as its clock, or declare clock='override', 'shifted', 'real'"
                    if clock == "argument"
                    else "Let `snapshot` count seconds from the last reset"
                )
            )
        if clock != "argument" and (row.expires, row.heartbeat) == (self._spec.lease_seconds, 0):
            raise self._lie(
                f"clock is {clock!r}, and after advance({_MOVE}) a claim wrote the time 0 still; let `advance` move "
                "the queue's clock"
            )

    async def check_count(self) -> None:
        if not self._adapter.capabilities.counts_statements or "recover" not in self._spec.verbs:
            return
        await self._driver.reset()
        await self._claimed(0)
        expired = self._spec.lease_seconds + 1
        await self._driver.advance(0, expired)
        swept = await self._control.perform(c.Recover(), expired)
        if isinstance(swept, o.Recovered) and swept.rows and not swept.dml:
            raise self._lie(
                f"recover moved a job and says dml={swept.dml}; count the statements that change data, or declare "
                "counts_statements=False"
            )

    async def check_probe(self) -> None:
        """A claim whose hook is undone has a transaction open while the hook runs: the probe must see it."""
        if not self._spec.hooks or "probe" not in self._spec.verbs:
            return
        await self._driver.reset()
        await self._control.perform(c.Enqueue(), 0)
        before = await self._adapter.snapshot()
        raised = await self._claim(c.Hook("raise"))
        if not isinstance(raised, o.HookRaised) or await self._adapter.snapshot() != before:
            return
        seen: list[o.Outcome] = []

        async def look() -> None:
            seen.append(await self._control.perform(c.Probe(), 0))

        looking = while_hooked.set(look)
        try:
            await self._claim(c.Hook("ok"))
        finally:
            while_hooked.reset(looking)
        if seen and seen[0] == o.Probed(0, 0):
            raise self._lie(
                "probe sees no open transaction while a claim's hook runs in one; ask each actor's connection, or "
                "declare Capabilities(without=frozenset({'probe'}))"
            )

    async def _claim(self, hook: c.Hook) -> o.Outcome:
        return await self._worker.perform(c.Claim(1, *self._spec.bounds, None, hook), 0)


def descriptors() -> int:
    """How many files and sockets this process has open."""
    gc.collect()
    process = psutil.Process()
    return int(process.num_fds() if hasattr(process, "num_fds") else process.num_handles())


def check_growth(adapter: Adapter, before: int) -> None:
    """Raise if much more is open than `before` some hundred examples.

    Raises:
        AdapterError: something is opened again and again.
    """
    more = descriptors() - before
    if more > LEAK:
        raise AdapterError(
            f"{adapter.name}: {more} more files and connections are open than at the start; close what `reset`, a "
            "verb or a crash has opened"
        )


def check_closing(make: Callable[[], Adapter], queue: str) -> None:
    """Open, use and close the adapter again and again: nothing may stay open.

    Raises:
        AdapterError: each time something does.
    """
    before = 0
    for nth in range(1 + ROUNDS):
        adapter = make()
        with Session(adapter, adapter.serves(queue)) as session:
            session.run(_used(session.driver))
        del adapter, session
        if nth == 0:
            before = descriptors()  # what is opened once and kept is no leak
    more = descriptors() - before
    if more >= ROUNDS:
        raise AdapterError(
            f"{queue}: {more} more files and connections are open after it was opened and closed {ROUNDS} times more; "
            "let `close` close the actors' connections and whatever `open` opened"
        )


async def _used(driver: Driver) -> World:
    for worker in range(3):
        await driver.adapter.actor(worker).perform(c.Enqueue() if worker == 0 else c.Claim(worker), 0)
    return await driver.reset()
