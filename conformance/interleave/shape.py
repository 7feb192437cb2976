"""What a claim's statements must look like while others run: judged from what was sent, not from what was answered.

CLAIM-11 and CLAIM-14 are about locks and transactions, which outcomes don't show. It knows statements by their
keyword, row count and whether they waited; never their text.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from fencepost.model import outcomes as o
from fencepost.model.world import Violation

from .played import Statement

_SHAPE = re.compile(r"SE(?:U+E)?")
"""A read, its end, then updates and one end."""
_LETTERS = {"SELECT": "S", "UPDATE": "U", "COMMIT": "E", "ROLLBACK": "E"}


class Shaped(NamedTuple):
    """A claim of a race: its answer and its statements in order."""

    outcome: o.Outcome
    statements: Sequence[Statement]


def shape_of(claims: Sequence[Shaped], *, row_locks: bool, enough: bool) -> Violation | None:
    """The first fault in the claims' statements.

    `row_locks`: candidates stay locked until commit. `enough`: nothing but claims ran, and there was a due job for
    each, so that whichever of them locks the head of the queue, the others must find the next.
    """
    if row_locks and enough and any(claim.outcome == o.Claimed() for claim in claims):
        return Violation("CLAIM-14", "claim: past a locked head", "a claim came back empty, a due job was not locked")
    for claim in claims:
        why = _locks(claim.statements) if row_locks else _transactions(claim.statements)
        if why is not None:
            return Violation("CLAIM-11", "claim: transactions", why)
    return None


def _locks(statements: Sequence[Statement]) -> str | None:
    """Where candidates are locked, claimers see disjoint ones: nobody waits, and no update is in vain."""
    if any(statement.waited for statement in statements):
        return "a claim waited for another's lock"
    if any(statement.kind == "UPDATE" and statement.rowcount == 0 for statement in statements):
        return "a claim updated no row: another had taken its candidate"
    return None


def _transactions(statements: Sequence[Statement]) -> str | None:
    """Where writers exclude each other: the read's transaction ends before the updates, one commit ends those."""
    shape = "".join(_LETTERS.get(statement.kind, "?") for statement in statements)
    if _SHAPE.fullmatch(shape):
        return None
    return "the statements were " + ", ".join(statement.kind for statement in statements)
