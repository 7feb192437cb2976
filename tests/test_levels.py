"""What a run's pairs amount to: levels reached and not, for each kind of reason, and requirements that are not met."""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import ClassVar

import pytest
from fencepost.adapters.contract import Capabilities
from fencepost.adapters.memory import MemoryAdapter
from fencepost.adapters.reference.adapter import SqliteAdapter
from fencepost.model.clauses import BUILT, CLAUSES, LEVELS, up_to
from fencepost.model.queues import QueueSpec
from fencepost.reports.levels import levels_of, unmet_of
from fencepost.reports.result import (
    NOT_BUILT,
    ClauseResult,
    Exit,
    LevelResult,
    Obstacle,
    PairVerdict,
    Result,
    exit_code,
    read,
    write,
)
from fencepost.reports.terminal import make_console, render_result
from pydantic import ValidationError
from runs import Stopping, pairs_of, planned, went

JOBS = ("jobs",)


def pair(clause: str, verdict: PairVerdict = "pass", reason: str = "", *, gap: bool = False) -> ClauseResult:
    return ClauseResult(id=clause, queue="jobs", verdict=verdict, reason=reason, gap=gap, checked=9, teeth=9)


def all_but(*others: ClauseResult) -> list[ClauseResult]:
    """A run in which everything that is built passes, but for these."""
    found = {
        clause: pair(clause) if clause in BUILT else pair(clause, "not exercised", NOT_BUILT) for clause in CLAUSES
    }
    return [*(found | {each.id: each for each in others}).values()]


def verdicts(pairs: Iterable[ClauseResult]) -> list[str]:
    return [level.verdict for level in levels_of(pairs, JOBS)]


# ------------------------------------------------------------------------------------------------------- levels


def test_a_queue_that_passes_everything_reaches_every_level_and_what_is_not_built_is_said() -> None:
    levels = levels_of(all_but(), JOBS)
    assert [(each.queue, each.level, each.verdict, each.obstacles) for each in levels] == [
        ("jobs", level, "reached", ()) for level in LEVELS.values()
    ]
    for each in levels:
        assert each.not_built == tuple(clause for clause in up_to(each.level) if clause not in BUILT)
    assert levels[1].not_built == ("LEASE-06",)


def test_what_the_queue_declares_not_to_have_is_allowed() -> None:
    lacking = (pair("CANCEL-01", "not applicable", "jobs has no cancel"), pair("INV-6", "not applicable", "the same"))
    assert verdicts(all_but(*lacking)) == ["reached"] * 3


@pytest.mark.parametrize(
    ("other", "why"),
    [
        (pair("CLAIM-12", "not applicable", "jobs is driven without hooks", gap=True), "jobs is driven without hooks"),
        (pair("CLAIM-12", "fail", "claim: hook raised"), "failed: claim: hook raised"),
        (pair("CLAIM-12", "inconclusive", "3 of 100 checks with teeth"), "inconclusive: 3 of 100 checks with teeth"),
        (pair("CLAIM-12", "not exercised", "0 of 100 checks with teeth"), "not exercised: 0 of 100 checks with teeth"),
        (pair("CLAIM-12", "pass", "by one actor only", gap=True), "by one actor only"),
    ],
    ids=["gap", "failed", "inconclusive", "not exercised", "half of it is a gap"],
)
def test_what_keeps_a_level_from_being_reached_keeps_those_above_it_too(other: ClauseResult, why: str) -> None:
    levels = levels_of(all_but(other), JOBS)
    assert [each.verdict for each in levels] == ["not reached"] * 3
    assert all(each.obstacles == (Obstacle(clauses=("CLAIM-12",), why=why),) for each in levels)


def test_a_level_is_reached_without_those_above_it() -> None:
    assert verdicts(all_but(pair("ATT-01", "fail", "too many"))) == ["reached", "not reached", "not reached"]
    assert verdicts(all_but(pair("REC-12", "fail", "stopped"))) == ["reached", "reached", "not reached"]


