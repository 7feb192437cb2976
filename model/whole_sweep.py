"""What only a whole sweep shows: completeness, hooks, counts, and what was left alone.

Completeness binds only an operation that nothing overlapped (contract.md, "Overlap and clocks").
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations

from . import commands as c
from . import outcomes as o
from .moves import (
    IN_TIME,
    OWN_PREFIX,
    RECORDED,
    differs_by_own_lease,
    own_leftover,
    recover_target,
    swept_wrongly,
    valid_lease,
)
from .part import Whole
from .queues import PENDING, RUNNING
from .view import PER_ROW
from .world import Check, Context, Violation, World, expired, sweepable

_NOTHING = Check("REC-06", "sweep: nothing found, nothing written", True)
_COUNT = {
    failed: Check("REC-10", f"sweep: count{' after a failed batch' if failed else ''}", True)
    for failed in (False, True)
}
_GIVEN = Check("REC-08", "sweep: hook given the changed jobs", True)
_SWEEP_ROLLED_BACK = Check("REC-08", "sweep: hook raised, rolled back", True)
_BY_ITSELF = "sweep: hook raised by itself"
_PAST = Check("REC-12", "sweep: past a failed batch", True)
_BUSY = Check("REC-01", "sweep: expired, re-queued while its owner holds another job", True)
_LOOP = Check("REC-04", "tick: recovers", True)
_PER_ROW = Check("REC-09", PER_ROW, True)


def due_for_sweep(world: World, command: c.Command, now: int) -> list[int]:
    """The ordinals of the jobs that this sweep must move, oldest first."""
    return [job for job, record in enumerate(world.jobs, 1) if sweepable(record, now) or own_leftover(record, command)]


def whole_sweep(world: World, command: c.Command, outcome: o.Outcome, context: Context) -> Whole:
    """Hooks and counts always; what was left, and what was written for nothing, only where nothing overlapped."""
    now = context.now
    hook = command.hook if type(command) is c.Recover else None
    must = due_for_sweep(world, command, now)
    if isinstance(outcome, o.HookRaised):
        return _hook_of_sweep_raised(world, command, outcome.hooked, must, context)
    if not isinstance(outcome, o.Recovered):
        return ()
    moved = [row.job for row in outcome.rows]
    if outcome.count != len(moved):
        count = _COUNT[outcome.failed]
        return Violation(count.clause, count.reason, f"the summary counts {outcome.count}, {len(moved)} rows moved")
    checks: list[Check] = [_COUNT[outcome.failed]] if moved else []
    if hook is not None and moved:
        if hook.kind in ("raise", "cancel"):
            return Violation(_SWEEP_ROLLED_BACK.clause, _SWEEP_ROLLED_BACK.reason, "the hook raised, yet rows moved")
        checks.append(_GIVEN)
    # Most sweeps carry no hook, and then there is nothing to sort.
    if (hook is not None or outcome.hooked) and sorted(outcome.hooked or ()) != (sorted(moved) if hook else []):
        return Violation(_GIVEN.clause, _GIVEN.reason, f"the hook was given {outcome.hooked}, changed were {moved}")
    if context.overlapped:
        return tuple(checks)
    left = [n for n in must if n not in moved]
    raises = hook is not None and (hook.kind in ("raise", "cancel") or (hook.kind == "poison" and hook.job in must))
    if must and raises:
        if not outcome.failed and left:  # the hook was not given what it raises for
            return _left(world, command, left[0], now)
        failed = _after_failed_batch(world, command, must, left, now)
        if isinstance(failed, Violation):
            return failed
        if not outcome.failed:
            why = "a hook raised, and the summary does not say so"
            return Violation(_SWEEP_ROLLED_BACK.clause, _SWEEP_ROLLED_BACK.reason, why)
        return (*checks, *failed)
    if outcome.failed:
        return Violation("REC-08", _BY_ITSELF, "the summary speaks of a failed batch, but no hook raised")
    if left:
        return _left(world, command, left[0], now)
    if not must:
        if outcome.dml:
            return Violation(_NOTHING.clause, _NOTHING.reason, f"{outcome.dml} data-changing statements, nothing to do")
        if outcome.dml == 0:
            checks.append(_NOTHING)
    elif type(command) is c.Tick:
        checks.append(_LOOP)
    if type(command) is c.Recover and any(_kept_by_another(world, n, now) for n in must):
        checks.append(_BUSY)
    if len(must) > 1 and world.spec.counts_generations:
        lost = [world.jobs[n - 1].token for n in must if world.jobs[n - 1].status == RUNNING]
        if _told_apart(lost):
            checks.append(_PER_ROW)
    if len(must) < len(world.jobs):
        checks += _spared(world, command, must, now)
    return tuple(checks)


def _last_of_its_kind(world: World, moved: list[int], left: list[int], batch: int, now: int) -> bool:
    """Whether the rows that were left can have been a last batch, which was not full: of all rows, of those of one
    status, or of those of which one thing becomes.
    """

    def status(job: int) -> str:
        return world.jobs[job - 1].status

    def branch(job: int) -> tuple[str, str]:
        return status(job), recover_target(world.jobs[job - 1], now)[0]

    kinds: tuple[Callable[[int], object], ...] = (lambda job: "", status, branch)
    return any(
        len({kind(job) for job in left}) == 1 and not sum(kind(job) == kind(left[0]) for job in moved) % batch
        for kind in kinds
    )


def _kept_by_another(world: World, job: int, now: int) -> bool:
    """Whether the worker whose lease of this job ran out holds another job, and might be taken for alive by that."""
    record = world.jobs[job - 1]
    if record.status != RUNNING or recover_target(record, now)[0] != PENDING:
        return False
    return any(
        other.status == RUNNING and other.owner == record.owner and not expired(other, now) for other in world.jobs
    )


def _told_apart(generations: Sequence[c.Token]) -> bool:
    """Whether some row that gets an earlier row's new generation has neither its own new one nor its old one then."""
    return any(
        first + 1 not in (later, later + 1)  # type: ignore[operator]
        for first, later in combinations(generations, 2)
    )


