"""Drives one adapter through commands and has `step` judge each: outcome, rows and invariants, after every step.

The driver is the only place that translates between an adapter's own ids and the model's ordinals. It knows adapters
by their contract alone, and has no opinion about what is legal.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from fencepost.adapters.contract import Adapter, AdapterError
from fencepost.model import commands as c
from fencepost.model import outcomes as o
from fencepost.model.paths import Binding, Dangling, Naming
from fencepost.model.queues import QueueSpec
from fencepost.model.step import step
from fencepost.model.trace import Trace, TraceStep
from fencepost.model.values import new
from fencepost.model.world import SETUP, Check, Context, Step, Violation, World

from .answers import answer_fault, rows_fault
from .handles import LASTING, Lent, lend, plain, spoilt
from .wall import Wall
from .watchdog import allow, begin_example

Chooser = Callable[[World, int], c.Command]
"""Turns a number into a command that this world offers."""


_OF_THE_CLOCK = 0
"""The label of a step that is in no trace: real time had passed."""


@dataclass(slots=True)
class Run:
    """One trace as it went: what was asked and answered, what was tested, and the violation that ended it, if any.

    `world` is what the queue has come to; `done` are the bound commands with their outcomes in the model's terms;
    `labels` the trace's own labels for them (0 for what the real clock did by itself), `skipped` those of the steps
    that could not run, with the reason.
    """

    spec: QueueSpec
    world: World
    done: list[tuple[c.Command, o.Outcome]] = field(default_factory=list)
    labels: list[int] = field(default_factory=list)
    skipped: dict[int, str] = field(default_factory=dict)
    violation: Violation | None = None

    def trace(self) -> Trace:
        """What was done, as a symbolic trace with the observed outcomes. Labels count 1, 2, 3 …"""
        naming, world = Naming(), World(self.spec)
        steps = []
        for label, (command, outcome) in enumerate(self.done, 1):
            steps.append(TraceStep(label, naming.name(command, world), outcome))
            naming.note(label, outcome)
            after = step(world, command, outcome, Context(world.now))
            if isinstance(after, Step):
                world = after.world
        return Trace(tuple(steps))


class Driver:
    """One adapter with one queue open, driven from an empty queue again and again."""

    def __init__(self, adapter: Adapter, spec: QueueSpec) -> None:
        self.adapter = adapter
        self.spec = spec
        self.steps = 0
        self._tally: Counter[Check] = Counter()
        self._made: list[Check] = []
        self._performs = [adapter.actor(worker).perform for worker in range(len(c.WORKER_NAMES))]
        self._snapshot = adapter.snapshot
        self._clock = adapter.capabilities.clock
        self._wall = Wall() if self._clock == "real" else None
        self._ids: list[c.JobId] = []
        self._ordinals: dict[c.JobId, int] = {}
        self._same = True
        self._lent: Lent = []

    @property
    def tally(self) -> Counter[Check]:
        """How often each check was made, since the driver was made."""
        # Counting check by check in the hot path would cost more than noting them and counting once per example.
        self._tally.update(self._made)
        self._made.clear()
        return self._tally

    async def reset(self) -> World:
        """Empty the queue; returns the empty world."""
        self._tally.update(self._made)
        self._made.clear()
        begin_example()
        await self.adapter.reset()
        if self._wall is not None:
            self._wall.begin()
        self._ids.clear()
        self._ordinals.clear()
        self._lent.clear()
        self._same = True
        return World(self.spec, 0, (), ())

    async def start(self) -> Run:
        """Empty the queue; returns a run in which nothing has been done yet."""
        return Run(self.spec, await self.reset())

    async def play(self, trace: Trace) -> Run:
        """Run a symbolic trace until its end or its first violation; a step with a dangling reference is skipped."""
        run = await self.start()
        await self.go(run, _bound(trace, run))
        return run

    async def draw(self, choose: Chooser, numbers: Iterable[int]) -> Run:
        """Run what `choose` makes of each number in the world that the queue has come to."""
        run = await self.start()
        await self.go(run, (choose(run.world, number) for number in numbers))
        return run

    async def go(self, run: Run, commands: Iterable[c.Command]) -> None:
        """Do bound commands and judge each, until one breaks a clause: the run then notes the violation.

        Raises:
            AdapterError: the adapter did not do what the harness needs.
        """
        # The hot path of every engine: no call is made that this command does not need.
        performs, snapshot, done, made, lent = self._performs, self._snapshot, run.done, self._made, self._lent
        own_clock, wall = self._clock != "argument", self._wall
        answer: object = None
        rows: dict[c.JobId, o.Row] | None = None
        after: Step | Violation
        before = len(done)
        try:
            for command in commands:
                if wall is not None:
                    command = await self._in_time(run, command, wall)
                world = run.world
                if type(command) is c.Advance:
                    outcome: o.Outcome = o.DONE
                    view = world.rows or ()
                    if own_clock:
                        await self.advance(world.now, command.seconds)
                        rows = await snapshot()
                        view = self._view(rows)
                else:
                    native = command if self._same else self.native(command)
                    answer = rows = None
                    answer = outcome = await performs[worker_of(command)](native, world.now)
                    kind = type(outcome)
                    if kind is o.Claimed:
                        claimed = lend(outcome, lent)  # type: ignore[arg-type]
                        if isinstance(claimed, Violation):
                            done.append((command, o.DONE))  # nobody can tell what such a claim answered
                            after = claimed
                            break
                        outcome = claimed
                        if claimed.handles:
                            made.append(LASTING)
                    if not self._same or kind is o.Enqueued:
                        outcome = self.translate(outcome)
                    rows = await snapshot()
                    view = self._view(rows)
                done.append((command, outcome))
                after = step(world, command, outcome, new(Context, (world.now, False, view)))
                if lent and not isinstance(after, Violation):
                    after = spoilt(lent) or after
                if isinstance(after, Violation):
                    break
                run.world, checks = after
                made += checks
            else:
                return
        except Exception as error:
            # What is of a wrong type makes us raise anything; what a verb raised by itself is not looked into.
            self._refuse_types(command, answer, rows, error)
            raise
        finally:
            self.steps += len(done) - before
        self._refuse_types(command, answer, rows, None)
        taken = wall.blurs(run.world.now) if wall is not None and type(command) is not c.Advance else 0
        if taken:
            raise AdapterError(
                f"{self.adapter.name}: {command.verb} took {taken:.1f} s by the real clock, so nobody can tell which "
                "second it wrote; run it where it is faster, or replace the queue's clock (clock='override')"
            )
        if after.clause == SETUP:
            raise AdapterError(f"{self.adapter.name}: {command.verb}: {after.reason}: {after.why}")
        run.violation = after

    async def advance(self, now: int, seconds: int) -> None:
        """Let the queue's clock move on from `now`, if it has one of its own; the real one is waited for."""
        if self._wall is not None:
            left = self._wall.left(now, seconds)
            allow(left)
            await self._wall.wait(left)
        elif self._clock != "argument":
            await self.adapter.advance(seconds)

    async def _in_time(self, run: Run, command: c.Command, wall: Wall) -> c.Command:
        """The command as it can be sent now that real time has passed: a move of the clock comes first, which the run
        notes, or it is the command itself.
        """
        world = run.world
        if type(command) is c.Advance:
            return wall.reached(world, command)
        move = wall.ahead(world)
        if move is not None:
            await self.advance(world.now, move.seconds)
            if run.labels:
                run.labels.insert(-1, _OF_THE_CLOCK)
            run.done.append((move, o.DONE))
            after = step(world, move, o.DONE, Context(world.now, False, world.rows))
            assert isinstance(after, Step)
            run.world = after.world
        return command

    def _refuse_types(self, command: c.Command, answer: object, rows: object, cause: Exception | None) -> None:
        """Raise if what a verb or a snapshot has handed over is of a wrong type: that is no matter of the queue's."""
        if answer is None and cause is not None:
            return
        fault = answer_fault(command, answer) if type(command) is not c.Advance else ""
        fault = fault or (rows_fault(rows) if rows is not None else "")
        if fault:
            raise AdapterError(f"{self.adapter.name}: {fault}") from cause

    async def look(self) -> o.View:
        """The rows, in enqueue order."""
        return self._view(await self._snapshot())

    def _view(self, rows: dict[c.JobId, o.Row]) -> o.View:
        ids = self._ids
        if len(rows) != len(ids):
            more = "; let `reset` remove all jobs, and every verb commit what it does" if len(rows) > len(ids) else ""
            raise AdapterError(
                f"{self.adapter.name}: {len(ids)} jobs were enqueued, the snapshot has {len(rows)}{more}"
            )
        try:
            return tuple(map(rows.__getitem__, ids))
        except KeyError as missing:
            raise AdapterError(f"{self.adapter.name}: the snapshot lacks job {missing}") from None

    def native(self, command: c.Command) -> c.Command:
        """The command with the adapter's own job ids."""
        if isinstance(command, c.HandleCommand):
            handle = command.handle
            assert isinstance(handle, c.Handle)
            own = c.Handle(self._ids[handle.job - 1], handle.worker, handle.token)  # type: ignore[operator]
            return command.with_handle(own)
        if isinstance(command, c.JobCommand):
            return command.with_job(self._own(command.job))
        if isinstance(command, (c.Recover, c.Claim)):
            return command.renamed(self._own)
        if isinstance(command, c.Atomically):
            return c.Atomically(tuple(self.native(each) for each in command.commands), command.end)
        return command

    def _own(self, job: c.JobId | c.JobRef) -> c.JobId:
        return self._ids[job - 1]  # type: ignore[operator]

    def translate(self, outcome: o.Outcome) -> o.Outcome:
        """The outcome with jobs as ordinals; a job that nobody enqueued becomes 0, which `step` refuses."""
        if isinstance(outcome, o.Enqueued):
            ids = self._ids
            ordinal = self._ordinals.get(outcome.job)
            if ordinal is None:
                ids.append(outcome.job)
                ordinal = self._ordinals[outcome.job] = len(ids)
                self._same = self._same and outcome.job == ordinal
            return outcome if self._same else o.Enqueued(ordinal, outcome.token)
        if isinstance(outcome, o.Claimed):
            read = [plain(handle) for handle in outcome.handles]
            handles = tuple(c.Handle(self._ordinal(h.job), h.worker, h.token) for h in read)
            return o.Claimed(handles, self._ordinals_of(outcome.hooked))
        if self._same:
            return outcome
        if isinstance(outcome, o.Recovered):
            rows = tuple(o.RecoveredRow(self._ordinal(row.job), row.status, row.due) for row in outcome.rows)
            return o.Recovered(rows, outcome.count, self._ordinals_of(outcome.hooked), outcome.failed, outcome.dml)
        if isinstance(outcome, o.HookRaised):
            return o.HookRaised(self._ordinals_of(outcome.hooked) or ())
        if isinstance(outcome, o.Atomic):
            return o.Atomic(tuple(self.translate(each) for each in outcome.outcomes))
        return outcome

    def _ordinal(self, job: c.JobId) -> int:
        return self._ordinals.get(job, 0)

    def _ordinals_of(self, jobs: tuple[c.JobId, ...] | None) -> tuple[c.JobId, ...] | None:
        return None if jobs is None else tuple(self._ordinals.get(job, 0) for job in jobs)


def _bound(trace: Trace, run: Run) -> Iterator[c.Command]:
    """The trace's commands, each bound once the ones before it are done."""
    binding = Binding()
    for each in trace.steps:
        try:
            command = binding.bind(each.command, run.world)
        except Dangling as missing:
            run.skipped[each.label] = str(missing)
            continue
        run.labels.append(each.label)
        yield command
        binding.note(each.label, run.done[-1][1])


def worker_of(command: c.Command) -> int:
    """The actor that serves a bound command: the worker it names, else actor 0."""
    kind = type(command)
    if kind in _BY_HANDLE:
        return command.handle.worker  # type: ignore[attr-defined, no-any-return]
    if kind in _BY_WORKER:
        return command.worker  # type: ignore[attr-defined, no-any-return]
    return 0


_BY_HANDLE: frozenset[type] = frozenset(c.HANDLE_COMMANDS)
_BY_WORKER: frozenset[type] = frozenset({c.Claim, c.Tick, c.Crash})
