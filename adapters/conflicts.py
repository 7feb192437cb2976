"""What a write conflict is, on the databases that fencepost knows.

It takes the driver's exception or what SQLAlchemy made of it, and knows nothing of statements or connections.
"""

from __future__ import annotations

import sqlite3

STATES = frozenset({"40001", "40P01"})
"""PostgreSQL: a serialization failure, a deadlock."""
CODES = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED})
PRIMARY_CODE = 0xFF  # the low byte of SQLite's extended result codes


def is_conflict(error: BaseException | None) -> bool:
    """Whether a statement or commit lost a write conflict: SQLite BUSY or LOCKED, PostgreSQL 40001 or 40P01."""
    cause = getattr(error, "orig", None) or error
    if getattr(cause, "sqlstate", None) in STATES:
        return True
    code = getattr(cause, "sqlite_errorcode", None)
    return code is not None and code & PRIMARY_CODE in CODES
