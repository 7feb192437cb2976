"""The kill table: every mutant examined, under many seeds, and its stories compared with the shortest possible one.

Knows mutants as values (`Planted`) that make a session's adapter wrong; which rules they change is for others to know.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from statistics import median_low

from fencepost.adapters.contract import Adapter
from fencepost.model.queues import QUEUES
from fencepost.model.trace import Trace
from fencepost.reports.mutants import MutantResult, Seeds

from .interleave.engine import first_failure, search
from .interleave.programs import Program, programs_of
from .interleave.reduce_race import reduce_race
from .kill import Kill, first_failing, kill
from .profiles import Profile
from .races import race_all
from .reduce import same_story
from .session import Session

MOST_SCHEDULES = 200
"""Random schedules of its own race within which a race must be found."""


@dataclass(frozen=True, slots=True)
class Planted:
    """One mutant on one adapter: what it claims to break, how to make its adapter, and a race's program (`pair`)."""

    id: str
    clause: str
    also: tuple[str, ...]
    queue: str
    adapter: str
    make: Callable[[], Adapter]
    pair: str | None = None


def kill_rows(
    planted: Iterable[Planted], profile: Profile, seeds: int, on_seed: Callable[[str], None] = lambda _: None
) -> Iterator[MutantResult]:
    """Examine each mutant under seeds 1, 2 … `seeds`; one row each, in order.

    A row's own figures are the medians over the seeds; a mutant that any seed misses counts as surviving.

    Raises:
        LookupError: a mutant was killed under its clause, and the shortest trace that does so is not known.
    """
    for mutant in planted:
        if mutant.pair is None:
            yield _sequential(mutant, profile, seeds, on_seed)
        else:
            yield _race(mutant, seeds, on_seed)


def _sequential(mutant: Planted, profile: Profile, seeds: int, on_seed: Callable[[str], None]) -> MutantResult:
    with Session(mutant.make(), QUEUES[mutant.queue]) as session:
        first = first_failing(session, mutant.clause)
    kills = []
    for seed in range(1, seeds + 1):
        with Session(mutant.make(), QUEUES[mutant.queue]) as session:
            kills.append(kill(session, profile, seed, frozenset(mutant.also), first))
        on_seed(mutant.id)
    return _row(mutant, kills, first, 0)


def _race(mutant: Planted, seeds: int, on_seed: Callable[[str], None]) -> MutantResult:
    """A race must be found by a run's own search, and by a search at random once per seed."""
    named = _named_by_a_run(mutant)
    first = first_race(mutant)
    kills, schedules = [], []
    program = program_of(mutant)
    for seed in range(1, seeds + 1):
        with Session(mutant.make(), QUEUES[mutant.queue]) as session:
            adapter, spec = session.adapter, session.spec
            started = time.perf_counter()
            found = session.run(search(adapter, spec, program, seed=seed, most=MOST_SCHEDULES))
            seconds = time.perf_counter() - started
            schedules.append(found.schedules)
            if found.violation is None or found.trace is None:
                kills.append(Kill(None))
            else:
                clause = found.violation.clause
                story = session.run(reduce_race(adapter, spec, found.trace, clause))
                kills.append(
                    Kill(
                        clause=clause,
                        evaluations=story.evaluations,
                        seconds=seconds,
                        length=story.trace.length,
                        shortest=first is not None and story.trace.length == first.length,
                        canonical=first is not None and same_race(story.trace, first),
                    )
                )
        on_seed(mutant.id)
    row = _row(mutant, kills, first, max(schedules))
    return row if named == mutant.clause else row.model_copy(update={"killed_by": named})


def _row(mutant: Planted, kills: list[Kill], first: Trace | None, schedules: int) -> MutantResult:
    killed = [each for each in kills if each.clause is not None]
    allowed = (mutant.clause, *mutant.also)
    wrong = next((each.clause for each in killed if each.clause not in allowed), None)
    own = next((each.clause for each in killed if each.clause == mutant.clause), None)
    if own is not None and first is None:
        raise LookupError(
            f"{mutant.id} breaks {mutant.clause}, but not in the first traces that explore knows, so that nothing "
            "measures its story: let `first_failing` play more of them"
        )
    return MutantResult(
        id=mutant.id,
        clause=mutant.clause,
        also=mutant.also,
        queue=mutant.queue,
        adapter=mutant.adapter,
        killed_by=None if len(killed) < len(kills) else wrong or own,
        examples=median_low([each.examples for each in kills]),
        schedules=schedules,
        evaluations=median_low([each.evaluations for each in kills]),
        seconds=round(median_low([each.seconds for each in kills]), 3),
        length=median_low([each.length or 1 for each in killed]) if killed else None,
        shortest=first.length if first is not None else None,
        seeds=Seeds(
            run=len(kills),
            killed=len(killed),
            shortest=sum(each.shortest for each in killed),
            canonical=sum(each.canonical for each in killed),
        ),
    )


def program_of(mutant: Planted) -> Program:
    """The program in which a race shows itself."""
    return next(program for program in programs_of(QUEUES[mutant.queue]) if program.name == mutant.pair)


def _named_by_a_run(mutant: Planted) -> str | None:
    """The clause that a run reports this race under: its own, unless another one than `also` allows is among them too;
    None if the run does not find it.
    """
    seen = {raced.finding.violation.clause for raced in race_all(mutant.make(), mutant.queue) if raced.finding}
    wrong = sorted(seen - {mutant.clause, *mutant.also})
    return wrong[0] if wrong else mutant.clause if mutant.clause in seen else None


def first_race(mutant: Planted) -> Trace | None:
    """The shortest race, in its simplest schedule, in which this mutant breaks its clause: its own program's, unless
    a shorter program shows it too.
    """
    own = program_of(mutant)
    others = sorted(programs_of(QUEUES[mutant.queue]), key=lambda program: program.trace().length)
    best: Trace | None = None
    with Session(mutant.make(), QUEUES[mutant.queue]) as session:
        adapter, spec = session.adapter, session.spec
        for program in (own, *others):
            trace = program.trace()
            if best is not None and trace.length >= best.length:
                continue
            found = session.run(first_failure(adapter, spec, trace, mutant.clause, most=MOST_SCHEDULES))
            if found.trace is not None:
                best = session.run(reduce_race(adapter, spec, found.trace, mutant.clause)).trace
    return best


def same_race(one: Trace, other: Trace) -> bool:
    """Whether two races ask for the same commands in the same lanes, in the same order of statements."""
    lanes = zip(one.lanes, other.lanes, strict=False)
    return (
        one.schedule == other.schedule
        and len(one.lanes) == len(other.lanes)
        and same_story(Trace(one.steps), Trace(other.steps))
        and all(same_story(Trace(a), Trace(b)) for a, b in lanes)
    )
