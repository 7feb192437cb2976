"""What only a whole claim or a whole sweep shows: bounds, order, completeness, hooks, counts.

Completeness binds only an operation that nothing overlapped (contract.md, "Overlap and clocks").
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations
from typing import TypeAlias

from . import commands as c
from . import outcomes as o
from .moves import (
    ASKED_FOR,
    IN_TIME,
    OWN_PREFIX,
    RECORDED,
    claim_fault,
    claimable,
    differs_by_own_lease,
    only_fault,
    own_leftover,
    recover_target,
    swept_wrongly,
    valid_lease,
)
from .part import row_reason
from .queues import PENDING, RUNNING
from .view import PER_ROW
from .world import Check, Checks, Context, Violation, World, expired, sweepable

Whole: TypeAlias = "Checks | Violation"

_LIMIT = Check("CLAIM-07", "claim: limit", True)
_MAX = Check("CLAIM-07", "claim: max_claims", True)
_ORDER = Check("CLAIM-08", "claim: oldest first", True)
_ORDER_NOW = Check("CLAIM-08", "claim: oldest first, free in this very tick", True)
_HEAD = Check("CLAIM-14", "claim: past an excluded head", True)
_ROLLED_BACK = Check("CLAIM-12", "claim: hook raised, rolled back", True)
_HOOKED = Check("CLAIM-12", "claim: hook given the claimed jobs", True)
_RETURNED = Check("CLAIM-07", "claim: running but not returned", True)
OF_NO_OTHER = Check("FENCE-03", "claim: a token that no other job has had", True)
_TAKEN = Check("CLAIM-15", "claim: the job asked for", True)
_NO_OTHER = Check("CLAIM-15", "claim: no other job than the one asked for", True)


def eligible(world: World, command: c.Claim, now: int) -> list[int]:
    """The ordinals of the jobs that this claim may take at `now`, oldest first."""
    jobs = enumerate(world.jobs, 1)
    return [n for n, record in jobs if claimable(record, now) and command.job in (None, n)]


def whole_claim(world: World, command: c.Claim, outcome: o.Outcome, context: Context) -> Whole:
    """Bounds always; order, starvation and what was passed over only where nothing overlapped."""
    if type(outcome) is o.HookRaised:
        return _hook_of_claim_raised(world, command, outcome.hooked, context)  # type: ignore[arg-type]
    if type(outcome) is not o.Claimed:
        return ()
    hook, worker = command.hook, command.worker
    claimed = []
    for handle in outcome.handles:
        if handle.worker != worker:
            return Violation("CLAIM-05", row_reason(command, RUNNING), "a handle names another worker than the claimer")
        claimed.append(handle.job)
    if command.job is not None and claimed not in ([], [command.job]):
        return Violation(_NO_OTHER.clause, _NO_OTHER.reason, f"job {command.job} was asked for, claimed: {claimed}")
    checks: list[Check] = []
    if world.spec.fence == "attempt_id" and claimed:
        if repeats_id(world, outcome.handles):
            return Violation(OF_NO_OTHER.clause, OF_NO_OTHER.reason, "an attempt of another job has this id too")
        if len(claimed) > 1 or any(record.issued for job, record in enumerate(world.jobs, 1) if job not in claimed):
            checks.append(OF_NO_OTHER)
    count = len(claimed)
    if count > command.limit:
        return Violation(_LIMIT.clause, _LIMIT.reason, f"{count} claimed, at most {command.limit} were to be scanned")
    if count > command.max_claims:
        return Violation(_MAX.clause, _MAX.reason, f"{count} claimed, at most {command.max_claims} were asked for")
    if hook is not None and count:
        if hook.kind in ("raise", "cancel") or (hook.kind == "poison" and hook.job in claimed):
            return Violation(_ROLLED_BACK.clause, _ROLLED_BACK.reason, "the hook raised, yet the claim went through")
        checks.append(_HOOKED)
    # Most claims carry no hook, and then there is nothing to sort.
    if (hook is not None or outcome.hooked) and sorted(outcome.hooked or ()) != (sorted(claimed) if hook else []):
        why = f"the hook was given {outcome.hooked}, claimed were {claimed}"
        return Violation(_HOOKED.clause, _HOOKED.reason, why)
    if context.overlapped:
        return tuple(checks)
    ready, barred = _surveyed(world, context.now)
    if command.job is not None:
        checks += [ASKED_FOR[fault] for job, fault in barred if job == command.job]
        return _of_one(command.job, ready, count, checks)
    ordered = world.spec.ordered
    if ordered and claimed != ready[:count] and sorted(claimed) != ready[:count]:
        order = _order(world, ready[0], context.now)
        return Violation(order.clause, order.reason, f"due, oldest first: {ready}; claimed: {claimed}")
    bound = min(command.limit, command.max_claims)
    if not count and ready and bound:
        return _starved(world, ready[0], context.now)
    if len(ready) > bound:
        if ordered:
            checks.append(_order(world, ready[0], context.now))
        if count == bound:
            # With one more claimed the smaller bound would have been broken, and only that one if they differ.
            if command.max_claims < command.limit:
                checks.append(_MAX)
            elif command.limit < command.max_claims:
                checks.append(_LIMIT)
            checks.append(_RETURNED)
    if barred and count >= min(bound, len(ready)):
        # Whatever stands before the last job that the bound allows would have come into the claim.
        last = len(world.jobs) + 1
        reach = last if len(ready) < bound else ready[bound - 1] if ordered else 0
        checks += dict.fromkeys([fault for job, fault in barred if job < reach])
    if count and ordered and ready[0] > command.limit:
        heads = [record for record in world.jobs[: ready[0] - 1] if record.status == PENDING]
        if len(heads) >= command.limit:
            checks.append(_HEAD)
    return tuple(checks)


def _order(world: World, head: int, now: int) -> Check:
    """What a claim tests that leaves younger jobs behind the oldest one."""
    record = world.jobs[head - 1]
    return _ORDER_NOW if now in (record.due, record.expires) else _ORDER


def repeats_id(world: World, minted: Sequence[c.Handle]) -> bool:
    """Whether among the attempt ids that claims have minted is one of another job's attempt (FENCE-03)."""
    tokens = [handle.token for handle in minted]
    known = {token for record in world.jobs for _, token in record.issued}
    return len(set(tokens)) < len(tokens) or not known.isdisjoint(tokens)


