"""A queue in memory that keeps the contract and, where the contract leaves freedom, draws among the legal answers.

It exists to test fencepost itself: the judge must accept every draw, so the verdict is called `self-check`.
It must never know the judge: it shares with it the queue rows and the error families, and no rule.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, ClassVar, TypeAlias

from fencepost.model import commands as c
from fencepost.model import outcomes as o
from fencepost.model.errors import LISTED, WHAT, classify
from fencepost.model.queues import FAILED, PENDING, RUNNING, SKIPPED, SUCCEEDED, QueueSpec

from .contract import Actor, Adapter, AdapterError, Capabilities, HookRun
from .memory_store import HOOK_ERRORS, Job, Store

Verb: TypeAlias = Callable[[Any, int], Coroutine[Any, Any, o.Outcome]]

# Outcomes that carry nothing of the call are made once.
RUNS = o.Accepted(RUNNING)
COMPLETED = o.Accepted(SUCCEEDED)
GIVEN_UP = o.Accepted(SKIPPED)
NOTHING_CLAIMED = o.Claimed()
CANCELLED_AT_ONCE = o.CancelAnswer("cancelled")
RECORDED = o.CancelAnswer("recorded")
TOO_LATE = o.CancelAnswer("terminal")
CHECKPOINTED = (o.Checkpointed(False), o.Checkpointed(True))
IDLE = o.Probed(0, 0)
NO_ARTIFACT = o.Artifact(None)


class MemoryActor(Actor):
    """One worker's view of the shared store. No verb ever suspends, so every call is one transaction."""

    def __init__(self, store: Store) -> None:
        self._store = store
        served = store.spec.verbs | {"advance"}
        self._verbs: dict[type[c.Command], Verb] = {
            kind: getattr(self, kind.verb if kind.verb in served else "_unserved") for kind in c.COMMANDS
        }

    def perform(self, command: c.Command, now: int) -> Coroutine[Any, Any, o.Outcome]:
        """Serve any command; handing out the verb's own coroutine saves one per step."""
        return self._verbs[type(command)](command, now)

    async def _unserved(self, command: c.Command, now: int) -> o.Outcome:
        """What the queue has no such thing for.

        Raises:
            AdapterError: always.
        """
        raise AdapterError(f"queue {self._store.spec.key!r} has no verb {command.verb!r}; do not ask it for that")

    async def enqueue(self, command: c.Enqueue, now: int) -> o.Outcome:
        """Add a pending job, due in `due_in` seconds, with its deadline in `deadline_in`."""
        store = self._store
        number = len(store.jobs) + 1
        token = 0 if store.spec.counts_generations else None
        due = now + command.due_in if command.due_in > 0 else None
        deadline = now + command.deadline_in if command.deadline_in > 0 else None
        row = o.Row(PENDING, None, None, None, None, None, 0, command.max_attempts, token, due, None, None, deadline)
        store.jobs[number] = Job(number, row, now)
        store.rows[number] = row
        return o.Enqueued(number, token)

    async def claim(self, command: c.Claim, now: int) -> o.Outcome:
        """Claim the oldest one or more of the due jobs within both bounds, or the one that is named (CLAIM-01…09,
        CLAIM-12, CLAIM-15); where the queue has no order, or not of jobs of one instant, any of
        them.
        """
        store = self._store
        bound = min(command.limit, command.max_claims)
        jobs: list[Job] = []
        looked_at = store.jobs.values() if command.job is None else (store.named(command.job),)
        margin = store.spec.claim_margin_seconds
        ordered = store.spec.ordered and store.spec.monotonic_ids
        for job in looked_at:
            if len(jobs) >= bound and ordered:
                break
            if (
                job.status == PENDING
                and job.cancel is None
                and (job.due is None or job.due <= now)
                and (job.deadline is None or job.deadline > now + margin)
                and (job.expires is None or job.expires <= now)
            ):
                jobs.append(job)
        if not ordered:
            store.random.shuffle(jobs)
            if store.spec.ordered:
                jobs.sort(key=lambda job: job.created)
            del jobs[bound:]
        if not jobs:
            return NOTHING_CLAIMED
        if len(jobs) > 1:
            del jobs[1 + int(store.random.random() * len(jobs)) :]
        before = [(job, job.row) for job in jobs]
        worker = command.worker
        expires = now + (command.lease or store.spec.lease_seconds)
        minting = store.mints
        handles = []
        for job in jobs:
            job.status = RUNNING
            job.owner = c.WORKER_NAMES[worker]
            job.expires = expires if job.deadline is None else min(expires, job.deadline)
            job.heartbeat = job.started = now
            job.finished = job.error = job.artifact = None
            job.attempts += 1
            if minting:
                job.token = store.mint()
            elif job.token is not None:
                job.token += 1  # type: ignore[operator]  # only generations are counted
            store.publish(job)
            handles.append(c.Handle(job.id, worker, job.token))
        if command.hook is None:
            return o.Claimed(tuple(handles))
        run = HookRun(command.hook)
        try:
            await store.call(run, tuple(job.id for job in jobs))
        except HOOK_ERRORS:
            store.roll_back(before)
            return o.HookRaised(run.given)
        return o.Claimed(tuple(handles), run.given)

    async def renew(self, command: c.Renew, now: int) -> o.Outcome:
        """Extend the holder's valid lease, to its deadline at most (LEASE-02, 03, 04)."""
        store = self._store
        job = store.held(command.handle, now)
        if job is None:
            return o.REJECTED
        job.heartbeat = now
        if store.one_instant:
            job.started = now
        expires = now + (command.lease or store.spec.lease_seconds)
        job.expires = expires if job.deadline is None else min(expires, job.deadline)
        store.publish(job)
        return RUNS

    async def complete(self, command: c.Complete, now: int) -> o.Outcome:
        """End in success, also again where that may be repeated (FENCE-05). After a cancel request refuse, or end
        cancelled, unless completion wins (CANCEL-06).
        """
        store = self._store
        job = store.held(command.handle, now)
        if job is None:
            return COMPLETED if store.spec.repeats_complete and store.has_completed(command.handle) else o.REJECTED
        if job.cancel is None or store.spec.completion_wins:
            store.finish(job, SUCCEEDED, None, now)
            return COMPLETED
        if store.coin():
            return o.REJECTED
        store.finish(job, store.cancelled, None, now)
        return o.Accepted(store.cancelled)

    async def fail(self, command: c.Fail, now: int) -> o.Outcome:
        """Retry, fail or cancel by the code's family (ERR-02, ERR-03, CANCEL-06, ATT-02); past a deadline that was
        moved draw whether it is refused or final (DEAD-01).
        """
        store = self._store
        code = command.code
        family = classify(code)
        if family is None or WHAT.get(family) != command.what:
            return o.REJECTED
        job = store.leased(command.handle, now)
        late = job is not None and job.deadline is not None and job.deadline <= now
        if job is None or (late and store.coin()):
            return o.REJECTED
        called_off = family == "CANCEL" and (store.spec.cancels or (store.spec.ends_cancelled and store.coin()))
        if job.cancel is not None or called_off:
            store.finish(job, store.cancelled, code if store.coin() else None, now)
            return o.Accepted(store.cancelled)
        retried = family == "LEASE" or (family in LISTED and code in store.spec.retryable_codes)
        if retried and not late and job.attempts < job.max_attempts:
            store.requeue(job, store.backoff(now), code)
            return o.Accepted(PENDING, job.due)
        store.finish(job, FAILED, code, now)
        return o.Accepted(FAILED)

    async def skip(self, command: c.Skip, now: int) -> o.Outcome:
        """End skipped; after a cancel request, cancelled (R§2.1, REL-01)."""
        store = self._store
        job = store.held(command.handle, now)
        if job is None:
            return o.REJECTED
        if job.cancel is not None:
            store.finish(job, store.cancelled, None, now)
            return o.Accepted(store.cancelled)
        store.finish(job, SKIPPED, None, now)
        return GIVEN_UP

    async def put_artifact(self, command: c.PutArtifact, now: int) -> o.Outcome:
        """Let the job refer to what the holder has made (FENCE-04). What was not promoted nobody can reach, so nothing
        is kept of it, and nothing can be deleted that a job refers to (FENCE-07).
        """
        store = self._store
        job = store.held(command.handle, now)
        if job is None:
            return o.REJECTED
        job.artifact = job.token
        store.publish(job)
        return RUNS

    async def read_artifact(self, command: c.ReadArtifact, now: int) -> o.Outcome:
        """The attempt that has made the job's artifact; whether one that did not succeed is given out, is drawn.

        Raises:
            AdapterError: there is no such job.
        """
        store = self._store
        job = store.named(command.job)
        if job.artifact is None or (job.status != SUCCEEDED and store.coin()):
            return NO_ARTIFACT
        return o.Artifact(job.artifact)

    async def plant(self, command: c.Plant, now: int) -> o.Outcome:
        """Move a job's deadline, or leave a lease on it if it is pending.

        Raises:
            AdapterError: there is no such job.
        """
        store = self._store
        job = store.named(command.job)
        if command.field == "deadline":
            job.deadline = now + command.seconds
        elif job.status == PENDING:
            job.expires = now + command.seconds
        store.publish(job)
        return o.DONE

    async def release(self, command: c.Release, now: int) -> o.Outcome:
        """Give the job back unexecuted, the attempt uncounted, the token spent (REL-01)."""
        store = self._store
        job = store.held(command.handle, now)
        if job is None:
            return o.REJECTED
        if job.cancel is not None:
            store.finish(job, store.cancelled, None, now)
            return o.Accepted(store.cancelled)
        job.attempts -= 1
        store.requeue(job, None, None)
        return o.Accepted(PENDING)

    async def acknowledge(self, command: c.Acknowledge, now: int) -> o.Outcome:
        """End cancelled, if a cancel was requested (CANCEL-04)."""
        store = self._store
        job = store.held(command.handle, now)
        if job is None or job.cancel is None:
            return o.REJECTED
        store.finish(job, store.cancelled, None, now)
        return o.Accepted(store.cancelled)

    async def checkpoint(self, command: c.Checkpoint, now: int) -> o.Outcome:
        """Tell the holder whether a cancel was requested (CANCEL-04)."""
        job = self._store.held(command.handle, now)
        return o.REJECTED if job is None else CHECKPOINTED[job.cancel is not None]

    async def request_cancel(self, command: c.RequestCancel, now: int) -> o.Outcome:
        """Cancel a pending job at once, record the request on a running one (CANCEL-01…03, CLAIM-02).

        Raises:
            AdapterError: there is no such job.
        """
        store = self._store
        job = store.named(command.job)
        if job.status in store.terminal:
            return TOO_LATE
        first = job.cancel is None
        if first:
            job.cancel = now
        if job.status == PENDING and not command.by_parent:
            store.finish(job, store.cancelled, job.error, now)
            return CANCELLED_AT_ONCE
        if first:
            store.publish(job)
        return RECORDED

    async def recover(self, command: c.Recover, now: int) -> o.Outcome:
        """One sweep over expired running jobs and cancelled pending ones (REC-01…12)."""
        if command.batch < 1:
            raise AdapterError(f"a sweep cannot take {command.batch} rows per transaction; give a batch of at least 1")
        return await self._store.sweep(now, command.batch, command.hook)

    async def tick(self, command: c.Tick, now: int) -> o.Outcome:
        """The idle loop sweeps (REC-04)."""
        return await self._store.sweep(now)

    async def start_up(self, command: c.StartUp, now: int) -> o.Outcome:
        """The sweep, over this host's running jobs too (REC-05)."""
        return await self._store.sweep(now, dead=c.prefix(command.host))

    async def atomically(self, command: c.Atomically, now: int) -> o.Outcome:
        """Serve the commands in order, then keep or undo all of them."""
        store = self._store
        before = [(job, job.row) for job in store.jobs.values()]
        outcomes = tuple([await self.perform(inner, now) for inner in command.commands])
        if command.end != "commit":
            store.roll_back(before)
        return o.Atomic(outcomes)

    async def probe(self, command: c.Probe, now: int) -> o.Outcome:
        """Nothing stays open between calls (CLAIM-09)."""
        return o.Probed(1, 0) if self._store.open else IDLE

    async def configure(self, command: c.Configure, now: int) -> o.Outcome:
        """Refuse a lease shorter than three heartbeats (LEASE-01)."""
        legal = command.heartbeat > 0 and command.lease >= 3 * command.heartbeat
        return o.Accepted("configured") if legal else o.REJECTED

    async def classify(self, command: c.Classify, now: int) -> o.Outcome:
        """Name the code's family (ERR-01)."""
        return o.Classified(classify(command.code))

    async def crash(self, command: c.Crash, now: int) -> o.Outcome:
        """A worker here has no connection to lose; what it held stays held."""
        return o.DONE

    async def advance(self, command: c.Advance | c.AdvanceTo, now: int) -> o.Outcome:
        """The clock is the asker's; nothing here depends on it between calls."""
        return o.DONE


