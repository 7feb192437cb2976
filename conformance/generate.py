"""Aimed generation: one number becomes one command that the world makes interesting.

The choice is the model's: it knows which handles are stale, which leases are about to end, which jobs have a cancel
request or their last attempt. Flat lists of arbitrary commands hardly ever meet such states.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from fencepost.model import commands as c
from fencepost.model.choices import FAILURES
from fencepost.model.queues import PENDING, RUNNING
from fencepost.model.world import World, claimable, expired
from hypothesis import strategies as st

NUMBERS = 1 << 40
"""Numbers that `choose` decodes lie in `range(NUMBERS)`."""

_JOBS = 4
_WORKERS = 3
_SLOTS = 512


class Scene(NamedTuple):
    """What a choice depends on: jobs by ordinal, and handles by how they stand."""

    world: World
    pending: list[int]
    running: list[int]
    waiting: list[int]
    """Jobs that a sweep must move."""
    stale: list[c.Handle]
    held: list[c.Handle]
    late: list[c.Handle]
    """Held handles whose lease has expired."""
    asked: list[c.Handle]
    """Held handles, their lease valid, whose job was asked to cancel."""


def choose(world: World, number: int) -> c.Command:
    """The bound command that `number` stands for in this world."""
    pending: list[int] = []
    running: list[int] = []
    waiting: list[int] = []
    stale: list[c.Handle] = []
    held: list[c.Handle] = []
    late: list[c.Handle] = []
    asked: list[c.Handle] = []
    far = behind = ready = False
    now = world.now
    for n, record in enumerate(world.jobs, 1):
        status = record.status
        issued = record.issued
        if status == RUNNING:
            running.append(n)
            handle = c.Handle(n, *issued[-1])
            held.append(handle)
            if expired(record, now):
                waiting.append(n)
                late.append(handle)
            elif record.cancel is not None:
                asked.append(handle)
            if len(issued) > 1:
                stale.extend([c.Handle(n, worker, token) for worker, token in issued[:-1]])
            continue
        if status == PENDING:
            pending.append(n)
            if claimable(record, now):
                behind = behind or (ready is False and len(pending) > 1)
                ready = True
            elif record.cancel is not None:
                waiting.append(n)
            else:
                far = True
        if issued:
            stale.extend([c.Handle(n, worker, token) for worker, token in issued])
    mask = (
        (len(world.jobs) < _JOBS)
        | bool(pending) << 1
        | bool(running) << 2
        | bool(stale) << 3
        | bool(waiting) << 4
        | far << 5
        | (world.claim != "") << 6
        | bool(world.jobs) << 7
        | bool(late) << 8
        | bool(asked) << 9
        | behind << 10
        | (len(waiting) > 1) << 11
        | (len(world.jobs) < 2) << 12
        | (len(held) - len(late) > 1) << 13
        | (len(pending) > 1) << 14
    )
    # Hypothesis favours small and repeated numbers; what they decode to should not be favoured with them.
    number = number * 0x9E3779B97F4A7C15 + len(world.jobs) + now & 0xFFFFFFFFFFFFFFFF
    number ^= number >> 29
    table = _TABLES.get(mask)
    if table is None:
        table = _TABLES[mask] = _table(mask)
    scene = Scene(world, pending, running, waiting, stale, held, late, asked)
    return table[number % _SLOTS](scene, number // _SLOTS)


Maker = Callable[[Scene, int], c.Command]


def _enqueue(scene: Scene, number: int) -> c.Command:
    number, budget = divmod(number, 4)
    late = scene.world.spec.backs_off and number % 8 == 0
    return c.Enqueue((3, 2, 1, 3)[budget], (scene.world.spec.backoff_seconds or 0) if late else 0)


_BOUNDS = ((1, 1), (1, 1), (1, 1), (2, 2), (2, 1), (1, 2), (3, 3), (10, 1))


def _claim(scene: Scene, number: int) -> c.Command:
    number, worker = divmod(number, _WORKERS)
    number, bounds = divmod(number, len(_BOUNDS))
    number, lease = divmod(number, 4)
    hook = _HOOKS[number % len(_HOOKS)]
    short = scene.world.spec.lease_seconds // 3 if lease == 0 else None
    return c.Claim(worker + 1, *_BOUNDS[bounds], short, hook)


_HOOKS = (None, None, None, None, None, c.Hook("ok"), c.Hook("raise"), c.Hook("cancel"))


def _past_head(scene: Scene, number: int) -> c.Command:
    """A claim that scans one candidate, while the oldest pending job is none."""
    return c.Claim(1 + number % _WORKERS)


def _to_expiry(scene: Scene, number: int) -> c.Command:
    """To one job's expiry, or to the last one of all, so that a sweep meets several."""
    number, at = divmod(number, len(scene.running) + 1)
    jobs = scene.world.jobs
    expiries = [jobs[n - 1].expires or 0 for n in scene.running]
    expires = expiries[at] if at < len(expiries) else max(expiries)
    ahead = expires + (0, 0, 0, -1, 1)[number % 5] - scene.world.now
    return c.Advance(ahead if ahead > 0 else 1)


