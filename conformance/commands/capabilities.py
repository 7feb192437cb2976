"""`fencepost list --capabilities-markdown`: what is declared where, and which clauses need it, as tables.

What a field means is what its class says of it; which clauses need it is read from the model. Nothing is said twice.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Iterable, Iterator
from dataclasses import MISSING, Field, fields
from typing import Any

from fencepost.adapters.contract import Capabilities
from fencepost.conformance.applicable import needed_capability
from fencepost.model.applicability import NEEDS, Need
from fencepost.model.clauses import BUILT, CLAUSES, LEVELS, JobLevel
from fencepost.model.queues import QueueSpec

_READ_FROM = {
    "has_token": "fence", "counts_generations": "fence", "backs_off": "backoff_seconds", "unordered": "ordered=False",
}  # fmt: skip
"""The field that a flag is read from, where it is another one; with its value, where it is not that it is there."""
_NOTHING = "–"
FIELDS = ("Field", "Default", "Means", "Clauses that need it")


def capabilities_tables() -> str:
    """The tables of docs/capabilities-and-levels.md: queues, adapters, verbs, levels."""
    verbs = sorted({verb for needs in NEEDS.values() for need in needs for verb in need.verbs})
    levels = ((str(level), _at(level, built=True), _at(level, built=False)) for level in LEVELS.values())
    sections = (
        ("What the queue is: `QueueSpec`", FIELDS, _fields(QueueSpec, _that_name)),
        ("What can be driven: `Capabilities`", FIELDS, _fields(Capabilities, _of_capability)),
        (
            "Verbs that clauses need",
            ("Verb", "Clauses that need it"),
            ((f"`{verb}`", _that_name(verb)) for verb in verbs),
        ),
        ("Clauses by level", ("Level", "Clauses", "Not built"), levels),
    )
    return "\n\n".join(f"### {title}\n\n{_table(head, rows)}" for title, head, rows in sections)


def _fields(declared: type, clauses: Callable[[str], str]) -> Iterator[tuple[str, ...]]:
    said = meanings(declared)
    for each in fields(declared):
        if each.init:
            yield f"`{each.name}`", _default(each), said[each.name], clauses(each.name)


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, ("---",) * len(head), *rows))


def meanings(declared: type) -> dict[str, str]:
    """What a class says of each of its fields, in the text that stands below the field."""
    (tree,) = ast.parse(inspect.getsource(declared)).body
    assert isinstance(tree, ast.ClassDef)
    said = {}
    for field, below in zip(tree.body, tree.body[1:], strict=False):
        if isinstance(field, ast.AnnAssign) and isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant):
            said[ast.unparse(field.target)] = " ".join(str(below.value.value).split())
    return said


def _default(field: Field[Any]) -> str:
    value = field.default
    if value is MISSING:
        return _NOTHING
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (frozenset, tuple)):
        return ", ".join(map(str, sorted(value) if isinstance(value, frozenset) else value)) or "none"
    return "none" if value is None else str(value)


def _that_name(name: str) -> str:
    """The clauses that need this field of a queue's, or this verb, each with what would do as well."""
    return _listed(
        clause + _else(need, name) for clause in CLAUSES for need in NEEDS.get(clause, ()) if name in _names(need)
    )


def _names(need: Need) -> list[str]:
    return [*map(_read_from, need.flags), *need.verbs]


def _else(need: Need, name: str) -> str:
    others = [f"`{other}`" for other in _names(need) if other != name]
    return f" (or {', '.join(others)})" if others else ""


def _read_from(flag: str) -> str:
    return _READ_FROM.get(flag, flag)


def _of_capability(field: str) -> str:
    if field == "hooks":
        return _that_name(field)
    halves = [clause.id for clause in CLAUSES.values() if clause.also_interleaved and field == "gate"]
    return _listed([*(c for c in BUILT if needed_capability(c) == field), *(f"{half} (in part)" for half in halves)])


def _at(level: JobLevel, *, built: bool) -> str:
    return _listed(clause.id for clause in CLAUSES.values() if clause.level == level and (clause.id in BUILT) == built)


def _listed(clauses: Iterable[str]) -> str:
    return ", ".join(clauses) or _NOTHING
