"""Hostile adapters: each ends in a harness verdict or under the right clause; never in a pass or as another's fault."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterator
from pathlib import Path

import hostile
import pytest
from fencepost.adapters.contract import Adapter, Capabilities
from fencepost.adapters.reference.adapter import ReferenceActor, SqliteAdapter
from fencepost.adapters.sync import SyncAdapter, served
from fencepost.conformance.controls import LEAK
from fencepost.model import commands as c
from fencepost.model import outcomes as o
from runs import TINY
from trying import broken, faulted, tried


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run leaves its files below the folder that it was started in."""
    monkeypatch.chdir(tmp_path)


# --------------------------------------------------------------------------------------------- it hands over nonsense


@pytest.mark.parametrize(
    ("verb", "answer", "said"),
    [
        ("complete", None, "complete returned None; return Accepted or Rejected"),
        ("complete", True, "complete returned True; return Accepted or Rejected"),
        ("complete", o.Accepted(None), "complete: Accepted: status is None, and must be str"),  # type: ignore[arg-type]
        ("enqueue", 7, "enqueue returned 7; return Enqueued"),
        ("enqueue", o.Enqueued(None), "enqueue: Enqueued: job is None, and must be int or str"),  # type: ignore[arg-type]
        ("claim", o.Claimed(("a job",)), "claim: Claimed: its handles hold 'a job'; let each be a Handle"),  # type: ignore[arg-type]
        ("claim", o.Claimed(7), "claim: Claimed: handles is 7, and must be a tuple of Handle"),  # type: ignore[arg-type]
        ("recover", o.Recovered(((1, "pending"),), 1), "recover: its rows hold (1, 'pending')"),  # type: ignore[arg-type]
        ("recover", o.Recovered((), "none"), "recover: Recovered: count is 'none', and must be int"),  # type: ignore[arg-type]
    ],
)
def test_a_wrong_type_is_told_with_what_to_return(verb: str, answer: object, said: str) -> None:
    assert said in faulted(tried(hostile.answering(verb, lambda _: answer)))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda rows: list(rows.values()), "snapshot returned [Row(status='pending'"),
        (lambda rows: {job: tuple(row) for job, row in rows.items()}, "is ('pending', None"),
        (lambda rows: {job: row._asdict() for job, row in rows.items()}, "is {'status': 'pending'"),
        (hostile.dated, "expires is datetime.datetime("),
        (lambda rows: {job: row._replace(attempts=str(row.attempts)) for job, row in rows.items()}, "attempts is '0'"),
    ],
    ids=["list", "tuples", "dicts", "dates", "texts"],
)
def test_rows_of_wrong_types_are_told_with_what_they_must_be(change: object, said: str) -> None:
    assert said in faulted(tried(hostile.showing(change)))  # type: ignore[arg-type]


def test_a_list_within_an_outcome_is_told_for_what_it_is() -> None:
    fault = faulted(tried(hostile.answering("claim", lambda claimed: o.Claimed(list(claimed.handles)))))  # type: ignore[arg-type]
    assert "claim raised TypeError" in fault and "tuples of them in place of lists" in fault


def test_a_verb_that_was_forgotten_is_named_with_the_two_ways_out() -> None:
    fault = faulted(tried(hostile.with_actor(hostile.Forgetful)))
    assert "Forgetful has no verb 'renew'; write `def renew(self, command, now)`, or declare" in fault


# ------------------------------------------------------------------------------------------------------------ it lies


def test_hooks_that_are_declared_and_never_called_break_their_clause() -> None:
    assert broken(tried(hostile.hooked(hostile.Deaf))) == ["CLAIM-12"]


def test_a_probe_that_sees_nothing_is_found_out() -> None:
    fault = faulted(tried(hostile.hooked(hostile.Blind, "probe")))
    assert "probe sees no open transaction while a claim's hook runs in one" in fault


def test_a_probe_that_sees_what_is_open_is_believed() -> None:
    outcome = tried(hostile.hooked(hostile.Seeing, "probe"))
    assert broken(outcome) == []
    assert [pair.verdict for pair in outcome.result.clauses if pair.id == "CLAIM-09"] == ["pass"]


def declared(base: type[Adapter], **more: object) -> type[Adapter]:
    capabilities = dataclasses.replace(base.capabilities, **more)  # type: ignore[arg-type]
    return type("Declared", (base,), {"capabilities": capabilities})


