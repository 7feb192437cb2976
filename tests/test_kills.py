"""The power of the suite: every planted fault is found under its own clause, and told in the fewest commands."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pytest
from fencepost.adapters.mutants.catalogue import MUTANTS
from fencepost.adapters.mutants.mutant import Mutant
from fencepost.adapters.reference.adapter import PostgresAdapter, ReferenceAdapter, SqliteAdapter
from fencepost.adapters.reference.rules import CONTRACT
from fencepost.conformance.examine import Examination, reduced
from fencepost.conformance.mutation import MOST_SCHEDULES, Planted, kill_rows
from fencepost.conformance.profiles import PROFILES
from fencepost.conformance.session import Session
from fencepost.model.clauses import BUILT, CLAUSES
from fencepost.model.queues import QUEUES
from fencepost.reports.mutants import MutantResult
from fencepost.scenarios import load
from shipped import BY_ID, STORIES

SEQUENTIAL = [mutant for mutant in MUTANTS if not mutant.race]

FEW = replace(PROFILES["quick"], examples=10)
"""Beside the model's shortest trace to every check."""


def named(mutant: Mutant) -> str:
    return mutant.id


def broken(mutant: Mutant, adapter: str = "sqlite") -> ReferenceAdapter:
    rules = mutant.change(CONTRACT)
    return SqliteAdapter(rules=rules) if adapter == "sqlite" else PostgresAdapter(rules=rules)


def killed(mutant: Mutant, adapter: str, seeds: int) -> MutantResult:
    """The mutant's row of the kill table, examined as deep as the shallowest profile goes."""
    planted = Planted(
        mutant.id, mutant.clause, mutant.also, mutant.queue, adapter, partial(broken, mutant, adapter), mutant.pair
    )
    (row,) = kill_rows([planted], PROFILES["quick"], seeds)
    return row


@pytest.mark.parametrize("mutant", SEQUENTIAL, ids=named)
def test_a_fault_of_one_actor_is_told_under_its_clause_in_the_fewest_commands_and_breaks_no_other(
    mutant: Mutant,
) -> None:
    with Session(broken(mutant), QUEUES[mutant.queue]) as session:
        found = {run.violation.clause: run for run in Examination(session, FEW, seed=1).violations() if run.violation}
        assert found.keys() - set(mutant.also) == {mutant.clause}
        story = reduced(session, found[mutant.clause])
    assert story.violation.clause == mutant.clause
    assert story.length == load(STORIES / f"{mutant.id}.yaml").trace.length


@pytest.mark.parametrize(
    ("name", "adapter"), [("claim-lazy-handles", "sqlite"), ("recover-by-id", "sqlite"), ("claim-by-subselect", "pg")]
)
def test_a_row_of_the_kill_table_says_that_a_fault_is_found_and_told_in_one_story_whatever_the_seed(
    name: str, adapter: str
) -> None:
    mutant = BY_ID[name]
    row = killed(mutant, adapter, seeds=2)
    assert row.killed_by == mutant.clause
    assert row.schedules <= MOST_SCHEDULES
    assert row.length == row.shortest
    assert (row.seeds.run, row.seeds.killed, row.seeds.shortest, row.seeds.canonical) == (2, 2, 2, 2)


def test_a_clause_that_also_takes_two_actors_to_break_has_a_race() -> None:
    raced = {mutant.clause for mutant in MUTANTS if mutant.race}
    two = {each for each in BUILT if CLAUSES[each].engine == "interleaved" or CLAUSES[each].also_interleaved}
    assert len(two) == 6 and two <= raced


def test_a_fault_that_no_first_trace_shows_is_measured_by_the_shortest_story(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fencepost.conformance.mutation.first_failing", lambda *_: None)
    row = killed(BY_ID["release-counts"], "sqlite", seeds=2)
    assert row.shortest is not None and row.length == row.shortest
    assert row.seeds.shortest == row.seeds.canonical == 2


def test_a_race_that_a_run_does_not_find_survives_whatever_chance_finds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fencepost.conformance.mutation.race_all", lambda *_: iter(()))
    row = killed(BY_ID["claim-loser-acts"], "sqlite", seeds=1)
    assert row.seeds.killed == 1 and row.killed_by is None
