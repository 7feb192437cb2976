"""The scenario file of a mutant: its shortest story, with what a right queue answers.

Knows mutants as values (`Planted`), as the kill table does; which there are, and where their files are kept, is for
others to know.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from fencepost.model.paths import Naming
from fencepost.model.queues import QUEUES
from fencepost.model.trace import Trace
from fencepost.scenarios import MUTANT, Expected, Scenario, expectation_of

from .examine import Examination, reduced
from .findings import expectations
from .kill import first_failing
from .mutation import Planted, first_race
from .profiles import PROFILES
from .replay import replay
from .session import Session

SEEDS = 10
"""Under how many seeds a fault is looked for."""

Right = Mapping[str, Callable[[str], Session]]
"""By adapter, the open session of one of its queues, by key: a right one."""


def regression(planted: Sequence[Planted], right: Right, title: str) -> Scenario:
    """The story of one mutant, which is given once for each adapter that it can be planted on.

    A story of one command after another is meant for every adapter but those that are free to answer otherwise. A race
    is meant for those on which its order of statements shows the fault and a right queue can follow it; if there are
    none, since a right queue sends other statements, it is to be replayed in every order.

    Raises:
        LookupError: no story is known in which it breaks its clause and a right queue keeps it.
    """
    return _in_turn(planted, right, title) if planted[0].pair is None else _at_once(planted, right, title)


def _in_turn(planted: Sequence[Planted], right: Right, title: str) -> Scenario:
    mutant = planted[0]
    with Session(mutant.make(), QUEUES[mutant.queue]) as session:
        trace = _drawn(session, mutant.clause)
        if trace is None:
            raise LookupError(f"{mutant.id}: no story of one command after another breaks {mutant.clause}")
        trace = first_failing(session, mutant.clause, trace.length) or trace
    story = replace(_told(mutant, trace, title), expected=expectations(trace, QUEUES[mutant.queue]))
    passed = _passed(story, right, right)
    for each in planted:
        if each.adapter not in passed:
            raise LookupError(f"{mutant.id}: a right queue does not pass its story on {each.adapter}")
    return story if len(passed) == len(right) else replace(story, adapters=tuple(passed))


def _drawn(session: Session, clause: str) -> Trace | None:
    """The story of what a run finds first."""
    for seed in range(1, SEEDS + 1):
        for found in Examination(session, PROFILES["quick"], seed).violations(frozenset({clause})):
            if found.violation is not None and found.violation.clause == clause:
                return reduced(session, found).trace
    return None


def _at_once(planted: Sequence[Planted], right: Right, title: str) -> Scenario:
    stories = [_told(each, trace, title) for each in planted if (trace := first_race(each)) is not None]
    for tried in (stories, [replace(story, trace=_unscheduled(story.trace)) for story in stories]):
        answered = [_passed(story, right, _failing(story, planted)) for story in tried]
        if any(answered):
            # Of those that are meant for equally many adapters, the first one.
            story, answers = max(zip(tried, answered, strict=True), key=lambda pair: len(pair[1]))
            said = expectations(story.trace, QUEUES[story.queue]) | _agreed(answers.values())
            return replace(story, adapters=tuple(answers), expected=said)
    raise LookupError(f"{planted[0].id}: no race breaks {planted[0].clause} and is legal on a right queue")


def _unscheduled(trace: Trace) -> Trace:
    """The same race in no order, where nothing is known of its answers."""
    lanes = tuple(tuple(replace(each, outcome=None) for each in lane) for lane in trace.lanes)
    return replace(trace, lanes=lanes, schedule=None)


def _told(mutant: Planted, trace: Trace, title: str) -> Scenario:
    return Scenario(
        id=mutant.id,
        clause=mutant.clause,
        queue=mutant.queue,
        title=title,
        trace=trace,
        source=MUTANT,
        mutant=mutant.id,
    )


def _passed(story: Scenario, right: Right, adapters: Iterable[str]) -> dict[str, Trace]:
    """What a right queue answered, by adapter, of those on which it passes the story."""
    replayed = {adapter: replay(right[adapter](story.queue), story) for adapter in adapters}
    return {adapter: each.trace for adapter, each in replayed.items() if each.verdict == "pass"}


def _failing(story: Scenario, planted: Sequence[Planted]) -> list[str]:
    """The adapters on which the mutant breaks its clause in this story."""
    failing = []
    for mutant in planted:
        with Session(mutant.make(), QUEUES[mutant.queue]) as session:
            violation = replay(session, story).violation
        if violation is not None and violation.clause == mutant.clause:
            failing.append(mutant.adapter)
    return failing


def _agreed(answers: Collection[Trace]) -> dict[int, Expected]:
    """What the lanes were answered, where it was the same on every adapter."""
    first, *others = [_said(trace) for trace in answers]
    return {label: said for label, said in first.items() if all(other.get(label) == said for other in others)}


def _said(trace: Trace) -> dict[int, Expected]:
    naming = Naming()
    answered = {each.label: each.outcome for lane in (trace.steps, *trace.lanes[1:]) for each in lane if each.outcome}
    for label, outcome in answered.items():
        naming.note(label, outcome)
    lanes = [each.label for lane in trace.lanes[1:] for each in lane if each.label in answered]
    return {label: expectation_of(answered[label], naming, due=False) for label in lanes}
