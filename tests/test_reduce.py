"""The reducer: whatever script found a fault, its story is the shortest; and without the model it still ends."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from random import Random

import pytest
from fencepost.adapters.mutants.catalogue import MUTANTS
from fencepost.adapters.mutants.mutant import Mutant
from fencepost.adapters.reference.adapter import SqliteAdapter
from fencepost.adapters.reference.rules import CONTRACT
from fencepost.conformance import reduce as module
from fencepost.conformance.driver import Run
from fencepost.conformance.generate import NUMBERS
from fencepost.conformance.kill import first_failing
from fencepost.conformance.reduce import first_witnesses, reduce, same_story, simpler_commands, witnesses
from fencepost.conformance.session import Session
from fencepost.model import commands as c
from fencepost.model import outcomes as o
from fencepost.model.queues import BACKFILL, BUILD, MUTATION, QUEUES, QueueSpec
from fencepost.model.trace import Trace, TraceStep, trace_of

CHOSEN = (
    "claim-without-owner",
    "claim-scans-max-claims",
    "claim-due-late",
    "renew-revives",
    "complete-expired",
    "complete-older-token",
    "release-counts",
    "complete-keeps-lease",
    "recover-once-too-often",
    "sweep-generation-of-first",
    "sweep-counts-read",
    "retry-at-once",
)
"""Faults of each chapter, with stories of two to six commands."""


def mutant_named(name: str) -> Mutant:
    return next(mutant for mutant in MUTANTS if mutant.id == name)


@contextmanager
def wrong(name: str) -> Iterator[tuple[Session, Mutant]]:
    mutant = mutant_named(name)
    with Session(SqliteAdapter(rules=mutant.change(CONTRACT)), QUEUES[mutant.queue]) as session:
        yield session, mutant


def failing(session: Session, mutant: Mutant, least: int, seed: int) -> Run:
    """A random script's run of at least so many commands that breaks the mutant's clause."""
    random = Random(seed)
    for _ in range(5000):
        run = session.draw([random.randrange(NUMBERS) for _ in range(60)])
        if run.violation is not None and run.violation.clause == mutant.clause and len(run.done) >= least:
            return run
    raise AssertionError(f"no script broke {mutant.clause}")


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("name", CHOSEN)
def test_a_long_failing_run_becomes_the_shortest_story_that_breaks_the_clause(name: str, seed: int) -> None:
    with wrong(name) as (session, mutant):
        shortest = first_failing(session, mutant.clause, longest=8)
        assert shortest is not None
        run = failing(session, mutant, shortest.length + 1, seed)
        reduced = reduce(session, run)
        assert reduced.violation.clause == mutant.clause
        assert reduced.length <= shortest.length < len(run.done)
        assert 1 <= reduced.evaluations <= 300
        again = session.play(reduced.trace)
        assert again.violation == reduced.violation
        assert again.trace() == reduced.trace


@pytest.fixture
def asked_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A model that knows no trace to any check."""
    monkeypatch.setattr(module, "witnesses", lambda spec, clause, reason=None: iter(()))


@pytest.mark.usefixtures("asked_nothing")
@pytest.mark.parametrize("name", CHOSEN)
def test_without_the_model_it_ends_where_nothing_more_can_be_left_out_or_lowered(name: str) -> None:
    limit = 2000
    with wrong(name) as (session, mutant):
        run = failing(session, mutant, 8, seed=3)
        reduced = reduce(session, run, limit)
        assert reduced.evaluations < limit, "it ended by itself"
        assert reduced.violation.clause == mutant.clause
        assert reduced.length <= len(run.done)
        again = session.play(reduced.trace)
        assert (again.violation, again.trace()) == (reduced.violation, reduced.trace)
        for smaller in (*module._shorter(reduced.trace), *module._lower(reduced.trace, session.spec)):
            tried = session.play(smaller).violation
            assert tried is None or tried.clause != mutant.clause, smaller


@pytest.mark.usefixtures("asked_nothing")
def test_the_second_stage_keeps_within_its_limit() -> None:
    with wrong("complete-expired") as (session, mutant):
        run = failing(session, mutant, 12, seed=4)
        reduced = reduce(session, run, limit=3)
        assert reduced.evaluations == 3
        assert reduced.violation.clause == mutant.clause
        assert session.play(reduced.trace).violation == reduced.violation


@pytest.mark.usefixtures("asked_nothing")
def test_a_run_that_cannot_be_shortened_stays_as_it_is() -> None:
    with wrong("complete-expired") as (session, _):
        run = session.play(
            trace_of(c.Enqueue(), c.Claim(1), c.AdvanceTo("expiry", c.JobRef(1)), c.Complete(c.HandleRef(2)))
        )
        assert run.violation is not None
        reduced = reduce(session, run)
        assert (reduced.trace, reduced.violation) == (run.trace(), run.violation)


