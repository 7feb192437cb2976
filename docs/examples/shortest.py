"""The shortest adapter of plain_queue: `fencepost run --adapter=shortest:Shortest`."""

from fencepost.adapters.sync import Capabilities, QueueSpec, SyncActor, SyncAdapter, accepted, c, held, o, owner
from plain_queue import Queue


class Worker(Queue, SyncActor):
    def enqueue(self, command, now):
        return o.Enqueued(super().enqueue("payload", command.max_attempts))

    def claim(self, command, now):
        jobs = super().claim(owner(command), now, min(command.limit, command.max_claims), command.lease or 60)
        return o.Claimed(tuple(c.Handle(job, command.worker) for job in jobs))

    def complete(self, command, now):
        return accepted(super().complete(*held(command), now), "succeeded")


class Shortest(SyncAdapter):
    queues = {"jobs": QueueSpec("jobs", lease_seconds=60, heartbeat_seconds=20, cancels=False)}
    capabilities = Capabilities.only("enqueue", "claim", "complete")

    def open(self, queue):
        self.view = Queue(f"{self.folder}/jobs.db")

    def snapshot(self):
        return {job["id"]: o.Row(*job[2:10], None, None, None, job["error"]) for job in self.view.jobs()}

    def actor(self, worker):
        return Worker(f"{self.folder}/jobs.db")
