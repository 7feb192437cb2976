"""The rules of the reference runtime as one value: everything the contract lets a runtime decide stands here.

The runtime reads `Rules` and decides nothing of its own; a faulty runtime is another value of `Rules`. This module
must never know of connections.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Literal, NamedTuple, TypeAlias

from fencepost.model.commands import JobId, Token
from fencepost.model.errors import WHAT, classify
from fencepost.model.queues import QueueSpec

from . import predicates as p
from .editing import Editable
from .terms import Assign, Case, Order, Pred


class Verb(StrEnum):
    """The verbs that a lease handle fences."""

    RENEW = "renew"
    COMPLETE = "complete"
    FAIL = "fail"
    SKIP = "skip"
    RELEASE = "release"
    ACKNOWLEDGE = "acknowledge"
    CHECKPOINT = "checkpoint"
    PUT_ARTIFACT = "put_artifact"


class Write(StrEnum):
    """The conditional updates of one job; a failure becomes a `RETRY`, a `FAIL` or an `ABANDON` (ERR-02)."""

    RENEW = "renew"
    COMPLETE = "complete"
    RETRY = "retry"
    FAIL = "fail"
    ABANDON = "abandon"
    SKIP = "skip"
    RELEASE = "release"
    ACKNOWLEDGE = "acknowledge"
    PROMOTE = "promote"
    CANCEL = "cancel"
    CANCEL_BY_PARENT = "cancel_by_parent"


Action: TypeAlias = Literal["retry", "listed", "fail", "abandon", "refuse"]
"""What a family of errors leads to; `listed`: a retry if the queue lists the code as retryable; `abandon`: the job is
cancelled, or fails where the queue knows no cancel."""

FenceAt: TypeAlias = Literal["update", "read_before", "transaction_before"]
"""Where a write checks its handle: in the update itself; by a read before it in the same transaction; by a read in a
transaction of its own. Only the first one holds under concurrency."""


@dataclass(frozen=True, slots=True)
class Shape:
    """How a claim uses transactions on one database (CLAIM-11)."""

    skip_locked: bool
    """The candidate read locks its rows, and skips those that others have locked."""
    ends_read: bool
    """The candidate read's transaction ends before the updates."""
    subselect: bool = False
    """There is no candidate read: each update picks its own row by a sub-select."""
    waits: bool = False
    """The candidate read locks its rows, and waits for those that others have locked."""
    limits_first: bool = False
    """The limit applies before locked rows are skipped (CLAIM-14)."""


def doubling(spec: QueueSpec, attempts: int) -> int:
    """The queue's base back-off in seconds, doubled with every attempt after the first (ATT-02)."""
    return (spec.backoff_seconds or 0) << max(attempts - 1, 0)


class Attempt(NamedTuple):
    """What is known of an attempt when a claim begins it."""

    job: int
    owner: str
    now: int
    """The claimer's clock in ticks."""
    nth: int
    """How many attempts this process has begun, this one included."""


def numbered(attempt: Attempt) -> str:
    """An id that no other attempt has: an owner's name tells its process, and a process counts (FENCE-03).

    A random one would do as well, but for schedules, which could then not be replayed.
    """
    return f"{attempt.owner}#{attempt.nth}"


def key_of_attempt(job: JobId, attempt: Token) -> str:
    """The key that an attempt stores its artifact under, and no other attempt does (FENCE-04)."""
    return f"{job}/{attempt}"