def _to_last(scene: Scene, number: int) -> c.Command:
    """To where every lease has expired, so that a sweep meets jobs of different histories (REC-09, REC-12)."""
    last = max(scene.world.jobs[n - 1].expires or 0 for n in scene.running)
    return c.Advance(max(last - scene.world.now, 1))


def _cancel_head(scene: Scene, number: int) -> c.Command:
    """A parent's cancel of the oldest of several pending jobs, which then stands in the others' way (CLAIM-14)."""
    return c.RequestCancel(scene.pending[0], True)


def _to_due(scene: Scene, number: int) -> c.Command:
    dues = [due for n in scene.pending if (due := scene.world.jobs[n - 1].due) is not None and due > scene.world.now]
    number, at = divmod(number, len(dues))
    ahead = dues[at] + (0, 0, -1)[number % 3] - scene.world.now
    return c.Advance(max(ahead, 1))


def _recover(scene: Scene, number: int) -> c.Command:
    number, form = divmod(number, len(_HOOKS))
    return c.Recover((10, 10, 1, 2)[number % 4], _HOOKS[form])


def _poisoned(scene: Scene, number: int) -> c.Command:
    """A sweep whose hook fails for one of several waiting jobs (REC-12)."""
    number, at = divmod(number, len(scene.waiting))
    return c.Recover(1 + (number % 4 == 0), c.Hook("poison", scene.waiting[at]))


def _held_write(scene: Scene, number: int) -> c.Command:
    number, at = divmod(number, len(scene.held))
    return _write(scene.held[at], scene.world, number)


def _stale_write(scene: Scene, number: int) -> c.Command:
    number, at = divmod(number, len(scene.stale))
    return _write(scene.stale[at], scene.world, number)


def _late_write(scene: Scene, number: int) -> c.Command:
    number, at = divmod(number, len(scene.late))
    number, renew = divmod(number, 3)
    handle = scene.late[at]
    return c.Renew(handle) if renew == 0 else _write(handle, scene.world, number)


def _asked_write(scene: Scene, number: int) -> c.Command:
    number, at = divmod(number, len(scene.asked))
    return _write(scene.asked[at], scene.world, number)


def _write(handle: c.Handle, world: World, number: int) -> c.Command:
    number, kind = divmod(number, len(_WRITES))
    return _WRITES[kind](handle, world, number)


def _fail(handle: c.Handle, world: World, number: int) -> c.Command:
    return c.Fail(handle, *FAILURES[number % len(FAILURES)])


