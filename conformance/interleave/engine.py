"""The interleaved engine: plays lanes of commands on an adapter in chosen orders of statements, and has each judged.

It knows adapters by their contract and `Gated` alone, and has no opinion about what is legal: `linear.judge` says so
of what was answered, `shape` of the statements that were sent.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from random import Random
from typing import Any, Literal

from fencepost.adapters.contract import Adapter, AdapterError, Gated
from fencepost.conformance.driver import Driver, worker_of
from fencepost.model import commands as c
from fencepost.model import outcomes as o
from fencepost.model.linear import Operation, judge
from fencepost.model.paths import Binding, Dangling
from fencepost.model.queues import QueueSpec
from fencepost.model.step import SETUP, step
from fencepost.model.trace import Trace, TraceStep
from fencepost.model.world import Checks, Context, Violation, World

from .exhaustive import Exhaustive
from .gate import Gate
from .played import Played, Ran
from .programs import Program
from .random_walk import RandomWalk
from .replay import Replay
from .scheduler import Start, Strategy, run_schedule
from .shape import Shaped, shape_of


@dataclass(frozen=True, slots=True)
class History:
    """One schedule as it went: the statements and choices, the trace with what was answered, and the judgement.

    `checks` is empty where it was not legal. `shape` is a fault in the statements themselves, legal as the answers are.
    """

    played: Played
    trace: Trace
    checks: Checks
    violation: Violation | None
    shape: Violation | None = None


@dataclass(frozen=True, slots=True)
class Certificate:
    """What a search over the schedules of one program says of one clause."""

    clause: str
    queue: str
    adapter: str
    pair: str
    schedules: int
    exhaustive: bool
    bound: str


@dataclass(frozen=True, slots=True)
class Certified:
    """The outcome of a search: its certificates, and the first failing schedule, if any."""

    certificates: tuple[Certificate, ...]
    schedules: int
    """Distinct ones that were played and judged."""
    exhaustive: bool
    trace: Trace | None = None
    violation: Violation | None = None


class Lanes:
    """A trace's lanes on one adapter, ready to be played again and again; made by `lanes_of`."""

    def __init__(self, adapter: Adapter, spec: QueueSpec, trace: Trace, gates: list[Gate]) -> None:
        self.trace = trace
        self.spec = spec
        self.adapter = adapter
        self._driver = Driver(adapter, spec)
        self._gates = gates
        self._performs = [adapter.actor(worker).perform for worker in range(10)]
        self._world = World(spec)
        self._binding = Binding()
        self._before: list[TraceStep] = []
        self._bound: dict[tuple[int, int], c.Command] = {}

    async def checked_prefix(self) -> tuple[Trace, Violation] | None:
        """Run what comes before the lanes alone, and judge it with the rows after every step."""
        run = await self._driver.play(Trace(self.trace.steps))
        return None if run.violation is None else (run.trace(), run.violation)

    async def prepare(self) -> None:
        """Empty the queue and run what comes before the lanes, ungated."""
        world = await self._driver.reset()
        self._binding, self._before = Binding(), []
        self._bound.clear()
        for each in self.trace.steps:
            try:
                command = self._binding.bind(each.command, world)
            except Dangling:
                continue
            outcome: o.Outcome = o.DONE
            if type(command) is not c.Advance:
                outcome = await self._serve(worker_of(command), command, world.now)
            after = step(world, command, outcome, Context(world.now))
            if isinstance(after, Violation):
                raise AdapterError(f"{self.adapter.name}: {command.verb} answered otherwise before: {after.why}")
            self._binding.note(each.label, outcome)
            self._before.append(replace(each, outcome=outcome))
            world = after.world
        self._world = world

    async def play(self, strategy: Strategy) -> History:
        """Prepare, play the lanes in the order that the strategy chooses, look at the rows, and judge.

        Raises:
            Diverged: the schedule that the strategy follows does not fit.
            Stuck: an actor waits for something that no other will release.
            AdapterError: the adapter did not do what the harness needs.
        """
        await self.prepare()
        now = [self._world.now]
        advances = [self._advance(each.command) for each in self.trace.lanes[0]]
        played = await run_schedule(
            [partial(_move, now, seconds) for seconds in advances],
            [(gate, self._starts(lane)) for lane, gate in enumerate(self._gates, 1)],
            strategy,
            now=lambda: now[0],
            blocked=self._blocked if self.adapter.capabilities.row_locks else None,
        )
        return await self._judged(played)

    async def run_ungated(self) -> None:
        """The same work without a scheduler, one lane after another: what a schedule's cost is compared with."""
        await self.prepare()
        now = self._world.now + sum(self._advance(each.command) for each in self.trace.lanes[0])
        ran: list[Ran] = []
        for lane in range(1, len(self.trace.lanes)):
            for nth, start in enumerate(self._starts(lane)):
                ran.append(Ran(lane, nth, len(ran), len(ran), now, await start(now)))
        await self._judged(Played("", (), (), tuple(ran)))

    async def _judged(self, played: Played) -> History:
        operations = [
            Operation(self._bound[ran.lane, ran.nth], ran.outcome, ran.start, ran.end, ran.now)
            for ran in played.commands
            if (ran.lane, ran.nth) in self._bound
        ]
        found = judge(self._world, operations, await self._driver.look())
        if isinstance(found, Violation):
            if found.clause == SETUP:
                raise AdapterError(f"{self.adapter.name}: {played.schedule}: {found.reason}: {found.why}")
            return History(played, self._told(played), (), found)
        return History(played, self._told(played), found, None)

    def shaped(self, history: History, clauses: tuple[str, ...]) -> History:
        """The history with its statements judged too, for those clauses that are about statements."""
        commands = {(ran.lane, ran.nth): ran for ran in history.played.commands}
        claims = [
            Shaped(ran.outcome, history.played.statements_of(ran))
            for at, ran in commands.items()
            if type(self._bound.get(at)) is c.Claim
        ]
        return replace(history, shape=shape_of(clauses, claims, self.adapter.capabilities.gate))

    def _told(self, played: Played) -> Trace:
        outcomes = {(ran.lane, ran.nth): ran.outcome for ran in played.commands}
        lanes = tuple(
            tuple(replace(each, outcome=outcomes.get((lane, nth))) for nth, each in enumerate(steps))
            for lane, steps in enumerate(self.trace.lanes)
        )
        return Trace(tuple(self._before), lanes, played.schedule or None)

    def _starts(self, lane: int) -> list[Start]:
        return [self._start(lane, nth, each) for nth, each in enumerate(self.trace.lanes[lane])]

    def _start(self, lane: int, nth: int, each: TraceStep) -> Start:
        def start(now: int) -> Coroutine[Any, Any, o.Outcome | None]:
            return self._run(lane, nth, each, now)

        return start

    async def _run(self, lane: int, nth: int, each: TraceStep, now: int) -> o.Outcome | None:
        try:
            command = self._binding.bind(each.command, self._world)
        except Dangling:  # an earlier command of this lane did not win what this one is about
            return None
        outcome = await self._serve(lane, command, now)
        self._bound[lane, nth] = command
        self._binding.note(each.label, outcome)
        return outcome

    async def _serve(self, actor: int, command: c.Command, now: int) -> o.Outcome:
        return self._driver.translate(await self._performs[actor](self._driver.native(command), now))

    def _advance(self, command: c.Command) -> int:
        try:
            advance = self._binding.bind(command, self._world)
        except Dangling:
            return 0
        assert isinstance(advance, c.Advance)
        return advance.seconds

    async def _blocked(self, names: Any) -> set[str]:
        assert isinstance(self.adapter, Gated)
        return {str(worker) for worker in await self.adapter.blocked([int(name) for name in names])}