def test_clauses_that_lack_the_same_are_told_together() -> None:
    others = [pair(clause, "not applicable", "no gate", gap=True) for clause in ("CLAIM-06", "CLAIM-11", "REC-07")]
    levels = levels_of(all_but(*others, pair("REC-06", "fail", "wrote")), JOBS)
    assert levels[0].obstacles == (Obstacle(clauses=("CLAIM-06", "CLAIM-11"), why="no gate"),)
    assert levels[1].obstacles == (
        Obstacle(clauses=("CLAIM-06", "CLAIM-11", "REC-07"), why="no gate"),
        Obstacle(clauses=("REC-06",), why="failed: wrote"),
    )


def test_a_level_of_which_a_clause_was_left_out_is_not_judged() -> None:
    left = [each for each in all_but() if each.id not in ("LEASE-01", "ATT-01")]
    levels = levels_of(left, JOBS)
    assert [each.verdict for each in levels] == ["reached", "not judged", "not judged"]
    assert levels[1].obstacles == (Obstacle(clauses=("LEASE-01", "ATT-01"), why="left out of this run"),)


def test_a_run_that_was_cut_short_judges_no_level() -> None:
    levels = levels_of(all_but(), JOBS, cut_short=True)
    assert [(each.verdict, each.obstacles[0].why) for each in levels] == [("not judged", "the run was cut short")] * 3


# ------------------------------------------------------------------------------------------------------- requirements


def told(pairs: list[ClauseResult], *required: str) -> list[str]:
    return [str(each) for each in unmet_of(required, pairs, JOBS)]


def test_what_is_met_is_not_told() -> None:
    assert told(all_but(), "level-1", "level-2", "level-3", "FENCE-03") == []
    assert told(all_but(pair("FENCE-03", "not applicable", "owner only")), "level-3") == []


@pytest.mark.parametrize(
    ("other", "said"),
    [
        (pair("FENCE-03", "not applicable", "owner only"), "owner only; require it of other queues only"),
        (pair("FENCE-03", "not applicable", "no verb", gap=True), "no verb; have the adapter drive it"),
        (pair("FENCE-03", "pass", "by one only", gap=True), "by one only; have the adapter drive it"),
        (pair("FENCE-03", "inconclusive", "3 of 100"), "inconclusive: 3 of 100; look deeper"),
        (pair("FENCE-03", "not exercised", "0 of 100"), "not exercised: 0 of 100; look deeper"),
        (pair("FENCE-03", "fail", "stale"), "failed: stale; mend the queue"),
    ],
    ids=["declared", "gap", "half a gap", "inconclusive", "not exercised", "failed"],
)
def test_a_required_clause_must_pass_and_else_it_is_said_why_and_what_to_do(other: ClauseResult, said: str) -> None:
    (line,) = told(all_but(other), "FENCE-03")
    assert line.startswith(f"FENCE-03 is required of jobs, and is not met: {said}")


@pytest.mark.parametrize("clause", ["ACC-05", "WATCH-03", "CLAIM-10"])
def test_what_is_not_built_is_not_met_whether_it_is_a_must_or_not(clause: str) -> None:
    assert told(all_but(), clause) == [
        f"{clause} is required of jobs, and is not met: not built in this version; require less until it is"
    ]


def test_a_required_level_names_the_clauses_that_keep_it_from_being_reached() -> None:
    others = [pair(clause, "not applicable", "no gate", gap=True) for clause in ("CLAIM-06", "CLAIM-11", "REC-07")]
    pairs = all_but(*others, pair("CANCEL-01", "not applicable", "no cancel"), pair("REC-06", "fail", "wrote"))
    assert told(pairs, "level-1") == [
        "level-1 is required of jobs, and is not met: CLAIM-06, CLAIM-11: no gate; "
        "have the adapter drive it and declare so, or require less"
    ]
    assert [line.partition("met: ")[2].partition(":")[0] for line in told(pairs, "level-2")] == [
        "CLAIM-06, CLAIM-11, REC-07",
        "REC-06",
    ]


