"""What a claim's statements must look like while others run: judged from what was sent, not from what was answered.

CLAIM-11 and CLAIM-14 are about locks and transactions, which outcomes don't show. It knows statements by their
keyword, row count, whether they waited and whether they read; never a table or a column.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from fencepost.model import outcomes as o
from fencepost.model.world import Violation

from .gate import picks_rows
from .played import Statement

_ENDS = frozenset({"COMMIT", "ROLLBACK"})
_DATA = frozenset({"SELECT", "INSERT", "UPDATE", "DELETE", "MERGE", "REPLACE"})


class Shaped(NamedTuple):
    """A claim of a race: its answer and its statements in order."""

    outcome: o.Outcome
    statements: Sequence[Statement]


def shape_of(claims: Sequence[Shaped], *, row_locks: bool, enough: bool) -> Violation | None:
    """The first fault in the claims' statements.

    `row_locks`: candidates stay locked until commit. `enough`: nothing but claims ran, and there was a due job for
    each, so that whichever of them locks the head of the queue, the others must find the next.
    """
    if row_locks and enough and any(claim.outcome in (o.Claimed(), o.CONFLICT) for claim in claims):
        return Violation("CLAIM-14", "claim: past a locked head", "a claim got nothing, a due job was not locked")
    for claim in claims:
        why = _locks(claim.statements) if row_locks else _transactions(claim)
        if why is not None:
            return Violation("CLAIM-11", "claim: transactions", why)
    return None


def _locks(statements: Sequence[Statement]) -> str | None:
    """Where candidates are locked, claimers see disjoint ones: nobody waits, and no update is in vain."""
    if any(statement.waited for statement in statements):
        return "a claim waited for another's lock"
    for statement in statements:
        # An update that picks its candidates itself finds none where others have locked them all: that is no waste.
        if statement.kind == "UPDATE" and statement.rowcount == 0 and not picks_rows(statement.sql):
            return "a claim updated no row: another had taken its candidate"
    return None


def _transactions(claim: Shaped) -> str | None:
    """Where writers exclude each other: the read's transaction ends before the updates, one commit ends those.

    A claim may try again, and may read once it holds the lock that its first write takes.
    """
    committed = 0
    for transaction in _split(claim.statements):
        kinds = [statement.kind for statement in transaction if statement.kind in _DATA]
        if "UPDATE" not in kinds:
            continue
        if kinds[0] == "SELECT":
            return "a claim updated in the transaction in which it had read: " + _listed(claim.statements)
        if transaction[-1].kind == "COMMIT":
            committed += any(each.kind == "UPDATE" and each.rowcount != 0 for each in transaction)
    # Drivers don't count the rows of every update, so that one in vain can't be told from the one that took one job.
    if committed > 1 and isinstance(claim.outcome, o.Claimed) and len(claim.outcome.handles) > 1:
        return "a claim took its jobs in more than one transaction: " + _listed(claim.statements)
    return None


def _split(statements: Sequence[Statement]) -> Iterator[Sequence[Statement]]:
    """The statements of each transaction, its end included; the last one may have none."""
    start = 0
    for at, statement in enumerate(statements, 1):
        if statement.kind in _ENDS:
            yield statements[start:at]
            start = at
    if start < len(statements):
        yield statements[start:]


def _listed(statements: Sequence[Statement]) -> str:
    return ", ".join(statement.kind for statement in statements)
