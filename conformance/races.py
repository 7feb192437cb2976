"""The interleaved part of a run: every program of two actors, certified and searched on one queue."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from fencepost.adapters.contract import Adapter, AdapterError
from fencepost.model.trace import Trace
from fencepost.model.world import Violation
from fencepost.reports.result import Certificate

from .examine import reduced
from .findings import Finding
from .interleave.engine import Certified, certify
from .interleave.lanes import History
from .interleave.played import Diverged, Stuck, Unplayable
from .interleave.programs import Program, programs_of
from .interleave.reduce_race import reduce_race
from .session import Session

_TODO: dict[type[Unplayable], str] = {
    Stuck: "let every verb come to an end, and end its transaction before it answers",
    Diverged: "let a verb send the same statements whenever the rows, the clock and the other actors' statements are "
    "the same: nothing drawn at random, nothing remembered from the run before",
}


@dataclass(frozen=True, slots=True)
class Raced:
    """What became of one program: its certificates, the schedules played, and the simplest failing one, if any."""

    program: Program
    certificates: tuple[Certificate, ...]
    schedules: int
    finding: Finding | None = None


def race_all(
    adapter: Adapter,
    queue: str,
    *,
    clauses: frozenset[str] | None = None,
    known: frozenset[str] = frozenset(),
    expected: frozenset[str] = frozenset(),
    on_schedule: Callable[[], None] = lambda: None,
) -> Iterator[Raced]:
    """Certify every program of the queue that is about one of `clauses` (None: all), but not those in which the clock
    moves where it is the queue's own: its `advance` cannot be called between two statements of others.

    Each clause is reported once, and passed over from then on, so that it hides no other; `known` are those reported
    before. What breaks one of the `expected` is reported as it was found. An adapter without a gate has no races.

    Raises:
        AdapterError: a schedule can't be played to its end, or an actor works past its gate; says what to do.
        Exception: whatever a verb raises. What was found before is yielded before.
    """
    if adapter.capabilities.gate == "none":
        return
    reported = set(known)
    wanted = [
        program
        for program in programs_of(adapter.capabilities.of(adapter.serves(queue)))
        if (clauses is None or clauses & set(program.certified(adapter.capabilities.row_locks)))
        and (not program.clock or adapter.capabilities.clock == "argument")
    ]
    with Session(adapter, adapter.serves(queue)) as session:
        for program in wanted:
            whole = False
            while not whole:
                seen: list[History] = []
                try:
                    found = _certified(session, program, frozenset(reported), seen, on_schedule)
                except BaseException:  # however the search ends, what it had found is kept
                    if seen:
                        yield Raced(program, (), 0, _as_found(session, seen[0].trace, seen[0].violation))
                    raise
                raced = Raced(program, found.certificates, found.schedules)
                if found.trace is None or found.violation is None:
                    yield raced
                    break
                reported.add(found.violation.clause)
                whole = found.exhaustive
                if not whole:  # the search ended here, and begins anew
                    raced = replace(raced, certificates=())
                if found.violation.clause in expected:
                    yield replace(raced, finding=_as_found(session, found.trace, found.violation))
                    continue
                try:
                    finding = _shortened(session, found.trace, found.violation)
                except BaseException:  # whatever happens while a race is shortened, what was found is kept
                    yield replace(raced, finding=_as_found(session, found.trace, found.violation))
                    raise
                yield replace(raced, finding=finding)


def _certified(
    session: Session, program: Program, excused: frozenset[str], seen: list[History], on_schedule: Callable[[], None]
) -> Certified:
    """Certify the program; `seen` gets the schedules that break a clause which is not excused."""
    adapter, spec = session.adapter, session.spec

    def note(history: History) -> None:
        if history.violation is not None and history.violation.clause not in excused:
            seen.append(history)
        on_schedule()

    try:
        return session.run(certify(adapter, spec, program, excused=excused, on_schedule=note))
    except Unplayable as error:
        played = f"after schedule {error.schedule}" if error.schedule else "before any statement"
        raise AdapterError(
            f"{adapter.name}: {program.name} on {spec.key}, {played}: {error}; {_TODO[type(error)]}"
        ) from error


def _shortened(session: Session, trace: Trace, violation: Violation) -> Finding:
    """The finding in its shortest form, or as it was found where it does not come again."""
    if not trace.lanes:  # broken before the lanes: no race, but a story of one command after another
        run = session.play(trace)
        if run.violation is None or run.violation.clause != violation.clause:
            return _as_found(session, trace, violation)
        told = reduced(session, run)
        return Finding(session.spec, told.trace, told.violation, trace.length)
    try:
        shorter = session.run(reduce_race(session.adapter, session.spec, trace, violation.clause))
    except (LookupError, Unplayable):
        return _as_found(session, trace, violation)
    return Finding(session.spec, shorter.trace, shorter.violation, trace.length)


def _as_found(session: Session, trace: Trace, violation: Violation | None) -> Finding:
    assert violation is not None
    return Finding(session.spec, trace, violation, trace.length)
