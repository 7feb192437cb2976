"""`step`: the one judge of every engine. A fold of `step_part` over a command's parts, then what only the whole shows.

What only the whole shows is completeness (a claim that left a due job, a sweep that left an expired one), which binds
only where nothing overlapped, and the rows seen after the step.
"""

from __future__ import annotations

from collections.abc import Callable

from . import commands as c
from . import outcomes as o
from .errors import classify
from .given import advance, enqueue, plant
from .judge import step_part
from .outcomes import Row
from .part import Part
from .queues import PENDING, RUNNING
from .values import new
from .view import (
    KEPT,
    LOOKS,
    blame,
    blame_rejected,
    checks_beside,
    checks_of_view,
    mismatch,
    overwriting,
    refers_to,
    row_fault,
    stray,
)
from .whole_claim import whole_claim
from .whole_sweep import whole_sweep
from .world import AS_EXPECTED, SETUP, Check, Checks, Context, Record, Step, Violation, World

_BY_HANDLE: frozenset[type] = frozenset(c.HANDLE_COMMANDS)


def parts(command: c.Command, outcome: o.Outcome) -> tuple[Part, ...]:
    """A command as a bag of parts, one per job it touched, each of which takes effect on its own inside the call."""
    kind = type(outcome)
    if kind in _NO_EFFECT:
        return ()
    if type(command) in _BY_HANDLE:
        return (new(Part, (command.handle.job, command, outcome)),)  # type: ignore[attr-defined]
    if kind is o.Claimed:
        return tuple([new(Part, (handle.job, command, handle)) for handle in outcome.handles])  # type: ignore[attr-defined]
    if kind is o.Recovered:
        return tuple([Part(row.job, command, row) for row in outcome.rows])  # type: ignore[attr-defined]
    if kind is o.CancelAnswer or kind is o.Artifact:
        return (new(Part, (command.job, command, outcome)),)  # type: ignore[attr-defined]
    if isinstance(command, c.Atomically) and isinstance(outcome, o.Atomic) and command.end == "commit":
        return parts_inside(command, outcome)
    return ()


def parts_inside(command: c.Atomically, outcome: o.Atomic) -> tuple[Part, ...]:
    """The parts of a caller's transaction, whether he then commits them or not."""
    inner = zip(command.commands, outcome.outcomes, strict=True)
    return tuple(part for each, answer in inner for part in parts(each, answer))


_NO_EFFECT: frozenset[type] = frozenset({o.Conflict, o.HookRaised, o.Unknown})


def step(world: World, command: c.Command, outcome: o.Outcome, context: Context) -> Step | Violation:
    """Judge what was observed of one command.

    `context.now` is the asker's clock in ticks; `context.view` the rows seen after the step in enqueue order, or None
    where nobody looked. Returns the world after it with the checks made, or the clause that it broke.
    """
    kind = type(command)
    if type(outcome) not in KINDS[kind]:
        fault = outcome_fault(command, outcome, context)
        if fault is not None:
            return fault
    else:
        by_itself = _BY_ITSELF.get(kind)
        if by_itself is not None:
            return by_itself(world, command, outcome, context)
    pieces = parts(command, outcome)
    judged = _fold(world, pieces, context)
    if type(judged) is Violation:
        return judged
    jobs, checks = judged  # type: ignore[misc]
    judge_whole = _WHOLE.get(kind)
    if judge_whole is not None:
        whole = judge_whole(world, command, outcome, context)
        if type(whole) is Violation:
            return whole
        checks += whole
    return _seen(world, jobs, checks, command, outcome, pieces, context)


def _fold(world: World, pieces: tuple[Part, ...], context: Context) -> tuple[tuple[Record, ...], Checks] | Violation:
    """Judge each part after the one before: the jobs after all of them, and the checks made."""
    jobs = world.jobs
    checks: Checks = ()
    for part in pieces:
        at = part.job - 1 if type(part.job) is int else -1
        if not 0 <= at < len(jobs):
            return Violation(SETUP, "unknown job", f"the outcome names job {part.job}, which was never enqueued")
        before = jobs[at]
        judged = step_part(before, part, context.now)
        if type(judged) is Violation:
            return _refine(judged, world, part, context)
        after, made = judged  # type: ignore[misc]
        if after is not before:
            jobs = (*jobs[:at], after, *jobs[at + 1 :])
        checks += made
    return jobs, checks


