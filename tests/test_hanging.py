"""What never comes back: it is named, ended, and nothing that was found before is lost."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from pathlib import Path
from typing import Any

import hostile
import pytest
from fencepost.adapters.memory import MemoryAdapter
from fencepost.conformance import races
from fencepost.conformance.cli import call
from fencepost.conformance.commands import replay
from fencepost.conformance.profiles import PROFILES
from fencepost.conformance.watchdog import Limits
from runs import OWN, planned, went
from trying import broken_by, faulted, tried

IMPATIENT = Limits(example=1.5, closing=1.5)


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run leaves its files below the folder that it was started in."""
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("make", [hostile.hanging, hostile.awaiting], ids=["blocking", "awaiting"])
@pytest.mark.parametrize("where", ["open", "reset", "snapshot", "enqueue", "complete", "close"])
def test_what_never_comes_back_is_named(make: type, where: str) -> None:
    fault = faulted(tried(make(where), limits=IMPATIENT))
    assert fault.startswith(f"adapter {OWN}: {where} did not come to an end within 1.5 s; let it end, or allow")
    assert "hostile.py" in fault, "the adapter's own frames"


def test_what_was_found_before_it_hung_is_kept() -> None:
    class Late(hostile.Queue):  # type: ignore[misc, name-defined]
        def complete(self, job: int, worker: str, now: int) -> bool:
            return bool(super().complete(job, worker, 0))

    make = hostile.hanging("recover", after=60)
    make.kind.queue = Late  # type: ignore[attr-defined]
    outcome = tried(make, limits=IMPATIENT)
    assert "recover did not come to an end" in outcome.fault
    assert outcome.result.verdict == "harness error"
    assert "FENCE-01" in [failure.clause for failure in outcome.result.failures]
    assert outcome.result.coverage.examples > 0


def test_what_swallows_the_alarm_and_goes_on_does_not_pass() -> None:
    fault = faulted(tried(hostile.with_actor(hostile.Swallowing), limits=IMPATIENT))
    assert fault.startswith(f"adapter {OWN}: complete did not come to an end within 1.5 s")


@pytest.mark.parametrize("hang", [hostile.never, hostile.never_async], ids=["blocking", "awaiting"])
def test_what_hangs_in_a_race_is_named(hang: object) -> None:
    make = hostile.racing(hang)  # type: ignore[arg-type]
    fault = faulted(tried(make, "CANCEL-09", limits=IMPATIENT, queue="backfill"))
    assert fault.startswith(f"adapter {OWN}: complete did not come to an end within 1.5 s")


