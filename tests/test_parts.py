"""A session of many processes: each queue is run once, by one seed, and what came of it is one result."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from fencepost.adapters.memory import MemoryAdapter
from fencepost.conformance.parts import Part, Parts, Stopped, merged, read_parts
from fencepost.conformance.run import Outcome, Plan
from fencepost.reports import result
from fencepost.reports.result import Result
from planted_queues import Late
from runs import BOTH, pairs_of, planned, went

pytest_plugins = ["pytester"]

HERE = Path(__file__).parent
TWO = ("backfill", "mutation")
PLACES = tuple((clause, queue) for clause in ("CLAIM-01", "FENCE-01") for queue in TWO)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(HERE))
    return tmp_path


def timeless(found: Result) -> Result:
    return found.model_copy(update={"coverage": found.coverage.model_copy(update={"seconds": 0.0})})


# ------------------------------------------------------------------------------------------------------- the parts


def plan(make: Callable[[], MemoryAdapter], *queues: str, required: tuple[str, ...] = ()) -> Plan:
    return replace(planned(make, "CLAIM-01", "FENCE-01", queues=queues), required=required)


def ran(queue: str, make: Callable[[], MemoryAdapter] = MemoryAdapter, required: tuple[str, ...] = ()) -> Part:
    outcome: Outcome = went(plan(make, queue, required=required))
    return Part(places=PLACES, result=outcome.result, fault=outcome.fault)


def test_a_queue_is_run_by_whoever_asks_first_and_read_by_the_others(folder: Path) -> None:
    asked: list[str] = []

    def run(queue: str) -> Part:
        asked.append(queue)
        return ran(queue)

    first, second = (Parts(folder / "parts", TWO, run) for _ in range(2))
    assert first.of("backfill") == second.of("backfill") == first.of("backfill")
    assert second.of("mutation") == first.of("mutation")
    assert asked == ["backfill", "mutation"]
    assert (first.ran, second.ran) == ({"backfill"}, {"mutation"})


AT_WORK = """
import sys
from pathlib import Path
from fencepost.conformance.parts import Parts

def run(queue):
    print(queue, flush=True)
    sys.stdin.read()
    sys.exit("dies without a result")

Parts(Path("parts"), ("backfill", "mutation"), run).of("backfill")
"""


def test_who_finds_a_queue_at_work_runs_another_one_meanwhile_and_takes_over_if_the_first_one_dies(
    folder: Path,
) -> None:
    asked: list[str] = []
    with subprocess.Popen(
        [sys.executable, "-c", AT_WORK], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as other:
        assert other.stdout is not None and other.stdin is not None
        assert other.stdout.readline() == b"backfill\n"

        def run(queue: str) -> Part:
            asked.append(queue)
            if queue == "mutation":
                assert other.poll() is None
                other.stdin.close()  # type: ignore[union-attr]
            return ran(queue)

        assert Parts(folder / "parts", TWO, run).of("backfill").result.queues == ("backfill",)
    assert asked == ["mutation", "backfill"]
    assert [part.result.queues for part in read_parts(folder / "parts")] == [("backfill",), ("mutation",)]


def test_nothing_new_is_begun_after_a_run_that_ended_early(folder: Path) -> None:
    broken = ran("backfill").model_copy(update={"fault": "out of paper"})
    parts = Parts(folder / "parts", TWO, lambda queue: broken)
    assert parts.of("backfill").fault == "out of paper"
    with pytest.raises(Stopped, match="the run of queue backfill ended early"):
        parts.of("mutation")


@pytest.mark.parametrize("required", [(), ("FENCE-01",), ("FENCE-01", "level-1")])
@pytest.mark.parametrize("make", [MemoryAdapter, Late])
def test_the_parts_together_are_what_one_run_would_have_found(
    make: Callable[[], MemoryAdapter], required: tuple[str, ...], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = went(plan(make, *TWO, required=required)).result
    assert bool(whole.unmet) == ("level-1" in required or (make is Late and bool(required)))
    (folder / "new").mkdir()
    monkeypatch.chdir(folder / "new")  # where nothing is known of what the first run found
    one = merged([ran(queue, make, required) for queue in TWO]).result
    assert timeless(one) == timeless(whole)


def test_a_queue_that_was_not_run_is_not_passed_over() -> None:
    one = merged([ran("backfill")]).result
    pair = pairs_of(one)["FENCE-01", "mutation"]
    assert (pair.verdict, pair.built) == ("not exercised", True)
    assert "its queue was not run" in pair.reason
    assert (one.verdict, result.exit_code(one)) == ("inconclusive", 1)


def test_what_is_left_unclaimed_is_told_once_whichever_part_has_found_it() -> None:
    silent, one, same = (
        part.model_copy(update={"result": part.result.model_copy(update={"unclaimed": notes})})
        for part, notes in zip([ran("backfill")] * 3, [(), ("hooks",), ("hooks",)], strict=True)
    )
    assert merged([silent, one, same]).result.unclaimed == ("hooks",)


def test_a_queue_that_was_not_run_meets_no_requirement_and_its_levels_are_not_judged() -> None:
    one = merged([ran("backfill", required=("CLAIM-01",))]).result
    assert [(each.queue, each.clauses, each.why) for each in one.unmet] == [
        ("mutation", ("CLAIM-01",), "left out of this run")
    ]
    assert (one.verdict, result.exit_code(one)) == ("fail", 1)
    assert {level.verdict for level in one.levels if level.queue == "mutation"} == {"not judged"}


def test_parts_that_were_cut_short_judge_neither_levels_nor_requirements() -> None:
    broken = ran("backfill", required=("CLAIM-01",)).model_copy(update={"fault": "out of paper"})
    one = merged([broken]).result
    assert one.unmet == ()
    assert {(level.queue, level.verdict) for level in one.levels} == {(queue, "not judged") for queue in TWO}


def test_a_part_that_was_interrupted_or_broke_the_harness_makes_the_whole_so() -> None:
    good, bad = ran("backfill"), ran("mutation")
    assert merged([good, bad.model_copy(update={"fault": "out of paper"})]).result.verdict == "harness error"
    cut = bad.model_copy(
        update={"result": bad.result.model_copy(update={"interrupted": True, "verdict": "inconclusive"})}
    )
    assert result.exit_code(merged([good, cut]).result) == 2


# ------------------------------------------------------------------------------------------------------- sessions

WHOLE = "--pyargs", "fencepost.conformance", "--fencepost-profile=quick"
"""As deep as every clause needs."""
CONTRACT = "-p", "shallow", *WHOLE
NOTED = "--fencepost-adapter=planted_queues:Noted"
ONLY_TWO = tuple(f"--fencepost-queue={queue}" for queue in TWO)
MODES = ("-n0", "-p no:xdist", *(f"-n2 --dist {mode}" for mode in ("load", "loadfile", "worksteal", "each")))


def own_result(pytester: pytest.Pytester, name: str = "planted_queues.Noted") -> Result:
    return result.read(pytester.path / ".fencepost" / f"{name}.json")


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the command line has left what it finds under the same seed, in one process."""
    folder = tmp_path_factory.mktemp("alone")
    arguments = ["run", "--adapter=planted_queues:Noted", "--profile=quick", "--seed=1", "--json=result.json"]
    arguments += [f"--queue={queue}" for queue in TWO]
    program = f"from fencepost.conformance.cli import call; call({arguments})"
    environment = {**os.environ, "PYTHONPATH": str(HERE)}
    subprocess.run([sys.executable, "-c", program], cwd=folder, check=True, capture_output=True, env=environment)
    return folder


