"""Plain methods in place of async ones: adapters for queues whose client blocks.

A verb runs right where it is awaited, on the harness's one thread: nothing else goes on meanwhile, so that what is done
first is done first, and a connection never leaves the thread that opened it. Two verbs can thus not run at once, and
such an adapter declares no gate. One that hangs is ended by the run's own limits (`--example-timeout`).

All that a plain adapter needs can be imported from here.
"""

from __future__ import annotations

import abc
import tempfile
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from typing import ClassVar

from fencepost.model import commands as c
from fencepost.model import outcomes as o
from fencepost.model.queues import QUEUES, QueueSpec

from .contract import Actor, Adapter, AdapterError, Capabilities, HookRun, serves, unserved

__all__ = [
    "AdapterError", "Capabilities", "QueueSpec", "SyncActor", "SyncAdapter", "accepted", "c", "held", "hook_of", "o",
    "owner", "served",
]  # fmt: skip


def owner(command: c.Claim) -> str:
    """The owner string of the worker that claims."""
    return c.worker_name(command.worker)


def held(command: c.HandleCommand) -> tuple[c.JobId, str]:
    """The job that a write is about, and the owner string of the worker that claimed it; a fence token besides is
    `command.handle.token`.
    """
    handle = command.handle
    assert isinstance(handle, c.Handle), "a verb is given bound commands"
    return handle.job, c.worker_name(handle.worker)


def accepted(done: object, status: str = "") -> o.Outcome:
    """`Accepted` with the job's status now, or `Rejected` if `done` says no; `done` may be the status itself."""
    return o.Accepted(status or str(done)) if done else o.REJECTED


def hook_of(command: c.Claim | c.Recover) -> Callable[[tuple[c.JobId, ...]], None]:
    """The command's hook as a plain function: call it with the job ids, before the commit. It raises what the hook's
    kind says (`HookRun`), and does nothing where the command carries no hook.
    """
    return _no_hook if command.hook is None else HookRun(command.hook).call


def _no_hook(jobs: tuple[c.JobId, ...]) -> None:
    pass


class SyncActor:
    """One client of the queue, with a method for each verb: `def claim(self, command, now): …`.

    A verb takes the bound command and the asker's clock in ticks, and returns an outcome. `crash` need not be written.
    """

    def perform(self, command: c.Command, now: int) -> o.Outcome:
        """Serve any command by the verb that it names.

        Raises:
            AdapterError: the actor has no such verb.
        """
        method: Callable[[c.Command, int], o.Outcome] | None = getattr(self, command.verb, None)
        if method is None:
            raise unserved(self, "def", command.verb)
        return method(command, now)

    def close(self) -> None:
        """Drop this actor's connections; one without connections has nothing to do."""


class SyncAdapter(abc.ABC):
    """One queue of one runtime under test, as `contract.Adapter` says, in plain methods.

    It is named and tested like any other adapter; `served` makes one of it. `open`, `snapshot` and `actor` must be
    written, and the others where there is more to do.
    """

    _folder: tempfile.TemporaryDirectory[str] | None = None

    name: ClassVar[str] = ""
    capabilities: ClassVar[Capabilities] = Capabilities()
    queues: ClassVar[Mapping[str, QueueSpec]] = QUEUES

    @abc.abstractmethod
    def open(self, queue: QueueSpec) -> None:
        """Set up an empty queue of this kind, in a place of its own that `close` removes.

        Raises:
            AdapterError: it cannot be set up, or the adapter cannot serve such a queue; the message says what to do.
        """

    def close(self) -> None:  # noqa: B027 (to be written where there is something to do)
        """Remove what `open` made, but for `folder`, and nothing else; called once after each `open`, when the actors
        are closed."""

    def reset(self) -> None:  # noqa: B027
        """Remove all jobs; actors stay usable. A clock of the queue's own counts from here. Unless this is written, all
        is closed and opened again, which is slow."""

    def advance(self, seconds: int) -> None:
        """Let the queue's own clock move on; called only where `capabilities.clock` declares that the adapter
        moves one.

        Raises:
            AdapterError: the adapter declares such a clock, and does not say how to move it.
        """
        raise AdapterError(f"{self.name}: clock is {self.capabilities.clock!r}; write `def advance(self, seconds)`")

    @property
    def folder(self) -> str:
        """An empty folder for a queue that lies in files: made when first asked for, removed after `close`."""
        if self._folder is None:
            self._folder = tempfile.TemporaryDirectory(prefix="fencepost-")
        return self._folder.name

    @abc.abstractmethod
    def snapshot(self) -> dict[c.JobId, o.Row]:
        """All jobs as another client sees them; instants are ticks since the last `reset`."""

    @abc.abstractmethod
    def actor(self, worker: int) -> SyncActor:
        """A new client that acts as this worker, with a connection of its own; asked for at the worker's first verb,
        and again at the first one after its crash. Worker 0 enqueues and cancels, sweeps and probes."""


