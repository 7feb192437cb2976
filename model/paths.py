"""From bound commands to symbolic ones and back.

`Binding` remembers what each labelled step made, so that "the handle of step 2" and "to job 1's expiry" can be
resolved; `symbolic` turns a path of bound commands into a trace that says so.
"""

from __future__ import annotations

from collections.abc import Sequence

from . import commands as c
from . import outcomes as o
from .legal import outcomes
from .queues import PENDING, QueueSpec
from .step import step
from .trace import Trace, TraceStep
from .world import Context, Record, Step, World


class Dangling(Exception):
    """A reference to something that the trace no longer makes; such a step is skipped."""


_INSTANTS: tuple[c.Instant, ...] = ("expiry", "due", "deadline")


def instant_of(record: Record, instant: c.Instant) -> int | None:
    """The tick of this instant of a job, None if it has none."""
    return record.expires if instant == "expiry" else record.due if instant == "due" else record.deadline


class Binding:
    """What the steps of one run made, by label: jobs and handles as the model numbers them."""

    __slots__ = ("handles", "jobs")

    def __init__(self) -> None:
        self.jobs: dict[int, int] = {}
        self.handles: dict[int, tuple[c.Handle, ...]] = {}

    def note(self, label: int, outcome: o.Outcome) -> None:
        """Remember what the step with this label made."""
        if isinstance(outcome, o.Enqueued):
            self.jobs[label] = outcome.job  # type: ignore[assignment]
        elif isinstance(outcome, o.Claimed) and outcome.handles:
            self.handles[label] = outcome.handles

    def bind(self, command: c.Command, world: World) -> c.Command:
        """The command with its references resolved.

        Raises:
            Dangling: a reference names nothing, an instant is not ahead, or a lease is to be left on a job that is
                not pending.
        """
        if isinstance(command, c.HandleCommand):
            return command.with_handle(self._handle(command.handle))
        if isinstance(command, c.JobCommand):
            job = self._job(command.job)
            if isinstance(command, c.Plant) and command.field == "lease":
                status = world.jobs[job - 1].status  # type: ignore[operator]
                if status != PENDING:
                    raise Dangling(f"a lease can be left on a pending job only, job {job} is {status}")
            return command.with_job(job)
        if isinstance(command, (c.Recover, c.Claim)):
            return command.renamed(self._job)
        if isinstance(command, c.AdvanceTo):
            return self._advance(command, world)
        if isinstance(command, c.Atomically):
            return c.Atomically(tuple(self.bind(each, world) for each in command.commands), command.end)
        return command

    def _job(self, job: c.JobId | c.JobRef) -> c.JobId:
        if type(job) is not c.JobRef:
            return job  # type: ignore[return-value]
        try:
            return self.jobs[job.step]
        except KeyError:
            raise Dangling(f"step {job.step} enqueued nothing") from None

    def _handle(self, handle: c.Handle | c.HandleRef) -> c.Handle:
        if type(handle) is not c.HandleRef:
            return handle  # type: ignore[return-value]
        try:
            return self.handles[handle.step][handle.nth]
        except (KeyError, IndexError):
            raise Dangling(f"step {handle.step} claimed no {handle.nth + 1}. job") from None

    def _advance(self, command: c.AdvanceTo, world: World) -> c.Advance:
        job = self._job(command.job)
        record = world.jobs[job - 1]  # type: ignore[operator]
        instant = instant_of(record, command.instant)
        if instant is None or instant + command.offset <= world.now:
            raise Dangling(f"job {job}'s {command.instant} is not ahead")
        return c.Advance(instant + command.offset - world.now)


class Naming:
    """The reverse of a binding: which step made a job or a handle."""

    __slots__ = ("handles", "jobs")

    def __init__(self) -> None:
        self.jobs: dict[c.JobId, c.JobRef] = {}
        self.handles: dict[c.Handle, c.HandleRef] = {}

    def note(self, label: int, outcome: o.Outcome) -> None:
        """Remember what the step with this label made; an owner-only handle keeps the newest claim's name."""
        if isinstance(outcome, o.Enqueued):
            self.jobs[outcome.job] = c.JobRef(label)
        elif isinstance(outcome, o.Claimed):
            for nth, handle in enumerate(outcome.handles):
                self.handles[handle] = c.HandleRef(label, nth)

    def name(self, command: c.Command, world: World) -> c.Command:
        """The command with jobs and handles named by their steps, and clock moves by the instant they reach."""
        if isinstance(command, c.HandleCommand):
            assert isinstance(command.handle, c.Handle)
            return command.with_handle(self.handles[command.handle])
        if isinstance(command, c.JobCommand):
            return command.with_job(self.jobs[command.job])  # type: ignore[index]
        if isinstance(command, (c.Recover, c.Claim)):
            return command.renamed(self.jobs.__getitem__)  # type: ignore[arg-type]
        if isinstance(command, c.Advance):
            return self._advance(command, world)
        if isinstance(command, c.Atomically):
            return c.Atomically(tuple(self.name(each, world) for each in command.commands), command.end)
        return command

    def _advance(self, command: c.Advance, world: World) -> c.Command:
        target = world.now + command.seconds
        for n, record in enumerate(world.jobs, 1):
            for instant in _INSTANTS:
                at = instant_of(record, instant)
                if at is not None and abs(target - at) <= 1:
                    return c.AdvanceTo(instant, self.jobs[n], target - at)
        return command


def symbolic(spec: QueueSpec, commands: Sequence[c.Command]) -> Trace:
    """A trace of these bound commands, each with the model's own first outcome."""
    world = World(spec)
    naming = Naming()
    steps: list[TraceStep] = []
    for label, command in enumerate(commands, 1):
        context = Context(world.now)
        outcome = next(outcomes(world, command, context))
        after = step(world, command, outcome, context)
        assert isinstance(after, Step), after
        steps.append(TraceStep(label, naming.name(command, world), outcome))
        naming.note(label, outcome)
        world = after.world
    return Trace(tuple(steps))
