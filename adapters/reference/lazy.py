"""Handles as an object-relational mapper would hand them out: rows that live as long as the transaction they came from.

Only a faulty runtime returns them (CLAIM-13). This module must never know what a claim does.
"""

from __future__ import annotations

from typing import cast

from fencepost.model import commands as c
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncTransaction
from sqlalchemy.orm.exc import DetachedInstanceError


class LazyHandle:
    """A handle whose fields can be read only while its transaction is open."""

    __slots__ = ("_handle", "_transaction")

    def __init__(self, handle: c.Handle, transaction: AsyncTransaction | None) -> None:
        self._handle = handle
        self._transaction = transaction

    def _loaded(self) -> c.Handle:
        if self._transaction is None or not self._transaction.is_active:
            raise DetachedInstanceError("the row's transaction has ended, so its attributes cannot be read")
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
    return cast(c.Handle, LazyHandle(handle, connection.get_transaction()))
