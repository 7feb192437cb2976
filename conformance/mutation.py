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

    A row's own figures are the medians over the seeds; a mutant that any seed misses counts as surviving. Stories are
    compared with the mutant's first trace in explore's order; where a fault shows in none of those, as it does if what
    was refused has left something behind, with the shortest story of all seeds.
    """
    for mutant in planted:
        if mutant.pair is None:
            yield _sequential(mutant, profile, seeds, on_seed)
        else:
            yield _race(mutant, seeds, on_seed)


def _sequential(mutant: Planted, profile: Profile, seeds: int, on_seed: Callable[[str], None]) -> MutantResult:
    kills = []
    for seed in range(1, seeds + 1):
        with Session(mutant.make(), QUEUES[mutant.queue]) as session:
            kills.append(kill(session, profile, seed, frozenset(mutant.also)))
        on_seed(mutant.id)
    lengths = [each.story.length for each in kills if each.story is not None and each.clause == mutant.clause]
    first = None
    if lengths:
        with Session(mutant.make(), QUEUES[mutant.queue]) as session:
            first = first_failing(session, mutant.clause, min(lengths))
    return _row(mutant, kills, first, same_story)


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
                kills.append(Kill(clause, 0, story.evaluations, seconds, story.trace))
        on_seed(mutant.id)
    row = _row(mutant, kills, first, same_race, max(schedules))
    return row if named == mutant.clause else row.model_copy(update={"killed_by": named})


def _row(
    mutant: Planted, kills: list[Kill], first: Trace | None, same: Callable[[Trace, Trace], bool], schedules: int = 0
) -> MutantResult:
    killed = [each for each in kills if each.clause is not None]
    allowed = (mutant.clause, *mutant.also)
    wrong = next((each.clause for each in killed if each.clause not in allowed), None)
    own = next((each.clause for each in killed if each.clause == mutant.clause), None)
    stories = [each.story for each in killed if each.story is not None]
    if first is None and stories:
        first = min(stories, key=lambda story: story.length)
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
        length=median_low([story.length for story in stories]) if stories else None,
        shortest=first.length if first is not None else None,
        seeds=Seeds(
            run=len(kills),
            killed=len(killed),
            shortest=sum(first is not None and story.length == first.length for story in stories),
            canonical=sum(first is not None and same(story, first) for story in stories),
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
