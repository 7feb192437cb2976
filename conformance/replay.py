"""Replaying a scenario file: does this queue still break the clause, does it do what the file expects?

A replay that diverges (a legal answer, but not the expected one) says so, and so does one that never tested the file's
clause; neither is a pass or a fail. A race without a schedule is replayed in every order of its statements.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Literal

from fencepost.adapters.contract import AdapterError, Gated
from fencepost.model import commands as c
from fencepost.model.paths import Binding, Naming
from fencepost.model.queues import QueueSpec
from fencepost.model.trace import Trace
from fencepost.model.world import Violation
from fencepost.reports.story import Failure, story
from fencepost.scenarios import Scenario, expectation_of

from .interleave.engine import first_failure, replay_history
from .interleave.lanes import History
from .interleave.played import Diverged, Stuck
from .interleave.programs import programs_of
from .session import Session

MOST_ORDERS = 1000
"""In how many orders of its statements a race without a schedule is replayed at most."""


@dataclass(frozen=True, slots=True)
class Replayed:
    """`pass`: legal, as expected, and the file's clause was tested; `fail`: a clause was broken; `diverged`: legal so
    far, but not what the file says; `not exercised`: as expected, but nothing in it tested the file's clause.

    `trace` is the file's, with what was answered. `why` says more of the verdict; of a pass, in which orders it holds.
    """

    verdict: Literal["pass", "fail", "diverged", "not exercised"]
    trace: Trace
    violation: Violation | None = None
    why: str = ""


@dataclass(frozen=True, slots=True)
class _Played:
    """The file's trace with what was answered, the violation, and the clauses that were tested."""

    trace: Trace
    violation: Violation | None
    tested: Collection[str]
    orders: str = ""


def replay(session: Session, scenario: Scenario) -> Replayed:
    """Replay a scenario from an empty queue of its kind; commands that ran at once run in the file's own schedule, or
    in every order if it has none.

    Raises:
        AdapterError: the adapter cannot be driven, or its statements cannot be scheduled.
    """
    try:
        played = _at_once(session, scenario) if any(scenario.trace.lanes) else _in_order(session, scenario)
    except Diverged as error:
        return Replayed("diverged", scenario.trace, None, str(error))
    if played.violation is not None:
        return Replayed("fail", played.trace, played.violation, played.violation.why)
    # What was found or planted did break the clause, also where the judge has no check to make once all is right.
    shown = scenario.found is not None or scenario.mutant is not None
    if scenario.clause not in played.tested and not shown:
        return Replayed("not exercised", played.trace, None, f"no step of it tests {scenario.clause}")
    return Replayed("pass", played.trace, None, played.orders)


def told(scenario: Scenario, queue: QueueSpec, adapter: str, path: str, replayed: Replayed) -> str:
    """What came of a replay, for people: the story of a failure, or one line."""
    if replayed.verdict == "pass":
        orders = f", {replayed.why}" if replayed.why else ""
        return f"pass      {path}: {scenario.clause} holds on {adapter}, queue {scenario.queue}{orders}"
    if replayed.verdict == "not exercised":
        return (
            f"not exercised  {path}: on {adapter} it went as the file says, but {replayed.why}: "
            f"add a step that does, or file it under another clause"
        )
    if replayed.violation is None:
        return f"diverged  {path}: on {adapter} it went another way than the file says: {replayed.why}"
    violation = replayed.violation
    return story(
        Failure(
            clause=violation.clause,
            reason=violation.reason,
            why=violation.why,
            queue=queue,
            adapter=adapter,
            trace=replayed.trace,
            scenario=path,
            replay=f"fencepost replay {path} --adapter={adapter}",
        )
    )


def _in_order(session: Session, scenario: Scenario) -> _Played:
    """One command after another.

    Raises:
        Diverged: a step could not run.
    """
    driver = session.driver
    before = Counter(driver.tally)
    run = session.play(scenario.trace)
    answered = {label: outcome for label, (_, outcome) in zip(run.labels, run.done, strict=True)}
    steps = tuple(
        replace(each, outcome=answered[each.label]) for each in scenario.trace.steps if each.label in answered
    )
    if run.violation is None:
        for label, why in run.skipped.items():
            raise Diverged(f"step {label} could not run: {why}")
        _compare(scenario, Trace(steps))
    made = driver.tally - before
    return _Played(Trace(steps), run.violation, {check.clause for check in made})


