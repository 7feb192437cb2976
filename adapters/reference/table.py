"""The table of a lease queue, from its spec: the standard columns of R§2 under the queue's own names.

Every column's `.key` is its standard name, so the rules read `c.error_code` whatever the queue calls it. This
module must never know of verbs or of values.
"""

from __future__ import annotations

from typing import Any

from fencepost.model.queues import QueueSpec
from sqlalchemy import Column, Index, Integer, MetaData, String, Table
from sqlalchemy.types import TypeEngine

from .instant import Instant


def table_for(spec: QueueSpec, metadata: MetaData) -> Table:
    """The queue's table, added to `metadata`.

    `lease_generation` exists only where a claim mints a token, `next_attempt_at` only where a retry backs off (R§2).
    """

    def column(standard: str, kind: TypeEngine[Any] | type[TypeEngine[Any]], null: bool = True) -> Column[Any]:
        return Column(spec.column(standard), kind, key=standard, nullable=null)

    columns = [
        Column("id", Integer, primary_key=True),
        column("created_at", Instant, null=False),
        column("status", String, null=False),
        column("worker_id", String),
        column("lease_expires_at", Instant),
        column("heartbeat_at", Instant),
        column("started_at", Instant),
        column("finished_at", Instant),
        column("attempt_count", Integer, null=False),
        column("max_attempts", Integer, null=False),
        column("cancel_requested_at", Instant),
        column("error_code", String),
    ]
    if spec.has_token:
        columns.append(column("lease_generation", Integer, null=False))
    if spec.backs_off:
        columns.append(column("next_attempt_at", Instant))
    table = Table(f"{spec.key}_jobs", metadata, *columns)
    Index(f"ix_{table.name}_queue", table.c.status, table.c.created_at)
    return table
