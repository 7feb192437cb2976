"""fencepost's way into your queue: what `fencepost init-adapter` writes.

Write the methods one after another, and ask after each of them what is left to do:

    fencepost smoke --adapter=skeleton:Skeleton

When that is green, test the queue: `fencepost run --adapter=skeleton:Skeleton`.
"""

from typing import ClassVar

from fencepost.adapters.sync import AdapterError, Capabilities, QueueSpec, SyncActor, SyncAdapter, c, o

# `accepted`, `held` and `owner` are there too, and of use below.

# What your queue is like. `fencepost.model.queues.QueueSpec` explains each line, and those that are left out here.
JOBS = QueueSpec(
    key="jobs",
    lease_seconds=60,  # how long a claim holds a job
    heartbeat_seconds=20,  # how often a worker renews; at most a third of the lease
    fence="owner",  # or "generation", "attempt_id": a claim also hands out a token that every write must carry
    cancels=False,  # True: then write request_cancel, acknowledge and checkpoint too
    retryable_codes=frozenset({"RENDER_SERVICE_UNAVAILABLE"}),  # INFRA errors after which a job is tried again
)


class SkeletonActor(SyncActor):
    """One client of the queue: a worker, or (worker 0) whoever enqueues and sweeps.

    `now` is the clock in whole seconds since the beginning; give it to your queue in place of its own clock. A write
    that your queue refuses is `o.REJECTED`, never an exception. A write conflict that left no trace is `o.CONFLICT`.
    """

    def __init__(self, worker: int) -> None:
        self.worker = worker
        # self.queue = MyQueue(connect())  a connection of its own, so that actors do not share a transaction

    def close(self) -> None:
        pass  # self.queue.connection.close()

    def enqueue(self, command: c.Enqueue, now: int) -> o.Outcome:
        # job = self.queue.enqueue(max_attempts=command.max_attempts)
        # return o.Enqueued(job.id)
        raise AdapterError("write `enqueue`: add a pending job with command.max_attempts; return o.Enqueued(its id)")

    def claim(self, command: c.Claim, now: int) -> o.Outcome:
        # limit, lease = min(command.limit, command.max_claims), command.lease or JOBS.lease_seconds
        # jobs = self.queue.claim(owner(command), now, limit, lease)
        # return o.Claimed(tuple(c.Handle(job.id, command.worker) for job in jobs))
        raise AdapterError(
            "write `claim`: claim due jobs, oldest first, for owner(command); return o.Claimed(handles) "
            "with a c.Handle(its id, command.worker) for each, and o.Claimed() if there was none"
        )

    def renew(self, command: c.Renew, now: int) -> o.Outcome:
        # job, worker = held(command)
        # return accepted(self.queue.heartbeat(job, worker, now, command.lease or JOBS.lease_seconds), "running")
        raise AdapterError(
            "write `renew`: extend the lease of command.handle to now + (command.lease or JOBS.lease_seconds); return "
            "o.Accepted('running'), or o.REJECTED if your queue refused"
        )

    def complete(self, command: c.Complete, now: int) -> o.Outcome:
        # job, worker = held(command)
        # return accepted(self.queue.complete(job, worker, now), "succeeded")
        raise AdapterError(
            "write `complete`: report success by command.handle; return o.Accepted('succeeded'), or o.REJECTED if "
            "your queue refused"
        )

    def fail(self, command: c.Fail, now: int) -> o.Outcome:
        # again = command.what == "lease" or command.code in JOBS.retryable_codes
        # job, worker = held(command)
        # return accepted(self.queue.fail(job, worker, now, command.code, again))  the status, or None if refused
        raise AdapterError(
            "write `fail`: report a failure by command.handle, with command.code; return o.Accepted('pending') if it "
            "will be tried again, o.Accepted('failed') if not, o.REJECTED if your queue refused; or add 'fail' to "
            "`without`"
        )

    def release(self, command: c.Release, now: int) -> o.Outcome:
        # job, worker = held(command)
        # return accepted(self.queue.release(job, worker, now), "pending")
        raise AdapterError(
            "write `release`: give the job of command.handle back, its attempt uncounted; return o.Accepted('pending'),"
            " or o.REJECTED if your queue refused; or add 'release' to `without`"
        )

    def recover(self, command: c.Recover, now: int) -> o.Outcome:
        # rows = tuple(o.RecoveredRow(job.id, job.status) for job in self.queue.recover(now))
        # return o.Recovered(rows, len(rows))
        raise AdapterError(
            "write `recover`: put jobs whose lease has expired back to pending, or end them as failed if their "
            "attempts are used up; return o.Recovered(rows, how many) with an o.RecoveredRow(id, status) for each"
        )


class Skeleton(SyncAdapter):
    """The queue under test. It may be made many times; each time it is opened, reset again and again, and closed."""

    name = "skeleton"
    queues: ClassVar = {JOBS.key: JOBS}
    capabilities = Capabilities(
        clock="argument",  # the time is the `now` that verbs are given; "override" and "shifted" need `advance`
        hooks=False,  # True: claims and sweeps run `hook_of(command)(ids)` before they commit
        counts_statements=False,  # True: `recover` says in `dml` how many statements it sent that change data
        # What your queue has no such thing as, or what you will write later. What is not asked is not tested.
        without=frozenset({"tick", "start_up", "probe", "configure", "classify", "atomically"}),
    )

    def open(self, queue: QueueSpec) -> None:
        # self.place = tempfile.TemporaryDirectory()
        raise AdapterError(
            "write `open`: make an empty queue in a place of its own, such as a new file or a new schema, that `close` "
            "removes; return nothing"
        )

    def close(self) -> None:
        pass  # remove what `open` made; the actors are closed by then

    def reset(self) -> None:
        raise AdapterError("write `reset`: delete all jobs, and leave the actors usable; return nothing")

    def snapshot(self) -> dict[c.JobId, o.Row]:
        # return {
        #     job.id: o.Row(
        #         status=job.status, owner=job.worker, expires=job.lease_until, heartbeat=job.heartbeat_at,
        #         started=job.started_at, finished=job.finished_at, attempts=job.attempts,
        #         max_attempts=job.max_attempts, token=None, due=None, cancel=None, error=job.error,
        #     )
        #     for job in all_jobs()
        # }
        raise AdapterError(
            "write `snapshot`: read all jobs over a connection of its own; return a dict from job id to o.Row"
        )

    def actor(self, worker: int) -> SyncActor:
        return SkeletonActor(worker)
