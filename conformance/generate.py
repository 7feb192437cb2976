"""Aimed generation: one number becomes one command that the world makes interesting.

The choice is the model's: it knows which handles are stale, which leases are about to end, which jobs have a cancel
request or their last attempt. Flat lists of arbitrary commands hardly ever meet such states.
"""

from __future__ import annotations

from collections.abc import Callable

from fencepost.model import commands as c
from fencepost.model.queues import PENDING, RUNNING, QueueSpec
from fencepost.model.world import Record, World
from hypothesis import strategies as st

from . import makers as m
from .makers import Maker

NUMBERS = 1 << 40
_BEYOND = 1 << 70
"""Hypothesis mixes integers that it finds in the user's source into its draws. None is as large as this, so that a seed
draws the same scripts whatever is imported.
"""
NUMBER = st.integers(_BEYOND, _BEYOND + NUMBERS - 1)
"""What `Aim.choose` decodes: one of `NUMBERS` integers."""

_JOBS = 4
_SLOTS = 512


class Aim:
    """Chooses a run's commands, one by one."""

    __slots__ = ("_exact", "_jobs", "_now", "_offers", "_tables")

    def __init__(self, spec: QueueSpec) -> None:
        self._exact = spec.exact_clock
        self._tables = _TABLES.setdefault(spec, {})
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
        table = self._tables.get(offers)
        if table is None:
            table = self._tables[offers] = _table(offers, world.spec)
        command = table[number % _SLOTS](world, number // _SLOTS)
        return command if self._exact or type(command) is not c.Advance else m.beside(world, command)


def _offers(jobs: tuple[Record, ...], now: int) -> int:
    """What these jobs offer, as a sum of the flags below."""
    offers = _ANY if jobs else 0
    if len(jobs) < _JOBS:
        offers |= _ROOM
        if len(jobs) < 2:
            offers |= _FEW
    for _, status, _, _, expires, _, _, _, due, cancel, issued, deadline, artifact, _ in jobs:
        if status == RUNNING:
            if expires is not None and expires > now:
                offers |= _RUNNING | (_LIVE if offers & _VALID else _VALID)
                if cancel is not None:
                    offers |= _ASKED
                if len(issued) > 1:
                    offers |= _OUTRUN if artifact is None else _OUTRUN | _STORED
                if deadline is not None and deadline <= now:
                    offers |= _LATE if artifact is None else _LATE | _KEPT
            else:
                offers |= _RUNNING | _LATE | (_SEVERAL if offers & _WAITING else _WAITING)
                if len(issued) > 1:
                    offers |= _STALE
                if artifact is not None:
                    offers |= _KEPT
            continue
        if issued:
            offers |= _STALE if artifact is None else _STALE | _KEPT
        if status == PENDING:
            offers |= _QUEUED if offers & _PENDING else _PENDING
            if deadline is not None:
                offers |= _DATED
            if expires is not None and expires > now:
                offers |= _LEFT
            if cancel is not None or (deadline is not None and deadline <= now):
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
    _LIVE, _QUEUED, _OUTRUN, _VALID, _BLOCKED, _READY, _DATED, _LEFT, _STORED, _KEPT,
) = (1 << bit for bit in range(23))  # fmt: skip
"""What a world offers. _WAITING: a sweep must move something, _SEVERAL: more than one job; _VALID: a lease is valid,
_LIVE: more than one; _LATE: a held lease has expired, or a deadline before it has passed; _ASKED: a live holder was
asked to cancel; _OUTRUN: a live job has older handles; _QUEUED: several jobs are pending; _BEHIND: the oldest pending
job is no candidate, another is; _DATED: a pending job has a deadline; _LEFT: a lease was left on one; _STORED: a live
job with an artifact has older handles; _KEPT: a job refers to an artifact whose attempt holds it no more."""


def _served(*verbs: str) -> Callable[[QueueSpec], bool]:
    return lambda spec: spec.verbs.issuperset(verbs)


def _always(spec: QueueSpec) -> bool:
    return True


_WEIGHTS: tuple[tuple[Maker, int, int, Callable[[QueueSpec], bool]], ...] = (
    (m.enqueue, _ROOM, 6, _always),
    (m.enqueue, _FEW, 40, _always),
    (m.claim, _PENDING, 26, _always),
    (m.claim, _ANY, 3, _always),
    (m.past_head, _BEHIND, 24, _always),
    (m.to_expiry, _RUNNING, 14, _always),
    (m.time_passes, _RUNNING, 6, _always),
    (m.to_last, _LIVE, 16, _always),
    (m.to_due, _FAR, 16, _always),
    (m.recover, _WAITING, 10, _served("recover")),
    (m.recover, _SEVERAL, 10, _served("recover")),
    (m.recover, 0, 2, _served("recover")),
    (m.poisoned, _SEVERAL, 20, _served("recover")),
    (m.held_write, _RUNNING, 18, _always),
    (m.stale_write, _STALE, 10, _always),
    (m.outrun_write, _OUTRUN, 40, _always),
    (m.late_write, _LATE, 12, _always),
    (m.asked_write, _ASKED, 34, _always),
    (m.cancel, _ANY, 8, _served("request_cancel")),
    (m.cancel_head, _QUEUED, 5, _served("request_cancel")),
    (m.atomically, _ANY, 3, _served("atomically", "request_cancel")),
    (m.tick, _WAITING, 5, _served("tick")),
    (m.tick, 0, 1, _served("tick")),
    (m.start_up, _WAITING, 2, _served("start_up")),
    (m.start_up, _RUNNING, 4, _served("start_up")),
    (m.probe, _CLAIMED, 8, _served("probe")),
    (m.crash, _RUNNING, 1, _served("crash")),
    (m.claim_one, _PENDING, 6, lambda spec: spec.claims_by_id),
    (m.to_deadline, _DATED, 12, lambda spec: spec.deadline),
    (m.to_free, _LEFT, 12, lambda spec: spec.claims_by_id),
    (m.outrun_upload, _STORED, 20, _served("put_artifact")),
    (m.late_upload, _KEPT, 8, _served("put_artifact")),
    (m.read_artifact, _ANY, 5, _served("read_artifact")),
    (m.plant_deadline, _ANY, 2, lambda spec: spec.deadline and "plant" in spec.verbs),
    (m.plant_deadline, _VALID, 5, lambda spec: spec.deadline and "plant" in spec.verbs),
    (m.plant_lease, _PENDING, 2, lambda spec: spec.claims_by_id and "plant" in spec.verbs),
    (m.atomic_write, _RUNNING, 3, lambda spec: "request_cancel" not in spec.verbs and "atomically" in spec.verbs),
)
"""(maker, what the world must offer, weight, which queues can be asked)."""

_TABLES: dict[QueueSpec, dict[int, tuple[Maker, ...]]] = {}


def _table(mask: int, spec: QueueSpec) -> tuple[Maker, ...]:
    """The makers that this world offers, each as often as its weight says, `_SLOTS` in all."""
    offered = [(maker, weight) for maker, needs, weight, fits in _WEIGHTS if (not needs or mask & needs) and fits(spec)]
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
