"""From a reduced violation to what the user gets: the story, the scenario file, the entry in the result."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from fencepost.model import commands as c
from fencepost.model.clauses import CLAUSES
from fencepost.model.legal import outcomes
from fencepost.model.paths import Binding, Dangling, Naming
from fencepost.model.queues import QueueSpec
from fencepost.model.step import step
from fencepost.model.trace import Trace
from fencepost.model.world import Context, Step, Violation, World
from fencepost.reports.phrases import with_attempts_named
from fencepost.reports.result import ExpectedFailure, FailureResult
from fencepost.reports.story import Failure, story
from fencepost.scenarios import Found, Scenario, any_of, expectation_of, write
from fencepost.scenarios.expected import Expected

FOLDER = Path(".fencepost")
"""Where a run leaves what it found, below the folder it was started in."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One violated clause with its shortest trace. `unreduced` is the length that the trace had when it was found."""

    queue: QueueSpec
    trace: Trace
    violation: Violation
    unreduced: int


def report(
    finding: Finding, adapter: str, seed: int, folder: Path = FOLDER, expected: ExpectedFailure | None = None
) -> FailureResult:
    """Write the scenario file and tell the story, which says so if there can be no file; `expected` is what excuses it,
    if anything does.
    """
    own = {finding.queue.key: finding.queue}
    path: str | None = None
    try:
        path = str(write(scenario_of(finding, adapter, seed), folder / "failures", lambda adapters: own))
        command = f"fencepost replay {path} --adapter={adapter}"
    except OSError as error:
        command = f"not possible, for its file cannot be written below {folder}: {error}"
    violation = finding.violation
    text = story(
        Failure(
            clause=violation.clause,
            reason=violation.reason,
            why=violation.why,
            queue=finding.queue,
            adapter=adapter,
            trace=finding.trace,
            scenario=path,
            replay=command,
            unreduced=finding.unreduced,
        )
    )
    return FailureResult(
        clause=violation.clause,
        reason=violation.reason,
        why=with_attempts_named(violation.why, finding.trace),
        queue=finding.queue.key,
        scenario=path,
        length=finding.trace.length,
        story=text,
        expected=expected,
    )


def scenario_of(finding: Finding, adapter: str, seed: int) -> Scenario:
    """The finding as a scenario file: it expects what a right queue answers."""
    violation = finding.violation
    return Scenario(
        id="found",
        clause=violation.clause,
        queue=finding.queue.key,
        title=CLAUSES[violation.clause].title,
        trace=finding.trace,
        adapters=(adapter,) if finding.trace.schedule is not None else None,
        source="found",
        found=Found(adapter, seed, violation.reason, with_attempts_named(violation.why, finding.trace)),
        expected=expectations(finding.trace, finding.queue),
    )


def expectations(trace: Trace, spec: QueueSpec) -> dict[int, Expected]:
    """What each sequential step must answer: what was observed, and for the one that broke the clause whatever the
    model calls legal. When a job is due again is left to the queue.
    """
    world, binding, naming = World(spec), Binding(), Naming()
    expected: dict[int, Expected] = {}
    broken = None if any(trace.lanes) else trace.steps[-1]
    for each in trace.steps:
        try:
            command = binding.bind(each.command, world)
        except Dangling:
            continue
        context = Context(world.now)
        legal = [] if each.outcome is None or each is broken else [each.outcome]
        after = step(world, command, legal[0], context) if legal else None
        if not isinstance(after, Step):
            legal = list(outcomes(world, command, context))
            after = step(world, command, legal[0], context)
            assert isinstance(after, Step), after
        naming.note(each.label, legal[0])
        if not isinstance(command, (c.Advance, c.Crash, c.Enqueue, c.Plant)):
            expected[each.label] = any_of(expectation_of(outcome, naming, due=False) for outcome in legal)
        binding.note(each.label, legal[0])
        world = after.world
    return expected
