"""The jobs of the memory adapter: one small mutable object each, how rows move, and the draws.

Whatever the contract leaves unspecified is drawn here from one seeded source. This module must never know the
judge: it shares with it the queue rows and the outcomes, and no rule.
"""

from __future__ import annotations

import asyncio
from random import Random

from fencepost.model import commands as c
from fencepost.model import outcomes as o
from fencepost.model.queues import FAILED, PENDING, RUNNING, SUCCEEDED, QueueSpec

from .contract import AdapterError, HookFailed, HookRun

# Any instant strictly later is a legal back-off (ATT-02); these stand on both sides of the leases' lengths.
DELAYS = (1, 2, 5, 20, 60)
RECOVERED_CODE = "LEASE_TIMEOUT_RECOVERED"
EXHAUSTED_CODE = "LEASE_TIMEOUT_MAX_ATTEMPTS"
OVERDUE_CODE = "LEASE_TIMEOUT_DEADLINE"
HOOK_ERRORS = (HookFailed, asyncio.CancelledError)
NOTHING_RECOVERED = o.Recovered(dml=0)


class Job:
    """One mutable job; `row` is how it looked when it was last published."""

    __slots__ = (
        "artifact", "attempts", "cancel", "created", "deadline", "due", "error", "expires", "finished", "heartbeat",
        "id", "max_attempts", "owner", "row", "started", "status", "token",
    )  # fmt: skip

    id: int
    row: o.Row

    def __init__(self, number: int, row: o.Row, now: int) -> None:
        self.id = number
        self.created = now
        self.load(row)

    def load(self, row: o.Row) -> None:
        """Take over every field of a published row; with an older one this is the rollback."""
        self.row = row
        (
            self.status, self.owner, self.expires, self.heartbeat, self.started, self.finished,
            self.attempts, self.max_attempts, self.token, self.due, self.cancel, self.error,
            self.deadline, self.artifact,
        ) = row  # fmt: skip


