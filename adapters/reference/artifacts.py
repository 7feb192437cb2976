"""Artifacts: an upload, the promotion that lets a job refer to it, and what a reader is then given (R§5.1, P CP4).

The store is no part of the job's row, so that an upload is a transaction of its own, and a promotion that is refused
leaves an object to clean up. Whose artifact may be promoted, this module must never ask: the fence says.
"""

from __future__ import annotations

from fencepost.model import commands as c
from fencepost.model import outcomes as o
from sqlalchemy.ext.asyncio import AsyncConnection

from .runtime import Runtime, first


async def put_artifact(runtime: Runtime, connection: AsyncConnection, command: c.PutArtifact, now: int) -> o.Outcome:
    """Store the attempt's artifact under its own key, then let the job refer to it (FENCE-04). If the job may not, the
    object goes again, unless somebody has use for it (FENCE-07).
    """
    handle, statements = command.handle, runtime.statements
    assert not isinstance(handle, c.HandleRef)
    key = runtime.rules.artifact_key(handle.job, handle.token)
    values = {"key": key, "attempt": handle.token, "job": handle.job}
    await connection.execute(statements.upload.sql, statements.upload.values(values))
    await connection.commit()
    outcome = await runtime.promote(connection, command, now, key)
    if isinstance(outcome, o.Rejected):
        await connection.execute(statements.clean_up.sql, statements.clean_up.values(values))
        await connection.commit()
    return outcome


async def read_artifact(runtime: Runtime, connection: AsyncConnection, command: c.ReadArtifact, now: int) -> o.Outcome:
    """What a reader gets through the job's reference: the attempt that made the object, or None."""
    row = await first(connection, runtime.statements.artifact, {"job": command.job})
    await connection.rollback()
    return o.Artifact(None if row is None else row.attempt)