def test_what_is_required_and_was_left_out_is_not_met() -> None:
    left = [each for each in all_but() if each.id not in ("CLAIM-01", "TERM-01")]
    assert told(left, "level-1", "TERM-01") == [
        "level-1 is required of jobs, and is not met: CLAIM-01, TERM-01: left out of this run; "
        "run all that is required, or require less",
        "TERM-01 is required of jobs, and is not met: left out of this run; run all that is required, or require less",
    ]


def a_result(pairs: list[ClauseResult], *required: str, verdict: str = "pass") -> Result:
    return Result(
        verdict=verdict,
        adapter="team.queue:Adapter",
        profile="ci",
        seed=7,
        queues=JOBS,
        clauses=tuple(pairs),
        levels=levels_of(pairs, JOBS),
        required=required,
        unmet=unmet_of(required, pairs, JOBS),
    )


def test_a_requirement_that_is_not_met_fails_the_run() -> None:
    pairs = all_but(pair("FENCE-03", "not applicable", "owner only"))
    assert exit_code(a_result(pairs)) == Exit.CONFORMANT
    with pytest.raises(ValidationError, match="say 'fail'"):
        a_result(pairs, "FENCE-03")
    assert exit_code(a_result(pairs, "FENCE-03", verdict="fail")) == Exit.NOT_CONFORMANT


def test_a_run_that_measured_nothing_of_what_was_required_failed() -> None:
    nothing = [ClauseResult(id="CLAIM-06", queue="jobs", verdict="not applicable", reason="no gate", gap=True)]
    assert exit_code(a_result(nothing, verdict="inconclusive")) == Exit.NOTHING_MEASURED
    assert exit_code(a_result(nothing, "CLAIM-06", verdict="fail")) == Exit.NOT_CONFORMANT


# ------------------------------------------------------------------------------------------------------- reports


def lines(result: Result) -> list[str]:
    out = io.StringIO()
    render_result(result, make_console(out))
    return out.getvalue().splitlines()


def test_the_terminal_has_one_line_for_each_queue() -> None:
    assert (
        "levels: jobs 1 reached, 2 reached (not built: LEASE-06), "
        "3 reached (not built: CLAIM-10, LEASE-05, LEASE-06 and 37 more)"
    ) in lines(a_result(all_but()))
    hookless = [pair(c, "not applicable", "jobs is driven without hooks", gap=True) for c in ("CLAIM-12", "REC-08")]
    assert (
        "levels: jobs 1 not reached, 2 not reached, 3 not reached: CLAIM-12: jobs is driven without hooks"
    ) in lines(a_result(all_but(*hookless)))
    untimely = a_result(all_but(pair("REC-12", "inconclusive", "3 of 100")), verdict="inconclusive")
    assert (
        "levels: jobs 1 reached, 2 reached (not built: LEASE-06), 3 not reached: REC-12: inconclusive: 3 of 100"
    ) in lines(untimely)


def test_the_terminal_names_the_first_few_reasons_and_says_how_many_there_are() -> None:
    many = [pair(clause, "not applicable", "no gate", gap=True) for clause in up_to(1)[:5]]
    others = [pair(clause, "not applicable", f"without {clause}", gap=True) for clause in up_to(1)[5:9]]
    (line,) = [line for line in lines(a_result(all_but(*many, *others))) if line.startswith("levels")]
    assert line.endswith(
        "3 not reached: CLAIM-01, CLAIM-02, CLAIM-05 and 2 more: no gate; CLAIM-09: without CLAIM-09; "
        "CLAIM-11: without CLAIM-11; and 2 more reasons"
    )


