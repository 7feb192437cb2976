"""Scenario files: what is written is what is read, and shipped files are in their places."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from fencepost.model import commands as c
from fencepost.model import outcomes as o
from fencepost.model.paths import Naming
from fencepost.model.trace import Trace, TraceStep, trace_of
from fencepost.scenarios import Expected, Found, Scenario, ScenarioError, dump, expectation_of, load, loads, write
from fencepost.scenarios.expected import KINDS
from fencepost.scenarios.forms import MOST
from fencepost.scenarios.loader import ANSWERS
from hypothesis import given, settings
from hypothesis import strategies as st
from scenario_made import ATTEMPTS, JOBS, MADE, NAMING, declared, run_of, scenario
from shipped import HAND

PREFIX = (c.Enqueue(), c.Enqueue(1, 60), c.Claim(1, 2, 2))
"""What makes all that `MADE` holds."""


@pytest.fixture(autouse=True, scope="module")
def everything() -> Iterator[None]:
    with declared():
        yield


# What is written is what is read -------------------------------------------------------------------------------------

seconds = st.integers(0, 1000)
workers = st.integers(1, len(c.WORKER_NAMES) - 1)
leases = st.none() | st.integers(1, 1000)
numbers = st.integers(-MOST, MOST)
job_refs = st.sampled_from((c.JobRef(1), c.JobRef(2)))
handle_refs = st.sampled_from((c.HandleRef(3), c.HandleRef(3, 1)))
codes = st.text(max_size=8)
hooks = st.sampled_from((c.Hook("ok"), c.Hook("raise"), c.Hook("cancel"))) | job_refs.map(
    lambda job: c.Hook("poison", job)
)

writes = st.one_of(
    st.builds(c.Renew, handle_refs, leases),
    st.builds(c.Complete, handle_refs),
    st.builds(c.Fail, handle_refs, st.sampled_from(("infra", "content", "cancel", "lease", "limit")), codes),
    st.builds(c.Skip, handle_refs),
    st.builds(c.Release, handle_refs),
    st.builds(c.Acknowledge, handle_refs),
    st.builds(c.RequestCancel, job_refs, st.booleans()),
)
moves = st.builds(c.Advance, seconds) | st.builds(
    c.AdvanceTo, st.sampled_from(("expiry", "due", "deadline")), job_refs, st.integers(-2, 2)
)
acts = st.one_of(
    writes,
    st.builds(c.Enqueue, st.integers(1, 3), seconds, seconds),
    st.builds(c.Claim, workers, seconds, seconds, leases, st.none() | hooks, st.none() | job_refs),
    st.builds(c.Checkpoint, handle_refs),
    st.builds(c.PutArtifact, handle_refs),
    st.builds(c.ReadArtifact, job_refs),
    st.builds(c.Plant, job_refs, st.sampled_from(("deadline", "lease")), numbers),
    st.builds(c.Recover, st.integers(1, 9), st.none() | hooks),
    st.builds(c.Tick, workers),
    st.builds(c.StartUp, st.integers(0, 1)),
    st.just(c.Probe()),
    st.builds(c.Configure, numbers, numbers),
    st.builds(c.Classify, codes),
    st.builds(
        c.Atomically,
        st.lists(writes, min_size=1, max_size=3).map(tuple),
        st.sampled_from(("commit", "rollback", "raise")),
    ),
    st.builds(c.Crash, workers),
)

jobs = st.sampled_from(JOBS)
job_lists = st.lists(jobs, unique=True).map(tuple)
stored = st.sampled_from(("pending", "running", "succeeded", "failed", "canceled", "skipped"))
dues = st.none() | seconds


def answers(command: c.Command) -> st.SearchStrategy[o.Outcome]:
    """Any outcome of a type that the command may answer with."""
    configured = st.just("configured") if isinstance(command, c.Configure) else stored
    rows = st.lists(st.builds(o.RecoveredRow, jobs, stored, dues), unique_by=lambda row: row.job).map(tuple)
    by_kind: dict[str, st.SearchStrategy[o.Outcome]] = {
        "enqueued": st.builds(o.Enqueued, jobs, st.none() | seconds),
        "claimed": st.builds(
            o.Claimed,
            st.lists(st.builds(c.Handle, jobs, workers, dues), unique_by=lambda handle: handle.job).map(tuple),
            st.none() | job_lists,
        ),
        "accepted": st.builds(o.Accepted, configured, dues),
        "rejected": st.builds(o.Rejected, codes),
        "cancel_answer": st.builds(o.CancelAnswer, st.sampled_from(("cancelled", "recorded", "terminal"))),
        "recovered": st.builds(o.Recovered, rows, seconds, st.none() | job_lists, st.booleans(), dues),
        "artifact": st.builds(o.Artifact, st.none() | st.sampled_from(ATTEMPTS)),
        "checkpointed": st.builds(o.Checkpointed, st.booleans()),
        "probed": st.builds(o.Probed, seconds, seconds),
        "classified": st.builds(o.Classified, st.none() | codes),
        "done": st.just(o.DONE),
        "conflict": st.just(o.CONFLICT),
        "hook_raised": st.builds(o.HookRaised, job_lists),
        "unknown": st.just(o.UNKNOWN),
    }
    if isinstance(command, c.Atomically):
        by_kind["atomic"] = st.tuples(*map(answers, command.commands)).map(o.Atomic)
    return st.one_of([by_kind[kind] for kind in ANSWERS[type(command)]])


@st.composite
def scenarios(draw: st.DrawFn) -> Scenario:
    sequences = [[*PREFIX, *draw(st.lists(acts | moves, max_size=4))]]
    schedule = None
    if draw(st.booleans()):
        lanes = st.lists(acts, min_size=1, max_size=3)
        sequences += [draw(st.lists(moves, max_size=2)), draw(lanes), draw(lanes)]
        schedule = draw(st.none() | st.text("12", min_size=1))
    label = 0
    numbered: list[tuple[TraceStep, ...]] = []
    expected: dict[int, Expected] = {}
    for commands in sequences:
        steps = []
        for command in commands:
            label += 1
            steps.append(TraceStep(label, command))
            if draw(st.booleans()):
                said = [expectation_of(outcome, NAMING) for outcome in draw(st.lists(answers(command), max_size=2))]
                if said:
                    expected[label] = said[0] if len(said) == 1 else Expected("any", (("choices", tuple(said)),))
        numbered.append(tuple(steps))
    words = st.text(st.characters(codec="utf-8", exclude_categories=("Cs", "Cc", "Cn")) | st.just("\n"), min_size=1)
    return scenario(
        Trace(numbered[0], tuple(numbered[1:]), schedule),
        title=draw(words),
        adapters=("sqlite", "their.queue:Adapter") if schedule else None,
        source=draw(words),
        found=draw(st.none() | st.builds(Found, words, st.none() | st.integers(), words, words)),
        expected=expected,
    )


@settings(max_examples=150, deadline=None)
@given(scenarios())
def test_what_is_written_is_what_is_read(made: Scenario) -> None:
    text = dump(made)
    assert loads(text) == made
    assert dump(loads(text)) == text


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_an_outcome_agrees_with_its_own_expectation(data: st.DataObject) -> None:
    outcome = data.draw(acts.flatmap(answers))
    assert expectation_of(outcome, NAMING).matches(outcome, MADE)


def test_every_command_and_every_outcome_can_be_written() -> None:
    assert set(ANSWERS) == set(c.COMMANDS)
    assert {kind.type for kind in KINDS.values()} == set(o.OUTCOMES)
    assert {kind for kinds in ANSWERS.values() for kind in kinds} == set(KINDS)


def test_a_step_is_one_line_without_defaults() -> None:
    made = scenario(
        trace_of(c.Enqueue(), c.Claim(2), c.AdvanceTo("expiry", c.JobRef(1)), c.Complete(c.HandleRef(2))),
        expected={
            2: expectation_of(o.Claimed((c.Handle(7, 2, 9),)), run_of(o.Enqueued(7))[1]),
            4: expectation_of(o.Rejected("late"), Naming()),
        },
    )
    assert dump(made).splitlines()[6:] == [
        "steps:",
        "  - {do: enqueue}",
        "  - {do: claim, worker: 2, expect: {claimed: [{job: 1}]}}",
        "  - {do: advance_to, instant: expiry, job: 1}",
        "  - {do: complete, handle: 2, expect: rejected}",
    ]


def test_what_only_some_queues_know_is_written_in_a_line_too() -> None:
    job = c.JobRef(1)
    made = scenario(
        trace_of(
            c.Enqueue(deadline_in=60), c.Plant(job, "deadline", -5), c.Claim(1, job=job), c.PutArtifact(c.HandleRef(3)),
            c.ReadArtifact(job), c.AdvanceTo("deadline", job), c.Skip(c.HandleRef(3)),
        ),
        expected={5: expectation_of(o.Artifact(None), Naming()), 7: expectation_of(o.Accepted("skipped"), Naming())},
    )  # fmt: skip
    assert dump(made).splitlines()[7:] == [
        "  - {do: enqueue, deadline_in: 60}",
        "  - {do: plant, job: 1, field: deadline, seconds: -5}",
        "  - {do: claim, worker: 1, job: 1}",
        "  - {do: put_artifact, handle: 3}",
        "  - {do: read_artifact, job: 1, expect: {artifact: null}}",
        "  - {do: advance_to, instant: deadline, job: 1}",
        "  - {do: skip, handle: 3, expect: {accepted: skipped}}",
    ]
    assert loads(dump(made)) == made


def test_a_default_that_a_file_spelled_out_is_left_out() -> None:
    # Commands are kept, so the first to make one decides which of two equal strings it holds.
    code = "".join(("PAGE_VALIDATION", "_FAILED"))
    fail = c.Fail(c.HandleRef(777), "content", code)
    made = scenario(Trace((TraceStep(776, c.Enqueue()), TraceStep(777, c.Claim(1)), TraceStep(778, fail))))
    assert dump(made).splitlines()[-1] == "  - {do: fail, handle: 2}"


def test_a_shortened_trace_is_numbered_anew() -> None:
    claimed = o.Claimed((c.Handle(1, 1, "a"),))
    commands = c.Enqueue(), c.Claim(1), c.Complete(c.HandleRef(9)), c.ReadArtifact(c.JobRef(4))
    steps = tuple(TraceStep(label, command) for label, command in zip((4, 9, 12, 17), commands, strict=True))
    naming = Naming()
    naming.note(4, o.Enqueued(1))
    naming.note(9, claimed)
    expected = {9: expectation_of(claimed, naming), 17: expectation_of(o.Artifact("a"), naming)}
    made = scenario(Trace(steps), expected=expected)
    read = loads(dump(made))
    assert dump(made).splitlines()[-1] == "  - {do: read_artifact, job: 1, expect: {artifact: 2}}"
    assert [step.label for step in read.trace.steps] == [1, 2, 3, 4]
    assert read.trace.steps[2].command == c.Complete(c.HandleRef(2))
    assert read.expected[2].matches(o.Claimed((c.Handle(5, 1),)), run_of(o.Enqueued(5))[0])


@pytest.mark.parametrize(
    "command", [c.Complete(c.HandleRef(2)), c.Complete(c.Handle(1, 1)), c.Claim(1, hook=c.Hook("poison", c.JobRef(3)))]
)
def test_what_only_a_run_knows_is_not_written(command: c.Command) -> None:
    with pytest.raises(ScenarioError, match=r"made-up: .*(does not hold|bound to a run)"):
        dump(scenario(trace_of(command)))


# Files ---------------------------------------------------------------------------------------------------------------

STORY = trace_of(c.Enqueue(), c.Claim(1), c.Complete(c.HandleRef(2)))


def test_a_found_scenario_is_named_by_its_content_and_written_once(tmp_path: Path) -> None:
    folder = tmp_path / "new"
    path = write(scenario(STORY, found=Found("sqlite", 7)), folder)
    assert path.parent == folder
    assert path.stem == load(path).id
    assert len(path.stem) == len("FENCE-02-") + 4
    inode = path.stat().st_ino
    assert write(scenario(STORY, found=Found("sqlite", 7)), folder) == path
    assert path.stat().st_ino == inode, "an identical file stays untouched"
    assert write(scenario(STORY, found=Found("pg", 8)), folder) == path, "the same story has one file"
    assert load(path).found == Found("pg", 8)
    assert write(scenario(trace_of(c.Enqueue()), found=Found("pg")), folder) != path
    assert len(list(folder.iterdir())) == 2, "no temporary file stays behind"


def test_another_file_in_the_way_is_kept(tmp_path: Path) -> None:
    found = scenario(STORY, found=Found("pg"))
    path = write(found, tmp_path)
    path.write_text("damaged: [")
    longer = write(found, tmp_path)
    assert longer.stem.startswith(path.stem)
    assert load(longer).trace == STORY
    assert path.read_text() == "damaged: ["


def test_a_hand_written_scenario_is_named_by_its_id(tmp_path: Path) -> None:
    assert write(scenario(STORY), tmp_path) == tmp_path / "made-up.yaml"


@pytest.mark.parametrize("path", HAND, ids=lambda path: path.stem)
def test_a_shipped_file_is_in_its_place_and_in_the_one_form(path: Path) -> None:
    read = load(path)
    assert path.read_text(encoding="utf-8") == dump(read)
    assert path.stem == read.id
    assert read.id.startswith(f"{read.clause}-")
    every_order = read.trace.schedule is None and any(read.trace.lanes)
    assert read.expected or every_order, "a scenario without expectations says nothing"
