"""The rules as values: what is not there cannot be changed, and every change reaches the statements."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest
from embedded import EMBEDDED
from fencepost.adapters.reference import predicates as p
from fencepost.adapters.reference.adapter import PostgresAdapter, SqliteAdapter
from fencepost.adapters.reference.rules import CONTRACT, Rules, Shape, Verb, Write
from fencepost.adapters.reference.runtime import Runtime
from fencepost.adapters.reference.server import PostgresSource
from fencepost.adapters.reference.statements import Statement
from fencepost.adapters.reference.table import table_for
from fencepost.adapters.reference.terms import Pred
from fencepost.model import commands as c
from fencepost.model import outcomes as o
from fencepost.model.queues import BUILD, MUTATION, SCREENSHOT
from sqlalchemy import MetaData, select

PREDICATES = (
    "claim_where", "claim_again", "claim_named", "repeated", "kept_if", "cancel_where", "expired", "expired_again",
    "left_behind", "left_behind_again", "called_off", "called_off_again", "lapsed", "lapsed_again",
    *(f"fence.{verb}" for verb in Verb),
)  # fmt: skip
CASES = ("recover", "call_off", "lapse", *(f"writes.{write}" for write in Write))
ANY_END = BUILD.terminal | MUTATION.terminal | SCREENSHOT.terminal
QUEUES = (
    MUTATION, SCREENSHOT, BUILD,
    # Nobody's yet: together with the others they have every two columns that one statement may name.
    replace(BUILD, cancels=True, stores_code=True, backoff_seconds=60, terminal=ANY_END),
    replace(MUTATION, deadline=True, artifacts=True, terminal=ANY_END),
)  # fmt: skip


def texts(rules: Rules) -> Iterator[str]:
    """All statements on PostgreSQL, parameters' values included, queue by queue."""
    for queue in QUEUES:
        statements = Runtime(queue, table_for(queue, MetaData()), "pg", rules).statements.all()
        yield "\n".join(f"{name}: {item} {sorted(literals(item))}" for name, item in sorted(statements.items()))


def literals(statement: Statement) -> list[str]:
    return [str(bind.value) for bind in statement.sql.compile().binds.values() if not bind.required]


UNCHANGED = tuple(texts(CONTRACT))


def changed(rules: Rules) -> bool:
    """Whether a statement of any queue is another than the contract's."""
    return any(text != unchanged for text, unchanged in zip(texts(rules), UNCHANGED, strict=False))


def dropped() -> Iterator[tuple[str, str]]:
    for place in PREDICATES:
        yield from ((place, term.name) for term in CONTRACT.at(place))
    yield from (("claim_set", term.name) for term in CONTRACT.claim_set)
    for place in CASES:
        for case in CONTRACT.at(place):
            yield from ((f"{place}.{case.name}", term.name) for term in case.set)
            yield from ((f"{place}.{case.name}.when", term.name) for term in case.when)


@pytest.mark.parametrize(("place", "name"), tuple(dropped()))
def test_every_dropped_term_changes_a_statement(place: str, name: str) -> None:
    assert changed(CONTRACT.without(place, name))


CHANGES: list[Callable[[Rules], Rules]] = [
    lambda rules: rules.without(Verb.RENEW, p.lease_valid),
    lambda rules: rules.shifted("fence.complete", "lease_valid"),
    lambda rules: rules.shifted("expired", "lease_expired"),
    lambda rules: rules.swapped("recover", "cancelled", "requeue"),
    lambda rules: rules.swapped("recover", "overdue", "requeue"),
    lambda rules: rules.shifted("fence.put_artifact", "in_time"),
    lambda rules: rules.shifted("lapsed", "overdue"),
    lambda rules: rules.shifted("claim_where", "unleased"),
    lambda rules: rules.swapped("claim_order", "oldest", "lowest_id"),
    lambda rules: rules.without("recover", "cancelled"),
    lambda rules: rules.added("recover.requeue", p.count_attempt),
    lambda rules: rules.replaced("writes.acknowledge.cancelled", "status", p.to_failed),
    lambda rules: rules.but("expired_again", ()),
    lambda rules: rules.but(Verb.FAIL, ()),
    lambda rules: rules.but("claim_shape.pg", Shape(skip_locked=False, ends_read=True)),
    lambda rules: rules.but("claim_shape.pg", Shape(skip_locked=False, ends_read=False, subselect=True)),
]


@pytest.mark.parametrize("change", CHANGES)
def test_every_change_reaches_the_statements_and_leaves_the_contract_alone(change: Callable[[Rules], Rules]) -> None:
    assert changed(change(CONTRACT)) and not changed(CONTRACT)


