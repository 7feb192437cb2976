"""The mutants' stories: one file each, in step with the catalogue, that fails on its mutant under its clause."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest
from fencepost.conformance import regressions as stories
from fencepost.conformance.cli import call
from fencepost.conformance.commands import measure, regressions
from fencepost.conformance.replay import replay
from fencepost.conformance.session import Session
from fencepost.model.queues import QUEUES
from fencepost.model.trace import Trace
from fencepost.scenarios import MUTANT, Scenario, dump, load
from shipped import BY_ID, EXPORT, FOLDER, REGRESSIONS, mutated

FILES = {path.stem: path for path in REGRESSIONS}
TOLD = [
    (name, adapter)
    for name in sorted(FILES.keys() & BY_ID.keys())
    for adapter in (load(FILES[name]).adapters or ("sqlite",) if BY_ID[name].race else ("sqlite",))
]
"""Each file with the databases that it is replayed on: a race on all that it is meant for."""


# In step -------------------------------------------------------------------------------------------------------------


def test_every_mutant_has_its_file_and_every_file_its_mutant() -> None:
    assert FILES.keys() == BY_ID.keys(), f"the stories are out of step with the catalogue; write them with `{EXPORT}`"


@pytest.mark.parametrize("name", sorted(FILES))
def test_a_file_says_what_its_mutant_says(name: str) -> None:
    scenario = load(FILES[name])
    mutant = BY_ID[name]
    said = (scenario.id, scenario.source, scenario.mutant, scenario.clause, scenario.queue, scenario.title)
    wanted = (name, MUTANT, name, mutant.clause, mutant.queue, mutant.title)
    assert said == wanted, f"write it anew with `{EXPORT}`"
    assert FILES[name].read_text(encoding="utf-8") == dump(scenario)
    every_order = scenario.trace.schedule is None and any(scenario.trace.lanes)
    assert scenario.expected or every_order, "a scenario without expectations says nothing"


@pytest.mark.parametrize(("name", "adapter"), TOLD, ids=[f"{name}-{adapter}" for name, adapter in TOLD])
def test_a_story_fails_on_its_mutant_under_its_clause(name: str, adapter: str) -> None:
    scenario = load(FILES[name])
    with Session(mutated(name, adapter), QUEUES[scenario.queue]) as session:
        replayed = replay(session, scenario)
    assert (replayed.verdict, replayed.violation and replayed.violation.clause) == ("fail", scenario.clause)


def test_races_are_meant_for_databases_and_the_rest_for_every_adapter_that_is_not_free_to_differ() -> None:
    meant = {name: load(path).adapters for name, path in FILES.items()}
    for name, adapters in meant.items():
        if BY_ID[name].race:
            assert adapters is not None and set(adapters) <= set(BY_ID[name].adapters)
        else:
            assert adapters in (None, ("sqlite", "pg"))


# The export ----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def sample() -> tuple[str, ...]:
    """Mutants of every kind of story: in turn, as a table, meant for few adapters, in one order, in every order."""
    return (
        "renew-revives", "configure-any-lease", "claim-lazy-handles", "sweep-generation-of-first",
        "cancel-checks-then-acts", "start-up-by-id",
    )  # fmt: skip


def asked(*names: str) -> list[str]:
    return [f"--id={name}" for name in names]


def test_the_files_are_what_the_command_writes_byte_by_byte(sample: tuple[str, ...], tmp_path: Path) -> None:
    assert call(["mutants", f"--export={tmp_path / 'new'}", *asked(*sample)]) == 0
    written = {path.stem: path.read_bytes() for path in (tmp_path / "new").iterdir()}
    assert written == {name: FILES[name].read_bytes() for name in sample}
    assert load(FILES["cancel-checks-then-acts"]).trace.schedule is None
    assert load(FILES["start-up-by-id"]).trace.schedule is not None


def test_the_export_tells_its_progress_and_leaves_other_files_alone(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    mine = tmp_path / "FENCE-01-mine.yaml"
    mine.write_text("mine")
    story = FILES["renew-revives"].read_bytes()
    (tmp_path / "of-old.yaml").write_bytes(story.replace(b"renew-revives", b"of-old"))
    assert call(["mutants", f"--export={tmp_path}", *asked("renew-revives", "fail-expired")]) == 0
    assert capfd.readouterr().err.splitlines() == ["1 of 2  renew-revives", "2 of 2  fail-expired"]
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "FENCE-01-mine.yaml", "fail-expired.yaml", "of-old.yaml", "renew-revives.yaml",
    ]  # fmt: skip
    assert mine.read_text() == "mine"


def only(monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    """Meanwhile the catalogue has these mutants alone."""
    few = tuple(BY_ID[name] for name in names)
    monkeypatch.setattr(measure, "MUTANTS", few)
    monkeypatch.setattr(regressions, "MUTANTS", few)


def test_an_export_of_all_removes_the_stories_of_mutants_that_are_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    gone = tmp_path / "fail-expired.yaml"
    gone.write_bytes(FILES["fail-expired"].read_bytes())
    hand = next(path for path in FOLDER.glob("fence/*.yaml"))
    (tmp_path / hand.name).write_bytes(hand.read_bytes())
    (tmp_path / "damaged.yaml").write_text("mutant: [")
    only(monkeypatch, "renew-revives")
    assert call(["mutants", f"--export={tmp_path}"]) == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(["renew-revives.yaml", hand.name, "damaged.yaml"])
    assert f"removed {gone}: there is no mutant fail-expired any more" in capfd.readouterr().out


@pytest.mark.parametrize("text", [None, "fencepost: ["], ids=["another story", "a damaged file"])
def test_a_file_in_the_way_is_refused_before_anything_is_written(
    text: str | None, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    way = tmp_path / "renew-revives.yaml"
    way.write_text(text or FILES["fail-expired"].read_text())
    before = way.read_bytes()
    assert call(["mutants", f"--export={tmp_path}", *asked("fail-expired", "renew-revives")]) == 4
    assert str(way) in capfd.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == [way.name] and way.read_bytes() == before


def test_a_place_that_cannot_be_written_is_refused(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "file"
    file.write_text("")
    assert call(["mutants", f"--export={file}"]) == 4
    assert call(["mutants", f"--export={file / 'below'}"]) == 4
    told = capfd.readouterr().err
    assert "is a file" in told and "Not a directory; give another place" in told


@pytest.mark.parametrize("option", ["--adapter=pg", "--seeds=3", "--profile=ci", "--json=kills.json"])
def test_an_option_that_means_nothing_to_the_export_is_refused(
    option: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert call(["mutants", f"--export={tmp_path}", option]) == 4
    assert f"{option.split('=')[0]} means nothing to --export" in capfd.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_ctrl_c_ends_the_export_and_keeps_the_stories_that_were_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    told = regressions.regression

    def interrupted(*given: object) -> Scenario:
        signal.raise_signal(signal.SIGINT)
        return told(*given)  # type: ignore[arg-type]

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    monkeypatch.setattr(regressions, "regression", interrupted)
    try:
        assert call(["mutants", f"--export={tmp_path}", *asked("renew-revives", "fail-expired")]) == 2
    finally:
        signal.signal(signal.SIGINT, before)
    assert len(list(tmp_path.iterdir())) == 1
    assert "interrupted" in capfd.readouterr().err


def test_a_mutant_without_a_story_is_named_and_the_others_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    drawn = stories._drawn

    def none(session: Session, clause: str) -> Trace | None:
        return None if clause == "LEASE-04" else drawn(session, clause)

    monkeypatch.setattr(stories, "_drawn", none)
    monkeypatch.setattr(stories, "first_race", lambda mutant: None)
    assert call(["mutants", f"--export={tmp_path}", *asked("renew-revives", "start-up-by-id", "fail-expired")]) == 1
    lines = capfd.readouterr().out.splitlines()
    assert [line.split(":")[0] for line in lines] == ["renew-revives", "start-up-by-id"]
    assert [path.name for path in tmp_path.iterdir()] == ["fail-expired.yaml"]