def test_the_terminal_tells_what_is_not_met_and_counts_it() -> None:
    pairs = all_but(pair("FENCE-03", "not applicable", "owner only"), pair("REC-06", "fail", "wrote"))
    shown = lines(a_result(pairs, "FENCE-03", "level-2", verdict="fail"))
    assert set(told(pairs, "FENCE-03", "level-2")) <= set(shown)
    assert "2 requirements not met" in " ".join(" ".join(shown).split())


def test_a_result_with_levels_and_requirements_reads_back(tmp_path: Path) -> None:
    result = a_result(all_but(pair("FENCE-03", "not applicable", "owner only")), "FENCE-03", verdict="fail")
    write(result, tmp_path / "result.json")
    assert read(tmp_path / "result.json") == result


# ------------------------------------------------------------------------------------------------------- whole runs


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


SMALL = QueueSpec(key="jobs", cancels=False, ordered=False)
"""It declares little, so that little is looked at."""


class Small(SqliteAdapter):
    queues: ClassVar[Mapping[str, QueueSpec]] = {"jobs": SMALL}


class Unseen(MemoryAdapter):
    """Everything that an adapter may lack is lacking."""

    queues: ClassVar[Mapping[str, QueueSpec]] = {"jobs": SMALL}
    capabilities = Capabilities(
        verdict="self-check", hooks=False, without=frozenset({"probe", "tick"}), counts_statements=False
    )


def at(result: Result, level: int) -> LevelResult:
    return result.levels[level - 1]


def test_a_queue_that_declares_little_reaches_all_levels_when_all_of_it_is_driven() -> None:
    result = went(replace(planned(Small, queues=JOBS), required=("level-3",))).result
    assert (result.verdict, result.unmet) == ("pass", ())
    assert [each.verdict for each in result.levels] == ["reached"] * 3
    declared = pairs_of(result)["CANCEL-01", "jobs"]
    assert declared.verdict == "not applicable" and not declared.gap


def test_a_queue_that_cannot_be_watched_reaches_none_and_the_run_says_for_what_reasons() -> None:
    result = went(planned(Unseen, queues=JOBS)).result
    assert result.verdict == "self-check"
    assert [each.verdict for each in result.levels] == ["not reached"] * 3
    assert [(obstacle.clauses, obstacle.why) for obstacle in at(result, 2).obstacles] == [
        (
            ("CLAIM-06", "CLAIM-11", "REC-07"),
            "the adapter declares no gate: its statements cannot be scheduled",
        ),
        (("CLAIM-09",), "jobs is not asked to probe"),
        (("CLAIM-12", "REC-08"), "jobs is driven without hooks"),
        (("REC-02",), "by one actor only: what two at once do was not tried"),
        (("REC-04",), "jobs is not asked to tick"),
        (("REC-06",), "the adapter does not count statements"),
    ]
    gaps = {place for place, found in pairs_of(result).items() if found.gap}
    assert {(clause, "jobs") for each in at(result, 2).obstacles for clause in each.clauses} <= gaps
    assert pairs_of(result)["CANCEL-09", "jobs"].reason == "jobs has no cancel"


def test_what_is_required_of_such_a_queue_fails_the_run() -> None:
    result = went(replace(planned(Unseen, "CLAIM-09", "CLAIM-01", queues=JOBS), required=("CLAIM-09",))).result
    assert result.verdict == "fail" and result.failures == () and exit_code(result) == Exit.NOT_CONFORMANT
    assert [(each.queue, each.clauses, each.why) for each in result.unmet] == [
        ("jobs", ("CLAIM-09",), "jobs is not asked to probe")
    ]
    assert all(each.verdict == "not judged" for each in result.levels)


def test_an_interrupted_run_judges_neither_levels_nor_requirements() -> None:
    plan = replace(planned(partial(Stopping, 5, KeyboardInterrupt)), required=("level-1", "FENCE-03"))
    result = went(plan).result
    assert result.interrupted and exit_code(result) == Exit.INTERRUPTED
    assert (result.required, result.unmet) == (("level-1", "FENCE-03"), ())
    assert {each.verdict for each in result.levels} == {"not judged"}
