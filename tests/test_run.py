"""A whole run: every engine on every queue, one verdict, and nothing found is lost however the run ends."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from fencepost.adapters.contract import Capabilities
from fencepost.adapters.memory import MemoryAdapter
from fencepost.adapters.reference.adapter import SqliteAdapter
from fencepost.adapters.reference.rules import CONTRACT
from fencepost.conformance import examine
from fencepost.conformance.interleave.programs import PROGRAMS
from fencepost.conformance.profiles import PROFILES
from fencepost.conformance.races import Raced
from fencepost.conformance.replay import replay
from fencepost.conformance.run import run
from fencepost.conformance.session import Session
from fencepost.model import commands as c
from fencepost.model import outcomes as o
from fencepost.model.applicability import applies
from fencepost.model.clauses import BUILT, CLAUSES
from fencepost.model.queues import ALL_QUEUES, QUEUES
from fencepost.reports.result import NOT_BUILT, Certificate, exit_code, read, write
from fencepost.scenarios import load
from runs import BOTH, OWN, TINY, Stopping, Watching, broken, mutant_named, pairs_of, planned, went


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run leaves its files below the folder that it was started in."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_memory_adapter_passes_everything_and_is_called_a_self_check(folder: Path) -> None:
    watching = Watching()
    outcome = run(planned(MemoryAdapter, queues=BOTH, profile=PROFILES["quick"]), watching)
    result = outcome.result
    assert (result.verdict, result.interrupted, outcome.fault) == ("self-check", False, "")
    pairs = pairs_of(result)
    assert set(pairs) == {(clause, queue) for clause in CLAUSES for queue in ALL_QUEUES}
    for (clause, queue), pair in pairs.items():
        cell = applies(clause, queue)
        if cell.status == "not built":
            assert (pair.verdict, pair.reason, pair.checked) == ("not exercised", NOT_BUILT, 0)
        elif cell.status == "not applicable":
            assert (pair.verdict, pair.reason) == ("not applicable", cell.reason)
        elif CLAUSES[clause].engine == "interleaved":
            assert pair.verdict == "not applicable" and "no gate" in pair.reason
        else:
            # The half of REC-02 that takes two actors is said to be left out.
            assert pair.verdict == "pass" and ("one actor" in pair.reason) == (clause == "REC-02"), pair
            assert pair.checked >= pair.teeth > 0, pair
    assert (result.failures, result.certificates, watching.failures) == ((), (), [])
    assert result.coverage.examples == sum(watching.advanced.values()) >= 2 * PROFILES["quick"].examples
    assert result.coverage.steps > result.coverage.examples and result.coverage.schedules == 0
    assert not list(folder.rglob("*.yaml"))


def test_a_right_queue_that_is_none_of_our_own_passes() -> None:
    result = went(planned(SqliteAdapter, "FENCE-01", "CLAIM-06", "ERR-01", queues=BOTH)).result
    assert result.verdict == "pass"
    built = [pair for pair in result.clauses if pair.built]
    assert [(pair.id, pair.queue, pair.verdict) for pair in built] == [
        (clause, queue, "pass")
        for clause in CLAUSES
        if clause in ("FENCE-01", "CLAIM-06", "ERR-01")
        for queue in ALL_QUEUES
        if queue in BOTH
    ]
    assert result.certificates and all(each.exhaustive for each in result.certificates)
    assert result.coverage.schedules >= sum(each.schedules for each in result.certificates if each.clause == "CLAIM-06")


class Claimless(MemoryAdapter):
    """Nothing ever seems to run, so that hardly a trace gets to its end."""

    async def snapshot(self) -> dict[c.JobId, o.Row]:
        rows = await super().snapshot()
        return {job: row._replace(status="pending") if row.status == "running" else row for job, row in rows.items()}


def test_a_clause_that_a_fault_hides_is_not_looked_for_without_end() -> None:
    result = went(planned(Claimless)).result
    assert result.verdict == "fail"
    assert pairs_of(result)["FENCE-01", "backfill"].verdict == "not exercised"
    assert result.coverage.examples < TINY.examples * (len(BUILT) + 4)


def test_the_same_seed_finds_the_same() -> None:
    results = [went(planned(MemoryAdapter, seed=4)).result for _ in range(2)]
    assert results[0].model_copy(update={"coverage": results[1].coverage}) == results[1]
    other = went(planned(MemoryAdapter, seed=5)).result
    assert other.clauses != results[0].clauses and other.verdict == results[0].verdict


SEQUENTIAL = (
    "complete-expired",
    "claim-lazy-handles",
    "configure-any-lease",
    "retry-at-once",
    "recover-once-too-often",
)


@pytest.mark.parametrize("name", SEQUENTIAL)
def test_a_fault_fails_the_run_under_its_clause_and_leaves_a_file_that_replays(name: str, folder: Path) -> None:
    mutant = mutant_named(name)
    watching = Watching()
    plan = planned(broken(name), mutant.clause, queues=(mutant.queue,), profile=PROFILES["quick"])
    outcome = run(plan, watching)
    result = outcome.result
    assert (result.verdict, result.interrupted, outcome.fault) == ("fail", False, "")
    assert list(result.failures) == watching.failures
    (failure,) = (each for each in result.failures if each.clause == mutant.clause)
    pair = pairs_of(result)[mutant.clause, mutant.queue]
    assert (pair.verdict, pair.reason) == ("fail", failure.reason)
    assert failure.queue == mutant.queue and failure.length >= 1
    assert mutant.clause in failure.story and failure.scenario is not None and failure.scenario in failure.story

    scenario = load(failure.scenario)
    assert Path(failure.scenario).resolve().is_relative_to(folder)
    assert (scenario.clause, scenario.queue, scenario.trace.length) == (mutant.clause, mutant.queue, failure.length)
    assert scenario.found is not None and scenario.found.seed == plan.seed
    with Session(SqliteAdapter(), QUEUES[mutant.queue]) as right:
        assert replay(right, scenario).verdict == "pass"
    with Session(plan.make(), QUEUES[mutant.queue]) as wrong:
        replayed = replay(wrong, scenario)
    assert replayed.verdict == "fail" and replayed.violation is not None
    assert (replayed.violation.clause, replayed.violation.why) == (mutant.clause, failure.why)


def test_a_race_fails_the_run_and_leaves_a_schedule_that_replays() -> None:
    mutant = mutant_named("complete-checks-cancel-before")
    plan = planned(broken(mutant.id), "CANCEL-09")
    result = went(plan).result
    assert result.verdict == "fail"
    (failure,) = result.failures
    assert failure.clause == "CANCEL-09" and failure.scenario is not None
    assert pairs_of(result)["CANCEL-09", "backfill"].verdict == "fail"
    assert "fencepost replay" in failure.story
    scenario = load(failure.scenario)
    assert scenario.trace.schedule is not None and scenario.adapters == (OWN,)
    with Session(plan.make(), QUEUES["backfill"]) as wrong:
        replayed = replay(wrong, scenario)
    assert replayed.verdict == "fail" and replayed.violation is not None
    assert (replayed.violation.clause, replayed.violation.why) == ("CANCEL-09", failure.why)


def test_faults_of_two_clauses_are_both_found_each_once() -> None:
    rules = CONTRACT.without("writes.complete.succeeded", "lease_expires_at").without("recover.requeue", "worker_id")
    result = went(planned(lambda: SqliteAdapter(rules=rules), profile=PROFILES["quick"])).result
    clauses = [failure.clause for failure in result.failures]
    assert {"TERM-03", "REC-01"} <= set(clauses) and len(set(clauses)) == len(clauses)


def test_only_the_clauses_and_queues_that_were_asked_for_are_judged() -> None:
    result = went(planned(MemoryAdapter, "FENCE-01", "REC-01", queues=("mutation",))).result
    judged = {(pair.id, pair.queue) for pair in result.clauses if pair.built}
    assert judged == {("FENCE-01", "mutation"), ("REC-01", "mutation")}
    assert result.verdict == "self-check" and result.queues == ("mutation",)


def test_a_clause_that_was_met_too_seldom_is_inconclusive_and_says_how_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(examine, "witnesses", lambda spec, clause: iter(()))
    seldom = replace(TINY, minimum=10**6)
    result = went(planned(MemoryAdapter, "FENCE-01", "ERR-01", profile=seldom)).result
    fence = pairs_of(result)["FENCE-01", "backfill"]
    assert fence.verdict == "inconclusive" and fence.teeth > 0
    assert fence.reason == f"{fence.teeth} of {10**6} checks with teeth"
    assert pairs_of(result)["ERR-01", "backfill"].verdict == "pass", "its table is complete"
    assert result.verdict == "inconclusive"


@pytest.mark.parametrize("at", [60, 150])
def test_an_interrupted_run_keeps_what_it_found(at: int) -> None:
    outcome = went(planned(partial(Stopping, at, KeyboardInterrupt), profile=PROFILES["quick"]))
    result = outcome.result
    assert result.interrupted and outcome.fault == ""
    assert [failure.clause for failure in result.failures] == ["TERM-03"]
    assert result.verdict == "fail"
    assert 0 < result.coverage.examples < at and result.coverage.steps > 0
    assert result.certificates == ()
    assert pairs_of(result)["TERM-03", "backfill"].verdict == "fail"
    assert exit_code(result) == 2
    raced = pairs_of(result)["CLAIM-06", "backfill"]
    assert raced.verdict in ("not exercised", "inconclusive") and "cut short" in raced.reason


def test_an_interrupt_before_anything_was_measured_is_no_pass() -> None:
    outcome = went(planned(partial(Stopping, 1, KeyboardInterrupt)))
    assert outcome.result.interrupted and outcome.result.verdict == "inconclusive"
    assert not outcome.result.measured and outcome.result.failures == ()


class Tired(MemoryAdapter):
    """Somebody presses Ctrl-C in the very last script of a run that had all it needs."""

    left = 0

    async def reset(self) -> None:
        Tired.left -= 1
        if Tired.left == 0:
            raise KeyboardInterrupt
        await super().reset()


def test_a_run_that_was_cut_short_does_not_pass_although_every_pair_had_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Tired, "left", 10**6)
    plan = planned(Tired, "CLAIM-01")
    assert went(plan).result.verdict == "self-check"
    monkeypatch.setattr(Tired, "left", 10**6 - Tired.left)
    result = went(plan).result
    assert pairs_of(result)["CLAIM-01", "backfill"].verdict == "pass"
    assert (result.verdict, result.interrupted) == ("inconclusive", True)


def test_a_race_that_was_searched_in_part_is_no_complete_certificate() -> None:
    """A clause of several programs passes only once all of them were played."""
    watching = Watching()
    advance = watching.advance

    def pressed(name: str, amount: int = 1) -> None:
        advance(name, amount)
        if watching.advanced[name] == 60:
            raise KeyboardInterrupt

    watching.advance = pressed  # type: ignore[method-assign]
    result = run(planned(SqliteAdapter, "CLAIM-06", "CANCEL-09", "REC-07"), watching).result
    assert result.certificates, "one race was over by then"
    assert result.interrupted and not [pair for pair in result.clauses if pair.verdict == "pass"]


def test_what_is_found_is_told_also_where_its_file_cannot_be_written(folder: Path) -> None:
    (folder / ".fencepost").mkdir()
    (folder / ".fencepost" / "failures").write_text("no folder")
    outcome = went(planned(broken("complete-expired"), "FENCE-01"))
    assert (outcome.fault, outcome.result.verdict) == ("", "fail")
    (failure,) = outcome.result.failures
    assert (failure.clause, failure.scenario) == ("FENCE-01", None)
    assert "replay: not possible, for its file cannot be written below .fencepost: " in failure.story


def test_a_fault_that_is_known_hides_no_other_in_a_race() -> None:
    """A completion after the lease breaks FENCE-01 in the very race in which the hook is handed a job too many."""
    late = mutant_named("sweep-hook-gets-read").change(CONTRACT.without("fence.complete", "lease_valid"))
    result = went(planned(lambda: SqliteAdapter(rules=late), "FENCE-01", "REC-08")).result
    assert {"FENCE-01", "REC-08"} <= {failure.clause for failure in result.failures}


def test_orders_that_break_another_clause_certify_nothing() -> None:
    late = mutant_named("complete-expired").change(CONTRACT)
    result = went(planned(lambda: SqliteAdapter(rules=late), "FENCE-01", "REC-07")).result
    right = went(planned(SqliteAdapter, "REC-07")).result
    played = {entry.pair: entry.schedules for entry in right.certificates if entry.clause == "REC-07"}
    beside = [
        entry
        for entry in result.certificates
        if entry.clause == "REC-07" and "in which another clause is broken" in entry.bound
    ]
    assert beside and all(entry.schedules < played[entry.pair] for entry in beside)


def test_a_race_in_which_nothing_could_be_judged_leaves_a_gap(monkeypatch: pytest.MonkeyPatch) -> None:
    def hidden(*_: object, **__: object) -> Iterator[Raced]:
        made = [
            Certificate(
                clause=clause,
                queue="backfill",
                adapter="sqlite",
                pair="a ‖ b",
                schedules=500,
                exhaustive=False,
                bound="",
            )
            for clause in ("REC-02", "CLAIM-06")
        ]
        yield Raced(PROGRAMS[0], tuple(made), 500)

    monkeypatch.setattr("fencepost.conformance.run.race_all", hidden)
    pairs = pairs_of(went(planned(SqliteAdapter, "REC-02", "CLAIM-06")).result)
    one, two = pairs["REC-02", "backfill"], pairs["CLAIM-06", "backfill"]
    assert (one.verdict, one.gap, two.verdict) == ("pass", True, "inconclusive")
    assert "every order breaks another clause" in one.reason and one.reason == two.reason


class Plain(MemoryAdapter):
    """It declares that it can do nothing beyond the verbs."""

    capabilities = Capabilities(
        verdict="self-check", hooks=False, without=frozenset({"probe"}), counts_statements=False
    )


def test_what_an_adapter_declares_that_it_cannot_do_is_not_applicable_and_says_why() -> None:
    pairs = pairs_of(went(planned(Plain)).result)
    for clause, why in (
        ("CLAIM-12", "without hooks"),
        ("REC-08", "without hooks"),
        ("CLAIM-09", "not asked to probe"),
        ("REC-06", "does not count statements"),
        ("CLAIM-06", "no gate"),
    ):
        pair = pairs[clause, "backfill"]
        assert pair.verdict == "not applicable" and pair.gap and why in pair.reason, pair


@pytest.mark.parametrize("name", [None, "complete-expired"])
def test_a_result_is_read_back_as_it_was_written(name: str | None, folder: Path) -> None:
    clauses = ("FENCE-01", "TERM-03")
    result = went(planned(SqliteAdapter if name is None else broken(name), *clauses, profile=PROFILES["quick"])).result
    path = folder / "deep" / "result.json"
    write(result, path)
    assert read(path) == result
    assert result.verdict == ("pass" if name is None else "fail")
    assert (result.adapter, result.profile, result.seed) == (OWN, "quick", 1)
    assert set(result.versions) == {"fencepost", "hypothesis", "sqlalchemy", "python"}


def test_every_built_clause_has_a_pair_in_every_full_result() -> None:
    result = went(planned(MemoryAdapter)).result
    assert {pair.id for pair in result.clauses if pair.queue == "backfill"} == set(CLAUSES) >= set(BUILT)
