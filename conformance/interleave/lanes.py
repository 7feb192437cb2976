"""A race on an adapter: plays the lanes of a trace in one order of their statements, and has that judged.

It knows adapters by their contract and `Gated` alone, and has no opinion about what is legal: `linear.judge` says so
of what was answered, `shape` of the statements that were sent.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import Any

from fencepost.adapters.contract import Adapter, AdapterError, Gated
from fencepost.conformance.driver import Driver, worker_of
from fencepost.model import commands as c
from fencepost.model import outcomes as o
from fencepost.model.history import Operation
from fencepost.model.linear import judge
from fencepost.model.moves import claimable
from fencepost.model.paths import Binding, Dangling
from fencepost.model.queues import QueueSpec
from fencepost.model.step import step
from fencepost.model.trace import Trace, TraceStep
from fencepost.model.world import SETUP, Checks, Context, Violation, World

from .gate import Gate
from .played import Played, Ran
from .scheduler import Start, Strategy, run_schedule
from .shape import Shaped, shape_of


@dataclass(frozen=True, slots=True)
class History:
    """One schedule as it went: the statements and choices, the trace with what was answered, and the judgement.

    Every step of `trace` keeps its label and has its outcome, None where a lane never came to run it. `illegal` is a
    clause that the answers and rows break, and `checks` is then empty; `misshapen` one that the statements break
    (CLAIM-11, CLAIM-14), legal as the answers may be.
    """

    played: Played
    trace: Trace
    checks: Checks
    illegal: Violation | None
    misshapen: Violation | None

    @property
    def schedule(self) -> str:
        """The choices made, a digit each."""
        return self.played.schedule

    @property
    def enabled(self) -> tuple[tuple[int, ...], ...]:
        """The lanes that could be chosen at each token."""
        return self.played.enabled

    @property
    def violation(self) -> Violation | None:
        """What is wrong with it; an illegal answer outranks what the statements look like."""
        return self.illegal or self.misshapen


class BrokenPrefix(Exception):
    """A clause is broken before the lanes start. `history` ends with the step that broke it, and has no lanes."""

    def __init__(self, trace: Trace, violation: Violation) -> None:
        super().__init__(f"{violation.clause} is broken before the lanes start: {violation.why}")
        self.history = History(Played("", (), (), ()), trace, (), violation, None)


class Lanes:
    """A trace's lanes on one adapter, ready to be played again and again; made by `lanes_of`."""

    def __init__(self, adapter: Adapter, spec: QueueSpec, trace: Trace, gates: list[Gate]) -> None:
        self.trace = trace
        self.spec = spec
        self.adapter = adapter
        self._driver = Driver(adapter, spec)
        self._gates = gates
        self._clock = trace.lanes[0] if trace.lanes else ()
        self._performs = [adapter.actor(worker).perform for worker in range(len(c.WORKER_NAMES))]
        self._world = World(spec)
        self._binding = Binding()
        self._before: list[TraceStep] = []
        self._bound: dict[tuple[int, int], c.Command] = {}
        self.skipped: dict[int, str] = {}
        """The steps before the lanes that could not run, by label, and why."""

    async def prepare(self, *, watched: bool = False) -> Checks:
        """Empty the queue, run what comes before the lanes, ungated, and judge it: if `watched`, with the rows after
        every step, else by the answers alone, and look once at the end. Returns the checks made.

        Raises:
            BrokenPrefix: it breaks a clause.
            AdapterError: the adapter did not do what the harness needs.
        """
        world = await self._driver.reset()
        self._binding, self._before = Binding(), []
        self._bound.clear()
        self.skipped.clear()
        checks: Checks = ()
        for each in self.trace.steps:
            try:
                command = self._binding.bind(each.command, world)
            except Dangling as missing:
                self.skipped[each.label] = str(missing)
                continue
            outcome: o.Outcome = o.DONE
            rows = world.rows if watched else None
            if type(command) is c.Advance:
                await self._driver.advance(world.now, command.seconds)
            else:
                outcome = await self._serve(worker_of(command), command, world.now)
                if isinstance(command, c.Crash):
                    await self._gate_again(command.worker)
                rows = await self._driver.look() if watched else None
            self._binding.note(each.label, outcome)
            self._before.append(replace(each, outcome=outcome))
            after = step(world, command, outcome, Context(world.now, False, rows))
            if isinstance(after, Violation):
                if after.clause == SETUP:
                    raise AdapterError(f"{self.adapter.name}: {command.verb}: {after.reason}: {after.why}")
                raise BrokenPrefix(Trace(tuple(self._before)), after)
            world, checks = after.world, checks + after.checks
        self._world = world if watched else world._replace(rows=await self._driver.look())
        return checks

    async def play(self, strategy: Strategy) -> History:
        """Prepare, play the lanes in the order that the strategy chooses, look at the rows, and judge.

        Raises:
            Diverged: the schedule that the strategy follows does not fit.
            Stuck: an actor waits for something that no other will release.
            BrokenPrefix, AdapterError: as `prepare`.
        """
        await self.prepare()
        now = [self._world.now]
        played = await run_schedule(
            [partial(self._advance, now, each.command) for each in self._clock],
            [(gate, self._starts(lane)) for lane, gate in enumerate(self._gates, 1)],
            strategy,
            now=lambda: now[0],
            blocked=self._blocked if self.adapter.capabilities.row_locks else None,
        )
        return await self._judged(played)

    async def run_ungated(self) -> None:
        """The same work without a scheduler, one lane after another: what a schedule's cost is compared with."""
        await self.prepare()
        now = [self._world.now]
        for each in self._clock:
            self._advance(now, each.command)
        ran: list[Ran] = []
        for lane in range(1, len(self.trace.lanes)):
            for nth, start in enumerate(self._starts(lane)):
                ran.append(Ran(lane, nth, len(ran), len(ran), now[0], await start(now[0])))
        found = judge(self._world, self._operations(tuple(ran)), await self._driver.look())
        assert not isinstance(found, Violation), found

    async def _judged(self, played: Played) -> History:
        operations = self._operations(played.commands)
        found = judge(self._world, operations, await self._driver.look())
        if isinstance(found, Violation):
            if found.clause == SETUP:
                raise AdapterError(f"{self.adapter.name}: {played.schedule}: {found.reason}: {found.why}")
            return History(played, self._told(played), (), found, None)
        return History(played, self._told(played), found, None, self._misshapen(played, operations))

    def _operations(self, commands: tuple[Ran, ...]) -> list[Operation]:
        """The lanes' commands in the model's terms; one that had nothing to be about never ran."""
        return [
            Operation(self._bound[ran.lane, ran.nth], ran.outcome, ran.start, ran.end, ran.now)
            for ran in commands
            if (ran.lane, ran.nth) in self._bound
        ]

    def _misshapen(self, played: Played, operations: list[Operation]) -> Violation | None:
        claims = [
            Shaped(ran.outcome, played.statements_of(ran))
            for ran in played.commands
            if type(self._bound.get((ran.lane, ran.nth))) is c.Claim
        ]
        asked = [each.command.limit for each in operations if type(each.command) is c.Claim]
        due = sum(claimable(record, self._world.now) for record in self._world.jobs)
        enough = len(asked) == len(operations) and sum(asked) <= due
        return shape_of(claims, row_locks=self.adapter.capabilities.row_locks, enough=enough)

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

    async def _gate_again(self, worker: int) -> None:
        """Hold the connection that a crashed worker goes on with."""
        if 1 <= worker <= len(self._gates):
            gate = self._gates[worker - 1]
            gate.detach()
            assert isinstance(self.adapter, Gated)
            gate.attach(await self.adapter.connection(worker))

    def _advance(self, now: list[int], command: c.Command) -> o.Outcome | None:
        """Move the clock; None where the instant is not ahead."""
        try:
            advance = self._binding.bind(command, self._world._replace(now=now[0]))
        except Dangling:
            return None
        assert isinstance(advance, c.Advance)
        now[0] += advance.seconds
        return o.DONE

    async def _blocked(self, names: Collection[str]) -> set[str]:
        assert isinstance(self.adapter, Gated)
        return {str(worker) for worker in await self.adapter.blocked([int(name) for name in names])}


@asynccontextmanager
async def lanes_of(adapter: Adapter, spec: QueueSpec, trace: Trace) -> AsyncIterator[Lanes]:
    """The lanes of a trace on an adapter that is open with this queue; lane n is played by actor n.

    Raises:
        AdapterError: no scheduler can hold this adapter's statements, or a lane enqueues a job.
    """
    if adapter.capabilities.gate == "none":
        raise AdapterError(f"{adapter.name}: declares no gate, so that its actors cannot be interleaved")
    if not isinstance(adapter, Gated):
        raise AdapterError(
            f"{adapter.name}: declares a gate, and lacks what goes with it; write `connection` and `blocked` as "
            "fencepost.adapters.contract.Gated says, or declare gate='none'"
        )
    for each in chain.from_iterable(trace.lanes):
        if isinstance(each.command, c.Enqueue):
            raise AdapterError(
                f"step {each.label} enqueues a job while others run, which no judge follows: enqueue it before them"
            )
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