def opened(folder: Path) -> list[str]:
    return sorted((folder / "opened.txt").read_text().split())


@pytest.mark.parametrize("mode", MODES)
def test_each_queue_is_run_once_whoever_is_at_work(mode: str, pytester: pytest.Pytester, alone: Path) -> None:
    options = NOTED, "--fencepost-seed=1", "--fencepost-json=r.json", *ONLY_TWO
    ran = pytester.runpytest_subprocess(*WHOLE, *options, *mode.split())
    assert ran.ret == 0
    assert set(opened(pytester.path)) == set(TWO)
    assert opened(pytester.path) == opened(alone), "no more often than for one run"
    expected = result.read(alone / "result.json")
    assert timeless(own_result(pytester)) == timeless(expected)
    assert result.read(pytester.path / "r.json") == own_result(pytester)
    assert ran.stdout.str().count("SELF-CHECK  adapter planted_queues:Noted") == 1
    times = 2 if mode.endswith("each") else 1
    outcomes = ran.parseoutcomes()
    assert outcomes["passed"] == times * sum(pair.verdict == "pass" for pair in expected.clauses)
    assert outcomes["skipped"] == times * sum(pair.verdict == "not applicable" for pair in expected.clauses)
    assert sorted(place.name for place in (pytester.path / ".fencepost").iterdir()) == ["planted_queues.Noted.json"]


@pytest.mark.parametrize("workers", ["-n0", "-n2"])
def test_queues_that_an_adapter_declares_itself_are_run_and_told_in_its_order(
    workers: str, pytester: pytest.Pytester
) -> None:
    options = "--fencepost-adapter=planted_queues:Teams", "--fencepost-clause=CLAIM-01", "--fencepost-require=CLAIM-01"
    ran = pytester.runpytest_subprocess(*CONTRACT, *options, workers)
    assert (ran.ret, ran.parseoutcomes()["passed"]) == (0, 2)
    found = own_result(pytester, "planted_queues.Teams")
    assert (found.queues, found.required) == (("team/reports", "mails"), ("CLAIM-01",))
    assert [pair.queue for pair in found.clauses if pair.built] == ["team/reports", "mails"]


def test_all_workers_draw_from_one_seed_which_is_told(pytester: pytest.Pytester) -> None:
    ran = pytester.runpytest_subprocess(*WHOLE, NOTED, *ONLY_TWO, "-n2")
    found = own_result(pytester)
    assert f"seed {found.seed}" in ran.stdout.str()
    again = pytester.runpytest_subprocess(*WHOLE, NOTED, *ONLY_TWO, "-n0", f"--fencepost-seed={found.seed}")
    assert again.ret == ran.ret == 0
    assert timeless(own_result(pytester)) == timeless(found)


