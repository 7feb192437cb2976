"""The statements of the reference runtime: built once from a table and the rules, with named parameters.

One row's write is always one conditional update, whose outcome is decided by the database on the row as it is at that
moment: ordered cases become one SQL CASE per column. This module must never know of connections.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any, cast

import sqlalchemy as sa
from fencepost.model.queues import QueueSpec
from sqlalchemy import ColumnElement, Select, Table, and_, case, null, or_, select, update
from sqlalchemy.dialects import postgresql
from sqlalchemy.sql.dml import ReturningUpdate

from .predicates import beyond, cancel_requested
from .rules import Rules, Shape, Verb, Write
from .table import columns_of, objects_of
from .terms import Args, Assign, Case, Columns, Order, Pred

POSTGRES = postgresql.dialect()  # type: ignore[no-untyped-call]
"""Knows every construct that any shape uses, so that parameters can be named without a connection."""

VERB_OF = {
    Write.RENEW: Verb.RENEW, Write.COMPLETE: Verb.COMPLETE, Write.RETRY: Verb.FAIL, Write.FAIL: Verb.FAIL,
    Write.ABANDON: Verb.FAIL, Write.SKIP: Verb.SKIP, Write.RELEASE: Verb.RELEASE,
    Write.ACKNOWLEDGE: Verb.ACKNOWLEDGE, Write.PROMOTE: Verb.PUT_ARTIFACT,
}  # fmt: skip
"""The fence of each write by handle."""

_GROUPS = (
    "write", "cancel", "cancel_as", "check", "unfenced", "recover_expired_as", "recover_left_behind_as", "end_pending",
)  # fmt: skip
"""Where statements stand together, by name."""


@dataclass(frozen=True, slots=True)
class Statement:
    """SQL with the names of the parameters that it needs."""

    sql: Select[Any] | ReturningUpdate[Any] | sa.Insert | sa.Delete
    names: tuple[str, ...]

    def values(self, known: Mapping[str, Any]) -> dict[str, Any]:
        """What to execute it with, out of everything the caller knows."""
        return {name: known[name] for name in self.names}

    def __str__(self) -> str:
        return str(self.sql.compile(dialect=POSTGRES))


class Statements:
    """All statements of one queue under one set of rules; each returns the columns its caller reads.

    Those that the queue can never need are not there.
    """

    def __init__(self, spec: QueueSpec, table: Table, rules: Rules, shape: Shape) -> None:
        self._table = table
        self._rules = rules
        self._columns = columns_of(spec, table)
        self._c = cast(Columns, SimpleNamespace(**self._columns))
        self._a = Args(spec)
        self._values: dict[Assign, Any] = {}

        self.candidates = self._candidates(shape, rules.claim_where)
        self.take = self._take(shape, rules.claim_where)
        if spec.claims_by_id:
            self.named_candidate = self._candidates(shape, rules.claim_named)
            self.take_named = self._take(shape, rules.claim_named) if shape.subselect else self.take

        verbs = [verb for verb in Verb if verb in spec.verbs]
        writes = [one for one, verb in VERB_OF.items() if verb in verbs and (spec.cancels or one != Write.ABANDON)]
        self.write = {write: self._update(rules.fence[VERB_OF[write]], rules.writes[write]) for write in writes}
        self.check = {verb: self._check(rules.fence[verb]) for verb in verbs}
        self.unfenced = {write: self._update(rules.late_fence, rules.writes[write]) for write in writes}
        self.repeated = self._status(rules.repeated) if self._possible(rules.repeated) else None
        self.attempts = _statement(select(self._c.attempt_count).where(self._c.id == self._a.job))
        self.cancel: dict[Write, Statement] = {}
        if spec.cancels:
            for write in (Write.CANCEL, Write.CANCEL_BY_PARENT):
                self.cancel[write] = self._update(rules.cancel_where, rules.writes[write])
            self.status = self._status(rules.cancel_where)
            self.cancel_as = self._one_by_one((), rules.writes[Write.CANCEL])

        pending = (rules.called_off, rules.lapsed)
        self.find_expired = self._find(rules.expired, *pending)
        self.find_left_behind = self._find(rules.left_behind, *pending)
        self.recover_expired = self._update(rules.expired_again, rules.recover)
        self.recover_left_behind = self._update(rules.left_behind_again, rules.recover)
        if rules.recover_at == "read":
            self.recover_expired_as = self._one_by_one(rules.expired_again, rules.recover)
            self.recover_left_behind_as = self._one_by_one(rules.left_behind_again, rules.recover)
        self.end_pending: dict[str, Statement] = {}
        """What becomes of a pending job that a sweep found: the first of these whose conditions it meets."""
        if self._possible(rules.called_off):
            self.end_pending["call_off"] = self._update(rules.called_off_again, rules.call_off)
        if self._possible(rules.lapsed):
            self.end_pending["lapse"] = self._update(rules.lapsed_again, rules.lapse)

        objects = objects_of(spec, table)
        if objects is not None:
            self.upload = self._upload(objects)
            self.clean_up = self._clean_up(objects)
            self.artifact = self._artifact(objects)

    def all(self) -> dict[str, Statement]:
        """Every statement by a readable name."""
        named = {name: item for name, item in vars(self).items() if isinstance(item, Statement)}
        for group in _GROUPS:
            named |= {f"{group}.{key}": item for key, item in getattr(self, group, {}).items()}
        return named

    def _candidates(self, shape: Shape, where: Sequence[Pred]) -> Statement:
        wanted = select(self._c.id, self._generation())
        query = self._queue(wanted, where)
        if shape.limits_first:
            head = self._queue(select(self._c.id), where).scalar_subquery()
            query = wanted.where(self._c.id.in_(head)).order_by(*self._order(self._rules.claim_order))
        if shape.skip_locked:
            query = query.with_for_update(skip_locked=True, of=self._table)  # CLAIM-10: no other table's rows
        elif shape.waits:
            query = query.with_for_update(of=self._table)
        return _statement(query)

    def _take(self, shape: Shape, where: Sequence[Pred]) -> Statement:
        rules = self._rules
        who: ColumnElement[bool] = self._c.id == self._a.job
        if shape.subselect:
            who = self._c.id == self._queue(select(self._c.id), where).scalar_subquery()
        sql = update(self._table).where(who, *self._where(rules.claim_again)).values(self._set(rules.claim_set))
        return _statement(sql.returning(self._c.id, self._token()))

    def _queue(self, query: Select[Any], where: Sequence[Pred]) -> Select[Any]:
        return query.where(*self._where(where)).order_by(*self._order(self._rules.claim_order)).limit(self._a.scan)

    def _update(self, where: Sequence[Pred], cases: Sequence[Case]) -> Statement:
        sql: sa.Update = update(self._table).where(self._c.id == self._a.job, *self._where(where))
        return _statement(sql.values(self._cases(cases)).returning(self._c.status, self._due()))

    def _one_by_one(self, where: Sequence[Pred], cases: Sequence[Case]) -> dict[str, Statement]:
        """An update for each case by its name, for who has chosen among them before (`cancel_at`, `recover_at`)."""
        return {one.name: self._update(where, (replace(one, when=()),)) for one in cases if self._possible(one.when)}

    def _check(self, fence: Sequence[Pred]) -> Statement:
        (requested,) = self._where([cancel_requested])
        return _statement(select(requested).where(self._c.id == self._a.job, *self._where(fence)))

    def _status(self, where: Sequence[Pred]) -> Statement:
        return _statement(select(self._c.status).where(self._c.id == self._a.job, *self._where(where)))

    def _find(self, *sets: Sequence[Pred]) -> Statement:
        c = self._c
        columns = [c.id, c.created_at, c.status, c.lease_expires_at, c.attempt_count, self._generation()]
        if self._rules.recover_at == "read":
            cases = [one for one in self._rules.recover if self._possible(one.when)]
            columns.append(case(*[(and_(True, *self._where(one.when)), one.name) for one in cases]).label("becomes"))
        found = or_(*[and_(True, *self._where(each)) for each in sets if self._possible(each)])
        query = select(*columns).where(found, beyond.sql(self._c, self._a))
        return _statement(query.order_by(*self._order(self._rules.sweep_order)).limit(self._a.scan))

    def _upload(self, objects: Table) -> Statement:
        """Both databases know this form of an insert that replaces."""
        sql = postgresql.insert(objects).values(key=self._a.key, attempt=self._a.attempt)
        return _statement(sql.on_conflict_do_update(index_elements=["key"], set_={"attempt": sql.excluded.attempt}))

    def _clean_up(self, objects: Table) -> Statement:
        kept = or_(sa.false(), *self._where(self._rules.kept_if))
        wanted = sa.exists().where(self._c.id == self._a.job, kept)
        return _statement(sa.delete(objects).where(objects.c.key == self._a.key, ~wanted))

    def _artifact(self, objects: Table) -> Statement:
        if self._rules.artifact_read == "last":
            folder = objects.c.key.like(sa.cast(self._a.job, sa.String) + "/%")
            return _statement(select(objects.c.attempt).where(folder).order_by(objects.c.key.desc()).limit(1))
        stored = self._table.outerjoin(objects, objects.c.key == self._columns["artifact_key"])
        return _statement(select(objects.c.attempt).select_from(stored).where(self._c.id == self._a.job))

    def _token(self) -> ColumnElement[Any]:
        return self._optional("lease_generation", "attempt_id").label("token")

    def _generation(self) -> ColumnElement[Any]:
        return self._optional("lease_generation").label("generation")

    def _due(self) -> ColumnElement[Any]:
        return self._optional("next_attempt_at").label("due")

    def _optional(self, *names: str) -> ColumnElement[Any]:
        return next((self._columns[name] for name in names if name in self._columns), null())

    def _where(self, preds: Sequence[Pred]) -> list[ColumnElement[bool]]:
        """The conditions that bind this queue; one that no row of it can meet is the only one."""
        if not self._possible(preds):
            return [sa.false()]
        return [pred.sql(self._c, self._a) for pred in preds if self._binds(pred)]

    def _possible(self, preds: Sequence[Pred]) -> bool:
        return all(pred.absent or self._binds(pred) for pred in preds)

    def _binds(self, pred: Pred) -> bool:
        return pred.column in self._columns and pred.binds(self._a.spec)

    def _order(self, orders: Sequence[Order]) -> list[ColumnElement[Any]]:
        return [
            self._columns[order.column].desc() if order.descending else self._columns[order.column].asc()
            for order in orders
        ]

    def _set(self, assigns: Sequence[Assign]) -> dict[str, Any]:
        """Values by column; one assignment always gives one object, so that equal cases can be seen to be equal."""
        known = [one for one in assigns if one.column in self._columns]
        for one in known:
            if one not in self._values:
                self._values[one] = one.value(self._c, self._a)
        return {self._columns[one.column].key: self._values[one] for one in known}

    def _cases(self, cases: Sequence[Case]) -> dict[str, Any]:
        """One value per column: plain where every case stores the same, else a SQL CASE in the order of the cases."""
        cases = [one for one in cases if self._possible(one.when)]
        sets = [self._set(one.set) for one in cases]
        columns = {column: None for assigned in sets for column in assigned}
        return {column: self._choose(column, cases, sets) for column in columns}

    def _choose(self, column: str, cases: Sequence[Case], sets: Sequence[Mapping[str, Any]]) -> Any:
        """A column keeps its value where no case holds, and where the one that does doesn't name it."""
        values = [assigned.get(column, self._table.c[column]) for assigned in sets]
        whens: list[tuple[ColumnElement[bool], Any]] = []
        otherwise: Any = self._table.c[column]
        for one, value in zip(cases, values, strict=True):
            when = self._where(one.when)
            if not when:
                otherwise = value
                break
            whens.append((and_(*when), value))
        if all(value is otherwise for _, value in whens):
            return otherwise
        return case(*whens, else_=otherwise)


def _statement(sql: Any) -> Statement:
    binds = sql.compile(dialect=POSTGRES).binds
    return Statement(sql, tuple(name for name, bind in binds.items() if bind.required))
