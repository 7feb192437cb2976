"""Exhaustive search: every schedule once, by replaying prefixes.

The order is that of iterative context bounding (Musuvathi and Qadeer, "Iterative Context Bounding for Systematic
Testing of Multithreaded Programs", PLDI 2007): all schedules without a preemption first, then those with one, and so
on; the first failing schedule is then a simplest one.
"""

from __future__ import annotations

import heapq
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Generic, Protocol, TypeAlias, TypeVar

from .played import Diverged, preemptions
from .scheduler import Strategy

Enabled: TypeAlias = tuple[tuple[int, ...], ...]


class Scheduled(Protocol):
    """What the search needs to know of a run: its schedule, and the lanes enabled at each token."""

    @property
    def schedule(self) -> str: ...

    @property
    def enabled(self) -> Enabled: ...


R = TypeVar("R", bound=Scheduled)


class Prefix:
    """Strategy that follows a prefix, then lets each lane go on as long as it can, and then the lowest."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self._at = 0

    def choose(self, enabled: tuple[int, ...], previous: int | None) -> int:
        """The next digit of the prefix, or the lane that needs no preemption.

        Raises:
            Diverged: the prefix was seen to be possible before, and is not now: the run is not deterministic.
        """
        at = self._at
        if at < len(self._prefix):
            self._at += 1
            choice = int(self._prefix[at])
            if choice not in enabled:
                raise Diverged(f"token {at} of prefix {self._prefix}: lane {choice} could go before, and cannot now")
            return choice
        return previous if previous is not None and previous in enabled else enabled[0]

    def finish(self) -> None:
        """The lanes have ended.

        Raises:
            Diverged: tokens of the prefix are left over.
        """
        if self._at < len(self._prefix):
            raise Diverged(f"every lane has ended after {self._at} tokens of prefix {self._prefix}")


class Exhaustive(Generic[R]):
    """A search over all schedules of one set of lanes.

    `play` resets the world and plays it with the given strategy. `bound` leaves out schedules with more preemptions,
    `most` stops after that many schedules; `exhaustive` tells, once `schedules` has ended, that neither left any out.
    """

    def __init__(
        self, play: Callable[[Strategy], Awaitable[R]], *, bound: int | None = None, most: int | None = None
    ) -> None:
        self._play = play
        self._bound = bound
        self._most = most
        self._cut = False
        self.played = 0
        self.exhaustive = False

    async def schedules(self) -> AsyncIterator[R]:
        """What `play` returned for every schedule, each once.

        Raises:
            Diverged: a prefix could not be replayed, or other lanes were enabled on the way than before.
        """
        # A prefix is taken by its preemptions, then by its digits; `enabled` is of the run that it branched off.
        frontier: list[tuple[int, str, Enabled]] = [(0, "", ())]
        while frontier:
            if self.played == self._most:
                return
            _, prefix, enabled = heapq.heappop(frontier)
            played = await self._play(Prefix(prefix))
            _compare(played, enabled, len(prefix))
            self.played += 1
            for branch in self._branches(played, len(prefix)):
                heapq.heappush(frontier, branch)
            self.exhaustive = not frontier and not self._cut
            yield played

    def _branches(self, played: R, start: int) -> list[tuple[int, str, Enabled]]:
        """The prefixes that leave this schedule at or after `start`, each with its preemptions."""
        schedule, branches = played.schedule, []
        cost = preemptions(schedule[:start], played.enabled)
        for at in range(start, len(schedule)):
            enabled = played.enabled[at]
            previous = schedule[at - 1] if at else ""
            for lane in enabled:
                digit = str(lane)
                if digit == schedule[at]:
                    continue
                price = cost + (at > 0 and digit != previous and int(previous) in enabled)
                if self._bound is not None and price > self._bound:
                    self._cut = True
                    continue
                branches.append((price, schedule[:at] + digit, played.enabled))
            cost += at > 0 and schedule[at] != previous and int(previous) in enabled
        return branches


def _compare(played: Scheduled, enabled: Enabled, length: int) -> None:
    """Raise Diverged if other lanes were enabled in the first `length` tokens than in the run before."""
    for token, (before, now) in enumerate(zip(enabled[:length], played.enabled, strict=False)):
        if before != now:
            error = Diverged(f"token {token}: lanes {_listed(before)} could go before, and now {_listed(now)}")
            error.schedule = played.schedule
            raise error


def _listed(lanes: tuple[int, ...]) -> str:
    return ", ".join(map(str, lanes))
