"""The interleaved part of a run: every program of two actors, certified and searched on one queue."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from fencepost.adapters.contract import Adapter
from fencepost.model.queues import QUEUES
from fencepost.reports.result import Certificate

from .findings import Finding
from .interleave.engine import certify
from .interleave.programs import Program, programs_of
from .interleave.reduce_race import reduce_race
from .session import Session


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
    on_schedule: Callable[[], None] = lambda: None,
) -> Iterator[Raced]:
    """Certify every program of the queue that is about one of `clauses` (None: all).

    Each clause is reported once; `known` are those reported before. An adapter without a gate has no races.
    """
    if adapter.capabilities.gate == "none":
        return
    reported = set(known)
    wanted = [
        program
        for program in programs_of(queue)
        if clauses is None or clauses & set(program.certified(adapter.capabilities.row_locks))
    ]
    with Session(adapter, QUEUES[queue]) as session:
        for program in wanted:
            raced = _race(session, program, on_schedule)
            if raced.finding is not None and raced.finding.violation.clause in reported:
                raced = Raced(program, raced.certificates, raced.schedules)
            elif raced.finding is not None:
                reported.add(raced.finding.violation.clause)
            yield raced


def _race(session: Session, program: Program, on_schedule: Callable[[], None]) -> Raced:
    adapter, spec = session.adapter, session.spec
    found = session.run(certify(adapter, spec, program, on_schedule=lambda _: on_schedule()))
    schedules = found.schedules
    if found.trace is None or found.violation is None:
        return Raced(program, found.certificates, schedules)
    unreduced = found.trace.length
    shorter = session.run(reduce_race(adapter, spec, found.trace, found.violation.clause))
    finding = Finding(spec.key, shorter.trace, shorter.violation, unreduced)
    return Raced(program, found.certificates, schedules, finding)
