"""Which statements of a claim CLAIM-11 and CLAIM-14 forbid: by hand, and as right and wrong runtimes send them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

import pytest
from fencepost.adapters.contract import HookRun
from fencepost.adapters.mutants.mutant import but
from fencepost.adapters.reference.adapter import PostgresAdapter, ReferenceActor, ReferenceAdapter, SqliteAdapter
from fencepost.adapters.reference.claims import claim
from fencepost.adapters.reference.rules import CONTRACT, Shape
from fencepost.adapters.reference.server import PostgresSource
from fencepost.conformance.interleave.engine import Certified, certify
from fencepost.conformance.interleave.gate import picks_rows
from fencepost.conformance.interleave.played import Statement
from fencepost.conformance.interleave.programs import PROGRAMS
from fencepost.conformance.interleave.shape import Shaped, shape_of
from fencepost.model import commands as c
from fencepost.model import outcomes as o
from fencepost.model.queues import BACKFILL
from sqlalchemy import Table, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

ONE, TWO = o.Claimed((c.Handle(1, 1),)), o.Claimed((c.Handle(1, 1), c.Handle(2, 1)))
TAKE = "UPDATE jobs SET status = 'running' WHERE id = 1 AND status = 'pending'"
TAKE_FREE = "WITH free AS (SELECT id FROM jobs FOR UPDATE SKIP LOCKED) UPDATE jobs SET id = 1 FROM free"


def sent(kinds: str) -> list[Statement]:
    """Statements by keyword; one with an exclamation mark failed in a conflict, `UPDATE0` changed no row."""
    made = []
    for token, word in enumerate(kinds.split(", ")):
        kind = word.rstrip("!0")
        made.append(Statement(token, 1, kind, TAKE, 0 if word.endswith("0") else None))
        made[-1].failed = made[-1].conflict = word.endswith("!")
    return made


def clause_of(outcome: o.Outcome, statements: list[Statement], row_locks: bool, enough: bool = False) -> str | None:
    found = shape_of([Shaped(outcome, statements)], row_locks=row_locks, enough=enough)
    return None if found is None else found.clause


@pytest.mark.parametrize(
    ("outcome", "kinds"),
    [
        (ONE, "SELECT, COMMIT, UPDATE, COMMIT"),
        (TWO, "SELECT, COMMIT, UPDATE, UPDATE, COMMIT"),
        (o.Claimed(), "SELECT, ROLLBACK"),
        (ONE, "SELECT, COMMIT, UPDATE!, ROLLBACK, SELECT, COMMIT, UPDATE, COMMIT"),
        (TWO, "SELECT, COMMIT, UPDATE, UPDATE!, ROLLBACK, SELECT, COMMIT, UPDATE, UPDATE, COMMIT"),
        (ONE, "SELECT, COMMIT, UPDATE0, COMMIT, SELECT, COMMIT, UPDATE, COMMIT"),
        (TWO, "SELECT, COMMIT, UPDATE0, COMMIT, SELECT, COMMIT, UPDATE, UPDATE, COMMIT"),
        (ONE, "SELECT, COMMIT, UPDATE, COMMIT, SELECT, COMMIT, UPDATE, COMMIT"),
        (ONE, "SELECT, COMMIT, BEGIN IMMEDIATE, UPDATE, COMMIT"),
        (ONE, "SELECT, COMMIT, UPDATE, SELECT, COMMIT"),
        (TWO, "SELECT, COMMIT, UPDATE, SELECT, UPDATE, COMMIT"),
        (ONE, "UPDATE, COMMIT"),
        (ONE, "PRAGMA, SELECT, COMMIT, UPDATE, COMMIT, SELECT, COMMIT"),
    ],
)
def test_where_writers_exclude_each_other_a_claim_may_try_again_and_read_once_it_has_the_lock(
    outcome: o.Outcome, kinds: str
) -> None:
    assert clause_of(outcome, sent(kinds), row_locks=False) is None


@pytest.mark.parametrize(
    ("outcome", "kinds"),
    [
        (ONE, "SELECT, UPDATE, COMMIT"),
        (ONE, "BEGIN IMMEDIATE, SELECT, UPDATE, COMMIT"),
        (ONE, "SELECT, COMMIT, SELECT, UPDATE, COMMIT"),
        (o.CONFLICT, "SELECT, UPDATE!, ROLLBACK"),
        (TWO, "SELECT, COMMIT, UPDATE, COMMIT, UPDATE, COMMIT"),
    ],
)
def test_where_writers_exclude_each_other_no_claim_updates_what_it_has_just_read_or_commits_piece_by_piece(
    outcome: o.Outcome, kinds: str
) -> None:
    assert clause_of(outcome, sent(kinds), row_locks=False) == "CLAIM-11"


def test_where_rows_are_locked_an_update_by_id_is_never_in_vain() -> None:
    took, missed = Statement(0, 1, "UPDATE", TAKE, 1), Statement(0, 1, "UPDATE", TAKE, 0)
    assert clause_of(ONE, [took], row_locks=True) is None
    assert clause_of(o.Claimed(), [missed], row_locks=True) == "CLAIM-11"
    assert clause_of(o.Claimed(), [Statement(0, 1, "UPDATE", TAKE_FREE, 0)], row_locks=True) is None
    waited = Statement(0, 1, "UPDATE", TAKE_FREE, 1, waited=True)
    assert clause_of(ONE, [waited], row_locks=True) == "CLAIM-11"
    assert (picks_rows(TAKE), picks_rows(TAKE_FREE)) == (False, True)


@pytest.mark.parametrize("nothing", [o.Claimed(), o.CONFLICT], ids=["empty", "conflict"])
def test_a_claim_that_gets_nothing_where_there_was_enough_is_starved_however_it_says_so(nothing: o.Outcome) -> None:
    assert clause_of(nothing, [], row_locks=True, enough=True) == "CLAIM-14"
    assert clause_of(nothing, [], row_locks=True) is None
    assert clause_of(ONE, [], row_locks=True, enough=True) is None


# Whole runtimes ------------------------------------------------------------------------------------------------------


class Retrying(ReferenceActor):
    """Claims once more after a conflict of its own."""

    async def claim(self, command: c.Claim, now: int) -> o.Outcome:
        answer = await super().claim(command, now)
        return await super().claim(command, now) if answer is o.CONFLICT else answer


class Looking(HookRun):
    """A hook that looks at the rows in the claim's own session, before the commit."""

    def __init__(self, connection: AsyncConnection, jobs: Table) -> None:
        super().__init__(c.Hook("ok"))
        self.look = partial(connection.execute, select(jobs.c.id))

    async def __call__(self, jobs: tuple[c.JobId, ...]) -> None:
        await self.look()


