"""Random priorities: the lane of the highest priority goes, and a few times on the way the running one drops to the
lowest.

PCT of Burckhardt, Kothari, Musuvathi and Nagarakatte, "A Randomized Scheduler with Probabilistic Guarantees of Finding
Bugs" (ASPLOS 2010): a bug of depth d among n lanes and k tokens is found with a probability of at least 1/(n·k^(d-1)).
"""

from __future__ import annotations

from random import Random


class Priorities:
    """Strategy for bugs of this depth in schedules of about `length` tokens; a seed is a schedule."""

    def __init__(self, seed: int, length: int, depth: int) -> None:
        self._draw = Random(seed)
        self._order: list[int] = []
        tokens = range(1, max(length, depth))
        self._drops = frozenset(self._draw.sample(tokens, depth - 1))
        self._at = 0

    def choose(self, enabled: tuple[int, ...], previous: int | None) -> int:
        """The enabled lane of the highest priority."""
        for lane in enabled:
            if lane not in self._order:
                self._order.insert(self._draw.randint(0, len(self._order)), lane)
        if previous is not None and self._at in self._drops:
            self._order.remove(previous)
            self._order.append(previous)
        self._at += 1
        return next(lane for lane in self._order if lane in enabled)

    def finish(self) -> None:
        """Nothing can be left over."""
