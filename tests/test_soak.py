"""The soak: a right queue raises no alarm, a wrong one does, and a found schedule repeats to the letter."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from fencepost.adapters.contract import Adapter
from fencepost.adapters.memory import MemoryAdapter
from fencepost.adapters.mutants.catalogue import MUTANTS
from fencepost.adapters.reference.adapter import SqliteAdapter
from fencepost.adapters.reference.rules import CONTRACT
from fencepost.conformance.mutation import Planted
from fencepost.conformance.profiles import Profile
from fencepost.conformance.soak import Repeated, Soaked, document, repeat_races, soak_seed
from fencepost.model.queues import BACKFILL, MUTATION
from fencepost.reports.document import read_document, sealed, write_document

TINY = Profile("tiny", examples=30, longest=30, minimum=1)
RACES = [mutant for mutant in MUTANTS if mutant.race and "sqlite" in mutant.adapters]


def made(name: str) -> SqliteAdapter:
    (mutant,) = (each for each in MUTANTS if each.id == name)
    return SqliteAdapter(rules=mutant.change(CONTRACT))


def planted(name: str) -> Planted:
    (mutant,) = (each for each in MUTANTS if each.id == name)
    return Planted(mutant.id, mutant.clause, mutant.also, mutant.queue, "sqlite", partial(made, mutant.id), mutant.pair)


def soaked_by(
    adapter: str, make: Callable[[], Adapter], seed: int, on_step: Callable[[], None] = lambda: None
) -> Soaked:
    into = Soaked(adapter, seed)
    soak_seed(into, make, TINY, on_step)
    return into


@pytest.fixture
def backfill_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fencepost.conformance.soak.QUEUES", {"backfill": BACKFILL})


@pytest.fixture
def two_queues(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fencepost.conformance.soak.QUEUES", {"backfill": BACKFILL, "mutation": MUTATION})


def test_a_right_queue_raises_no_false_alarm() -> None:
    soaked = soaked_by("sqlite", SqliteAdapter, 7)
    assert soaked.complete and not soaked.false_alarms
    assert (soaked.adapter, soaked.seed) == ("sqlite", 7)
    assert soaked.examples >= 4 * TINY.examples and soaked.steps > soaked.examples
    assert soaked.schedules > 100, "races were certified on every queue"


def test_a_queue_without_a_gate_is_soaked_without_races() -> None:
    soaked = soaked_by("memory", MemoryAdapter, 7)
    assert (soaked.false_alarms, soaked.schedules) == ([], 0)
    assert soaked_by("memory", MemoryAdapter, 7) == soaked
    assert soaked_by("memory", MemoryAdapter, 8) != replace(soaked, seed=8)


@pytest.mark.usefixtures("backfill_alone")
def test_a_soak_can_be_ended_after_any_script_or_schedule() -> None:
    steps = 0

    def count() -> None:
        nonlocal steps
        steps += 1

    soaked = soaked_by("sqlite", SqliteAdapter, 7, count)
    assert steps == soaked.examples + soaked.schedules


@pytest.mark.usefixtures("backfill_alone")
def test_a_soak_that_is_ended_keeps_what_it_had_found() -> None:
    into = Soaked("sqlite", 1)

    def end() -> None:
        if into.false_alarms:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        soak_seed(into, partial(made, "complete-keeps-lease"), TINY, end)
    assert not into.complete and into.examples and into.steps
    assert any(alarm.startswith("backfill: TERM-03: complete") for alarm in into.false_alarms)


@pytest.mark.usefixtures("two_queues")
def test_a_wrong_queue_raises_alarms_that_name_queue_and_clause() -> None:
    soaked = soaked_by("sqlite", partial(made, "complete-keeps-lease"), 1)
    for queue in ("backfill", "mutation"):
        assert any(alarm.startswith(f"{queue}: TERM-03: complete") for alarm in soaked.false_alarms)


@pytest.mark.usefixtures("backfill_alone")
def test_a_wrong_race_raises_an_alarm_too() -> None:
    soaked = soaked_by("sqlite", partial(made, "complete-checks-cancel-before"), 1)
    assert any(alarm.startswith("backfill: CANCEL-09: ") for alarm in soaked.false_alarms)


@pytest.mark.parametrize("name", [mutant.id for mutant in RACES])
def test_a_found_schedule_repeats_to_the_letter(name: str) -> None:
    replays = 0

    def on_replay() -> None:
        nonlocal replays
        replays += 1

    race = planted(name)
    (repeated,) = repeat_races([race], 6, on_replay)
    assert (repeated.mutant, repeated.adapter, repeated.clause) == (name, "sqlite", race.clause)
    assert repeated.runs == repeated.identical == replays == 6
    assert repeated.schedule and set(repeated.schedule) <= set("012")
    (again,) = repeat_races([race], 1)
    assert again.schedule == repeated.schedule


def test_a_race_that_is_not_found_did_not_repeat() -> None:
    right = replace(planted("recover-by-id"), make=SqliteAdapter)
    (repeated,) = repeat_races([right], 3)
    assert (repeated.schedule, repeated.runs, repeated.identical) == ("", 3, 0)


QUIET = Soaked("sqlite", 1, examples=30, steps=400, schedules=10)
LOUD = Soaked("pg", 2, examples=31, steps=401, schedules=11, false_alarms=["backfill: A", "mutation: B"])
SAME = Repeated("claim-split", "pg", "CLAIM-11", "1122", runs=10, identical=10)
OTHER = Repeated("recover-by-id", "sqlite", "REC-07", "2211", runs=10, identical=7)


def test_the_document_says_all_that_was_run_and_sums_up_what_is_wrong(tmp_path: Path) -> None:
    body = document(TINY, [QUIET, LOUD], [SAME, OTHER])
    assert (body["schema"], body["profile"], body["interrupted"]) == (1, "tiny", False)
    assert document(TINY, [QUIET], [], interrupted=True)["interrupted"]
    assert (body["false_alarms"], body["diverged"]) == (2, 3)
    assert [each["seed"] for each in body["seeds"]] == [1, 2]
    assert body["seeds"][1]["false_alarms"] == LOUD.false_alarms
    assert [(each["mutant"], each["identical"]) for each in body["replays"]] == [
        ("claim-split", 10),
        ("recover-by-id", 7),
    ]
    assert json.loads(json.dumps(body)) == body
    path = tmp_path / "soak.json"
    write_document(sealed(body, ("seeds", "replays")), path)
    assert read_document(path, 1, ("seeds", "replays")) == body


def test_nothing_wrong_sums_up_to_nothing() -> None:
    body = document(TINY, [QUIET], [SAME])
    assert (body["false_alarms"], body["diverged"]) == (0, 0)
