"""An adapter with one queue open, in an event loop of its own: what every engine works on.

Closes what it opened however it is left, an interrupt included.
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Coroutine, Iterable
from inspect import CORO_CREATED, getcoroutinestate
from types import TracebackType
from typing import Any, TypeVar

from fencepost.adapters.contract import Adapter
from fencepost.model.queues import QueueSpec
from fencepost.model.trace import Trace

from .driver import Driver, Run
from .faults import Hung
from .generate import Aim
from .watchdog import at_work

T = TypeVar("T")


class Session:
    """Use as a context manager; `play` and `draw` run one example to its end or its first violation.

    `spec` is the queue as far as the adapter can drive it.
    """

    driver: Driver

    def __init__(self, adapter: Adapter, spec: QueueSpec) -> None:
        self.adapter = adapter
        self.spec = adapter.capabilities.of(spec)
        self._loop = asyncio.new_event_loop()

    def __enter__(self) -> Session:
        try:
            self.run(self._open())
            self.driver = Driver(self.adapter, self.spec)
        except BaseException as error:
            self._leave(error)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self._leave(error)

    def _leave(self, error: BaseException | None) -> None:
        """Close everything; a fault in that never hides the `error` that the session ends with."""
        try:
            # An interrupt leaves the example's task suspended in the middle of a statement.
            with at_work(closing=isinstance(error, Hung)):
                for task in asyncio.all_tasks(self._loop):
                    task.cancel()
                    self._loop.run_until_complete(asyncio.gather(task, return_exceptions=True))
                self._loop.run_until_complete(self._close())
        except BaseException as fault:
            if error is None:
                raise
            error.add_note(f"then closing the adapter failed: {type(fault).__name__}: {fault}")
        finally:
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
            self._loop.close()

    # Called by a frame of ours, so that what hangs in the adapter is told from what hangs around it.

    async def _open(self) -> None:
        await self.adapter.open(self.spec)

    async def _close(self) -> None:
        await self.adapter.close()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the session's loop, as long as the limits in force let it.

        One that an alarm or an interrupt leaves suspended ends when the session does: it may have to await in that.
        """
        try:
            with at_work():
                return self._loop.run_until_complete(work)
        finally:
            if getcoroutinestate(work) == CORO_CREATED:  # the run's limit was over before it
                work.close()

    def play(self, trace: Trace) -> Run:
        """Run a symbolic trace from an empty queue."""
        return self.run(self.driver.play(trace))

    def draw(self, numbers: Iterable[int]) -> Run:
        """Run a script of numbers from an empty queue."""
        # An example leaves no cycles worth a collection in its middle, which would walk all that Hypothesis keeps.
        collecting = gc.isenabled()
        gc.disable()
        try:
            return self.run(self.driver.draw(Aim(self.spec).choose, numbers))
        finally:
            if collecting:
                gc.enable()