class Reading(ReferenceActor):
    """Claims with such a hook."""

    async def claim(self, command: c.Claim, now: int) -> o.Outcome:
        hook = Looking(await self.connect(), self._runtime.table)
        answer = await self._run(lambda on, asked, at: claim(self._runtime, on, asked, at, hook), command, now)
        return o.Claimed(answer.handles) if isinstance(answer, o.Claimed) else answer  # nobody asked for a hook


class OneStatement(ReferenceActor):
    """Claims as River does: by one update of what it locks in the same statement."""

    async def claim(self, command: c.Claim, now: int) -> o.Outcome:
        connection, table = await self.connect(), self._runtime.table
        head = (
            select(table.c.id)
            .where(table.c.status == "pending", table.c.cancel_requested_at.is_(None))
            .order_by(table.c.created_at, table.c.id)
            .limit(command.max_claims)
            .with_for_update(skip_locked=True)
        )
        taken = (
            update(table)
            .where(table.c.id.in_(head))
            .values(
                status="running", worker_id=c.worker_name(command.worker), started_at=now, heartbeat_at=now,
                lease_expires_at=now + BACKFILL.lease_seconds, attempt_count=table.c.attempt_count + 1,
            )
            .returning(table.c.id)
        )  # fmt: skip
        jobs = sorted(row.id for row in await connection.execute(taken))
        await connection.commit()
        return o.Claimed(tuple(c.Handle(job, command.worker) for job in jobs))


