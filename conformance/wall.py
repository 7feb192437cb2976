"""The clock on the wall, for a queue that goes by it: what has passed of it is waited for, or caught up with.

The model counts whole seconds. A command is sent in the first part of one, so that what it writes is counted into that
second however an adapter rounds. It knows neither adapters nor clauses.
"""

from __future__ import annotations

import asyncio
import math
import time

from fencepost.model import commands as c
from fencepost.model.choices import meets
from fencepost.model.world import World

_EARLY = 0.25
"""How far into a second a command may still be sent."""
_SURE = 0.5
"""How far into a second whatever it wrote is still counted into that second."""


class Wall:
    """Seconds of the real clock since an example began."""

    def __init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        """An example begins: it is 0 now."""
        self._zero = _monotonic()

    def ahead(self, world: World) -> c.Advance | None:
        """How far the model's clock must move before the next command is sent, or None if it may be sent at once."""
        behind = self._behind(world.now)
        return None if behind < _EARLY else _beside(world, math.ceil(behind))

    def reached(self, world: World, command: c.Advance) -> c.Advance:
        """The move of the clock that this one comes to, if the real one has gone further meanwhile."""
        behind = self._behind(world.now)
        return command if behind <= command.seconds else _beside(world, math.ceil(behind))

    def left(self, now: int, seconds: int) -> float:
        """How long to wait until it is so many seconds after `now`."""
        return max(seconds - self._behind(now), 0.0)

    async def wait(self, seconds: float) -> None:
        """Let the time pass."""
        await _sleep(seconds)

    def blurs(self, now: int) -> float:
        """How long the command that was sent at `now` has taken, if so long that nobody can tell which second it wrote;
        else 0.
        """
        behind = self._behind(now)
        return behind if behind >= _SURE else 0.0

    def _behind(self, now: int) -> float:
        return _monotonic() - self._zero - now


def _beside(world: World, seconds: int) -> c.Advance:
    """At least so many, and not to the very instant at which something ends, which could be met only by chance."""
    while meets(world, world.now + seconds):
        seconds += 1
    return c.Advance(seconds)


_monotonic = time.monotonic
_sleep = asyncio.sleep
