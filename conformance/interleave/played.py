"""What one run of a schedule showed, as values: statements, commands, choices. Nothing here judges or schedules.

A token is one digit of the schedule and one scheduling decision; tokens are numbered from 0, so a token's number
is its position in the schedule string.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

CLOCK = 0
"""The lane of the clock; its digit in a schedule."""


class Unplayable(Exception):
    """A schedule could not be played to its end: no verdict. `schedule` is what had been played of it."""

    schedule = ""


class Diverged(Unplayable):
    """A schedule could not be followed: a token was not enabled, or something was left over. Neither pass nor fail."""


class Stuck(Unplayable):
    """The actors came to a standstill that no release can end: a harness fault or a lock left behind, no verdict."""


@dataclass(slots=True)
class Statement:
    """One statement, COMMIT or ROLLBACK as it went to the driver.

    `kind` is its first keyword (`SELECT`, `UPDATE`, `COMMIT` …), `rowcount` the driver's count where it has one,
    `waited` tells that the server confirmed it waiting for another actor's lock, `failed` that it raised, `conflict`
    that what it raised was a write conflict (SQLite BUSY or LOCKED, PostgreSQL 40001 or 40P01).
    """

    token: int
    lane: int
    kind: str
    sql: str
    rowcount: int | None = None
    waited: bool = False
    failed: bool = False
    conflict: bool = False


class Ran(NamedTuple):
    """A lane's `nth` command (0 first), or move of the clock: the tokens in which it started and ended, its answer.

    It precedes another command in real time iff its `end` is smaller than the other's `start`. `now` is the clock in
    ticks as it was read when the command started.
    """

    lane: int
    nth: int
    start: int
    end: int
    now: int
    outcome: Any


@dataclass(frozen=True, slots=True)
class Played:
    """A run: its schedule, what was observed, and at each token the lanes that could have been chosen."""

    schedule: str
    enabled: tuple[tuple[int, ...], ...]
    statements: tuple[Statement, ...]
    commands: tuple[Ran, ...]
    """By lane, then in the lane's order."""

    def statements_of(self, ran: Ran) -> tuple[Statement, ...]:
        """The statements of one command, in order."""
        return tuple(s for s in self.statements if s.lane == ran.lane and ran.start <= s.token <= ran.end)

    @property
    def preemptions(self) -> int:
        """How often a lane that could have gone on was interrupted: the bound of Musuvathi and Qadeer 2007."""
        return preemptions(self.schedule, self.enabled)


def preemptions(schedule: str, enabled: tuple[tuple[int, ...], ...]) -> int:
    """The preemptions in a schedule or a prefix of one; `enabled` holds the lanes enabled at each of its tokens."""
    pairs = zip(schedule, schedule[1:], enabled[1:], strict=False)
    return sum(here != there and int(here) in able for here, there, able in pairs)
