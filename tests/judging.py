"""One job before the judge: a record, the row that shows it, and what the judge says of one step.

For the tests of the judge's tables; whole stories of several steps have `told`.
"""

from __future__ import annotations

from typing import Any

from fencepost.model import commands as c
from fencepost.model import outcomes as o
from fencepost.model.commands import worker_name
from fencepost.model.outcomes import Row
from fencepost.model.queues import BUILD, MUTATION, QueueSpec
from fencepost.model.step import step
from fencepost.model.world import SETUP, Checks, Context, Record, Step, Violation, World

NOW, EXPIRY = 100, 110
TOKENS: dict[str, c.Token] = {"owner": None, "generation": 2, "attempt_id": "two"}
"""By fence, the token of the second claim of the job."""
HANDLE = c.Handle(1, 1, TOKENS["generation"])
"""Worker 1's handle of its second generation."""
ATTEMPT = c.Handle(1, 1, TOKENS["attempt_id"])
"""Worker 1's handle of its second attempt."""

WRITE_WITH: dict[str, type[c.HandleCommand]] = {
    "renew": c.Renew, "complete": c.Complete, "fail": c.Fail, "release": c.Release, "acknowledge": c.Acknowledge,
    "skip": c.Skip, "put_artifact": c.PutArtifact,
}  # fmt: skip
STATUS = {
    "renew": "running", "complete": "succeeded", "fail": "failed", "release": "pending", "acknowledge": "cancelled",
    "skip": "skipped", "put_artifact": "running",
}  # fmt: skip
"""What a job is once its holder's write was accepted, in the standard word."""


def record(spec: QueueSpec = MUTATION, **changes: Any) -> Record:
    """A running job that worker 1 holds with the second token, its lease valid until `EXPIRY`."""
    token = TOKENS[spec.fence]
    held = Record(spec, "running", 1, token, EXPIRY, spec.lease_seconds, 2, 3, None, None, ((1, token),))
    return held._replace(**changes)


def build(**changes: Any) -> Record:
    """The same job in the build queue."""
    return record(BUILD, **changes)


def unheld(status: str) -> dict[str, Any]:
    """The changes of a running job that nobody holds any more."""
    return {"status": status, "owner": 0, "expires": None, "lease": 0}


def row_of(job: Record, **changes: Any) -> Row:
    """The row that shows this record, all that the contract leaves open filled in."""
    held = job.status == "running"
    seen = Row(
        status=job.spec.spell(job.status),
        owner=worker_name(job.owner) if held else None,
        expires=job.expires,
        heartbeat=job.expires - job.lease if held and job.expires is not None else None,
        started=1,
        finished=None if job.status in ("pending", "running") else NOW,
        attempts=job.attempts,
        max_attempts=job.max_attempts,
        token=job.token,
        due=job.due,
        cancel=job.cancel,
        error="PAGE_VALIDATION_FAILED" if job.status == "failed" and job.spec.stores_code else None,
        deadline=job.deadline,
        artifact=job.artifact,
    )
    return seen._replace(**changes)


def judged(
    job: Record, command: c.Command, outcome: o.Outcome, after: Row | None = None, now: int = NOW
) -> Step | Violation:
    """What the judge says of this step; `after` is the row seen after it, the same as before if None."""
    before = row_of(job)
    world = World(job.spec, now, (job,), (before,))
    return step(world, command, outcome, Context(now, False, (before if after is None else after,)))


def judge(job: Record, command: c.Command, outcome: o.Outcome, after: Row | None = None, now: int = NOW) -> str:
    """The clause that this step breaks, or "right"."""
    return clause_of(judged(job, command, outcome, after, now))


def clause_of(found: Step | Violation) -> str:
    """The clause that is broken, or "right"."""
    return found.clause if isinstance(found, Violation) else "right"


def broken(found: Step | Violation) -> tuple[str, str]:
    """The clause that a step breaks, and the reason of the check that failed."""
    assert isinstance(found, Violation), found
    return found.clause, found.reason


def checks_of(found: Step | Violation) -> dict[tuple[str, str], bool]:
    """What a right step has tested, by clause and reason, and whether with teeth."""
    assert isinstance(found, Step), found
    return {(check.clause, check.reason): check.teeth for check in found.checks}


class Told:
    """A story told step by step, each judged in the world that the one before came to; nobody looks at the rows."""

    def __init__(self, spec: QueueSpec) -> None:
        self.world = World(spec)
        self.checks: Checks = ()

    def answers(self, command: c.Command, outcome: o.Outcome) -> Told:
        """The queue gives a right answer, and the story goes on."""
        found = self.judged(command, outcome)
        assert isinstance(found, Step), found
        self.world, self.checks = found
        return self

    def judged(self, command: c.Command, outcome: o.Outcome) -> Step | Violation:
        """What the judge would say of this answer; the story stays where it is."""
        return step(self.world, command, outcome, Context(self.world.now))

    def broken(self, command: c.Command, outcome: o.Outcome) -> tuple[str, str]:
        """The clause and the reason of this wrong answer."""
        return broken(self.judged(command, outcome))

    def enqueued(self, command: c.Enqueue | None = None) -> Told:
        """One more job."""
        token = 0 if self.world.spec.counts_generations else None
        return self.answers(command or c.Enqueue(), o.Enqueued(len(self.world.jobs) + 1, token))

    def claimed(self, job: int, worker: int = 1, token: c.Token = None, command: c.Claim | None = None) -> Told:
        """This job, by a claim of two unless another command is given."""
        handle = c.Handle(job, worker, token)
        return self.answers(command or c.Claim(worker, 2, 2), o.Claimed((handle,)))

    def later(self, seconds: int) -> Told:
        """The clock moves."""
        return self.answers(c.Advance(seconds), o.DONE)

    @property
    def setup_fault(self) -> str:
        """The name of a violation that is the harness's."""
        return SETUP
