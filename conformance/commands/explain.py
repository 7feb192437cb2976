"""`fencepost explain`: all that is known of one clause."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import fencepost.scenarios
from fencepost.adapters.mutants.catalogue import MUTANTS
from fencepost.conformance.direct import AFTER_COMMIT
from fencepost.conformance.interleave.programs import PROGRAMS, programs_of
from fencepost.conformance.reduce import witnesses
from fencepost.conformance.selection import known_clause
from fencepost.model.applicability import TABLE
from fencepost.model.clauses import CLAUSES
from fencepost.model.queues import ALL_QUEUES, QUEUES
from fencepost.model.trace import Trace

from .traces import trace_lines


def explained(name: str) -> str:
    """The registry's entry, where it applies, its shortest story, its mutants and its scenario files.

    Raises:
        UnknownName: there is no such clause.
    """
    return "\n".join(_lines(known_clause(name)))


def _lines(clause_id: str) -> Iterator[str]:
    clause = CLAUSES[clause_id]
    yield f"{clause.id}  {clause.title}"
    weight = "must" if clause.must else "should"
    built = "not built in this version" if clause.engine == "none" else f"tested by: {clause.engine}"
    both = " and interleaved" if clause.also_interleaved else ""
    yield f"  source {clause.section} · level {clause.level} · {weight} · {built}{both}"
    if clause.engine == "none":
        return
    for key in ALL_QUEUES:
        cell = TABLE[clause.id, key]
        if key in QUEUES:
            yield f"  {key}: {cell.status}" + (f": {cell.reason}" if cell.reason else "")
    story = shortest_story(clause_id)
    if story is not None:
        queue, trace = story
        yield ""
        yield f"shortest story, on {queue}"
        yield from trace_lines(trace)
    mutants = [mutant for mutant in MUTANTS if mutant.clause == clause_id]
    if mutants:
        yield ""
        yield "mutants"
        for mutant in mutants:
            yield f"  {mutant.id}: {mutant.title}"
    files = scenario_files(clause_id)
    if files:
        yield ""
        yield "scenarios"
        for path in files:
            yield f"  {path}"


def shortest_story(clause: str) -> tuple[str, Trace] | None:
    """The queue and the simplest trace that tests a built clause: of one actor if there is one, else a race."""
    for key, spec in QUEUES.items():
        if TABLE[clause, key].status != "applies":
            continue
        if CLAUSES[clause].engine == "direct":
            return key, AFTER_COMMIT
        # No trace of one actor tests a race, and to know that a search must go to its end.
        trace = None if CLAUSES[clause].engine == "interleaved" else next(witnesses(spec, clause), None)
        if trace is not None:
            return key, trace
        for program in PROGRAMS:
            if program in programs_of(spec) and clause in program.certified(row_locks=True):
                return key, program.trace()
    return None


def scenario_files(clause: str) -> list[Path]:
    """The scenario files of a clause that come with fencepost."""
    (folder,) = fencepost.scenarios.__path__
    return sorted(Path(folder).rglob(f"{clause}-*.yaml"))
