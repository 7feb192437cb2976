"""The expected-failures file: what a team knows to be wrong with its queue, by clause and queue, with the reason.

It reads the file and refuses what it cannot use; whether an expectation still holds is for the result to say.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_args

from fencepost.adapters.registry import unknown
from fencepost.reports.result import ExpectedFailure, Kind
from fencepost.scenarios import ScenarioError
from fencepost.scenarios.safe_yaml import read_yaml

from .selection import UnknownName, Unusable, chosen_clauses, chosen_queues, known_clause

KINDS: tuple[str, ...] = get_args(Kind)
KEYS = ("queue", "kind", "reason")
_STARTS = "an entry is a clause with `kind:` and `reason:` below it"


@dataclass(frozen=True, slots=True)
class ExpectedFailures:
    """Expectations by clause and queue; under the queue None, what holds for every queue that has no entry of its own."""

    entries: Mapping[tuple[str, str | None], ExpectedFailure] = field(default_factory=dict)

    def of(self, clause: str, queue: str, *, named: bool = False) -> ExpectedFailure | None:
        """What is expected of this pair; with `named` only by an entry that names the queue."""
        own = self.entries.get((clause, queue))
        return own if own is not None or named else self.entries.get((clause, None))

    def clauses(self, queue: str) -> frozenset[str]:
        """The clauses of which a failure on this queue is expected."""
        return frozenset(clause for clause, of in self.entries if of in (None, queue))


NOTHING = ExpectedFailures()


def read_expected_failures(path: Path) -> ExpectedFailures:
    """The expectations in this file.

    Raises:
        Unusable: it cannot be read, is damaged, or says something that means nothing; names the place and the nearest.
    """
    try:
        text = path.read_text(encoding="utf-8")
        raw = read_yaml(text, str(path), _STARTS)
    except OSError as error:
        raise Unusable(f"{path}: cannot be read ({error.strerror}); give a file of expected failures") from None
    except UnicodeDecodeError:
        raise Unusable(f"{path}: is no UTF-8 text; give a file of expected failures") from None
    except ScenarioError as error:
        raise Unusable(str(error)) from None
    entries: dict[tuple[str, str | None], ExpectedFailure] = {}
    for name, said in raw.items():
        clause = _clause(name, f"{path}: ")
        for one in said if isinstance(said, list) else [said]:
            queue, expected = _entry(one, f"{path}: {clause}: ")
            if (clause, queue) in entries:
                where = f"queue {queue}" if queue else "all queues"
                raise Unusable(f"{path}: {clause}: has two entries for {where}; keep one")
            entries[clause, queue] = expected
    return ExpectedFailures(entries)


def _clause(name: object, place: str) -> str:
    try:
        clause = known_clause(str(name))
        chosen_clauses([clause])
    except UnknownName as error:
        raise Unusable(f"{place}{error}") from None
    return clause


def _entry(said: Any, place: str) -> tuple[str | None, ExpectedFailure]:
    if not isinstance(said, dict):
        raise Unusable(f"{place}must have `kind:` and `reason:` below it, or be a list of such entries")
    problems = [*_unknown(said, KEYS, "key"), *_missing(said, ("kind", "reason"))]
    if not problems and said["kind"] not in KINDS:
        problems = [*_unknown([said["kind"]], KINDS, "kind")]
    queue = said.get("queue")
    if queue is not None and not problems:
        try:
            chosen_queues([str(queue)])
        except UnknownName as error:
            problems = [str(error)]
    if problems:
        raise Unusable(place + problems[0])
    return queue, ExpectedFailure(kind=said["kind"], reason=said["reason"].strip())


def _unknown(names: Iterable[Any], known: tuple[str, ...], what: str) -> Iterator[str]:
    return (unknown(what, str(name), known) for name in names if name not in known)


def _missing(said: Mapping[str, Any], keys: tuple[str, ...]) -> Iterator[str]:
    for key in keys:
        value = said.get(key)
        if not isinstance(value, str) or not value.strip():
            yield f"lacks its `{key}:`; {'say why the failure is expected' if key == 'reason' else 'give ' + _OR}"


_OR = ", ".join(KINDS[:-1]) + f" or {KINDS[-1]}"
