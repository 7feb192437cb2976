"""The embedded PostgreSQL server, asked by somebody who is no part of a test's story."""

from __future__ import annotations

from typing import Any

from fencepost.adapters.reference.server import PostgresSource, acquire
from sqlalchemy import text
from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.pool import NullPool

EMBEDDED = PostgresSource()


async def ask(sql: str, **values: Any) -> list[Any]:
    """The first column of what a statement returns, run by the superuser; a statement without rows returns none."""
    engine = create_async_engine(acquire(EMBEDDED), isolation_level="AUTOCOMMIT", poolclass=NullPool)
    async with engine.connect() as connection:
        result = await connection.execute(text(sql), values)
        return list(result.scalars()) if result.returns_rows else []


async def schemas() -> set[str]:
    """All schemas of the server, whoever made them."""
    return set(await ask("SELECT nspname FROM pg_namespace"))
