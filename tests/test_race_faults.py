"""What becomes of a race that can't be played, certified or shortened: an error that says what to do, nothing lost."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from fencepost.adapters.contract import AdapterError
from fencepost.adapters.mutants.catalogue import MUTANTS
from fencepost.adapters.reference.adapter import PostgresAdapter, ReferenceActor, ReferenceAdapter, SqliteAdapter
from fencepost.adapters.reference.rules import CONTRACT, Rules, Write
from fencepost.adapters.reference.server import PostgresSource
from fencepost.conformance.interleave.engine import certify, first_failure
from fencepost.conformance.interleave.exhaustive import Exhaustive
from fencepost.conformance.interleave.lanes import History
from fencepost.conformance.interleave.played import Diverged, Played
from fencepost.conformance.interleave.programs import PROGRAMS, Program
from fencepost.conformance.interleave.reduce_race import reduce_race
from fencepost.conformance.interleave.scheduler import Strategy
from fencepost.conformance.races import Raced, race_all
from fencepost.model import commands as c
from fencepost.model import outcomes as o
from fencepost.model.queues import BACKFILL, QueueSpec
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection


def rules_of(name: str) -> Rules:
    (mutant,) = (each for each in MUTANTS if each.id == name)
    return mutant.change(CONTRACT)


class Sqlite(SqliteAdapter):
    """SQLite with an actor of another kind; `racing` from the moment on that gates are put up."""

    def __init__(self, kind: type[ReferenceActor], rules: Rules = CONTRACT) -> None:
        super().__init__(rules=rules)
        self.kind = kind
        self.racing = False
        self.lies = 0

    def actor(self, worker: int) -> ReferenceActor:
        return self._actors.setdefault(worker, self.kind(self, worker))

    async def connection(self, worker: int) -> AsyncConnection:
        connection = await super().connection(worker)
        self.racing = True
        return connection


class Postgres(PostgresAdapter):
    def __init__(self, kind: type[ReferenceActor]) -> None:
        super().__init__(source=PostgresSource())
        self.kind = kind

    def actor(self, worker: int) -> ReferenceActor:
        return self._actors.setdefault(worker, self.kind(self, worker))


def race(adapter: ReferenceAdapter, *clauses: str, queue: str = "backfill") -> tuple[list[Raced], Exception | None]:
    """What was found, and what then ended the run."""
    found = []
    try:
        for raced in race_all(adapter, queue, clauses=frozenset(clauses) or None):
            found.append(raced)
    except Exception as error:
        return found, error
    return found, None


def with_open(adapter: ReferenceAdapter, work: Callable[[], Any], spec: QueueSpec = BACKFILL) -> Any:
    async def whole() -> Any:
        await adapter.open(spec)
        try:
            return await work()
        finally:
            await adapter.close()

    return asyncio.run(whole())


class Leaking(ReferenceActor):
    """Forgets to commit a cancel that it only recorded, so that the row stays locked."""

    async def request_cancel(self, command: c.RequestCancel, now: int) -> o.Outcome:
        connection, cancel = await self.connect(), self._runtime.statements.cancel[Write.CANCEL]
        row = (await connection.execute(cancel.sql, cancel.values({"job": command.job, "now": now}))).first()
        if row is None or row.status != "running":
            await connection.commit()
        if row is None:
            return o.CancelAnswer("terminal")
        return o.CancelAnswer("recorded" if row.status == "running" else "cancelled")


def test_a_lock_that_is_left_behind_ends_the_run_with_the_race_its_schedule_and_what_to_do() -> None:
    found, error = race(Postgres(Leaking), "CANCEL-09")
    assert isinstance(error, AdapterError)
    assert str(error).startswith("pg: complete ‖ request_cancel on backfill, after schedule 21: lane 1 in UPDATE: ")
    assert str(error).endswith("finished; let every verb come to an end, and end its transaction before it answers")
    assert {(each.program.name, each.schedules > 0) for each in found} == {("claim ‖ request_cancel", True)}


class Forgetful(ReferenceActor):
    """Reads something besides at every other claim."""

    claims = 0

    async def claim(self, command: c.Claim, now: int) -> o.Outcome:
        self.claims += 1
        if self.claims % 2:
            await (await self.connect()).execute(text("SELECT 1"))
        return await super().claim(command, now)


def test_an_actor_that_sends_something_else_each_time_ends_the_run_with_what_to_do() -> None:
    _, error = race(Sqlite(Forgetful), "CLAIM-06")
    assert isinstance(error, AdapterError)
    assert "claim ‖ claim, one job on backfill, after schedule" in str(error)
    assert str(error).endswith("nothing remembered from the run before")


@pytest.mark.parametrize("extra", [0, 1])
def test_what_one_run_in_two_does_is_no_exhausted_search(extra: int) -> None:
    runs = 0

    async def play(strategy: Strategy) -> Played:
        """Two lanes of two statements, the second with one more in every other run."""
        nonlocal runs
        runs += 1
        left = {1: 2, 2: 2 + extra * (runs % 2)}
        schedule, enabled, previous = "", [], None
        while able := tuple(lane for lane in left if left[lane]):
            previous = strategy.choose(able, previous)
            schedule, left[previous] = schedule + str(previous), left[previous] - 1
            enabled.append(able)
        strategy.finish()
        return Played(schedule, tuple(enabled), (), ())

    async def whole() -> int:
        return len([played async for played in Exhaustive(play).schedules()])

    if extra:
        with pytest.raises(Diverged, match=r"token \d: lanes .* could go before, and now|cannot now|has ended after"):
            asyncio.run(whole())
    else:
        assert asyncio.run(whole()) == 6


class Ungated(ReferenceActor):
    """Works on a connection that the gate does not know."""

    async def connect(self) -> AsyncConnection:
        if self.name == "w1" and self.aside is None and isinstance(self._adapter, Sqlite) and self._adapter.racing:
            self.aside = await self._adapter.database.connect("aside")
        return self.aside or await super().connect()

    aside: AsyncConnection | None = None


def test_an_actor_that_works_past_its_gate_is_told_and_not_certified() -> None:
    _, error = race(Sqlite(Ungated), "CLAIM-06")
    assert isinstance(error, AdapterError)
    assert "actor 1 answered claim and sent nothing through its gate in any schedule" in str(error)
    assert str(error).endswith("let `connection(1)` return the connection that it works on")


def test_what_is_found_beside_an_actor_that_works_past_its_gate_is_kept_without_a_certificate() -> None:
    (one_job, *_), _ = race(Sqlite(Ungated, rules_of("claim-select-then-update")), "CLAIM-06")
    assert one_job.finding is not None and one_job.finding.violation.clause == "CLAIM-06"
    assert one_job.certificates == ()


def test_a_command_that_sends_nothing_beside_one_that_does_is_no_fault() -> None:
    refused = c.Fail(c.HandleRef(2), "infra", "no such code")
    program = Program((), (c.Enqueue(), c.Claim(1)), ((refused, c.Complete(c.HandleRef(2))), (c.Recover(),)))
    adapter, sent = SqliteAdapter(), []

    def note(history: History) -> None:
        sent.append(history.played.statements_of(history.played.commands[0]))

    found = with_open(adapter, lambda: certify(adapter, BACKFILL, program, on_schedule=note))
    assert found.exhaustive
    assert set(sent) == {()}


class Late(ReferenceActor):
    """Reads a lot once it has claimed, so that a race comes late in the order of switches."""

    async def claim(self, command: c.Claim, now: int) -> o.Outcome:
        answer = await super().claim(command, now)
        if self.name == "w1" and isinstance(self._adapter, Sqlite) and self._adapter.racing:
            connection = await self.connect()
            for _ in range(12):
                await connection.execute(text("SELECT 1"))
            await connection.rollback()
        return answer


def test_a_race_that_comes_too_late_to_be_found_again_is_kept_in_its_own_schedule() -> None:
    adapter = Sqlite(Late, rules_of("claim-select-then-update"))

    async def both() -> Any:
        found = await certify(adapter, BACKFILL, PROGRAMS[0])
        assert found.trace is not None
        few = await first_failure(adapter, BACKFILL, found.trace, "CLAIM-06", most=found.schedules - 1)
        return found, few, await reduce_race(adapter, BACKFILL, found.trace, "CLAIM-06", most=found.schedules - 1)

    found, few, kept = with_open(adapter, both)
    assert few.violation is None, "the search starts over and gives up before"
    assert (kept.trace, kept.violation) == (found.trace, found.violation)


class Lying(ReferenceActor):
    """Acts once as a claimer where it is none."""

    async def claim(self, command: c.Claim, now: int) -> o.Outcome:
        answer = await super().claim(command, now)
        assert isinstance(self._adapter, Sqlite)
        if answer != o.Claimed() or self._adapter.lies:
            return answer
        self._adapter.lies += 1
        return o.Claimed((c.Handle(1, command.worker),))


def test_a_race_that_does_not_come_again_is_reported_as_it_was_found() -> None:
    found, error = race(Sqlite(Lying), "CLAIM-06")
    assert error is None
    (raced,) = (each for each in found if each.finding is not None)
    assert raced.finding is not None and raced.finding.violation.clause == "CLAIM-01"
    assert raced.finding.trace.length == raced.finding.unreduced == 3


class Breaking(Lying):
    """The same, and then raises something of its own."""

    async def claim(self, command: c.Claim, now: int) -> o.Outcome:
        assert isinstance(self._adapter, Sqlite)
        if self._adapter.lies:
            raise ZeroDivisionError("the client is gone")
        return await super().claim(command, now)


def test_what_a_verb_raises_while_a_race_is_shortened_comes_after_what_was_found() -> None:
    found, error = race(Sqlite(Breaking), "CLAIM-06")
    assert isinstance(error, ZeroDivisionError)
    assert [each.finding.violation.clause for each in found if each.finding is not None] == ["CLAIM-01"]


def test_a_clause_that_was_reported_before_is_not_shortened_again(monkeypatch: pytest.MonkeyPatch) -> None:
    async def never(*_: Any) -> None:
        raise AssertionError("it is known")

    monkeypatch.setattr("fencepost.conformance.races.reduce_race", never)
    adapter = SqliteAdapter(rules=rules_of("claim-select-then-update"))
    raced = list(race_all(adapter, "backfill", clauses=frozenset({"CLAIM-06"}), known=frozenset({"CLAIM-06"})))
    assert raced and all(each.finding is None for each in raced)


def test_what_is_broken_before_the_lanes_is_shortened_as_one_command_after_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def never(*_: Any) -> None:
        raise AssertionError("it is no race")

    monkeypatch.setattr("fencepost.conformance.races.reduce_race", never)
    found, error = race(SqliteAdapter(rules=rules_of("claim-without-heartbeat")), "REC-07")
    assert error is None
    (finding,) = (each.finding for each in found if each.finding is not None)
    assert (finding.violation.clause, finding.trace.length, finding.trace.lanes) == ("CLAIM-05", 2, ())


@pytest.mark.parametrize(("clause", "other"), [("CLAIM-06", "CLAIM-11"), ("CLAIM-11", "CLAIM-06")])
def test_no_certificate_is_given_for_a_clause_that_the_search_refuted(clause: str, other: str) -> None:
    mutant = {"CLAIM-06": "claim-select-then-update", "CLAIM-11": "claim-split"}[clause]
    adapter = PostgresAdapter(rules=rules_of(mutant), source=PostgresSource())
    found = with_open(adapter, lambda: certify(adapter, BACKFILL, PROGRAMS[0]))
    assert found.violation.clause == clause
    assert [each.clause for each in found.certificates] == [other]


def test_a_certificate_says_what_was_bounded() -> None:
    adapter = SqliteAdapter()
    late = next(program for program in PROGRAMS if program.name == "complete ‖ recover claim, another worker")
    (certificate,) = with_open(adapter, lambda: certify(adapter, BACKFILL, late)).certificates
    said = "1 job, 2 actors, 3 commands at once, 1 move of the clock, orders of whole statements"
    assert certificate.bound == said
    (certificate,) = with_open(adapter, lambda: certify(adapter, BACKFILL, late, most=3)).certificates
    assert certificate.bound == f"{said}; the first 3 in the order of switches"


def test_a_bound_on_preemptions_leaves_out_the_schedules_beyond_it() -> None:
    adapter = SqliteAdapter(rules=rules_of("claim-select-then-update"))
    trace = PROGRAMS[0].trace()
    found = with_open(adapter, lambda: first_failure(adapter, BACKFILL, trace, "CLAIM-06", most=50))
    assert found.preemptions == 1
    none = with_open(adapter, lambda: first_failure(adapter, BACKFILL, trace, "CLAIM-06", most=50, bound=0))
    assert (none.violation, none.schedules, none.exhaustive) == (None, 2, False)
