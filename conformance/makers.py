"""The makers of commands: each makes one kind of command out of a world that offers it and a number.

They know what is worth trying, never how often; what is legal is the model's.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TypeAlias

from fencepost.model import commands as c
from fencepost.model.choices import FAILURES, just_passed, leased, may_be_left, meets
from fencepost.model.queues import PENDING, RUNNING, QueueSpec
from fencepost.model.world import Record, World, expired, overdue, sweepable

_WORKERS = 3


def _ordinals(world: World, status: str) -> list[int]:
    return [n for n, record in enumerate(world.jobs, 1) if record.status == status]


def _waiting(world: World) -> list[int]:
    return [n for n, record in enumerate(world.jobs, 1) if sweepable(record, world.now)]


_Held: TypeAlias = "tuple[int, int, c.Token]"
"""What makes a handle: job, worker, token. Only the one that is picked becomes a value."""


def _held(world: World) -> list[_Held]:
    return [(n, *record.issued[-1]) for n, record in enumerate(world.jobs, 1) if record.status == RUNNING]


def _lost(record: Record, now: int) -> bool:
    """Whether whoever claimed this job last, if anybody, may not write any more."""
    return record.status != RUNNING or expired(record, now) or overdue(record, now)


def _late(world: World) -> list[_Held]:
    """Held handles whose lease has expired, or before it a deadline passed."""
    held = [(n, record) for n, record in enumerate(world.jobs, 1) if record.status == RUNNING]
    return [(n, *record.issued[-1]) for n, record in held if _lost(record, world.now)]


def _asked(world: World) -> list[_Held]:
    """Held handles, their lease valid, whose job was asked to cancel."""
    now = world.now
    return [
        (n, *record.issued[-1])
        for n, record in enumerate(world.jobs, 1)
        if record.status == RUNNING and record.cancel is not None and not expired(record, now)
    ]


def _outrun(world: World) -> list[_Held]:
    """Stale handles of jobs that somebody else, or a newer claim, holds with a valid lease."""
    now = world.now
    return [
        (n, *pair)
        for n, record in enumerate(world.jobs, 1)
        if record.status == RUNNING and not expired(record, now)
        for pair in record.issued[:-1]
    ]


def _stale(world: World) -> list[_Held]:
    """Handles of jobs that nobody holds any more, and older ones of jobs whose lease has expired."""
    now = world.now
    return [
        (n, *pair)
        for n, record in enumerate(world.jobs, 1)
        if record.status != RUNNING or expired(record, now)
        for pair in (record.issued[:-1] if record.status == RUNNING else record.issued)
    ]


def _pick(handles: list[_Held], number: int) -> tuple[c.Handle, int]:
    """One of the handles, and what is left of the number."""
    number, at = divmod(number, len(handles))
    return c.Handle(*handles[at]), number


Maker = Callable[[World, int], c.Command]


def enqueue(world: World, number: int) -> c.Command:
    number, budget = divmod(number, 4)
    spec = world.spec
    late = spec.backs_off and number % 8 == 0
    deadline = _deadlines(spec.lease_seconds)[number // 8 % 6] if spec.deadline else 0
    return c.Enqueue((3, 2, 1, 3)[budget], (spec.backoff_seconds or 0) if late else 0, deadline)


def _deadlines(lease: int) -> tuple[int, ...]:
    """Deadlines before a first lease ends, in a second one, at an expiry, far off; none for the rest."""
    return lease // 2, lease + lease // 2, lease, 9 * lease, 0, 0


_CLAIMERS = (1, 1, 2, 2, 3)
"""Few workers, so that one often claims again what it has lost."""
_BOUNDS = ((1, 1), (1, 1), (1, 1), (2, 2), (2, 1), (1, 2), (3, 3), (10, 1))


def claim(world: World, number: int) -> c.Command:
    number, worker = divmod(number, len(_CLAIMERS))
    number, bounds = divmod(number, len(_BOUNDS))
    number, lease = divmod(number, 4)
    spec = world.spec
    hook = _HOOKS[number % len(_HOOKS)] if spec.hooks else None
    short = spec.lease_seconds // 3 if lease == 0 else None
    usual = spec.bounds if _BOUNDS[bounds] == (1, 1) else _BOUNDS[bounds]
    return c.Claim(_CLAIMERS[worker], *usual, short, hook)


def claim_one(world: World, number: int) -> c.Command:
    """A claim of one job, be it the oldest or not, claimable or not (CLAIM-15)."""
    number, at = divmod(number, len(world.jobs))
    return c.Claim(1 + number % _WORKERS, *world.spec.bounds, None, None, at + 1)


_HOOKS = (None, None, None, None, None, c.Hook("ok"), c.Hook("raise"), c.Hook("cancel"))


def past_head(world: World, number: int) -> c.Command:
    """A claim that scans one candidate, while the oldest pending job is none."""
    return c.Claim(1 + number % _WORKERS)


def beside(world: World, command: c.Advance) -> c.Advance:
    """The clock moved to the first tick from there on that is no job's own, for who cannot meet one exactly."""
    seconds = command.seconds
    while meets(world, world.now + seconds):
        seconds += 1
    return c.Advance(seconds)