def _move(now: list[int], seconds: int) -> o.Outcome:
    now[0] += seconds
    return o.DONE


@asynccontextmanager
async def lanes_of(adapter: Adapter, spec: QueueSpec, trace: Trace) -> AsyncIterator[Lanes]:
    """The lanes of a trace on an adapter that is open with this queue; lane n is played by actor n.

    Raises:
        AdapterError: no scheduler can hold this adapter's statements.
    """
    if adapter.capabilities.gate == "none" or not isinstance(adapter, Gated):
        raise AdapterError(f"{adapter.name}: has no gate, so that its actors cannot be interleaved")
    gates: list[Gate] = []
    try:
        for lane in range(1, len(trace.lanes)):
            gate = Gate(str(lane))
            gates.append(gate)
            gate.attach(await adapter.connection(lane))
        yield Lanes(adapter, spec, trace, gates)
    finally:
        for gate in gates:
            gate.detach()


OnSchedule = Callable[[History], None]


async def certify(
    adapter: Adapter,
    spec: QueueSpec,
    program: Program,
    *,
    order: Literal["switches", "depth"] = "switches",
    most: int | None = None,
    on_schedule: OnSchedule | None = None,
) -> Certified:
    """Play every schedule of the program, or the first `most`, in the order of context switches or depth first.

    It stops at the first illegal one. A fault in the statements alone (CLAIM-11, CLAIM-14) is kept and the search goes
    on, since an illegal answer outranks it.

    Raises:
        Diverged: the same choices led elsewhere: the adapter is not deterministic under the gate.
        Stuck, AdapterError: the harness cannot go on.
    """
    async with lanes_of(adapter, spec, program.trace()) as lanes:
        tally = _Tally(lanes, program, on_schedule)
        broken = await lanes.checked_prefix()
        if broken is not None:
            return Certified((), 0, False, *broken)
        seen: dict[str, History] = {}

        async def play(strategy: Strategy) -> Played:
            history = await lanes.play(strategy)
            seen[history.played.schedule] = history
            return history.played

        search = Exhaustive(play, order, most=most)
        async for played in search.schedules():
            if tally.add(seen.pop(played.schedule)):
                break
        cut = "" if search.exhaustive else f"the first {tally.schedules} in the order of {order}"
        return tally.certified(search.exhaustive, cut)


