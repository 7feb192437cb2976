"""Aimed generation: one number becomes one command that the world makes interesting.

The choice is the model's: it knows which handles are stale, which leases are about to end, which jobs have a cancel
request or their last attempt. Flat lists of arbitrary commands hardly ever meet such states.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from fencepost.model import commands as c
from fencepost.model.choices import FAILURES
from fencepost.model.queues import PENDING, RUNNING
from fencepost.model.world import Record, World, expired, sweepable
from hypothesis import strategies as st

NUMBERS = 1 << 40
_BEYOND = 1 << 70
"""Hypothesis mixes integers that it finds in the user's source into its draws. None is as large as this, so that a seed
draws the same scripts whatever is imported.
"""
NUMBER = st.integers(_BEYOND, _BEYOND + NUMBERS - 1)
"""What `Aim.choose` decodes: one of `NUMBERS` integers."""

_JOBS = 4
_WORKERS = 3
_SLOTS = 512


class Aim:
    """Chooses a run's commands, one by one."""

    __slots__ = ("_jobs", "_now", "_offers")

    def __init__(self) -> None:
        # Four steps in ten leave jobs and clock as they were: what they offer is then known.
        self._jobs: tuple[Record, ...] = ()
        self._now = 0
        self._offers = _ROOM | _FEW

    def choose(self, world: World, number: int) -> c.Command:
        """The bound command that `number` stands for in this world; what was chosen before does not matter."""
        _, now, jobs, _, claim = world
        if jobs is not self._jobs or now != self._now:
            self._jobs, self._now, self._offers = jobs, now, _offers(jobs, now)
        offers = self._offers | _CLAIMED if claim else self._offers
        # Hypothesis favours small and repeated numbers; what they decode to should not be favoured with them.
        number = number * 0x9E3779B97F4A7C15 + len(jobs) + now & 0xFFFFFFFFFFFFFFFF
        number ^= number >> 29
        table = _TABLES.get(offers)
        if table is None:
            table = _TABLES[offers] = _table(offers)
        return table[number % _SLOTS](world, number // _SLOTS)


def _offers(jobs: tuple[Record, ...], now: int) -> int:
    """What these jobs offer, as a sum of the flags below."""
    offers = _ANY if jobs else 0
    if len(jobs) < _JOBS:
        offers |= _ROOM
        if len(jobs) < 2:
            offers |= _FEW
    for _, status, _, _, expires, _, _, _, due, cancel, issued, _, _ in jobs:
        if status == RUNNING:
            if expires is not None and expires > now:
                offers |= _RUNNING | (_LIVE if offers & _VALID else _VALID)
                if cancel is not None:
                    offers |= _ASKED
                if len(issued) > 1:
                    offers |= _OUTRUN
            else:
                offers |= _RUNNING | _LATE | (_SEVERAL if offers & _WAITING else _WAITING)
                if len(issued) > 1:
                    offers |= _STALE
            continue
        if issued:
            offers |= _STALE
        if status == PENDING:
            offers |= _QUEUED if offers & _PENDING else _PENDING
            if cancel is not None:
                offers |= _BLOCKED | (_SEVERAL if offers & _WAITING else _WAITING)
            elif due is not None and due > now:
                offers |= _BLOCKED | _FAR
            elif offers & _BLOCKED and not offers & _READY:
                offers |= _BEHIND | _READY
            else:
                offers |= _READY
    return offers


(
    _ROOM, _PENDING, _RUNNING, _STALE, _WAITING, _FAR, _CLAIMED, _ANY, _LATE, _ASKED, _BEHIND, _SEVERAL, _FEW,
    _LIVE, _QUEUED, _OUTRUN, _VALID, _BLOCKED, _READY,
) = (1 << bit for bit in range(19))  # fmt: skip
"""What a world offers. _WAITING: a sweep must move something, _SEVERAL: more than one job; _VALID: a lease is valid,
_LIVE: more than one; _LATE: a held lease has expired; _ASKED: a live holder was asked to cancel; _OUTRUN: a live job
has older handles; _QUEUED: several jobs are pending; _BEHIND: the oldest pending job is no candidate, another is."""


def _ordinals(world: World, status: str) -> list[int]:
    return [n for n, record in enumerate(world.jobs, 1) if record.status == status]


def _waiting(world: World) -> list[int]:
    return [n for n, record in enumerate(world.jobs, 1) if sweepable(record, world.now)]


_Held: TypeAlias = "tuple[int, int, c.Token]"
"""What makes a handle: job, worker, token. Only the one that is picked becomes a value."""


def _held(world: World) -> list[_Held]:
    return [(n, *record.issued[-1]) for n, record in enumerate(world.jobs, 1) if record.status == RUNNING]


def _late(world: World) -> list[_Held]:
    """Held handles whose lease has expired."""
    now = world.now
    return [(n, *record.issued[-1]) for n, record in enumerate(world.jobs, 1) if expired(record, now)]


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


def _enqueue(world: World, number: int) -> c.Command:
    number, budget = divmod(number, 4)
    late = world.spec.backs_off and number % 8 == 0
    return c.Enqueue((3, 2, 1, 3)[budget], (world.spec.backoff_seconds or 0) if late else 0)


_CLAIMERS = (1, 1, 2, 2, 3)
"""Few workers, so that one often claims again what it has lost."""
_BOUNDS = ((1, 1), (1, 1), (1, 1), (2, 2), (2, 1), (1, 2), (3, 3), (10, 1))


def _claim(world: World, number: int) -> c.Command:
    number, worker = divmod(number, len(_CLAIMERS))
    number, bounds = divmod(number, len(_BOUNDS))
    number, lease = divmod(number, 4)
    hook = _HOOKS[number % len(_HOOKS)]
    short = world.spec.lease_seconds // 3 if lease == 0 else None
    return c.Claim(_CLAIMERS[worker], *_BOUNDS[bounds], short, hook)


_HOOKS = (None, None, None, None, None, c.Hook("ok"), c.Hook("raise"), c.Hook("cancel"))


def _past_head(world: World, number: int) -> c.Command:
    """A claim that scans one candidate, while the oldest pending job is none."""
    return c.Claim(1 + number % _WORKERS)


def _to_expiry(world: World, number: int) -> c.Command:
    """To one job's expiry, or to the last one of all, so that a sweep meets several."""
    expiries = [record.expires or 0 for record in world.jobs if record.status == RUNNING]
    number, at = divmod(number, len(expiries) + 1)
    expires = expiries[at] if at < len(expiries) else max(expiries)
    ahead = expires + (0, 0, 0, -1, 1)[number % 5] - world.now
    return c.Advance(ahead if ahead > 0 else 1)


def _time_passes(world: World, number: int) -> c.Command:
    """A moment within a lease: what is written now then differs from what was written before."""
    return c.Advance(1 + number % world.spec.heartbeat_seconds)


def _to_last(world: World, number: int) -> c.Command:
    """To where every lease has expired, so that a sweep meets jobs of different histories (REC-09, REC-12)."""
    last = max(record.expires or 0 for record in world.jobs if record.status == RUNNING)
    return c.Advance(max(last - world.now, 1))


def _cancel_head(world: World, number: int) -> c.Command:
    """A parent's cancel of the oldest of several pending jobs, which then stands in the others' way (CLAIM-14)."""
    return c.RequestCancel(_ordinals(world, PENDING)[0], True)


def _to_due(world: World, number: int) -> c.Command:
    dues = [
        record.due
        for record in world.jobs
        if record.status == PENDING and record.cancel is None and record.due is not None and record.due > world.now
    ]
    number, at = divmod(number, len(dues))
    ahead = dues[at] + (0, 0, -1)[number % 3] - world.now
    return c.Advance(max(ahead, 1))


def _recover(world: World, number: int) -> c.Command:
    number, form = divmod(number, len(_HOOKS))
    return c.Recover((10, 10, 1, 2)[number % 4], _HOOKS[form])


def _poisoned(world: World, number: int) -> c.Command:
    """A sweep whose hook fails for one of several waiting jobs (REC-12)."""
    waiting = _waiting(world)
    number, at = divmod(number, len(waiting))
    return c.Recover(1 + (number % 4 == 0), c.Hook("poison", waiting[at]))


def _held_write(world: World, number: int) -> c.Command:
    handle, number = _pick(_held(world), number)
    return _write(handle, world, number)


def _stale_write(world: World, number: int) -> c.Command:
    handle, number = _pick(_stale(world), number)
    return _write(handle, world, number)


def _outrun_write(world: World, number: int) -> c.Command:
    """A superseded worker's write that nothing but its standing can refuse."""
    handle, number = _pick(_outrun(world), number)
    if world.jobs[handle.job - 1].cancel is not None and number % 2:  # type: ignore[operator]
        return c.Acknowledge(handle)
    return _write(handle, world, number // 2)


def _late_write(world: World, number: int) -> c.Command:
    handle, number = _pick(_late(world), number)
    number, renew = divmod(number, 3)
    return c.Renew(handle) if renew == 0 else _write(handle, world, number)


def _asked_write(world: World, number: int) -> c.Command:
    handle, number = _pick(_asked(world), number)
    return _write(handle, world, number)


def _write(handle: c.Handle, world: World, number: int) -> c.Command:
    number, kind = divmod(number, len(_WRITES))
    return _WRITES[kind](handle, world, number)


def _fail(handle: c.Handle, world: World, number: int) -> c.Command:
    return c.Fail(handle, *_FAILURES[number % len(_FAILURES)])


_FAILURES = (*FAILURES, FAILURES[0], FAILURES[0], FAILURES[0], FAILURES[2], FAILURES[2])
"""Retryable ones more often: what they leave behind is met only if the job is claimed again."""


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


def _cancel(world: World, number: int) -> c.RequestCancel:
    number, at = divmod(number, len(world.jobs))
    return c.RequestCancel(at + 1, number % 3 == 0)


def _atomically(world: World, number: int) -> c.Command:
    """One write or cancel that its caller undoes, or up to two that the caller commits."""
    number, end = divmod(number, 3)
    number, form = divmod(number, 4)
    cancel = _cancel(world, number // 8)
    handles = _held(world)
    if not handles or form == 0:
        return c.Atomically((cancel,), _ENDS[end])
    handle, number = _pick(handles, number)
    write = _ATOMIC[number % len(_ATOMIC)](handle, world, number // 4)
    if form == 1 or _ENDS[end] != "commit" or cancel.job == handle.job:
        # Two writes to one row would leave open which of them a wrong field is to be blamed on.
        return c.Atomically((write,), _ENDS[end])
    return c.Atomically((write, cancel) if form == 2 else (cancel, write), "commit")


_ENDS: tuple[c.End, ...] = ("commit", "rollback", "raise")
_ATOMIC = (_WRITES[0], _WRITES[1], _WRITES[3], _WRITES[8])


def _tick(world: World, number: int) -> c.Command:
    return c.Tick(1 + number % _WORKERS)


def _start_up(world: World, number: int) -> c.Command:
    return c.StartUp(number % 2)


def _probe(world: World, number: int) -> c.Command:
    return c.Probe()


def _crash(world: World, number: int) -> c.Command:
    return c.Crash(1 + number % _WORKERS)


_WEIGHTS: tuple[tuple[Maker, int, int], ...] = (
    (_enqueue, _ROOM, 6),
    (_enqueue, _FEW, 40),
    (_claim, _PENDING, 26),
    (_claim, _ANY, 3),
    (_past_head, _BEHIND, 24),
    (_to_expiry, _RUNNING, 14),
    (_time_passes, _RUNNING, 6),
    (_to_last, _LIVE, 16),
    (_to_due, _FAR, 16),
    (_recover, _WAITING, 10),
    (_recover, _SEVERAL, 10),
    (_recover, 0, 2),
    (_poisoned, _SEVERAL, 20),
    (_held_write, _RUNNING, 18),
    (_stale_write, _STALE, 10),
    (_outrun_write, _OUTRUN, 40),
    (_late_write, _LATE, 12),
    (_asked_write, _ASKED, 34),
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
    length = draw(st.integers(_BEYOND + 1, _BEYOND + longest)) - _BEYOND
    return [draw(NUMBER) for _ in range(length)]
