"""Which clause applies to which queue: a complete, reviewed table in which every empty cell has a reason.

Reasons are declarations of the queue's spec. What an adapter or a database cannot do is no matter of this table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

from .clauses import BUILT, CLAUSES
from .queues import ALL_QUEUES, QUEUES, QueueSpec

Status: TypeAlias = Literal["applies", "not applicable", "not built"]


@dataclass(frozen=True, slots=True)
class Cell:
    """Whether a clause applies to a queue; `reason` is empty only where it applies."""

    status: Status
    reason: str = ""


APPLIES = Cell("applies")
NOT_BUILT = Cell("not built", "not built")

NEEDS: dict[str, tuple[Callable[[QueueSpec], bool], str]] = {
    "CLAIM-03": (lambda q: q.backs_off, "declares no back-off: every pending job is due"),
    "FENCE-03": (lambda q: q.has_token, "declares an owner-only fence: it cannot tell a worker's older handle"),
    "REC-09": (
        lambda q: q.backs_off or q.has_token,
        "declares neither back-off nor token: recovery writes the same values to every row",
    ),
}
"""What a clause needs a queue to declare, and why it does not apply to a queue that declares otherwise."""


def _cell(clause_id: str, queue_key: str) -> Cell:
    spec = QUEUES.get(queue_key)
    if spec is None or clause_id not in BUILT:
        return NOT_BUILT
    if clause_id in NEEDS:
        met, reason = NEEDS[clause_id]
        if not met(spec):
            return Cell("not applicable", f"{spec.key} {reason}")
    return APPLIES


TABLE: dict[tuple[str, str], Cell] = {(c, q): _cell(c, q) for c in CLAUSES for q in ALL_QUEUES}
"""Every clause of the contract × every queue of R§5, in the contract's order."""


def applies(clause_id: str, queue_key: str) -> Cell:
    """The cell of one clause and one queue; raises KeyError for a pair that the table does not know."""
    return TABLE[clause_id, queue_key]


def pairs(queue_keys: Iterable[str] = ALL_QUEUES) -> Iterator[tuple[str, str, Cell]]:
    """Every (clause ID, queue key, cell) of these queues, clause by clause; raises KeyError for an unknown queue."""
    keys = tuple(queue_keys)
    return ((c, q, TABLE[c, q]) for c in CLAUSES for q in keys)