@dataclass(frozen=True, slots=True)
class Rules(Editable):
    """What a runtime does, clause by clause.

    Values are immutable; the methods of `Editable` return changed ones, and there a `Verb` alone means its fence.
    """

    # Claims
    claim_where: tuple[Pred, ...]
    """Which jobs are candidates."""
    claim_again: tuple[Pred, ...]
    """Repeated in each candidate's conditional update (CLAIM-11)."""
    claim_named: tuple[Pred, ...]
    """Which candidates there are where a claim names its job (CLAIM-15)."""
    claim_order: tuple[Order, ...]
    claim_set: tuple[Assign, ...]
    claim_shape: Mapping[str, Shape]
    """By dialect: the only thing that differs by database."""

    # Writes by handle, and cancels
    fence: Mapping[Verb, tuple[Pred, ...]]
    repeated: tuple[Pred, ...]
    """Where a completion that the fence refused is one reported again, and accepted without a change (FENCE-05)."""
    kept_if: tuple[Pred, ...]
    """After a refused promotion the uploaded object is kept if its job meets any of these (FENCE-07)."""
    cancel_where: tuple[Pred, ...]
    writes: Mapping[Write, tuple[Case, ...]]

    # Recovery: what a sweep reads, what it checks again in the update, what it writes
    expired: tuple[Pred, ...]
    expired_again: tuple[Pred, ...]
    left_behind: tuple[Pred, ...]
    """What a starting process takes for expired (REC-05)."""
    left_behind_again: tuple[Pred, ...]
    called_off: tuple[Pred, ...]
    """Pending jobs that a parent's cancel marked (CLAIM-02)."""
    called_off_again: tuple[Pred, ...]
    lapsed: tuple[Pred, ...]
    """Pending jobs whose deadline has passed (DEAD-01)."""
    lapsed_again: tuple[Pred, ...]
    sweep_order: tuple[Order, ...]
    recover: tuple[Case, ...]
    call_off: tuple[Case, ...]
    lapse: tuple[Case, ...]

    # Errors
    policy: Mapping[str, Action]
    what: Mapping[str, str]
    """What must have happened for a code of this family (ERR-03)."""
    unknown_code: Action = "refuse"
    match_what: bool = True
    """A code of another family than what happened is refused (ERR-03)."""
    classify: Callable[[str], str | None] = classify
    backoff: Callable[[QueueSpec, int], int] = doubling
    """Seconds until a job that has had this many attempts is due again."""

    # Attempts and their artifacts
    attempt_id: Callable[[Attempt], str] = numbered
    """The name of a new attempt, where the queue names them (FENCE-03)."""
    artifact_key: Callable[[JobId, Token], str] = key_of_attempt
    """What an attempt (its job, its id) stores its artifact under (FENCE-04)."""

    # How it is done
    claim_scans: Literal["limit", "max_claims"] = "limit"
    claim_takes: Literal["max_claims", "limit"] = "max_claims"
    claim_returns: Literal["won", "tried", "first"] = "won"
    """The rows that the updates changed; those that they tried to change; the first one alone (CLAIM-06, CLAIM-07)."""
    claim_ends_idle: bool = True
    """The transaction ends also when nothing was claimed (CLAIM-09)."""
    claim_hook: Literal["before_commit", "after_commit"] = "before_commit"
    claim_undone_by: type[BaseException] = BaseException
    """What a hook must raise to undo its claims (CLAIM-12): cancellation is no `Exception`."""
    claim_commits: Literal["batch", "row"] = "batch"
    """One commit ends all of a claim's updates; or each of them but the last is committed by itself (CLAIM-12)."""
    claim_handles: Literal["scalars", "lazy"] = "scalars"
    """What a claim returns: plain values, or rows that expire with the worker's next transaction (CLAIM-13)."""
    fence_at: FenceAt = "update"
    late_fence: tuple[Pred, ...] = ()
    """What an update still checks whose fence was read before it."""
    cancel_at: Literal["update", "transaction_before"] = "update"
    """Where a cancel looks at the job's status: in its update, or in a transaction before (CANCEL-09)."""
    artifact_read: Literal["reference", "last"] = "reference"
    """What a reader is given: the object that the job refers to, or the last by key of all that its attempts stored
    (FENCE-04)."""
    silent: frozenset[Verb] = frozenset()
    """Verbs that report a refused write as accepted, unless they stand in a caller's transaction (FENCE-06)."""
    commits_for_caller: frozenset[str] = frozenset()
    """Verbs that commit inside a caller's transaction, where its end is the caller's own matter."""
    lease_ratio: int = 3
    """A lease lasts at least so many heartbeats (LEASE-01)."""
    tick_sweeps: bool = True
    start_up_sweeps: bool = True
    sweep_probes: bool = True
    """Nothing is written before something was found (REC-06)."""
    recover_at: Literal["update", "read"] = "update"
    """Where a sweep decides what becomes of an expired job: in its update, or when it reads the row (REC-07)."""
    sweep_values: Literal["row", "first"] = "row"
    """Back-off and generation come from the row itself, or from its batch's first one of its status (REC-09)."""
    sweep_counts: Literal["changed", "read"] = "changed"
    """The summary counts rows whose change was committed, or every row that was read (REC-10)."""
    sweep_hook: Literal["before_commit", "after_commit"] = "before_commit"
    sweep_hook_gets: Literal["changed", "read"] = "changed"
    """Which of a batch's ids the hook is given (REC-08)."""
    sweep_commits: Literal["batch", "row"] = "batch"
    """One commit ends all of a batch's updates; or each of them but the last is committed by itself (REC-08)."""
    sweep_undone_by: type[BaseException] = BaseException
    sweep_after_failure: Literal["next", "stop"] = "next"
    """Whether a batch whose hook raised lets the walk go on (REC-12)."""

    def lasts(self, lease: int, heartbeat: int) -> bool:
        """Whether a lease lasts long enough for its heartbeat, both in seconds (LEASE-01)."""
        return heartbeat > 0 and lease >= self.lease_ratio * heartbeat

    @classmethod
    def _path(cls, place: str) -> str:
        return f"fence.{place.value}" if isinstance(place, Verb) else place


def _ends(status: Assign, *others: Assign) -> tuple[Assign, ...]:
    """What every write stores that ends a job (TERM-03)."""
    return (status, *p.RELEASED, p.finish, *others)


HOLDER = (p.running, p.owned, p.lease_valid, p.same_generation, p.same_attempt, p.in_time)
"""The current holder with a valid lease: every condition of every write by handle (FENCE-01, DEAD-01, R§1.4)."""

