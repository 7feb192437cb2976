"""Requiring clauses and levels, on the command line and in pytest: what is refused, and what turns red."""

from __future__ import annotations

from pathlib import Path

import pytest
from fencepost.conformance.cli import call
from fencepost.conformance.selection import UnknownName, Unusable, chosen_clauses, chosen_requirements
from fencepost.model.clauses import up_to
from fencepost.reports.result import read

pytest_plugins = ["pytester"]

QUICK = "--queue=backfill", "--profile=quick", "--seed=1"
PLUGIN = "--pyargs", "fencepost.conformance", *(f"--fencepost-{option[2:]}" for option in QUICK)
NO_GATE = "the adapter declares no gate: its statements cannot be scheduled"


@pytest.fixture(autouse=True)
def beside_the_planted_queues(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent))
    monkeypatch.setenv("HYPOTHESIS_STORAGE_DIRECTORY", "")
    monkeypatch.delenv("HYPOTHESIS_STORAGE_DIRECTORY")
    monkeypatch.chdir(tmp_path)


# ------------------------------------------------------------------------------------------------------- names


@pytest.mark.parametrize(
    ("names", "required"),
    [
        ((), ()),
        (("level-2",), ("level-2",)),
        (("2", "Level-3"), ("level-2", "level-3")),
        (("claim-06, 1", "ACC-05"), ("CLAIM-06", "level-1", "ACC-05")),
        (("1", "level-1,1"), ("level-1",)),
    ],
)
def test_clauses_and_levels_are_required_by_name(names: tuple[str, ...], required: tuple[str, ...]) -> None:
    assert chosen_requirements(names) == required


@pytest.mark.parametrize(
    ("name", "nearest"),
    [("levle-2", "level-2"), ("4", "level-"), ("level-9", "level-"), ("FENCE-2", "FENCE-02"), ("1,,2", ""), ("", "")],
)
def test_a_name_that_stands_for_nothing_is_refused_with_the_nearest(name: str, nearest: str) -> None:
    with pytest.raises(UnknownName, match=f"there is no clause or level .*did you mean {nearest}"):
        chosen_requirements([name])


def test_what_is_required_cannot_be_left_out() -> None:
    assert chosen_requirements(["CLAIM-06", "ACC-05"], chosen_clauses(["CLAIM-06"])) == ("CLAIM-06", "ACC-05")
    assert chosen_requirements(["1"], frozenset(up_to(1))) == ("level-1",)
    with pytest.raises(Unusable, match=r"REC-07 is required, but the run is narrowed .* leaves out REC-07; ask"):
        chosen_requirements(["REC-07"], chosen_clauses(["CLAIM-06"]))
    with pytest.raises(Unusable, match=r"level-1 is required, .* leaves out CLAIM-02, CLAIM-05, CLAIM-06 and 9 more;"):
        chosen_requirements(["level-1"], chosen_clauses(["CLAIM-01"]))


# ------------------------------------------------------------------------------------------------------- command line


def test_what_is_required_and_met_changes_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = "--adapter=memory", *QUICK, "--clause=CLAIM-01", "--clause=LEASE-01", "--require=claim-01,LEASE-01"
    assert call(["run", *arguments, "--json=result.json"]) == 0
    assert "SELF-CHECK" in capsys.readouterr().out
    result = read(Path("result.json"))
    assert (result.required, result.unmet) == (("CLAIM-01", "LEASE-01"), ())


