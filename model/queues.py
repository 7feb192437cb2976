"""The queues of R§5 as data. A queue is a row here; code reads the row and never asks for a queue by name.

Whoever tests a queue of his own declares a row of his own: what it has, and by which names.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cache
from typing import Literal, TypeAlias

Fence: TypeAlias = Literal["owner", "generation", "attempt_id"]

PENDING = "pending"
RUNNING = "running"
SUCCEEDED = "succeeded"
FAILED = "failed"
CANCELLED = "cancelled"
SKIPPED = "skipped"

OLD_SPELLINGS = {
    "completed": SUCCEEDED, "success": SUCCEEDED, "done": SUCCEEDED, "error": FAILED,
    "cancelled": CANCELLED, "canceled": CANCELLED,
}  # fmt: skip
"""Spellings that some queue has used for a terminal status (R§3), by the standard one."""


ALWAYS = frozenset({
    "enqueue", "claim", "renew", "complete", "fail", "release", "recover", "tick", "start_up", "probe", "configure",
    "classify", "atomically", "crash",
})  # fmt: skip
OF_CANCEL = frozenset({"request_cancel", "acknowledge", "checkpoint"})
OF_ARTIFACTS = frozenset({"put_artifact", "read_artifact"})


@dataclass(frozen=True, slots=True, eq=False)
class QueueSpec:
    """What one lease queue declares (R§2, R§5): vocabulary, fence, lease, retry and limits.

    A clause that needs what a queue does not declare is `not applicable` to it, and is reported so.
    """

    key: str
    """What the queue is called, in options, files and reports."""
    section: str = "its own"
    """Where it is described."""
    fence: Fence = "owner"
    """What a write by handle carries: `owner` and nothing more, a `generation` that claims and recovery raise by one,
    or an `attempt_id` that each claim mints (FENCE-03).
    """
    lease_seconds: int = 300
    """How long a claim or a renewal lasts, of which a heartbeat must be a third at most (LEASE-01)."""
    heartbeat_seconds: int = 30
    """How often a worker renews (LEASE-01)."""
    cancelled: str = CANCELLED
    """How the queue spells `cancelled` (TERM-04)."""
    columns: tuple[tuple[str, str], ...] = ()
    """(standard name, own name) of the columns that differ."""
    backoff_seconds: int | None = None
    """Base of the exponential back-off (CLAIM-03, ATT-02); None: a retried job is due at once."""
    retryable_codes: frozenset[str] = frozenset()
    """INFRA and LIMIT codes that are retried (ERR-02)."""
    terminal: frozenset[str] = frozenset({SUCCEEDED, FAILED, CANCELLED})
    """What a job may end in, in the queue's own spelling (TERM-01). With `skipped` among them it serves `skip`."""
    bounds: tuple[int, int] = (1, 1)
    """Candidates scanned and claims made by a worker's usual claim (CLAIM-07)."""
    cancels: bool = True
    """Jobs can be cancelled (CANCEL-01…06)."""
    completion_wins: bool = False
    """A success that is reported after a cancel request stands (CANCEL-06, a reading that a queue may declare)."""
    ordered: bool = True
    """Due jobs are claimed oldest first (CLAIM-08)."""
    monotonic_ids: bool = True
    """Of two jobs enqueued at one instant the later one has the higher id, and is claimed later; else either is claimed
    first (CLAIM-08).
    """
    stores_code: bool = True
    """A failed row tells its error code (TERM-03, ERR-03)."""
    deadline: bool = False
    """A job may have a deadline, to which its leases are cut (CLAIM-04, LEASE-03, DEAD-01)."""
    claim_margin_seconds: int = 0
    """A job is claimed only while more than this is left until its deadline, which by itself ends it (CLAIM-04; P CP4
    skips what has too little time left).
    """
    artifacts: bool = False
    """A job stores an artifact under its current attempt (FENCE-04, FENCE-07, INV-5)."""
    repeats_complete: bool = False
    """A success reported again by the same attempt is accepted (FENCE-05)."""
    claims_by_id: bool = False
    """A claim may ask for one job, and takes none that a lease is left on (CLAIM-15, P CP4)."""
    hooks: bool = True
    """Claims and sweeps take a callback that runs before their commit (CLAIM-12, REC-08)."""
    exact_clock: bool = True
    """The very tick of an expiry, a due instant or a deadline can be met; else only the ticks beside it are tried."""
    without: frozenset[str] = frozenset()
    """Verbs that are not asked of this queue, by name."""

    has_token: bool = field(init=False)
    """Whether a claim mints a fence token beyond the owner."""
    counts_generations: bool = field(init=False)
    """Whether that token is a number that claims and recovery raise by one."""
    backs_off: bool = field(init=False)
    """Whether a retried job is due only later (CLAIM-03, ATT-02)."""
    unordered: bool = field(init=False)
    """Whether any due job may be claimed first."""
    skips: bool = field(init=False)
    """Whether a job may end `skipped` (R§2.1)."""
    ends_cancelled: bool = field(init=False)
    """Whether a job may end `cancelled`, also where nobody can ask for that (ERR-02)."""
    verbs: frozenset[str] = field(init=False)
    """The verbs that this queue serves, by name."""

    def __post_init__(self) -> None:
        # Read in every step, so kept.
        verbs = ALWAYS
        if self.cancels:
            verbs |= OF_CANCEL
        if self.artifacts:
            verbs |= OF_ARTIFACTS
        if SKIPPED in self.terminal:
            verbs |= {"skip"}
        if self.deadline or self.claims_by_id:
            verbs |= {"plant"}
        object.__setattr__(self, "has_token", self.fence != "owner")
        object.__setattr__(self, "counts_generations", self.fence == "generation")
        object.__setattr__(self, "backs_off", self.backoff_seconds is not None)
        object.__setattr__(self, "unordered", not self.ordered)
        object.__setattr__(self, "skips", SKIPPED in self.terminal)
        object.__setattr__(self, "ends_cancelled", self.cancelled in self.terminal)
        object.__setattr__(self, "verbs", verbs - self.without)

    def column(self, standard: str) -> str:
        """The queue's own name of a standard column."""
        return dict(self.columns).get(standard, standard)

    def spell(self, status: str) -> str:
        """The stored spelling of a standard status (TERM-04)."""
        return self.cancelled if status == CANCELLED else status


