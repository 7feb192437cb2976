"""What a run's pairs amount to: the levels that each queue reached, and the requirements that it does not meet.

It reads the verdicts of pairs and decides none, and knows nothing of how one was found.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple, TypeAlias

from fencepost.model.clauses import LEVELS, JobLevel, up_to

from .result import ClauseResult, LevelResult, Obstacle, Unmet

_Pairs: TypeAlias = Mapping[tuple[str, str], ClauseResult]


class _Lack(NamedTuple):
    """Why a clause is not shown to hold, and what to do about it."""

    why: str
    todo: str


_LEFT_OUT = _Lack("left out of this run", "run all that is required, or require less")
_CUT_SHORT = Obstacle(clauses=(), why="the run was cut short")


def levels_of(
    pairs: Iterable[ClauseResult], queues: Iterable[str], *, cut_short: bool = False
) -> tuple[LevelResult, ...]:
    """How each of these queues stands to each level, queue by queue.

    A level is reached when every must-clause up to it passes, or is not applicable because of what the queue declares.
    A clause that merely could not be driven keeps the level from being reached; one that is not built does not. A level
    of which a clause was left out is not judged, nor is any in a run that was `cut_short`.
    """
    known = _by_place(pairs)
    return tuple(_level(known, queue, level, cut_short) for queue in queues for level in LEVELS.values())


def _level(known: _Pairs, queue: str, level: JobLevel, cut_short: bool) -> LevelResult:
    if cut_short:
        return LevelResult(queue=queue, level=level, verdict="not judged", obstacles=(_CUT_SHORT,))
    wanted = up_to(level)
    lacks = _lacks(known, queue, wanted, declared=True)
    left_out = {_LEFT_OUT: lacks[_LEFT_OUT]} if _LEFT_OUT in lacks else {}
    return LevelResult(
        queue=queue,
        level=level,
        verdict="not judged" if left_out else "not reached" if lacks else "reached",
        obstacles=tuple(Obstacle(clauses=clauses, why=lack.why) for lack, clauses in (left_out or lacks).items()),
        not_built=tuple(clause for clause in wanted if (clause, queue) in known and not known[clause, queue].built),
    )


def unmet_of(required: Iterable[str], pairs: Iterable[ClauseResult], queues: Iterable[str]) -> tuple[Unmet, ...]:
    """The requirements that each of these queues does not meet, one for each reason.

    A level that is required must be reached. A clause that is required must pass: it is not excused by what a queue
    declares, nor by being one that is only recommended, nor by not being built.
    """
    known, asked = _by_place(pairs), tuple(queues)
    return tuple(
        Unmet(requirement=name, queue=queue, clauses=clauses, why=lack.why, todo=lack.todo)
        for name in required
        for queue in asked
        for lack, clauses in _unmet(known, queue, name).items()
    )


def _unmet(known: _Pairs, queue: str, name: str) -> dict[_Lack, tuple[str, ...]]:
    if name in LEVELS:
        return _lacks(known, queue, up_to(LEVELS[name]), declared=True)
    return _lacks(known, queue, (name,), declared=False)


def _by_place(pairs: Iterable[ClauseResult]) -> _Pairs:
    return {(pair.id, pair.queue): pair for pair in pairs}


def _lacks(known: _Pairs, queue: str, wanted: Iterable[str], *, declared: bool) -> dict[_Lack, tuple[str, ...]]:
    """The wanted clauses that are not shown to hold, by what they lack; `declared` excuses those that the queue
    declares not to have, and those that are not built.
    """
    found: dict[_Lack, tuple[str, ...]] = {}
    for clause in wanted:
        lack = _lack(known.get((clause, queue)), declared)
        if lack is not None:
            found[lack] = (*found.get(lack, ()), clause)
    return found


def _lack(pair: ClauseResult | None, declared: bool) -> _Lack | None:
    if pair is None:
        return _LEFT_OUT
    if pair.gap and pair.verdict in ("pass", "not applicable"):
        return _Lack(pair.reason, "have the adapter drive it and declare so, or require less")
    if pair.verdict == "pass" or (declared and (pair.verdict == "not applicable" or not pair.built)):
        return None
    if not pair.built:
        return _Lack("not built in this version", "require less until it is")
    if pair.verdict == "not applicable":
        return _Lack(pair.reason, "require it of other queues only, or have the queue declare what it has")
    if pair.verdict == "fail":
        return _Lack(f"failed: {pair.reason}", "mend the queue; the story of the failure says what it did")
    return _Lack(f"{pair.verdict}: {pair.reason}", "look deeper, with profile ci or nightly")