def _refine(violation: Violation, world: World, part: Part, context: Context) -> Violation:
    """Accepted with the row unchanged is FENCE-06, whatever else forbade it, but for a success reported again."""
    if (
        violation.clause != "FENCE-05"
        and type(part.answer) is o.Accepted
        and isinstance(part.command, c.HandleCommand)
        and context.view is not None
        and world.rows is not None
        and len(context.view) == len(world.rows)
        and context.view[part.job - 1] == world.rows[part.job - 1]
    ):
        verb = part.command.verb
        return Violation("FENCE-06", f"{verb}: a rejection says so", violation.why + "; the row is unchanged")
    return violation


KINDS: dict[type, tuple[type, ...]] = {
    c.Claim: (o.Claimed, o.HookRaised),
    c.Renew: (o.Accepted, o.Rejected),
    c.Complete: (o.Accepted, o.Rejected),
    c.Fail: (o.Accepted, o.Rejected),
    c.Skip: (o.Accepted, o.Rejected),
    c.Release: (o.Accepted, o.Rejected),
    c.Acknowledge: (o.Accepted, o.Rejected),
    c.PutArtifact: (o.Accepted, o.Rejected),
    c.ReadArtifact: (o.Artifact,),
    c.Plant: (o.Done,),
    c.Checkpoint: (o.Checkpointed, o.Rejected),
    c.RequestCancel: (o.CancelAnswer,),
    c.Recover: (o.Recovered, o.HookRaised),
    c.Tick: (o.Recovered,),
    c.StartUp: (o.Recovered,),
    c.Probe: (o.Probed,),
    c.Configure: (o.Accepted, o.Rejected),
    c.Classify: (o.Classified,),
    c.Crash: (o.Done,),
    c.Advance: (o.Done,),
    c.Enqueue: (o.Enqueued,),
    c.Atomically: (o.Atomic,),
}
"""The kinds of outcome that each command can have, beside Conflict and Unknown."""


def outcome_fault(command: c.Command, outcome: o.Outcome, context: Context) -> Violation | None:
    """A conflict that nobody can have caused, or an outcome that this command cannot have."""
    kind = type(outcome)
    if kind in KINDS[type(command)]:
        return None
    if kind is o.Conflict:
        if context.overlapped:
            return None
        return Violation("CLAIM-09", "conflict with nobody", "nothing overlapped, so a lock was left behind")
    if kind is o.Unknown:
        return Violation(SETUP, "outcome of another kind", "a lost reply leaves several worlds: ask `possible`")
    return Violation(SETUP, "outcome of another kind", f"{command.verb} cannot answer {kind.__name__}")


_CONFIGURED = {
    flag: Check("LEASE-01", f"configure: {'kept' if flag else 'broken'} ratio", True) for flag in (True, False)
}
_PROBED = {
    "won": (Check("CLAIM-09", "probe: after a claim", True),),
    "empty": (Check("CLAIM-09", "probe: after an empty claim", True),),
    "raised": (Check("CLAIM-09", "probe: after a hook raised", True),),
    "": (Check("CLAIM-09", "probe: idle", False),),
}


def _judge_plain(world: World, command: c.Command, outcome: o.Outcome, context: Context) -> Checks | Violation:
    """Judge a command that touches no job: a probe, a configuration, a classification."""
    if isinstance(outcome, o.Probed):
        if outcome.transactions or outcome.locks:
            left = f"open transactions: {outcome.transactions}, locks held: {outcome.locks}"
            return Violation("CLAIM-09", _PROBED[world.claim][0].reason, left)
        return _PROBED[world.claim]
    if isinstance(command, c.Configure):
        kept = command.heartbeat > 0 and command.lease >= 3 * command.heartbeat
        check = _CONFIGURED[kept]
        if (type(outcome) is o.Accepted) == kept:
            return (check,)
        ratio = f"lease {command.lease} s, heartbeat {command.heartbeat} s"
        return Violation(check.clause, check.reason, f"{ratio} must be {'taken' if kept else 'refused'}")
    if isinstance(command, c.Classify) and isinstance(outcome, o.Classified):
        family = classify(command.code)
        if outcome.family == family:
            return _CLASSIFIED
        why = f"{command.code} belongs to {family or 'no family'}, not {outcome.family or 'none'}"
        return Violation("ERR-01", _CLASSIFIED[0].reason, why)
    return ()


