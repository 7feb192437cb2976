"""The command line as people meet it: what it says, what it writes, and the code that it exits with."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from fencepost.conformance.cli import call
from fencepost.conformance.profiles import PROFILES
from fencepost.model.clauses import BUILT, CLAUSES
from fencepost.model.queues import QUEUES
from fencepost.reports import mutants, result
from fencepost.reports.document import read_document

HERE = Path(__file__).parent
SCENARIOS = HERE.parent / "scenarios"


@dataclass(frozen=True)
class Answer:
    code: int
    out: str
    err: str


Ask = Callable[..., Answer]


@pytest.fixture
def ask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Ask:
    """The command line in an empty folder, in this process."""
    monkeypatch.chdir(tmp_path)
    for name in ("FENCEPOST_PG_DSN", "FENCEPOST_PG_IMAGE", "HYPOTHESIS_STORAGE_DIRECTORY"):
        monkeypatch.setenv(name, "")  # so that what the command line sets is undone
        monkeypatch.delenv(name)

    def asked(*arguments: str | Path) -> Answer:
        code = call([str(each) for each in arguments])
        said = capsys.readouterr()
        return Answer(code, said.out, said.err)

    return asked


# ------------------------------------------------------------------------------------------------------- what it says


def test_help_teaches_by_examples_and_names_the_exit_codes(ask: Ask) -> None:
    answer = ask("--help")
    assert answer.code == 0
    assert "fencepost run --adapter=mine:Queue" in answer.out
    assert "3  the adapter or its database could not be driven" in answer.out


def test_every_command_has_help(ask: Ask) -> None:
    for command in ("run", "replay", "explore", "list", "explain", "mutants", "soak", "bench"):
        answer = ask(command, "--help")
        assert answer.code == 0
        assert answer.out.startswith(f"Usage: fencepost {command}")


def test_help_and_list_import_no_engine() -> None:
    program = (
        "import sys; from fencepost.conformance.cli import call; call(['--help']); call(['list']); "
        "print(sorted({'hypothesis', 'sqlalchemy', 'rich', 'pydantic'} & set(sys.modules)))"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout.splitlines()[-1] == "[]"


def test_list_names_all_that_can_be_asked_for(ask: Ask) -> None:
    answer = ask("list")
    assert answer.code == 0
    for name in ("memory", "sqlite", "pg", "quick", "ci", "nightly", *QUEUES, *CLAUSES):
        assert name in answer.out
    assert f"{len(BUILT)} of {len(CLAUSES)} are built" in answer.out


def test_list_mutants_says_what_each_of_them_breaks(ask: Ask) -> None:
    answer = ask("list", "--mutants")
    assert answer.code == 0
    assert any(line.startswith("CLAIM-06") and "claim-by-subselect" in line for line in answer.out.splitlines())


def test_explain_tells_a_clause_with_its_story_mutants_and_scenarios(ask: Ask) -> None:
    answer = ask("explain", "fence-02")
    assert answer.code == 0
    for part in (
        "R§1.1",
        "level 2",
        "must",
        "w1 completes  → rejected",
        "complete-anybody",
        "FENCE-02-superseded-fail",
    ):
        assert part in answer.out


@pytest.mark.parametrize("clause", BUILT)
def test_every_built_clause_has_a_shortest_story(clause: str, ask: Ask) -> None:
    answer = ask("explain", clause)
    assert answer.code == 0
    assert "shortest story, on" in answer.out


def test_explain_a_clause_that_is_not_built(ask: Ask) -> None:
    answer = ask("explain", "REC-13")
    assert answer.code == 0
    assert "not built in this version" in answer.out


def test_explore_counts_states_edges_and_checks(ask: Ask) -> None:
    answer = ask("explore", "--queue=backfill", "--jobs=1", "--workers=1", "--attempts=1", "--leases=1")
    assert answer.code == 0
    assert "1 job × 1 worker × 1 attempt, clock up to 300 s" in answer.out
    assert "states" in answer.out
    assert "  CANCEL-01 " in answer.out


def test_explore_shows_the_shortest_way_to_a_check(ask: Ask) -> None:
    answer = ask("explore", "--clause=FENCE-01", "--reason=complete: expired", "--queue=backfill")
    assert answer.code == 0
    assert answer.out.splitlines()[-1] == "  4  w1 completes  → rejected"


# ------------------------------------------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["run", "--adapter=sqlit"], "did you mean 'sqlite'? Known: memory, pg, sqlite"),
        (["run", "--adapter=no_such_module:Queue"], "module 'no_such_module' cannot be imported"),
        (["run", "--adapter=planted_queues:Lat"], "its adapters: "),
        (["run", "--queue=backfil"], "did you mean 'backfill'? Known: build, screenshot, backfill, mutation"),
        (["run", "--queue=image"], "queue 'image' is not built in this version. Built: build, screenshot, "),
        (["run", "--clause=FENCE-22"], "did you mean FENCE-"),
        (["run", "--clause=REC-13"], "clause REC-13 is not built in this version"),
        (["run", "--profile=quik"], "did you mean 'quick'? Known: quick, ci, nightly"),
        (["run", "--seed=many"], "'many' is not a valid integer"),
        (["run", "--pg-dsn=postgresql://h/d", "--pg-image=postgres"], "give at most one of them"),
        (["run", "--json=/dev/null/result.json"], "give another place"),
        (["run", "--json="], "--json: give a FILE, or leave the option out"),
        (["run", "--colour"], "No such option"),
        (["walk"], "No such command 'walk'"),
        (["explain", "CLAIM-99"], "did you mean CLAIM-"),
        (["explore", "--reason=x"], "--reason needs --clause"),
        (["explore", "--clause=CLAIM-06"], "no trace of one actor makes CLAIM-06"),
        (["replay"], "Missing argument"),
        (["replay", "nowhere.yaml"], "nowhere.yaml: cannot be read"),
        (["mutants", "--adapter=memory"], "not 'memory'"),
        (["mutants", "--id=claim-everything"], "there is no mutant 'claim-everything'"),
        (["mutants", "--clause=INV-7"], "no mutant is left"),
        (["soak", "--profile=slow"], "Known: quick, ci, nightly"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_what_cannot_be_used_is_refused_with_advice(arguments: list[str], said: str, ask: Ask) -> None:
    answer = ask(*arguments)
    assert answer.code == 4
    assert said in answer.err
    assert "Traceback" not in answer.err
    assert answer.out == ""


# ------------------------------------------------------------------------------------------------------- run


def test_a_right_queue_passes_and_its_result_reads_back(ask: Ask, tmp_path: Path) -> None:
    file = tmp_path / "new" / "result.json"
    answer = ask("run", "--adapter=memory", "--profile=quick", "--seed=5", "--json", file)
    assert answer.code == 0
    assert "SELF-CHECK  adapter memory · profile quick · seed 5" in answer.out
    read = result.read(file)
    assert (read.verdict, read.adapter, read.seed, read.queues) == ("self-check", "memory", 5, tuple(QUEUES))
    assert {pair.id for pair in read.clauses} == set(CLAUSES)
    assert not (tmp_path / ".hypothesis").exists()


def test_a_run_without_a_seed_prints_the_one_that_it_drew(ask: Ask, tmp_path: Path) -> None:
    file = tmp_path / "result.json"
    answer = ask("run", "--adapter=memory", "--profile=quick", "--queue=backfill", "--clause=CLAIM-01", "--json", file)
    assert f"seed {result.read(file).seed}" in answer.out.splitlines()[0]


def test_a_wrong_queue_fails_with_a_story_and_a_file_that_replays(ask: Ask, tmp_path: Path) -> None:
    file = tmp_path / "result.json"
    answer = ask(
        "run", "--adapter=planted_queues:Late", "--queue=backfill", "--profile=quick", "--seed=1", "--json", file
    )
    assert answer.code == 1
    assert "✗ must be rejected: w1's lease has expired" in answer.out
    assert "FAIL  adapter planted_queues:Late" in answer.out
    (failure,) = result.read(file).failures
    assert (failure.clause, failure.length) == ("FENCE-01", 4)
    assert failure.scenario is not None
    assert f"fencepost replay {failure.scenario} --adapter=planted_queues:Late" in failure.story

    where_found = ask("replay", failure.scenario)
    assert where_found.code == 1
    assert "✗ must be rejected: w1's lease has expired" in where_found.out
    elsewhere = ask("replay", failure.scenario, "--adapter=memory")
    assert elsewhere.code == 0
    assert elsewhere.out.startswith("pass ")


def test_quiet_prints_the_verdict_alone(ask: Ask) -> None:
    answer = ask("run", "--adapter=planted_queues:Boasting", "--queue=backfill", "--profile=quick", "--quiet")
    assert (answer.code, answer.out) == (1, "fail\n")


def test_only_what_was_asked_for_is_judged(ask: Ask, tmp_path: Path) -> None:
    file = tmp_path / "result.json"
    chosen = ("--queue=mutation", "--clause=claim-03", "--clause=LEASE-01")
    answer = ask("run", "--adapter=memory", "--profile=quick", *chosen, "--json", file)
    assert answer.code == 0
    judged = {(pair.id, pair.queue) for pair in result.read(file).clauses if pair.built}
    assert judged == {("CLAIM-03", "mutation"), ("LEASE-01", "mutation")}


def test_a_run_in_which_nothing_applies_is_not_green(ask: Ask) -> None:
    answer = ask("run", "--adapter=memory", "--clause=CLAIM-06", "--profile=quick")
    assert answer.code == 5
    assert "the adapter declares no gate" in " ".join(answer.out.split())


def test_an_adapter_that_cannot_be_driven_is_a_harness_fault(ask: Ask, tmp_path: Path) -> None:
    file = tmp_path / "result.json"
    answer = ask("run", "--adapter=planted_queues:Unreachable", "--json", file)
    assert answer.code == 3
    assert "the server sleeps; wake it" in answer.err
    assert result.read(file).verdict == "harness error"


def test_what_an_adapter_raises_is_a_harness_fault_with_its_own_frames(ask: Ask, tmp_path: Path) -> None:
    file = tmp_path / "result.json"
    answer = ask("run", "--adapter=planted_queues:Raising", "--json", file)
    assert answer.code == 3
    assert "adapter planted_queues:Raising: snapshot raised RuntimeError: out of paper" in answer.err
    assert 'raise RuntimeError("out of paper")' in answer.err and "driver.py" not in answer.err
    assert result.read(file).verdict == "harness error"


def test_what_an_adapter_raises_in_a_replay_is_told_the_same_way(ask: Ask) -> None:
    answer = ask(
        "replay", SCENARIOS / "fence" / "FENCE-06-stale-writes-are-reported.yaml", "--adapter=planted_queues:Raising"
    )
    assert answer.code == 3
    assert "snapshot raised RuntimeError: out of paper" in answer.err and "driver.py" not in answer.err


def test_a_password_is_never_printed(ask: Ask) -> None:
    answer = ask("run", "--adapter=pg", "--pg-dsn=postgresql://me:hunter2@localhost:1/nowhere")
    assert answer.code == 3
    assert "me@localhost:1/nowhere" in answer.err
    assert "hunter2" not in answer.out + answer.err


def test_an_interrupted_run_keeps_what_it_found(ask: Ask, tmp_path: Path) -> None:
    file = tmp_path / "result.json"
    answer = ask("run", "--adapter=planted_queues:Interrupted", "--seed=1", "--json", file)
    assert answer.code == 2
    assert "interrupted" in answer.err
    assert "FAIL" in answer.out
    assert result.read(file).failures


@pytest.mark.parametrize("ends", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_run_and_keeps_its_result(ends: signal.Signals, tmp_path: Path) -> None:
    program = [sys.executable, "-m", "fencepost.conformance.cli"]
    arguments = ["run", "--adapter=planted_queues:Announcing", "--profile=nightly", "--json=result.json"]
    started = subprocess.Popen(
        [*program, *arguments],
        cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(HERE)}, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        # A shell that started the tests in the background had them ignore the signal, and its heirs with them.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )  # fmt: skip
    assert started.stdout is not None
    while started.stdout.readline() not in ("at work\n", ""):
        pass
    started.send_signal(ends)
    out, err = started.communicate(timeout=60)
    assert started.returncode == 2, err
    assert "INCONCLUSIVE" in out
    assert "interrupted" in err
    assert "Traceback" not in err
    kept = result.read(tmp_path / "result.json")
    assert kept.coverage.examples > 0 and kept.interrupted


# ------------------------------------------------------------------------------------------------------- replay


def test_scenario_files_replay_one_verdict_each(ask: Ask) -> None:
    files = sorted((SCENARIOS / "lease").glob("*.yaml"))
    answer = ask("replay", *files, "--adapter=memory")
    assert answer.code == 0
    assert [line.split()[0] for line in answer.out.splitlines()] == ["pass"] * len(files)


def test_a_replay_that_diverges_says_so_and_is_no_pass(ask: Ask, tmp_path: Path) -> None:
    file = tmp_path / "REL-01-other.yaml"
    file.write_text(
        "fencepost: 1\nid: REL-01-other\nclause: REL-01\nqueue: backfill\ntitle: expects what nobody answers\n"
        "steps:\n  - {do: enqueue}\n  - {do: claim, worker: 1, expect: {claimed: []}}\n"
    )
    answer = ask("replay", file)
    assert answer.code == 1
    assert answer.out.startswith("diverged ")


def test_a_schedule_replays_to_the_letter_or_diverges(ask: Ask, tmp_path: Path) -> None:
    def file(schedule: str) -> Path:
        path = tmp_path / f"CLAIM-06-{schedule}.yaml"
        path.write_text(
            f"fencepost: 1\nid: {path.stem}\nclause: CLAIM-06\nqueue: backfill\ntitle: one claimer after the other\n"
            "adapters: [sqlite, memory]\nsteps:\n  - {do: enqueue}\n"
            f"together:\n  actors: [[{{do: claim, worker: 1}}], [{{do: claim, worker: 2}}]]\nschedule: '{schedule}'\n"
        )
        return path

    followed = ask("replay", file("111122"))
    assert (followed.code, followed.out[:5]) == (0, "pass ")
    too_long = ask("replay", file("1111222"))
    assert (too_long.code, too_long.out[:9]) == (1, "diverged ")
    assert "'2' is left over" in too_long.out
    unable = ask("replay", file("111122"), "--adapter=memory")
    assert unable.code == 3
    assert "its statements cannot be scheduled" in unable.err


# ------------------------------------------------------------------------------------------------------- measuring


def test_a_mutant_is_killed_under_its_own_clause(ask: Ask, tmp_path: Path) -> None:
    file = tmp_path / "kills.json"
    answer = ask("mutants", "--adapter=sqlite", "--id=claim-any-status", "--json", file)
    assert answer.code == 0
    (row,) = mutants.read(file).mutants
    assert (row.id, row.killed_by, row.seeds.killed) == ("claim-any-status", "CLAIM-01", 1)


def test_a_soak_counts_false_alarms_and_replays(ask: Ask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(PROFILES, "quick", replace(PROFILES["quick"], examples=10))
    file = tmp_path / "soak.json"
    answer = ask("soak", "--adapter=sqlite", "--seeds=1", "--replays=1", "--profile=quick", "--json", file)
    assert answer.code == 0, answer.out
    assert "0 false alarms, 0 replays that diverged" in answer.out
    read = read_document(file, 1, ("seeds", "replays"))
    assert len(read["seeds"]) == 1
    assert all(each["identical"] == each["runs"] == 1 for each in read["replays"])
