"""The pytest plugin: what is collected, what is red, what is told, and that other people's runs never notice it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from fencepost.model.applicability import pairs
from fencepost.model.clauses import CLAUSES
from fencepost.model.queues import QUEUES
from fencepost.reports import result

pytest_plugins = ["pytester"]

CONTRACT = "--pyargs", "fencepost.conformance"
WHOLE = "--fencepost-profile=quick", "--fencepost-seed=1"
"""As deep as every clause needs."""
QUICK = "-p", "shallow", *WHOLE, "--fencepost-queue=backfill"
BUILT = [(clause, queue.key) for clause, queue, cell in pairs(QUEUES.values()) if cell.status != "not built"]
HOOKS = ("CLAIM-12", "REC-08", "REC-12")
SCENARIOS = Path(__file__).parent.parent / "scenarios"


@pytest.fixture(autouse=True)
def beside_the_planted_queues(monkeypatch: pytest.MonkeyPatch) -> None:
    here = str(Path(__file__).parent)
    monkeypatch.syspath_prepend(here)
    monkeypatch.setenv("PYTHONPATH", here)


# ------------------------------------------------------------------------------------------------------- the contract


def test_one_item_for_each_built_clause_and_queue(pytester: pytest.Pytester) -> None:
    collected = pytester.runpytest_subprocess(*CONTRACT, "--collect-only", "-q")
    names = {line.rpartition("::")[2] for line in collected.outlines if "::" in line}
    assert names == {f"{clause}[{queue}]" for clause, queue in BUILT}


def test_options_choose_what_is_collected(pytester: pytest.Pytester) -> None:
    options = "--fencepost-queue=mutation", "--fencepost-clause=CLAIM-03", "--fencepost-clause=fence-01"
    collected = pytester.runpytest_subprocess(*CONTRACT, *options, "--collect-only", "-q")
    names = [line.rpartition("::")[2] for line in collected.outlines if "::" in line]
    assert names == ["CLAIM-03[mutation]", "FENCE-01[mutation]"]


def test_a_right_queue_is_green_and_told_as_a_table(pytester: pytest.Pytester) -> None:
    ran = pytester.runpytest_subprocess(
        *CONTRACT, *WHOLE, "--fencepost-adapter=memory", "--fencepost-json=out/mine.json"
    )
    assert ran.ret == 0
    told = ran.stdout.str()
    assert "SELF-CHECK  adapter memory · profile quick · seed 1" in told
    assert "not exercised: not built" in told
    outcomes = ran.parseoutcomes()
    read = result.read(pytester.path / ".fencepost" / "memory.json")
    assert outcomes["passed"] == sum(pair.verdict == "pass" for pair in read.clauses)
    assert outcomes["skipped"] == sum(pair.verdict == "not applicable" for pair in read.clauses)
    assert outcomes["passed"] + outcomes["skipped"] == len(BUILT)
    assert result.read(pytester.path / "out" / "mine.json") == read


def test_a_broken_clause_is_red_and_its_story_is_the_failure(pytester: pytest.Pytester) -> None:
    ran = pytester.runpytest_subprocess(*CONTRACT, *QUICK, "--fencepost-adapter=planted_queues:Boasting", "--tb=short")
    assert ran.ret == 1
    told = ran.stdout.str()
    assert "FENCE-06[backfill]" in told
    assert "w1 completes" in told
    assert "replay: fencepost replay .fencepost/failures/" in told
    assert "Traceback" not in told
    assert ".py:" not in told.partition("= FAILURES =")[2].partition("= conformance =")[0]
    assert result.read(pytester.path / ".fencepost" / "planted_queues.Boasting.json").verdict == "fail"


def test_a_failure_of_a_clause_that_has_no_item_is_red_too(pytester: pytest.Pytester) -> None:
    options = "--fencepost-adapter=planted_queues:Boasting", "--fencepost-clause=CLAIM-01"
    ran = pytester.runpytest_subprocess(*CONTRACT, *QUICK, *options)
    assert ran.parseoutcomes() == {"passed": 1}
    assert ran.ret == 1
    assert "w1 completes" in ran.stdout.str()


def test_what_the_run_could_not_decide_is_red_with_the_reason(pytester: pytest.Pytester) -> None:
    options = "--fencepost-adapter=memory", "--fencepost-profile=nightly", "--fencepost-queue=mutation"
    pytester.makeconftest(
        """
        import dataclasses
        from fencepost.conformance import profiles

        profiles.PROFILES["nightly"] = dataclasses.replace(profiles.PROFILES["nightly"], examples=1, minimum=10**6)
        """
    )
    ran = pytester.runpytest_subprocess("-p", "conftest", *CONTRACT, *options, "--fencepost-clause=REC-09")
    assert ran.ret == 1
    assert "of 1000000 checks with teeth" in ran.stdout.str()


@pytest.mark.parametrize("workers", ["-n0", "-n2"])
def test_a_run_in_which_all_is_skipped_is_red(workers: str, pytester: pytest.Pytester) -> None:
    options = "--fencepost-adapter=memory", "--fencepost-clause=CLAIM-06", "-rs", workers
    ran = pytester.runpytest_subprocess(*CONTRACT, *QUICK, *options)
    assert ran.parseoutcomes() == {"skipped": 1}
    assert ran.ret == 5
    assert "declares no gate" in ran.stdout.str()


def test_what_an_adapter_declares_not_to_have_is_skipped_with_the_declaration(pytester: pytest.Pytester) -> None:
    options = "--fencepost-adapter=planted_queues:Hookless", "--fencepost-clause=CLAIM-12", "--fencepost-clause=ATT-01"
    ran = pytester.runpytest_subprocess(*CONTRACT, *QUICK, *options, "-rs")
    assert ran.parseoutcomes() == {"skipped": 1, "passed": 1}
    assert ran.ret == 0
    assert "backfill is driven without hooks" in ran.stdout.str()


def test_an_adapter_that_cannot_be_driven_ends_the_run(pytester: pytest.Pytester) -> None:
    ran = pytester.runpytest_subprocess(*CONTRACT, *QUICK, "--fencepost-adapter=planted_queues:Unreachable")
    assert ran.ret == 3
    assert "the server sleeps; wake it" in ran.stdout.str()


def test_what_an_adapter_raises_ends_the_run_once(pytester: pytest.Pytester) -> None:
    ran = pytester.runpytest_subprocess(*CONTRACT, *QUICK, "--fencepost-adapter=planted_queues:Raising")
    assert ran.ret == 3
    told = ran.stdout.str()
    assert told.count("RuntimeError: out of paper") == 1
    assert "adapter planted_queues:Raising: snapshot raised RuntimeError" in told
    assert 'raise RuntimeError("out of paper")' in told and "conformance/driver.py" not in told
    assert "what was found until then is kept in .fencepost/planted_queues.Raising.json" in told
    kept = result.read(pytester.path / ".fencepost" / "planted_queues.Raising.json")
    assert kept.verdict == "harness error"


def test_what_was_found_before_an_adapter_raised_is_told(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        mine="""
        from planted_queues import Boasting

        class Raising(Boasting):
            resets = 0

            async def reset(self):
                self.resets += 1
                if self.resets > 100:
                    raise RuntimeError("out of paper")
                await super().reset()
        """
    )
    ran = pytester.runpytest_subprocess(*CONTRACT, *QUICK, "--fencepost-adapter=mine:Raising")
    assert ran.ret == 3
    told = ran.stdout.str()
    assert "adapter mine:Raising: reset raised RuntimeError: out of paper" in told
    assert "✗ must be rejected" in told
    assert result.read(pytester.path / ".fencepost" / "mine.Raising.json").failures


def test_an_interrupted_run_tells_what_it_found(pytester: pytest.Pytester) -> None:
    options = "--fencepost-adapter=planted_queues:Interrupted", "--fencepost-seed=1"
    ran = pytester.runpytest_subprocess(*CONTRACT, *options)
    assert ran.ret == 2
    assert "FAIL  adapter planted_queues:Interrupted" in ran.stdout.str()
    assert result.read(pytester.path / ".fencepost" / "planted_queues.Interrupted.json").failures


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ("--fencepost-adapter=sqlit", "did you mean 'sqlite'?"),
        ("--fencepost-queue=mutatoin", "did you mean 'mutation'?"),
        ("--fencepost-clause=FENCE-99", "did you mean FENCE-"),
        ("--fencepost-profile=fast", "Known: quick, ci, nightly"),
    ],
)
def test_a_name_that_stands_for_nothing_is_a_usage_error(option: str, said: str, pytester: pytest.Pytester) -> None:
    ran = pytester.runpytest_subprocess(*CONTRACT, option)
    assert ran.ret == 4
    assert said in ran.stderr.str()


@pytest.mark.parametrize(
    ("expression", "chosen"),
    [
        ("clause(id='FENCE-01')", {(clause, queue) for clause, queue in BUILT if clause == "FENCE-01"}),
        ("level(name='1')", {(clause, queue) for clause, queue in BUILT if CLAUSES[clause].level == 1}),
        ("capability(name='hooks')", {(clause, queue) for clause, queue in BUILT if clause in HOOKS}),
        ("capability(name='gate')", {pair for pair in BUILT if CLAUSES[pair[0]].engine == "interleaved"}),
        ("clause(id='FENCE-99')", set()),
    ],
)
def test_markers_select_by_their_value(
    expression: str, chosen: set[tuple[str, str]], pytester: pytest.Pytester
) -> None:
    ran = pytester.runpytest_subprocess(*CONTRACT, "--collect-only", "-q", "--strict-markers", "-m", expression)
    names = {line.rpartition("::")[2] for line in ran.outlines if "::" in line}
    assert names == {f"{clause}[{queue}]" for clause, queue in chosen}
    assert chosen < set(BUILT)


def test_short_options_mean_the_same_in_the_folder_itself() -> None:
    root = Path(__file__).parent.parent
    options = "--adapter=memory", "--clause=CLAIM-01", "--queue=backfill", "--profile=quick", "--seed=4", "-q"
    program = [sys.executable, "-m", "pytest", "conformance", *options]
    ran = subprocess.run(program, cwd=root, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "adapter memory · profile quick · seed 4 · 1 of 1 pair passed" in ran.stdout


# ------------------------------------------------------------------------------------------------------- scenarios

SCENARIO = """
fencepost: 1
id: REL-01-mine
clause: REL-01
queue: backfill
title: a release gives the attempt back
steps:
  - {do: enqueue}
  - {do: claim, worker: 1, expect: {claimed: [{job: 1}]}}
  - {do: release, handle: 2, expect: {accepted: EXPECTED}}
