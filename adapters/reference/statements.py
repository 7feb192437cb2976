"""The statements of the reference runtime: built once from a table and the rules, with named parameters.

One row's write is always one conditional update, whose outcome is decided by the database on the row as it is at that
moment: ordered cases become one SQL CASE per column. This module must never know of connections.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from fencepost.model.queues import QueueSpec
from sqlalchemy import ColumnElement, Select, Table, Update, and_, case, null, or_, select, update
from sqlalchemy.dialects import postgresql
from sqlalchemy.sql.dml import ReturningUpdate

from .predicates import beyond
from .rules import Rules, Shape, Verb, Write
from .terms import Args, Assign, Case, Columns, Order, Pred

POSTGRES = postgresql.dialect()  # type: ignore[no-untyped-call]
"""Knows every construct that any shape uses, so that parameters can be named without a connection."""

VERB_OF = {
    Write.RENEW: Verb.RENEW, Write.COMPLETE: Verb.COMPLETE, Write.RETRY: Verb.FAIL, Write.FAIL: Verb.FAIL,
    Write.ABANDON: Verb.FAIL, Write.RELEASE: Verb.RELEASE, Write.ACKNOWLEDGE: Verb.ACKNOWLEDGE,
}  # fmt: skip
"""The fence of each write by handle."""


@dataclass(frozen=True, slots=True)
class Statement:
    """SQL with the names of the parameters that it needs."""

    sql: Select[Any] | ReturningUpdate[Any]
    names: tuple[str, ...]

    def values(self, known: Mapping[str, Any]) -> dict[str, Any]:
        """What to execute it with, out of everything the caller knows."""
        return {name: known[name] for name in self.names}

    def __str__(self) -> str:
        return str(self.sql.compile(dialect=POSTGRES))


class Statements:
    """All statements of one queue under one set of rules; each returns the columns its caller reads."""

    def __init__(self, spec: QueueSpec, table: Table, rules: Rules, shape: Shape) -> None:
        self._table = table
        self._rules = rules
        self._c = cast(Columns, table.c)
        self._a = Args(spec)
        self._values: dict[Assign, Any] = {}

        self.candidates = self._candidates(shape)
        self.take = self._take(shape)
        self.write = {write: self._update(rules.fence[verb], rules.writes[write]) for write, verb in VERB_OF.items()}
        self.cancel = {
            write: self._update(rules.cancel_where, rules.writes[write])
            for write in (Write.CANCEL, Write.CANCEL_BY_PARENT)
        }
        self.check = {verb: self._check(rules.fence[verb]) for verb in Verb}
        self.unfenced = {write: self._update(rules.late_fence, rules.writes[write]) for write in VERB_OF}
        self.status = _statement(
            select(table.c.status).where(table.c.id == self._a.job, *self._where(rules.cancel_where))
        )
        self.cancel_as = {case.name: self._update((), (replace(case, when=()),)) for case in rules.writes[Write.CANCEL]}
        self.attempts = _statement(select(table.c.attempt_count).where(table.c.id == self._a.job))

        self.find_expired = self._find(rules.expired, rules.called_off)
        self.find_left_behind = self._find(rules.left_behind, rules.called_off)
        self.recover_expired = self._update(rules.expired_again, rules.recover)
        self.recover_left_behind = self._update(rules.left_behind_again, rules.recover)
        self.call_off = self._update(rules.called_off_again, rules.call_off)

    def all(self) -> dict[str, Statement]:
        """Every statement by a readable name."""
        named = {name: item for name, item in vars(self).items() if isinstance(item, Statement)}
        for group in ("write", "cancel", "cancel_as", "check", "unfenced"):
            named |= {f"{group}.{key}": item for key, item in getattr(self, group).items()}
        return named

    def _candidates(self, shape: Shape) -> Statement:
        wanted = select(self._table.c.id, self._generation())
        query = self._queue(wanted)
        if shape.limits_first:
            head = self._queue(select(self._table.c.id)).scalar_subquery()
            query = wanted.where(self._table.c.id.in_(head)).order_by(*self._order(self._rules.claim_order))
        if shape.skip_locked:
            query = query.with_for_update(skip_locked=True, of=self._table)  # CLAIM-10: no other table's rows
        elif shape.waits:
            query = query.with_for_update(of=self._table)
        return _statement(query)

    def _take(self, shape: Shape) -> Statement:
        rules = self._rules
        who: ColumnElement[bool] = self._table.c.id == self._a.job
        if shape.subselect:
            who = self._table.c.id == self._queue(select(self._table.c.id)).scalar_subquery()
        sql = update(self._table).where(who, *self._where(rules.claim_again)).values(self._set(rules.claim_set))
        return _statement(sql.returning(self._table.c.id, self._generation()))

    def _queue(self, query: Select[Any]) -> Select[Any]:
        ordered = query.where(*self._where(self._rules.claim_where)).order_by(*self._order(self._rules.claim_order))
        return ordered.limit(self._a.scan)

    def _update(self, where: Sequence[Pred], cases: Sequence[Case]) -> Statement:
        sql: Update = update(self._table).where(self._table.c.id == self._a.job, *self._where(where))
        return _statement(sql.values(self._cases(cases)).returning(self._table.c.status, self._due()))

    def _check(self, fence: Sequence[Pred]) -> Statement:
        requested = self._table.c.cancel_requested_at.is_not(None)
        return _statement(select(requested).where(self._table.c.id == self._a.job, *self._where(fence)))

    def _find(self, expired: Sequence[Pred], called_off: Sequence[Pred]) -> Statement:
        c = self._table.c
        columns = (c.id, c.created_at, c.status, c.lease_expires_at, c.attempt_count, self._generation())
        found = or_(and_(True, *self._where(expired)), and_(True, *self._where(called_off)))
        query = select(*columns).where(found, beyond.sql(self._c, self._a))
        return _statement(query.order_by(*self._order(self._rules.sweep_order)).limit(self._a.scan))

    def _generation(self) -> ColumnElement[Any]:
        return self._optional("lease_generation").label("generation")

    def _due(self) -> ColumnElement[Any]:
        return self._optional("next_attempt_at").label("due")

    def _optional(self, column: str) -> ColumnElement[Any]:
        return self._table.c[column] if column in self._table.c else null()

    def _where(self, preds: Sequence[Pred]) -> list[ColumnElement[bool]]:
        return [pred.sql(self._c, self._a) for pred in preds if pred.column in self._table.c]

    def _order(self, orders: Sequence[Order]) -> list[ColumnElement[Any]]:
        return [
            self._table.c[order.column].desc() if order.descending else self._table.c[order.column].asc()
            for order in orders
        ]

    def _set(self, assigns: Sequence[Assign]) -> dict[str, Any]:
        """Values by column; one assignment always gives one object, so that equal cases can be seen to be equal."""
        known = [one for one in assigns if one.column in self._table.c]
        for one in known:
            if one not in self._values:
                self._values[one] = one.value(self._c, self._a)
        return {one.column: self._values[one] for one in known}

    def _cases(self, cases: Sequence[Case]) -> dict[str, Any]:
        """One value per column: plain where every case stores the same, else a SQL CASE in the order of the cases."""
        sets = [self._set(one.set) for one in cases]
        columns = {column: None for assigned in sets for column in assigned}
        return {column: self._choose(column, cases, sets) for column in columns}

    def _choose(self, column: str, cases: Sequence[Case], sets: Sequence[Mapping[str, Any]]) -> Any:
        """A column keeps its value where no case holds, and where the one that does doesn't name it."""
        values = [assigned.get(column, self._table.c[column]) for assigned in sets]
        whens: list[tuple[ColumnElement[bool], Any]] = []
        otherwise: Any = self._table.c[column]
        for one, value in zip(cases, values, strict=True):
            if not one.when:
                otherwise = value
                break
            whens.append((and_(*self._where(one.when)), value))
        if all(value is otherwise for _, value in whens):
            return otherwise
        return case(*whens, else_=otherwise)


def _statement(sql: Any) -> Statement:
    binds = sql.compile(dialect=POSTGRES).binds
    return Statement(sql, tuple(name for name, bind in binds.items() if bind.required))
