"""The state machine: the same commands and the same judge, with rules of one's own beside them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from fencepost.adapters.memory import MemoryAdapter
from fencepost.adapters.reference.adapter import SqliteAdapter
from fencepost.adapters.reference.rules import CONTRACT
from fencepost.conformance.session import Session
from fencepost.conformance.statemachine import ClauseBroken, QueueMachine
from fencepost.model import commands as c
from fencepost.model import outcomes as o
from fencepost.model.queues import BACKFILL, QUEUES, QueueSpec
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.stateful import initialize, precondition, rule, run_state_machine_as_test


def machine_settings(examples: int, *phases: Phase) -> settings:
    return settings(
        max_examples=examples,
        stateful_step_count=30,
        phases=(Phase.generate, *phases),
        database=None,
        deadline=None,
        print_blob=False,
        suppress_health_check=list(HealthCheck),
    )


def machine_on(session: Session) -> type[QueueMachine]:
    """A machine that remembers the commands of every run."""

    class Machine(QueueMachine):
        runs: list[list[c.Command]] = []  # noqa: RUF012  each call makes a class of its own

        def teardown(self) -> None:
            if hasattr(self, "ran"):
                self.runs.append([command for command, _ in self.ran.done])

    Machine.session = session
    seed(1)(Machine)
    return Machine


@pytest.fixture(params=QUEUES.values(), ids=lambda spec: spec.key)
def spec(request: pytest.FixtureRequest) -> QueueSpec:
    queue: QueueSpec = request.param
    return queue


@pytest.fixture
def memory(spec: QueueSpec) -> Iterator[Session]:
    with Session(MemoryAdapter(), spec) as session:
        yield session


@pytest.fixture
def late() -> Iterator[Session]:
    """A queue whose completions do not look at the lease."""
    with Session(SqliteAdapter(rules=CONTRACT.without("fence.complete", "lease_valid")), BACKFILL) as session:
        yield session


def test_on_a_right_queue_it_runs_clean_and_goes_far(memory: Session) -> None:
    machine = machine_on(memory)
    run_state_machine_as_test(machine, settings=machine_settings(40))
    runs: list[list[c.Command]] = machine.runs  # type: ignore[attr-defined]
    assert len(runs) >= 40
    assert memory.driver.steps == sum(map(len, runs)) > 400
    assert {c.Claim, c.Complete, c.Recover} <= {type(command) for run in runs for command in run}
    assert any(check.teeth for check in memory.driver.tally)


def test_every_run_starts_from_an_empty_queue(memory: Session) -> None:
    firsts: list[o.Outcome] = []

    class Noting(QueueMachine):
        session = memory

        def teardown(self) -> None:
            firsts.extend([outcome for _, outcome in self.ran.done if isinstance(outcome, o.Enqueued)][:1])

    seed(1)(Noting)
    run_state_machine_as_test(Noting, settings=machine_settings(20))
    assert len(firsts) > 10
    assert {first.job for first in firsts if isinstance(first, o.Enqueued)} == {1}


@pytest.mark.parametrize("phases", [(), (Phase.shrink,)], ids=["as found", "shrunk"])
def test_a_step_that_breaks_a_clause_fails_names_it_and_tells_the_steps(
    late: Session, phases: tuple[Phase, ...]
) -> None:
    with pytest.raises(ClauseBroken, match=r"^FENCE-01: complete: .+: .+") as broken:
        run_state_machine_as_test(machine_on(late), settings=machine_settings(300, *phases))
    told = "\n".join(broken.value.__notes__)
    assert "state.empty()" in told and told.count("state.aimed(") >= 4


def test_what_is_broken_is_an_assertion_so_that_pytest_tells_it_as_a_failure() -> None:
    assert issubclass(ClauseBroken, AssertionError)


def test_a_rule_of_ones_own_asks_and_is_answered(memory: Session) -> None:
    answers: list[o.Outcome] = []

    class Sweeping(QueueMachine):
        session = memory

        @rule()
        def sweep_twice(self) -> None:
            self.do(c.Recover())
            answers.append(self.do(c.Recover()))

        @precondition(lambda self: memory.spec.cancels and any(job.status == "pending" for job in self.world.jobs))
        @rule()
        def cancel_the_oldest(self) -> None:
            oldest = next(n for n, job in enumerate(self.world.jobs, 1) if job.status == "pending")
            assert self.do(c.RequestCancel(oldest)) == o.CancelAnswer("cancelled")
            assert self.world.jobs[oldest - 1].status == "cancelled"

    seed(2)(Sweeping)
    run_state_machine_as_test(Sweeping, settings=machine_settings(30))
    assert len(answers) > 20
    assert all(isinstance(answer, o.Recovered) and answer.rows == () for answer in answers)


def test_a_rule_of_ones_own_is_judged_too(late: Session) -> None:
    class Overdue(QueueMachine):
        session = late

        @initialize()
        def empty(self) -> None:
            super().empty()
            self.do(c.Enqueue())

        @rule()
        def complete_too_late(self) -> None:
            claimed = self.do(c.Claim(1))
            if isinstance(claimed, o.Claimed) and claimed.handles:
                self.do(c.Advance(self.session.spec.lease_seconds))
                self.do(c.Complete(claimed.handles[0]))

    seed(3)(Overdue)
    with pytest.raises(ClauseBroken, match=r"^FENCE-01: complete"):
        run_state_machine_as_test(Overdue, settings=machine_settings(50))
