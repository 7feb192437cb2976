"""The catalogue of mutants: each one is a fault of its own, aimed at one clause, and none is a no-op."""

from __future__ import annotations

import re
from functools import cache

import pytest
from fencepost.adapters.mutants.catalogue import EQUIVALENT, MUTANTS
from fencepost.adapters.mutants.mutant import Change, Mutant
from fencepost.adapters.reference.rules import CONTRACT, Rules
from fencepost.adapters.reference.runtime import Runtime
from fencepost.adapters.reference.statements import POSTGRES, Statement
from fencepost.adapters.reference.table import table_for
from fencepost.conformance.interleave.programs import PROGRAMS
from fencepost.model.applicability import applies
from fencepost.model.clauses import BUILT, CLAUSES
from fencepost.model.errors import EXAMPLES
from fencepost.model.queues import QUEUES
from sqlalchemy import Dialect, MetaData
from sqlalchemy.dialects import sqlite

ALL = (*MUTANTS, *(mutant for mutant, _ in EQUIVALENT))
SEQUENTIAL = tuple(mutant for mutant in MUTANTS if not mutant.race)
RACES = tuple(mutant for mutant in MUTANTS if mutant.race)
INVARIANTS = {"INV-6", "INV-7"}
"""No rule breaks these alone: whatever sets a row running is a claim, and there CLAIM-01 and CLAIM-02 come first."""

STATEMENT_FIELDS = {
    "claim_where", "claim_again", "claim_order", "claim_set", "claim_shape", "fence", "cancel_where", "writes",
    "expired", "expired_again", "left_behind", "left_behind_again", "called_off", "called_off_again", "sweep_order",
    "recover", "call_off", "late_fence",
}  # fmt: skip
"""The fields of the rules that statements are made of; all others are decisions of the runtime."""


DIALECTS: dict[str, Dialect] = {"pg": POSTGRES, "sqlite": sqlite.dialect(paramstyle="named")}


def named(mutant: Mutant) -> str:
    return mutant.id


@cache
def statements(change: Change | None, queue: str, dialect: str) -> tuple[str, ...]:
    """Every statement with its parameters' values, as that database gets it."""
    rules = CONTRACT if change is None else change(CONTRACT)
    known = Runtime(QUEUES[queue], table_for(QUEUES[queue], MetaData()), dialect, rules).statements.all()
    return tuple(f"{name}: {text(each, DIALECTS[dialect])}" for name, each in known.items())


def text(statement: Statement, dialect: Dialect) -> str:
    compiled = statement.sql.compile(dialect=dialect)
    return f"{compiled} {sorted(str(bind.value) for bind in compiled.binds.values() if not bind.required)}"


@cache
def decisions(change: Change | None) -> dict[str, object]:
    """What the runtime decides by value; a classification by what it says of the reviewed table."""
    rules = CONTRACT if change is None else change(CONTRACT)
    values = {name: getattr(rules, name) for name in Rules.__dataclass_fields__ if name not in STATEMENT_FIELDS}
    return values | {"classify": [rules.classify(code) for code, _ in EXAMPLES]}


def databases(mutant: Mutant) -> tuple[str, ...]:
    """Those that a mutant may differ on: only a claim's shape is a matter of the database, and no shape but a race's
    is a fault."""
    return mutant.adapters if mutant.race else mutant.adapters[:1]


@pytest.mark.parametrize("mutant", ALL, ids=named)
def test_a_mutant_changes_what_is_sent_or_decided(mutant: Mutant) -> None:
    for database in databases(mutant):
        sent = statements(mutant.change, mutant.queue, database) != statements(None, mutant.queue, database)
        assert sent or decisions(mutant.change) != decisions(None)


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
        sent = [statements(mutant.change, mutant.queue, database) for database in databases(mutant)[-1:]]
        fault = f"{mutant.queue} {mutant.pair} {sent} {decisions(mutant.change)}"
        assert fault not in seen, f"{mutant.id} is {seen[fault]} again"
        seen[fault] = mutant.id


def test_every_built_clause_has_a_mutant() -> None:
    assert set(BUILT) - {mutant.clause for mutant in MUTANTS} == INVARIANTS


def test_there_are_enough_of_both_kinds() -> None:
    assert len(SEQUENTIAL) >= 45 and len(RACES) >= 5


@pytest.mark.parametrize("mutant", RACES, ids=named)
def test_a_race_names_the_program_that_shows_it(mutant: Mutant) -> None:
    program = next(program for program in PROGRAMS if program.name == mutant.pair)
    assert mutant.queue in program.queues
    assert "pg" in mutant.adapters


@pytest.mark.parametrize("clause", BUILT)
def test_a_clause_of_one_actor_has_a_mutant_that_needs_no_second(clause: str) -> None:
    alone = any(mutant.clause == clause for mutant in SEQUENTIAL)
    assert alone == (CLAUSES[clause].engine != "interleaved" and clause not in INVARIANTS)


@pytest.mark.parametrize("mutant", SEQUENTIAL, ids=named)
def test_only_a_race_names_a_program(mutant: Mutant) -> None:
    assert mutant.pair is None


def test_equivalent_candidates_say_why() -> None:
    assert all(len(reason.split()) > 4 for _, reason in EQUIVALENT)
