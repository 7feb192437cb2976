"""What can be asked of a queue, as values.

A command that stands in a trace names jobs and handles by the step that made them (`JobRef`, `HandleRef`);
a bound command carries the job's ordinal or the adapter's own id, and `Handle` values. Instants and durations
are whole ticks of one second.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, Literal, TypeAlias

from .values import Value, field_values, value

JobId: TypeAlias = "int | str"
Token: TypeAlias = "int | str | None"
What: TypeAlias = Literal["infra", "content", "cancel", "lease", "limit"]
HookKind: TypeAlias = Literal["ok", "raise", "cancel", "poison"]
End: TypeAlias = Literal["commit", "rollback", "raise"]
Instant: TypeAlias = Literal["expiry", "due", "deadline"]

HOSTS = ("host-a", "host-b")


def worker_name(worker: int) -> str:
    """The owner string of worker 1, 2, 3 …: `host:pid:name` (R§1.1); odd ones live on host-a, even ones on host-b."""
    return WORKER_NAMES[worker]


def host_of(worker: int) -> int:
    """The index in `HOSTS` of the process that runs this worker (REC-05)."""
    return (worker - 1) % 2


WORKER_NAMES: tuple[str, ...] = ("", *(f"{HOSTS[host_of(n)]}:1:w{n}" for n in range(1, 10)))
"""By worker; there is no worker 0. Nine can be told apart by one digit, as schedules tell lanes."""


def prefix(host: int) -> str:
    """The owner prefix that a process on this host declares its own (REC-05)."""
    return HOSTS[host] + ":"


@value
class JobRef(Value):
    """The job enqueued by the step with this label."""

    step: int


@value
class HandleRef(Value):
    """The `nth` handle (0 first) that the claim at the step with this label returned."""

    step: int
    nth: int = 0


@value
class Handle(Value):
    """What a successful claim returned: the job, the worker that claimed it, and the queue's fence token, if any."""

    job: JobId
    worker: int
    token: Token = None


class Command(Value):
    """Base of all commands; `verb` is the name of the actor's method that serves it."""

    __slots__ = ()
    verb: ClassVar[str] = ""


@value
class Enqueue(Command):
    """Add a pending job with its own retry budget; `due_in` seconds until it is due (back-off queues only), and
    `deadline_in` seconds until its deadline (queues with deadlines only); 0 is neither.
    """

    verb: ClassVar[str] = "enqueue"
    max_attempts: int = 3
    due_in: int = 0
    deadline_in: int = 0


@value
class Hook(Value):
    """A callback that the claim or sweep must run before its commit, on its own session.

    `ok` returns, `raise` raises `HookFailed`, `cancel` raises `asyncio.CancelledError`; `poison` raises only
    when it is given `job`.
    """

    kind: HookKind
    job: JobId | JobRef | None = None


@value
class Claim(Command):
    """Claim due jobs: scan at most `limit` candidates, claim at most `max_claims`; `lease` in seconds (CLAIM-07).

    `job`: this one and no other (CLAIM-15, queues whose claims name a job only).
    """

    verb: ClassVar[str] = "claim"
    worker: int
    limit: int = 1
    max_claims: int = 1
    lease: int | None = None
    hook: Hook | None = None
    job: JobId | JobRef | None = None

    def renamed(self, name: Callable[[JobId | JobRef], JobId | JobRef]) -> Claim:
        """The same claim with the jobs that it and its hook name called otherwise."""
        hook, job = self.hook, self.job
        if hook is not None and hook.job is not None:
            hook = Hook(hook.kind, name(hook.job))
        return Claim(self.worker, self.limit, self.max_claims, self.lease, hook, None if job is None else name(job))


class HandleCommand(Command):
    """Base of the writes and reads that a worker makes with a lease handle."""

    __slots__ = ()
    handle: Handle | HandleRef

    def with_handle(self, handle: Handle | HandleRef) -> HandleCommand:
        """The same command with another handle."""
        return type(self)(handle, *field_values(self)[1:])  # type: ignore[call-arg]


@value
class Renew(HandleCommand):
    """Heartbeat: extend the lease to `now + lease` seconds (LEASE-03)."""

    verb: ClassVar[str] = "renew"
    handle: Handle | HandleRef
    lease: int | None = None


@value
class Complete(HandleCommand):
    """Report success."""

    verb: ClassVar[str] = "complete"
    handle: Handle | HandleRef


@value
class Fail(HandleCommand):
    """Report a failure: what happened, and its error code (ERR-02, ERR-03)."""

    verb: ClassVar[str] = "fail"
    handle: Handle | HandleRef
    what: What = "content"
    code: str = "PAGE_VALIDATION_FAILED"


@value
class Skip(HandleCommand):
    """Report that there is no need to execute the job any more: it ends `skipped` (R§2.1)."""

    verb: ClassVar[str] = "skip"
    handle: Handle | HandleRef


@value
class Release(HandleCommand):
    """Give the job back unexecuted (REL-01)."""

    verb: ClassVar[str] = "release"
    handle: Handle | HandleRef


