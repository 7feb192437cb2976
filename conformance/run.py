"""One conformance run: every engine on every queue, then one verdict.

Knows adapters by their contract and makes them anew for each engine. What was found is kept when a run is interrupted.
"""

from __future__ import annotations

import asyncio
import platform
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from itertools import product
from typing import Protocol

from fencepost.adapters.contract import Adapter, AdapterError, Capabilities
from fencepost.model.applicability import NOT_BUILT
from fencepost.model.clauses import CLAUSES
from fencepost.model.queues import ALL_QUEUES, QUEUES, QueueSpec
from fencepost.reports.levels import levels_of, unmet_of
from fencepost.reports.result import (
    Certificate,
    ClauseResult,
    Coverage,
    FailureResult,
    Result,
    pair_verdict,
    run_verdict,
)

from .applicable import driven_cell, not_looked_at
from .controls import check_capabilities, check_closing, check_growth, declaration_faults, descriptors, unclaimed
from .driver import Run
from .examine import Examination, reduced
from .expected_failures import NOTHING, ExpectedFailures
from .faults import Hung, fault_of, without_arguments
from .findings import FOLDER, Finding, report
from .interleave.programs import programs_of
from .interrupt import heard
from .profiles import Profile
from .races import race_all
from .session import Session
from .watchdog import BLOCKED, USUAL, Limits, at_work, watching


class Listener(Protocol):
    """Who watches a run: progress, and failures as they are found."""

    def task(self, name: str, total: int | None) -> None: ...

    def advance(self, name: str, amount: int = 1) -> None: ...

    def failed(self, failure: FailureResult) -> None: ...


@dataclass(frozen=True, slots=True)
class Plan:
    """What to run. `clauses` None means all of them; `minimum` of checks with teeth comes from the profile.

    `required` are clauses and levels (`level-2`) that every queue must be shown to keep; `aside` says for people which
    ones were asked for and are not required of so narrow a run, if there are any.
    """

    adapter: str
    make: Callable[[], Adapter]
    queues: tuple[str, ...]
    clauses: frozenset[str] | None
    profile: Profile
    seed: int
    required: tuple[str, ...] = ()
    limits: Limits = USUAL
    expected: ExpectedFailures = NOTHING
    aside: str = ""


@dataclass(slots=True)
class Outcome:
    """A run as far as it got; `fault` says what broke the harness, and where in the adapter, if anything did."""

    result: Result
    fault: str = ""


@dataclass(slots=True)
class _Counts:
    started: float = field(default_factory=time.monotonic)
    capabilities: Capabilities = field(default_factory=Capabilities)
    queues: Mapping[str, QueueSpec] = field(default_factory=lambda: QUEUES)
    unclaimed: list[str] = field(default_factory=list)
    checked: dict[tuple[str, str], int] = field(default_factory=dict)
    teeth: dict[tuple[str, str], int] = field(default_factory=dict)
    schedules: dict[tuple[str, str], int] = field(default_factory=dict)
    complete: set[tuple[str, str]] = field(default_factory=set)
    failures: list[FailureResult] = field(default_factory=list)
    certificates: list[Certificate] = field(default_factory=list)
    examples: int = 0
    steps: int = 0
    schedules_played: int = 0


def run(plan: Plan, listener: Listener, last_words: Callable[[Outcome], None] | None = None) -> Outcome:
    """Run the plan to its end, to an interrupt, or to a harness fault; always returns what was found.

    `last_words` is called with that instead, in another thread, if the adapter blocks the main thread and nothing can
    get it back; it must end the process.
    """
    counts = _Counts()

    def give_up(hung: Hung) -> None:
        assert last_words is not None
        last_words(_outcome(plan, counts, fault=f"{fault_of(hung, plan.adapter)}\n{BLOCKED}"))

    try:
        with heard() as pressed, watching(plan.limits, None if last_words is None else give_up) as over:

            def check() -> None:
                pressed()
                over()

            _declare(plan, counts)
            for queue in plan.queues:
                _sequential(plan, queue, counts, listener, check)
            for queue in plan.queues:
                _interleaved(plan, queue, counts, listener, check)
    except KeyboardInterrupt:
        return _outcome(plan, counts, interrupted=True)
    except (Exception, asyncio.CancelledError, Hung) as error:  # whatever a verb raises is a harness fault
        return _outcome(plan, counts, fault=fault_of(error, plan.adapter))
    return _outcome(plan, counts)


