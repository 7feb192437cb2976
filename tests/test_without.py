"""Verbs that an adapter does not serve: nobody asks for them, and no clause that applies still goes unchecked."""

from __future__ import annotations

from pathlib import Path

import pytest
from fencepost.adapters.contract import VERBS, Capabilities
from fencepost.adapters.memory import MemoryActor, MemoryAdapter
from fencepost.model import commands as c
from fencepost.model import outcomes as o
from fencepost.model.choices import Bounds, building
from fencepost.model.explore import Explorer
from fencepost.model.legal import outcomes
from fencepost.model.queues import QueueSpec
from fencepost.model.step import step
from fencepost.model.world import Context, Step, World
from runs import TINY, planned, went

CORE = {"enqueue", "claim", "complete"}
LEFT: list[set[str]] = [
    {"renew"},
    {"recover"},
    {"recover", "tick"},
    {"fail", "release"},
    {"acknowledge"},
    {"request_cancel", "acknowledge", "checkpoint"},
    {"tick", "start_up", "probe", "configure", "classify", "atomically", "crash"},
    {"renew", "recover", "tick", "start_up", "fail", "release"},
    set(VERBS) - CORE,
]


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run leaves its files below the folder that it was started in."""
    monkeypatch.chdir(tmp_path)


left_out = pytest.mark.parametrize(
    "left", LEFT, ids=lambda left: ",".join(sorted(left)) if len(left) < 8 else "all but three"
)


@left_out
def test_the_model_offers_no_verb_that_is_left_out(left: set[str]) -> None:
    queue = Capabilities(without=frozenset(left)).of(QueueSpec("jobs", fence="generation"))
    search = Explorer(queue, Bounds(depth=3)).run()
    offered = set()
    for state in range(len(search.states)):
        offered |= {command.verb for command in search.path(state)}
        offered |= {command.verb for command, _, _ in search.judged(state)}
        world = World(queue)
        for command in search.path(state):
            offered |= {each.verb for each in building(world, Bounds())}
            for outcome in outcomes(world, command, Context(world.now)):
                after = step(world, command, outcome, Context(world.now))
                assert isinstance(after, Step)
                world = after.world
                break
        offered |= {each.verb for each in building(world, Bounds())}
    assert offered >= CORE and not offered & left


@left_out
def test_a_verb_that_is_left_out_is_never_asked_for_and_leaves_no_clause_unchecked(left: set[str]) -> None:
    asked: set[str] = set()

    class Modest(MemoryActor):
        async def perform(self, command: c.Command, now: int) -> o.Outcome:  # type: ignore[override]
            inner = command.commands if isinstance(command, c.Atomically) else ()
            asked.update(each.verb for each in (command, *inner))
            return await super().perform(command, now)

    class Leaving(MemoryAdapter):
        capabilities = Capabilities(verdict="self-check", without=frozenset(left))
        queues = {"jobs": QueueSpec("jobs", fence="generation")}  # noqa: RUF012

        def actor(self, worker: int) -> MemoryActor:
            return self._actors.setdefault(worker, Modest(self._opened()))

    outcome = went(planned(Leaving, queues=("jobs",), profile=TINY))
    assert outcome.fault == "" and outcome.result.failures == ()
    assert asked >= CORE and not asked & left
    pairs = [pair for pair in outcome.result.clauses if pair.built]
    assert [pair.id for pair in pairs if pair.verdict in ("not exercised", "inconclusive")] == []
    assert outcome.result.verdict == "self-check"
