"""The power of the suite: every planted fault is found under its own clause, and told in the fewest commands."""

from __future__ import annotations

from functools import partial

import pytest
from fencepost.adapters.mutants.catalogue import EQUIVALENT, MUTANTS
from fencepost.adapters.mutants.mutant import Mutant
from fencepost.adapters.reference.adapter import PostgresAdapter, ReferenceAdapter, SqliteAdapter
from fencepost.adapters.reference.rules import CONTRACT
from fencepost.conformance.examine import Examination
from fencepost.conformance.mutation import MOST_SCHEDULES, Planted, kill_rows
from fencepost.conformance.profiles import PROFILES
from fencepost.conformance.races import race_all
from fencepost.conformance.session import Session
from fencepost.model.applicability import applies
from fencepost.model.clauses import BUILT, CLAUSES
from fencepost.model.queues import QUEUES
from fencepost.reports.mutants import MutantResult

SEQUENTIAL = [mutant for mutant in MUTANTS if not mutant.race]
RACES = [(mutant, adapter) for mutant in MUTANTS if mutant.race for adapter in mutant.adapters]
HARMLESS = [mutant for mutant, _ in EQUIVALENT]

WITHOUT_A_FAULT = {
    "INV-6": "whatever sets a row running twice is a claim of a running one, which CLAIM-01 names first",
    "INV-7": "whatever sets a cancelled row running is a claim, which CLAIM-02 names first",
}
"""Built clauses that no change of the rules breaks alone."""


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


@pytest.mark.parametrize("mutant", HARMLESS, ids=named)
def test_what_breaks_nothing_is_blamed_for_nothing(mutant: Mutant) -> None:
    with Session(broken(mutant), QUEUES[mutant.queue]) as session:
        examination = Examination(session, PROFILES["quick"], seed=1)
        assert list(examination.violations()) == []
        _, teeth = examination.teeth().get(mutant.clause, (0, 0))
    raced = list(race_all(broken(mutant), mutant.queue))
    assert raced and [each.finding for each in raced if each.finding is not None] == []
    certified = {each.clause for program in raced for each in program.certificates}
    assert teeth > 0 or mutant.clause in certified, "the clause in question was tested"


@pytest.mark.parametrize("queue", QUEUES)
def test_every_clause_that_binds_a_queue_has_a_fault_that_breaks_it(queue: str) -> None:
    bound = {clause for clause in BUILT if applies(clause, queue).status == "applies"}
    broken_somewhere = {mutant.clause for mutant in MUTANTS}
    assert bound - broken_somewhere == bound & set(WITHOUT_A_FAULT)


def test_a_clause_that_also_takes_two_actors_to_break_has_a_race() -> None:
    raced = {mutant.clause for mutant, _ in RACES}
    assert {clause for clause in BUILT if CLAUSES[clause].engine == "interleaved"} <= raced
