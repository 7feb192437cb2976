"""From bound commands to symbolic ones and back.

`Binding` remembers what each labelled step made, so that "the handle of step 2" and "to job 1's expiry" can be
resolved; `symbolic` turns a path of bound commands into a trace that says so.
"""

from __future__ import annotations

from collections.abc import Sequence

from . import commands as c
from . import outcomes as o
from .legal import outcomes
from .queues import QueueSpec
from .step import step
from .trace import Trace, TraceStep
from .world import Context, Step, World


class Dangling(Exception):
    """A reference to something that the trace no longer makes; such a step is skipped."""


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
            Dangling: a reference names nothing, or an instant is not ahead.
        """
        if isinstance(command, c.HandleCommand):
            return command.with_handle(self._handle(command.handle))
        if isinstance(command, c.RequestCancel):
            return c.RequestCancel(self._job(command.job), command.by_parent)
        if isinstance(command, (c.Recover, c.Claim)):
            hook = command.hook
            return command if hook is None or hook.job is None else command.with_hook_on(self._job(hook.job))
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
        instant = record.expires if command.instant == "expiry" else record.due
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
        if isinstance(command, c.RequestCancel):
            return c.RequestCancel(self.jobs[command.job], command.by_parent)  # type: ignore[index]
        if isinstance(command, (c.Recover, c.Claim)):
            hook = command.hook
            if hook is None or hook.job is None:
                return command
            return command.with_hook_on(self.jobs[hook.job])  # type: ignore[index]
        if isinstance(command, c.Advance):
            return self._advance(command, world)
        if isinstance(command, c.Atomically):
            return c.Atomically(tuple(self.name(each, world) for each in command.commands), command.end)
        return command

    def _advance(self, command: c.Advance, world: World) -> c.Command:
        target = world.now + command.seconds
        for n, record in enumerate(world.jobs, 1):
            if record.expires is not None and abs(target - record.expires) <= 1:
                return c.AdvanceTo("expiry", self.jobs[n], target - record.expires)
            if record.due is not None and abs(target - record.due) <= 1:
                return c.AdvanceTo("due", self.jobs[n], target - record.due)
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