PLAIN = served(hostile.Plain)
ONLY = PLAIN.capabilities


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (declared(PLAIN, row_locks=True), "row_locks is declared with gate='none', which sees none"),
        (declared(SqliteAdapter, row_locks=True), "row_locks is declared with gate='sqlite', which sees none"),
        (declared(PLAIN, gate="sqlite"), "gate is 'sqlite', and what goes with it is missing"),
        (declared(PLAIN, counts_statements=True), "recover moved a job and says dml=None; count the statements"),
        (declared(PLAIN, clock="override"), "write `def advance(self, seconds)`"),
        (declared(PLAIN, clock="sundial"), "clock is 'sundial'; declare 'argument'"),
        (declared(PLAIN, without=ONLY.without | {"complet"}), "there is no verb 'complet'; did you mean 'complete'?"),
        (declared(PLAIN, without=ONLY.without | {"claim"}), "`without` names 'claim'; write it"),
        (hostile.frozen(), "clock is 'override', and after advance(7) a claim wrote the time 0 still"),
        (hostile.with_actor(hostile.Epochal), "that is no time since the beginning. Give your queue the `now`"),
    ],
)
def test_a_declaration_that_is_not_true_is_found_out(make: type[Adapter], said: str) -> None:
    assert said in faulted(tried(make))


# ------------------------------------------------------------------------------------------------- it leaves things


@pytest.fixture
def leaked() -> Iterator[None]:
    yield
    while hostile.Leaking.leaked:
        hostile.Leaking.leaked.pop().close()


@pytest.mark.usefixtures("leaked")
def test_what_leaks_is_told_by_a_run_of_races_alone_too() -> None:
    class LeakingActor(ReferenceActor):
        async def complete(self, command: c.Complete, now: int) -> o.Outcome:
            hostile.Leaking.leaked += [Path(os.devnull).open() for _ in range(LEAK)]  # noqa: SIM115
            return await super().complete(command, now)

    class Leaking(SqliteAdapter):
        def actor(self, worker: int) -> ReferenceActor:
            return self._actors.setdefault(worker, LeakingActor(self, worker))

    fault = faulted(tried(Leaking, "CANCEL-09", queue="backfill"))
    assert "more files and connections are open than at the start" in fault


@pytest.mark.usefixtures("leaked")
def test_connections_that_nobody_closes_are_counted() -> None:
    fault = faulted(tried(hostile.with_actor(hostile.Leaking)))
    assert "more files and connections are open than at the start; close what `reset`, a verb" in fault


def test_a_connection_that_closing_leaves_open_is_counted() -> None:
    make, left = hostile.unclosing()
    try:
        fault = faulted(tried(make))
    finally:
        for connection in left:
            connection.close()
    assert "after it was opened and closed 2 times more; let `close` close" in fault


def test_jobs_that_a_reset_leaves_are_told() -> None:
    fault = faulted(tried(served(hostile.Unreset)))
    assert "let `reset` remove all jobs" in fault


def test_a_transaction_that_is_left_open_makes_the_next_verb_raise() -> None:
    fault = faulted(tried(hostile.with_actor(hostile.OpenEnded)))
    assert "raised OperationalError: database is locked" in fault
    assert "a call before this one has left its transaction open" in fault


def test_a_transaction_that_is_left_open_breaks_its_clause_where_conflicts_are_answers() -> None:
    make = hostile.with_actor(hostile.Impatient, reset=SyncAdapter.reset)
    assert broken(tried(make)) == ["CLAIM-09"]


# ------------------------------------------------------------------------------------------------------------ it wavers


def test_answers_that_waver_fail_under_the_clause_that_they_break() -> None:
    assert broken(tried(hostile.with_actor(hostile.Wavering), "FENCE-01")) == ["FENCE-01"]


# ------------------------------------------------------------------------------------------- it can more than it says


def test_what_is_there_and_not_declared_is_told() -> None:
    make = declared(PLAIN, without=ONLY.without | {"renew", "fail"})
    outcome = tried(make, "CLAIM-01")
    assert outcome.result.unclaimed == (
        "fail: there, although `without` names it",
        "renew: there, although `without` names it",
    )
    assert outcome.result.verdict == "pass"
    assert tried(PLAIN, "CLAIM-01").result.unclaimed == ()


def test_the_plain_adapter_itself_is_right() -> None:
    assert broken(tried(PLAIN)) == []
    assert TINY.minimum == 1 and isinstance(ONLY, Capabilities)
