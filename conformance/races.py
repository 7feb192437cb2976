"""The interleaved part of a run: every program of two actors, certified on one queue."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fencepost.reports.result import Certificate

from .findings import Finding

if TYPE_CHECKING:
    from .run import Plan


@dataclass(frozen=True, slots=True)
class Raced:
    """What became of one program: its certificates, and the simplest failing schedule if there is one."""

    certificates: tuple[Certificate, ...]
    finding: Finding | None = None


def race_all(plan: Plan, queue: str, on_schedule: Callable[[], None]) -> Iterator[Raced]:
    yield from ()
