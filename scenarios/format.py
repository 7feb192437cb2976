"""What a scenario file holds once it is loaded: a trace, the outcomes it expects, and what it is for.

It must never know how a trace is run or judged, nor any adapter.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from fencepost.model.trace import Trace

from .expected import Expected

VERSION = 1
"""The version of the file format that this fencepost reads and writes."""

MUTANT = "mutant"
"""The source of the stories that are kept of mutants."""


class ScenarioError(Exception):
    """A scenario file cannot be used; the message names the file, the step or line, and what to do."""


@dataclass(frozen=True, slots=True)
class Found:
    """Where a found scenario comes from: the adapter and seed of the run, the check that failed and why."""

    adapter: str
    seed: int | None = None
    reason: str = ""
    why: str = ""


@dataclass(frozen=True, slots=True)
class Scenario:
    """One story of one clause on one queue.

    `adapters` are those that it is meant for (None: all of them), `source` is `hand`, `found`, `mutant`, or the name of
    the public report that it reproduces; `mutant` is the id of the one whose shortest story this is. `expected` holds,
    by step label, the outcomes that the contract demands.
    """

    id: str
    clause: str
    queue: str
    title: str
    trace: Trace
    adapters: tuple[str, ...] | None = None
    source: str = "hand"
    mutant: str | None = None
    found: Found | None = None
    expected: Mapping[int, Expected] = field(default_factory=dict)
