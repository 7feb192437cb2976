"""Drawing scripts: the seed decides all, a failing script comes first the next time, and nothing is shrunk."""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from pathlib import Path

import pytest
from fencepost.adapters.contract import Adapter, AdapterError
from fencepost.adapters.memory import MemoryAdapter
from fencepost.adapters.mutants.catalogue import MUTANTS
from fencepost.adapters.reference.adapter import SqliteAdapter
from fencepost.adapters.reference.rules import CONTRACT
from fencepost.conformance.driver import Run
from fencepost.conformance.sequential import hunt, tables
from fencepost.conformance.session import Session
from fencepost.model import commands as c
from fencepost.model.choices import RATIOS
from fencepost.model.errors import EXAMPLES
from fencepost.model.queues import BACKFILL, QUEUES, QueueSpec
from fencepost.model.world import Check
from hypothesis import settings

LONGEST = 30


class Recording(Session):
    """A session that remembers which scripts it was asked to draw, and what came of each."""

    def __init__(self, adapter: Adapter, spec: QueueSpec = BACKFILL) -> None:
        super().__init__(adapter, spec)
        self.scripts: list[tuple[int, ...]] = []
        self.failed: list[bool] = []

    def __enter__(self) -> Recording:
        super().__enter__()
        return self

    def draw(self, numbers: Iterable[int]) -> Run:
        script = tuple(numbers)
        run = super().draw(script)
        self.scripts.append(script)
        self.failed.append(run.violation is not None)
        return run


def wrong(name: str) -> SqliteAdapter:
    (mutant,) = (each for each in MUTANTS if each.id == name)
    return SqliteAdapter(rules=mutant.change(CONTRACT))


def hunted(seed: int, spec: QueueSpec = BACKFILL) -> tuple[list[tuple[int, ...]], dict[Check, int]]:
    with Recording(MemoryAdapter(), spec) as session:
        found = hunt(session, examples=40, longest=LONGEST, seed_value=seed)
        assert found is None
        return session.scripts, dict(session.driver.tally)


@pytest.mark.parametrize("spec", QUEUES.values(), ids=lambda spec: spec.key)
def test_the_same_seed_draws_the_same_scripts_and_tests_the_same(spec: QueueSpec) -> None:
    scripts, tally = hunted(5, spec)
    assert hunted(5, spec) == (scripts, tally)
    assert len(scripts) == 40 and len(set(scripts)) > 30 and tally
    assert all(1 <= len(script) <= LONGEST for script in scripts)
    assert max(map(len, scripts)) > LONGEST // 2


def test_other_seeds_draw_other_scripts() -> None:
    drawn = [frozenset(hunted(seed)[0]) for seed in (1, 2, 3)]
    assert len(set(drawn)) == 3
    for one, other in ((0, 1), (0, 2), (1, 2)):
        assert len(drawn[one] - drawn[other]) > 30


def test_the_first_violation_ends_it_and_nothing_is_shrunk() -> None:
    seen = 0

    def on_example() -> None:
        nonlocal seen
        seen += 1

    with Recording(wrong("complete-expired")) as session:
        found = hunt(session, examples=500, longest=LONGEST, seed_value=1, on_example=on_example)
        assert found is not None and found.violation is not None and found.violation.clause == "FENCE-01"
        assert session.failed.index(True) == len(session.scripts) - 1, "no script is run after the one that failed"
        assert seen == len(session.scripts)
        again = Session.draw(session, session.scripts[-1])
        assert (again.done, again.violation) == (found.done, found.violation)


def test_a_failing_script_is_kept_and_tried_first_whatever_the_seed(tmp_path: Path) -> None:
    folder = tmp_path / "examples"
    with Recording(wrong("complete-at-expiry")) as session:
        found = hunt(session, examples=500, longest=LONGEST, seed_value=1, database=folder)
        assert found is not None
        first = session.scripts[-1]
        assert len(session.scripts) > 3, "it takes some scripts to find this fault"
    assert any(path.is_file() for path in folder.rglob("*"))
    for seed in (1, 99):
        with Recording(wrong("complete-at-expiry")) as session:
            again = hunt(session, examples=500, longest=LONGEST, seed_value=seed, database=folder)
            assert again is not None and again.violation == found.violation
            assert session.scripts == [first]


