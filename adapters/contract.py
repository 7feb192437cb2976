"""The adapter contract: what a team writes so that fencepost can drive its queue.

An adapter serves one queue at a time. Its actors are independent clients of that queue, each with connections
of its own, so that they can be interleaved, crashed and cut. Every verb takes the bound command, whose job ids
and handles are the adapter's own, and `now`, the asker's clock in ticks of one second, and returns an outcome of
`fencepost.model.outcomes`. A verb never raises to report a rejection; whatever it raises is a harness fault.
"""

from __future__ import annotations

import abc
import asyncio
from collections.abc import Awaitable, Callable, Collection, Coroutine, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from inspect import signature
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, TypeAlias, runtime_checkable

from fencepost.model import commands as c
from fencepost.model.outcomes import DONE, Outcome, Row
from fencepost.model.queues import QUEUES, QueueSpec, narrowed

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncConnection


class AdapterError(Exception):
    """The adapter could not be set up or driven: a harness fault, never a verdict. The message says what to do."""


class HookFailed(Exception):
    """What a hook of kind `raise` or `poison` raises."""


Clock: TypeAlias = Literal["argument", "override", "shifted", "real"]


VERBS = frozenset(kind.verb for kind in c.COMMANDS) - {c.Advance.verb}
"""All verbs that an actor can be asked for."""


@dataclass(frozen=True, slots=True)
class Capabilities:
    """How far an adapter can drive and watch its queue; a clause that needs more is `not applicable`, and is reported
    so. What the queue itself has or lacks is declared by its `QueueSpec`.
    """

    verdict: Literal["pass", "self-check"] = "pass"
    """`self-check`: the adapter is a part of fencepost that only tests fencepost itself."""
    hooks: bool = True
    """Claims and sweeps take a callback that runs before their commit (CLAIM-12, REC-08)."""
    without: frozenset[str] = frozenset()
    """Verbs that the actors do not serve, by name, such as `probe` or `atomically`; they are not asked for."""
    clock: Clock = "argument"
    """What the queue tells the time by: the `now` that every verb is given; the database's own clock, of which the
    adapter overrides the function (`override`) or shifts what is stored (`shifted`), by `advance`; or the real one,
    which fencepost waits for (`real`).
    """
    counts_statements: bool = True
    """Sweeps report how many data-changing statements they sent (REC-06)."""
    gate: Literal["none", "sqlite", "pg"] = "none"
    """How a scheduler can hold this adapter's statements (interleaved engine)."""
    row_locks: bool = False
    """Rows stay locked until commit, so a locked head can be skipped (CLAIM-11, CLAIM-14)."""

    @classmethod
    def only(cls, *verbs: str, **more: Any) -> Capabilities:
        """An adapter that serves these verbs alone, and `crash`, which every actor does; `more` are other fields than
        `without`.
        """
        without = VERBS - {c.Crash.verb, *verbs}
        return cls(**{"hooks": False, "counts_statements": False, **more}, without=without)

    def of(self, queue: QueueSpec) -> QueueSpec:
        """The queue as far as it can be driven: what engines generate, and what applies, is read from this one."""
        exact = self.clock in ("argument", "override")
        return narrowed(queue, hooks=self.hooks, exact_clock=exact, without=self.without)


Look: TypeAlias = Callable[[], Coroutine[object, object, object]]

while_hooked: ContextVar[Look | None] = ContextVar("while_hooked", default=None)
"""Who looks on while a hook runs, and so while the transaction is open that it runs in: a control of the harness's."""


class HookRun:
    """A hook as the adapter runs it: call it with the job ids, before the commit, on the session it may use.

    `await run(jobs)`, or `run.call(jobs)` where nothing can be awaited. Unless somebody looks on it never suspends, so
    a cancellation that it raises is always its own, and never that of the task that runs it. `given` are the ids of
    the last call; the adapter reports them in its outcome.
    """

    __slots__ = ("given", "hook")

    def __init__(self, hook: c.Hook) -> None:
        self.hook = hook
        self.given: tuple[c.JobId, ...] = ()

    async def __call__(self, jobs: tuple[c.JobId, ...]) -> None:
        """Raise what the hook's kind says.

        Raises:
            HookFailed: kind `raise`, or kind `poison` when its job is among `jobs`.
            asyncio.CancelledError: kind `cancel`.
        """
        look = while_hooked.get()
        if look is not None:
            await look()
        self._end(jobs)

    def call(self, jobs: tuple[c.JobId, ...]) -> None:
        """The same as a plain function. Raises as `await run(jobs)` does."""
        look = while_hooked.get()
        if look is not None:
            looking = look()
            try:
                looking.send(None)  # a plain adapter's verbs never suspend; what does is left alone
            except StopIteration:
                pass
            finally:
                looking.close()
        self._end(jobs)

    def _end(self, jobs: tuple[c.JobId, ...]) -> None:
        self.given = jobs
        kind = self.hook.kind
        if kind == "cancel":
            raise asyncio.CancelledError
        if kind == "raise" or (kind == "poison" and self.hook.job in jobs):
            raise HookFailed