NOT_THERE: list[Callable[[Rules], Rules]] = [
    lambda rules: rules.without(Verb.RENEW, p.no_cancel),
    lambda rules: rules.without("claim_were", "pending"),
    lambda rules: rules.without("fence", "running"),
    lambda rules: rules.without("fence.reap", "running"),
    lambda rules: rules.without("tick_sweeps", "running"),
    lambda rules: rules.without("recover.requeue.then", "status"),
    lambda rules: rules.without("recover.lost", "status"),
    lambda rules: rules.without("claim_where.pending", "status"),
    lambda rules: rules.without("claim_where", "pending").without("claim_where", "pending"),
    lambda rules: rules.shifted("claim_set", "status"),
    lambda rules: rules.replaced("claim_set", "error_message", p.clear_error),
    lambda rules: rules.added("claim_where", p.pending),
    lambda rules: rules.swapped("recover", "cancelled", "expired"),
    lambda rules: rules.but("tick_sweeps", True),
    lambda rules: rules.but("policy.INFRA", "listed"),
    lambda rules: rules.but("policy.NONE", "fail"),
    lambda rules: rules.but("tick", False),
]


@pytest.mark.parametrize("change", NOT_THERE)
def test_what_is_not_there_cannot_be_changed(change: Callable[[Rules], Rules]) -> None:
    with pytest.raises(LookupError):
        change(CONTRACT)


def test_a_predicate_without_a_bound_cannot_be_shifted() -> None:
    with pytest.raises(LookupError, match="pending"):
        changed(CONTRACT.shifted("claim_where", "pending"))


def test_every_predicate_of_a_claim_is_repeated_in_its_update() -> None:
    assert CONTRACT.claim_again == CONTRACT.claim_where


def test_a_shifted_lease_is_valid_at_its_expiry() -> None:
    table = table_for(MUTATION, MetaData())
    runtime = Runtime(MUTATION, table, "pg", CONTRACT.shifted(Verb.RENEW, p.lease_valid))
    assert "lease_expires_at >= %(now)s" in str(runtime.statements.write[Write.RENEW])


def test_a_changed_rule_changes_what_a_database_does() -> None:
    async def story() -> None:
        adapter = SqliteAdapter(rules=CONTRACT.without(Verb.RENEW, p.lease_valid))
        await adapter.open(MUTATION)
        await adapter.actor(0).perform(c.Enqueue(), 0)
        claimed = await adapter.actor(1).perform(c.Claim(1), 0)
        assert isinstance(claimed, o.Claimed)
        assert await adapter.actor(1).perform(c.Renew(claimed.handles[0]), 45) == o.Accepted("running")
        assert isinstance(await adapter.actor(1).perform(c.Complete(claimed.handles[0]), 90), o.Rejected)
        await adapter.close()

    asyncio.run(story())


def test_a_lost_write_conflict_is_an_outcome_without_effect() -> None:
    async def story() -> None:
        adapter = SqliteAdapter(busy_timeout=0)
        await adapter.open(MUTATION)
        await adapter.actor(0).perform(c.Enqueue(), 0)
        writer = await adapter.actor(2).connect()
        await writer.execute(adapter.runtime.table.update().values(heartbeat_at=1))
        assert await adapter.actor(1).perform(c.Claim(1), 0) is o.CONFLICT
        assert await adapter.actor(0).perform(c.Probe(), 0) == o.Probed(1, 1)
        await writer.rollback()
        assert isinstance(await adapter.actor(1).perform(c.Claim(1), 0), o.Claimed)
        await adapter.close()

    asyncio.run(story())


def test_a_locked_head_is_skipped() -> None:
    async def story() -> None:
        adapter = PostgresAdapter(source=PostgresSource())
        await adapter.open(MUTATION)
        head = await adapter.actor(0).perform(c.Enqueue(), 0)
        follower = await adapter.actor(0).perform(c.Enqueue(), 0)
        assert isinstance(head, o.Enqueued) and isinstance(follower, o.Enqueued)
        table = adapter.runtime.table
        other = await adapter.actor(2).connect()
        await other.execute(select(table.c.id).where(table.c.id == head.job).with_for_update())
        claimed = await adapter.actor(1).perform(c.Claim(1), 0)
        assert claimed == o.Claimed((c.Handle(follower.job, 1, 1),))
        await other.rollback()
        await adapter.close()

    asyncio.run(story())


def test_a_cancelled_task_is_no_outcome() -> None:
    async def story() -> None:
        adapter = PostgresAdapter(source=EMBEDDED)
        await adapter.open(MUTATION)
        await adapter.actor(0).perform(c.Enqueue(), 0)
        claim = asyncio.ensure_future(adapter.actor(1).perform(c.Claim(1, hook=c.Hook("cancel")), 0))
        assert isinstance(await claim, o.HookRaised)
        claim = asyncio.ensure_future(adapter.actor(1).perform(c.Claim(1), 0))
        await asyncio.sleep(0)
        claim.cancel()
        with pytest.raises(asyncio.CancelledError):
            await claim
        assert [row.status for row in (await adapter.snapshot()).values()] == ["pending"]
        await adapter.close()

    asyncio.run(story())


def test_predicates_carry_the_clause_they_keep() -> None:
    named = [term for term in vars(p).values() if isinstance(term, Pred)]
    assert len({pred.name for pred in named}) == len(named)
    assert all(vars(p)[pred.name] is pred for pred in named)