def test_a_kept_script_outlives_the_hunt_for_what_else_is_wrong(tmp_path: Path) -> None:
    with Session(wrong("complete-at-expiry"), BACKFILL) as session:
        found = hunt(session, examples=500, longest=LONGEST, seed_value=1, database=tmp_path)
        assert found is not None and found.violation is not None
        known = frozenset({found.violation.clause})
        assert hunt(session, examples=5, longest=LONGEST, seed_value=1, database=tmp_path, known=known) is None
        again = hunt(session, examples=1, longest=LONGEST, seed_value=7, database=tmp_path)
    assert again is not None and again.violation == found.violation


class RaisesOnce(Recording):
    """A session whose fourth example fails, and none after it."""

    def draw(self, numbers: Iterable[int]) -> Run:
        run = super().draw(numbers)
        if len(self.scripts) == 4:
            raise AdapterError("the connection was lost")
        return run


def test_a_fault_that_does_not_come_again_is_no_clean_search() -> None:
    with RaisesOnce(MemoryAdapter()) as session, pytest.raises(AdapterError, match="lost"):
        hunt(session, examples=50, longest=LONGEST, seed_value=1)


def test_what_else_is_imported_does_not_change_what_a_seed_draws(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = hunted(5)
    (tmp_path / "full_of_numbers.py").write_text(f"NUMBERS = {[*range(1, 60), *range(10**11, 10**11 + 500)]}\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    importlib.import_module("full_of_numbers")
    assert hunted(5) == before


def test_without_a_database_nothing_is_remembered() -> None:
    counts = []
    for _ in range(2):
        with Recording(wrong("complete-at-expiry")) as session:
            assert hunt(session, examples=500, longest=LONGEST, seed_value=1) is not None
            counts.append(session.scripts)
    assert counts[0] == counts[1] and len(counts[0]) > 3


def test_a_kept_script_that_no_longer_fails_is_passed_over(tmp_path: Path) -> None:
    with Session(wrong("complete-expired"), BACKFILL) as session:
        assert hunt(session, examples=500, longest=LONGEST, seed_value=1, database=tmp_path) is not None
    with Recording(SqliteAdapter()) as mended:
        assert hunt(mended, examples=20, longest=LONGEST, seed_value=1, database=tmp_path) is None
        assert len(mended.scripts) >= 20


def test_clauses_that_are_known_are_passed_over() -> None:
    with Recording(wrong("complete-keeps-lease")) as session:
        found = hunt(session, examples=60, longest=LONGEST, seed_value=1, known=frozenset({"TERM-03"}))
        assert found is None
        assert len(session.scripts) == 60 and any(session.failed)


@pytest.mark.parametrize(("known", "other"), [("TERM-03", "REC-01"), ("REC-01", "TERM-03")])
def test_a_known_clause_does_not_hide_another(known: str, other: str) -> None:
    rules = CONTRACT.without("writes.complete.succeeded", "lease_expires_at").without("recover.requeue", "worker_id")
    with Session(SqliteAdapter(rules=rules), BACKFILL) as session:
        found = hunt(session, examples=200, longest=LONGEST, seed_value=1, known=frozenset({known}))
        assert found is not None and found.violation is not None and found.violation.clause == other
        assert hunt(session, examples=50, longest=LONGEST, seed_value=1, known=frozenset({known, other})) is None


def test_it_leaves_the_settings_of_hypothesis_alone(tmp_path: Path) -> None:
    default = settings.default
    before = repr(settings())
    with Session(wrong("complete-expired"), BACKFILL) as session:
        hunt(session, examples=500, longest=LONGEST, seed_value=1, database=tmp_path)
    assert settings.default is default and repr(settings()) == before


def test_it_draws_as_many_examples_as_it_is_told_whatever_profile_is_loaded() -> None:
    try:
        settings.register_profile("one example, by heart", max_examples=1, derandomize=True, database=None)
        settings.load_profile("one example, by heart")
        with_profile = hunted(5)
    finally:
        settings.load_profile("default")
    assert with_profile == hunted(5) and len(with_profile[0]) == 40


@pytest.mark.parametrize("spec", QUEUES.values(), ids=QUEUES)
def test_the_tables_are_complete_and_pass_on_a_right_queue(spec: QueueSpec) -> None:
    made = tables(spec)
    assert set(made) == {"LEASE-01", "ERR-01"}
    assert [step.command for step in made["LEASE-01"].steps] == [c.Configure(*ratio) for ratio in RATIOS]
    assert {step.command for step in made["ERR-01"].steps} == {c.Classify(code) for code, _ in EXAMPLES}
    with Session(MemoryAdapter(), spec) as session:
        for clause, trace in made.items():
            run = session.play(trace)
            assert run.violation is None and len(run.done) == trace.length
            assert any(check.clause == clause and check.teeth for check in session.driver.tally)