class Store:
    """The jobs of one queue, oldest first, with the last published row of each, and the source of the draws."""

    __slots__ = (
        "cancelled", "jobs", "mints", "one_instant", "open", "owner_alone_repeats", "random", "rows", "seed", "spec",
        "terminal",
    )  # fmt: skip

    def __init__(self, spec: QueueSpec, seed: int) -> None:
        self.spec = spec
        self.mints = spec.fence == "attempt_id"
        # Where heartbeat and start are one column, what is written to the one is read from the other.
        self.one_instant = spec.column("heartbeat_at") == spec.column("started_at")
        # A success that may be reported again must tell whose it is; without a token its owner does (FENCE-05).
        self.owner_alone_repeats = spec.repeats_complete and not spec.has_token
        self.cancelled = spec.cancelled
        self.terminal = spec.terminal
        self.jobs: dict[c.JobId, Job] = {}
        self.rows: dict[c.JobId, o.Row] = {}
        self.open = False
        self.seed = seed
        self.random = Random(seed)

    def reset(self) -> None:
        """Remove all jobs and start the draws again, so that equal runs answer alike."""
        self.jobs.clear()
        self.rows.clear()
        self.random.seed(self.seed)

    def coin(self) -> bool:
        """Draw one of two legal answers."""
        return self.random.random() < 0.5

    def backoff(self, now: int) -> int | None:
        """When a retried job is due again: an instant strictly later, or None where the queue has no back-off."""
        if self.spec.backoff_seconds is None:
            return None
        return now + DELAYS[int(self.random.random() * len(DELAYS))]

    def mint(self) -> str:
        """A new attempt id; 128 drawn bits do not repeat."""
        return f"{self.random.getrandbits(128):032x}"

    def named(self, job: c.JobId | c.JobRef) -> Job:
        """The job with this id.

        Raises:
            AdapterError: there is none.
        """
        found = None if isinstance(job, c.JobRef) else self.jobs.get(job)
        if found is None:
            raise AdapterError(f"there is no job {job!r}; name one that enqueue returned")
        return found

    def publish(self, job: Job) -> None:
        """Let readers see the job as it is now."""
        self.rows[job.id] = job.row = o.Row(
            job.status, job.owner, job.expires, job.heartbeat, job.started, job.finished,
            job.attempts, job.max_attempts, job.token, job.due, job.cancel, job.error, job.deadline, job.artifact,
        )  # fmt: skip

    def roll_back(self, before: list[tuple[Job, o.Row]]) -> None:
        """Put the rows back as they were."""
        for job, row in before:
            job.load(row)
            self.rows[job.id] = row

    def held(self, handle: c.Handle | c.HandleRef, now: int) -> Job | None:
        """The job, if this handle is its current holder's and the lease is valid (FENCE-01, 02, 03, LEASE-04), and
        its deadline, which may have been moved, has not passed (DEAD-01).
        """
        job = self.leased(handle, now)
        return None if job is None or (job.deadline is not None and job.deadline <= now) else job

    def leased(self, handle: c.Handle | c.HandleRef, now: int) -> Job | None:
        """The same, whatever its deadline."""
        if isinstance(handle, c.HandleRef):
            raise AdapterError(f"{handle!r} names a step of a trace; bind it to the handle that the claim returned")
        job = self.jobs.get(handle.job)
        if (
            job is None
            or job.status != RUNNING
            or job.owner != c.WORKER_NAMES[handle.worker]
            or job.token != handle.token
            or job.expires is None
            or job.expires <= now
        ):
            return None
        return job

    def has_completed(self, handle: c.Handle | c.HandleRef) -> bool:
        """Whether this handle's attempt is the one that the job has succeeded by (FENCE-05)."""
        assert isinstance(handle, c.Handle)  # `held` has refused any other
        job = self.jobs.get(handle.job)
        return (
            job is not None
            and job.status == SUCCEEDED
            and job.token == handle.token
            and job.owner in (None, c.WORKER_NAMES[handle.worker])
        )

    def finish(self, job: Job, status: str, error: str | None, now: int) -> None:
        """End the job; what stays of owner and heartbeat is unspecified (TERM-03)."""
        job.status = status
        job.expires = None
        job.finished = now
        job.error = error if self.spec.stores_code else None
        if self.coin() and not (status == SUCCEEDED and self.owner_alone_repeats):
            job.owner = None
        if self.coin():
            job.heartbeat = None
        if self.one_instant:
            job.started = job.heartbeat
        if self.mints and status != SUCCEEDED:
            self.forget_attempt(job)
        self.publish(job)

    def requeue(self, job: Job, due: int | None, error: str | None) -> None:
        """Make the job pending again; what stays of start, heartbeat and error is unspecified (REC-01)."""
        job.status = PENDING
        job.owner = job.expires = None
        job.due = due
        job.error = error if self.coin() and self.spec.stores_code else None
        if self.coin():
            job.started = None
        if self.one_instant:
            job.heartbeat = job.started
        elif self.coin():
            job.heartbeat = None
        if self.mints:
            self.forget_attempt(job)
        self.publish(job)

    def forget_attempt(self, job: Job) -> None:
        """Keep the attempt's id and its artifact, or clear both: an artifact is the current attempt's (INV-5)."""
        if self.coin():
            job.token = job.artifact = None

    def recover(self, job: Job, now: int) -> o.RecoveredRow:
        """Move one expired, cancelled or overdue job, in the order of REC-01; the generation rises with every lost
        lease, and what an older one has made is not the new one's (INV-5).
        """
        if job.status == RUNNING and isinstance(job.token, int):
            job.token += 1
            job.artifact = None
        if job.cancel is not None:
            self.finish(job, self.cancelled, job.error, now)
        elif job.deadline is not None and job.deadline <= now:
            self.finish(job, FAILED, OVERDUE_CODE, now)
        elif job.attempts < job.max_attempts:
            self.requeue(job, self.backoff(now), RECOVERED_CODE)
            return o.RecoveredRow(job.id, PENDING, job.due)
        else:
            self.finish(job, FAILED, EXHAUSTED_CODE, now)
        return o.RecoveredRow(job.id, job.status)

    async def call(self, hook: HookRun, jobs: tuple[c.JobId, ...]) -> None:
        """Run a hook while what it is about can still be rolled back: an open transaction, if ever there is one."""
        self.open = True
        try:
            await hook(jobs)
        finally:
            self.open = False

    async def sweep(self, now: int, batch: int = 10, hook: c.Hook | None = None, dead: str | None = None) -> o.Outcome:
        """Recover in transactions of `batch` rows; running rows of owners with the prefix `dead` count as expired."""
        found = [
            job
            for job in self.jobs.values()
            if (
                job.status == PENDING and (job.cancel is not None or (job.deadline is not None and job.deadline <= now))
            )
            or (
                job.status == RUNNING
                and (
                    job.expires is None
                    or job.expires <= now
                    or (dead is not None and job.owner is not None and job.owner.startswith(dead))
                )
            )
        ]
        if not found:
            return NOTHING_RECOVERED
        run = HookRun(hook) if hook is not None else None
        moved: list[o.RecoveredRow] = []
        hooked: list[c.JobId] = []
        failed = False
        sent = 0
        for start in range(0, len(found), batch):
            jobs = found[start : start + batch]
            before = [(job, job.row) for job in jobs]
            rows = [self.recover(job, now) for job in jobs]
            sent += len(rows)
            if run is not None:
                try:
                    await self.call(run, tuple(row.job for row in rows))
                except HOOK_ERRORS as error:
                    self.roll_back(before)
                    failed = True
                    if isinstance(error, HookFailed):
                        continue  # REC-12: a poisoned batch does not stop the rows behind it
                    break
                hooked += run.given
            moved += rows
        if run is not None and not moved:
            return o.HookRaised(run.given)
        return o.Recovered(tuple(moved), len(moved), None if run is None else tuple(hooked), failed, sent)
