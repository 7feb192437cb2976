"""What the scheduler costs: schedules of claim ‖ claim on one job, against the same commands without a gate.

Both sides reset, run what comes before, look and judge alike, on the same connections. It must never be a test.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Awaitable, Callable
from statistics import median

from fencepost.adapters.contract import Adapter
from fencepost.model.queues import QueueSpec

from .exhaustive import Exhaustive
from .lanes import History, Lanes, lanes_of
from .programs import PROGRAMS

ROUND_SECONDS = 0.5


async def gate_bench(adapter: Adapter, spec: QueueSpec, seconds: float) -> dict[str, float]:
    """The medians of alternating rounds, for about so many seconds, on an adapter that is open with this queue.

    Returns `gated_per_s` and `ungated_per_s`: schedules a second, and runs of one lane after another.
    """
    rates: dict[str, list[float]] = {"gated_per_s": [], "ungated_per_s": []}
    end = time.perf_counter() + seconds
    async with lanes_of(adapter, spec, PROGRAMS[0].trace()) as lanes:
        gated = _Gated(lanes)
        while time.perf_counter() < end or not rates["ungated_per_s"]:
            for name, once in (("gated_per_s", gated.once), ("ungated_per_s", lanes.run_ungated)):
                rates[name].append(await _rate(once))
    return {name: round(median(found), 1) for name, found in rates.items()}


async def _rate(once: Callable[[], Awaitable[object]]) -> float:
    count, start = 0, time.perf_counter()
    while (spent := time.perf_counter() - start) < ROUND_SECONDS:
        await once()
        count += 1
    return count / spent


class _Gated:
    """The exhaustive search, again from the start whenever it has ended."""

    def __init__(self, lanes: Lanes) -> None:
        self._lanes = lanes
        self._search = self._schedules()

    async def once(self) -> None:
        """The next schedule."""
        try:
            await anext(self._search)
        except StopAsyncIteration:
            self._search = self._schedules()
            await anext(self._search)

    def _schedules(self) -> AsyncIterator[History]:
        return Exhaustive(self._lanes.play).schedules()