def _at_once(session: Session, scenario: Scenario) -> _Played:
    """The lanes in the file's own order of statements, or in every order.

    Raises:
        Diverged: the schedule does not fit, or what was answered in some order is not what the file expects.
        AdapterError: the adapter's statements cannot be scheduled, or its actors came to a standstill.
    """
    adapter = session.adapter
    if not isinstance(adapter, Gated):
        raise AdapterError(
            f"{adapter.name}: its statements cannot be scheduled; replay this file on {_meant(scenario)}"
        )
    try:
        played = _scheduled(session, scenario) if scenario.trace.schedule else _in_every_order(session, scenario)
    except Stuck as error:
        raise AdapterError(f"{adapter.name}: {error}") from error
    return replace(played, tested={*played.tested, *_raced(session, scenario.trace)})


def _scheduled(session: Session, scenario: Scenario) -> _Played:
    history = session.run(replay_history(session.adapter, session.spec, scenario.trace))
    if history.violation is None:
        _compare(scenario, history.trace)
    return _Played(history.trace, history.violation, {check.clause for check in history.checks})


def _in_every_order(session: Session, scenario: Scenario) -> _Played:
    """All orders, or the first `MOST_ORDERS` of them in that of context switches, up to one that breaks a clause."""
    tested: set[str] = set()

    def look(history: History) -> None:
        tested.update(check.clause for check in history.checks)
        if history.violation is None:
            try:
                _compare(scenario, history.trace)
            except Diverged as error:
                raise Diverged(f"in the order {history.schedule}, {error}") from error

    adapter, spec, trace = session.adapter, session.spec, scenario.trace
    found = session.run(first_failure(adapter, spec, trace, None, most=MOST_ORDERS, on_schedule=look))
    orders = f"in {'all' if found.exhaustive else 'the first'} {found.schedules} orders of its statements"
    return _Played(found.trace or trace, found.violation, tested, orders)


def _raced(session: Session, trace: Trace) -> set[str]:
    """The clauses that these lanes are a race of: those that the same commands over as many jobs are certified for."""
    row_locks = session.adapter.capabilities.row_locks
    return {
        clause
        for program in programs_of(session.spec)
        if _verbs(program.trace()) == _verbs(trace) and _jobs(program.trace()) <= _jobs(trace)
        for clause in program.certified(row_locks)
    }


def _verbs(trace: Trace) -> list[list[str]]:
    """What each actor does at once, whichever of them does it."""
    return sorted([each.command.verb for each in lane] for lane in trace.lanes[1:] if lane)


def _jobs(trace: Trace) -> int:
    return sum(isinstance(each.command, c.Enqueue) for each in trace.steps)


def _compare(scenario: Scenario, trace: Trace) -> None:
    """Compare each outcome that the file expects, in the lanes as before them.

    Raises:
        Diverged: one is another, or its step or one before the lanes did not run.
    """
    every = (each for sequence in (trace.steps, *trace.lanes) for each in sequence)
    answered = {each.label: each.outcome for each in every if each.outcome is not None}
    made, naming = Binding(), Naming()
    for label, outcome in answered.items():
        made.note(label, outcome)
        naming.note(label, outcome)
    for label in (*(each.label for each in scenario.trace.steps), *scenario.expected):
        if label not in answered:
            raise Diverged(f"step {label} could not run: what it refers to was not made, or its instant was not ahead")
    for label, expected in scenario.expected.items():
        got = answered[label]
        if not expected.matches(got, made):
            said = expectation_of(got, naming)
            raise Diverged(f"step {label}: expected {expected.describe()}, got {said.describe()}")


def _meant(scenario: Scenario) -> str:
    return " or ".join(scenario.adapters or ("sqlite", "pg"))
