"""What breaks a run is told in words, with the adapter's own frames, and nothing that was found is lost."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from fencepost.adapters.contract import Adapter, AdapterError
from fencepost.adapters.memory import MemoryAdapter
from fencepost.adapters.reference.adapter import ReferenceActor, SqliteAdapter
from fencepost.adapters.reference.rules import CONTRACT
from fencepost.conformance import driver
from fencepost.conformance.profiles import PROFILES
from fencepost.model import commands as c
from fencepost.model import outcomes as o
from fencepost.model import step
from fencepost.model.queues import QueueSpec
from fencepost.reports.result import exit_code
from runs import OWN, Stopping, mutant_named, planned, went


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run leaves its files below the folder that it was started in."""
    monkeypatch.chdir(tmp_path)


def test_a_harness_fault_is_told_and_outranks_what_was_found() -> None:
    def fault() -> AdapterError:
        return AdapterError("the server went away; start it again")

    outcome = went(planned(partial(Stopping, 60, fault), profile=PROFILES["quick"]))
    assert not outcome.result.interrupted and "went away" in outcome.fault
    assert outcome.result.verdict == "harness error"
    assert [failure.clause for failure in outcome.result.failures] == ["TERM-03"], "it is kept"


class Unclosable(MemoryAdapter):
    """It is in no state to be closed once it could not be driven."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self._error = error

    async def snapshot(self) -> dict[c.JobId, o.Row]:
        raise self._error

    async def close(self) -> None:
        raise OSError("still in use")


@pytest.mark.parametrize("error", [AdapterError("the disk is full"), RuntimeError("the disk is full")])
def test_a_fault_in_closing_is_told_beside_what_came_before_it(error: Exception) -> None:
    fault = went(planned(lambda: Unclosable(error))).fault
    assert "the disk is full" in fault and "still in use" in fault
    assert "Falsifying example" not in fault


class Unreachable(MemoryAdapter):
    async def open(self, queue: QueueSpec) -> None:
        raise AdapterError("nobody answers")


class Forgetful(MemoryAdapter):
    async def snapshot(self) -> dict[c.JobId, o.Row]:
        return {}


@pytest.mark.parametrize(("make", "told"), [(Unreachable, "nobody answers"), (Forgetful, "the snapshot has 0")])
def test_a_queue_that_cannot_be_driven_is_no_verdict_on_any_clause(make: type[Adapter], told: str) -> None:
    outcome = went(planned(make))
    assert told in outcome.fault
    assert outcome.result.verdict == "harness error" and outcome.result.failures == ()
    assert not [pair for pair in outcome.result.clauses if pair.verdict == "fail"]


class Breaking(SqliteAdapter):
    """A faulty queue whose `release` raises what its author did not expect, from its 25th time on."""

    def __init__(self, error: BaseException) -> None:
        super().__init__(rules=mutant_named("complete-keeps-lease").change(CONTRACT))
        self._error = error
        self._left = 25

    def actor(self, worker: int) -> ReferenceActor:
        actor = super().actor(worker)
        if not isinstance(actor.release, partial):
            actor.release = partial(self.release, actor.release)  # type: ignore[method-assign]
        return actor

    async def release(self, right: Any, command: c.Release, now: int) -> o.Outcome:
        self._left -= 1
        if self._left <= 0:
            raise self._error
        outcome: o.Outcome = await right(command, now)
        return outcome


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (RuntimeError("out of paper"), "release raised RuntimeError: out of paper"),
        (KeyError(), "release raised KeyError"),
        (asyncio.CancelledError(), "release raised CancelledError"),
    ],
)
def test_whatever_a_verb_raises_is_told_with_adapter_verb_and_frames_and_nothing_found_is_lost(
    error: BaseException, said: str
) -> None:
    outcome = went(planned(lambda: Breaking(error), profile=PROFILES["quick"]))
    first, *frames = outcome.fault.splitlines()
    assert first == f"adapter {OWN}: {said}"
    assert len([line for line in frames if line.lstrip().startswith("File ")]) == 2, "perform, and the verb itself"
    assert "raise self._error" in frames[-1]
    assert outcome.result.verdict == "harness error" and exit_code(outcome.result) == 3
    assert [failure.clause for failure in outcome.result.failures] == ["TERM-03"]
    assert outcome.result.coverage.examples > 0


class Demanding(MemoryAdapter):
    def __init__(self, dsn: str) -> None:
        super().__init__()


class Unborn(MemoryAdapter):
    def __init__(self) -> None:
        raise TypeError("no such driver")


@pytest.mark.parametrize(
    ("make", "said"),
    [(Demanding, "cannot be made without arguments"), (Unborn, "__init__ raised TypeError: no such driver")],
)
def test_an_adapter_that_cannot_even_be_made_is_a_harness_fault(make: Callable[[], Adapter], said: str) -> None:
    outcome = went(planned(make))
    assert outcome.result.verdict == "harness error"
    assert outcome.fault.startswith(f"adapter {OWN}: ") and said in outcome.fault


@pytest.mark.parametrize(("module", "name"), [(driver, "step"), (step, "_fold")], ids=["engine", "model"])
def test_a_fault_of_our_own_is_not_blamed_on_the_adapter(
    module: ModuleType, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, name, None)
    fault = went(planned(MemoryAdapter)).fault
    assert fault.startswith("an exception that nobody expected") and "object is not callable" in fault
    assert OWN not in fault
