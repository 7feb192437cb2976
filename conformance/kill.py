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
from .reduce import witnesses
from .session import Session


@dataclass(frozen=True, slots=True)
class Kill:
    """What became of one mutant under one seed: the clause that it broke and its `story`, made short.

    `examples` were drawn and `evaluations` traces run to shorten the story; `seconds` until the first violation.
    """

    clause: str | None
    examples: int = 0
    evaluations: int = 0
    seconds: float = 0.0
    story: Trace | None = None


def kill(session: Session, profile: Profile, seed: int, also: frozenset[str]) -> Kill:
    """Examine a mutated runtime until a violation of a clause outside `also`, and reduce that.

    A fault that breaks two clauses may show the other one first; it is passed over, since the one that the mutant is
    planted for must be found too.
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
            story=story.trace,
        )
    return Kill(None, examination.examples)


def first_failing(session: Session, clause: str, longest: int, most: int = 20_000) -> Trace | None:
    """The first trace in explore's order that this runtime fails under this clause, or None if none of the first `most`
    traces of up to `longest` commands is.

    Of traces that look the same to their last command only the first is played. For CLAIM-13, which no trace of explore
    tests, the first story of its direct test.
    """
    direct = clause == LASTING.clause
    traces = iter(direct_stories(session.spec)) if direct else witnesses(session.spec, clause, alike=False)
    short = itertools.takewhile(lambda trace: trace.length <= longest, traces)
    for trace in itertools.islice(short, most):
        run = session.play(trace)
        if run.violation is not None and run.violation.clause == clause:
            return run.trace()
    return None
