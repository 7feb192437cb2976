"""How an instant is stored: in ticks on one database, as a time stamp on the other.

This module must never know a table.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import DateTime, Dialect, Integer
from sqlalchemy.types import TypeDecorator, TypeEngine

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)
"""The instant of tick 0."""


class Instant(TypeDecorator[int]):
    """An instant in ticks of one second: `TIMESTAMPTZ` in UTC on PostgreSQL, the bare integer on SQLite.

    Columns compare in both; a tick added to a column in SQL works on SQLite only, so compute in Python.
    """

    impl = DateTime(timezone=True)
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        return dialect.type_descriptor(Integer() if dialect.name == "sqlite" else DateTime(timezone=True))

    def process_bind_param(self, value: int | None, dialect: Dialect) -> Any:
        if value is None or dialect.name == "sqlite":
            return value
        return EPOCH + timedelta(seconds=value)

    def process_result_value(self, value: Any, dialect: Dialect) -> int | None:
        if isinstance(value, datetime):
            return round((value - EPOCH).total_seconds())
        tick: int | None = value
        return tick