@cache  # one queue, driven in one way, is one value: what is known of it is kept by it
def narrowed(queue: QueueSpec, *, hooks: bool, exact_clock: bool, without: frozenset[str]) -> QueueSpec:
    """The same queue as somebody can drive it who may lack hooks, an exact clock, or some verbs."""
    left = queue.hooks and hooks, queue.exact_clock and exact_clock, queue.without | (without & queue.verbs)
    if left == (queue.hooks, queue.exact_clock, queue.without):
        return queue
    return replace(queue, hooks=left[0], exact_clock=left[1], without=left[2])


_RETRYABLE = frozenset({"RENDER_SERVICE_UNAVAILABLE", "RENDER_DEADLINE_EXCEEDED", "RUNTIME_VITE_QUEUE_FULL"})

BACKFILL = QueueSpec(key="backfill", section="R§5.1 row 3", retryable_codes=_RETRYABLE)
MUTATION = QueueSpec(
    key="mutation",
    section="R§5.1 row 9",
    fence="generation",
    lease_seconds=45,
    heartbeat_seconds=15,
    cancelled="canceled",
    columns=(("error_code", "last_error_code"),),
    backoff_seconds=5,
    retryable_codes=_RETRYABLE,
    terminal=frozenset({SUCCEEDED, FAILED, "canceled"}),
)

SCREENSHOT = QueueSpec(
    key="screenshot",
    section="R§5.1 row 2",
    retryable_codes=_RETRYABLE,
    terminal=frozenset({SUCCEEDED, FAILED, CANCELLED, SKIPPED}),
)
BUILD = QueueSpec(
    key="build",
    section="R§5.1 row 1",
    fence="attempt_id",
    lease_seconds=960,
    heartbeat_seconds=320,
    columns=(("worker_id", "lease_owner"), ("heartbeat_at", "claimed_at"), ("started_at", "claimed_at")),
    retryable_codes=_RETRYABLE,
    terminal=frozenset({SUCCEEDED, FAILED}),
    bounds=(10, 1),
    cancels=False,
    stores_code=False,
    deadline=True,
    artifacts=True,
    repeats_complete=True,
    claims_by_id=True,
)

QUEUES: dict[str, QueueSpec] = {q.key: q for q in (BUILD, SCREENSHOT, BACKFILL, MUTATION)}
"""The queues this version builds."""

ALL_QUEUES: tuple[str, ...] = (
    "build", "screenshot", "backfill", "image", "page", "component", "external_task", "external_batch",
    "mutation", "render", "ai_run",
)  # fmt: skip
"""Every key of contract.md §2, built or not."""
