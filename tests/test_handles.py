"""CLAIM-13: a handle that is not plain, or does not stay what it was, is found by the run and shown by its file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from uuid import UUID

import pytest
from fencepost.adapters.memory import MemoryActor, MemoryAdapter
from fencepost.adapters.memory_store import Store
from fencepost.conformance.replay import replay
from fencepost.conformance.session import Session
from fencepost.model import commands as c
from fencepost.model import outcomes as o
from fencepost.model.queues import QUEUES
from fencepost.scenarios import load
from runs import planned, went


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run leaves its files below the folder that it was started in."""
    monkeypatch.chdir(tmp_path)


class Lending(MemoryActor):
    """A worker whose claims return something else than plain handles."""

    def __init__(self, store: Store, change: Callable[[c.Handle], object]) -> None:
        super().__init__(store)
        self._change = change

    async def claim(self, command: c.Claim, now: int) -> o.Outcome:
        outcome = await super().claim(command, now)
        if not isinstance(outcome, o.Claimed):
            return outcome
        return o.Claimed(tuple(self._change(each) for each in outcome.handles), outcome.hooked)  # type: ignore[misc]


class Dead:
    @property
    def job(self) -> int:
        raise LookupError("the row is gone")


class Lasting:
    """A class of the adapter's own."""

    token = None

    def __init__(self, handle: c.Handle) -> None:
        self.job, self.worker = handle.job, handle.worker


class Shifting:
    """A row that is another one each time that it is read."""

    worker, token = 1, None

    def __init__(self) -> None:
        self._reads = 0

    @property
    def job(self) -> int:
        self._reads += 1
        return self._reads


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda _: Dead(), "the handle that the claim returned cannot be read: LookupError: the row is gone"),
        (lambda handle: c.Handle(UUID(int=1), handle.worker), "the handle carries UUID("),  # type: ignore[arg-type]
        (lambda _: Shifting(), "w1's handle has become "),
    ],
)
def test_a_handle_that_is_not_plain_breaks_claim_13(change: Callable[[c.Handle], object], why: str) -> None:
    class Made(MemoryAdapter):
        def actor(self, worker: int) -> MemoryActor:
            return Lending(self._opened(), change)

    result = went(planned(Made, "CLAIM-13")).result
    (failure,) = [each for each in result.failures if each.clause == "CLAIM-13"]
    assert failure.why.startswith(why)
    assert failure.scenario is not None
    with Session(Made(), QUEUES["backfill"]) as session:
        assert replay(session, load(failure.scenario)).violation is not None


def test_a_handle_of_another_class_that_stays_readable_is_as_good_as_a_plain_one() -> None:
    class Made(MemoryAdapter):
        def actor(self, worker: int) -> MemoryActor:
            return Lending(self._opened(), Lasting)

    result = went(planned(Made, "CLAIM-13", "FENCE-01")).result
    assert result.failures == () and result.verdict == "self-check"