class PieceByPiece(ReferenceActor):
    """Commits every job that it takes."""

    async def claim(self, command: c.Claim, now: int) -> o.Outcome:
        each = replace(command, limit=1, max_claims=1)
        taken: tuple[c.Handle, ...] = ()
        for _ in range(command.max_claims):
            answer = await super().claim(each, now)
            taken += answer.handles if isinstance(answer, o.Claimed) else ()
        return o.Claimed(taken)


class Conflicting(ReferenceActor):
    """Calls an empty claim a conflict."""

    async def claim(self, command: c.Claim, now: int) -> o.Outcome:
        answer = await super().claim(command, now)
        return o.CONFLICT if answer == o.Claimed() else answer


@pytest.fixture(scope="module")
def runner() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as one:
        yield one


def raced(
    runner: asyncio.Runner,
    adapter: ReferenceAdapter,
    actor: Callable[[ReferenceAdapter, int], ReferenceActor],
    program: int,
    most: int | None = None,
) -> Certified:
    async def whole() -> Certified:
        await adapter.open(BACKFILL)
        try:
            for worker in (1, 2):
                adapter._actors[worker] = actor(adapter, worker)
            return await certify(adapter, BACKFILL, PROGRAMS[program], most=most)
        finally:
            await adapter.close()

    return runner.run(whole())


ONE_JOB, TWO_JOBS, TWO_EACH = range(3)


@pytest.mark.parametrize("program", [ONE_JOB, TWO_EACH])
@pytest.mark.parametrize("actor", [Retrying, Reading])
def test_a_right_runtime_of_another_shape_is_certified_on_sqlite(
    runner: asyncio.Runner, actor: type[ReferenceActor], program: int
) -> None:
    found = raced(runner, SqliteAdapter(), actor, program)
    assert (found.violation, found.exhaustive) == (None, True)


@pytest.mark.parametrize("program", [ONE_JOB, TWO_JOBS])
@pytest.mark.parametrize("actor", [OneStatement, Reading])
def test_a_right_runtime_of_another_shape_is_certified_on_postgres(
    runner: asyncio.Runner, actor: type[ReferenceActor], program: int
) -> None:
    found = raced(runner, PostgresAdapter(source=PostgresSource()), actor, program)
    assert (found.violation, found.exhaustive) == (None, True)


def test_a_claim_that_reads_and_updates_in_one_transaction_is_found_on_sqlite(runner: asyncio.Runner) -> None:
    rules = but("claim_shape.sqlite", Shape(skip_locked=False, ends_read=False))(CONTRACT)
    found = raced(runner, SqliteAdapter(rules=rules), ReferenceActor, ONE_JOB)
    assert found.violation is not None and found.violation.clause == "CLAIM-11"
    assert found.violation.why.endswith("it had read: SELECT, UPDATE, COMMIT")


def test_a_claim_that_commits_each_job_by_itself_is_found_on_sqlite(runner: asyncio.Runner) -> None:
    found = raced(runner, SqliteAdapter(), PieceByPiece, TWO_EACH, most=200)
    assert found.violation is not None and found.violation.clause == "CLAIM-11"
    assert "more than one transaction" in found.violation.why


def test_a_claim_that_is_starved_by_a_conflict_is_found_on_postgres(runner: asyncio.Runner) -> None:
    limited = Shape(skip_locked=True, ends_read=False, limits_first=True)
    adapter = PostgresAdapter(rules=but("claim_shape.pg", limited)(CONTRACT), source=PostgresSource())
    found = raced(runner, adapter, Conflicting, TWO_JOBS)
    assert found.violation is not None and found.violation.clause == "CLAIM-14"
