"""The queues of R§5 as data. A queue is a row here; code reads the row and never asks for a queue by name."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

Fence: TypeAlias = Literal["owner", "generation", "attempt_id"]

PENDING = "pending"
RUNNING = "running"
SUCCEEDED = "succeeded"
FAILED = "failed"
CANCELLED = "cancelled"

OLD_SPELLINGS = {
    "completed": SUCCEEDED, "success": SUCCEEDED, "done": SUCCEEDED, "error": FAILED,
    "cancelled": CANCELLED, "canceled": CANCELLED,
}  # fmt: skip
"""Spellings that some queue has used for a terminal status (R§3), by the standard one."""


@dataclass(frozen=True, slots=True, eq=False)
class QueueSpec:
    """What one lease queue declares (R§2, R§5): vocabulary, fence, lease, retry and limits."""

    key: str
    section: str
    fence: Fence = "owner"
    lease_seconds: int = 300
    heartbeat_seconds: int = 30
    cancelled: str = CANCELLED
    columns: tuple[tuple[str, str], ...] = ()
    """(standard name, own name) of the columns that differ."""
    backoff_seconds: int | None = None
    """Base of the exponential back-off; None: a retried job is due at once."""
    retryable_codes: frozenset[str] = frozenset()
    """INFRA codes that are retried (ERR-02)."""
    terminal: frozenset[str] = frozenset({SUCCEEDED, FAILED, CANCELLED})

    has_token: bool = field(init=False)
    """Whether a claim mints a fence token beyond the owner."""
    backs_off: bool = field(init=False)
    """Whether a retried job is due only later (CLAIM-03, ATT-02)."""

    def __post_init__(self) -> None:
        # Read in every step, so kept.
        object.__setattr__(self, "has_token", self.fence != "owner")
        object.__setattr__(self, "backs_off", self.backoff_seconds is not None)

    def column(self, standard: str) -> str:
        """The queue's own name of a standard column."""
        return dict(self.columns).get(standard, standard)

    def spell(self, status: str) -> str:
        """The stored spelling of a standard status (TERM-04)."""
        return self.cancelled if status == CANCELLED else status


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

QUEUES: dict[str, QueueSpec] = {q.key: q for q in (BACKFILL, MUTATION)}
"""The queues this version builds."""

ALL_QUEUES: tuple[str, ...] = (
    "build", "screenshot", "backfill", "image", "page", "component", "external_task", "external_batch",
    "mutation", "render", "ai_run",
)  # fmt: skip
"""Every key of contract.md §2, built or not."""
