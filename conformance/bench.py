"""How fast the engine is, and where its time goes: `fencepost bench engine`.

Every figure is measured here and now; ratios compare figures of one run, taken in turns on the same commands.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from statistics import median
from typing import Any, ClassVar

from fencepost.adapters.contract import Actor, Adapter, Capabilities
from fencepost.model import commands as c
from fencepost.model import outcomes as o
from fencepost.model.choices import Bounds
from fencepost.model.explore import Explorer
from fencepost.model.queues import BACKFILL, QueueSpec
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.stateful import run_state_machine_as_test

from .generate import scripts
from .sequential import hunt
from .session import Session
from .statemachine import QueueMachine

ROUNDS = 5
EXAMPLES = 200
LONGEST = 50

Make = Callable[[], Adapter]


def engine_bench(memory: Make, databases: dict[str, Make], say: Callable[[str], None]) -> dict[str, Any]:
    """Measure the engine on the memory adapter, and its share of the time on each database.

    Returns steps per second, the explore benchmark, and per database the share of wall time inside adapter calls.
    """
    say("memory: driver against state machine")
    driver, machine = _driver_and_machine(memory())
    say("memory: Hypothesis against its floor")
    drawn, floor = _hypothesis_and_floor(memory())
    say("explore: 2 jobs × 3 workers × 3 attempts")
    explored = explore_bench(BACKFILL)
    inside = {}
    for name, make in databases.items():
        say(f"{name}: share of time inside adapter calls")
        inside[name] = _inside(make())
    return {
        "memory_steps_per_s": round(driver),
        "statemachine_steps_per_s": round(machine),
        "hypothesis_steps_per_s": round(drawn),
        "hypothesis_floor_steps_per_s": round(floor),
        "explore": explored,
        "inside_adapter": {name: round(share, 3) for name, share in inside.items()},
    }


def explore_bench(spec: QueueSpec) -> dict[str, Any]:
    """Explore 2 jobs × 3 workers × 3 attempts, the clock bounded at two leases, to the end."""
    started = time.perf_counter()
    explorer = Explorer(spec, Bounds(jobs=2, workers=3, budgets=(3,), until=2 * spec.lease_seconds)).run()
    seconds = time.perf_counter() - started
    return {
        "states": len(explorer.states),
        "edges": explorer.edges,
        "seconds": round(seconds, 3),
        "edges_per_s": round(explorer.edges / seconds),
    }


def _driver_and_machine(adapter: Adapter) -> tuple[float, float]:
    """Checked steps per second of the state machine face, and of the driver on the very commands that it ran."""
    with Session(adapter, BACKFILL) as session:
        driven, ruled = [], []
        for number in range(ROUNDS):
            ran: list[list[c.Command]] = []

            class Recording(QueueMachine):
                def teardown(self, ran: list[list[c.Command]] = ran) -> None:
                    ran.append([command for command, _ in self.ran.done])

            Recording.session = session
            before = session.driver.steps
            started = time.perf_counter()
            seed(number)(Recording)
            run_state_machine_as_test(Recording, settings=_settings(60, stateful=LONGEST))
            ruled.append((session.driver.steps - before) / (time.perf_counter() - started))
            before = session.driver.steps
            started = time.perf_counter()
            for commands in ran:
                session.run(_replayed(session, commands))
            driven.append((session.driver.steps - before) / (time.perf_counter() - started))
        return median(driven), median(ruled)


async def _replayed(session: Session, commands: list[c.Command]) -> None:
    run = await session.driver.start()
    await session.driver.go(run, commands)
    assert run.violation is None, run.violation


def _hypothesis_and_floor(adapter: Adapter) -> tuple[float, float]:
    """Checked steps per second through Hypothesis, and draws per second of the same scripts with nothing behind."""
    with Session(adapter, BACKFILL) as session:
        drawn, bare = [], []
        for number in range(ROUNDS):
            before = session.driver.steps
            started = time.perf_counter()
            hunt(session, examples=EXAMPLES, longest=LONGEST, seed_value=number)
            drawn.append((session.driver.steps - before) / (time.perf_counter() - started))
            started = time.perf_counter()
            count = _bare(number)
            bare.append(count / (time.perf_counter() - started))
        return median(drawn), median(bare)


def _bare(seed_value: int) -> int:
    count = 0

    @seed(seed_value)
    @_settings(EXAMPLES)
    @given(scripts(LONGEST))
    def draw(numbers: list[int]) -> None:
        nonlocal count
        count += len(numbers)

    draw()
    return count


def _settings(examples: int, stateful: int = LONGEST) -> settings:
    return settings(
        max_examples=examples,
        stateful_step_count=stateful,
        phases=(Phase.generate,),
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )


class _Clock:
    """Adds up the time spent inside."""

    def __init__(self) -> None:
        self.seconds = 0.0

    @contextmanager
    def running(self) -> Iterator[None]:
        started = time.perf_counter()
        try:
            yield
        finally:
            self.seconds += time.perf_counter() - started


class _TimedActor(Actor):
    def __init__(self, actor: Actor, clock: _Clock) -> None:
        self._actor = actor
        self._clock = clock

    async def perform(self, command: c.Command, now: int) -> o.Outcome:
        with self._clock.running():
            return await self._actor.perform(command, now)


class _TimedAdapter(Adapter):
    """An adapter whose calls are timed."""

    capabilities: ClassVar[Capabilities] = Capabilities()

    def __init__(self, adapter: Adapter) -> None:
        self.clock = _Clock()
        self._adapter = adapter

    async def open(self, queue: QueueSpec) -> None:
        await self._adapter.open(queue)

    async def close(self) -> None:
        await self._adapter.close()

    async def reset(self) -> None:
        with self.clock.running():
            await self._adapter.reset()

    async def snapshot(self) -> dict[c.JobId, o.Row]:
        with self.clock.running():
            return await self._adapter.snapshot()

    def actor(self, worker: int) -> Actor:
        return _TimedActor(self._adapter.actor(worker), self.clock)


def _inside(adapter: Adapter) -> float:
    """The share of a run's wall time that passes inside adapter calls."""
    timed = _TimedAdapter(adapter)
    with Session(timed, BACKFILL) as session:
        hunt(session, examples=20, longest=LONGEST, seed_value=0)
        timed.clock.seconds = 0.0
        started = time.perf_counter()
        hunt(session, examples=EXAMPLES, longest=LONGEST, seed_value=1)
        return timed.clock.seconds / (time.perf_counter() - started)
