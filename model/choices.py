"""Which commands a world offers, in the order that makes traces comparable ("shortlex").

Two alphabets: `building` commands lead from state to state, `last` ones are only worth judging. Symmetric choices are
offered once: a worker that has not acted yet is the lowest one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from . import commands as c
from .errors import EXAMPLES
from .queues import PENDING, RUNNING, QueueSpec
from .world import Record, World, overdue


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


RATIOS: tuple[tuple[int, int], ...] = (
    *((3 * heartbeat + offset, heartbeat) for heartbeat in (1, 5, 15, 30, 60, 320) for offset in (-1, 0, 1)),
    (30, 30), (300, 30), (45, 15), (30, 300), (30, 0),
)  # fmt: skip
"""The complete table of (lease, heartbeat) in seconds that LEASE-01 is checked with: both sides of each boundary."""


def building(world: World, bounds: Bounds) -> Iterator[c.Command]:
    """The commands that lead to states worth judging in, in shortlex order: shared ones first, then job 1's own, …"""
    yield from enqueues(world, bounds)
    yield from claims(world, bounds, workers(world, bounds))
    yield from advances(world, bounds)
    yield from sweeps(world.spec)
    for job in range(1, len(world.jobs) + 1):
        yield from own(world, job)


def workers(world: World, bounds: Bounds) -> int:
    """How many workers are offered: those that have acted, and one that has not."""
    used = max((worker for record in world.jobs for worker, _ in record.issued), default=0)
    return min(used + 1, bounds.workers)


def enqueues(world: World, bounds: Bounds) -> Iterator[c.Command]:
    """A job with each retry budget and, where the queue backs off, one that is due only later."""
    if len(world.jobs) < bounds.jobs:
        for budget in bounds.budgets:
            yield c.Enqueue(budget)
        if world.spec.backs_off:
            yield c.Enqueue(bounds.budgets[0], world.spec.backoff_seconds or 1)
        if world.spec.deadline:
            yield c.Enqueue(bounds.budgets[0], 0, deadline_in(world.spec))


def deadline_in(spec: QueueSpec) -> int:
    """Seconds to a deadline that comes before the lease of a claim made at once would end."""
    return spec.lease_seconds // 2


def just_passed(spec: QueueSpec) -> int:
    """Seconds to a deadline that has passed just now: in this very tick, or in the last one where none can be met."""
    return 0 if spec.exact_clock else -1


def leftover(spec: QueueSpec) -> int:
    """Seconds for which a lease is left on a pending job."""
    return spec.lease_seconds // 4


def may_be_left(record: Record, now: int) -> int:
    """Seconds for which a lease may be left on this pending job: it must have expired when a sweep has to end the job,
    since whether that then may be touched is an open question (REC-02, against CLAIM-02 and DEAD-01).
    """
    over = just_passed(record.spec)
    if record.cancel is not None:
        return over
    usual = leftover(record.spec)
    return usual if record.deadline is None else max(min(usual, record.deadline - now), over)


def leased(record: Record, now: int) -> bool:
    """Whether a valid lease is left on this pending job."""
    return record.status == PENDING and record.expires is not None and record.expires > now


def sweeps(spec: QueueSpec) -> tuple[c.Command, ...]:
    """The sweep that leads on to further states, if the queue can be asked for one."""
    if "recover" in spec.verbs:
        return (c.Recover(),)
    return (c.Tick(1),) if "tick" in spec.verbs else ()


