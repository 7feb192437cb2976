"""What a database's fault is called, and what to do about it, for whoever started the run.

No message of it names a password. It must never know what was asked of the database.
"""

from __future__ import annotations

import sqlite3

import asyncpg
from sqlalchemy.exc import ArgumentError, DBAPIError, SQLAlchemyError

FAULTS = (OSError, ValueError, sqlite3.Error, asyncpg.PostgresError, asyncpg.InterfaceError, SQLAlchemyError)
"""What the drivers raise, and SQLAlchemy around them, when a database cannot be had; ValueError for a host or an option
that cannot be."""


def cause_of(error: BaseException) -> BaseException:
    """The driver's own exception, without the statement that SQLAlchemy puts around it."""
    if not isinstance(error, DBAPIError) or error.orig is None:
        return error
    return error.orig.__cause__ or error.orig


def sqlite_advice(error: BaseException, folder: str) -> str:
    """The message for a fault of a file in this folder."""
    return f"no SQLite file can be used in {folder} ({_text(error)}); make room there, or set TMPDIR to another folder"


def postgres_advice(error: BaseException, server: str, ours: bool) -> str:
    """The message for a fault of this server, named as `describe` names it; `ours`: it was started for this run."""
    cause = cause_of(error)
    state = getattr(cause, "sqlstate", None) or ""
    if state.startswith("28"):
        what = "refuses the log-in; check user and password of the DSN"
    elif state == "3D000":
        what = "has no such database; create it or correct the DSN"
    elif state == "42501":
        what = "forbids this role to make a schema; GRANT CREATE ON DATABASE to it, or use another role"
    elif state == "53300":
        what = "has no connection left; raise max_connections or the role's limit, or run fewer processes"
    elif isinstance(cause, OSError) and ours:
        what = f"was started for this run and is gone ({_text(error)}); look for what ended it, and run again"
    elif isinstance(cause, OSError):
        what = f"cannot be reached ({_text(error)}); check host and port of the DSN, and that the server is running"
    elif isinstance(cause, (ValueError, ArgumentError)):
        what = f"cannot be looked for ({_text(error)}); correct the DSN"
    else:
        what = f"cannot be used: {_text(error)}"
    return f"PostgreSQL at {server} {what}"


def _text(error: BaseException) -> str:
    cause = cause_of(error)
    return str(cause) or type(cause).__name__
