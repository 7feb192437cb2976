"""Killing one sequential mutant: is it found, under which name, after how many examples, and how short is its story?

Knows a mutant only as a session whose runtime is wrong and the clauses that it claims to break.
"""

from __future__ import annotations

import itertools
import time
from dataclasses import dataclass

from fencepost.model.trace import Trace

from .direct import direct_stories
from .examine import Examination, reduced
from .handles import LASTING
from .profiles import Profile
from .reduce import same_story, witnesses
from .session import Session


@dataclass(frozen=True, slots=True)
class Kill:
    """What became of one mutant under one seed.

    `seconds` until the first violation; `evaluations` of the reducer; `shortest` in the model's sense and `canonical`
    compare the reduced story with the first trace in explore's order that the mutant fails.
    """

    clause: str | None
    examples: int = 0
    evaluations: int = 0
    seconds: float = 0.0
    length: int | None = None
    shortest: bool = False
    canonical: bool = False


def kill(session: Session, profile: Profile, seed: int, also: frozenset[str], first: Trace | None) -> Kill:
    """Examine a mutated runtime until a violation of a clause outside `also`, and reduce that.

    `first` is the mutant's shortest trace. A fault that breaks two clauses may show the other one first; it is passed
    over, since the one that the mutant is planted for must be found too.
    """
    started = time.perf_counter()
    examination = Examination(session, profile, seed)
    for found in examination.violations():
        assert found.violation is not None
        if found.violation.clause in also:
            continue
        seconds = time.perf_counter() - started
        story = reduced(session, found)
        return Kill(
            clause=story.violation.clause,
            examples=examination.examples,
            evaluations=story.evaluations,
            seconds=seconds,
            length=story.length,
            shortest=first is not None and story.length == first.length,
            canonical=first is not None and same_story(story.trace, first),
        )
    return Kill(None, examination.examples)


def first_failing(session: Session, clause: str, most: int = 8000) -> Trace | None:
    """The first trace in explore's order that this runtime fails under this clause, or None within `most` traces.

    For CLAIM-13, which no trace of explore tests, the first story of its direct test.
    """
    direct = clause == LASTING.clause
    traces = direct_stories(session.spec) if direct else witnesses(session.spec, clause)
    for trace in itertools.islice(traces, most):
        run = session.play(trace)
        if run.violation is not None and run.violation.clause == clause:
            return run.trace()
    return None
