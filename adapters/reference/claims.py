"""The claim: the only place where jobs are taken, and the only shape that differs by database (CLAIM-11).

PostgreSQL reads candidates and takes them in one transaction, with `FOR UPDATE SKIP LOCKED`; SQLite reads, ends the
read transaction, and takes by conditional updates. Which of both it is, this module must never ask: the shape says.
"""

from __future__ import annotations

from typing import Any

from fencepost.adapters.contract import HookRun
from fencepost.model import commands as c
from fencepost.model import outcomes as o
from sqlalchemy.ext.asyncio import AsyncConnection

from .lazy import lazy
from .runtime import Runtime, call, first


async def claim(
    runtime: Runtime, connection: AsyncConnection, command: c.Claim, now: int, hook: HookRun | None = None
) -> o.Outcome:
    """Scan at most `limit` due jobs, oldest first, and take at most `max_claims` of them (CLAIM-01…15). Where the
    command names a job, there is no other to scan.

    `hook` gets the ids of the jobs taken, before the commit; if it raises, none is taken.
    """
    rules = runtime.rules
    values = {
        "now": now, "owner": c.worker_name(command.worker), "lease_ago": now - runtime.spec.lease_seconds,
        "lease_end": now + (command.lease or runtime.spec.lease_seconds),
        "begins_by": now + runtime.spec.claim_margin_seconds,
    }  # fmt: skip
    most: int = getattr(command, rules.claim_takes)
    won, tried = await _take(runtime, connection, command, values, getattr(command, rules.claim_scans), most)
    taken = tried if rules.claim_returns == "tried" else won
    if rules.claim_returns == "first":
        taken = taken[:1]
    handles = tuple(c.Handle(job, command.worker, token) for job, token in taken)
    if not handles:
        if rules.claim_ends_idle:
            await connection.commit()
        return o.Claimed()
    jobs = tuple(handle.job for handle in handles)
    if rules.claim_handles == "lazy":
        handles = tuple(lazy(connection, handle) for handle in handles)
    if hook is None:
        await connection.commit()
        return o.Claimed(handles)
    if rules.claim_hook == "after_commit":
        await connection.commit()
    raised = await call(hook, jobs)
    if raised is not None and isinstance(raised, rules.claim_undone_by):
        await connection.rollback()
    else:
        await connection.commit()
    return o.Claimed(handles, jobs) if raised is None else o.HookRaised(jobs)


async def _take(
    runtime: Runtime, connection: AsyncConnection, command: c.Claim, values: dict[str, Any], scan: int, most: int
) -> tuple[list[tuple[c.JobId, c.Token]], list[tuple[c.JobId, c.Token]]]:
    """The jobs won and the jobs tried, each with its fence token; the transaction stays open."""
    rules, statements, shape = runtime.rules, runtime.statements, runtime.shape
    if command.job is None:
        read, take = statements.candidates, statements.take
    else:
        read, take = statements.named_candidate, statements.take_named
        values = values | {"job": command.job}
    if shape.subselect:
        candidates: list[tuple[Any, int | None]] = [(command.job, None)] * min(scan, most)
        values = values | {"scan": 1}
    else:
        found = await connection.execute(read.sql, read.values(values | {"scan": scan}))
        candidates = [(row.id, row.generation) for row in found]
        if candidates and shape.ends_read:
            await connection.commit()
    won: list[tuple[c.JobId, c.Token]] = []
    tried: list[tuple[c.JobId, c.Token]] = []
    for job, generation in candidates:
        if len(won) == most:
            break
        if won and rules.claim_commits == "row":
            await connection.commit()
        attempt = runtime.new_attempt(job, values["owner"], values["now"])
        tried.append((job, attempt if generation is None else generation + 1))
        taken = await first(
            connection, take, values | {"job": job, "fresh_attempt": attempt, "seen_generation": generation}
        )
        if taken is not None:  # another claimer may have been faster: only a changed row is a claim (CLAIM-06)
            won.append((taken.id, taken.token))
    return won, tried