def to_deadline(world: World, number: int) -> c.Command:
    """To the deadline of a pending job, or to where it is too late to claim it, or to a tick beside that."""
    deadlines = [record.deadline for record in world.jobs if record.status == PENDING and record.deadline is not None]
    number, at = divmod(number, len(deadlines))
    number, early = divmod(number, 2)
    margin = world.spec.claim_margin_seconds if early else 0
    ahead = deadlines[at] - margin + (0, 0, -1, 1)[number % 4] - world.now
    return c.Advance(ahead if ahead > 0 else 1)


def to_free(world: World, number: int) -> c.Command:
    """To where a lease that was left on a pending job ends, or to a tick beside it."""
    left = [record.expires - world.now for record in world.jobs if record.status == PENDING and record.expires]
    ahead = [each for each in left if each > 0]
    number, at = divmod(number, len(ahead))
    return c.Advance(max(ahead[at] + (0, 0, -1, 1)[number % 4], 1))


def to_expiry(world: World, number: int) -> c.Command:
    """To one job's expiry, or to the last one of all, so that a sweep meets several."""
    expiries = [record.expires or 0 for record in world.jobs if record.status == RUNNING]
    number, at = divmod(number, len(expiries) + 1)
    expires = expiries[at] if at < len(expiries) else max(expiries)
    ahead = expires + (0, 0, 0, -1, 1)[number % 5] - world.now
    return c.Advance(ahead if ahead > 0 else 1)


def time_passes(world: World, number: int) -> c.Command:
    """A moment within a lease: what is written now then differs from what was written before."""
    return c.Advance(1 + number % world.spec.heartbeat_seconds)


def to_last(world: World, number: int) -> c.Command:
    """To where every lease has expired, so that a sweep meets jobs of different histories (REC-09, REC-12)."""
    last = max(record.expires or 0 for record in world.jobs if record.status == RUNNING)
    return c.Advance(max(last - world.now, 1))


def cancel_head(world: World, number: int) -> c.Command:
    """A parent's cancel of the oldest of several pending jobs, which then stands in the others' way (CLAIM-14)."""
    job = _ordinals(world, PENDING)[0]
    return c.RequestCancel(job, not leased(world.jobs[job - 1], world.now))


def to_due(world: World, number: int) -> c.Command:
    dues = [
        record.due
        for record in world.jobs
        if record.status == PENDING and record.cancel is None and record.due is not None and record.due > world.now
    ]
    number, at = divmod(number, len(dues))
    ahead = dues[at] + (0, 0, -1)[number % 3] - world.now
    return c.Advance(max(ahead, 1))


def recover(world: World, number: int) -> c.Command:
    number, form = divmod(number, len(_HOOKS))
    return c.Recover((10, 10, 1, 2)[number % 4], _HOOKS[form] if world.spec.hooks else None)


def poisoned(world: World, number: int) -> c.Command:
    """A sweep whose hook fails for one of several waiting jobs (REC-12)."""
    waiting = _waiting(world)
    if not world.spec.hooks:
        return c.Recover(1)
    number, at = divmod(number, len(waiting))
    return c.Recover(1 + (number % 4 == 0), c.Hook("poison", waiting[at]))


def held_write(world: World, number: int) -> c.Command:
    handle, number = _pick(_held(world), number)
    return _write(handle, world, number)


def stale_write(world: World, number: int) -> c.Command:
    handle, number = _pick(_stale(world), number)
    return _write(handle, world, number)