CLAIMABLE = (p.pending, p.no_cancel, p.due, p.begins_in_time, p.unleased)
"""What can be claimed."""

CANCELLED = Case("cancelled", (p.cancel_requested,), _ends(p.to_cancelled))
"""A cancel request outranks whatever else would become of the job (CANCEL-05, CANCEL-06)."""

OLDEST_FIRST = (Order("oldest", "CLAIM-08", "created_at"), Order("lowest_id", "CLAIM-08", "id"))

CONTRACT = Rules(
    claim_where=CLAIMABLE,
    claim_again=CLAIMABLE,
    claim_named=(*CLAIMABLE, p.this_job),
    claim_order=OLDEST_FIRST,
    claim_set=(
        p.to_running, p.own, p.lease, p.beat, p.start, p.count_attempt, p.next_generation, p.next_attempt,
        p.unfinish, p.clear_error, p.forget_artifact,
    ),
    claim_shape=MappingProxyType({
        "pg": Shape(skip_locked=True, ends_read=False),
        "sqlite": Shape(skip_locked=False, ends_read=True),
    }),
    fence=MappingProxyType({
        Verb.RENEW: HOLDER,
        Verb.COMPLETE: (*HOLDER, p.uncancelled),  # CANCEL-06
        Verb.FAIL: HOLDER,
        Verb.SKIP: HOLDER,
        Verb.RELEASE: HOLDER,
        Verb.ACKNOWLEDGE: (*HOLDER, p.cancel_requested),  # CANCEL-04
        Verb.CHECKPOINT: HOLDER,
        Verb.PUT_ARTIFACT: HOLDER,  # FENCE-04
    }),
    repeated=(p.succeeded, p.same_attempt),
    kept_if=(p.refers, p.may_refer),
    cancel_where=(p.not_terminal,),
    writes=MappingProxyType({
        Write.RENEW: (Case("renewed", (), (p.beat, p.lease)),),
        Write.COMPLETE: (Case("succeeded", (), _ends(p.to_succeeded, p.clear_error)),),
        Write.RETRY: (
            CANCELLED,
            Case("requeue", (p.budget_left,), (p.to_pending, *p.RELEASED, p.retry_later, p.record_error)),  # ATT-02
            Case("failed", (), _ends(p.to_failed, p.record_error)),
        ),
        Write.FAIL: (CANCELLED, Case("failed", (), _ends(p.to_failed, p.record_error))),
        Write.ABANDON: (Case("cancelled", (), _ends(p.to_cancelled)),),
        Write.SKIP: (CANCELLED, Case("skipped", (), _ends(p.to_skipped, p.clear_error))),  # REL-01, TERM-01
        Write.RELEASE: (  # REL-01
            CANCELLED,
            Case("requeue", (), (p.to_pending, *p.RELEASED, p.uncount_attempt, p.retry_now)),
        ),
        Write.ACKNOWLEDGE: (Case("cancelled", (), _ends(p.to_cancelled)),),
        Write.PROMOTE: (Case("promoted", (), (p.refer,)),),
        Write.CANCEL: (
            Case("pending", (p.pending,), _ends(p.to_cancelled, p.request_cancel)),  # CANCEL-01
            Case("running", (), (p.request_cancel,)),  # CANCEL-02
        ),
        Write.CANCEL_BY_PARENT: (Case("marked", (), (p.request_cancel,)),),
    }),
    expired=(p.running, p.lease_expired),
    expired_again=(p.running, p.lease_expired, p.same_lease),
    left_behind=(p.running, p.expired_or_own),
    left_behind_again=(p.running, p.expired_or_own, p.same_lease),
    called_off=(p.pending, p.cancel_requested),
    called_off_again=(p.pending, p.cancel_requested),
    lapsed=(p.pending, p.overdue),
    lapsed_again=(p.pending, p.overdue),
    sweep_order=OLDEST_FIRST,
    recover=(
        Case("cancelled", (p.cancel_requested,), _ends(p.to_cancelled, p.next_generation)),
        Case("overdue", (p.overdue,), _ends(p.to_failed, p.miss_deadline, p.next_generation)),  # DEAD-01
        Case(
            "requeue", (p.budget_left,), (p.to_pending, *p.RELEASED, p.unfinish, p.retry_later, p.next_generation),
        ),
        Case("failed", (), _ends(p.to_failed, p.give_up, p.next_generation)),
    ),
    call_off=(Case("cancelled", (), _ends(p.to_cancelled)),),
    lapse=(Case("failed", (), _ends(p.to_failed, p.miss_deadline)),),
    policy=MappingProxyType({
        "LEASE": "retry", "INFRA": "listed", "LIMIT": "listed",
        "CONTENT": "fail", "CANCEL": "abandon", "FENCE": "refuse",
    }),
    what=MappingProxyType(WHAT),
)  # fmt: skip
"""The contract, kept."""