def _outcome(plan: Plan, counts: _Counts, *, interrupted: bool = False, fault: str = "") -> Outcome:
    """What was found until now."""
    cut_short = interrupted or bool(fault)
    clauses = _verdicts(plan, counts, unfinished=cut_short)
    unmet = () if cut_short else unmet_of(plan.required, clauses, plan.queues)
    verdict = run_verdict(
        clauses,
        failures=sum(failure.expected is None for failure in counts.failures),
        unmet=len(unmet),
        self_check=counts.capabilities.verdict == "self-check",
        fault=bool(fault),
        interrupted=interrupted,
    )
    result = Result(
        verdict=verdict,
        interrupted=interrupted,
        adapter=plan.adapter,
        profile=plan.profile.name,
        seed=plan.seed,
        queues=plan.queues,
        clauses=clauses,
        certificates=tuple(counts.certificates),
        failures=tuple(counts.failures),
        levels=levels_of(clauses, plan.queues, cut_short=cut_short),
        required=plan.required,
        unmet=unmet,
        coverage=Coverage(
            examples=counts.examples,
            steps=counts.steps,
            schedules=counts.schedules_played,
            seconds=round(time.monotonic() - counts.started, 2),
        ),
        unclaimed=tuple(counts.unclaimed),
        unexercised=tuple(not_looked_at(counts.capabilities)),
        versions=versions(),
    )
    return Outcome(result, fault)


def _declare(plan: Plan, counts: _Counts) -> None:
    """Note what the adapter declares, and its queues.

    Raises:
        AdapterError: it cannot be made without arguments, or its declarations cannot be true.
        Exception: whatever its `__init__` raises.
    """
    try:
        adapter = _made(plan)
    except TypeError as error:
        why = without_arguments(error)
        if why:
            raise AdapterError(f"adapter {plan.adapter}: {why}") from error
        raise
    for fault in declaration_faults(adapter):
        raise AdapterError(f"adapter {plan.adapter}: {fault}")
    counts.capabilities, counts.queues = adapter.capabilities, adapter.queues


def _made(plan: Plan) -> Adapter:
    with at_work():
        return plan.make()


def _asks_sequential(plan: Plan) -> bool:
    """Whether any wanted clause is one that one actor can exercise."""
    return plan.clauses is None or any(CLAUSES[clause].engine != "interleaved" for clause in plan.clauses)


def versions() -> dict[str, str]:
    """What a result depends on, beside the adapter."""
    known = {name: version(name) for name in ("fencepost", "hypothesis", "sqlalchemy")}
    return {**known, "python": platform.python_version()}


def _sequential(plan: Plan, queue: str, counts: _Counts, listener: Listener, check: Callable[[], None]) -> None:
    """Control the adapter, and examine the queue unless all that is asked for takes two actors."""
    adapter = _made(plan)
    with Session(adapter, adapter.serves(queue)) as session:
        counts.unclaimed = list(unclaimed(adapter))
        session.run(check_capabilities(session.driver))
        if _asks_sequential(plan):
            before = descriptors()
            _examine(plan, session, queue, counts, listener, check)
            check_growth(adapter, before)
    check_closing(lambda: _made(plan), queue)


def _examine(
    plan: Plan, session: Session, queue: str, counts: _Counts, listener: Listener, check: Callable[[], None]
) -> None:
    name = f"{queue}: scripts"
    listener.task(name, plan.profile.examples)

    def on_example() -> None:
        check()
        listener.advance(name)

    examination = Examination(session, plan.profile, plan.seed, FOLDER / "examples", on_example)
    try:
        for found in examination.violations(plan.clauses):
            _note_failure(plan, session, found, counts, listener)
    finally:
        counts.examples += examination.examples
        counts.steps += session.driver.steps
        counts.complete |= {(clause, queue) for clause in examination.complete}
        for clause, (checked, teeth) in examination.teeth().items():
            counts.checked[clause, queue] = counts.checked.get((clause, queue), 0) + checked
            counts.teeth[clause, queue] = counts.teeth.get((clause, queue), 0) + teeth


def _note_failure(plan: Plan, session: Session, found: Run, counts: _Counts, listener: Listener) -> None:
    assert found.violation is not None
    finding = Finding(session.spec, found.trace(), found.violation, len(found.done))
    try:
        if plan.expected.of(found.violation.clause, session.spec.key) is None:  # nobody waits for what is known
            story = reduced(session, found)
            finding = Finding(session.spec, story.trace, story.violation, len(found.done))
    finally:  # whatever a verb does while a story is shortened, what was found is kept
        _note(plan, finding, counts, listener)