def claims(world: World, bounds: Bounds, workers: int) -> Iterator[c.Command]:
    """A claim of one job and of two by each of the first `workers` workers."""
    if not any(record.status == PENDING for record in world.jobs):
        return
    names = range(1, workers + 1)
    yield from (c.Claim(worker, *world.spec.bounds) for worker in names)
    if len(world.jobs) > 1:
        yield from (c.Claim(worker, 2, 2) for worker in names)
    if bounds.short_leases:
        yield from (c.Claim(worker, *world.spec.bounds, world.spec.lease_seconds // 3) for worker in names)


def own(world: World, job: int) -> Iterator[c.Command]:
    """The commands that touch this job alone: every write with each of its handles, its cancels, what is planted."""
    spec, record = world.spec, world.jobs[job - 1]
    verbs = spec.verbs
    for handle in handles_of(world, job):
        yield c.Complete(handle)
        if "renew" in verbs:
            yield c.Renew(handle)
        if "release" in verbs:
            yield c.Release(handle)
        if "fail" in verbs and not _late(record, world.now):
            yield c.Fail(handle, *FAILURES[0])
        if "acknowledge" in verbs:
            yield c.Acknowledge(handle)
        if spec.skips:
            yield c.Skip(handle)
        if "put_artifact" in verbs:
            yield c.PutArtifact(handle)
    if "request_cancel" in verbs:
        yield c.RequestCancel(job)
        if not leased(record, world.now):
            yield c.RequestCancel(job, True)
    if "plant" in verbs:
        if spec.deadline and record.status == RUNNING and not overdue(record, world.now):
            yield c.Plant(job, "deadline", just_passed(spec))
        if spec.claims_by_id and record.status == PENDING and not leased(record, world.now):
            seconds = leftover(spec)
            if may_be_left(record, world.now) == seconds:
                yield c.Plant(job, "lease", seconds)


def _late(record: Record, now: int) -> bool:
    """Whether it is open what a failure of this job leads to: its lease may run on beyond its deadline (DEAD-01)."""
    return record.status == RUNNING and overdue(record, now)


def last(world: World, bounds: Bounds) -> Iterator[c.Command]:
    """The building commands, and those that are only worth judging, in shortlex order."""
    verbs = world.spec.verbs
    return (command for command in _last(world, bounds) if command.verb in verbs or command.verb == "advance")


def _last(world: World, bounds: Bounds) -> Iterator[c.Command]:
    yield from building(world, bounds)
    spec = world.spec
    hooks = (c.Hook("ok"), c.Hook("raise"), c.Hook("cancel")) if spec.hooks else ()
    jobs = range(1, len(world.jobs) + 1)
    for worker in range(1, workers(world, bounds) + 1):
        if not any(record.status == PENDING for record in world.jobs):
            yield c.Claim(worker, *spec.bounds)
        yield c.Claim(worker, 2, 1)
        yield c.Claim(worker, 1, 2)
        yield from (c.Claim(worker, 2, 2, None, hook) for hook in hooks)
        if spec.claims_by_id:
            yield from (c.Claim(worker, *spec.bounds, None, None, job) for job in jobs)
        if not bounds.short_leases:
            yield c.Claim(worker, *spec.bounds, spec.lease_seconds // 3)
        yield c.Tick(worker)
    yield c.StartUp(0)
    yield c.StartUp(1)
    yield c.Probe()
    if not world.jobs:
        yield from (c.Configure(*ratio) for ratio in RATIOS)
        yield from (c.Classify(code) for code, _ in EXAMPLES)
    yield from (c.Recover(10, hook) for hook in hooks)
    yield c.Recover(1)
    if spec.hooks:
        yield from (c.Recover(1, c.Hook("poison", job)) for job in jobs)
    yield from (c.ReadArtifact(job) for job in jobs)
    for handle in handles(world):
        late = _late(world.jobs[handle.job - 1], world.now)  # type: ignore[operator]
        yield from (c.Fail(handle, *failure) for failure in FAILURES[0 if late else 1 :])
        yield c.Checkpoint(handle)
        yield c.Atomically((c.Complete(handle),), "rollback")
    if "request_cancel" in spec.verbs:
        for job in jobs:
            yield c.Atomically((c.RequestCancel(job),), "rollback")
            yield c.Atomically((c.RequestCancel(job),), "raise")
            yield c.Atomically((c.RequestCancel(job),), "commit")


def handles(world: World) -> Iterator[c.Handle]:
    """Every handle that a claim has returned, oldest job and oldest claim first."""
    for job in range(1, len(world.jobs) + 1):
        yield from handles_of(world, job)


def handles_of(world: World, job: int) -> Iterator[c.Handle]:
    """Every handle of this job, oldest claim first."""
    for worker, token in world.jobs[job - 1].issued:
        yield c.Handle(job, worker, token)


def advances(world: World, bounds: Bounds) -> Iterator[c.Advance]:
    """To each lease expiry, due instant and deadline that is ahead, and to one tick before it; where the clock is not
    exact, only to the ticks beside it.

    A free clock also moves to one tick after an expiry; a bounded one meets that state when it moves on to the next.
    """
    now, until, exact = world.now, bounds.until, world.spec.exact_clock
    offered = {0}
    if not world.spec.monotonic_ids and now != until and any(record.created == now for record in world.jobs):
        offered.add(1)  # of the next job it is known then that it is younger
        yield c.Advance(1)
    for record in world.jobs:
        after = (until is None and record.status == RUNNING) or not exact
        for instant in _instants(record):
            if instant is None or instant <= now:
                continue
            for at in (instant, instant - 1, instant + 1) if after else (instant, instant - 1):
                ahead = at - now
                if ahead not in offered and (until is None or at <= until) and (exact or not meets(world, at)):
                    offered.add(ahead)
                    yield c.Advance(ahead)


def _instants(record: Record) -> tuple[int | None, ...]:
    """The instants at which something about this job changes by itself."""
    if record.status == RUNNING:
        return (record.expires,)
    if record.status != PENDING:
        return ()
    if record.deadline is None or not record.spec.claim_margin_seconds:
        return record.due, record.deadline, record.expires
    return record.due, record.deadline - record.spec.claim_margin_seconds, record.deadline, record.expires


def meets(world: World, at: int) -> bool:
    """Whether this is the very tick of an instant of a job."""
    return any(at in (record.expires, record.due, record.deadline, *_instants(record)) for record in world.jobs)
