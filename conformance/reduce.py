"""The reducer: from a failing run to the shortest story that breaks the clause.

It asks the model first: explore knows the shortest traces whose last command makes the failed check, and one of them
nearly always fails at once. Only where none does it deletes, merges and lowers, until nothing applies.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

from fencepost.model import commands as c
from fencepost.model.choices import Bounds
from fencepost.model.explore import Explorer
from fencepost.model.paths import symbolic
from fencepost.model.queues import QueueSpec
from fencepost.model.trace import Trace, TraceStep
from fencepost.model.values import field_values
from fencepost.model.world import Violation

from .driver import Run
from .session import Session

DEPTH = 7
_SHORT = (
    Bounds(depth=4),
    Bounds(depth=4, jobs=1, workers=1, short_leases=True),
    Bounds(depth=5, jobs=1),
    Bounds(depth=5, workers=1, budgets=(3,)),
)
"""The searches for the first trace to each check: what takes five steps and one more takes one job, or one worker. All
of five steps would find no check beside, in five times the time."""
_SAME_CHECK = 200
_SAME_CLAUSE = 60
"""How many of the model's traces are tried: those that make the failed check, those that make another of its clause."""
_FEW = 10
"""Of how many commands pairs are left out before arguments are lowered: there are not many then."""


@dataclass(frozen=True, slots=True)
class Reduced:
    """The shortest failing trace found, its violation, and how many traces were run to find it."""

    trace: Trace
    violation: Violation
    evaluations: int

    @property
    def length(self) -> int:
        """Commands in the trace."""
        return self.trace.length


@lru_cache(maxsize=8)
def finder(spec: QueueSpec, short_leases: bool = False) -> Explorer:
    """The lazy search that knows the shortest trace to each check of this queue."""
    return Explorer(spec, Bounds(depth=DEPTH, short_leases=short_leases))


def witnesses(spec: QueueSpec, clause: str, reason: str | None = None, alike: bool = True) -> Iterator[Trace]:
    """The traces whose last command makes this check, shortest first; without `alike`, of those that look the same to
    it only the first."""
    return finder(spec, clause == "LEASE-07").witnesses(clause, reason, alike=alike)


@lru_cache(maxsize=8)
def first_witnesses(spec: QueueSpec) -> dict[tuple[str, str], Trace]:
    """The shortest trace to each check that short traces make with teeth, by clause and reason."""
    found: dict[tuple[str, str], Trace] = {}
    for bounds in _SHORT:
        search = Explorer(spec, bounds).run()
        for state in range(len(search.states)):
            for command, checks, first in search.judged(state):
                for check in checks if first else ():
                    if check.teeth and (check.clause, check.reason) not in found:
                        found[check.clause, check.reason] = symbolic(spec, [*search.path(state), command])
    return found


def reduce(session: Session, run: Run, limit: int = 400) -> Reduced:
    """Shorten a failing run; the result breaks the same clause. `limit` bounds the evaluations of the second stage."""
    assert run.violation is not None
    return _Reducer(session, run).reduced(limit)


class _Reducer:
    def __init__(self, session: Session, run: Run) -> None:
        assert run.violation is not None
        self.session = session
        self.violation = run.violation
        self.best = run.trace()
        self.frozen = _frozen(run, self.best)
        self.evaluations = 0

    def reduced(self, limit: int) -> Reduced:
        if self.ask_model():
            self.lower_advances()
        else:
            self.delete_and_lower(limit)
        return Reduced(self.best, self.violation, self.evaluations)

    def ask_model(self) -> bool:
        """Try the model's shortest traces to the failed check, then those before it to any check of the clause."""
        spec, wanted = self.session.spec, self.violation
        # A violation that no short trace tests is not looked for: the search would go through all there are.
        known = (wanted.clause, wanted.reason) in first_witnesses(spec)
        same_check = witnesses(spec, wanted.clause, wanted.reason) if known else iter(())
        found = self.try_all(self.no_longer(same_check), _SAME_CHECK)
        # A fault seldom shows in two verbs: of the traces as long as the best, those that end in its own are asked.
        verb, length = _last_verb(self.best), self.best.length
        earlier = (
            trace
            for trace in self.no_longer(witnesses(spec, wanted.clause))
            if trace.length < length or _last_verb(trace) == verb
        )
        return self.try_all(earlier, _SAME_CLAUSE) or found

    def no_longer(self, traces: Iterator[Trace]) -> Iterator[Trace]:
        """The traces that are not longer than the best; they come shortest first."""
        return itertools.takewhile(lambda trace: trace.length <= self.best.length, traces)

    def try_all(self, traces: Iterator[Trace], most: int) -> bool:
        """Run up to `most` traces, shortest first, up to the best one itself; whether the best is now one of them."""
        return any(same_story(trace, self.best) or self.fails(trace) for trace in itertools.islice(traces, most))

    def fails(self, trace: Trace) -> bool:
        """Run a trace; if it breaks the clause, what it did becomes the best."""
        self.evaluations += 1
        run = self.session.play(trace)
        if run.violation is None or run.violation.clause != self.violation.clause:
            return False
        self.best, self.violation = run.trace(), run.violation
        self.frozen = _frozen(run, self.best)
        return True

    def lower_advances(self) -> None:
        """Move the clock to an instant itself rather than to the tick beside it, where that fails too."""
        if not self.session.spec.exact_clock:
            return
        for at, each in enumerate(self.best.steps):
            if isinstance(each.command, c.AdvanceTo):
                for simpler in simpler_commands(each.command, self.session.spec):
                    self.fails(_with_command(self.best, at, simpler))

    def delete_and_lower(self, limit: int) -> None:
        """Delete chunks and singles, merge moves of the clock, delete pairs, lower arguments, until nothing applies."""
        while self.evaluations < limit:
            pairs, lower = _without_pairs(self.best), _lower(self.best, self.session.spec)
            candidates = itertools.chain(
                _shorter(self.best),
                _merged(self.frozen),
                _shorter(self.frozen) if self.frozen != self.best else (),
                *((pairs, lower) if self.best.length <= _FEW else (lower, pairs)),
            )
            if not any(self.fails(candidate) for candidate in self.within(limit, candidates)):
                return

    def within(self, limit: int, traces: Iterator[Trace]) -> Iterator[Trace]:
        for trace in traces:
            if self.evaluations >= limit:
                return
            yield trace


