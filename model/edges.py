"""The edges of a bounded world, each judged once for all the states that it looks the same from.

A command's effect is a function of the jobs it may touch, of little more than the status of those beside them, and of
the clock. `Edges` remembers what `outcomes` and `step` said of that much; it decides nothing itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from . import commands as c
from .canonical import Issued, at_rest, canonical_record, names, renamed
from .choices import Bounds, advances, claims, enqueues, own, sweeps, workers
from .legal import outcomes
from .moves import claimable, differs_by_own_lease
from .queues import PENDING, QueueSpec
from .step import step
from .world import AS_EXPECTED, Checks, Context, Record, Violation, World, closed, overdue, sweepable

BITS = 20
"""A state's key holds one record's number per job, `BITS` bits each with 0 for no job, below its head's number."""

Aside = tuple[object, ...]
_BEGUN: Issued = ((0, ""),)


class ModelError(AssertionError):
    """The model contradicts itself: `step` refused an outcome that `outcomes` calls legal."""


class Group:
    """The edges that some commands make: what each adds to the state's key, its command and its checks.

    `usual` holds the first outcome of each command, `other` the rest; `uses` counts the states it was used for.
    """

    __slots__ = ("other", "size", "uses", "usual")

    def __init__(self, found: Iterable[tuple[int, int, c.Command, Checks]]) -> None:
        edges = list(found)
        self.usual = [(delta, command, checks) for nth, delta, command, checks in edges if not nth]
        self.other = [(delta, command, checks) for nth, delta, command, checks in edges if nth]
        self.size = len(edges)
        self.uses = 0


