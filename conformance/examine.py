"""All that the sequential engine looks at on one queue: complete tables, the direct test, drawn scripts, the model's
shortest trace to every check, and more of its traces for what all those met too seldom.

Goes on after a violation: each clause is reported once, with its shortest story.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from fencepost.model.applicability import cell
from fencepost.model.clauses import BUILT, CLAUSES
from fencepost.model.queues import QueueSpec
from fencepost.model.trace import Trace

from .direct import direct_stories, late_stories
from .driver import Run
from .handles import LASTING
from .profiles import Profile
from .reduce import Reduced, first_witnesses, reduce, same_story, witnesses
from .sequential import hunt, tables
from .session import Session


@dataclass(slots=True)
class Examination:
    """What was found on one queue. `complete` are the clauses whose complete table or direct test was gone through."""

    session: Session
    profile: Profile
    seed: int
    database: Path | None = None
    on_example: Callable[[], None] | None = None
    complete: set[str] = field(default_factory=set)
    examples: int = 0

    def violations(self, clauses: frozenset[str] | None = None) -> Iterator[Run]:
        """The first run that broke each clause, tables first; `clauses` narrows what is looked for."""
        known: set[str] = set()
        for clause, trace in tables(self.session.spec).items():
            if clauses is None or clause in clauses:
                run = self.session.play(trace)
                if run.violation is not None:
                    known.add(run.violation.clause)
                    yield run
                else:
                    self.complete.add(clause)
        if clauses is None or "CLAIM-13" in clauses:
            yield from self._direct(known)
        while True:
            found = hunt(
                self.session,
                examples=self.profile.examples,
                longest=self.profile.longest,
                seed_value=self.seed,
                known=frozenset(known),
                database=self.database,
                on_example=self._example,
            )
            if found is None:
                break
            assert found.violation is not None
            known.add(found.violation.clause)
            yield found
        yield from self._shortest(clauses, known)
        for clause in sequential_clauses(self.session.spec):
            if clauses is None or clause in clauses:
                yield from self._aimed(clause, known)

    def _direct(self, known: set[str]) -> Iterator[Run]:
        """Play the direct test of CLAIM-13; it is complete once there were handles to read, and all of them lasted."""
        whole, before = True, self.session.driver.tally[LASTING]
        for story in direct_stories(self.session.spec):
            run = self.session.play(story)
            if run.violation is not None:
                whole = False
                if run.violation.clause not in known:
                    known.add(run.violation.clause)
                    yield run
        if whole and self.session.driver.tally[LASTING] > before:
            self.complete.add(LASTING.clause)

    def _shortest(self, clauses: frozenset[str] | None, known: set[str]) -> Iterator[Run]:
        """Play the model's shortest trace to each check, also where scripts have made it: they may have made it where
        the fault does not show, and what is found should not hang on the seed.
        """
        played: set[Trace] = set()
        spec = self.session.spec
        shortest = ((clause, trace) for (clause, _), trace in first_witnesses(spec).items())
        for clause, trace in (*shortest, *late_stories(spec)):
            if clause in known or trace in played or (clauses is not None and clause not in clauses):
                continue
            played.add(trace)
            yield from self._play(trace, known)

    def _play(self, trace: Trace, known: set[str]) -> Iterator[Run]:
        run = self.session.play(trace)
        self._example()
        if run.violation is not None and run.violation.clause not in known:
            known.add(run.violation.clause)
            yield run

    def _aimed(self, clause: str, known: set[str]) -> Iterator[Run]:
        """Play the model's traces to a clause, each once, until it has its minimum of checks with teeth.

        Scripts drawn at random meet some clauses seldom; explore knows every short way to them.
        """
        if clause in known or self.teeth().get(clause, (0, 0))[1] >= self.profile.minimum:
            return
        # A fault that ends every trace early leaves the clause at its end unmet, however many are tried.
        for trace in itertools.islice(witnesses(self.session.spec, clause), self.profile.examples):
            yield from self._play(trace, known)
            if clause in known or self.teeth().get(clause, (0, 0))[1] >= self.profile.minimum:
                return

    def _example(self) -> None:
        self.examples += 1
        if self.on_example is not None:
            self.on_example()

    def teeth(self) -> dict[str, tuple[int, int]]:
        """Checks made, and those of them with teeth, by clause."""
        counts: dict[str, tuple[int, int]] = {}
        for check, times in self.session.driver.tally.items():
            checked, teeth = counts.get(check.clause, (0, 0))
            counts[check.clause] = (checked + times, teeth + (times if check.teeth else 0))
        return counts


def sequential_clauses(queue: QueueSpec) -> list[str]:
    """The built clauses that drawn scripts exercise on this queue."""
    return [
        clause for clause in BUILT if CLAUSES[clause].engine == "sequential" and cell(clause, queue).status == "applies"
    ]


def reduced(session: Session, run: Run) -> Reduced:
    """The shortest story of a violation: the model's, or one that is told directly if it is shorter.

    Of CLAIM-13 no model knows a shorter one than the direct test's.
    """
    assert run.violation is not None
    clause, trace = run.violation.clause, run.trace()
    if clause == "CLAIM-13" and any(same_story(trace, story) for story in direct_stories(session.spec)):
        return Reduced(trace, run.violation, 1)
    story = reduce(session, run)
    for about, told in late_stories(session.spec):
        if about == clause and told.length < story.length:
            late = session.play(told)
            story = replace(story, evaluations=story.evaluations + 1)
            if late.violation is not None and late.violation.clause == clause:
                story = Reduced(late.trace(), late.violation, story.evaluations)
    return story