def test_what_workers_find_fails_the_session_with_one_table_and_each_story_once(pytester: pytest.Pytester) -> None:
    options = "--fencepost-adapter=planted_queues:Boasting", "--fencepost-seed=1", "--fencepost-clause=FENCE-06"
    ran = pytester.runpytest_subprocess(*CONTRACT, *options, "-n2")
    assert ran.ret == 1
    found = own_result(pytester, "planted_queues.Boasting")
    assert found.verdict == "fail" and {failure.queue for failure in found.failures} == set(BOTH)
    # On a CI server pytest repeats every message in its summary.
    told = ran.stdout.str().partition("short test summary info")[0]
    assert told.count("FAIL  adapter planted_queues:Boasting") == 1
    for failure in found.failures:
        assert told.count(failure.story.splitlines()[-1]) == 1


def test_a_fault_in_a_worker_ends_the_session_and_is_told_once(pytester: pytest.Pytester) -> None:
    ran = pytester.runpytest_subprocess(*CONTRACT, "--fencepost-adapter=planted_queues:Raising", "-n2")
    assert ran.ret == 3
    told = ran.stdout.str()
    faults = told.count("fencepost could not go on: adapter planted_queues:Raising: snapshot raised RuntimeError")
    assert 1 <= faults <= len(BOTH), "once for each queue that had begun by then"
    assert "HARNESS ERROR  adapter planted_queues:Raising" in told
    assert "INTERNALERROR" not in told
    assert own_result(pytester, "planted_queues.Raising").verdict == "harness error"


def test_a_worker_that_was_interrupted_interrupts_the_session(pytester: pytest.Pytester) -> None:
    options = "--fencepost-adapter=planted_queues:Interrupted", "--fencepost-profile=ci", "--fencepost-seed=1"
    ran = pytester.runpytest_subprocess(*CONTRACT[:4], *options, "-n2")
    assert ran.ret == 2
    found = own_result(pytester, "planted_queues.Interrupted")
    assert found.interrupted and found.failures
    for failure in found.failures:
        assert failure.story.splitlines()[-1] in ran.stdout.str(), "although no item has told it"


def test_a_queue_whose_worker_died_is_run_by_another(pytester: pytest.Pytester) -> None:
    options = "--fencepost-adapter=planted_queues:Dying", "--fencepost-clause=CLAIM-01", "--fencepost-clause=FENCE-01"
    ran = pytester.runpytest_subprocess(*CONTRACT, *options, "-n2")
    assert ran.ret == 1, "the item that it died of has failed"
    assert "crashed while running" in ran.stdout.str()
    found = own_result(pytester, "planted_queues.Dying")
    assert (found.verdict, found.queues) == ("self-check", BOTH)


def test_a_queue_all_of_whose_items_were_skipped_is_not_passed(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(
        """
        import pytest

        def pytest_collection_modifyitems(items):
            for item in items:
                if "mutation" in item.name:
                    item.add_marker(pytest.mark.skip(reason="not today"))
        """
    )
    chosen = "--fencepost-clause=CLAIM-01", "--fencepost-clause=FENCE-01"
    ran = pytester.runpytest_subprocess("-p", "conftest", *CONTRACT, NOTED, *chosen)
    assert ran.parseoutcomes() == {"passed": 2 * (len(BOTH) - 1), "skipped": 2}
    assert ran.ret == 1
    assert "not exercised on mutation: CLAIM-01, FENCE-01: its queue was not run" in ran.stdout.str()


def test_what_was_left_out_by_a_marker_is_not_judged(pytester: pytest.Pytester) -> None:
    ran = pytester.runpytest_subprocess(*CONTRACT, NOTED, "-m", "clause(id='CLAIM-03')", "-n2")
    assert ran.ret == 0
    judged = {(pair.id, pair.queue) for pair in own_result(pytester).clauses if pair.built}
    assert judged == {("CLAIM-03", queue) for queue in BOTH}


@pytest.mark.parametrize("workers", ["-n0", "-n2"])
def test_ctrl_c_keeps_what_all_processes_have_found(workers: str, pytester: pytest.Pytester) -> None:
    options = "--fencepost-adapter=planted_queues:Signalling", "--fencepost-queue=backfill"
    nightly = "--pyargs", "fencepost.conformance", "--fencepost-profile=nightly"
    program = [sys.executable, "-m", "pytest", *nightly, *options, workers]
    started = subprocess.Popen(
        program, cwd=pytester.path, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        # A group of their own, which gets the signal whole, as from a terminal.
        start_new_session=True, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )  # fmt: skip
    out, _ = started.communicate(timeout=600)
    assert started.returncode == 2, out
    found = own_result(pytester, "planted_queues.Signalling")
    assert found.interrupted and found.coverage.examples > 0
    assert not list((pytester.path / ".fencepost").glob("session-*"))
