"""Random walk: every token is a uniform choice among the enabled lanes.

The baseline of Burckhardt, Kothari, Musuvathi and Nagarakatte, "A Randomized Scheduler with Probabilistic
Guarantees of Finding Bugs" (ASPLOS 2010). It gives no guarantee of its own; it needs no knowledge either.
"""

from __future__ import annotations

from random import Random


class RandomWalk:
    """Strategy that draws from its own generator, so that a seed is a schedule."""

    def __init__(self, seed: int) -> None:
        self._draw = Random(seed)

    def choose(self, enabled: tuple[int, ...], previous: int | None) -> int:
        """One of the enabled lanes, each as likely."""
        return self._draw.choice(enabled)

    def finish(self) -> None:
        """Nothing can be left over."""
