"""The power of the suite: every planted fault is found under its own clause, and told in the fewest commands."""

from __future__ import annotations

from functools import partial

import pytest
from fencepost.adapters.mutants.catalogue import MUTANTS
from fencepost.adapters.mutants.mutant import Mutant
from fencepost.adapters.reference.adapter import PostgresAdapter, ReferenceAdapter, SqliteAdapter
from fencepost.adapters.reference.rules import CONTRACT
from fencepost.conformance.mutation import MOST_SCHEDULES, Planted, kill_rows
from fencepost.conformance.profiles import PROFILES
from fencepost.model.clauses import BUILT, CLAUSES
from fencepost.reports.mutants import MutantResult

SEQUENTIAL = [mutant for mutant in MUTANTS if not mutant.race]
RACES = [(mutant, adapter) for mutant in MUTANTS if mutant.race for adapter in mutant.adapters]


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
def test_a_fault_of_one_actor_is_found_under_its_clause_and_told_in_the_fewest_commands(mutant: Mutant) -> None:
    row = killed(mutant, "sqlite", seeds=1)
    assert row.killed_by == mutant.clause
    assert row.length == row.shortest
    assert row.seeds.shortest == row.seeds.run == 1


@pytest.mark.parametrize(("mutant", "adapter"), RACES, ids=[f"{mutant.id}-{adapter}" for mutant, adapter in RACES])
def test_a_race_is_found_by_chance_and_told_in_one_story_whatever_the_seed(mutant: Mutant, adapter: str) -> None:
    row = killed(mutant, adapter, seeds=2)
    assert row.killed_by == mutant.clause
    assert row.schedules <= MOST_SCHEDULES
    assert row.length == row.shortest
    assert (row.seeds.run, row.seeds.killed, row.seeds.canonical) == (2, 2, 2)


def test_a_clause_that_also_takes_two_actors_to_break_has_a_race() -> None:
    raced = {mutant.clause for mutant, _ in RACES}
    two = {each for each in BUILT if CLAUSES[each].engine == "interleaved" or CLAUSES[each].also_interleaved}
    assert len(two) == 6 and two <= raced


def test_a_kill_that_no_shortest_trace_measures_is_an_error_that_names_the_mutant(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("fencepost.conformance.mutation.first_failing", lambda *_: None)
    with pytest.raises(LookupError, match="release-counts breaks REL-01"):
        killed(next(mutant for mutant in MUTANTS if mutant.id == "release-counts"), "sqlite", seeds=1)


def test_a_race_that_a_run_does_not_find_survives_whatever_chance_finds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fencepost.conformance.mutation.race_all", lambda *_: iter(()))
    row = killed(next(mutant for mutant in MUTANTS if mutant.id == "claim-loser-acts"), "sqlite", seeds=1)
    assert row.seeds.killed == 1 and row.killed_by is None
