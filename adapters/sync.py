"""Plain methods in place of async ones: adapters for queues whose client blocks.

A verb runs right where it is awaited, on the harness's one thread: nothing else goes on meanwhile, so that what is done
first is done first, and a connection never leaves the thread that opened it. Two verbs can thus not run at once, and
such an adapter declares no gate. One that hangs is ended by the run's own limits (`--example-timeout`).
"""

from __future__ import annotations

import abc
from collections.abc import Callable, Mapping
from typing import ClassVar

from fencepost.model import commands as c
from fencepost.model.outcomes import DONE, Outcome, Row
from fencepost.model.queues import QUEUES, QueueSpec

from .contract import Actor, Adapter, AdapterError, Capabilities, HookRun, unserved

__all__ = ["SyncActor", "SyncAdapter", "hook_of", "served"]


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

    def perform(self, command: c.Command, now: int) -> Outcome:
        """Serve any command by the verb that it names.

        Raises:
            AdapterError: the actor has no such verb.
        """
        method: Callable[[c.Command, int], Outcome] | None = getattr(self, command.verb, None)
        if method is None:
            raise unserved(self, "def", command.verb)
        return method(command, now)

    def close(self) -> None:
        """Drop this actor's connections; one without connections has nothing to do."""


class SyncAdapter(abc.ABC):
    """One queue of one runtime under test, as `contract.Adapter` says, in plain methods.

    It is named, opened and closed like any other adapter; `served` makes one of it.
    """

    name: ClassVar[str] = ""
    capabilities: ClassVar[Capabilities] = Capabilities()
    queues: ClassVar[Mapping[str, QueueSpec]] = QUEUES

    @abc.abstractmethod
    def open(self, queue: QueueSpec) -> None:
        """Set up an empty queue of this kind, in a place of its own that `close` removes.

        Raises:
            AdapterError: it cannot be set up, or the adapter cannot serve such a queue; the message says what to do.
        """

    @abc.abstractmethod
    def close(self) -> None:
        """Remove what `open` made, and nothing else; where nothing is open there is nothing to do. The actors are
        closed by then."""

    @abc.abstractmethod
    def reset(self) -> None:
        """Remove all jobs; actors stay usable."""

    def advance(self, seconds: int) -> None:
        """Let the queue's own clock move on; called only where `capabilities.clock` declares that it has one.

        Raises:
            AdapterError: the adapter declares such a clock, and does not say how to move it.
        """
        raise AdapterError(f"{self.name}: clock is {self.capabilities.clock!r}; write `def advance(self, seconds)`")

    @abc.abstractmethod
    def snapshot(self) -> dict[c.JobId, Row]:
        """All jobs as another client sees them."""

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
        return verb == c.Crash.verb or callable(getattr(self.plain(), verb, None))

    async def perform(self, command: c.Command, now: int) -> Outcome:
        actor = self._actor or self.plain()
        if type(command) is c.Crash and not hasattr(actor, command.verb):
            await self.close()
            return DONE
        return actor.perform(command, now)

    async def close(self) -> None:
        actor, self._actor = self._actor, None
        if actor is not None:
            actor.close()


class Served(Adapter):
    """A plain adapter behind the async contract."""

    kind: ClassVar[type[SyncAdapter]]

    def __init__(self) -> None:
        self.plain = self.kind()
        self._actors: dict[int, ServedActor] = {}

    async def open(self, queue: QueueSpec) -> None:
        self.plain.open(queue)

    async def close(self) -> None:
        actors = list(self._actors.values())
        self._actors.clear()
        try:
            for actor in actors:
                await actor.close()
        finally:
            self.plain.close()

    async def reset(self) -> None:
        self.plain.reset()

    async def advance(self, seconds: int) -> None:
        self.plain.advance(seconds)

    async def snapshot(self) -> dict[c.JobId, Row]:
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
