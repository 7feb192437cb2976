"""The words rules are written in: predicates, assignments, ordered cases, orderings, and the named parameters.

Each is a small frozen value that carries the clause it keeps, so that a changed rule is a changed value. This module
must never know which rules there are.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Protocol, TypeAlias, TypeVar

from fencepost.model.queues import QueueSpec
from sqlalchemy import BinaryExpression, ColumnElement, Integer, String, bindparam
from sqlalchemy.sql import visitors

from .instant import Instant


class Columns(Protocol):
    """A table's columns by standard name (R§2)."""

    def __getattr__(self, name: str) -> ColumnElement[Any]: ...


class Args:
    """The parameters that a statement may name; who executes it supplies a value for each one that it does name.

    Instants are ticks, bound as the database stores them.
    """

    job = bindparam("job", type_=Integer)
    owner = bindparam("owner", type_=String)
    generation = bindparam("generation", type_=Integer)
    """The fence token of the handle, where generations are counted."""
    attempt = bindparam("attempt", type_=String)
    """The fence token of the handle, where attempts are named."""
    fresh_attempt = bindparam("fresh_attempt", type_=String)
    """The name of the attempt that a claim begins on this row."""
    key = bindparam("key", type_=String)
    """What an attempt's artifact is stored under."""
    now = bindparam("now", type_=Instant)
    lease_end = bindparam("lease_end", type_=Instant)
    """`now` and the lease's length."""
    begins_by = bindparam("begins_by", type_=Instant)
    """`now` and the time that a job must have left to be claimed."""
    lease_ago = bindparam("lease_ago", type_=Instant)
    """`now` less the asker's own lease length, by which no contract rule judges (LEASE-07)."""
    retry_at = bindparam("retry_at", type_=Instant)
    """When this row is due again, from this row's attempts (REC-09)."""
    seen_lease = bindparam("seen_lease", type_=Instant)
    """The lease expiry that a sweep read."""
    seen_generation = bindparam("seen_generation", type_=Integer)
    """The generation that a sweep, or a claim, read."""
    error = bindparam("error", type_=String)
    prefix = bindparam("prefix", type_=String)
    """The owner prefix that a starting process declares its own (REC-05)."""
    scan = bindparam("scan", type_=Integer)
    after_instant = bindparam("after_instant", type_=Instant)
    after_job = bindparam("after_job", type_=Integer)

    def __init__(self, spec: QueueSpec) -> None:
        self.spec = spec

    def spell(self, status: str) -> str:
        """The queue's own spelling of a standard status (TERM-04)."""
        return self.spec.spell(status)


Condition: TypeAlias = Callable[[Columns, Args], "ColumnElement[bool]"]
Value: TypeAlias = Callable[[Columns, Args], Any]

_SHIFTED: dict[Any, Any] = {
    operator.gt: operator.ge, operator.ge: operator.gt, operator.lt: operator.le, operator.le: operator.lt,
}  # fmt: skip


def _every(spec: QueueSpec) -> bool:
    return True


@dataclass(frozen=True, slots=True)
class Pred:
    """A condition on a row. It applies where the queue has `column`, the one that it is about, and is one that it
    `binds`; elsewhere every row meets it, or no row does if it is not `absent`.
    """

    name: str
    clause: str
    column: str
    sql: Condition
    absent: bool = True
    binds: Callable[[QueueSpec], bool] = _every

    def shifted(self) -> Pred:
        """The same condition with its bound moved by one instant: `>` for `>=`, `<=` for `<`, and back.

        Raises:
            LookupError: when the condition is built, if it has no bound.
        """
        return _shifted(self)


@dataclass(frozen=True, slots=True)
class Assign:
    """What a write stores in one column, where the queue has it."""

    name: str
    clause: str
    column: str
    value: Value


@dataclass(frozen=True, slots=True)
class Case:
    """What a write stores when its conditions hold and no earlier case's do; no condition means otherwise."""

    name: str
    when: tuple[Pred, ...]
    set: tuple[Assign, ...]


@dataclass(frozen=True, slots=True)
class Order:
    """One key of an ordering."""

    name: str
    clause: str
    column: str
    descending: bool = False


class Named(Protocol):
    """Anything that a rule can be found by."""

    @property
    def name(self) -> str: ...


N = TypeVar("N", bound=Named)


def assign(column: str, clause: str, value: Value) -> Assign:
    """An assignment named after its column."""
    return Assign(column, clause, column, value)


@cache  # equal changes of the rules are equal rules
def _shifted(pred: Pred) -> Pred:
    return replace(pred, sql=lambda c, a: _shift(pred.name, pred.sql(c, a)))


def _shift(name: str, condition: ColumnElement[bool]) -> ColumnElement[bool]:
    moved: list[object] = []

    def visit(binary: BinaryExpression[Any]) -> None:
        other = _SHIFTED.get(binary.operator)
        if other is not None:
            binary.operator = other
            moved.append(binary)

    shifted = visitors.cloned_traverse(condition, {}, {"binary": visit})
    if not moved:
        raise LookupError(f"the predicate {name!r} has no bound to shift")
    return shifted