class ServedActor(Actor):
    """A plain client behind the async contract, made when it is first needed."""

    def __init__(self, make: Callable[[], SyncActor]) -> None:
        self._make = make
        self._actor: SyncActor | None = None

    def plain(self) -> SyncActor:
        """The plain client."""
        if self._actor is None:
            self._actor = self._make()
        return self._actor

    def has(self, verb: str) -> bool:
        return verb == c.Crash.verb or serves(self.plain(), verb)

    async def perform(self, command: c.Command, now: int) -> o.Outcome:
        actor = self._actor or self.plain()
        if type(command) is c.Crash and not serves(actor, command.verb):
            return await self.crash(command, now)
        return actor.perform(command, now)

    def drop(self) -> None:
        """Close the plain client; the next verb gets a new one."""
        actor, self._actor = self._actor, None
        if actor is not None:
            actor.close()

    async def close(self) -> None:
        self.drop()


class Served(Adapter):
    """A plain adapter behind the async contract."""

    kind: ClassVar[type[SyncAdapter]]

    def __init__(self) -> None:
        self.plain = self.kind()
        self._queue: QueueSpec | None = None
        self._actors: dict[int, ServedActor] = {}

    async def open(self, queue: QueueSpec) -> None:
        self.plain.open(queue)
        self._queue = queue

    async def close(self) -> None:
        await self._close()
        self._actors.clear()

    async def _close(self) -> None:
        with ExitStack() as stack:  # the last one pushed is closed first, and a fault in it keeps no other from closing
            if self.plain._folder is not None:
                stack.callback(self.plain._folder.cleanup)
            opened, self._queue, self.plain._folder = self._queue, None, None
            if opened is not None:
                stack.callback(self.plain.close)
            for actor in self._actors.values():
                stack.callback(actor.drop)

    async def reset(self) -> None:
        queue = self._queue
        if queue is not None and self.kind.reset is SyncAdapter.reset:
            await self._close()
            await self.open(queue)
        else:
            self.plain.reset()

    async def advance(self, seconds: int) -> None:
        self.plain.advance(seconds)

    async def snapshot(self) -> dict[c.JobId, o.Row]:
        return self.plain.snapshot()

    def actor(self, worker: int) -> ServedActor:
        known = self._actors.get(worker)
        if known is None:
            known = self._actors[worker] = ServedActor(lambda: self.plain.actor(worker))
        return known


def served(kind: type[SyncAdapter]) -> type[Served]:
    """The adapter that serves this plain one; an attribute that cannot be had otherwise is `plain`'s."""
    return type(
        kind.__name__,
        (Served,),
        {
            "__module__": kind.__module__,
            "__doc__": kind.__doc__,
            "kind": kind,
            "name": kind.name or kind.__name__,
            "capabilities": kind.capabilities,
            "queues": kind.queues,
        },
    )
