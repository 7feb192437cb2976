"""Which worlds are one and the same to explore: what no later command can tell apart is made equal.

Each merge is stated with the reason that makes it sound. Knows worlds and bounds, nothing of the search.
"""

from __future__ import annotations

from itertools import permutations

from .choices import Bounds, deadline_in, leftover
from .commands import Token
from .queues import PENDING, RUNNING, SUCCEEDED, QueueSpec
from .world import Record

Issued = tuple[tuple[int, Token], ...]
Names = tuple[int, ...]
"""The new name of worker n at index n; nobody (0) keeps his."""

OLDER, NEWEST, SPENT = 0, 1, 2
"""The generations of one job that behave alike where the clock is bounded."""


def canonical_record(record: Record, now: int, bounds: Bounds) -> Record:
    """The record as it behaves from `now` on. Without a bounded clock its instants are made relative to `now`.

    A lease that ran out long ago has just run out, if it is of the queue's own length (a shorter one may yet run out
    by an asker's own reckoning, LEASE-07): a tick ago where time is free, in this very tick where the clock is
    bounded. A deadline that has passed has just passed, and a lease left on a pending job that has run out is gone.
    One that runs beyond the bounded clock runs just beyond it: no instant to come lies between (one tick
    before an expiry is still offered, hence two ticks), by any asker's reckoning. An ended job refuses everything
    alike, so its counts and all but its newest handle go: only that one's refusals have teeth, unless it is accepted
    again (FENCE-05); of its deadline only that it has one. Old handles are a set.
    Of a cancel request its being there decides and, of a running job's where time is free, whether it is older than
    now (only then would a repeated one show, CANCEL-03). Where the clock is bounded, generations are too: of one
    job's, only being the newest, or spent, decides. So five kinds of checks are counted truly only where time is
    free: of leases that ran out and of jobs that came free in this very tick, of repeated cancels, of renewals, which
    may find the lease that they would write, and of REC-09, which compares two jobs' generations.
    """
    (
        spec, status, owner, token, expires, lease, attempts, budget, due, cancel, issued, deadline, artifact, created,
    ) = record  # fmt: skip
    until = bounds.until
    shift = 0 if until is not None else now
    if status == RUNNING:
        if expires is not None:
            if expires < now and lease == spec.lease_seconds:
                expires = now if until is not None else now - 1
            elif until is not None and expires > until + 1 and lease <= spec.lease_seconds:
                expires = until + 2
            expires -= shift
        due = None
    elif status == PENDING:
        due, expires = _ahead(due, now, until), _ahead(expires, now, until)
    else:
        attempts = budget = 0
        due = None
        if not (spec.repeats_complete and status == SUCCEEDED):
            issued = issued[-1:]
    if deadline is not None:
        deadline = _deadline(deadline, now, bounds, spec) if status in (PENDING, RUNNING) else 0
    if until is not None and issued and spec.has_token:
        artifact = None if artifact is None else NEWEST
        token = NEWEST if issued[-1][1] == token and status in (PENDING, RUNNING) else SPENT
        issued = (*{(worker, OLDER) for worker, _ in issued[:-1]}, (issued[-1][0], NEWEST))
    if not spec.monotonic_ids:
        # One that has ended is no candidate again, and stands before none.
        created = created - shift if status in (PENDING, RUNNING) else 0
    if cancel is not None:
        cancel = -1 if cancel < now and status == RUNNING and until is None else 0
    return Record(
        spec, status, owner, token, expires, lease, attempts, budget, due, cancel, sorted_but_last(issued), deadline,
        artifact, created,
    )  # fmt: skip


def _ahead(instant: int | None, now: int, until: int | None) -> int | None:
    """An instant that a pending job waits for: gone once it has come, or has passed where time is free, and beyond the
    bounded clock just beyond it.
    """
    if until is None:
        return None if instant is None or instant < now else instant - now
    return None if instant is None or instant <= now else min(instant, until + 2)


def _deadline(deadline: int, now: int, bounds: Bounds, spec: QueueSpec) -> int:
    """One that has passed has just passed; one that no lease of the bounded clock is cut to is the first such."""
    if bounds.until is None:
        return max(deadline - now, 0)
    return now if deadline <= now else min(deadline, bounds.until + spec.lease_seconds)


def at_rest(jobs: tuple[Record, ...], now: int, bounds: Bounds) -> bool:
    """Whether no instant that a bounded clock can still reach is recorded, nor can be from `now` on.

    What remains is then the same at every later instant, so such a world may be looked at when its clock ends.
    """
    until = bounds.until
    if until is None or not jobs or now + shortest(jobs[0].spec, bounds) <= until + 1:
        return False
    if jobs[0].spec.deadline and len(jobs) < bounds.jobs:
        return False
    for record in jobs:
        open_ended = record.deadline is None or record.status not in (PENDING, RUNNING)
        if not open_ended and now < record.deadline < until + record.spec.lease_seconds:  # type: ignore[operator]
            return False
        if record.status == RUNNING:
            if record.expires is None or now < record.expires <= until + 1:
                return False
            if record.expires <= now and record.lease != record.spec.lease_seconds:
                return False
        elif any(at is not None and now < at <= until + 1 for at in (record.due, record.expires)):
            return False
    return True


def shortest(spec: QueueSpec, bounds: Bounds) -> int:
    """The shortest span in seconds that any offered command records: a lease, a back-off, a deadline."""
    spans = [spec.lease_seconds // 3 if bounds.short_leases else spec.lease_seconds]
    if spec.backoff_seconds is not None:
        spans.append(spec.backoff_seconds)
    if spec.deadline:
        spans.append(deadline_in(spec))
    if spec.claims_by_id:
        spans.append(leftover(spec))
    return min(spans)


def names(issued: tuple[Issued, ...]) -> Names | None:
    """New names for the workers that hold these jobs' handles, or None if they have theirs already.

    Workers differ by the handles they hold and by nothing else that an offered command shows, so of all ways to
    number them the one whose handles sort first stands for all.
    """
    used = sorted({worker for each in issued for worker, _ in each})
    best: tuple[tuple[Issued, ...], Names] | None = None
    for order in permutations(range(1, len(used) + 1)):
        new = [0] * (max(used, default=0) + 1)
        for worker, name in zip(used, order, strict=True):
            new[worker] = name
        found = tuple(renamed_handles(each, tuple(new)) for each in issued), tuple(new)
        if best is None or found < best:
            best = found
    return best[1] if best is not None and best[0] != issued else None


def renamed(record: Record, names: Names) -> Record:
    """The record with its workers renamed."""
    owner = names[record.owner] if record.owner else 0
    return record._replace(owner=owner, issued=renamed_handles(record.issued, names))


def renamed_handles(issued: Issued, names: Names) -> Issued:
    """One job's handles with their workers renamed."""
    return sorted_but_last(tuple((names[worker], token) for worker, token in issued))


def sorted_but_last(issued: Issued) -> Issued:
    """One job's handles in order; which of them is the newest stays."""
    return (*sorted(issued[:-1]), issued[-1]) if len(issued) > 2 else issued
