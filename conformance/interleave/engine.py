"""The interleaved engine: searches the schedules of a race for one that breaks a clause, and certifies what it saw.

It knows strategies and counts; what a schedule does and whether it is legal, `lanes` says.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from random import Random

from fencepost.adapters.contract import Adapter, AdapterError
from fencepost.model import commands as c
from fencepost.model.queues import QueueSpec
from fencepost.model.trace import Trace
from fencepost.model.world import Violation
from fencepost.reports.result import Certificate

from .exhaustive import Exhaustive
from .lanes import BrokenPrefix, History, Lanes, lanes_of
from .played import CLOCK, Diverged
from .priorities import Priorities
from .programs import Program
from .random_walk import RandomWalk
from .replay import Replay


@dataclass(frozen=True, slots=True)
class Certified:
    """The outcome of a search: its certificates, and the first failing schedule, if any."""

    certificates: tuple[Certificate, ...]
    schedules: int
    """Distinct ones that were played and judged."""
    exhaustive: bool
    trace: Trace | None = None
    violation: Violation | None = None
    preemptions: int = 0
    """Those of the failing schedule."""


DEPTHS = (2, 3)
"""How many ordered points a race is guessed to need."""
WALK_EVERY = 3
"""One random schedule in so many is a walk, which finds what takes many switches."""

DRAWS = 4
"""How many schedules are drawn for each one wanted: many turn up again."""

OnSchedule = Callable[[History], None]


async def certify(
    adapter: Adapter,
    spec: QueueSpec,
    program: Program,
    *,
    most: int | None = None,
    excused: frozenset[str] = frozenset(),
    on_schedule: OnSchedule | None = None,
) -> Certified:
    """Play every schedule of the program, or the first `most`, in the order of context switches.

    It stops at the first illegal one. A fault in the statements alone (CLAIM-11, CLAIM-14) is kept and the search goes
    on, since an illegal answer outranks it. What breaks one of the `excused` clauses is passed over; it certifies
    nothing.

    Raises:
        Diverged: the same choices led elsewhere: the adapter is not deterministic under the gate.
        Stuck, AdapterError: the harness cannot go on; the latter also where an actor works past its gate.
    """
    async with lanes_of(adapter, spec, program.trace()) as lanes:
        return await _exhaust(lanes, _Tally(on_schedule, excused=excused), most, program)


async def first_failure(
    adapter: Adapter,
    spec: QueueSpec,
    trace: Trace,
    clause: str | None,
    *,
    most: int,
    bound: int | None = None,
    on_schedule: OnSchedule | None = None,
) -> Certified:
    """The first of at most `most` schedules of any trace with lanes that breaks this clause, or any if it is None, in
    the order of context switches; `bound` leaves out schedules with more preemptions. Raises as `certify`.
    """
    async with lanes_of(adapter, spec, trace) as lanes:
        return await _exhaust(lanes, _Tally(on_schedule, clause), most, bound=bound)


async def search(
    adapter: Adapter,
    spec: QueueSpec,
    program: Program,
    *,
    seed: int,
    most: int,
    on_schedule: OnSchedule | None = None,
) -> Certified:
    """Play `most` different random schedules of the program, by priorities and by a walk in turn, or as many as turn
    up; the same seed plays the same ones. It certifies nothing. Raises as `certify`.
    """
    async with lanes_of(adapter, spec, program.trace()) as lanes:
        tally = _Tally(on_schedule)
        try:
            await lanes.prepare(watched=True)
            await _draw(lanes, tally, seed, most)
        except BrokenPrefix as broken:
            return tally.broken(broken.history)
        return tally.found(exhaustive=False)


async def _draw(lanes: Lanes, tally: _Tally, seed: int, most: int) -> None:
    draw, known, length = Random(seed), set(), 1
    for nth in range(most * DRAWS):
        one, depth = draw.getrandbits(64), draw.choice(DEPTHS)
        history = await lanes.play(RandomWalk(one) if nth % WALK_EVERY == 0 else Priorities(one, length, depth))
        length = max(length, len(history.played.schedule))
        if history.played.schedule in known:
            continue
        known.add(history.played.schedule)
        if tally.add(history) or tally.schedules == most:
            return


async def _exhaust(
    lanes: Lanes, tally: _Tally, most: int | None, program: Program | None = None, bound: int | None = None
) -> Certified:
    search = Exhaustive(lanes.play, bound=bound, most=most)
    try:
        await lanes.prepare(watched=True)
        async for history in search.schedules():
            if tally.add(history):
                break
    except BrokenPrefix as broken:
        return tally.broken(broken.history)
    found = tally.found(search.exhaustive)
    if program is None:
        return found
    return replace(found, certificates=_certificates(lanes, program, tally, found))


async def replay_history(adapter: Adapter, spec: QueueSpec, trace: Trace) -> History:
    """Play a trace's own schedule to the letter, and judge it: what comes before the lanes with the rows after every
    step, then the lanes. `checks` are those of both.

    Raises:
        Diverged: a step before the lanes could not run, or the schedule does not fit; neither pass nor fail.
        Stuck, AdapterError: the harness cannot go on.
    """
    assert trace.schedule is not None, "a trace without a schedule has no order to replay"
    async with lanes_of(adapter, spec, trace) as lanes:
        try:
            checks = await lanes.prepare(watched=True)
            for label, why in lanes.skipped.items():
                raise Diverged(f"step {label} could not run: {why}")
            history = await lanes.play(Replay(trace.schedule))
        except BrokenPrefix as broken:
            return broken.history
    return history if history.illegal is not None else replace(history, checks=checks + history.checks)


async def replay_schedule(adapter: Adapter, spec: QueueSpec, trace: Trace) -> Violation | None:
    """What is wrong with a trace's own schedule; None if it is legal. Raises as `replay_history`."""
    return (await replay_history(adapter, spec, trace)).violation