def _note(plan: Plan, finding: Finding, counts: _Counts, listener: Listener) -> None:
    expected = plan.expected.of(finding.violation.clause, finding.queue.key)
    failure = report(finding, plan.adapter, plan.seed, expected=expected)
    counts.failures.append(failure)
    listener.failed(failure)


def _interleaved(plan: Plan, queue: str, counts: _Counts, listener: Listener, check: Callable[[], None]) -> None:
    name = f"{queue}: schedules"
    listener.task(name, None)

    def on_schedule() -> None:
        check()
        listener.advance(name)

    known = frozenset(failure.clause for failure in counts.failures if failure.queue == queue)
    adapter, before = _made(plan), descriptors()
    for raced in race_all(
        adapter,
        queue,
        clauses=plan.clauses,
        known=known,
        expected=plan.expected.clauses(queue),
        on_schedule=on_schedule,
    ):
        counts.schedules_played += raced.schedules
        for certificate in raced.certificates:
            counts.certificates.append(certificate)
            place = certificate.clause, queue
            counts.schedules[place] = counts.schedules.get(place, 0) + certificate.schedules
        if raced.finding is not None:
            _note(plan, raced.finding, counts, listener)
    check_growth(adapter, before)


def _verdicts(plan: Plan, counts: _Counts, unfinished: bool) -> tuple[ClauseResult, ...]:
    capabilities, queues = counts.capabilities, counts.queues
    failed = {(failure.clause, failure.queue): failure for failure in counts.failures}
    cut = {(entry.clause, entry.queue) for entry in counts.certificates if not entry.exhaustive}
    results = []
    # Who tests the contract's own queues is told of those that are not built too.
    for clause, queue in product(CLAUSES, ALL_QUEUES if queues is QUEUES else queues):
        cell = driven_cell(clause, queues[queue], capabilities) if queue in queues else NOT_BUILT
        built = cell.status != "not built"
        if built and (queue not in plan.queues or (plan.clauses is not None and clause not in plan.clauses)):
            continue
        place = clause, queue
        # Schedules stand in for checks with teeth only where two actors are all that a clause is about.
        raced = CLAUSES[clause].engine == "interleaved"
        played = counts.schedules.get(place, 0)
        schedules = played if raced else 0
        verdict = pair_verdict(
            checked=counts.checked.get(place, 0),
            teeth=counts.teeth.get(place, 0),
            failed=place in failed,
            built=built,
            applicable=cell.status != "not applicable",
            complete=place in counts.complete or (schedules > 0 and place not in cut and not unfinished),
            schedules=schedules,
            minimum=plan.profile.minimum,
        )
        if verdict == "pass" and raced and place in cut:
            verdict = "inconclusive"
        reason, gap = cell.reason, cell.gap
        if place in failed:
            reason = failed[place].reason
        elif built and verdict in ("inconclusive", "not exercised"):
            teeth = counts.teeth.get(place, 0)
            if place in cut:
                reason = _HIDDEN
            else:
                reason = f"{teeth} of {plan.profile.minimum} checks with teeth" + (", cut short" if unfinished else "")
        elif verdict == "pass" and place in cut:
            reason, gap = _HIDDEN, True
        elif verdict == "pass" and not played and _needs_two(clause, queues[queue], capabilities):
            reason, gap = "by one actor only: what two at once do was not tried", True
        results.append(
            ClauseResult(
                id=clause,
                queue=queue,
                verdict=verdict,
                checked=counts.checked.get(place, 0) + schedules,
                teeth=counts.teeth.get(place, 0) + schedules,
                reason=reason,
                gap=gap and verdict in ("pass", "not applicable"),
                expected=plan.expected.of(clause, queue, named=verdict == "not applicable") if built else None,
            )
        )
    return tuple(results)


_HIDDEN = "in one of its races every order breaks another clause: what that hides was not judged"


def _needs_two(clause: str, queue: QueueSpec, capabilities: Capabilities) -> bool:
    """Whether one half of this clause takes two actors on a database of this kind."""
    raced = (program.certified(capabilities.row_locks) for program in programs_of(capabilities.of(queue)))
    return CLAUSES[clause].also_interleaved and any(clause in clauses for clauses in raced)
