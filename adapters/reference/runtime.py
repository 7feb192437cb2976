"""The verbs of the reference runtime, each over one connection: one function per verb.

It executes what the rules say and decides nothing else. `now` is given in ticks; this module must never read a clock,
and must never know which database it runs on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from fencepost.adapters.contract import HookRun
from fencepost.model import commands as c
from fencepost.model import outcomes as o
from fencepost.model.queues import PENDING, RUNNING, QueueSpec
from sqlalchemy import Row, Table, insert, update
from sqlalchemy.ext.asyncio import AsyncConnection

from .rules import CONTRACT, Action, Attempt, Rules, Verb, Write
from .statements import VERB_OF, Statement, Statements

REFUSED = o.Rejected("not the current holder with a valid lease, or not in a state that allows it")
RATIO = o.Rejected(
    "the lease must last at least as many heartbeats as the contract says, and the heartbeat be positive"
)
UNRECORDABLE = o.Rejected("the code's family is unknown, a fence's, or not what happened")

WRITE_OF: Mapping[Action, Write] = {"retry": Write.RETRY, "fail": Write.FAIL, "abandon": Write.ABANDON}


class Runtime:
    """The verbs of one queue on one database, under one set of rules.

    Every verb ends its transaction, unless it is told that it stands inside its caller's (`joined`). A database error
    leaves the transaction open: who called rolls back.
    """

    def __init__(self, spec: QueueSpec, table: Table, dialect: str, rules: Rules = CONTRACT) -> None:
        """`dialect` chooses the claim's shape (CLAIM-11)."""
        self.spec = spec
        self.table = table
        self.rules = rules
        self.shape = rules.claim_shape[dialect]
        self.statements = Statements(spec, table, rules, self.shape)
        self._insert = insert(table)
        self._begun = 0

    def restart(self) -> None:
        """All jobs are gone: count attempts anew, so that equal runs answer alike."""
        self._begun = 0

    def new_attempt(self, job: int, owner: str, now: int) -> str | None:
        """The name of the attempt that `owner` begins at `now` (ticks), where the queue names them (FENCE-03)."""
        if self.spec.fence != "attempt_id":
            return None
        self._begun += 1
        return self.rules.attempt_id(Attempt(job, owner, now, self._begun))

    async def enqueue(self, connection: AsyncConnection, command: c.Enqueue, now: int) -> o.Outcome:
        """Add a pending job, due at once or in `due_in` seconds where the queue can delay, and with a deadline in
        `deadline_in` seconds where it has them.
        """
        values: dict[str, Any] = {
            "created_at": now, "status": PENDING, "attempt_count": 0, "max_attempts": command.max_attempts,
        }  # fmt: skip
        if self.spec.fence == "generation":
            values["lease_generation"] = 0
        if self.spec.backs_off:
            values["next_attempt_at"] = now + command.due_in if command.due_in > 0 else None
        if self.spec.deadline:
            values["deadline_at"] = now + command.deadline_in if command.deadline_in > 0 else None
        result = await connection.execute(self._insert, values)
        job: int = result.inserted_primary_key.id  # type: ignore[union-attr]
        await connection.commit()
        return o.Enqueued(job, values.get("lease_generation"))

    async def renew(self, connection: AsyncConnection, command: c.Renew, now: int, joined: bool = False) -> o.Outcome:
        """Extend the lease to `now` and its length (LEASE-02, 03, 04)."""
        lease_end = now + (command.lease or self.spec.lease_seconds)
        return await self._write(connection, Write.RENEW, command, now, joined, lease_end=lease_end)

    async def complete(
        self, connection: AsyncConnection, command: c.Complete, now: int, joined: bool = False
    ) -> o.Outcome:
        """End the job in success, or hear of it again (FENCE-01, FENCE-05, TERM-02, CANCEL-06)."""
        outcome = await self._write(connection, Write.COMPLETE, command, now, joined)
        repeated = self.statements.repeated
        if repeated is None or isinstance(outcome, o.Accepted):
            return outcome
        row = await first(connection, repeated, self._handle(command, now))
        await self._end(connection, command.verb, joined)
        return outcome if row is None else o.Accepted(row.status)

    async def fail(self, connection: AsyncConnection, command: c.Fail, now: int, joined: bool = False) -> o.Outcome:
        """End the job in failure, or put it back, as the code's family says (ERR-02, ERR-03, ATT-02)."""
        action = self.action(command.what, command.code)
        if action == "refuse":
            return UNRECORDABLE
        values: dict[str, Any] = {"error": command.code}
        if action == "retry" and self.spec.backs_off:
            values["retry_at"] = now + await self._backoff(connection, command, joined)
        return await self._write(connection, WRITE_OF[action], command, now, joined, **values)

    async def skip(self, connection: AsyncConnection, command: c.Skip, now: int, joined: bool = False) -> o.Outcome:
        """End the job as one that there is no need to execute (FENCE-01, REL-01)."""
        return await self._write(connection, Write.SKIP, command, now, joined)

    async def promote(self, connection: AsyncConnection, command: c.PutArtifact, now: int, key: str) -> o.Outcome:
        """Let the job refer to the artifact that its attempt has stored under this key (FENCE-04)."""
        return await self._write(connection, Write.PROMOTE, command, now, joined=False, key=key)

    async def release(
        self, connection: AsyncConnection, command: c.Release, now: int, joined: bool = False
    ) -> o.Outcome:
        """Give the job back, its attempt uncounted (REL-01)."""
        return await self._write(connection, Write.RELEASE, command, now, joined)

    async def acknowledge(
        self, connection: AsyncConnection, command: c.Acknowledge, now: int, joined: bool = False
    ) -> o.Outcome:
        """End the job as its cancel request asks (CANCEL-04)."""
        return await self._write(connection, Write.ACKNOWLEDGE, command, now, joined)

    async def checkpoint(self, connection: AsyncConnection, command: c.Checkpoint, now: int) -> o.Outcome:
        """Whether a cancel was requested, asked by the current holder (CANCEL-04)."""
        row = await first(connection, self.statements.check[Verb.CHECKPOINT], self._handle(command, now))
        await connection.rollback()
        return REFUSED if row is None else o.Checkpointed(bool(row[0]))

    async def request_cancel(
        self, connection: AsyncConnection, command: c.RequestCancel, now: int, joined: bool = False
    ) -> o.Outcome:
        """Cancel a pending job, or record the request on a running one, in one update (CANCEL-01, 02, 03, 09)."""
        write = Write.CANCEL_BY_PARENT if command.by_parent else Write.CANCEL
        values = {"job": command.job, "now": now}
        update = self.statements.cancel[write]
        if self.rules.cancel_at == "transaction_before":
            seen = await first(connection, self.statements.status, values)
            await self._end(connection, command.verb, joined)
            if seen is None:
                return o.CancelAnswer("terminal")
            if write == Write.CANCEL:
                update = self.statements.cancel_as[seen.status]
        row = await first(connection, update, values)
        await self._end(connection, command.verb, joined)
        if row is None:
            return o.CancelAnswer("terminal")
        return o.CancelAnswer("recorded" if row.status in (PENDING, RUNNING) else "cancelled")

    async def atomically(self, connection: AsyncConnection, command: c.Atomically, now: int) -> o.Outcome:
        """Verbs inside one transaction of the caller, who ends it (R§2.2)."""
        answers = [await getattr(self, inner.verb)(connection, inner, now, joined=True) for inner in command.commands]
        # A caller who raises leaves the transaction's block, and so rolls back.
        await (connection.commit() if command.end == "commit" else connection.rollback())
        return o.Atomic(tuple(answers))

    async def plant(self, connection: AsyncConnection, command: c.Plant, now: int) -> o.Outcome:
        """Write a field as somebody else would: no rule of the queue's is asked."""
        table, instant = self.table, now + command.seconds
        write = update(table).where(table.c.id == command.job)
        if command.field == "lease":
            write = write.where(table.c.status == PENDING).values(lease_expires_at=instant)
        else:
            write = write.values(deadline_at=instant)
        await connection.execute(write)
        await connection.commit()
        return o.DONE

    def configure(self, command: c.Configure) -> o.Outcome:
        """Accept a lease that lasts long enough for its heartbeat, both in seconds (LEASE-01)."""
        return o.Accepted("configured") if self.rules.lasts(command.lease, command.heartbeat) else RATIO

    def action(self, what: c.What, code: str) -> Action:
        """What a failure with this code leads to: `retry`, `fail`, `abandon` or `refuse` (ERR-02, ERR-03)."""
        rules = self.rules
        family = rules.classify(code)
        action = rules.unknown_code if family is None else rules.policy[family]
        if action == "refuse" or (rules.match_what and rules.what.get(family or "", what) != what):
            return "refuse"
        if action == "listed":
            return "retry" if code in self.spec.retryable_codes else "fail"
        if action == "abandon" and not self.spec.cancels:
            return "fail"
        return action

    async def _backoff(self, connection: AsyncConnection, command: c.Fail, joined: bool) -> int:
        """Seconds by the job's attempts, which cannot change while the handle's fence holds."""
        row = await first(connection, self.statements.attempts, {"job": command.handle.job})  # type: ignore[union-attr]
        if not joined:
            await connection.rollback()  # a SQLite transaction that began with a read might be unable to write
        return self.rules.backoff(self.spec, 1 if row is None else row.attempt_count)

    async def _write(
        self, connection: AsyncConnection, write: Write, command: c.HandleCommand, now: int, joined: bool, **more: Any
    ) -> o.Outcome:
        """One conditional update by handle; no row changed means that it was refused."""
        values = self._handle(command, now) | more
        verb = VERB_OF[write]
        if self.rules.fence_at == "update":
            row = await first(connection, self.statements.write[write], values)
        else:
            row = await first(connection, self.statements.check[verb], values)
            if self.rules.fence_at == "transaction_before":
                await self._end(connection, verb, joined)
            if row is not None:
                row = await first(connection, self.statements.unfenced[write], values)
        await self._end(connection, verb, joined)
        if row is None:
            silent = verb in self.rules.silent and not joined
            return o.Accepted(self.spec.spell(ACCEPTED_AS[write])) if silent else REFUSED
        return o.Accepted(row.status, row.due if row.status == PENDING else None)

    def _handle(self, command: c.HandleCommand, now: int) -> dict[str, Any]:
        handle = command.handle
        assert not isinstance(handle, c.HandleRef)
        return {
            "job": handle.job, "owner": c.worker_name(handle.worker), "generation": handle.token,
            "attempt": handle.token, "now": now, "lease_ago": now - self.spec.lease_seconds, "retry_at": None,
        }  # fmt: skip

    async def _end(self, connection: AsyncConnection, verb: str, joined: bool) -> None:
        if not joined or verb in self.rules.commits_for_caller:
            await connection.commit()


ACCEPTED_AS: Mapping[Write, str] = {
    Write.RENEW: RUNNING, Write.COMPLETE: "succeeded", Write.RETRY: PENDING, Write.FAIL: "failed",
    Write.ABANDON: "cancelled", Write.SKIP: "skipped", Write.RELEASE: PENDING, Write.ACKNOWLEDGE: "cancelled",
    Write.PROMOTE: RUNNING,
}  # fmt: skip
"""What a silent verb claims to have done."""


async def first(connection: AsyncConnection, statement: Statement, known: Mapping[str, Any]) -> Row[Any] | None:
    """The one row that a statement returns, or None."""
    row: Row[Any] | None = (await connection.execute(statement.sql, statement.values(known))).first()
    return row


async def call(hook: HookRun, jobs: tuple[c.JobId, ...]) -> BaseException | None:
    """Run a hook and hand back what it raised, cancellation included (CLAIM-12, REC-08)."""
    try:
        await hook(jobs)
    except (Exception, asyncio.CancelledError) as error:  # a hook never suspends, so a cancellation is its own
        return error
    return None
