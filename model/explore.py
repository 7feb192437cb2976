"""Breadth-first search over the model alone: every reachable state of a bounded world, every legal edge.

Gives pinned state counts, and the shortest trace to any check, in the order that makes "shortest" one trace and not
many (shortlex: fewer commands first, then the order of `choices`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from . import commands as c
from .choices import Bounds, last
from .edges import Edges, ModelError
from .legal import outcomes
from .paths import symbolic
from .queues import QueueSpec
from .step import step
from .trace import Trace
from .world import AS_EXPECTED, Check, Checks, Context, Violation, World

__all__ = ["Explored", "Explorer", "ModelError", "explored"]

OnEdge = Callable[[World, c.Command, Checks], None]


class Judged(NamedTuple):
    """One last command with the checks of all its legal outcomes; `first` if to it no state before looked the same."""

    command: c.Command
    checks: Checks
    first: bool


@dataclass(slots=True)
class Explorer:
    """A lazy breadth-first search over one queue's model, along the `building` commands.

    `states` lists the canonical states in the order in which they were found; `parents[n]` is the state and the
    command that first led to state n, None for the empty queue. The first outcome that a command may have leads on
    before any other does, so that a path of commands says where it ends. With a free clock, instants count from now and
    workers keep the names that traces will show; with a bounded one, states are behaviours: workers are renamed, and
    what the step before was is forgotten.
    """

    spec: QueueSpec
    bounds: Bounds = field(default_factory=Bounds)
    states: list[World] = field(default_factory=list)
    parents: list[tuple[int, c.Command] | None] = field(default_factory=list)
    depths: list[int] = field(default_factory=list)
    edges: int = 0
    _edges: Edges = field(init=False)
    _numbers: list[tuple[int, ...]] = field(default_factory=list)
    _seen: set[int] = field(default_factory=set)
    _judged: dict[int, tuple[Judged, ...]] = field(default_factory=dict)
    _checks: dict[tuple[c.Command, int, tuple[object, ...]], Checks] = field(default_factory=dict)
    _expanded: int = 0

    def __post_init__(self) -> None:
        self._edges = Edges(self.spec, self.bounds)
        self._arrive(self._edges.state(World(self.spec)), None, 0)

    def _arrive(self, key: int, parent: tuple[int, c.Command] | None, depth: int) -> None:
        """Take in a key not seen before, which may still be that of a known state in other names."""
        self._seen.add(key)
        canonical = self._edges.canonical(key)
        if canonical != key:
            if canonical in self._seen:
                return
            self._seen.add(canonical)
        world, numbers = self._edges.read(canonical)
        self.states.append(world)
        self._numbers.append(numbers)
        self.parents.append(parent)
        self.depths.append(depth)

    def expand(self, on_edge: OnEdge | None = None) -> bool:
        """Follow all edges of the oldest state not yet expanded; False when there is none (the search is complete).

        Raises:
            ModelError: a legal outcome was refused.
        """
        at = self._expanded
        if at >= len(self.states):
            return False
        depth = self.depths[at]
        if self.bounds.depth is not None and depth >= self.bounds.depth:
            return False
        self._expanded += 1
        world, numbers, seen = self.states[at], self._numbers[at], self._seen
        base = self._edges.key(world.now, numbers)
        groups = self._edges.leaving(world, numbers)
        for group in groups:
            group.uses += 1
            self.edges += group.size
            for delta, command, _ in group.usual:
                if base + delta not in seen:
                    self._arrive(base + delta, (at, command), depth + 1)
        for group in groups:
            for delta, command, _ in group.other:
                if base + delta not in seen:
                    self._arrive(base + delta, (at, command), depth + 1)
        if on_edge is not None:
            for group in groups:
                for _, command, checks in (*group.usual, *group.other):
                    on_edge(world, command, checks)
        return True

    def run(self, on_edge: OnEdge | None = None) -> Explorer:
        """Search to the end of the bounds; `on_edge` is told of every legal edge, state by state.

        Raises:
            ModelError: a legal outcome was refused.
        """
        while self.expand(on_edge):
            pass
        return self

    def checks(self) -> Counter[Check]:
        """How often each check was made on the edges followed so far."""
        found: Counter[Check] = Counter()
        for group in self._edges.groups.values():
            for _, _, checks in (*group.usual, *group.other):
                for check in checks:
                    found[check] += group.uses
        return found

    def path(self, state: int) -> list[c.Command]:
        """The bound commands that first led to this state."""
        commands: list[c.Command] = []
        parent = self.parents[state]
        while parent is not None:
            commands.append(parent[1])
            parent = self.parents[parent[0]]
        return commands[::-1]

    def witnesses(
        self, clause: str, reason: str | None = None, verb: str | None = None, alike: bool = True
    ) -> Iterator[Trace]:
        """The traces whose last command makes this check with teeth, in shortlex order.

        `verb` narrows what the last command may be; without `alike` only the first is given of those that look the same
        to it. Ends when the bounds are searched.
        """
        at = 0
        while True:
            while at >= len(self.states):
                if not self.expand():
                    return
            if self.bounds.depth is not None and self.depths[at] >= self.bounds.depth:
                return
            for command, checks, first in self.judged(at):
                if (
                    (first or alike)
                    and (verb is None or command.verb == verb)
                    and any(
                        check.clause == clause and check.teeth and (reason is None or check.reason == reason)
                        for check in checks
                    )
                ):
                    yield symbolic(self.spec, [*self.path(at), command])
            at += 1
            if at >= self._expanded:
                self.expand()

    def judged(self, at: int) -> tuple[Judged, ...]:
        """The last commands of a state, in shortlex order. States are to be asked for in the order of their numbers.

        Raises:
            ModelError: a legal outcome was refused.
        """
        known = self._judged.get(at)
        if known is None:
            known = self._judged[at] = tuple(self._judge(at))
        return known

    def _judge(self, at: int) -> Iterator[Judged]:
        """Each command judged once for all the states that look the same to it, as edges are."""
        world, numbers = self.states[at], self._numbers[at]
        claimed, swept, *owned = self._edges.looks(world.now, numbers)
        for command in last(world, self.bounds):
            job = _only_job(command)
            kind = type(command)
            looks: tuple[object, ...]
            if job:
                looks = owned[job - 1]  # type: ignore[operator]
            elif kind is c.Claim or kind is c.Enqueue:
                looks = claimed
            elif kind is c.Recover or kind is c.Tick:
                looks = swept
            elif kind is c.Advance:
                looks = ()
            else:
                looks = (world.claim, *numbers)
            seen = command, world.now, looks
            known = self._checks.get(seen)
            if known is None:
                self._checks[seen] = checks_of(world, command)
            yield Judged(command, self._checks[seen], known is None)


def _only_job(command: c.Command) -> c.JobId:
    """The job that this command touches alone; 0 for one that touches others or none."""
    if isinstance(command, c.Atomically):
        (command,) = command.commands
    named = command.handle if isinstance(command, c.HandleCommand) else command
    return named.job if isinstance(named, (c.Handle, c.JobCommand)) else 0  # type: ignore[return-value]


def checks_of(world: World, command: c.Command) -> Checks:
    """The checks that all legal outcomes of a command make.

    Raises:
        ModelError: a legal outcome was refused.
    """
    context = Context(world.now, False, AS_EXPECTED)
    found: Checks = ()
    for outcome in outcomes(world, command, context):
        after = step(world, command, outcome, context)
        if isinstance(after, Violation):
            raise ModelError(f"{command} {outcome}: {after} in {world}")
        found += after.checks
    return found


class Explored(NamedTuple):
    """What a complete search found: its states and edges, and per clause the checks and those with teeth."""

    states: int
    edges: int
    clauses: dict[str, tuple[int, int]]


def explored(spec: QueueSpec, bounds: Bounds) -> Explored:
    """Search one queue's bounded world to its end and count.

    Raises:
        ModelError: a legal outcome was refused.
        ValueError: the world has no end, for generations count on where neither clock nor depth is bounded.
    """
    if spec.has_token and bounds.until is None and bounds.depth is None:
        raise ValueError(f"{spec.key} counts generations: bound the clock or the depth")
    search = Explorer(spec, bounds).run()
    clauses: dict[str, tuple[int, int]] = {}
    for check, times in search.checks().items():
        checked, teeth = clauses.get(check.clause, (0, 0))
        clauses[check.clause] = checked + times, teeth + times * check.teeth
    return Explored(len(search.states), search.edges, dict(sorted(clauses.items())))