"""


def scenario(pytester: pytest.Pytester, folder: str, expected: str = "pending") -> Path:
    place = pytester.path / folder / "REL-01-mine.yaml"
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(SCENARIO.strip().replace("EXPECTED", expected) + "\n")
    return place


def test_a_scenario_is_replayed_on_every_adapter_it_is_meant_for(pytester: pytest.Pytester) -> None:
    scenario(pytester, "scenarios")
    ran = pytester.runpytest_subprocess("scenarios", "-v")
    assert ran.parseoutcomes() == {"passed": 3}
    for adapter in ("memory", "sqlite", "pg"):
        assert f"REL-01-mine.yaml::{adapter} PASSED" in ran.stdout.str()


def test_a_scenario_is_replayed_on_the_adapter_asked_for(pytester: pytest.Pytester) -> None:
    scenario(pytester, "scenarios")
    assert pytester.runpytest_subprocess("scenarios", "--fencepost-adapter=memory").parseoutcomes() == {"passed": 1}


def test_a_scenario_that_diverges_is_red_and_says_so(pytester: pytest.Pytester) -> None:
    scenario(pytester, "scenarios", "cancelled")
    ran = pytester.runpytest_subprocess("scenarios", "--fencepost-adapter=memory")
    assert ran.ret == 1
    assert "diverged " in ran.stdout.str()


def test_a_scenario_that_breaks_a_clause_is_red_with_its_story(pytester: pytest.Pytester) -> None:
    place = pytester.path / "scenarios" / "FENCE-06-late.yaml"
    place.parent.mkdir()
    place.write_text((SCENARIOS / "fence" / "FENCE-06-stale-writes-are-reported.yaml").read_text())
    place = place.rename(place.with_name("FENCE-06-stale-writes-are-reported.yaml"))
    ran = pytester.runpytest_subprocess(place, "--fencepost-adapter=planted_queues:Boasting")
    assert ran.ret == 1
    assert "adapter planted_queues:Boasting" in ran.stdout.str()
    assert "✗" in ran.stdout.str()


def test_a_scenario_elsewhere_is_replayed_when_its_path_is_given(pytester: pytest.Pytester) -> None:
    place = scenario(pytester, ".fencepost/failures")
    assert pytester.runpytest_subprocess(place, "--fencepost-adapter=memory").parseoutcomes() == {"passed": 1}
    assert pytester.runpytest_subprocess("--fencepost-adapter=memory").ret == pytest.ExitCode.NO_TESTS_COLLECTED


FAULTY = """
import asyncio
from fencepost.adapters.memory import MemoryAdapter