_WRITES: tuple[Callable[[c.Handle, World, int], c.Command], ...] = (
    lambda handle, world, number: c.Complete(handle),
    _fail,
    lambda handle, world, number: c.Renew(handle, world.spec.lease_seconds // 3 if number % 4 == 0 else None),
    lambda handle, world, number: c.Release(handle),
    lambda handle, world, number: c.Acknowledge(handle),
    lambda handle, world, number: c.Complete(handle),
    _fail,
    lambda handle, world, number: c.Checkpoint(handle),
    lambda handle, world, number: c.Renew(handle),
    _fail,
)


def _cancel(scene: Scene, number: int) -> c.Command:
    number, at = divmod(number, len(scene.world.jobs))
    return c.RequestCancel(at + 1, number % 3 == 0)


def _atomically(scene: Scene, number: int) -> c.Command:
    number, end = divmod(number, 3)
    number, first = divmod(number, 2)
    inner: list[c.Command] = [_cancel(scene, number)]
    if scene.held:
        number //= 8
        at = number % len(scene.held)
        write = _ATOMIC[number // len(scene.held) % len(_ATOMIC)](scene.held[at], scene.world, number // 64)
        inner = [write, *inner] if first else [*inner, write] if number % 2 else [write]
    return c.Atomically(tuple(inner), ("commit", "rollback", "raise")[end])


_ATOMIC = (_WRITES[0], _WRITES[1], _WRITES[3], _WRITES[8])


def _tick(scene: Scene, number: int) -> c.Command:
    return c.Tick(1 + number % _WORKERS)


def _start_up(scene: Scene, number: int) -> c.Command:
    return c.StartUp(number % 2)


def _probe(scene: Scene, number: int) -> c.Command:
    return c.Probe()


def _crash(scene: Scene, number: int) -> c.Command:
    return c.Crash(1 + number % _WORKERS)


(
    _ROOM, _PENDING, _RUNNING, _STALE, _WAITING, _FAR, _CLAIMED, _ANY, _LATE, _ASKED, _BEHIND, _SEVERAL, _FEW,
    _LIVE, _QUEUED,
) = (1 << bit for bit in range(15))  # fmt: skip

_WEIGHTS: tuple[tuple[Maker, int, int], ...] = (
    (_enqueue, _ROOM, 6),
    (_enqueue, _FEW, 40),
    (_claim, _PENDING, 26),
    (_claim, _ANY, 3),
    (_past_head, _BEHIND, 24),
    (_to_expiry, _RUNNING, 14),
    (_to_last, _LIVE, 16),
    (_to_due, _FAR, 16),
    (_recover, _WAITING, 10),
    (_recover, _SEVERAL, 10),
    (_recover, 0, 2),
    (_poisoned, _SEVERAL, 20),
    (_held_write, _RUNNING, 18),
    (_stale_write, _STALE, 14),
    (_late_write, _LATE, 12),
    (_asked_write, _ASKED, 30),
    (_cancel, _ANY, 8),
    (_cancel_head, _QUEUED, 5),
    (_atomically, _ANY, 3),
    (_tick, _WAITING, 5),
    (_tick, 0, 1),
    (_start_up, _WAITING, 2),
    (_start_up, _RUNNING, 4),
    (_probe, _CLAIMED, 8),
    (_crash, _RUNNING, 1),
)
"""(maker, what the world must offer, weight)."""

_TABLES: dict[int, tuple[Maker, ...]] = {}


def _table(mask: int) -> tuple[Maker, ...]:
    """The makers that this world offers, each as often as its weight says, `_SLOTS` in all."""
    offered = [(maker, weight) for maker, needs, weight in _WEIGHTS if not needs or mask & needs]
    total = sum(weight for _, weight in offered)
    table: list[Maker] = []
    reached = 0
    for maker, weight in offered:
        reached += weight
        table += [maker] * (reached * _SLOTS // total - len(table))
    return tuple(table)


@st.composite
def scripts(draw: st.DrawFn, longest: int) -> list[int]:
    """A script of up to `longest` numbers, one bounded draw per step; `choose` decodes them while the queue runs."""
    length = draw(st.integers(1, longest))
    number = st.integers(0, NUMBERS - 1)
    return [draw(number) for _ in range(length)]
