"""Which commands a world offers, in the order that makes traces comparable ("shortlex").

Two alphabets: `building` commands lead from state to state, `last` ones are only worth judging. Symmetric choices are
offered once: a worker that has not acted yet is the lowest one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from . import commands as c
from .errors import EXAMPLES
from .queues import PENDING, RUNNING
from .world import World


@dataclass(frozen=True, slots=True)
class Bounds:
    """How large a world explore may grow. `until` bounds the clock in ticks, None leaves it free."""

    jobs: int = 2
    workers: int = 2
    budgets: tuple[int, ...] = (3, 1)
    depth: int | None = None
    until: int | None = None
    short_leases: bool = False
    """Whether claims with a third of the queue's lease lead on to further states (LEASE-07)."""


FAILURES: tuple[tuple[c.What, str], ...] = (
    ("infra", "RENDER_SERVICE_UNAVAILABLE"),
    ("content", "PAGE_VALIDATION_FAILED"),
    ("lease", "PAGE_SCREENSHOT_JOB_INTERRUPTED"),
    ("cancel", "AI_RUN_CANCELLED"),
    ("limit", "RENDER_QUEUE_FULL"),
    ("infra", "ASSET_STORE_UNAVAILABLE"),
    ("infra", "PAGE_VALIDATION_FAILED"),
    ("content", "RENDER_SERVICE_UNAVAILABLE"),
    ("lease", "BUILD_LEASE_OWNER_MISMATCH"),
    ("content", "AI_RUN_PROCESS_STOPPED"),
)
"""(what happened, code) of the failures that are tried: each family, an unlisted INFRA code, and each refusal."""


RATIOS: tuple[tuple[int, int], ...] = tuple(
    (3 * heartbeat + offset, heartbeat) for heartbeat in (1, 5, 15, 30, 60, 320) for offset in (-1, 0, 1)
) + ((30, 30), (300, 30), (45, 15), (30, 300), (30, 0))
"""The complete table of (lease, heartbeat) in seconds that LEASE-01 is checked with: both sides of each boundary."""


def building(world: World, bounds: Bounds) -> Iterator[c.Command]:
    """The commands that lead to states worth judging in, in shortlex order."""
    spec = world.spec
    if len(world.jobs) < bounds.jobs:
        for budget in bounds.budgets:
            yield c.Enqueue(budget)
        if spec.backs_off:
            yield c.Enqueue(bounds.budgets[0], spec.backoff_seconds or 1)
    workers = range(1, min(_used(world) + 1, bounds.workers) + 1)
    if any(record.status == PENDING for record in world.jobs):
        for worker in workers:
            yield c.Claim(worker)
        if len(world.jobs) > 1:
            yield from (c.Claim(worker, 2, 2) for worker in workers)
        if bounds.short_leases:
            yield from (c.Claim(worker, 1, 1, spec.lease_seconds // 3) for worker in workers)
    yield from advances(world, bounds)
    yield c.Recover()
    for handle in handles(world):
        yield c.Complete(handle)
        yield c.Renew(handle)
        yield c.Release(handle)
        yield c.Fail(handle, *FAILURES[0])
        yield c.Acknowledge(handle)
    for job in range(1, len(world.jobs) + 1):
        yield c.RequestCancel(job)
        yield c.RequestCancel(job, True)


def last(world: World, bounds: Bounds) -> Iterator[c.Command]:
    """The building commands, and those that are only worth judging, in shortlex order."""
    yield from building(world, bounds)
    spec = world.spec
    workers = range(1, min(_used(world) + 1, bounds.workers) + 1)
    hooks = (c.Hook("ok"), c.Hook("raise"), c.Hook("cancel"))
    for worker in workers:
        if not any(record.status == PENDING for record in world.jobs):
            yield c.Claim(worker)
        yield c.Claim(worker, 2, 1)
        yield c.Claim(worker, 1, 2)
        yield from (c.Claim(worker, 2, 2, None, hook) for hook in hooks)
        if not bounds.short_leases:
            yield c.Claim(worker, 1, 1, spec.lease_seconds // 3)
        yield c.Tick(worker)
    yield c.StartUp(0)
    yield c.StartUp(1)
    yield c.Probe()
    if not world.jobs:
        yield from (c.Configure(*ratio) for ratio in RATIOS)
        yield from (c.Classify(code) for code, _ in EXAMPLES)
    yield from (c.Recover(10, hook) for hook in hooks)
    yield c.Recover(1)
    for job in range(1, len(world.jobs) + 1):
        yield c.Recover(1, c.Hook("poison", job))
    for handle in handles(world):
        yield from (c.Fail(handle, *failure) for failure in FAILURES[1:])
        yield c.Checkpoint(handle)
        yield c.Atomically((c.Complete(handle),), "rollback")
    for job in range(1, len(world.jobs) + 1):
        yield c.Atomically((c.RequestCancel(job),), "rollback")
        yield c.Atomically((c.RequestCancel(job),), "raise")
        yield c.Atomically((c.RequestCancel(job),), "commit")


def handles(world: World) -> Iterator[c.Handle]:
    """Every handle that a claim has returned, oldest job and oldest claim first."""
    for n, record in enumerate(world.jobs, 1):
        for worker, token in record.issued:
            yield c.Handle(n, worker, token)


def advances(world: World, bounds: Bounds) -> Iterator[c.Advance]:
    """To one tick before, at, and one tick after each lease expiry and each due instant that is ahead."""
    offered = set()
    for record in world.jobs:
        instants: tuple[int, ...] = ()
        if record.status == RUNNING and record.expires is not None:
            instants = (record.expires, record.expires - 1)
            if bounds.until is None:
                instants += (record.expires + 1,)
        elif record.status == PENDING and record.due is not None:
            instants = (record.due, record.due - 1)
        for instant in instants:
            ahead = instant - world.now
            if ahead > 0 and ahead not in offered and (bounds.until is None or instant <= bounds.until):
                offered.add(ahead)
                yield c.Advance(ahead)


def _used(world: World) -> int:
    """The highest worker that has claimed anything."""
    return max((worker for record in world.jobs for worker, _ in record.issued), default=0)