@value
class Acknowledge(HandleCommand):
    """Confirm a cancel request at a safe boundary: the job ends `cancelled` (CANCEL-04)."""

    verb: ClassVar[str] = "acknowledge"
    handle: Handle | HandleRef


@value
class Checkpoint(HandleCommand):
    """Ask, at a safe boundary, whether a cancel was requested (CANCEL-04); changes nothing."""

    verb: ClassVar[str] = "checkpoint"
    handle: Handle | HandleRef


@value
class PutArtifact(HandleCommand):
    """Upload the attempt's artifact and let the job refer to it (FENCE-04, FENCE-07)."""

    verb: ClassVar[str] = "put_artifact"
    handle: Handle | HandleRef


class JobCommand(Command):
    """Base of the commands that name one job and no handle."""

    __slots__ = ()
    job: JobId | JobRef

    def with_job(self, job: JobId | JobRef) -> JobCommand:
        """The same command about another job."""
        return type(self)(job, *field_values(self)[1:])  # type: ignore[call-arg]


@value
class ReadArtifact(JobCommand):
    """Ask, as a reader does, for the job's artifact (FENCE-04)."""

    verb: ClassVar[str] = "read_artifact"
    job: JobId | JobRef


@value
class RequestCancel(JobCommand):
    """Cancel a job. `by_parent`: only the request is written, also on a pending job (CLAIM-02)."""

    verb: ClassVar[str] = "request_cancel"
    job: JobId | JobRef
    by_parent: bool = False


@value
class Recover(Command):
    """One sweep over all expired jobs and cancelled pending ones, `batch` rows per transaction (REC-01…12)."""

    verb: ClassVar[str] = "recover"
    batch: int = 10
    hook: Hook | None = None

    def renamed(self, name: Callable[[JobId | JobRef], JobId | JobRef]) -> Recover:
        """The same sweep with the job that its hook names called otherwise."""
        hook = self.hook
        return self if hook is None or hook.job is None else Recover(self.batch, Hook(hook.kind, name(hook.job)))


@value
class Tick(Command):
    """What the worker loop does when idle (REC-04)."""

    verb: ClassVar[str] = "tick"
    worker: int = 1


@value
class StartUp(Command):
    """A process starts: the sweep, and running rows whose owner has this host's prefix count as expired (REC-05)."""

    verb: ClassVar[str] = "start_up"
    host: int = 0


@value
class Probe(Command):
    """Look for transactions and locks that the actors left open (CLAIM-09)."""

    verb: ClassVar[str] = "probe"


@value
class Plant(JobCommand):
    """Write one field of a job behind the queue's back, as an operator or an older version may have done.

    `deadline`: move it to `seconds` from now; `lease`: leave a lease of `seconds` on a pending job.
    """

    verb: ClassVar[str] = "plant"
    job: JobId | JobRef
    field: Literal["deadline", "lease"]
    seconds: int


@value
class Configure(Command):
    """Set up the queue with this lease and heartbeat, in seconds (LEASE-01)."""

    verb: ClassVar[str] = "configure"
    lease: int
    heartbeat: int


@value
class Classify(Command):
    """Ask for the family of an error code (ERR-01)."""

    verb: ClassVar[str] = "classify"
    code: str


@value
class Atomically(Command):
    """Commands inside one transaction of the caller, who ends it with a commit, a rollback, or by raising."""

    verb: ClassVar[str] = "atomically"
    commands: tuple[Command, ...]
    end: End = "commit"


@value
class Crash(Command):
    """The worker's process dies: its connections drop, what it held stays held until recovery."""

    verb: ClassVar[str] = "crash"
    worker: int


@value
class Advance(Command):
    """Move the clock by whole seconds."""

    verb: ClassVar[str] = "advance"
    seconds: int


@value
class AdvanceTo(Command):
    """Move the clock to `offset` seconds from a job's lease expiry, due instant or deadline; skipped if not ahead."""

    verb: ClassVar[str] = "advance"
    instant: Instant
    job: JobRef
    offset: int = 0


HANDLE_COMMANDS: tuple[type[HandleCommand], ...] = (
    Renew, Complete, Fail, Skip, Release, Acknowledge, PutArtifact, Checkpoint,
)  # fmt: skip
SWEEPS: frozenset[type[Command]] = frozenset({Recover, Tick, StartUp})
ATOMIC_COMMANDS: tuple[type[Command], ...] = (Renew, Complete, Fail, Skip, Release, Acknowledge, RequestCancel)
"""What a caller's transaction may hold: claims and sweeps always end their own transaction (CLAIM-09), and an upload is
more than one.
"""

COMMANDS: tuple[type[Command], ...] = (
    Enqueue, Claim, Renew, Complete, Fail, Skip, Release, Acknowledge, PutArtifact, Checkpoint, ReadArtifact,
    RequestCancel, Recover, Tick, StartUp, Probe, Plant, Configure, Classify, Atomically, Crash, Advance, AdvanceTo,
)  # fmt: skip