class MemoryAdapter(Adapter):
    """The self-check adapter; equal seeds draw equal answers, from `open` and from each `reset` on."""

    name: ClassVar[str] = "memory"
    capabilities: ClassVar[Capabilities] = Capabilities(verdict="self-check", gate="none", row_locks=False)

    def __init__(self, seed: int = 0) -> None:
        self._seed = seed
        self._store: Store | None = None
        self._actors: dict[int, MemoryActor] = {}

    def _opened(self) -> Store:
        if self._store is None:
            raise AdapterError("the memory adapter is not open; await open(queue) first")
        return self._store

    async def open(self, queue: QueueSpec) -> None:
        """Start an empty queue.

        Raises:
            AdapterError: the queue declares artifacts, and no token that tells whose one is.
        """
        if queue.artifacts and not queue.has_token:
            raise AdapterError(
                f"queue {queue.key!r} declares artifacts, so its fence must be 'generation' or 'attempt_id': "
                f"an owner alone does not tell which attempt has made one"
            )
        self._store = Store(queue, self._seed)
        self._actors.clear()

    async def close(self) -> None:
        """Forget everything."""
        self._store = None
        self._actors.clear()

    async def reset(self) -> None:
        """Remove all jobs and start the draws again."""
        self._opened().reset()

    async def snapshot(self) -> dict[c.JobId, o.Row]:
        """A new dict in enqueue order; the row of a job that did not change is the same object as before."""
        return dict(self._opened().rows)

    def actor(self, worker: int) -> Actor:
        """The worker's client; worker 0 is the control actor."""
        actor = self._actors.get(worker)
        if actor is None:
            actor = self._actors[worker] = MemoryActor(self._opened())
        return actor