def test_what_is_required_and_not_applicable_fails_the_run(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = "--adapter=planted_queues:Hookless", *QUICK, "--require=level-1", "--require=FENCE-03"
    assert call(["run", *arguments, "--json=result.json"]) == 1
    told = capsys.readouterr().out.splitlines()
    assert (
        f"levels: backfill 1 not reached, 2 not reached, 3 not reached: CLAIM-06, CLAIM-11: {NO_GATE}; "
        "CLAIM-12: backfill is driven without hooks"
    ) in told
    drive = "have the adapter drive it and declare so, or require less"
    assert f"level-1 is required of backfill, and is not met: CLAIM-06, CLAIM-11: {NO_GATE}; {drive}" in told
    assert (
        f"level-1 is required of backfill, and is not met: CLAIM-12: backfill is driven without hooks; {drive}" in told
    )
    assert (
        "FENCE-03 is required of backfill, and is not met: backfill declares an owner-only fence: "
        "it cannot tell a worker's older handle; "
        "require it of other queues only, or have the queue declare what it has"
    ) in told
    result = read(Path("result.json"))
    assert (result.verdict, result.failures, len(result.unmet)) == ("fail", (), 3)


def test_without_the_requirement_the_same_run_is_green() -> None:
    assert call(["run", "--adapter=planted_queues:Hookless", *QUICK, "--quiet"]) == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--require=level-0"], "there is no clause or level 'level-0'; did you mean level-"),
        (["--require="], "The levels are level-1, level-2, level-3"),
        (["--require=1", "--clause=CLAIM-01"], "level-1 is required, but the run is narrowed to other clauses"),
    ],
)
def test_what_cannot_be_required_is_refused(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(["run", "--adapter=memory", *arguments]) == 4
    answered = capsys.readouterr()
    assert said in answered.err and answered.out == ""


# ------------------------------------------------------------------------------------------------------- pytest


def test_in_pytest_an_item_that_keeps_a_level_from_being_reached_is_red(pytester: pytest.Pytester) -> None:
    options = "--fencepost-adapter=planted_queues:Hookless", "--fencepost-require=level-1"
    ran = pytester.runpytest_subprocess(*PLUGIN, *options, "-rf")
    assert ran.ret == 1
    assert ran.parseoutcomes()["failed"] == 3
    red = {line.partition("::")[2].partition("[")[0] for line in ran.outlines if line.startswith("FAILED")}
    assert red == {"CLAIM-06", "CLAIM-11", "CLAIM-12"}
    told = ran.stdout.str()
    assert "not applicable on queue backfill: backfill is driven without hooks" in told
    assert "level-1 is required of backfill, and is not met: CLAIM-12: backfill is driven without hooks" in told
    assert "Traceback" not in told


def test_in_pytest_a_passing_item_whose_half_cannot_be_driven_is_red_if_required(pytester: pytest.Pytester) -> None:
    options = "--fencepost-adapter=memory", "--fencepost-clause=REC-02"
    assert pytester.runpytest_subprocess(*PLUGIN, *options).parseoutcomes() == {"passed": 1}
    ran = pytester.runpytest_subprocess(*PLUGIN, *options, "--fencepost-require=REC-02")
    assert (ran.ret, ran.parseoutcomes()) == (1, {"failed": 1})
    assert "REC-02 is required of backfill, and is not met: by one actor only" in ran.stdout.str()


def test_in_pytest_what_is_required_and_deselected_is_red(pytester: pytest.Pytester) -> None:
    options = "--fencepost-adapter=memory", "--fencepost-require=CLAIM-02", "-k", "CLAIM-01"
    ran = pytester.runpytest_subprocess(*PLUGIN, *options)
    assert ran.parseoutcomes()["passed"] == 1
    assert ran.ret == 1
    assert "CLAIM-02 is required of backfill, and is not met: left out of this run" in ran.stdout.str()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--fencepost-require=levl-1"], "did you mean level-1?"),
        (["--fencepost-require=1", "--fencepost-clause=CLAIM-01"], "level-1 is required, but the run is narrowed"),
    ],
)
def test_in_pytest_what_cannot_be_required_is_a_usage_error(
    options: list[str], said: str, pytester: pytest.Pytester
) -> None:
    ran = pytester.runpytest_subprocess(*PLUGIN, "--fencepost-adapter=memory", *options)
    assert ran.ret == 4
    assert said in ran.stderr.str()
