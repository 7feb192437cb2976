"""fencepost's way into plain_queue: `fencepost run --adapter=plain_adapter:Plain`."""

from fencepost.adapters.sync import Capabilities, QueueSpec, SyncActor, SyncAdapter, accepted, c, held, o, owner
from fencepost.model.errors import WHAT, classify
from plain_queue import LEASE, RETRIED, Queue

JOBS = QueueSpec("jobs", lease_seconds=LEASE, heartbeat_seconds=20, cancels=False, retryable_codes=RETRIED)


class PlainActor(SyncActor):
    def __init__(self, queue):
        self.queue, self.close = queue, queue.close

    def enqueue(self, command, now):
        return o.Enqueued(self.queue.enqueue("payload", command.max_attempts))

    def claim(self, command, now):
        limit, lease = min(command.limit, command.max_claims), command.lease or LEASE
        jobs = self.queue.claim(owner(command), now, limit, lease)
        return o.Claimed(tuple(c.Handle(job, command.worker) for job in jobs))

    def renew(self, command, now):
        return accepted(self.queue.heartbeat(*held(command), now, command.lease or LEASE), "running")

    def complete(self, command, now):
        return accepted(self.queue.complete(*held(command), now), "succeeded")

    def fail(self, command, now):
        right = WHAT.get(classify(command.code)) == command.what  # our workers call by its name what happened
        return accepted(right and self.queue.fail(*held(command), now, command.code))

    def recover(self, command, now):
        rows = tuple(o.RecoveredRow(*row) for row in self.queue.recover(now))
        return o.Recovered(rows, len(rows))


class Plain(SyncAdapter):
    queues, queue = {"jobs": JOBS}, Queue
    capabilities = Capabilities.only("enqueue", "claim", "renew", "complete", "fail", "recover")

    def open(self, queue):
        self.view = self.queue(f"{self.folder}/jobs.db")

    def close(self):
        self.view.close()

    def reset(self):
        self.view.db.execute("DELETE FROM jobs")

    def snapshot(self):
        # The table's columns stand in the order of the row's fields; there is no token, due instant or cancel request.
        return {job["id"]: o.Row(*job[2:10], None, None, None, job["error"]) for job in self.view.jobs()}

    def actor(self, worker):
        return PlainActor(self.queue(f"{self.folder}/jobs.db"))