def _of_one(job: c.JobId | c.JobRef, ready: list[int], count: int, checks: list[Check]) -> Whole:
    """A claim of one job takes it if it may, and no other in its place (CLAIM-15)."""
    if not count and job in ready:
        return Violation(_TAKEN.clause, _TAKEN.reason, f"job {job} is due and was not claimed")
    others = [other for other in ready if other != job]
    if count:
        checks.append(_TAKEN)
    if others:
        checks.append(_NO_OTHER)
    return tuple(checks)


def _surveyed(world: World, now: int) -> tuple[list[int], list[tuple[int, Check]]]:
    """The ordinals of the jobs that a claim may take at `now`, and of those that one predicate alone keeps from it
    with the check of that predicate (CLAIM-01, 02, 03); oldest first.
    """
    ready, barred = [], []
    for job, record in enumerate(world.jobs, 1):
        fault = claim_fault(record, now)
        if fault is None:
            ready.append(job)
        elif only_fault(record, now):
            barred.append((job, fault))
    return ready, barred


def _starved(world: World, first: int, now: int) -> Violation:
    heads = [n for n, record in enumerate(world.jobs[: first - 1], 1) if record.status == PENDING]
    if heads:
        return Violation(
            _HEAD.clause, _HEAD.reason, f"job {first} is due and was not claimed; job {heads[0]} stands before it"
        )
    return Violation(_ORDER.clause, _ORDER.reason, f"job {first} is due and was not claimed")


def _hook_of_claim_raised(world: World, command: c.Claim, given: tuple[int, ...], context: Context) -> Whole:
    if command.hook is None or command.hook.kind == "ok":
        return Violation(_ROLLED_BACK.clause, "claim: hook raised by itself", "the hook did not raise")
    candidates = ready = eligible(world, command, context.now)
    if world.spec.ordered:
        ready = ready[: min(command.limit, command.max_claims)]
    if context.overlapped:
        return (_ROLLED_BACK,) if ready else ()
    for job in given:
        fault = claim_fault(world.jobs[job - 1], context.now) if 0 < job <= len(world.jobs) else None
        if fault is not None:
            return Violation(fault.clause, fault.reason, f"the hook was given job {job}, which must not be claimed")
        if command.job not in (None, job):
            why = f"the hook was given job {job}, job {command.job} was asked for"
            return Violation(_NO_OTHER.clause, _NO_OTHER.reason, why)
    if not ready or (command.hook.kind == "poison" and command.hook.job not in ready):
        why = "nothing that the hook raises for was to be claimed"
        return Violation(_ROLLED_BACK.clause, "claim: hook raised by itself", why)
    if len(given) > min(len(ready), command.limit, command.max_claims):
        check = _MAX if command.max_claims < command.limit else _LIMIT
        return Violation(check.clause, check.reason, f"the hook was given {given}, to be claimed were at most {ready}")
    if world.spec.ordered and sorted(given) != ready[: len(given)]:
        return Violation(_ORDER.clause, _ORDER.reason, f"the hook was given {given}, due, oldest first: {ready}")
    missing = command.hook.kind == "poison" and command.hook.job not in given
    if missing or not given or not set(candidates).issuperset(given):
        return Violation(_HOOKED.clause, _HOOKED.reason, f"the hook was given {given}, to be claimed were {ready}")
    return (_ROLLED_BACK,)


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
