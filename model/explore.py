"""Breadth-first search over the model alone: every reachable state of a bounded world, every legal edge.

Gives pinned state counts, and the shortest trace to any check, in the order that makes "shortest" one trace and not
many (shortlex: fewer commands first, then the order of `choices`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from . import commands as c
from .choices import Bounds, building, last
from .legal import outcomes
from .paths import symbolic
from .queues import PENDING, RUNNING, QueueSpec
from .step import step
from .trace import Trace
from .world import AS_EXPECTED, Checks, Context, Record, Step, Violation, World

Alphabet = Callable[[World, Bounds], Iterator[c.Command]]


class ModelError(AssertionError):
    """The model contradicts itself: `step` refused an outcome that `outcomes` calls legal."""


def canonical(world: World, keep_clock: bool = False) -> World:
    """The world's behaviour alone: what no later command can tell apart is made equal.

    Time counts from now, unless the clock is kept because it is bounded. With the clock, workers are also renamed in
    the order in which they appear, and what the step before was is forgotten: counts are then of behaviours, where a
    search for witnesses keeps the names that its traces will show.
    """
    now = world.now
    shift = 0 if keep_clock else now
    jobs = tuple([_canonical(record, now, shift) for record in world.jobs])
    if keep_clock:
        return World(world.spec, now, _renamed(jobs), None)
    return World(world.spec, 0, jobs, None, world.claim)


def _canonical(record: Record, now: int, shift: int) -> Record:
    spec, status, owner, token, expires, lease, attempts, budget, due, cancel, issued = record
    if status == RUNNING:
        if expires is not None:
            if expires < now and lease == spec.lease_seconds:
                expires = now  # expired long ago is expired
            expires -= shift
        due = None
    elif status == PENDING:
        due = due - shift if due is not None and due > now else None
    else:
        # An ended job refuses everything alike; the newest handle stands for all older ones.
        attempts = budget = 0
        due = None
        issued = issued[-1:]
    if len(issued) > 2:
        issued = (*sorted(issued[:-1]), issued[-1])
    return Record(
        spec, status, owner, token, expires, lease, attempts, budget, due, None if cancel is None else 0, issued
    )  # fmt: skip


def _renamed(jobs: tuple[Record, ...]) -> tuple[Record, ...]:
    """The records with workers numbered by first appearance: the owner first, then older claims."""
    names: dict[int, int] = {}
    for record in jobs:
        for worker, _ in reversed(record.issued):
            if worker not in names:
                names[worker] = len(names) + 1
    if all(worker == name for worker, name in names.items()):
        return jobs
    return tuple(
        record._replace(
            owner=names[record.owner] if record.owner else 0,
            issued=_sorted_but_last(tuple((names[worker], token) for worker, token in record.issued)),
        )
        for record in jobs
    )


def _sorted_but_last(issued: tuple[tuple[int, c.Token], ...]) -> tuple[tuple[int, c.Token], ...]:
    return (*sorted(issued[:-1]), *issued[-1:])


@dataclass(slots=True)
class Explorer:
    """A lazy breadth-first search over one queue's model.

    `states` lists the canonical states in the order in which they were found; `parents[n]` is the state and the
    command that first led to state n, None for the empty queue.
    """

    spec: QueueSpec
    bounds: Bounds = field(default_factory=Bounds)
    alphabet: Alphabet = building
    states: list[World] = field(default_factory=list)
    parents: list[tuple[int, c.Command] | None] = field(default_factory=list)
    depths: list[int] = field(default_factory=list)
    edges: int = 0
    _index: dict[World, int] = field(default_factory=dict)
    _expanded: int = 0

    def __post_init__(self) -> None:
        self._add(World(self.spec), None, 0)

    def _add(self, world: World, parent: tuple[int, c.Command] | None, depth: int) -> None:
        self._index[world] = len(self.states)
        self.states.append(world)
        self.parents.append(parent)
        self.depths.append(depth)

    def expand(self, on_edge: Callable[[World, c.Command, Checks], None] | None = None) -> bool:
        """Follow all edges of the oldest state not yet expanded; False when there is none (the search is complete)."""
        if self._expanded >= len(self.states):
            return False
        at = self._expanded
        world, depth = self.states[at], self.depths[at]
        if self.bounds.depth is not None and depth >= self.bounds.depth:
            return False
        self._expanded += 1
        context = Context(world.now, False, AS_EXPECTED)
        keep_clock = self.bounds.until is not None
        for command in self.alphabet(world, self.bounds):
            for outcome in outcomes(world, command, context):
                after = step(world, command, outcome, context)
                if isinstance(after, Violation):
                    raise ModelError(f"{command} {outcome}: {after} in {world}")
                self.edges += 1
                if on_edge is not None:
                    on_edge(world, command, after.checks)
                reached = canonical(after.world, keep_clock)
                if reached not in self._index:
                    self._add(reached, (at, command), depth + 1)
        return True

    def run(self, on_edge: Callable[[World, c.Command, Checks], None] | None = None) -> Explorer:
        """Search to the end of the bounds.

        Raises:
            ModelError: a legal outcome was refused.
        """
        while self.expand(on_edge):
            pass
        return self

    def path(self, state: int) -> list[c.Command]:
        """The bound commands that first led to this state."""
        commands: list[c.Command] = []
        parent = self.parents[state]
        while parent is not None:
            commands.append(parent[1])
            parent = self.parents[parent[0]]
        return commands[::-1]

    def witnesses(self, clause: str, reason: str | None = None, verb: str | None = None) -> Iterator[Trace]:
        """The traces whose last command makes this check with teeth, in shortlex order.

        `verb` narrows what the last command may be. Ends when the bounds are searched.
        """
        at = 0
        while True:
            while at >= len(self.states):
                if not self.expand():
                    return
            world = self.states[at]
            if self.bounds.depth is not None and self.depths[at] >= self.bounds.depth:
                return
            context = Context(world.now, False, AS_EXPECTED)
            for command in last(world, self.bounds):
                if (verb is None or command.verb == verb) and _makes(world, command, context, clause, reason):
                    yield symbolic(self.spec, [*self.path(at), command])
            at += 1
            if at >= self._expanded:
                self.expand()


def _makes(world: World, command: c.Command, context: Context, clause: str, reason: str | None) -> bool:
    for outcome in outcomes(world, command, context):
        after = step(world, command, outcome, context)
        if isinstance(after, Step) and any(
            check.clause == clause and check.teeth and (reason is None or check.reason == reason)
            for check in after.checks
        ):
            return True
    return False