def serves(actor: object, verb: str) -> bool:
    """Whether the actor has a method for this verb, one that takes a command and the clock."""
    method = getattr(actor, verb, None)
    try:
        signature(method).bind(None, 0)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return False
    return True


def unserved(actor: object, form: str, verb: str) -> AdapterError:
    """The fault of an actor that lacks this verb; `form` is `def` or `async def`."""
    return AdapterError(
        f"{type(actor).__name__} has no verb {verb!r}; write `{form} {verb}(self, command, now)`, "
        f"or declare Capabilities(without=frozenset({{{verb!r}}}))"
    )


class Actor:
    """One client of the queue. A verb that it does not serve must be declared in `Capabilities.without`."""

    async def perform(self, command: c.Command, now: int) -> Outcome:
        """Serve any command by the verb that it names.

        Raises:
            AdapterError: the actor has no such verb.
        """
        method: Callable[[c.Command, int], Awaitable[Outcome]] | None = getattr(self, command.verb, None)
        if method is None:
            raise unserved(self, "async def", command.verb)
        return await method(command, now)

    def has(self, verb: str) -> bool:
        """Whether there is a method for this verb. One that overrides `perform` may serve others besides."""
        return serves(self, verb)

    async def crash(self, command: c.Crash, now: int) -> Outcome:
        """The worker's process dies, and another takes its place."""
        await self.close()
        return DONE

    async def close(self) -> None:
        """Drop this actor's connections, and let the next verb open new ones; one without connections has nothing to
        do."""


class Adapter(abc.ABC):
    """One queue of one runtime under test."""

    name: ClassVar[str] = ""
    capabilities: ClassVar[Capabilities] = Capabilities()
    queues: ClassVar[Mapping[str, QueueSpec]] = QUEUES
    """The queues that it serves, by key: those of the contract, or rows that declare queues of its own."""

    @classmethod
    def serves(cls, queue: str) -> QueueSpec:
        """The queue with this key.

        Raises:
            AdapterError: it is none of this adapter's; the message names those.
        """
        if queue not in cls.queues:
            raise AdapterError(
                f"{cls.name or cls.__name__} serves no queue {queue!r}; it serves {', '.join(cls.queues)}"
            )
        return cls.queues[queue]

    @abc.abstractmethod
    async def open(self, queue: QueueSpec) -> None:
        """Set up an empty queue of this kind, in a place of its own that `close` removes.

        Raises:
            AdapterError: it cannot be set up, or the adapter cannot serve such a queue; the message says what to do.
        """

    @abc.abstractmethod
    async def close(self) -> None:
        """Remove what `open` made, and nothing else; where nothing is open there is nothing to do.

        Raises:
            AdapterError: something could not be removed; the message names it.
        """

    @abc.abstractmethod
    async def reset(self) -> None:
        """Remove all jobs; actors stay usable. A clock of the queue's own counts from here."""

    async def advance(self, seconds: int) -> None:
        """Let the queue's own clock move on; called only where `clock` declares that the adapter moves one.

        Raises:
            AdapterError: the adapter declares such a clock, and does not say how to move it.
        """
        raise AdapterError(
            f"{self.name}: clock is {self.capabilities.clock!r}; write `async def advance(self, seconds)`"
        )

    @abc.abstractmethod
    async def snapshot(self) -> dict[c.JobId, Row]:
        """All jobs as another client sees them; instants are ticks since the last `reset`."""

    @abc.abstractmethod
    def actor(self, worker: int) -> Actor:
        """The client that acts as this worker; the same worker always gets the same one. Worker 0 enqueues and
        cancels, sweeps and probes."""


@runtime_checkable
class Gated(Protocol):
    """What an adapter with a `gate` has besides: a scheduler can hold its actors' statements.

    Lane n of a race is played by `actor(n)`, whichever worker its commands name.
    """

    async def connection(self, worker: int) -> AsyncConnection:
        """The one connection that this actor works on, started, and kept until `close`; a write conflict on it shows
        at once where the database would otherwise retry by itself.
        """

    async def blocked(self, workers: Collection[int]) -> Collection[int]:
        """Those of these actors whose running statement waits for a lock that another of them holds."""