async def search(
    adapter: Adapter,
    spec: QueueSpec,
    program: Program,
    *,
    seed: int,
    most: int,
    on_schedule: OnSchedule | None = None,
) -> Certified:
    """Play `most` random schedules of the program; the same seed plays the same ones. Raises as `certify`."""
    async with lanes_of(adapter, spec, program.trace()) as lanes:
        tally = _Tally(lanes, program, on_schedule)
        broken = await lanes.checked_prefix()
        if broken is not None:
            return Certified((), 0, False, *broken)
        draw, known = Random(seed), set()
        for _ in range(most):
            history = await lanes.play(RandomWalk(draw.getrandbits(64)))
            if history.played.schedule in known:
                continue
            known.add(history.played.schedule)
            if tally.add(history):
                break
        return tally.certified(False, f"{most} random walks, seed {seed}")


async def replay_schedule(adapter: Adapter, spec: QueueSpec, trace: Trace) -> Violation | None:
    """Play a trace's own schedule to the letter, and judge it; None if it is legal.

    Raises:
        Diverged: the schedule does not fit; neither pass nor fail.
    """
    assert trace.schedule is not None, "a trace without a schedule has no order to replay"
    async with lanes_of(adapter, spec, trace) as lanes:
        broken = await lanes.checked_prefix()
        if broken is not None:
            return broken[1]
        history = await lanes.play(Replay(trace.schedule))
        shaped = lanes.shaped(history, ("CLAIM-11",))
        return history.violation or shaped.shape


class _Tally:
    """Counts a search's schedules and keeps its first failures."""

    def __init__(self, lanes: Lanes, program: Program, on_schedule: OnSchedule | None) -> None:
        self._lanes = lanes
        self._program = program
        self._clauses = program.certified(lanes.adapter.capabilities.row_locks)
        self._on_schedule = on_schedule
        self.schedules = 0
        self.failed: tuple[Trace, Violation] | None = None
        self._misshapen: tuple[Trace, Violation] | None = None

    def add(self, history: History) -> bool:
        """Count one schedule; whether it ends the search."""
        self.schedules += 1
        history = self._lanes.shaped(history, self._clauses)
        if self._on_schedule is not None:
            self._on_schedule(history)
        if history.violation is not None:
            self.failed = history.trace, history.violation
            return True
        if history.shape is not None and self._misshapen is None:
            self._misshapen = history.trace, history.shape
        return False

    def certified(self, exhaustive: bool, cut: str) -> Certified:
        failed = self.failed or self._misshapen
        lanes, program = self._lanes, self._program
        jobs = sum(type(command) is c.Enqueue for command in program.before)
        bound = f"{jobs} jobs, {len(program.lanes)} actors, {sum(map(len, program.lanes))} commands at once"
        certificates = tuple(
            Certificate(
                clause, lanes.spec.key, lanes.adapter.name, program.name, self.schedules, exhaustive,
                f"{bound}; {cut}" if cut else bound,
            )
            for clause in self._clauses
        )  # fmt: skip
        return Certified(certificates, self.schedules, exhaustive, *(failed or (None, None)))
