"""What the answers of a legal trace leave out of its claims: which attempt each is, and until when its lease lasts.

Attempts, instants and the clock are kept as the contract keeps them, from what was answered. It judges nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from fencepost.model import commands as c
from fencepost.model import outcomes as o
from fencepost.model.trace import Trace, TraceStep
from fencepost.model.world import lease_end

from .phrases import attempt_name, hook_note


def claim_notes(steps: Iterable[TraceStep], trace: Trace, lease_seconds: int | None) -> dict[int, str]:
    """By label, the phrase of each claim among these steps of the trace, all of them legal, that won something.

    `lease_seconds` is the lease of a claim that asks for none, None if that is not known.
    """
    ledger = _Ledger(trace, lease_seconds)
    notes: dict[int, str] = {}
    for step in steps:
        for command, outcome in _committed(step.command, step.outcome):
            ledger.note(step.label, command, outcome)
        if isinstance(step.command, c.Claim) and isinstance(step.outcome, o.Claimed) and step.outcome.handles:
            notes[step.label] = ledger.claimed(step.command, step.outcome)
    return notes


class _Ledger:
    """The clock, and what is known of each job by now. Instants are ticks since the trace began."""

    def __init__(self, trace: Trace, lease_seconds: int | None) -> None:
        self.trace = trace
        self.lease_seconds = lease_seconds
        self.now = 0
        self.enqueued: dict[int, c.JobId] = {}
        self.claims: dict[c.HandleRef, c.JobId] = {}
        self.attempts: Counter[c.JobId] = Counter()
        self.instants: dict[tuple[c.Instant, c.JobId], int] = {}

    def note(self, label: int, command: c.Command, outcome: o.Outcome | None) -> None:
        """Take over what this command has changed."""
        match command, outcome:
            case c.Advance(seconds=seconds), _:
                self.now += seconds
            case c.AdvanceTo(instant=instant, job=job, offset=offset), _:
                at = self.instants.get((instant, self.job(job)))
                self.now = self.now if at is None else at + offset
            case c.Enqueue(due_in=due, deadline_in=deadline), o.Enqueued(job=job):
                self.enqueued[label] = job
                self.instant("due", job, due)
                self.instant("deadline", job, deadline)
            case c.Plant(job=job, field=field, seconds=seconds), _:
                self.instants["deadline" if field == "deadline" else "expiry", self.job(job)] = self.now + seconds
            case c.Claim(lease=lease), o.Claimed(handles=handles):
                for nth, handle in enumerate(handles):
                    self.claims[c.HandleRef(label, nth)] = handle.job
                    self.attempts[handle.job] += 1
                    self.leased(handle.job, lease)
            case c.Renew(handle=handle, lease=lease), o.Accepted():
                self.leased(self.of(handle), lease)
            case c.HandleCommand(handle=handle), o.Accepted(status="pending", due=due):
                if isinstance(command, c.Release):
                    self.attempts[self.of(handle)] -= 1
                self.instant("due", self.of(handle), due and due - self.now)
            case _, o.Recovered(rows=rows):
                for row in rows:
                    self.instant("due", row.job, row.due and row.due - self.now)

    def instant(self, instant: c.Instant, job: c.JobId, ahead: int | None) -> None:
        if ahead:
            self.instants[instant, job] = self.now + ahead

    def leased(self, job: c.JobId, lease: int | None) -> None:
        lease = lease or self.lease_seconds
        if lease is None:
            self.instants.pop(("expiry", job), None)
        else:
            self.instants["expiry", job] = lease_end(lease, self.instants.get(("deadline", job)), self.now)

    def job(self, job: c.JobId | c.JobRef) -> c.JobId:
        """The job as outcomes name it; 0, which none is called by, if the trace never made it."""
        return self.enqueued.get(job.step, 0) if isinstance(job, c.JobRef) else job

    def of(self, handle: c.Handle | c.HandleRef) -> c.JobId:
        """The job of a handle, as `job`."""
        return handle.job if isinstance(handle, c.Handle) else self.claims.get(handle, 0)

    def claimed(self, command: c.Claim, outcome: o.Claimed) -> str:
        """The claim just noted: its jobs, their attempts, and how long from now each lease lasts."""
        jobs = tuple(handle.job for handle in outcome.handles)
        said = [f"job {handle.job}{self.attempt(handle)}" for handle in outcome.handles]
        leases = [self.until(job, command.lease) for job in jobs]
        if len(set(leases)) == 1:
            said[-1] += leases[0]
        else:
            said = [one + lease for one, lease in zip(said, leases, strict=True)]
        return "; ".join(said) + hook_note(outcome.hooked, jobs)

    def attempt(self, handle: c.Handle) -> str:
        """An attempt id tells the attempt by itself; else it is the job's count, with the token that it has."""
        token = "" if handle.token is None else f", {attempt_name(handle.token, self.trace)}"
        return token if isinstance(handle.token, str) else f", attempt {self.attempts[handle.job]}{token}"

    def until(self, job: c.JobId, lease: int | None) -> str:
        end = self.instants.get(("expiry", job))
        if end is None:
            return ""
        cut = end - self.now < (lease or self.lease_seconds or 0)
        return f", lease until +{end - self.now} s" + (", its deadline" if cut else "")


def _committed(command: c.Command, outcome: o.Outcome | None) -> Iterator[tuple[c.Command, o.Outcome | None]]:
    """The commands that took effect on their own or in the caller's committed transaction, with their outcomes."""
    if not isinstance(command, c.Atomically):
        yield command, outcome
    elif command.end == "commit" and isinstance(outcome, o.Atomic):
        yield from zip(command.commands, outcome.outcomes, strict=False)
