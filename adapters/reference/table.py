"""The tables of a lease queue, from its spec: the standard columns of R§2 under the queue's own names.

Every column's `.key` is its standard name, so the rules read `c.error_code` whatever the queue calls it. This
module must never know of verbs or of values.
"""

from __future__ import annotations

from typing import Any

from fencepost.model.queues import QueueSpec
from sqlalchemy import Column, Index, Integer, MetaData, String, Table
from sqlalchemy.types import TypeEngine

from .instant import Instant

Kind = TypeEngine[Any] | type[TypeEngine[Any]]


def table_for(spec: QueueSpec, metadata: MetaData) -> Table:
    """The queue's table of jobs, added to `metadata`, with the store of its artifacts where it has any.

    Two standard names that the queue calls alike are one column, whose `.key` is the first of them.
    """
    own: dict[str, Column[Any]] = {}
    for standard, (kind, null) in _kinds(spec).items():
        name = spec.column(standard)
        if name not in own:
            own[name] = Column(name, kind, key=standard, nullable=null, primary_key=standard == "id")
    table = Table(f"{spec.key}_jobs", metadata, *own.values())
    Index(f"ix_{table.name}_queue", table.c.status, table.c.created_at)
    if spec.artifacts:
        Table(
            _store(spec), metadata, Column("key", String, primary_key=True), Column("attempt", String, nullable=False)
        )
    return table


def columns_of(spec: QueueSpec, table: Table) -> dict[str, Column[Any]]:
    """The columns of the queue's table by every standard name that it has."""
    own = {column.name: column for column in table.c}
    return {standard: own[spec.column(standard)] for standard in _kinds(spec)}


def objects_of(spec: QueueSpec, table: Table) -> Table | None:
    """The store of the queue's artifacts: what is under each key, and which attempt made it. None if it has none."""
    return table.metadata.tables[_store(spec)] if spec.artifacts else None


def _store(spec: QueueSpec) -> str:
    return f"{spec.key}_objects"


def _kinds(spec: QueueSpec) -> dict[str, tuple[Kind, bool]]:
    """By standard name, for each column that the queue has (R§2): its type, and whether it may be null."""
    kinds: dict[str, tuple[Kind, bool]] = {
        "id": (Integer, False),
        "created_at": (Instant, False),
        "status": (String, False),
        "worker_id": (String, True),
        "lease_expires_at": (Instant, True),
        "heartbeat_at": (Instant, True),
        "started_at": (Instant, True),
        "finished_at": (Instant, True),
        "attempt_count": (Integer, False),
        "max_attempts": (Integer, False),
    }
    if spec.cancels:
        kinds["cancel_requested_at"] = Instant, True
    if spec.stores_code:
        kinds["error_code"] = String, True
    if spec.fence == "generation":
        kinds["lease_generation"] = Integer, False
    if spec.fence == "attempt_id":
        kinds["attempt_id"] = String, True
    if spec.backs_off:
        kinds["next_attempt_at"] = Instant, True
    if spec.deadline:
        kinds["deadline_at"] = Instant, True
    if spec.artifacts:
        kinds["artifact_key"] = String, True
    return kinds
