"""What only a whole claim shows: bounds, order, completeness, hooks.

Completeness binds only an operation that nothing overlapped (contract.md, "Overlap and clocks").
"""

from __future__ import annotations

from collections.abc import Sequence

from . import commands as c
from . import outcomes as o
from .moves import ASKED_FOR, claim_fault, claimable, only_fault
from .part import Whole, row_reason
from .queues import PENDING, RUNNING
from .world import Check, Context, Violation, World

_LIMIT = Check("CLAIM-07", "claim: limit", True)
_MAX = Check("CLAIM-07", "claim: max_claims", True)
_ORDER = Check("CLAIM-08", "claim: oldest first", True)
_ORDER_NOW = Check("CLAIM-08", "claim: oldest first, free in this very tick", True)
_HEAD = Check("CLAIM-14", "claim: past an excluded head", True)
_ROLLED_BACK = Check("CLAIM-12", "claim: hook raised, rolled back", True)
_HOOKED = Check("CLAIM-12", "claim: hook given the claimed jobs", True)
_RETURNED = Check("CLAIM-07", "claim: running but not returned", True)
OF_NO_OTHER = Check("FENCE-03", "claim: a token that no other job has had", True)
_SOME = Check("CLAIM-14", "claim: a due job, where there is one", True)
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
    if ordered and claimed != ready[:count] and not _oldest_first(world, claimed, ready):
        order = _order(world, ready[0], context.now)
        return Violation(order.clause, order.reason, f"due, oldest first: {ready}; claimed: {claimed}")
    bound = min(command.limit, command.max_claims)
    if not count and ready and bound:
        return _starved(world, ready[0], context.now)
    if count and not ordered:
        checks.append(_SOME)
    if len(ready) > bound:
        if ordered and _age(world, ready[0]) < _age(world, ready[-1]):
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
        if len(ready) >= bound:
            reach = _age(world, ready[bound - 1]) if ordered else -1
            barred = [(job, fault) for job, fault in barred if _age(world, job) < reach]
        checks += dict.fromkeys([fault for _, fault in barred])
    if count and ordered and ready[0] > command.limit and len(_heads(world, ready[0])) >= command.limit:
        checks.append(_HEAD)
    return tuple(checks)


def _age(world: World, job: int) -> int:
    """What sorts jobs by age, the oldest first: ids where they rise, else instants, of which two may be one."""
    return job if world.spec.monotonic_ids else world.jobs[job - 1].created


def _oldest_first(world: World, taken: Sequence[c.JobId], ready: Sequence[int]) -> bool:
    """Whether no job that may be claimed was left for a younger one."""
    youngest = max((_age(world, job) for job in ready if job in taken), default=-1)
    return all(_age(world, job) >= youngest for job in ready if job not in taken)


def _heads(world: World, first: int) -> list[int]:
    """The pending jobs that stand before this one."""
    return [
        job
        for job, record in enumerate(world.jobs[: first - 1], 1)
        if record.status == PENDING and _age(world, job) < _age(world, first)
    ]


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
    if not world.spec.ordered:
        return Violation(_SOME.clause, _SOME.reason, f"job {first} is due, and none was claimed")
    heads = _heads(world, first)
    if heads:
        return Violation(
            _HEAD.clause, _HEAD.reason, f"job {first} is due and was not claimed; job {heads[0]} stands before it"
        )
    return Violation(_ORDER.clause, _ORDER.reason, f"job {first} is due and was not claimed")


def _hook_of_claim_raised(world: World, command: c.Claim, given: tuple[int, ...], context: Context) -> Whole:
    if command.hook is None or command.hook.kind == "ok":
        return Violation(_ROLLED_BACK.clause, "claim: hook raised by itself", "the hook did not raise")
    candidates = ready = eligible(world, command, context.now)
    bound = min(command.limit, command.max_claims)
    if world.spec.ordered and len(ready) > bound:
        last = _age(world, ready[bound - 1]) if bound else -1
        ready = [job for job in ready if _age(world, job) <= last]
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
    if world.spec.ordered and not _oldest_first(world, given, candidates):
        return Violation(_ORDER.clause, _ORDER.reason, f"the hook was given {given}, due, oldest first: {ready}")
    missing = command.hook.kind == "poison" and command.hook.job not in given
    if missing or not given or not set(candidates).issuperset(given):
        return Violation(_HOOKED.clause, _HOOKED.reason, f"the hook was given {given}, to be claimed were {ready}")
    return (_ROLLED_BACK,)
