"""The law of the model: `step` accepts exactly what `outcomes` lists.

For every state of a small world, every command that may come last, and a universe of answers much larger than the
legal ones. Aside from what the contract leaves to the queue: a back-off's due instant, the order in which handles and
rows are told, how much a hook that raised was given, the number of statements where there was something to do, and the
word for a configuration that was taken.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations, product

import pytest
from declared import CONTRACT, EVERY
from fencepost.model import commands as c
from fencepost.model import outcomes as o
from fencepost.model.choices import Bounds, last
from fencepost.model.explore import Explorer
from fencepost.model.legal import outcomes
from fencepost.model.queues import MUTATION, QueueSpec
from fencepost.model.step import step
from fencepost.model.whole_sweep import due_for_sweep
from fencepost.model.world import Context, Step, World

STATUSES = (
    "pending", "running", "succeeded", "failed", "cancelled", "canceled", "completed", "success", "done", "error",
    "skipped", "configured", "lost",
)  # fmt: skip
HOOKED: tuple[tuple[int, ...] | None, ...] = (None, (), (1,), (2,), (1, 2), (2, 1))
LATER = 50
"""A due instant, in ticks after now, that any back-off allows."""


def own_kind(world: World, command: c.Command, now: int) -> Iterator[o.Outcome]:
    """Answers of the kind that this command has, right and wrong."""
    match command:
        case c.Claim():
            for jobs in orders(world, 2):
                hooked = None if command.hook is None else jobs
                for tokens in product(*(tokens_of(world, job, alone=len(jobs) == 1) for job in jobs)):
                    pairs = zip(jobs, tokens, strict=True)
                    yield o.Claimed(tuple(c.Handle(job, command.worker, token) for job, token in pairs), hooked)
            yield o.HookRaised()
        case c.Recover() | c.Tick() | c.StartUp():
            due = now + LATER if world.spec.backs_off else None
            for jobs in orders(world, 2):
                hooked = jobs if isinstance(command, c.Recover) and command.hook is not None else None
                for statuses in product(STATUSES[:6], repeat=len(jobs)):
                    told = zip(jobs, statuses, strict=True)
                    rows = tuple(o.RecoveredRow(n, status, due if status == "pending" else None) for n, status in told)
                    yield o.Recovered(rows, len(rows), hooked)
            yield o.HookRaised()
        case c.Checkpoint():
            yield from (o.REJECTED, o.Checkpointed(True), o.Checkpointed(False))
        case c.HandleCommand() | c.Configure():
            yield o.REJECTED
            due = now + LATER if world.spec.backs_off and isinstance(command, c.Fail) else None
            yield from (o.Accepted(status, due if status == "pending" else None) for status in STATUSES)
            if isinstance(command, c.Fail | c.Release) and not world.spec.backs_off:
                yield o.Accepted("pending", now + LATER)
        case c.ReadArtifact(job=job):
            tokens = (token for _, token in world.jobs[job - 1].issued)  # type: ignore[operator]
            yield from (o.Artifact(token) for token in (None, "stray", *tokens))
        case c.Plant():
            yield o.DONE
        case c.RequestCancel():
            yield from (o.CancelAnswer("cancelled"), o.CancelAnswer("recorded"), o.CancelAnswer("terminal"))
        case c.Classify():
            families = ("LEASE", "INFRA", "CONTENT", "CANCEL", "FENCE", "LIMIT", None)
            yield from (o.Classified(family) for family in families)
        case c.Probe():
            yield from (o.Probed(transactions, locks) for transactions in (0, 1) for locks in (0, 1))
        case c.Enqueue():
            yield from (o.Enqueued(job, token) for job in range(4) for token in (None, 0))
        case c.Atomically(commands=(inner,)):
            yield from (o.Atomic((each,)) for each in own_kind(world, inner, now))
            yield from (o.Atomic(()), o.Atomic((o.REJECTED, o.REJECTED)))


def orders(world: World, most: int) -> Iterator[tuple[int, ...]]:
    """Every choice of up to `most` jobs in every order, one that does not exist among them."""
    for count in range(most + 1):
        yield from permutations(range(1, len(world.jobs) + 2), count)


def tokens_of(world: World, job: int, alone: bool) -> tuple[c.Token, ...]:
    """The token that a claim must mint, and wrong ones; of another kind only where the job is claimed `alone`."""
    token = world.jobs[job - 1].token if job <= len(world.jobs) else None
    if world.spec.fence == "attempt_id":
        issued = {token for record in world.jobs for _, token in record.issued}
        count = len(world.jobs[job - 1].issued) if job <= len(world.jobs) else 0
        return (f"{job}.{count + 1}", *sorted(issued, key=str), *((None, "", 1) if alone else ()))
    return (None, token, token + 1, token + 2) if isinstance(token, int) else (None,)


def beside(outcome: o.Outcome) -> Iterator[o.Outcome]:
    """Answers that differ from a legal one in one thing."""
    if isinstance(outcome, o.Claimed):
        yield from (o.Claimed(outcome.handles, hooked) for hooked in HOOKED)
        yield o.Claimed(outcome.handles * 2, outcome.hooked)
        for at, handle in enumerate(outcome.handles):
            other = c.Handle(handle.job, handle.worker + 1, handle.token)
            yield o.Claimed((*outcome.handles[:at], other, *outcome.handles[at + 1 :]), outcome.hooked)
    if isinstance(outcome, o.Recovered):
        rows, count, hooked, failed, dml = outcome.rows, outcome.count, outcome.hooked, outcome.failed, outcome.dml
        yield from (o.Recovered(rows, count, each, failed, dml) for each in HOOKED)
        yield from (o.Recovered(rows, count + more, hooked, failed, dml) for more in (-1, 1))
        yield from (o.Recovered(rows, count, hooked, each, dml) for each in (False, True))
        yield from (o.Recovered(rows, count, hooked, failed, each) for each in (None, 0, 1))
        yield o.Recovered(rows * 2, count * 2, hooked, failed, dml)


KINDS: tuple[o.Outcome, ...] = (
    o.Enqueued(1), o.Enqueued(2, 0), o.Enqueued(3, 0), o.Claimed(), o.Accepted("running"), o.Accepted("succeeded"),
    o.REJECTED, o.CancelAnswer("recorded"), o.CancelAnswer("terminal"), o.Recovered(), o.Recovered(dml=0),
    o.Recovered(dml=1), o.Artifact(None), o.Artifact("1.1"), o.Checkpointed(True), o.Checkpointed(False),
    o.Probed(0, 0), o.Classified(None), o.Classified("LEASE"), o.Atomic(()), o.Atomic((o.REJECTED,)), o.DONE,
    o.CONFLICT, o.HookRaised(),
)  # fmt: skip
"""At least one outcome of each kind but `Unknown`, which says nothing that could be judged."""


def plain(outcome: o.Outcome, idle: bool, backs_off: bool) -> o.Outcome:
    """The outcome without what the contract leaves to the queue: which of several back-offs, in which order jobs are
    told, how many of those that it could have been a hook was given that raised, and, unless there is nothing for a
    sweep to do (`idle`), the number of statements.
    """

    def due(instant: int | None) -> int | None:
        return None if backs_off else instant

    match outcome:
        case o.Accepted(status=status):
            return o.Accepted(status, due(outcome.due))
        case o.HookRaised(hooked=hooked):
            return o.HookRaised((0,) if hooked else ())
        case o.Claimed(handles=handles, hooked=hooked):
            return o.Claimed(tuple(sorted(handles, key=lambda each: str(each.job))), _sorted(hooked))
        case o.Recovered(rows=rows, count=count, hooked=hooked, dml=dml):
            told = sorted(rows, key=lambda row: str(row.job))
            moved = tuple(o.RecoveredRow(each.job, each.status, due(each.due)) for each in told)
            return o.Recovered(moved, count, _sorted(hooked), outcome.failed, dml or 0 if idle else None)
        case o.Atomic(outcomes=inner):
            return o.Atomic(tuple(plain(each, idle, backs_off) for each in inner))
    return outcome


def _sorted(hooked: tuple[c.JobId, ...] | None) -> tuple[c.JobId, ...]:
    return tuple(sorted(hooked or (), key=str))


def disagreements(world: World, command: c.Command, candidates: Iterator[o.Outcome], seen: list[bool]) -> list[object]:
    """The candidates of which `step` thinks otherwise than `outcomes`; `seen` collects what `step` thought."""
    now = world.now
    context = Context(now, False, None)
    idle = type(command) in c.SWEEPS and not due_for_sweep(world, command, now)
    legal = list(outcomes(world, command, context))
    backs_off = world.spec.backs_off
    allowed = {plain(each, idle, backs_off) for each in legal}
    if isinstance(command, c.Configure) and o.Accepted("configured") in allowed:
        allowed = {o.Accepted(status) for status in STATUSES}
    found: list[object] = []
    for candidate in (*legal, *(near for each in legal for near in beside(each)), *candidates):
        accepted = isinstance(step(world, command, candidate, context), Step)
        seen.append(accepted)
        if accepted != (plain(candidate, idle, backs_off) in allowed):
            found.append((world.jobs, command, candidate, "accepted" if accepted else "refused"))
    return found


@pytest.mark.parametrize("spec", EVERY, ids=lambda spec: spec.key)
def test_step_accepts_exactly_the_outcomes_that_are_legal(spec: QueueSpec) -> None:
    found = Explorer(spec, Bounds(depth=4 if spec in CONTRACT else 3)).run()
    seen: list[bool] = []
    for world in found.states:
        for command in last(world, found.bounds):
            assert disagreements(world, command, own_kind(world, command, world.now), seen) == []
    least = 10_000 if spec in CONTRACT else 5_000
    assert seen.count(False) > 8 * seen.count(True) > least, "the universe is much larger than the law"


@pytest.mark.parametrize("spec", CONTRACT, ids=lambda spec: spec.key)
def test_step_refuses_every_outcome_of_another_kind(spec: QueueSpec) -> None:
    found = Explorer(spec, Bounds(depth=3)).run()
    seen: list[bool] = []
    for world in found.states:
        for command in last(world, found.bounds):
            assert disagreements(world, command, iter(KINDS), seen) == []
    assert {type(each) for each in KINDS} == set(o.OUTCOMES) - {o.Unknown}


@pytest.mark.parametrize("due", [-1, 0])
def test_a_back_off_that_is_not_in_the_future_is_refused(due: int) -> None:
    """ATT-02, REC-01: due strictly later, whatever the instant; the law above leaves the instant aside."""
    world = World(MUTATION)
    for command in (c.Enqueue(), c.Claim(1)):
        judged = step(world, command, next(outcomes(world, command, Context(0))), Context(0))
        assert isinstance(judged, Step)
        world = judged.world
    fail = c.Fail(c.Handle(1, 1, 1), "infra", "RENDER_SERVICE_UNAVAILABLE")
    assert step(world, fail, o.Accepted("pending", 10 + due), Context(10))[0] == "ATT-02"
    assert isinstance(step(world, fail, o.Accepted("pending", 11), Context(10)), Step)
    row = o.RecoveredRow(1, "pending", 45 + due)
    assert step(world, c.Recover(), o.Recovered((row,), 1), Context(45))[0] == "REC-01"
    later = o.RecoveredRow(1, "pending", 46)
    assert isinstance(step(world, c.Recover(), o.Recovered((later,), 1), Context(45)), Step)
