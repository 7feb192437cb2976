"""What a queue answered, as values. An outcome carries everything that was observed.

Jobs are the adapter's own ids when an adapter answers, and ordinals once the driver has translated them.
Statuses are spelled as the queue stores them. Instants are ticks of one second.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from .commands import Handle, JobId, Token
from .values import Value, value


class Outcome(Value):
    """Base of all outcomes."""

    __slots__ = ()


@value
class Enqueued(Outcome):
    """The job exists; `token` is the generation it starts from, where the queue counts them."""

    job: JobId
    token: int | None = None


@value
class Claimed(Outcome):
    """The handles won, oldest first; `hooked` the jobs that the hook was given, None if none ran."""

    handles: tuple[Handle, ...] = ()
    hooked: tuple[JobId, ...] | None = None


@value
class Accepted(Outcome):
    """The write took effect: the job's status now, and the instant it is due again where back-off applies."""

    status: str
    due: int | None = None


@value
class Rejected(Outcome):
    """The call was refused and nothing changed; `reason` in the queue's own words."""

    reason: str = ""


@value
class CancelAnswer(Outcome):
    """What became of a cancel: ended at once, recorded for the executor, or too late."""

    answer: Literal["cancelled", "recorded", "terminal"]


@value
class RecoveredRow(Value):
    """One row that a sweep moved: its status now and, where the queue backs off, when it is due again."""

    job: JobId
    status: str
    due: int | None = None


@value
class Recovered(Outcome):
    """A sweep's summary.

    `count` is the summary's own figure (REC-10), `hooked` the jobs the hook was given in batches that were
    committed (None if no hook ran), `failed` tells that a hook raised and its batch was rolled back, `dml` the
    number of data-changing statements sent (None where the adapter cannot tell).
    """

    rows: tuple[RecoveredRow, ...] = ()
    count: int = 0
    hooked: tuple[JobId, ...] | None = None
    failed: bool = False
    dml: int | None = None


@value
class Artifact(Outcome):
    """The attempt whose artifact a reader is given, None if he is given none."""

    attempt: Token


@value
class Checkpointed(Outcome):
    """Whether a cancel has been requested."""

    cancel: bool


@value
class Probed(Outcome):
    """Transactions and row or table locks that the actors hold while they are idle."""

    transactions: int
    locks: int


@value
class Classified(Outcome):
    """The error family's name, or None for a code of no family."""

    family: str | None


@value
class Atomic(Outcome):
    """What each command inside the caller's transaction answered."""

    outcomes: tuple[Outcome, ...]


@value
class Done(Outcome):
    """The clock moved, a worker crashed: nothing to observe."""


@value
class Conflict(Outcome):
    """A write conflict (SQLite BUSY, PostgreSQL 40001 or 40P01): the call failed without effect."""


@value
class HookRaised(Outcome):
    """The hook raised and the call passed that on: without effect. `hooked` are the jobs the hook was given."""

    hooked: tuple[JobId, ...] = ()


@value
class Unknown(Outcome):
    """The reply was lost: the call may or may not have taken effect."""


CONFLICT = Conflict()
DONE = Done()
REJECTED = Rejected()
UNKNOWN = Unknown()


class Row(NamedTuple):
    """One job as a reader of the database sees it, in the contract's standard names (R§2).

    `owner` is a worker's name, instants are ticks, `status` is spelled as stored. `artifact` is the attempt that has
    made the artifact which the row refers to, None if it refers to none or the object is gone. A field that the queue
    has no column for is None.
    """

    status: str
    owner: str | None
    expires: int | None
    heartbeat: int | None
    started: int | None
    finished: int | None
    attempts: int
    max_attempts: int
    token: int | str | None
    due: int | None
    cancel: int | None
    error: str | None
    deadline: int | None = None
    artifact: Token = None


View = tuple[Row, ...]
"""All jobs, in the order in which they were enqueued."""

OUTCOMES: tuple[type[Outcome], ...] = (
    Enqueued, Claimed, Accepted, Rejected, CancelAnswer, Recovered, Artifact, Checkpointed, Probed, Classified,
    Atomic, Done, Conflict, HookRaised, Unknown,
)  # fmt: skip