def _spared(world: World, command: c.Command, must: list[int], now: int) -> list[Check]:
    """What the sweep rightly left alone."""
    found: list[Check] = []
    for n, record in enumerate(world.jobs, 1):
        if n in must:
            continue
        if record.status == RUNNING:
            check = valid_lease(record, command, now)
        elif record.status == PENDING and record.deadline is not None:
            check = IN_TIME
        else:
            continue
        if check not in found:
            found.append(check)
    return found


def _left(world: World, command: c.Command, job: int, now: int) -> Violation:
    """The clause that a job left behind breaks."""
    record = world.jobs[job - 1]
    if type(command) is c.Tick:
        check = _LOOP
    elif record.status == RUNNING and not expired(record, now):
        check = OWN_PREFIX
    elif differs_by_own_lease(record, now):
        check = RECORDED
    else:
        check = _BUSY if _kept_by_another(world, job, now) else recover_target(record, now)[1]
    return Violation(check.clause, check.reason, f"job {job} was left {record.status}")


def _hook_of_sweep_raised(
    world: World, command: c.Command, given: tuple[c.JobId, ...], must: list[int], context: Context
) -> Whole:
    """A sweep that passes on what its hook raised, and so moved nothing."""
    hook = command.hook if type(command) is c.Recover else None
    if hook is None or hook.kind == "ok":
        return Violation("REC-08", _BY_ITSELF, "the hook did not raise")
    if context.overlapped:
        return ()
    for job in given:
        if type(job) is int and 0 < job <= len(world.jobs) and job not in must:
            return swept_wrongly(world.jobs[job - 1], command, context.now)
    if not must:
        return Violation("REC-08", _BY_ITSELF, "nothing was there to be swept, so the hook had no business to run")
    failed = _after_failed_batch(world, command, must, must, context.now)
    if not isinstance(failed, Violation) and (not given or (hook.kind == "poison" and hook.job not in given)):
        return Violation(_GIVEN.clause, _GIVEN.reason, f"the hook was given {given}, to be moved were {must}")
    return failed


def _after_failed_batch(world: World, command: c.Command, must: list[int], left: list[int], now: int) -> Whole:
    """A hook raised: its batch is rolled back whole, rows outside it move all the same (REC-08, REC-12).

    REC-12 is read narrowly: the sweep itself gets past the failed batch, since a later one would meet it again. Only
    where every batch fails, or the sweep is cancelled, everything is left. Rows may be swept in any order, and apart by
    what they are or by what becomes of them; but each batch is full unless there were no more rows of its kind.
    """
    assert type(command) is c.Recover and command.hook is not None
    hook, batch = command.hook, command.batch
    if hook.kind != "poison":
        return (_SWEEP_ROLLED_BACK,)
    if hook.job not in must:
        return Violation("REC-08", _BY_ITSELF, "the hook raises only for a job that was not swept")
    if hook.job not in left:
        why = f"the hook raised for job {hook.job}, yet it moved"
        return Violation(_SWEEP_ROLLED_BACK.clause, _SWEEP_ROLLED_BACK.reason, why)
    if len(left) > batch:
        why = f"jobs {left} were left; only the failed batch of at most {batch} may be"
        return Violation(_PAST.clause, _PAST.reason, why)
    moved = [job for job in must if job not in left]
    if len(left) < batch and not _last_of_its_kind(world, moved, left, batch, now):
        why = f"jobs {moved} moved and {left} did not, but a batch of {batch} is rolled back whole"
        return Violation(_SWEEP_ROLLED_BACK.clause, _SWEEP_ROLLED_BACK.reason, why)
    return (_SWEEP_ROLLED_BACK, _PAST) if len(must) > batch else (_SWEEP_ROLLED_BACK,)
