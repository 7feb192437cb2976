"""From the names that a person types to what they stand for: adapter, queues, clauses, profile.

A name that stands for nothing is refused with the known ones and the nearest. Nothing here opens or runs anything.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from difflib import get_close_matches

from fencepost.adapters.contract import Adapter, AdapterError
from fencepost.adapters.registry import adapter_class, unknown
from fencepost.model.clauses import BUILT, CLAUSES, LEVELS, lookup, up_to
from fencepost.model.queues import ALL_QUEUES, QUEUES, QueueSpec

from .profiles import DEFAULT, PROFILES, Profile


class Unusable(ValueError):
    """What somebody gave cannot be used; the message says what to do."""


class UnknownName(Unusable):
    """A name stands for nothing; the message names the known ones and the nearest."""


def chosen_adapter(name: str) -> type[Adapter]:
    """The adapter class of this name or `module:Class`; modules are also looked for in the current folder.

    Raises:
        UnknownName: there is none, or it lacks a method.
    """
    here = os.getcwd()
    if ":" in name and here not in sys.path:
        sys.path.insert(0, here)
    try:
        return adapter_class(name)
    except AdapterError as error:
        raise UnknownName(str(error)) from error


def chosen_queues(names: Sequence[str], served: Mapping[str, QueueSpec] = QUEUES) -> tuple[str, ...]:
    """These queues in the order of `served`, which an adapter declares; all of them if none is named.

    Raises:
        UnknownName: there is no such queue, or this version has not built it.
    """
    for name in names:
        if name not in served:
            if name in ALL_QUEUES and name not in QUEUES:
                raise UnknownName(f"queue {name!r} is not built in this version. Built: {', '.join(QUEUES)}.")
            raise UnknownName(unknown("queue", name, served))
    return tuple(key for key in served if not names or key in names)


def chosen_clauses(names: Sequence[str]) -> frozenset[str] | None:
    """These clauses, in either case of letters; None, which means all of them, if none is named.

    Raises:
        UnknownName: there is no such clause, or this version has not built it.
    """
    clauses = [known_clause(name) for name in names]
    for clause in clauses:
        if clause not in BUILT:
            raise UnknownName(f"clause {clause} is not built in this version. Built: {', '.join(BUILT)}.")
    return frozenset(clauses) or None


def known_clause(name: str) -> str:
    """The ID of this clause, built or not, in either case of letters.

    Raises:
        UnknownName: there is no such clause.
    """
    if name.upper() in CLAUSES:
        return name.upper()
    try:
        return lookup(name).id
    except ValueError as error:
        raise UnknownName(f"{error} `fencepost list` shows all.") from None


def chosen_requirements(names: Sequence[str], clauses: frozenset[str] | None = None) -> tuple[str, ...]:
    """These clauses, built or not, and levels (`level-2`, or 2); one text may hold several, with commas between them.

    `clauses` are those that the run is narrowed to, if it is.

    Raises:
        UnknownName: there is no such clause or level.
        Unusable: something is required that the run leaves out.
    """
    required = tuple(dict.fromkeys(_requirement(name.strip()) for text in names for name in text.split(",")))
    for name in required:
        wanted = up_to(LEVELS[name]) if name in LEVELS else (name,)
        left_out = [clause for clause in wanted if clauses is not None and clause in BUILT and clause not in clauses]
        if left_out:
            more = f" and {len(left_out) - 3} more" if left_out[3:] else ""
            raise Unusable(
                f"{name} is required, but the run is narrowed to other clauses and leaves out "
                f"{', '.join(left_out[:3])}{more}; ask for these too, or require less"
            )
    return required


def _requirement(name: str) -> str:
    known = {one.lower(): one for one in (*LEVELS, *CLAUSES)}
    asked = f"level-{name}" if name.isdecimal() else name.lower()
    if asked in known:
        return known[asked]
    nearest = known[get_close_matches(asked, known, n=1, cutoff=0.0)[0]]
    raise UnknownName(
        f"there is no clause or level {name!r}; did you mean {nearest}? The levels are {', '.join(LEVELS)}; "
        "`fencepost list` shows the clauses."
    )


def chosen_profile(name: str = DEFAULT) -> Profile:
    """The profile of this name.

    Raises:
        UnknownName: there is none.
    """
    if name not in PROFILES:
        raise UnknownName(unknown("profile", name, PROFILES))
    return PROFILES[name]
