"""Judging what is done to a queue rather than asked of it: the clock moves, a job is added, a field is planted, a
reader looks at an artifact.
"""

from __future__ import annotations

from . import commands as c
from . import outcomes as o
from .part import Answer, Judged
from .queues import PENDING, SUCCEEDED
from .view import mismatch
from .world import AS_EXPECTED, SETUP, Check, Context, Record, Step, Violation, World


def advance(world: World, command: c.Advance, outcome: o.Outcome, context: Context) -> Step | Violation:
    """The clock moves, and no row with it."""
    if world.rows is not None and context.view is not None and world.rows != context.view:
        return Violation(SETUP, "rows changed with the clock", "no command ran, yet a row changed")
    return Step(World(world.spec, world.now + command.seconds, world.jobs, world.rows), ())


def enqueue(world: World, command: c.Enqueue, outcome: o.Enqueued, context: Context) -> Step | Violation:
    """A pending job is added; what it is given must stand in its row."""
    spec = world.spec
    if type(outcome.token) is not (int if spec.counts_generations else type(None)):
        wanted = "the generation that the job starts from" if spec.counts_generations else "no token"
        return Violation(SETUP, "a token of another kind", f"{spec.key} needs {wanted}, got {outcome.token!r}")
    if outcome.job != len(world.jobs) + 1:
        return Violation(SETUP, "job id used twice", f"the new job's id is that of job {outcome.job}")
    now = context.now
    due = now + command.due_in if command.due_in else None
    deadline = now + command.deadline_in if command.deadline_in else None
    record = Record(
        spec, PENDING, 0, outcome.token, None, 0, 0, command.max_attempts, due, None, (), deadline, None,
        0 if spec.monotonic_ids else now,
    )  # fmt: skip
    if context.view is AS_EXPECTED:
        return Step(World(spec, world.now, (*world.jobs, record), None), ())
    if context.view is not None:
        old = world.rows or ()
        if len(context.view) != len(old) + 1 or context.view[:-1] != old:
            return Violation(SETUP, "enqueue", "an enqueue adds one row and changes no other")
        wrong = mismatch(record, context.view[-1])
        if wrong is not None:
            why = f"the new row's {wrong.field} is {wrong.found}, asked for {wrong.expected}"
            return Violation(SETUP, "enqueue", why)
    return Step(World(spec, world.now, (*world.jobs, record), context.view), ())


def plant(world: World, command: c.Plant, outcome: o.Outcome, context: Context) -> Step | Violation:
    """A field is written behind the queue's back; the row must show it, and nothing else."""
    at = command.job - 1 if type(command.job) is int else -1
    if not 0 <= at < len(world.jobs):
        return Violation(SETUP, "unknown job", f"there is no job {command.job} to plant anything in")
    record, spec = world.jobs[at], world.spec
    if not (spec.deadline if command.field == "deadline" else spec.claims_by_id):
        return Violation(SETUP, "plant", f"{spec.key} knows nothing of a {command.field} to plant")
    if command.field == "lease" and record.status != PENDING:
        return Violation(SETUP, "plant", f"a left-over lease is planted in a pending job, job {command.job} is none")
    instant = context.now + command.seconds
    record = record._replace(expires=instant) if command.field == "lease" else record._replace(deadline=instant)
    jobs = (*world.jobs[:at], record, *world.jobs[at + 1 :])
    view = context.view
    if view is None or view is AS_EXPECTED:
        return Step(World(spec, world.now, jobs, None), ())
    wrong = mismatch(record, view[at])
    if wrong is not None:
        why = f"planted in job {command.job}: {wrong.field} should be {wrong.expected}, is {wrong.found}"
        return Violation(SETUP, "plant", why)
    rows = world.rows
    if rows is not None:
        row = rows[at]._replace(expires=instant) if command.field == "lease" else rows[at]._replace(deadline=instant)
        if (*rows[:at], row, *rows[at + 1 :]) != view:
            return Violation(SETUP, "plant", f"planting a {command.field} in job {command.job} changed more than that")
    return Step(World(spec, world.now, jobs, view), ())


_READ = {
    (reason, teeth): (Check("FENCE-04", f"read_artifact: {reason}", teeth),)
    for reason in ("the current attempt's", "none yet")
    for teeth in (False, True)
}


def judge_read(record: Record, command: c.Command, answer: Answer, now: int) -> Judged:
    """A reader is given the current attempt's artifact or none, never an older one's (FENCE-04).

    Of a job that has not succeeded the contract leaves open whether its attempt's is there to be read: while it runs it
    may be kept back, and once it is to run again, or has failed, it may be lost.
    """
    assert isinstance(answer, o.Artifact)
    current = record.artifact
    reason = "none yet" if current is None else "the current attempt's"
    if answer.attempt == current:
        # Only where some attempt could have stored one is there anything else to be given.
        return record, _READ[reason, bool(record.issued)]
    if answer.attempt is None and record.status != SUCCEEDED:
        return record, _READ[reason, False]
    check = _READ[reason, True][0]
    given = "no artifact" if answer.attempt is None else f"the artifact of attempt {answer.attempt}"
    wanted = "none" if current is None else f"that of attempt {current}"
    return Violation(check.clause, check.reason, f"a reader must be given {wanted}, was given {given}")
