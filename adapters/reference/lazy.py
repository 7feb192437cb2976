"""Handles as an object-relational mapper would hand them out: rows that expire when their session goes on.

Only a faulty runtime returns them (CLAIM-13). This module must never know what a claim does.
"""

from __future__ import annotations

from typing import cast

from fencepost.model import commands as c
from sqlalchemy import Connection, event
from sqlalchemy.ext.asyncio import AsyncConnection
from sqlalchemy.orm.exc import DetachedInstanceError


class LazyHandle:
    """A handle whose fields can be read until its connection begins another transaction."""

    def __init__(self, connection: AsyncConnection, handle: c.Handle) -> None:
        self._handle = handle
        self._expired = False
        event.listen(connection.sync_connection, "begin", self._expire, once=True)

    def _expire(self, connection: Connection) -> None:
        self._expired = True

    def _loaded(self) -> c.Handle:
        if self._expired:
            raise DetachedInstanceError("the row's transaction has ended, so its attributes cannot be read any more")
        return self._handle

    @property
    def job(self) -> c.JobId:
        return self._loaded().job

    @property
    def worker(self) -> int:
        return self._loaded().worker

    @property
    def token(self) -> c.Token:
        return self._loaded().token


def lazy(connection: AsyncConnection, handle: c.Handle) -> c.Handle:
    """The handle as a row of the connection's current transaction."""
    return cast(c.Handle, LazyHandle(connection, handle))