H = c.HandleRef(2)
J = c.JobRef(1)
ELABORATE: tuple[c.Command, ...] = (
    c.Enqueue(1, 5),
    c.Enqueue(2),
    c.Claim(3, 10, 3, 100, c.Hook("ok")),
    *(c.Claim(1, limit, most) for limit in (1, 2, 3) for most in (1, 2, 3)),
    c.Renew(H, 100),
    c.Recover(1, c.Hook("poison", J)),
    c.Recover(2),
    c.Tick(2),
    c.StartUp(1),
    c.AdvanceTo("expiry", J, -1),
    c.AdvanceTo("due", J, 1),
    c.Advance(30),
    c.Atomically((c.Complete(H), c.RequestCancel(J)), "raise"),
    c.RequestCancel(J, True),
)
PLAIN: tuple[c.Command, ...] = (
    c.Enqueue(), c.Claim(1), c.Renew(H), c.Complete(H), c.Fail(H), c.Release(H), c.Acknowledge(H), c.Checkpoint(H),
    c.RequestCancel(J), c.Recover(), c.Probe(), c.Crash(1), c.Advance(1), c.AdvanceTo("expiry", J),
    c.AdvanceTo("due", J), c.Configure(3, 1), c.Classify("A"),
)  # fmt: skip


@pytest.fixture(params=[BACKFILL, BUILD], ids=lambda spec: spec.key)
def bounded(request: pytest.FixtureRequest) -> QueueSpec:
    """Queues whose plainest claims scan one job, and ten."""
    spec: QueueSpec = request.param
    return spec


@pytest.mark.parametrize("command", ELABORATE, ids=repr)
def test_a_simpler_command_is_another_one_and_simplicity_has_an_end(command: c.Command, bounded: QueueSpec) -> None:
    known: set[c.Command] = set()

    def descend(each: c.Command, path: tuple[c.Command, ...]) -> None:
        assert each not in path, "no way leads back"
        known.add(each)
        assert len(known) < 200
        for simpler in simpler_commands(each, bounded):
            descend(simpler, (*path, each))

    descend(command, ())


@pytest.mark.parametrize("command", ELABORATE, ids=repr)
def test_lowering_from_any_elaborate_command_reaches_one_that_nothing_is_simpler_than(
    command: c.Command, bounded: QueueSpec
) -> None:
    plainest = c.Claim(1, *bounded.bounds)
    if command == plainest:
        assert list(simpler_commands(command, bounded)) == []
        return
    steps = 0
    while (simpler := next(simpler_commands(command, bounded), None)) is not None:
        command, steps = simpler, steps + 1
        assert steps < 20
    assert steps > 0 and command in (*PLAIN, plainest)


@pytest.mark.parametrize("command", PLAIN, ids=repr)
def test_the_plainest_commands_are_left_alone(command: c.Command) -> None:
    assert list(simpler_commands(command, BACKFILL)) == []


def test_stories_are_the_same_when_they_ask_for_the_same() -> None:
    told = trace_of(c.Enqueue(), c.Claim(1), c.Complete(H))
    answered = Trace(tuple(TraceStep(step.label, step.command, o.REJECTED) for step in told.steps))
    assert same_story(told, answered) and same_story(answered, told)
    for other in (
        trace_of(c.Enqueue(), c.Claim(1)),
        trace_of(c.Enqueue(), c.Claim(2), c.Complete(H)),
        trace_of(c.Enqueue(), c.Claim(1), c.Release(H)),
        trace_of(c.Claim(1), c.Enqueue(), c.Complete(H)),
        Trace(tuple(TraceStep(step.label + 1, step.command) for step in told.steps)),
    ):
        assert not same_story(told, other) and not same_story(other, told)


def test_witnesses_make_the_check_they_are_asked_for_last_and_shortest_first() -> None:
    clause, reason = "FENCE-01", "complete: expired"
    some = [trace for trace, _ in zip(witnesses(BACKFILL, clause), range(40), strict=False)]
    lengths = [trace.length for trace in some]
    assert len(some) == 40 and lengths == sorted(lengths)
    named = [trace for trace, _ in zip(witnesses(BACKFILL, clause, reason), range(10), strict=False)]
    last = [trace.steps[-1].command for trace in named]
    assert len(last) == 10 and all(isinstance(each, c.Complete | c.Atomically) for each in last)
    assert isinstance(last[0], c.Complete)


OTHERWISE = {"complete: cancelled row"}
"""A completion after a cancel request may end the job cancelled; the reference queue refuses it."""


@pytest.mark.parametrize("spec", [BACKFILL, MUTATION], ids=lambda spec: spec.key)
def test_first_witnesses_make_their_check_on_a_right_queue(spec: QueueSpec) -> None:
    found = first_witnesses(spec)
    assert len(found) > 60
    with Session(SqliteAdapter(), spec) as session:
        unmade = set()
        for (clause, reason), trace in found.items():
            session.driver.tally.clear()
            run = session.play(trace)
            assert run.violation is None and len(run.done) == trace.length
            made = {(check.clause, check.reason) for check, _ in session.driver.tally.items() if check.teeth}
            if (clause, reason) not in made:
                unmade.add(reason)
    # Some checks take an answer that this queue may give and does not.
    assert unmade == OTHERWISE
