"""The driver: an adapter's own ids never matter, what the harness needs is no clause, and a run can be run again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from random import Random
from typing import Any

import pytest
from fencepost.adapters.contract import Actor, Adapter, AdapterError
from fencepost.adapters.memory import MemoryAdapter
from fencepost.adapters.reference.adapter import SqliteAdapter
from fencepost.adapters.reference.rules import CONTRACT
from fencepost.conformance.driver import worker_of
from fencepost.conformance.generate import NUMBERS
from fencepost.conformance.session import Session
from fencepost.model import commands as c
from fencepost.model import outcomes as o
from fencepost.model.queues import BACKFILL, MUTATION, QUEUES, QueueSpec
from fencepost.model.trace import Trace, TraceStep, trace_of
from fencepost.model.values import Value, field_names, field_values

everywhere = pytest.mark.parametrize("spec", QUEUES.values(), ids=lambda spec: spec.key)


def scripts(count: int, longest: int = 40, seed: int = 7) -> Iterator[list[int]]:
    random = Random(seed)
    for _ in range(count):
        yield [random.randrange(NUMBERS) for _ in range(random.randint(1, longest))]


def renamed(item: Any, name: Callable[[c.JobId], c.JobId]) -> Any:
    """A command or an outcome with every job named otherwise, however deep it stands."""
    if isinstance(item, tuple):
        return tuple(renamed(each, name) for each in item)
    if not isinstance(item, Value):
        return item
    values = []
    for field, value in zip(field_names(type(item)), field_values(item), strict=True):
        if value is not None and field == "job":
            value = name(value)
        elif value is not None and field == "hooked":
            value = tuple(name(job) for job in value)
        else:
            value = renamed(value, name)
        values.append(value)
    return type(item)(*values)


def spelled(job: c.JobId) -> str:
    """Names of which neither the order nor the length says when the job came."""
    assert isinstance(job, int)
    return f"{97 * job % 10:x}-job-{job}"


def number_of(job: c.JobId) -> int:
    return int(str(job).rpartition("-")[2])


class SpellingActor(Actor):
    def __init__(self, actor: Actor) -> None:
        self._actor = actor

    async def perform(self, command: c.Command, now: int) -> o.Outcome:
        answered = await self._actor.perform(renamed(command, number_of), now)
        outcome: o.Outcome = renamed(answered, spelled)
        return outcome


class Spelling(MemoryAdapter):
    """The memory adapter with strings for job ids, which it lists in an order of their own."""

    async def snapshot(self) -> dict[c.JobId, o.Row]:
        rows = await super().snapshot()
        return dict(sorted((spelled(job), row) for job, row in rows.items()))

    def actor(self, worker: int) -> Actor:
        return SpellingActor(super().actor(worker))


class Careless(Spelling):
    """Expired leases are swept into the wrong end."""

    def actor(self, worker: int) -> Actor:
        return Changing(super().actor(worker), lambda kind, outcome: swept_wrongly(outcome))


class PlainCareless(MemoryAdapter):
    def actor(self, worker: int) -> Actor:
        return Changing(super().actor(worker), lambda kind, outcome: swept_wrongly(outcome))


class Changing(Actor):
    """An actor whose answers somebody changes on the way."""

    def __init__(self, actor: Actor, change: Callable[[type, o.Outcome], o.Outcome]) -> None:
        self._actor = actor
        self._change = change

    async def perform(self, command: c.Command, now: int) -> o.Outcome:
        return self._change(type(command), await self._actor.perform(command, now))


def swept_wrongly(outcome: o.Outcome) -> o.Outcome:
    if not isinstance(outcome, o.Recovered) or not outcome.rows:
        return outcome
    rows = tuple(o.RecoveredRow(row.job, "succeeded", None) for row in outcome.rows)
    return o.Recovered(rows, outcome.count, outcome.hooked, outcome.failed, outcome.dml)


@contextmanager
def opened(adapter: Adapter, spec: QueueSpec = BACKFILL) -> Iterator[Session]:
    with Session(adapter, spec) as session:
        yield session


@everywhere
@pytest.mark.parametrize(("plain", "strings"), [(MemoryAdapter, Spelling), (PlainCareless, Careless)])
def test_what_an_adapter_calls_its_jobs_changes_nothing(
    spec: QueueSpec, plain: type[MemoryAdapter], strings: type[MemoryAdapter]
) -> None:
    numbers = list(scripts(150))
    with opened(plain(), spec) as one, opened(strings(), spec) as other:
        kinds = set()
        for script in numbers:
            run, again = one.draw(script), other.draw(script)
            assert (again.done, again.violation, again.world) == (run.done, run.violation, run.world)
            assert again.trace() == run.trace()
            kinds |= {type(command) for command, _ in run.done}
        assert other.driver.tally == one.driver.tally and one.driver.tally
        assert other.driver.steps == one.driver.steps
        of_its_own = c.RequestCancel if spec.cancels else c.PutArtifact
        assert {c.Claim, c.Recover, c.Atomically, c.Complete, of_its_own} <= kinds


def test_a_careless_queue_is_caught_whatever_it_calls_its_jobs() -> None:
    trace = trace_of(c.Enqueue(), c.Claim(1), c.AdvanceTo("expiry", c.JobRef(1)), c.Recover())
    violations = []
    for adapter in (PlainCareless(), Careless()):
        with opened(adapter) as session:
            violations.append(session.play(trace).violation)
    assert violations[0] is not None and violations[0] == violations[1]


class Losing(MemoryAdapter):
    """The snapshot has a job fewer than were enqueued."""

    async def snapshot(self) -> dict[c.JobId, o.Row]:
        rows = await super().snapshot()
        rows.pop(2, None)
        return rows


class Renaming(MemoryAdapter):
    """The snapshot calls a job by a name that nobody knows."""

    async def snapshot(self) -> dict[c.JobId, o.Row]:
        rows = await super().snapshot()
        return {7 if job == 2 else job: row for job, row in rows.items()}


class Adding(MemoryAdapter):
    """The snapshot has a job that nobody enqueued."""

    async def snapshot(self) -> dict[c.JobId, o.Row]:
        rows = await super().snapshot()
        return {**rows, 7: rows[1]} if 2 in rows else rows


class Touching(MemoryAdapter):
    """An enqueue raises the budget of the job before it."""

    async def snapshot(self) -> dict[c.JobId, o.Row]:
        rows = await super().snapshot()
        return {job: row._replace(max_attempts=9) if 2 in rows and job == 1 else row for job, row in rows.items()}


class Repeating(MemoryAdapter):
    """Each new job has the id of the first one."""

    def actor(self, worker: int) -> Actor:
        return Changing(super().actor(worker), lambda kind, out: o.Enqueued(1) if kind is c.Enqueue else out)


class Silent(MemoryAdapter):
    """An enqueue does not say which job it made."""

    def actor(self, worker: int) -> Actor:
        return Changing(super().actor(worker), lambda kind, out: o.DONE if kind is c.Enqueue else out)


@pytest.mark.parametrize(
    ("adapter", "message"),
    [
        (Silent, r"enqueue returned Done\(\); return Enqueued"),
        (Losing, "2 jobs were enqueued, the snapshot has 1"),
        (Adding, "2 jobs were enqueued, the snapshot has 3"),
        (Renaming, "the snapshot lacks job 2"),
        (Touching, "an enqueue adds one row and changes no other"),
        (Repeating, "1 jobs were enqueued, the snapshot has 2"),
    ],
)
def test_rows_that_do_not_fit_what_was_enqueued_are_a_harness_fault(adapter: type[Adapter], message: str) -> None:
    with opened(adapter()) as session, pytest.raises(AdapterError, match=message):
        session.play(trace_of(c.Enqueue(), c.Enqueue()))


STRANGER = c.Handle(9, 1, None)
NONSENSE: list[tuple[type[c.Command], o.Outcome]] = [
    (c.Claim, o.Accepted("running")),
    (c.Claim, o.Claimed((STRANGER,))),
    (c.Complete, o.Claimed()),
    (c.RequestCancel, o.REJECTED),
    (c.Recover, o.Accepted("pending")),
    (c.Recover, o.Recovered((o.RecoveredRow(9, "pending", None),), 1)),
    (c.Probe, o.DONE),
    (c.Atomically, o.DONE),
    (c.Atomically, o.Atomic(())),
]


@pytest.mark.parametrize("spelling", [False, True], ids=["numbers", "strings"])
@pytest.mark.parametrize(("kind", "answer"), NONSENSE)
def test_an_answer_of_a_wrong_kind_or_about_a_stranger_is_a_harness_fault(
    spelling: bool, kind: type[c.Command], answer: o.Outcome
) -> None:
    base: type[MemoryAdapter] = Spelling if spelling else MemoryAdapter

    class Babbling(base):  # type: ignore[misc, valid-type]
        name = "babbling"

        def actor(self, worker: int) -> Actor:
            return Changing(super().actor(worker), lambda asked, outcome: answer if asked is kind else outcome)

    everything = trace_of(
        c.Enqueue(),
        c.Claim(1),
        c.Probe(),
        c.Atomically((c.RequestCancel(c.JobRef(1)),), "rollback"),
        c.Complete(c.HandleRef(2)),
        c.RequestCancel(c.JobRef(1)),
        c.Recover(),
    )
    with opened(Babbling()) as session, pytest.raises(AdapterError, match=f"babbling: {kind.verb}"):
        session.play(everything)


class Verbless(MemoryAdapter):
    def actor(self, worker: int) -> Actor:
        return Actor()


def test_a_verb_that_nobody_wrote_is_named() -> None:
    with opened(Verbless()) as session, pytest.raises(AdapterError, match="async def enqueue"):
        session.play(trace_of(c.Enqueue()))


def test_a_step_whose_reference_dangles_is_left_out() -> None:
    trace = trace_of(
        c.Enqueue(),
        c.Complete(c.HandleRef(3)),
        c.Claim(1),
        c.Complete(c.HandleRef(3, 1)),
        c.RequestCancel(c.JobRef(3)),
        c.Recover(10, c.Hook("poison", c.JobRef(2))),
        c.Atomically((c.Renew(c.HandleRef(3)), c.Renew(c.HandleRef(2)))),
        c.AdvanceTo("due", c.JobRef(1)),
        c.AdvanceTo("expiry", c.JobRef(1)),
        c.AdvanceTo("expiry", c.JobRef(1)),
        c.Renew(c.HandleRef(3)),
    )
    with opened(MemoryAdapter()) as session:
        run = session.play(trace)
    assert run.violation is None
    assert run.labels == [1, 3, 9, 11]
    assert [type(command) for command, _ in run.done] == [c.Enqueue, c.Claim, c.Advance, c.Renew]
    assert run.done[-1] == (c.Renew(c.Handle(1, 1, None)), o.REJECTED)


def test_labels_are_names_and_need_no_order() -> None:
    steps = (TraceStep(40, c.Enqueue()), TraceStep(7, c.Claim(2)), TraceStep(12, c.Release(c.HandleRef(7))))
    with opened(MemoryAdapter(), MUTATION) as session:
        run = session.play(Trace(steps))
    assert run.labels == [40, 7, 12]
    assert run.done[-1] == (c.Release(c.Handle(1, 2, 1)), o.Accepted("pending"))
    assert [step.command for step in run.trace().steps] == [c.Enqueue(), c.Claim(2), c.Release(c.HandleRef(2))]


@everywhere
@pytest.mark.parametrize("strings", [False, True], ids=["numbers", "strings"])
def test_a_run_is_a_trace_that_goes_the_same_way_again(spec: QueueSpec, strings: bool) -> None:
    with opened(Spelling() if strings else MemoryAdapter(), spec) as session:
        for script in scripts(150):
            run = session.draw(script)
            trace = run.trace()
            assert [step.label for step in trace.steps] == list(range(1, len(run.done) + 1))
            assert [step.outcome for step in trace.steps] == [outcome for _, outcome in run.done]
            again = session.play(trace)
            assert (again.done, again.violation, again.world) == (run.done, None, run.world)
            assert again.trace() == trace


def test_a_failing_run_ends_with_the_step_that_failed_and_fails_again() -> None:
    with opened(SqliteAdapter(rules=CONTRACT.without("fence.complete", "lease_valid"))) as session:
        run = session.play(
            trace_of(
                c.Enqueue(),
                c.Claim(1),
                c.AdvanceTo("expiry", c.JobRef(1)),
                c.Complete(c.HandleRef(2)),
                c.Recover(),
            )
        )
        assert run.violation is not None and run.violation.clause == "FENCE-01"
        assert len(run.done) == 4 and run.done[-1][1] == o.Accepted("succeeded")
        again = session.play(run.trace())
        assert (again.violation, again.done) == (run.violation, run.done)


@pytest.mark.parametrize(("offset", "status"), [(-1, "running"), (0, "pending"), (1, "pending")])
@everywhere
def test_time_goes_to_right_before_at_and_right_after_an_expiry(spec: QueueSpec, offset: int, status: str) -> None:
    trace = trace_of(c.Enqueue(), c.Advance(11), c.Claim(1), c.AdvanceTo("expiry", c.JobRef(1), offset), c.Recover())
    with opened(SqliteAdapter(), spec) as session:
        run = session.play(trace)
    assert run.violation is None
    assert run.world.now == 11 + spec.lease_seconds + offset
    assert run.world.jobs[0].status == status
    assert run.trace().steps[3].command == trace.steps[3].command, "it is told by the instant that it goes to"


@pytest.mark.parametrize(("offset", "claimed"), [(-1, 0), (0, 1), (1, 1)])
def test_time_goes_to_right_before_at_and_right_after_a_due_instant(offset: int, claimed: int) -> None:
    trace = trace_of(c.Enqueue(3, 20), c.AdvanceTo("due", c.JobRef(1), offset), c.Claim(1))
    with opened(SqliteAdapter(), MUTATION) as session:
        run = session.play(trace)
    assert run.violation is None
    assert run.world.now == 20 + offset
    answered = run.done[-1][1]
    assert isinstance(answered, o.Claimed) and len(answered.handles) == claimed


def test_each_command_is_served_by_the_actor_that_it_names() -> None:
    handle = c.Handle(1, 2, None)
    assert [worker_of(each) for each in (c.Claim(3), c.Tick(2), c.Crash(1))] == [3, 2, 1]
    of_handles: list[c.Command] = [kind(handle) for kind in c.HANDLE_COMMANDS]  # type: ignore[call-arg]
    assert {worker_of(each) for each in of_handles} == {2}
    control = (
        c.Enqueue(), c.RequestCancel(1), c.Recover(), c.StartUp(1), c.Probe(), c.Configure(9, 3), c.Classify("A"),
        c.Atomically((c.Renew(handle),)),
    )  # fmt: skip
    assert {worker_of(each) for each in control} == {0}


def test_a_reset_forgets_the_jobs_and_keeps_the_tally() -> None:
    with opened(Spelling()) as session:
        session.play(trace_of(c.Enqueue(), c.Enqueue(), c.Claim(1)))
        before = dict(session.driver.tally)
        run = session.play(trace_of(c.Enqueue(), c.Claim(1)))
        assert run.done[0][1] == o.Enqueued(1, None)
        assert session.driver.steps == 5
        assert all(session.driver.tally[check] >= times for check, times in before.items())
        assert sum(session.driver.tally.values()) > sum(before.values()) > 0