class Edges:
    """All edges of one queue's bounded world, by the numbers of its records."""

    def __init__(self, spec: QueueSpec, bounds: Bounds) -> None:
        self.spec = spec
        self.bounds = bounds
        self.groups: dict[object, Group] = {}
        self._records: list[Record | None] = [None]
        self._numbers: dict[Record, int] = {}
        self._heads: dict[tuple[int, str], int] = {}
        self._clocks: list[tuple[int, str]] = []
        self._asides: dict[Aside, int] = {}
        self._faces: dict[tuple[int, int], tuple[int, int, int]] = {}
        self._instants: dict[tuple[int, c.Command], int] = {}
        self._later: dict[tuple[int, int, int], int] = {}
        self._names: dict[tuple[object, ...], tuple[int, ...] | None] = {}
        self._renamed: dict[tuple[int, tuple[int, ...]], int] = {}
        self._top = BITS * bounds.jobs

    # ------------------------------------------------------------------------------------------------------ numbering

    def _number(self, record: Record) -> int:
        number = self._numbers.get(record)
        if number is None:
            number = self._numbers[record] = len(self._records)
            if number >> BITS:
                raise OverflowError(f"more than {1 << BITS} different records: narrow the bounds")
            self._records.append(record)
        return number

    def _head(self, now: int, claim: str) -> int:
        """What a clock and the kind of the step before contribute to a key; a bounded search forgets the latter."""
        at = (now, "" if self.bounds.until is not None else claim)
        number = self._heads.get(at)
        if number is None:
            number = self._heads[at] = len(self._clocks)
            self._clocks.append(at)
        return number << self._top

    def key(self, now: int, numbers: tuple[int, ...], claim: str = "") -> int:
        """The key of the state with these records."""
        key = self._head(now, claim)
        for at, number in enumerate(numbers):
            key |= number << BITS * at
        return key

    def read(self, key: int) -> tuple[World, tuple[int, ...]]:
        """The world with this key, and the numbers of its records."""
        now, claim = self._clocks[key >> self._top]
        numbers = []
        while number := key & (1 << BITS) - 1:
            numbers.append(number)
            key >>= BITS
            if len(numbers) == self.bounds.jobs:
                break
        return World(self.spec, now, self._jobs(numbers), None, claim), tuple(numbers)

    def _jobs(self, numbers: Iterable[int]) -> tuple[Record, ...]:
        return tuple([self._records[number] for number in numbers])  # type: ignore[misc]

    def state(self, world: World) -> int:
        """The key of the state that stands for this world."""
        numbers = tuple([self._number(canonical_record(record, world.now, self.bounds)) for record in world.jobs])
        return self.canonical(self.key(world.now if self.bounds.until is not None else 0, numbers, world.claim))

    def canonical(self, key: int) -> int:
        """The key of the state that stands for this one, whose records are canonical each by itself."""
        if self.bounds.until is None:
            return key
        world, numbers = self.read(key)
        now = world.now
        if now < self.bounds.until and at_rest(world.jobs, now, self.bounds):
            numbers = tuple([self._at(number, now, self.bounds.until) for number in numbers])
            now = self.bounds.until
            world = World(self.spec, now, self._jobs(numbers))
        issued = tuple([record.issued for record in world.jobs])
        if issued not in self._names:
            self._names[issued] = names(issued)
        new = self._names[issued]
        if new is not None:
            numbers = tuple([self._rename(number, new) for number in numbers])
        return self.key(now, numbers)

    def _rename(self, number: int, new: tuple[int, ...]) -> int:
        known = self._renamed.get((number, new))
        if known is None:
            (record,) = self._jobs((number,))
            known = self._renamed[number, new] = self._number(renamed(record, new))
        return known

    def _at(self, number: int, now: int, then: int) -> int:
        """The record as it is once the clock has moved."""
        known = self._later.get((number, now, then))
        if known is None:
            (record,) = self._jobs((number,))
            known = self._later[number, now, then] = self._number(canonical_record(record, then, self.bounds))
        return known

    # ---------------------------------------------------------------------------------------------------------- edges

    def leaving(self, world: World, numbers: tuple[int, ...]) -> list[Group]:
        """The groups of edges that leave this state, in the alphabet's order; each adds to `key(now, numbers)`."""
        now = world.now
        acting = workers(world, self.bounds)
        claimed, swept, *owned = self.looks(now, numbers)
        found = [
            self.groups.get((now, acting, claimed)) or self._claimed(now, acting, claimed),
            self._advanced(world, numbers),
            self.groups.get((now, swept)) or self._swept(now, swept),
        ]
        for at, seen in enumerate(owned):
            found.append(self.groups.get((at, now, seen, "own")) or self._owned(at, now, seen))
        return found

    def looks(self, now: int, numbers: tuple[int, ...]) -> list[tuple[int, ...]]:
        """How the records look to a claim, to a sweep, and to what touches the first job alone, the second, …"""
        faces = [self._faces.get((number, now)) or self._face(number, now) for number in numbers]
        return [
            tuple([face[0] for face in faces]),
            tuple([face[1] for face in faces]),
            *(
                tuple([number if at == other else face[2] for other, face in enumerate(faces)])
                for at, number in enumerate(numbers)
            ),
        ]

    def _face(self, number: int, now: int) -> tuple[int, int, int]:
        """What stands for this record where a claim, a sweep, or a write to another job passes it by.

        All of them see its status and whether a cancel was requested; a claim also whether it is due or past its
        deadline, for how long a lease is left on it, its age and, where attempts have ids, whether it has had one; a
        sweep who holds it, whether an asker's own lease would judge it otherwise, and whether this is a lease's last
        tick, and of a pending job whether it has a deadline. A record that the command may touch stands for itself.
        """
        (record,) = self._jobs((number,))
        plain = (record.status, record.cancel is None)
        later = record.due is not None and record.due > now, overdue(record, now), closed(record, now)
        left = record.expires if record.status == PENDING else None
        begun = bool(record.issued) and self.spec.fence == "attempt_id"
        dated = record.status == PENDING and record.deadline is not None
        swept = differs_by_own_lease(record, now), record.expires == now + 1, dated
        face = (
            number
            if claimable(record, now)
            else self._aside((now, *plain, *later, left, begun, record.created), record, begun),
            number if sweepable(record, now) else self._aside((now, *plain, "swept", record.owner, *swept), record),
            self._aside(("own", *(plain if record.status == PENDING else (record.status,))), record),
        )
        self._faces[number, now] = face
        return face

    def _aside(self, looks: Aside, record: Record, begun: bool = False) -> int:
        """The number that stands for all records that look like this where they are passed by.

        It has no handles: they are of another job's attempts, whose ids no claim may use again. Where it is to show
        that it has had an attempt, that had an id which no claim mints.
        """
        known = self._asides.get(looks)
        if known is None:
            known = self._asides[looks] = self._number(record._replace(issued=_BEGUN if begun else ()))
        return known

    def _claimed(self, now: int, acting: int, seen: tuple[int, ...]) -> Group:
        world = World(self.spec, now, self._jobs(seen))
        free = [at for at, record in enumerate(world.jobs) if claimable(record, now)]
        commands = (*enqueues(world, self.bounds), *claims(world, self.bounds, acting))
        return self._keep((now, acting, seen), world, seen, free, commands)

    def _swept(self, now: int, seen: tuple[int, ...]) -> Group:
        world = World(self.spec, now, self._jobs(seen))
        free = [at for at, record in enumerate(world.jobs) if sweepable(record, now)]
        return self._keep((now, seen), world, seen, free, sweeps(self.spec))

    def _owned(self, at: int, now: int, seen: tuple[int, ...]) -> Group:
        world = World(self.spec, now, self._jobs(seen))
        return self._keep((at, now, seen, "own"), world, seen, [at], own(world, at + 1))

    def _keep(
        self, key: object, world: World, seen: tuple[int, ...], free: list[int], commands: Iterable[c.Command]
    ) -> Group:
        group = self.groups[key] = Group(self._judged(world, seen, free, commands))
        return group

    def _judged(
        self, world: World, seen: tuple[int, ...], free: list[int], commands: Iterable[c.Command]
    ) -> Iterator[tuple[int, int, c.Command, Checks]]:
        """Every legal outcome of these commands, which may change the jobs at `free` and add one."""
        now = world.now
        before = self.key(now, seen)
        context = Context(now, False, AS_EXPECTED)
        for command in commands:
            for nth, outcome in enumerate(outcomes(world, command, context)):
                after = step(world, command, outcome, context)
                if isinstance(after, Violation):
                    raise ModelError(f"{command} {outcome}: {after} in {world}")
                numbers = list(seen)
                for at, record in enumerate(after.world.jobs):
                    if at == len(seen):
                        numbers.append(self._number(canonical_record(record, now, self.bounds)))
                    elif record is not world.jobs[at]:
                        if at not in free:
                            raise ModelError(f"{command} {outcome} changes job {at + 1}, which it must not touch")
                        numbers[at] = self._number(canonical_record(record, now, self.bounds))
                yield nth, self.key(now, tuple(numbers), after.world.claim) - before, command, after.checks

    def _advanced(self, world: World, numbers: tuple[int, ...]) -> Group:
        now = world.now
        found = []
        for command in advances(world, self.bounds):
            then = self._moved(now, command)
            later = tuple([self._at(number, now, then) for number in numbers])
            on = then if self.bounds.until is not None else 0
            found.append((0, self.key(on, later) - self.key(now, numbers), command, ()))
        return Group(found)

    def _moved(self, now: int, command: c.Advance) -> int:
        """The instant that the clock reaches; it moves over any jobs alike."""
        then = self._instants.get((now, command))
        if then is None:
            world, context = World(self.spec, now), Context(now, False, AS_EXPECTED)
            after = [step(world, command, outcome, context) for outcome in outcomes(world, command, context)]
            if len(after) != 1 or isinstance(after[0], Violation):
                raise ModelError(f"{command}: {after}")
            then = self._instants[now, command] = after[0].world.now
        return then
