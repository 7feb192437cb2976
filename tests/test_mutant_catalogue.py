"""The catalogue of mutants: each one is a fault of its own, aimed at one clause, and none is a no-op."""

from __future__ import annotations

import re

import pytest
from fencepost.adapters.mutants.catalogue import EQUIVALENT, MUTANTS
from fencepost.adapters.mutants.mutant import Mutant
from fencepost.conformance.interleave.programs import programs_of
from fencepost.model.applicability import applies
from fencepost.model.clauses import BUILT, CLAUSES
from fencepost.model.queues import QUEUES
from rules_sent import decisions, statements

ALL = (*MUTANTS, *(mutant for mutant, _ in EQUIVALENT))
SEQUENTIAL = tuple(mutant for mutant in MUTANTS if not mutant.race)
RACES = tuple(mutant for mutant in MUTANTS if mutant.race)
WITHOUT_A_FAULT = {
    "INV-6": "whatever sets a row with a cancel request running is a claim, which CLAIM-02 names first",
    "INV-7": "whatever sets an ended row running again is a claim, which CLAIM-01 names first",
}
"""Built clauses that no change of the rules breaks alone."""


def named(mutant: Mutant) -> str:
    return mutant.id


def databases(mutant: Mutant) -> tuple[str, ...]:
    """Those that a mutant may differ on: only a claim's shape is a matter of the database, and no shape but a race's
    is a fault."""
    return mutant.adapters if mutant.race else mutant.adapters[:1]


@pytest.mark.parametrize("mutant", ALL, ids=named)
def test_a_mutant_changes_what_is_sent_or_decided(mutant: Mutant) -> None:
    for database in databases(mutant):
        sent = statements(mutant.change, mutant.queue, database) != statements(None, mutant.queue, database)
        assert sent or decisions(mutant.change, database) != decisions(None, database)


@pytest.mark.parametrize("mutant", ALL, ids=named)
def test_a_mutant_names_clauses_that_are_built_and_bind_its_queue(mutant: Mutant) -> None:
    assert mutant.clause not in mutant.also
    for clause in (mutant.clause, *mutant.also):
        assert clause in BUILT
        assert applies(clause, mutant.queue).status == "applies"


@pytest.mark.parametrize("mutant", ALL, ids=named)
def test_a_mutant_is_told_in_one_plain_sentence(mutant: Mutant) -> None:
    assert re.fullmatch(r"[a-z0-9-]+", mutant.id)
    assert mutant.title[0].isupper() and mutant.title.endswith(".") and "\n" not in mutant.title
    assert mutant.adapters and set(mutant.adapters) <= {"sqlite", "pg"}


def test_ids_are_unique_and_no_two_mutants_of_a_queue_are_the_same_fault() -> None:
    assert len({mutant.id for mutant in ALL}) == len(ALL)
    seen: dict[str, str] = {}
    for mutant in ALL:
        database = databases(mutant)[-1]
        sent = statements(mutant.change, mutant.queue, database)
        fault = f"{mutant.queue} {mutant.pair} {sent} {decisions(mutant.change, database)}"
        assert fault not in seen, f"{mutant.id} is {seen[fault]} again"
        seen[fault] = mutant.id


def test_every_built_clause_has_a_mutant() -> None:
    assert set(BUILT) - {mutant.clause for mutant in MUTANTS} == set(WITHOUT_A_FAULT)


def test_there_are_enough_of_both_kinds() -> None:
    assert len(SEQUENTIAL) >= 170 and len(RACES) >= 25


@pytest.mark.parametrize(
    "chapter", ["FENCE", "LEASE", "REC", "CANCEL", "ATT", "CLAIM-06", "CLAIM-07", "CLAIM-11", "CLAIM-12"]
)
def test_what_goes_wrong_most_has_several_mutants(chapter: str) -> None:
    assert sum(mutant.clause.startswith(chapter) for mutant in MUTANTS) >= 3


@pytest.mark.parametrize("mutant", RACES, ids=named)
def test_a_race_names_the_program_that_shows_it(mutant: Mutant) -> None:
    assert mutant.pair in {program.name for program in programs_of(QUEUES[mutant.queue])}


@pytest.mark.parametrize("clause", BUILT)
def test_a_clause_of_one_actor_has_a_mutant_that_needs_no_second(clause: str) -> None:
    alone = any(mutant.clause == clause for mutant in SEQUENTIAL)
    assert alone == (CLAUSES[clause].engine != "interleaved" and clause not in WITHOUT_A_FAULT)


def test_equivalent_candidates_say_why() -> None:
    assert all(len(reason.split()) > 4 for _, reason in EQUIVALENT)
