"""What the model knows of a queue: one record per job, the clock, and the rows last seen.

Pure values. Nothing here knows of databases, pytest, Hypothesis or time sources.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from .commands import Handle, Token
from .outcomes import Row, View
from .queues import PENDING, RUNNING, QueueSpec


class Record(NamedTuple):
    """One job. Instants are ticks; `owner` 0 is nobody; `issued` holds each claim's (worker, token), in order.

    `lease` is the duration in seconds that `expires` was made with, so `expires - lease` is the last heartbeat.
    `artifact` is the attempt whose artifact the job refers to. `created` is when it was enqueued, where nothing else
    tells which of two jobs is the older; else 0.
    """

    spec: QueueSpec
    status: str
    owner: int
    token: Token
    expires: int | None
    lease: int
    attempts: int
    max_attempts: int
    due: int | None
    cancel: int | None
    issued: tuple[tuple[int, Token], ...]
    deadline: int | None = None
    artifact: Token = None
    created: int = 0


class World(NamedTuple):
    """A queue: its jobs in enqueue order (job 1 first), the clock, the rows seen after the last step.

    `rows` is None where nobody looked (explore, overlapped runs). `claim` tells what the step before was, if it was
    a claim: `won`, `empty` or `raised`; CLAIM-09 is judged by a probe right after one.
    """

    spec: QueueSpec
    now: int = 0
    jobs: tuple[Record, ...] = ()
    rows: View | None = None
    claim: str = ""


SETUP = "SETUP"
"""The clause name of a violation that is no clause's: the adapter did not do what the harness needs."""


class Check(NamedTuple):
    """One thing that a step tested. `teeth`: only this clause could have refused a step that differs in it."""

    clause: str
    reason: str
    teeth: bool


Checks: TypeAlias = tuple[Check, ...]


class Violation(NamedTuple):
    """A clause that a step broke; `reason` is that of the check that failed, `why` is for people."""

    clause: str
    reason: str
    why: str


class Step(NamedTuple):
    """The world after a legal step, and what the step tested."""

    world: World
    checks: Checks


AS_EXPECTED: View = (Row("as expected", None, None, None, None, None, 0, 0, None, None, None, None),)
"""The view of a right queue: every row is as it must be (compared by identity; explore uses it)."""


class Context(NamedTuple):
    """How a step was asked and seen: the asker's clock in ticks, whether anything overlapped it, the rows after it.

    `view` is None where nobody looked, and `AS_EXPECTED` where the model itself stands in for a right queue.
    """

    now: int
    overlapped: bool = False
    view: View | None = None


def expired(record: Record, now: int) -> bool:
    """Whether this is a running job whose lease has run out: expiry `<= now`, or none recorded."""
    return record.status == RUNNING and (record.expires is None or record.expires <= now)


def overdue(record: Record, now: int) -> bool:
    """Whether the job's deadline has passed."""
    return record.deadline is not None and record.deadline <= now


def closed(record: Record, now: int) -> bool:
    """Whether it is too late to claim the job: its deadline has passed, or too little time is left until then."""
    return record.deadline is not None and record.deadline - record.spec.claim_margin_seconds <= now


def sweepable(record: Record, now: int) -> bool:
    """Whether a sweep must move this job: expired, or pending with a cancel request or past its deadline (REC-01,
    CLAIM-02, DEAD-01).
    """
    if record.status == PENDING:
        return record.cancel is not None or overdue(record, now)
    return expired(record, now)


def lease_end(lease: int, deadline: int | None, now: int) -> int:
    """When a lease of so many seconds that is taken now ends: at the deadline, if that comes first (CLAIM-04)."""
    return now + lease if deadline is None else min(now + lease, deadline)


def holder(record: Record, handle: Handle) -> bool:
    """Whether the handle is the one that this job's last claim returned."""
    return bool(record.issued) and record.issued[-1] == (handle.worker, handle.token)
