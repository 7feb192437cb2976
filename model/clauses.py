"""The clause registry: every check, mutant, scenario and report refers to a clause by its ID through this module.

It says what a clause is, how it weighs and which engine of this version exercises it. It must never know how a clause
is checked, nor which queue it applies to.
"""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches
from typing import Literal, TypeAlias

from .clause_table import ROWS

JobLevel: TypeAlias = Literal[1, 2, 3]
Level: TypeAlias = JobLevel | Literal["task-v2"]
Engine: TypeAlias = Literal["sequential", "interleaved", "table", "direct", "none"]


@dataclass(frozen=True, slots=True)
class Clause:
    """One clause of the contract.

    `section` names the source (R, T, P) or says "ours". `must` is false where the source only recommends: such a
    clause is reported, and decides a verdict only when required by option. `engine` exercises it in this version
    ("none": not built); `also_interleaved` tells that one half of a sequential clause needs two actors.
    """

    id: str
    title: str
    section: str
    level: Level
    must: bool
    engine: Engine
    also_interleaved: bool = False


def _ids(family: str, *numbers: int) -> tuple[str, ...]:
    return tuple(f"{family}-{number:02d}" for number in numbers)


_ENGINES: dict[str, Engine] = {
    **dict.fromkeys(
        (
            *_ids("CLAIM", 1, 2, 3, 4, 5, 7, 8, 9, 12, 14, 15),
            *_ids("LEASE", 2, 3, 4, 7),
            *_ids("FENCE", 1, 2, 3, 4, 5, 6, 7),
            *_ids("REL", 1),
            *_ids("TERM", 1, 2, 3, 4),
            *_ids("CANCEL", 1, 2, 3, 4, 5, 6),
            *_ids("REC", 1, 2, 3, 4, 5, 6, 8, 9, 10, 12),
            *_ids("DEAD", 1),
            *_ids("ATT", 1, 2),
            *_ids("ERR", 2, 3),
            "INV-5",
            "INV-6",
            "INV-7",
        ),
        "sequential",
    ),
    **dict.fromkeys((*_ids("CLAIM", 6, 11), *_ids("CANCEL", 9), *_ids("REC", 7)), "interleaved"),
    **dict.fromkeys((*_ids("LEASE", 1), *_ids("ERR", 1)), "table"),
    **dict.fromkeys(_ids("CLAIM", 13), "direct"),
}

_ALSO_INTERLEAVED = {
    "CLAIM-14",  # a head of the queue that another transaction holds locked
    "REC-02",  # the update's own look at the expiry, after a renewal came between
}

_SHOULD = {"ACC-05", "WATCH-03"}

_LEVELS: dict[str, Level] = {
    **dict.fromkeys((*_ids("CLAIM", 1, 2, 5, 6, 7, 9, 11, 12, 13), *_ids("TERM", 1, 2), "INV-6", "INV-7"), 1),
    **dict.fromkeys(
        (
            *_ids("LEASE", 1, 2, 3, 4, 6, 7),
            *_ids("FENCE", 1, 2, 3, 6),
            *_ids("CANCEL", 1, 2, 3, 4, 5, 6, 9),
            *_ids("REC", 1, 2, 3, 4, 5, 6, 7, 8),
            *_ids("ATT", 1),
            *_ids("TERM", 3),
        ),
        2,
    ),
}


def _level(clause_id: str, section: str) -> Level:
    return "task-v2" if section.startswith("T§") else _LEVELS.get(clause_id, 3)


CLAUSES: dict[str, Clause] = {
    clause_id: Clause(
        id=clause_id,
        title=title,
        section=section,
        level=_level(clause_id, section),
        must=clause_id not in _SHOULD,
        engine=_ENGINES.get(clause_id, "none"),
        also_interleaved=clause_id in _ALSO_INTERLEAVED,
    )
    for clause_id, section, title in ROWS
}
"""Every clause by ID, in the contract's order."""

BUILT: tuple[str, ...] = tuple(clause.id for clause in CLAUSES.values() if clause.engine != "none")
"""The clauses that this version exercises, in the contract's order."""


LEVELS: dict[str, JobLevel] = {"level-1": 1, "level-2": 2, "level-3": 3}
"""Safe claims, fenced leases and the full contract, by name; each level includes those below it."""


def up_to(level: JobLevel) -> tuple[str, ...]:
    """The clauses that a queue must keep to reach this level, in the contract's order."""
    return tuple(c.id for c in CLAUSES.values() if c.must and c.level != "task-v2" and c.level <= level)


def lookup(clause_id: str) -> Clause:
    """The clause with this ID; raises ValueError that names the nearest ID if there is none."""
    clause = CLAUSES.get(clause_id)
    if clause is None:
        nearest = get_close_matches(clause_id.upper(), CLAUSES, n=1, cutoff=0.0)[0]
        raise ValueError(f"there is no clause {clause_id!r}; did you mean {nearest}?")
    return clause
