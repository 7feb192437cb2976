"""Which clause applies to which queue: a complete, reviewed table in which every empty cell has a reason.

Reasons are declarations: what the queue's spec says that it has or lacks, or what an adapter says that it cannot drive.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

from .clauses import CLAUSES
from .queues import ALL_QUEUES, QUEUES, QueueSpec

Status: TypeAlias = Literal["applies", "not applicable", "not built"]


@dataclass(frozen=True, slots=True)
class Cell:
    """Whether a clause applies to a queue; `reason` is empty only where it applies.

    `gap` tells that the queue may well have what the clause needs, and that it could not be driven.
    """

    status: Status
    reason: str = ""
    gap: bool = False


APPLIES = Cell("applies")
NOT_BUILT = Cell("not built", "not built")


class Need(NamedTuple):
    """What a clause needs of a queue: one of these flags of its spec or one of these verbs; and what is said of a queue
    that has none of them.
    """

    reason: str
    flags: tuple[str, ...] = ()
    verbs: tuple[str, ...] = ()
    gap: bool = False

    def met(self, spec: QueueSpec) -> bool:
        """Whether the queue has it."""
        return any(getattr(spec, flag) for flag in self.flags) or any(verb in spec.verbs for verb in self.verbs)


def _has(*flags: str, else_it: str) -> Need:
    """The clause needs one of these flags: a queue without has not got what the clause is about."""
    return Need(else_it, flags)


def _served(*verbs: str) -> tuple[Need, ...]:
    """The clause needs all of these verbs: a queue without one cannot be asked."""
    return tuple(Need(f"is not asked to {verb}", verbs=(verb,), gap=True) for verb in verbs)


_ASKED = (_has("cancels", else_it="has no cancel"), *_served("request_cancel"))
_DEADLINE = _has("deadline", else_it="declares no deadline")
_ARTIFACTS = (
    _has("artifacts", else_it="stores no artifacts"),
    _has("has_token", else_it="declares an owner-only fence: it cannot tell which attempt has made an artifact"),
    *_served("put_artifact", "read_artifact"),
)
_HOOKS = Need("is driven without hooks", ("hooks",), gap=True)

_TAKEN = Need(
    "is not asked for anything that takes a job from its holder",
    verbs=("recover", "tick", "start_up", "release", "fail"),
    gap=True,
)

NEEDS: dict[str, tuple[Need, ...]] = {
    "CLAIM-02": _ASKED,
    "CLAIM-03": (_has("backs_off", else_it="declares no back-off: every pending job is due"),),
    "CLAIM-04": (_DEADLINE,),
    "CLAIM-08": (_has("ordered", else_it="declares no order of its claims"),),
    "CLAIM-09": _served("probe"),
    "CLAIM-12": (_HOOKS,),
    "CLAIM-14": (
        Need(
            "declares nothing that keeps a pending job from a claim",
            flags=("backs_off", "deadline", "unordered"),
            verbs=("request_cancel", "plant"),
        ),
    ),
    "CLAIM-15": (_has("claims_by_id", else_it="has no queue predicate of its own and no claim of one job"),),
    "LEASE-01": _served("configure"),
    **dict.fromkeys(("LEASE-02", "LEASE-03", "LEASE-04"), _served("renew")),
    "FENCE-02": (_TAKEN,),
    "FENCE-03": (
        _has("has_token", else_it="declares an owner-only fence: it cannot tell a worker's older handle"),
        _TAKEN,
    ),
    "FENCE-04": _ARTIFACTS,
    "FENCE-05": (_has("repeats_complete", else_it="has no idempotent completion: TERM-02 judges a repeated one"),),
    "FENCE-07": _ARTIFACTS,
    "REL-01": _served("release"),
    "CANCEL-01": _ASKED,
    "CANCEL-02": _ASKED,
    "CANCEL-03": _ASKED,
    "CANCEL-04": (*_ASKED, *_served("acknowledge", "checkpoint")),
    "CANCEL-05": (*_ASKED, *_served("recover")),
    "CANCEL-06": _ASKED,
    "CANCEL-09": _ASKED,
    **dict.fromkeys(("REC-01", "REC-02", "REC-03", "REC-06", "REC-07", "REC-10"), _served("recover")),
    "REC-04": _served("tick"),
    "REC-05": _served("start_up"),
    "REC-08": (_HOOKS, *_served("recover")),
    "REC-09": (
        _has(
            "counts_generations",
            else_it="counts no generations: whose row any other value was computed from nobody can tell",
        ),
        *_served("recover"),
    ),
    "REC-12": (_HOOKS, *_served("recover")),
    "LEASE-07": _served("recover"),
    "DEAD-01": (_DEADLINE, *_served("recover")),
    "ATT-02": _served("fail"),
    "ERR-01": _served("classify"),
    "ERR-02": _served("fail"),
    "ERR-03": _served("fail"),
    "INV-5": _ARTIFACTS,
    "INV-6": _ASKED,
}
"""What a clause needs a queue to declare, first unmet need first."""


def cell(clause_id: str, spec: QueueSpec) -> Cell:
    """Whether a clause applies to a queue that declares this; raises KeyError for an unknown clause."""
    if CLAUSES[clause_id].engine == "none":
        return NOT_BUILT
    for need in NEEDS.get(clause_id, ()):
        if not need.met(spec):
            return Cell("not applicable", f"{spec.key} {need.reason}", need.gap)
    return APPLIES


TABLE: dict[tuple[str, str], Cell] = {
    (c, q): cell(c, QUEUES[q]) if q in QUEUES else NOT_BUILT for c in CLAUSES for q in ALL_QUEUES
}
"""Every clause of the contract × every queue of R§5, in the contract's order."""


def applies(clause_id: str, queue_key: str) -> Cell:
    """The cell of one clause and one queue of the contract; raises KeyError for a pair that the table does not know."""
    return TABLE[clause_id, queue_key]


def pairs(queues: Iterable[QueueSpec]) -> Iterator[tuple[str, QueueSpec, Cell]]:
    """Every (clause ID, queue, cell) of these queues, clause by clause."""
    specs = tuple(queues)
    return ((c, spec, cell(c, spec)) for c in CLAUSES for spec in specs)