def _frozen(run: Run, trace: Trace) -> Trace:
    """What was done, the clock moved by seconds: such a step stays when the job is left out whose instant it met."""
    moved = [command if type(command) is c.Advance else None for command, _ in run.done]
    steps = zip(trace.steps, moved, strict=True)
    return Trace(tuple(each if move is None else replace(each, command=move) for each, move in steps))


def _merged(trace: Trace) -> Iterator[Trace]:
    """The trace with two moves of the clock in a row as one."""
    steps = trace.steps
    for at, (one, other) in enumerate(itertools.pairwise(steps)):
        if isinstance(one.command, c.Advance) and isinstance(other.command, c.Advance):
            both = c.Advance(one.command.seconds + other.command.seconds)
            yield Trace((*steps[:at], replace(one, command=both), *steps[at + 2 :]))


def _shorter(trace: Trace) -> Iterator[Trace]:
    """The trace without a chunk, halves first, single steps last."""
    steps = trace.steps
    size = len(steps) // 2
    while size:
        for start in range(0, len(steps), size):
            yield Trace(steps[:start] + steps[start + size :])
        size //= 2


def _without_pairs(trace: Trace) -> Iterator[Trace]:
    """The trace without any two steps."""
    steps = trace.steps
    for first in range(len(steps)):
        for second in range(first + 1, len(steps)):
            yield Trace(steps[:first] + steps[first + 1 : second] + steps[second + 1 :])


def _lower(trace: Trace, spec: QueueSpec) -> Iterator[Trace]:
    """The trace with one command made simpler; a clock that cannot meet an instant stays as it moves."""
    for at, each in enumerate(trace.steps):
        if not spec.exact_clock and isinstance(each.command, c.Advance | c.AdvanceTo):
            continue
        for simpler in simpler_commands(each.command, spec):
            yield _with_command(trace, at, simpler)


def _with_command(trace: Trace, at: int, command: c.Command) -> Trace:
    changed = replace(trace.steps[at], command=command, outcome=None)
    return Trace((*trace.steps[:at], changed, *trace.steps[at + 1 :]))


def simpler_commands(command: c.Command, spec: QueueSpec) -> Iterator[c.Command]:
    """Commands of the same kind with one argument nearer to the plainest; that of a claim's bounds are the queue's."""
    match command:
        case c.Enqueue(max_attempts=attempts, due_in=due, deadline_in=deadline):
            if due:
                yield c.Enqueue(attempts, 0, deadline)
            if deadline:
                yield c.Enqueue(attempts, due)
            if attempts != 3:
                yield c.Enqueue(3, due, deadline)
        case c.Claim(worker=worker, limit=limit, max_claims=most, lease=lease, hook=hook, job=job):
            if hook is not None:
                yield c.Claim(worker, limit, most, lease, None, job)
            if job is not None:
                yield c.Claim(worker, limit, most, lease, hook)
            if lease is not None:
                yield c.Claim(worker, limit, most, None, hook, job)
            if (limit, most) != spec.bounds:
                yield c.Claim(worker, *spec.bounds, lease, hook, job)
                if max(limit, most) > 2:
                    yield c.Claim(worker, min(limit, 2), min(most, 2), lease, hook, job)
            if worker > 1:
                yield c.Claim(worker - 1, limit, most, lease, hook, job)
        case c.Renew(handle=handle, lease=lease) if lease is not None:
            yield c.Renew(handle)
        case c.Recover(batch=batch, hook=hook):
            if hook is not None:
                yield c.Recover(batch)
            if batch != 10:
                yield c.Recover(10, hook)
        case c.Tick() | c.StartUp():
            yield c.Recover()
        case c.AdvanceTo(instant=instant, job=job, offset=offset) if offset:
            yield c.AdvanceTo(instant, job, 0)
        case c.Advance(seconds=seconds) if seconds > 1:
            yield c.Advance(seconds // 2)
        case c.Atomically(commands=inner):
            yield from inner
        case c.RequestCancel(job=job, by_parent=True):
            yield c.RequestCancel(job)


def _last_verb(trace: Trace) -> str:
    return trace.steps[-1].command.verb


def same_story(one: Trace, other: Trace) -> bool:
    """Whether two sequential traces ask for the same, whatever was answered."""
    return [_asked(each) for each in one.steps] == [_asked(each) for each in other.steps]


def _asked(step: TraceStep) -> tuple[int, type, tuple[object, ...]]:
    return step.label, type(step.command), field_values(step.command)
