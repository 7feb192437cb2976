"""Recovery: the sweep that every idle loop and every start runs (R§6.1, REC-01…12).

Batch by batch: a read that finds nothing ends the walk without a write; each row found is moved by one conditional
update that checks again what was read; one transaction per batch. This module must never know who asked for it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from fencepost.adapters.conflicts import is_conflict
from fencepost.adapters.contract import HookRun
from fencepost.model import commands as c
from fencepost.model import outcomes as o
from fencepost.model.queues import PENDING
from sqlalchemy import Row
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncConnection

from .runtime import Runtime, call, first

BEGINNING: dict[str, Any] = {"after_instant": 0, "after_job": 0}


@dataclass(slots=True)
class Summary:
    """What the walk has committed so far."""

    rows: list[o.RecoveredRow] = field(default_factory=list)
    count: int = 0
    hooked: tuple[c.JobId, ...] | None = None
    failed: bool = False

    def outcome(self) -> o.Recovered:
        """The answer to who asked for the sweep."""
        return o.Recovered(tuple(self.rows), self.count, self.hooked, self.failed)


async def sweep(
    runtime: Runtime,
    connection: AsyncConnection,
    now: int,
    batch: int = 10,
    hook: HookRun | None = None,
    host: int | None = None,
) -> o.Outcome:
    """Move every expired job, and every pending one that a parent cancelled or whose deadline has passed (DEAD-01),
    oldest first, `batch` rows at a time.

    `host`: a process of this host starts, so the running jobs of its own prefix count as expired (REC-05). `hook`
    gets the ids that a batch changed, before its commit; if it raises, the batch is rolled back and the walk goes on
    (REC-12), unless it was cancelled.

    A write conflict ends the walk: with what was committed before, or, if that is nothing, by being raised.

    Raises:
        DBAPIError: a database error; the transaction is left open.
    """
    rules, statements = runtime.rules, runtime.statements
    find = statements.find_expired if host is None else statements.find_left_behind
    summary = Summary()
    values: dict[str, Any] = {
        "now": now, "lease_ago": now - runtime.spec.lease_seconds, "scan": batch,
        "prefix": None if host is None else c.prefix(host), **BEGINNING,
    }  # fmt: skip
    if not rules.sweep_probes:
        for update in statements.end_pending.values():
            await first(connection, update, values | {"job": 0})
    while True:
        try:
            found = (await connection.execute(find.sql, find.values(values))).all()
            # Ended here: on SQLite a transaction that began with a read might be unable to write.
            await connection.commit()
            raised = await _batch(runtime, connection, values, found, hook, summary) if found else None
        except DBAPIError as error:
            if not (summary.rows and is_conflict(error)):
                raise
            await connection.rollback()
            summary.failed = True
            break
        if isinstance(raised, asyncio.CancelledError) or (raised is not None and rules.sweep_after_failure == "stop"):
            break
        if len(found) < batch:
            break
        values |= {"after_instant": found[-1].created_at, "after_job": found[-1].id}
    if summary.failed and not summary.rows and hook is not None:
        return o.HookRaised(hook.given)
    return summary.outcome()


async def _batch(
    runtime: Runtime,
    connection: AsyncConnection,
    values: dict[str, Any],
    found: Sequence[Row[Any]],
    hook: HookRun | None,
    summary: Summary,
) -> BaseException | None:
    """One batch in one transaction; what its hook raised."""
    rules = runtime.rules
    if rules.sweep_counts == "read":
        summary.count += len(found)
    changed: list[o.RecoveredRow] = []
    for row in found:
        if rules.sweep_commits == "row" and changed:
            await connection.commit()
        source = row if rules.sweep_values == "row" else next(one for one in found if one.status == row.status)
        moved = await _move(runtime, connection, values, row, source)
        if moved is not None:  # a renewal or a completion may have been faster (REC-02, REC-07)
            changed.append(o.RecoveredRow(row.id, moved.status, moved.due if moved.status == PENDING else None))
    raised = None
    jobs: tuple[c.JobId, ...] = tuple(row.job for row in changed)
    if hook is not None and changed:
        if rules.sweep_hook_gets == "read":
            jobs = tuple(row.id for row in found)
        if rules.sweep_hook == "after_commit":
            await connection.commit()
        raised = await call(hook, jobs)
    if raised is not None:
        summary.failed = True
        await (connection.rollback() if isinstance(raised, rules.sweep_undone_by) else connection.commit())
        return raised
    await connection.commit()
    summary.rows += changed
    if rules.sweep_counts == "changed":
        summary.count += len(changed)
    if hook is not None and changed:
        summary.hooked = (summary.hooked or ()) + jobs
    return None


async def _move(
    runtime: Runtime, connection: AsyncConnection, values: dict[str, Any], row: Row[Any], source: Row[Any]
) -> Row[Any] | None:
    """One row by one conditional update; None if it no longer is as it was read.

    A pending row gets an update for each reason to end it, until one of them does.
    """
    statements = runtime.statements
    if row.status == PENDING:
        for update in statements.end_pending.values():
            ended = await first(connection, update, values | {"job": row.id})
            if ended is not None:
                return ended
        return None
    starts = values["prefix"] is not None
    recover = statements.recover_left_behind if starts else statements.recover_expired
    if runtime.rules.recover_at == "read":
        recover = (statements.recover_left_behind_as if starts else statements.recover_expired_as)[row.becomes]
    known = values | {
        "job": row.id, "seen_lease": row.lease_expires_at, "seen_generation": source.generation,
        "retry_at": values["now"] + runtime.rules.backoff(runtime.spec, source.attempt_count),
    }  # fmt: skip
    return await first(connection, recover, known)
