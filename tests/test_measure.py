"""`mutants`, `soak` and `bench` are ended by Ctrl-C wherever it falls, and what can be kept is kept."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from fencepost.conformance.cli import call
from fencepost.conformance.commands import measure
from fencepost.conformance.mutation import Planted
from fencepost.conformance.profiles import Profile
from fencepost.conformance.soak import Soaked
from fencepost.reports import mutants
from fencepost.reports.document import read_document
from fencepost.reports.mutants import MutantResult


class Pressed:
    """Ctrl-C while a finaliser runs: what is raised there, Python drops."""

    def __del__(self) -> None:
        signal.raise_signal(signal.SIGINT)


@pytest.fixture(autouse=True)
def in_a_terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Python's own handler, whatever the shell that started the tests left in its place."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HYPOTHESIS_STORAGE_DIRECTORY", str(tmp_path))
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_ctrl_c_in_a_finaliser_ends_the_kill_table_and_keeps_its_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def rows(
        work: list[Planted], profile: Profile, seeds: int, on_seed: Callable[[str], None]
    ) -> Iterator[MutantResult]:
        for mutant in work:
            on_seed(mutant.id)
            yield MutantResult(
                id=mutant.id,
                clause=mutant.clause,
                queue="backfill",
                adapter="sqlite",
                killed_by=mutant.clause,
                shortest=1,
            )
            Pressed()

    monkeypatch.setattr(measure, "kill_rows", rows)
    file = tmp_path / "kills.json"
    assert call(["mutants", "--adapter=sqlite", "--clause=FENCE-02", f"--json={file}"]) == 2
    assert "interrupted: this is what had been measured until then" in capfd.readouterr().err
    kept = mutants.read(file)
    assert kept.interrupted and len(kept.mutants) == 1


def test_ctrl_c_in_a_finaliser_ends_the_soak_and_keeps_its_seeds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def soak_seed(into: Soaked, make: object, profile: Profile, on_step: Callable[[], None]) -> None:
        on_step()
        into.false_alarms.append("backfill: A")
        into.complete = into.seed == 1
        Pressed()

    monkeypatch.setattr(measure, "soak_seed", soak_seed)
    file = tmp_path / "soak.json"
    assert call(["soak", "--adapter=sqlite", "--seeds=3", f"--json={file}"]) == 2
    kept = read_document(file, 1, ("seeds", "replays"))
    assert kept["interrupted"] and [(each["seed"], each["complete"]) for each in kept["seeds"]] == [
        (1, True),
        (2, False),
    ]
    assert "sqlite seed 1: false alarm: backfill: A" in capfd.readouterr().out


def test_ctrl_c_in_a_finaliser_ends_the_benchmark(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def benched(memory: object, databases: object, say: Callable[[str], None]) -> dict[str, object]:
        Pressed()
        say("what comes next")
        return {}

    monkeypatch.setattr(measure, "engine_bench", benched)
    assert call(["bench", "engine"]) == 2
    out, err = capfd.readouterr()
    assert out == "" and "what comes next" not in err


def test_a_soak_tells_how_far_it_is(capfd: pytest.CaptureFixture[str]) -> None:
    checked: list[None] = []
    count = measure.counter("pg seed 3", lambda: checked.append(None), every=2)
    for _ in range(5):
        count()
    assert len(checked) == 5
    assert capfd.readouterr().err.splitlines() == [
        "pg seed 3: 2 scripts and schedules",
        "pg seed 3: 4 scripts and schedules",
    ]