def test_a_race_that_was_found_is_kept_when_it_is_interrupted_while_it_is_shortened(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(races, "reduce_race", interrupted)
    make: Any = broken_by("claim-select-then-update")
    outcome = tried(make, "CLAIM-06", queue="backfill")
    assert outcome.result.interrupted
    assert [failure.clause for failure in outcome.result.failures] == ["CLAIM-06"]


def test_a_race_that_was_found_is_kept_when_its_search_is_interrupted() -> None:
    """A fault of the statements alone does not end it: an illegal answer may come, which outranks it."""
    make: Any = broken_by("claim-upgrades-read")
    schedules = 0

    def press() -> None:
        nonlocal schedules
        schedules += 1
        if schedules == 10:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        for raced in races.race_all(make(), "backfill", clauses=frozenset({"CLAIM-11"}), on_schedule=press):
            kept = raced
    assert kept.finding is not None and kept.finding.violation.clause == "CLAIM-11"


def test_a_race_that_was_found_is_kept_when_it_hangs_while_it_is_shortened(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(races, "reduce_race", lambda *_: hostile.never_async())
    make: Any = broken_by("claim-select-then-update")
    outcome = tried(make, "CLAIM-06", limits=IMPATIENT, queue="backfill")
    assert "did not come to an end within 1.5 s" in outcome.fault
    assert outcome.result.verdict == "harness error"
    assert [failure.clause for failure in outcome.result.failures] == ["CLAIM-06"]


def test_a_run_that_takes_too_long_is_ended_between_two_examples_and_says_so() -> None:
    outcome = went(dataclasses.replace(planned(MemoryAdapter, profile=PROFILES["nightly"]), limits=Limits(run=2)))
    assert "the run's limit of 2 s is over" in outcome.fault
    assert outcome.result.verdict == "harness error"
    assert outcome.result.coverage.examples > 0


def test_a_run_that_takes_too_long_is_ended_within_an_example_too() -> None:
    fault = faulted(tried(hostile.hanging("claim"), limits=Limits(run=0.2)))
    assert fault.startswith(f"adapter {OWN}: the run's limit of 0.2 s is over, with claim under way")


BLOCKED = """
import os, sqlite3, sys
sys.path[:0] = [{tests!r}]
import hostile
from fencepost.conformance.run import run
from fencepost.conformance.watchdog import Limits
from runs import Watching, planned
import dataclasses
import os

class Stuck(hostile.PlainActor):
    def complete(self, command, now):
        (_, _, file) = self.queue.db.execute("PRAGMA database_list").fetchone()
        other = sqlite3.connect(file, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        self.queue.db.execute("PRAGMA busy_timeout = 600000")
        return super().complete(command, now)

def last_words(outcome):
    print(outcome.result.verdict, outcome.fault, flush=True)
    os._exit(3)

plan = planned(hostile.with_actor(Stuck), queues=("jobs",))
run(dataclasses.replace(plan, limits=Limits(example=0.3, grace=0.3)), Watching(), last_words)
"""


def test_what_no_signal_interrupts_is_told_by_another_thread(tmp_path: Path) -> None:
    """A wait for a lock inside of the database's own library ends when that gives up, and not before."""
    program = BLOCKED.format(tests=str(Path(__file__).parent))
    ran = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert ran.returncode == 3
    assert ran.stdout.startswith(f"harness error adapter {OWN}: complete did not come to an end within 0.3 s")
    assert "it blocks its thread where no signal interrupts it" in ran.stdout


def test_the_process_ends_even_if_nobody_can_tell_why(tmp_path: Path) -> None:
    program = BLOCKED.format(tests=str(Path(__file__).parent)).replace("os._exit(3)", "raise OSError('no room')")
    ran = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert ran.returncode == 3
    assert "OSError: no room" in ran.stderr


def test_the_command_line_sets_the_limits(capsys: pytest.CaptureFixture[str]) -> None:
    assert call(["run", "--adapter=hostile:Stuck", "--profile=quick", "--example-timeout=0.5"]) == 3
    assert "claim did not come to an end within 0.5 s" in capsys.readouterr().err
    assert call(["run", "--adapter=hostile:Stuck", "--profile=quick", "--run-timeout=0.5"]) == 3
    assert "the run's limit of 0.5 s is over, with claim under way" in capsys.readouterr().err


def test_the_pytest_plugin_sets_them_too(tmp_path: Path) -> None:
    options = ["--fencepost-adapter=hostile:Stuck", "--fencepost-example-timeout=0.5", "-p", "no:cacheprovider"]
    program = f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r}); import pytest; sys.exit(pytest.main())"
    command = [sys.executable, "-c", program, "--pyargs", "fencepost.conformance", *options]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert ran.returncode == 3
    told = "adapter hostile:Stuck: claim did not come to an end within 0.5 s; let it end, or allow for more by"
    assert f"{told} --fencepost-example-timeout" in ran.stdout + ran.stderr


def test_a_replay_of_what_hangs_ends_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "found.yaml"
    file.write_text(FOUND)
    monkeypatch.setattr(replay, "USUAL", IMPATIENT)
    assert call(["replay", str(file), "--adapter=hostile:Stuck"]) == 3
    said = capsys.readouterr().err
    assert "claim did not come to an end within 1.5 s; let it end" in said
    assert "--example-timeout" not in said, "a replay has no such option"


FOUND = """\
fencepost: 1
id: found
clause: FENCE-01
queue: jobs
title: A completion after the lease
source: found
found: {adapter: 'hostile:Stuck', seed: 1}
steps:
  - {do: enqueue}
  - {do: claim, worker: 1}
"""