class Raising(MemoryAdapter):
    async def snapshot(self):
        raise RuntimeError("out of paper")

class Hanging(MemoryAdapter):
    async def snapshot(self):
        await asyncio.Event().wait()

class Unclosed(MemoryAdapter):
    async def close(self):
        raise RuntimeError("the door is stuck")
"""


@pytest.mark.parametrize(("workers", "code"), [("-n0", 3), ("-n1", 1)])
def test_what_an_adapter_raises_in_a_scenario_is_told(workers: str, code: int, pytester: pytest.Pytester) -> None:
    pytester.makepyfile(mine=FAULTY)
    scenario(pytester, "scenarios")
    ran = pytester.runpytest_subprocess("scenarios", "--fencepost-adapter=mine:Raising", workers)
    told = ran.stdout.str()
    assert ran.ret == code
    assert "adapter mine:Raising: snapshot raised RuntimeError: out of paper" in told
    assert "INTERNALERROR" not in told


def test_a_scenario_on_what_hangs_ends(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(mine=FAULTY)
    scenario(pytester, "scenarios")
    options = "--fencepost-adapter=mine:Hanging", "--fencepost-example-timeout=1"
    ran = pytester.runpytest_subprocess("scenarios", *options, timeout=100)
    assert ran.ret == 3
    assert "snapshot did not come to an end within 1 s" in ran.stdout.str()


def test_a_scenario_that_failed_is_told_although_its_queue_cannot_be_closed(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(mine=FAULTY)
    scenario(pytester, "scenarios", "cancelled")
    ran = pytester.runpytest_subprocess("scenarios", "--fencepost-adapter=mine:Unclosed")
    told = ran.stdout.str()
    assert ran.ret == 3
    assert "diverged " in told
    assert "adapter mine:Unclosed: close raised RuntimeError: the door is stuck" in told
    assert "INTERNALERROR" not in told


def test_a_damaged_scenario_is_an_error_that_says_where(pytester: pytest.Pytester) -> None:
    scenario(pytester, "scenarios").write_text("fencepost: 1\nid: REL-01-mine\nclause: REL-99\n")
    ran = pytester.runpytest_subprocess("scenarios")
    assert ran.ret == 2
    assert "REL-01-mine.yaml" in ran.stdout.str()
    assert "Traceback" not in ran.stdout.str()


def test_other_peoples_yaml_is_left_alone(pytester: pytest.Pytester) -> None:
    place = pytester.path / "scenarios" / "login.yaml"
    place.parent.mkdir()
    place.write_text("# theirs\nscenario: log in\nfencepost: 1\n")
    assert pytester.runpytest_subprocess("scenarios").ret == pytest.ExitCode.NO_TESTS_COLLECTED


# ------------------------------------------------------------------------------------------------------- bystanders


def test_an_unrelated_run_imports_nothing_of_ours_but_the_plugin(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("FENCEPOST_PG_DSN", "FENCEPOST_PG_IMAGE"):
        monkeypatch.delenv(name, raising=False)
    pytester.makepyfile(
        """
        import sys

        def test_what_is_imported():
            ours = {name for name in sys.modules if name.startswith("fencepost.")}
            package = "fencepost.conformance"
            assert ours == {package, f"{package}.plugin", f"{package}.options"}
            assert not {"sqlalchemy", "rich", "pydantic", "yaml"} & set(sys.modules)
        """
    )
    ran = pytester.runpytest_subprocess("-p", "no:hypothesispytest")
    assert ran.parseoutcomes() == {"passed": 1}
    assert "conformance" not in ran.stdout.str()
    assert not (pytester.path / ".fencepost").exists()


def test_unrelated_short_options_stay_free(pytester: pytest.Pytester) -> None:
    pytester.makeconftest("def pytest_addoption(parser): parser.addoption('--adapter'); parser.addoption('--seed')")
    pytester.makepyfile("def test_nothing(pytestconfig): assert pytestconfig.getoption('--seed') == '3'")
    assert pytester.runpytest_subprocess("--adapter=theirs", "--seed=3").ret == 0


def test_a_project_with_short_options_of_its_own_can_run_the_contract(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(
        """
        def pytest_addoption(parser):
            for name in ("adapter", "queue", "clause", "seed", "profile"):
                parser.addoption(f"--{name}")
        """
    )
    options = "--adapter=theirs", "--fencepost-adapter=memory", "--fencepost-clause=CLAIM-01"
    ran = pytester.runpytest_subprocess(*CONTRACT, *QUICK, *options)
    assert ran.parseoutcomes() == {"passed": 1}
    assert ran.ret == 0
