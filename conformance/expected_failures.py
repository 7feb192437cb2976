"""The expected-failures file: what a team knows to be wrong with its queue, by clause and queue, with the reason.

It reads the file and refuses what it cannot use; whether an expectation still holds is for the result to say.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_args

from fencepost.adapters.registry import unknown
from fencepost.model.queues import QUEUES, QueueSpec
from fencepost.reports.result import ExpectedFailure, Kind
from fencepost.scenarios import ScenarioError
from fencepost.scenarios.safe_yaml import read_yaml

from .selection import UnknownName, Unusable, chosen_clauses, chosen_queues, known_clause

KINDS: tuple[str, ...] = get_args(Kind)
_REQUIRED = {"kind": f"give one of {', '.join(KINDS)}", "reason": "say why the failure is expected"}
_STARTS = "an entry is a clause with `kind:` and `reason:` below it"


@dataclass(frozen=True, slots=True)
class ExpectedFailures:
    """Expectations by clause and queue; under the queue None, what holds for each queue without an entry of its own."""

    entries: Mapping[tuple[str, str | None], ExpectedFailure] = field(default_factory=dict)

    def of(self, clause: str, queue: str, *, named: bool = False) -> ExpectedFailure | None:
        """What is expected of this pair; with `named` only by an entry that names the queue."""
        own = self.entries.get((clause, queue))
        return own if own is not None or named else self.entries.get((clause, None))

    def clauses(self, queue: str) -> frozenset[str]:
        """The clauses of which a failure on this queue is expected."""
        return frozenset(clause for clause, of in self.entries if of in (None, queue))


NOTHING = ExpectedFailures()


def read_expected_failures(path: Path, served: Mapping[str, QueueSpec] = QUEUES) -> ExpectedFailures:
    """The expectations in this file, of the queues that an adapter serves.

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
        for one in said if isinstance(said, list) and said else [said]:
            queue, expected = _entry(one, served, f"{path}: {clause}: ")
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


def _entry(said: Any, served: Mapping[str, QueueSpec], place: str) -> tuple[str | None, ExpectedFailure]:
    if not isinstance(said, dict):
        raise Unusable(f"{place}must have `kind:` and `reason:` below it, or be a list of such entries")
    for name in said:
        if name not in ("queue", *_REQUIRED):
            raise Unusable(place + unknown("key", str(name), ("queue", *_REQUIRED)))
    for key, todo in _REQUIRED.items():
        if not (isinstance(said.get(key), str) and said[key].strip()):
            raise Unusable(f"{place}lacks its `{key}:`; {todo}")
    if said["kind"] not in KINDS:
        raise Unusable(place + unknown("kind", said["kind"], KINDS))
    queue = said.get("queue")
    if queue is not None:
        try:
            chosen_queues([str(queue)], served)
        except UnknownName as error:
            raise Unusable(f"{place}{error}") from None
    return queue, ExpectedFailure(kind=said["kind"], reason=said["reason"].strip())