def outrun_write(world: World, number: int) -> c.Command:
    """A superseded worker's write that nothing but its standing can refuse."""
    handle, number = _pick(_outrun(world), number)
    asked = world.jobs[handle.job - 1].cancel is not None  # type: ignore[operator]
    if asked and number % 2 and "acknowledge" in world.spec.verbs:
        return c.Acknowledge(handle)
    return _write(handle, world, number // 2)


def outrun_upload(world: World, number: int) -> c.Command:
    """A superseded worker's upload beside the artifact that the job refers to."""
    beside = [each for each in _outrun(world) if world.jobs[each[0] - 1].artifact is not None]
    return c.PutArtifact(_pick(beside, number)[0])


def late_upload(world: World, number: int) -> c.Command:
    """An upload repeated too late by the attempt whose artifact the job refers to (FENCE-07)."""
    kept = [
        (n, *pair)
        for n, record in enumerate(world.jobs, 1)
        if record.artifact is not None and _lost(record, world.now)
        for pair in record.issued
        if pair[1] == record.artifact
    ]
    return c.PutArtifact(_pick(kept, number)[0])


def late_write(world: World, number: int) -> c.Command:
    handle, number = _pick(_late(world), number)
    number, renew = divmod(number, 3)
    return c.Renew(handle) if renew == 0 and "renew" in world.spec.verbs else _write(handle, world, number)


def asked_write(world: World, number: int) -> c.Command:
    handle, number = _pick(_asked(world), number)
    return _write(handle, world, number)


def _write(handle: c.Handle, world: World, number: int) -> c.Command:
    writes = _writes(world.spec)
    number, kind = divmod(number, len(writes))
    return writes[kind](handle, world, number)


@cache
def _writes(spec: QueueSpec) -> tuple[Writer, ...]:
    """The writes that a worker of this queue can make, each as often as it is worth."""
    return tuple(writer for verb, writer in _WRITES if verb in spec.verbs)


def _fail(handle: c.Handle, world: World, number: int) -> c.Command:
    return c.Fail(handle, *_FAILURES[number % len(_FAILURES)])


_FAILURES = (*FAILURES, FAILURES[0], FAILURES[0], FAILURES[0], FAILURES[2], FAILURES[2])
"""Retryable ones more often: what they leave behind is met only if the job is claimed again."""


Writer = Callable[[c.Handle, World, int], c.Command]


def _complete(handle: c.Handle, world: World, number: int) -> c.Command:
    return c.Complete(handle)


def _renew(handle: c.Handle, world: World, number: int) -> c.Command:
    return c.Renew(handle, world.spec.lease_seconds // 3 if number % 4 == 0 else None)


def _release(handle: c.Handle, world: World, number: int) -> c.Command:
    return c.Release(handle)


_WRITES: tuple[tuple[str, Writer], ...] = (
    ("complete", _complete),
    ("fail", _fail),
    ("renew", _renew),
    ("release", _release),
    ("acknowledge", lambda handle, world, number: c.Acknowledge(handle)),
    ("complete", _complete),
    ("fail", _fail),
    ("checkpoint", lambda handle, world, number: c.Checkpoint(handle)),
    ("renew", lambda handle, world, number: c.Renew(handle)),
    ("fail", _fail),
    ("skip", lambda handle, world, number: c.Skip(handle)),
    ("put_artifact", lambda handle, world, number: c.PutArtifact(handle)),
    ("put_artifact", lambda handle, world, number: c.PutArtifact(handle)),
)
"""(verb, what makes the write)."""


def cancel(world: World, number: int) -> c.RequestCancel:
    number, at = divmod(number, len(world.jobs))
    return c.RequestCancel(at + 1, number % 3 == 0 and not leased(world.jobs[at], world.now))


def atomically(world: World, number: int) -> c.Command:
    """One write or cancel that its caller undoes, or up to two that the caller commits."""
    number, end = divmod(number, 3)
    number, form = divmod(number, 4)
    asked = cancel(world, number // 8)
    handles = _held(world)
    if not handles or form == 0:
        return c.Atomically((asked,), _ENDS[end])
    handle, number = _pick(handles, number)
    atomic = _atomic(world.spec)
    write = atomic[number % len(atomic)](handle, world, number // 4)
    if form == 1 or _ENDS[end] != "commit" or asked.job == handle.job:
        # Two writes to one row would leave open which of them a wrong field is to be blamed on.
        return c.Atomically((write,), _ENDS[end])
    return c.Atomically((write, asked) if form == 2 else (asked, write), "commit")


_ENDS: tuple[c.End, ...] = ("commit", "rollback", "raise")


@cache
def _atomic(spec: QueueSpec) -> tuple[Writer, ...]:
    """What a caller's transaction holds, of the writes that this queue serves."""
    offered = (("complete", _complete), ("fail", _fail), ("release", _release), ("renew", _renew))
    return tuple(writer for verb, writer in offered if verb in spec.verbs)


def atomic_write(world: World, number: int) -> c.Command:
    """A holder's write inside a caller's transaction, of a queue that has no cancels to stand beside it."""
    number, end = divmod(number, 3)
    handle, number = _pick(_held(world), number)
    atomic = _atomic(world.spec)
    return c.Atomically((atomic[number % len(atomic)](handle, world, number // 4),), _ENDS[end])


def tick(world: World, number: int) -> c.Command:
    return c.Tick(1 + number % _WORKERS)


def start_up(world: World, number: int) -> c.Command:
    return c.StartUp(number % 2)


def probe(world: World, number: int) -> c.Command:
    return c.Probe()


def crash(world: World, number: int) -> c.Command:
    return c.Crash(1 + number % _WORKERS)


def read_artifact(world: World, number: int) -> c.Command:
    return c.ReadArtifact(1 + number % len(world.jobs))


def plant_deadline(world: World, number: int) -> c.Command:
    """A deadline moved to now, or to soon (DEAD-01)."""
    number, at = divmod(number, len(world.jobs))
    seconds = (just_passed(world.spec), 1, world.spec.lease_seconds // 4)[number % 3]
    record = world.jobs[at]
    if record.status == PENDING and record.expires is not None:
        seconds = max(seconds, record.expires - world.now)
    return c.Plant(at + 1, "deadline", seconds)


def plant_lease(world: World, number: int) -> c.Command:
    """A lease that is left on a pending job (CLAIM-15)."""
    pending = _ordinals(world, PENDING)
    job = pending[number % len(pending)]
    return c.Plant(job, "lease", may_be_left(world.jobs[job - 1], world.now))
