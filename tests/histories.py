"""Histories of commands that ran at once, made by hand, for the tests of their judge."""

from __future__ import annotations

from fencepost.model import commands as c
from fencepost.model import outcomes as o
from fencepost.model.history import Operation
from fencepost.model.outcomes import Row
from fencepost.model.queues import BACKFILL, PENDING, RUNNING, SUCCEEDED, QueueSpec
from fencepost.model.step import step
from fencepost.model.world import Checks, Context, Record, Step, Violation, World

W1, W2 = c.Handle(1, 1, None), c.Handle(1, 2, None)
EXPIRY = BACKFILL.lease_seconds
ANSWERED = tuple[c.Command, o.Outcome]
ENQUEUED: ANSWERED = (c.Enqueue(), o.Enqueued(1))
HELD: tuple[ANSWERED, ...] = (ENQUEUED, (c.Claim(1), o.Claimed((W1,))))
DONE = o.Accepted(SUCCEEDED)
SWEPT = o.Recovered((o.RecoveredRow(1, PENDING),), 1)


def after(*answered: ANSWERED, spec: QueueSpec = BACKFILL) -> World:
    """The world that these commands, one after another, come to."""
    world = World(spec)
    for command, outcome in answered:
        judged = step(world, command, outcome, Context(world.now))
        assert isinstance(judged, Step), judged
        world = judged.world
    return world


def row(record: Record, **changed: object) -> Row:
    """How a record looks from outside."""
    running = record.status == RUNNING
    begun = record.expires - record.lease if running and record.expires is not None else None
    ended = None if record.status in (PENDING, RUNNING) else 0
    seen = Row(
        record.spec.spell(record.status), c.WORKER_NAMES[record.owner] or None, record.expires, begun, begun, ended,
        record.attempts, record.max_attempts, record.token, record.due, record.cancel, None, record.deadline,
        record.artifact,
    )  # fmt: skip
    return seen._replace(**changed)  # type: ignore[arg-type]


def at_once(*each: ANSWERED, now: int = 0) -> list[Operation]:
    """Operations that all overlap."""
    return [Operation(command, outcome, 0, 9, now) for command, outcome in each]


def legal(found: Checks | Violation) -> Checks:
    """The checks of a history that some order explains."""
    assert not isinstance(found, Violation), found
    return found


def broken(found: Checks | Violation) -> str:
    """The clause that a history breaks."""
    assert isinstance(found, Violation), found
    return found.clause


ONE = after(ENQUEUED)
ONE_HELD = after(*HELD)
TAKEN = ONE_HELD.jobs[0]
