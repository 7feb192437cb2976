"""Replay: follows a given schedule to the letter. It never falls back to a choice of its own."""

from __future__ import annotations

from .played import Diverged


class Replay:
    """Strategy that plays one schedule string."""

    def __init__(self, schedule: str) -> None:
        self._schedule = schedule
        self._at = 0

    def choose(self, enabled: tuple[int, ...], previous: int | None) -> int:
        """The next digit.

        Raises:
            Diverged: the schedule has ended, or its next lane is not enabled.
        """
        if self._at == len(self._schedule):
            raise Diverged(f"the schedule ends after {self._at} tokens, but lanes {_listed(enabled)} can go on")
        choice = int(self._schedule[self._at])
        if choice not in enabled:
            raise Diverged(f"token {self._at}: the schedule lets lane {choice} go, but only {_listed(enabled)} can")
        self._at += 1
        return choice

    def finish(self) -> None:
        """The lanes have ended.

        Raises:
            Diverged: tokens are left over.
        """
        left = self._schedule[self._at :]
        if left:
            raise Diverged(f"every lane has ended after {self._at} tokens; {left!r} is left over")


def _listed(enabled: tuple[int, ...]) -> str:
    return ", ".join(map(str, enabled))