_CLASSIFIED = (Check("ERR-01", "classify: family", True),)


def _atomically(world: World, command: c.Atomically, outcome: o.Atomic, context: Context) -> Step | Violation:
    """Inside, each command is judged after the one before; a rollback then leaves the world as it was."""
    if len(outcome.outcomes) != len(command.commands):
        return Violation(SETUP, "outcome of another kind", "atomically answers one outcome per command")
    inner = world._replace(rows=None)
    checks: Checks = ()
    undone: Check | None = None
    blind = Context(context.now, context.overlapped, None)
    for each, answer in zip(command.commands, outcome.outcomes, strict=True):
        judged = step(inner, each, answer, blind)
        if isinstance(judged, Violation):
            pieces = parts(each, answer)
            return _refine(judged, world, pieces[0], context) if pieces and command.end == "commit" else judged
        if undone is None and judged.world.jobs != inner.jobs:
            undone = _UNDONE[type(each)]
        inner, checks = judged.world, checks + judged.checks
    if command.end == "commit":
        # Of several commands to one job the one that took effect last, and so decided its row, comes last.
        effective = sorted(parts(command, outcome), key=_took_effect)
        return _seen(world, inner.jobs, checks, command, outcome, tuple(effective), context)
    if undone is None:
        # Nothing took effect, so a row that changed is a matter of the rejection, not of the rollback.
        seen = _seen(world, world.jobs, (), command, outcome, parts_inside(command, outcome), context)
        return seen if isinstance(seen, Violation) else Step(seen.world, checks)
    if context.view is AS_EXPECTED:
        return Step(World(world.spec, world.now, world.jobs, None), (*checks, undone))
    if context.view is not None and world.rows is not None and context.view != world.rows:
        return Violation(undone.clause, undone.reason, f"the caller's {command.end} undoes all of it")
    return Step(World(world.spec, world.now, world.jobs, context.view), (*checks, undone))


_UNDONE = {
    kind: Check(
        "CANCEL-01" if kind is c.RequestCancel else "LEASE-03" if kind is c.Renew else "FENCE-01",
        f"{kind.verb}: undone by its caller",
        True,
    )
    for kind in c.ATOMIC_COMMANDS
}
"""What a write tests that its caller then undoes, by the first command of the transaction that had an effect."""


def _took_effect(part: Part) -> bool:
    answer = part.answer
    return type(answer) is o.Accepted or (type(answer) is o.CancelAnswer and answer.answer != "terminal")


def _seen(
    world: World,
    jobs: tuple[Record, ...],
    checks: Checks,
    command: c.Command,
    outcome: o.Outcome,
    pieces: tuple[Part, ...],
    context: Context,
) -> Step | Violation:
    """Compare the rows seen after the step with what each job must look like, and close the step."""
    claim = ""
    if type(command) is c.Claim:
        claim = "raised" if type(outcome) is o.HookRaised else "won" if pieces else "empty"
    view = context.view
    if view is None:
        return Step(World(world.spec, world.now, jobs, None, claim), checks)
    if view is AS_EXPECTED:
        checks += _as_expected(world, jobs, command, outcome, pieces)
        return Step(World(world.spec, world.now, jobs, None, claim), checks)
    if len(view) != len(jobs):
        return Violation(SETUP, "rows lost or added", f"{len(jobs)} jobs were enqueued, {len(view)} rows are there")
    rows = world.rows
    if jobs is world.jobs and rows == view:
        # Nothing was to change, and nothing did: the common case costs one comparison.
        for each in pieces:
            checks += _rejected(each, jobs[each.job - 1], view[each.job - 1], context.now)
        checks += _beside(jobs, command, outcome, pieces)
        return new(Step, (new(World, (world.spec, world.now, jobs, view, claim)), checks))
    touched = {part.job: part for part in pieces}
    now = context.now
    for at, row in enumerate(view):
        before = world.jobs[at]
        record = jobs[at]
        part = touched.get(at + 1)
        if record is not before:
            assert part is not None
            others = () if len(touched) == 1 else tuple([jobs[other - 1] for other in touched if other <= at])
            # Where a caller did several things to one job, the row before the last of them was never seen.
            old = None if rows is None or len(touched) < len(pieces) else rows[at]
            wrong = mismatch(record, row)
            if wrong is not None:
                return blame(part, before, record, wrong, row, old, others)
            fault = row_fault(part, before, record, row, old, now, others)
            if fault is not None:
                return fault
            checks += _accepted(part, before, record)
        elif rows is not None and rows[at] is not row and rows[at] != row:
            if part is not None:
                return blame_rejected(part, before, row, rows[at], now)
            return stray(command, outcome, at + 1, before, rows[at], row, now)
        elif part is not None:
            checks += _rejected(part, record, row, now)
    checks += _beside(world.jobs, command, outcome, pieces)
    return new(Step, (new(World, (world.spec, world.now, jobs, view, claim)), checks))


