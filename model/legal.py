"""What a right queue may answer: the generative side of the contract, written apart from the judge.

`outcomes` lists every legal outcome of a command that nothing overlaps, with canonical tokens and due instants, the
most usual one first. Explore tests the law that `step` accepts exactly these.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from . import commands as c
from . import outcomes as o
from .errors import WHAT, classify
from .queues import CANCELLED, FAILED, PENDING, RUNNING, SKIPPED, SUCCEEDED
from .step import step
from .world import Context, Record, Step, World


def outcomes(world: World, command: c.Command, context: Context) -> Iterator[o.Outcome]:
    """All legal outcomes of a bound command asked at `context.now`, if nothing overlaps it."""
    now = context.now
    match command:
        case c.Enqueue():
            yield o.Enqueued(len(world.jobs) + 1, 0 if world.spec.counts_generations else None)
        case c.Claim():
            yield from _claims(world, command, now)
        case c.Checkpoint(handle=c.Handle() as handle):
            if _current(world, handle, now):
                yield o.Checkpointed(world.jobs[handle.job - 1].cancel is not None)  # type: ignore[operator]
            else:
                yield from (o.REJECTED, o.Checkpointed(False), o.Checkpointed(True))
        case c.HandleCommand(handle=c.Handle() as handle):
            yield from _writes(world, command, handle, now)
        case c.RequestCancel(job=int() as job):
            status = world.jobs[job - 1].status
            if status == PENDING:
                if command.by_parent:
                    yield o.CancelAnswer("recorded")
                yield o.CancelAnswer("cancelled")
            else:
                yield o.CancelAnswer("recorded" if status == RUNNING else "terminal")
        case c.ReadArtifact(job=int() as job):
            record = world.jobs[job - 1]
            yield o.Artifact(record.artifact)
            if record.artifact is not None and record.status != SUCCEEDED:
                yield o.Artifact(None)
        case c.Recover() | c.Tick() | c.StartUp():
            yield from _sweeps(world, command, now)
        case c.Probe():
            yield o.Probed(0, 0)
        case c.Configure():
            kept = command.heartbeat > 0 and command.lease >= 3 * command.heartbeat
            yield o.Accepted("configured") if kept else o.REJECTED
        case c.Classify():
            yield o.Classified(classify(command.code))
        case c.Atomically():
            yield from (o.Atomic(each) for each in _inside(world, command.commands, context))
        case c.Advance() | c.Crash() | c.Plant():
            yield o.DONE
        case _:
            raise TypeError(f"{type(command).__name__} is not bound, or has no outcomes")


def possible(world: World, command: c.Command, context: Context) -> frozenset[World]:
    """The worlds in which an `Unknown` outcome may have left the queue: no effect, or that of any legal outcome."""
    blind = Context(context.now, context.overlapped, None)
    after = [step(world, command, outcome, blind) for outcome in outcomes(world, command, context)]
    return frozenset({world, *(each.world for each in after if isinstance(each, Step))})


def backoff(record: Record) -> int:
    """A canonical back-off in seconds, doubling with each attempt."""
    return (record.spec.backoff_seconds or 0) << max(record.attempts - 1, 0)


def _current(world: World, handle: c.Handle, now: int) -> bool:
    record = world.jobs[handle.job - 1]  # type: ignore[operator]
    return _leased(record, handle, now) and not _late(record, now)


def _leased(record: Record, handle: c.Handle, now: int) -> bool:
    same = record.owner == handle.worker and record.token == handle.token
    valid = record.expires is not None and record.expires > now
    return record.status == RUNNING and same and valid


def _late(record: Record, now: int) -> bool:
    return record.deadline is not None and record.deadline <= now


def _claims(world: World, command: c.Claim, now: int) -> Iterator[o.Outcome]:
    ready = [n for n, record in enumerate(world.jobs, 1) if _ready(record, now) and command.job in (None, n)]
    bound = min(command.limit, command.max_claims, len(ready))
    if not bound:
        yield o.Claimed()
        return
    hook = command.hook
    if hook is not None and hook.kind in ("raise", "cancel"):
        yield o.HookRaised(tuple(ready[:bound]))
        return
    for count in range(bound, 0, -1):
        for taken in _taken(world, ready, count):
            if hook is not None and hook.kind == "poison" and hook.job in taken:
                yield o.HookRaised(taken)
                continue
            handles = tuple(c.Handle(n, command.worker, _next_token(world, n)) for n in taken)
            yield o.Claimed(handles, taken if command.hook is not None else None)


def _taken(world: World, ready: list[int], count: int) -> Iterator[tuple[int, ...]]:
    """What so many claims may take of the jobs that are due."""
    spec = world.spec
    if spec.ordered and spec.monotonic_ids:
        yield tuple(ready[:count])
        return
    for taken in combinations(ready, count):
        youngest = max(world.jobs[n - 1].created for n in taken)
        if not spec.ordered or all(world.jobs[n - 1].created >= youngest for n in ready if n not in taken):
            yield taken


def _ready(record: Record, now: int) -> bool:
    leased = record.expires is not None and record.expires > now
    short = record.deadline is not None and record.deadline - now <= record.spec.claim_margin_seconds
    waits = (record.due or 0) > now or leased or short
    return record.status == PENDING and record.cancel is None and not waits


def _next_token(world: World, job: int) -> c.Token:
    """A generation, or an attempt id that no attempt of any job has had."""
    record = world.jobs[job - 1]
    if world.spec.fence == "attempt_id":
        return f"{job}.{len(record.issued) + 1}"
    return record.token + 1 if isinstance(record.token, int) else None


def _writes(world: World, command: c.HandleCommand, handle: c.Handle, now: int) -> Iterator[o.Outcome]:
    record = world.jobs[handle.job - 1]  # type: ignore[operator]
    spell = record.spec.spell
    repeated = record.status == SUCCEEDED and record.issued[-1] == (handle.worker, handle.token)
    if isinstance(command, c.Complete) and repeated and record.spec.repeats_complete:
        yield o.Accepted(SUCCEEDED)
        return
    if not _current(world, handle, now):
        yield o.REJECTED
        if isinstance(command, c.Fail) and _leased(record, handle, now):
            spent = record._replace(attempts=record.max_attempts)
            yield from (each for each in _failures(spent, command, now) if each != o.REJECTED)
        return
    cancel = record.cancel is not None
    match command:
        case c.Renew():
            yield o.Accepted(RUNNING)
        case c.Complete():
            if cancel and not record.spec.completion_wins:
                yield from (o.REJECTED, o.Accepted(spell(CANCELLED)))
            else:
                yield o.Accepted(SUCCEEDED)
        case c.Skip():
            yield o.Accepted(spell(CANCELLED) if cancel else SKIPPED)
        case c.PutArtifact():
            yield o.Accepted(RUNNING)
        case c.Release():
            yield o.Accepted(spell(CANCELLED) if cancel else PENDING)
        case c.Acknowledge():
            yield o.Accepted(spell(CANCELLED)) if cancel else o.REJECTED
        case c.Fail():
            yield from _failures(record, command, now)


def _failures(record: Record, fail: c.Fail, now: int) -> Iterator[o.Outcome]:
    family, spec = classify(fail.code), record.spec
    if family is None or WHAT.get(family) != fail.what:
        yield o.REJECTED
        return
    if record.cancel is not None or (family == "CANCEL" and spec.cancelled in spec.terminal):
        yield o.Accepted(spec.cancelled)
        if spec.cancels:
            return
    retry = family == "LEASE" or (family in ("INFRA", "LIMIT") and fail.code in spec.retryable_codes)
    if retry and record.attempts < record.max_attempts:
        yield o.Accepted(PENDING, now + backoff(record) if spec.backs_off else None)
    else:
        yield o.Accepted(FAILED)


def _sweeps(world: World, command: c.Command, now: int) -> Iterator[o.Outcome]:
    must = [n for n, record in enumerate(world.jobs, 1) if _must_move(record, command, now)]
    hook = command.hook if isinstance(command, c.Recover) else None
    if not must or hook is None:
        yield _swept(world, must, False, None, now)
        return
    if hook.kind in ("raise", "cancel"):
        yield o.HookRaised(tuple(must))
        return
    moved = must
    if isinstance(command, c.Recover) and hook.kind == "poison" and hook.job in must:
        at = must.index(hook.job) // command.batch * command.batch
        moved = must[:at] + must[at + command.batch :]
        if not moved:
            yield from (o.HookRaised(tuple(must)), _swept(world, [], True, (), now))
            return
    yield _swept(world, moved, moved != must, tuple(moved), now)


def _must_move(record: Record, command: c.Command, now: int) -> bool:
    if record.status == PENDING:
        return record.cancel is not None or _late(record, now)
    if record.status != RUNNING:
        return False
    own = isinstance(command, c.StartUp) and c.worker_name(record.owner).startswith(c.prefix(command.host))
    return own or record.expires is None or record.expires <= now


def _swept(world: World, moved: list[int], failed: bool, hooked: tuple[int, ...] | None, now: int) -> o.Recovered:
    rows = tuple(_row(n, world.jobs[n - 1], now) for n in moved)
    return o.Recovered(rows, len(rows), hooked, failed, None if moved or failed else 0)


def _row(n: int, record: Record, now: int) -> o.RecoveredRow:
    if record.cancel is not None:
        return o.RecoveredRow(n, record.spec.spell(CANCELLED))
    if record.attempts < record.max_attempts and not _late(record, now):
        return o.RecoveredRow(n, PENDING, now + backoff(record) if record.spec.backs_off else None)
    return o.RecoveredRow(n, FAILED)


def _inside(world: World, commands: tuple[c.Command, ...], context: Context) -> Iterator[tuple[o.Outcome, ...]]:
    """Every sequence of legal outcomes of commands that run one after another."""
    if not commands:
        yield ()
        return
    blind = Context(context.now, context.overlapped, None)
    for first in outcomes(world, commands[0], blind):
        after = step(world, commands[0], first, blind)
        if isinstance(after, Step):
            for rest in _inside(after.world, commands[1:], context):
                yield (first, *rest)