class _Tally:
    """Counts a search's schedules and keeps its first failure, of one clause or of any."""

    def __init__(
        self, on_schedule: OnSchedule | None = None, clause: str | None = None, excused: frozenset[str] = frozenset()
    ) -> None:
        self._on_schedule = on_schedule
        self._clause = clause
        self._excused = excused
        self.schedules = 0
        self.passed_over = 0
        """Illegal schedules that break an excused clause: whatever else they do was not judged."""
        self.refuted: set[str] = set()
        """The excused clauses that some schedule broke."""
        self.failed: History | None = None
        self.sent: set[int] = set()
        """The lanes that sent a statement through their gate in any schedule."""
        self.answered: dict[int, c.Command] = {}
        """By lane, a command that was answered in some schedule."""

    def _wants(self, violation: Violation) -> bool:
        """Whether this is what the search is for."""
        return violation.clause not in self._excused and self._clause in (None, violation.clause)

    def add(self, history: History) -> bool:
        """Count one schedule; whether it ends the search."""
        self.schedules += 1
        self._hear(history)
        if self._on_schedule is not None:
            self._on_schedule(history)
        violation = history.violation
        if violation is None:
            return False
        if not self._wants(violation):
            self.passed_over += history.illegal is not None
            self.refuted.add(violation.clause)
            return False
        # Of any clause: an illegal answer outranks misshapen statements, so the search for one goes on.
        ends = history.illegal is not None or self._clause is not None
        if ends or self.failed is None:
            self.failed = history
        return ends

    def _hear(self, history: History) -> None:
        self.sent.update(statement.lane for statement in history.played.statements)
        for ran in history.played.commands:
            if ran.lane != CLOCK and ran.outcome is not None:
                self.answered[ran.lane] = history.trace.lanes[ran.lane][ran.nth].command

    def broken(self, history: History) -> Certified:
        """What a search comes to whose lanes never started."""
        if history.violation is None or not self._wants(history.violation):
            return Certified((), self.schedules, False)
        return Certified((), self.schedules, False, history.trace, history.violation)

    def found(self, exhaustive: bool) -> Certified:
        """What the search comes to, without certificates."""
        if self.failed is None:
            return Certified((), self.schedules, exhaustive)
        failed = self.failed
        return Certified((), self.schedules, exhaustive, failed.trace, failed.violation, failed.played.preemptions)


def _certificates(lanes: Lanes, program: Program, tally: _Tally, found: Certified) -> tuple[Certificate, ...]:
    """What a search says for each clause of the program but those that it refuted.

    Raises:
        AdapterError: nothing is wrong, but an actor never sent a statement through its gate.
    """
    # A command may have nothing to send, such as a refusal; an actor that never sends anything works past its gate,
    # and its orders were not played.
    silent = sorted(tally.answered.keys() - tally.sent)
    if silent and (found.violation is not None or tally.refuted):
        return ()
    if silent:
        lane = silent[0]
        raise AdapterError(
            f"{lanes.adapter.name}: {program.name}: actor {lane} answered {tally.answered[lane].verb} and sent nothing "
            f"through its gate in any schedule; let `connection({lane})` return the connection that it works on"
        )
    judged = found.schedules - tally.passed_over
    refuted = tally.refuted if found.violation is None else tally.refuted | {found.violation.clause}
    return tuple(
        Certificate(
            clause=clause,
            queue=lanes.spec.key,
            adapter=lanes.adapter.name,
            pair=program.name,
            schedules=judged,
            exhaustive=found.exhaustive and judged > 0,
            bound=_bound(program, found, tally.passed_over),
        )
        for clause in program.certified(lanes.adapter.capabilities.row_locks)
        if clause not in refuted
    )


def _bound(program: Program, found: Certified, passed_over: int) -> str:
    """What the schedules were of, how many more break a clause that is known, and where the search was cut."""
    jobs = sum(type(command) is c.Enqueue for command in program.before)
    parts = [_counted(jobs, "job"), _counted(len(program.lanes), "actor")]
    parts.append(f"{_counted(sum(map(len, program.lanes)), 'command')} at once")
    if program.clock:
        parts.append(f"{_counted(len(program.clock), 'move')} of the clock")
    parts.append("orders of whole statements")
    if passed_over:
        parts.append(f"beside {passed_over} in which another clause is broken")
    said = ", ".join(parts)
    return said if found.exhaustive else f"{said}; the first {found.schedules} in the order of switches"


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
