"""The driver gate: holds one actor's statements on its SQLAlchemy connections until they are let go.

It knows the driver's events and nothing of schedules, queues or which database answers. Not armed, it lets
everything through at the cost of one attribute test per event.

BEGIN is never a stop of its own. A deferred one has no effect before the first statement and goes unseen; one that
takes locks (`BEGIN IMMEDIATE`, `BEGIN EXCLUSIVE`) is the stop, and the statement after it passes along. A ROLLBACK
right after a statement that raised is no stop either: PostgreSQL has dropped the transaction's locks by then, and on
SQLite the loser of a conflict holds none that it lost; leaving it out about halves the schedules with conflicts.
"""

from __future__ import annotations

import asyncio
import functools
import re
from typing import Any, Protocol

from fencepost.adapters.conflicts import is_conflict
from sqlalchemy import event
from sqlalchemy.engine import Connection, Engine, ExceptionContext
from sqlalchemy.ext.asyncio import AsyncConnection
from sqlalchemy.util import await_only

_WORD = re.compile(r"(?:\s|\(|--[^\n]*\n|/\*.*?\*/)*(\w+)(?:\s+(\w+))?", re.DOTALL)
_WRITE = re.compile(r"(?<!FOR )(?<!KEY )\b(INSERT|UPDATE|DELETE|MERGE)\b", re.IGNORECASE)
_FOR_LOCK = re.compile(r"\bFOR (?:NO KEY )?(?:UPDATE|(?:KEY )?SHARE)\b", re.IGNORECASE)
_NO_WAIT = re.compile(r"\b(?:SKIP LOCKED|NOWAIT)\b", re.IGNORECASE)
_READ = re.compile(r"\bSELECT\b", re.IGNORECASE)
_LOCKLESS = frozenset({"SELECT", "COMMIT", "ROLLBACK"})
_LOCKING = frozenset({"IMMEDIATE", "EXCLUSIVE"})


class Watcher(Protocol):
    """Who is told what a gated actor does, and says when it may go on."""

    def arrive(self, kind: str, sql: str) -> asyncio.Future[None] | None:
        """The actor stands before this statement: None lets it pass, a future holds it until that is done."""

    def follow(self, kind: str, sql: str) -> None:
        """This statement goes to the driver as part of the step that is under way."""

    def executed(self, rowcount: int | None) -> None:
        """The last statement returned."""

    def raised(self, conflict: bool) -> None:
        """The last statement raised."""


@functools.lru_cache(maxsize=4096)
def kind_of(sql: str) -> str:
    """The keyword that says what a statement does; for `WITH …` the first one in it that changes data, else SELECT.

    `BEGIN` stands for a deferred transaction start, `BEGIN IMMEDIATE` and `BEGIN EXCLUSIVE` for one that takes locks.
    """
    found = _WORD.match(sql)
    if found is None:
        return ""
    word, second = found[1].upper(), (found[2] or "").upper()
    if word == "WITH":
        write = _WRITE.search(sql)
        return write[1].upper() if write else "SELECT"
    if word == "BEGIN" and second in _LOCKING:
        return f"{word} {second}"
    return word


@functools.lru_cache(maxsize=4096)
def takes_locks(sql: str) -> bool:
    """Whether a statement may lock rows and so make another wait."""
    return kind_of(sql) not in _LOCKLESS or _FOR_LOCK.search(sql) is not None


@functools.lru_cache(maxsize=4096)
def may_wait(sql: str) -> bool:
    """Whether a statement is likely to wait where another holds row locks; a hint, never an answer."""
    return takes_locks(sql) and _NO_WAIT.search(sql) is None


@functools.lru_cache(maxsize=4096)
def picks_rows(sql: str) -> bool:
    """Whether a statement reads by itself what it is about, by a sub-select or a `WITH`."""
    return _READ.search(sql) is not None


class Gate:
    """One actor's gate; `actor` is the name by which the server's lock holders are told apart.

    Attach it once to each connection that the actor works on; arm it for the length of a run.
    """

    def __init__(self, actor: str) -> None:
        self.actor = actor
        self._watcher: Watcher | None = None
        self._connections: list[Connection] = []
        self._engines: list[Engine] = []
        self._fuse = False
        self._failed = False

    def attach(self, connection: AsyncConnection) -> None:
        """Listen on this connection until `detach`. The connection must have been started."""
        target = connection.sync_connection
        assert target is not None, "the connection has not been started"
        self._connections.append(target)
        for name, listener in self._listeners():
            event.listen(target, name, listener)
        if target.engine not in self._engines:
            self._engines.append(target.engine)
            event.listen(target.engine, "handle_error", self._on_error)

    def detach(self) -> None:
        """Stop listening on every connection."""
        for target in self._connections:
            for name, listener in self._listeners():
                event.remove(target, name, listener)
        for engine in self._engines:
            event.remove(engine, "handle_error", self._on_error)
        self._connections.clear()
        self._engines.clear()

    def arm(self, watcher: Watcher) -> None:
        """From now on every statement asks this watcher first."""
        self._watcher = watcher
        self._fuse = self._failed = False

    def disarm(self) -> None:
        """Let everything through."""
        self._watcher = None

    def _listeners(self) -> tuple[tuple[str, Any], ...]:
        return (
            ("before_cursor_execute", self._before),
            ("after_cursor_execute", self._after),
            ("commit", self._on_commit),
            ("rollback", self._on_rollback),
        )

    def _before(self, _c: Connection, _cursor: Any, sql: str, _parameters: Any, _context: Any, _many: bool) -> None:
        watcher = self._watcher
        if watcher is None:
            return
        kind = kind_of(sql)
        if kind == "BEGIN":
            return
        self._failed = False
        if self._fuse:
            self._fuse = False
            watcher.follow(kind, sql)
            return
        self._fuse = kind.startswith("BEGIN")
        waiter = watcher.arrive(kind, sql)
        if waiter is not None:
            await_only(waiter)

    def _after(self, _c: Connection, cursor: Any, sql: str, _parameters: Any, _context: Any, _many: bool) -> None:
        if self._watcher is not None and kind_of(sql) != "BEGIN":
            count = cursor.rowcount
            self._watcher.executed(count if count >= 0 else None)

    def _on_commit(self, _connection: Connection) -> None:
        watcher = self._watcher
        if watcher is not None:
            self._failed = self._fuse = False
            waiter = watcher.arrive("COMMIT", "COMMIT")
            if waiter is not None:
                await_only(waiter)

    def _on_rollback(self, _connection: Connection) -> None:
        watcher = self._watcher
        if watcher is None:
            return
        if self._failed:
            watcher.follow("ROLLBACK", "ROLLBACK")
        else:
            waiter = watcher.arrive("ROLLBACK", "ROLLBACK")
            if waiter is not None:
                await_only(waiter)
        self._failed = self._fuse = False

    def _on_error(self, context: ExceptionContext) -> None:
        watcher = self._watcher
        if watcher is not None and context.connection in self._connections:
            self._failed = True
            self._fuse = False
            watcher.raised(is_conflict(context.original_exception))