def _as_expected(
    world: World, jobs: tuple[Record, ...], command: c.Command, outcome: o.Outcome, pieces: tuple[Part, ...]
) -> Checks:
    """What a look at the rows of a right queue would have tested."""
    checks: Checks = ()
    for job, part in {part.job: part for part in pieces}.items():
        before, record = world.jobs[job - 1], jobs[job - 1]
        checks += _rejected(part, record, None, world.now) if record is before else _accepted(part, before, record)
    return checks + _beside(world.jobs, command, outcome, pieces)


def _accepted(part: Part, before: Record, after: Record) -> Checks:
    """A right row; a renewal in the tick of the one before changes nothing that could be wrong."""
    return checks_of_view(part.command, after) if after != before else ()


_HONEST: dict[type, Checks] = {
    kind: (Check("FENCE-06", f"{kind.verb}: a rejection says so", True),) for kind in c.HANDLE_COMMANDS
}


def _rejected(part: Part, record: Record, row: Row | None, now: int) -> Checks:
    """What a row tests that was rightly left alone: had it changed, or had a rejection been answered "accepted". None
    is the row of a right queue that keeps what it may.
    """
    kind = type(part.command)
    if kind in LOOKS:
        return (LOOKS[kind],)
    if type(part.answer) is not o.Rejected:
        return ()
    if kind is c.PutArtifact and refers_to(record, part.command) and (row is None or row.artifact is not None):
        return (*_HONEST[kind], KEPT[record.status])
    over = overwriting(record, part.command, now)
    if over is not None:
        return (*_HONEST[kind], over)
    return _HONEST.get(kind, ())


def _beside(before: tuple[Record, ...], command: c.Command, outcome: o.Outcome, pieces: tuple[Part, ...]) -> Checks:
    """What the look at the rows that the command had no business with has tested; where a hook raised, any change is
    one that was not rolled back (`stray`).
    """
    if type(outcome) is o.HookRaised or (type(outcome) is o.Recovered and outcome.failed):
        return ()
    mine = [part.job for part in pieces]
    asked = ended = other = False
    for job, record in enumerate(before, 1):
        if job in mine:
            continue
        if record.status == RUNNING:
            other = True
        elif record.status != PENDING:
            ended = True
        elif record.cancel is None:
            other = True
        else:
            asked = True
    return checks_beside(command, asked, ended, other)


_BY_ITSELF: dict[type, Callable[..., Step | Violation]] = {
    c.Advance: advance, c.Enqueue: enqueue, c.Plant: plant, c.Atomically: _atomically,
}  # fmt: skip
"""The commands that do not go through parts, or not through their own."""

_WHOLE: dict[type, Callable[..., Checks | Violation]] = {
    c.Claim: whole_claim, c.Probe: _judge_plain, c.Configure: _judge_plain, c.Classify: _judge_plain,
    **dict.fromkeys(c.SWEEPS, whole_sweep),
}  # fmt: skip
"""What is to be judged beside the parts."""
