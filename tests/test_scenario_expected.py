"""An expectation accepts the outcomes that agree with what it says, and no others."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from fencepost.model import commands as c
from fencepost.model import outcomes as o
from fencepost.model.paths import Binding
from fencepost.scenarios import Expected, loads
from scenario_made import MADE, declared


@pytest.fixture(autouse=True, scope="module")
def everything() -> Iterator[None]:
    with declared():
        yield


HEAD = "fencepost: 1\nid: x\nclause: FENCE-02\nqueue: everything\ntitle: t\n"
STEPS = "steps:\n- {do: enqueue}\n- {do: enqueue}\n- {do: claim, worker: 1, limit: 2, max_claims: 2}\n"


def expecting(step: str, expect: str) -> Expected:
    return loads(f"{HEAD}{STEPS}- {{{step}, expect: {expect}}}").expected[4]


def handles(*ids: c.JobId) -> tuple[c.Handle, ...]:
    return tuple(c.Handle(job, 1, 3) for job in ids)


SWEPT = "{recovered: [{job: 1, status: pending}, {job: 2, status: failed}], count: 2}"
ROWS = (o.RecoveredRow(101, "pending", 50), o.RecoveredRow("job-2", "failed"))


@pytest.mark.parametrize(
    ("step", "expect", "agrees", "differs"),
    [
        ("do: enqueue", "enqueued", [o.Enqueued(1), o.Enqueued(2, 0)], [o.REJECTED, o.CONFLICT]),
        (
            "do: claim, worker: 1",
            "{claimed: [{job: 1}, {job: 2}]}",
            [o.Claimed(handles(101, "job-2")), o.Claimed(handles(101, "job-2"), (101,))],
            [o.Claimed(handles("job-2", 101)), o.Claimed(handles(101)), o.Claimed(), o.HookRaised()],
        ),
        (
            "do: claim, worker: 1",
            "{claimed: [{job: 1}], hooked: [1]}",
            [o.Claimed(handles(101), (101,))],
            [
                o.Claimed(handles(101)),
                o.Claimed(handles(101), ("job-2",)),
                o.Claimed(handles(101), ()),
                o.Claimed(handles(101), (101, 101)),
            ],
        ),
        ("do: complete, handle: 3", "rejected", [o.REJECTED, o.Rejected("stale")], [o.Accepted("succeeded")]),
        (
            "do: fail, handle: 3",
            "{accepted: pending, due: 50}",
            [o.Accepted("pending", 50)],
            [o.Accepted("pending", 51), o.Accepted("pending"), o.Accepted("failed", 50)],
        ),
        (
            "do: complete, handle: 3",
            "{any: [rejected, {accepted: canceled}]}",
            [o.REJECTED, o.Accepted("canceled")],
            [o.Accepted("succeeded"), o.CONFLICT],
        ),
        (
            "do: recover",
            SWEPT,
            [o.Recovered(ROWS, 2), o.Recovered(ROWS[::-1], 2, (101,), True, 5)],
            [o.Recovered(ROWS, 3), o.Recovered(ROWS[:1], 2), o.Recovered((ROWS[0], ROWS[0]), 2)],
        ),
        (
            "do: recover",
            "{recovered: [], count: 0, dml: 0}",
            [o.Recovered(dml=0), o.Recovered()],
            [o.Recovered(dml=1), o.Recovered(ROWS, 2, dml=0)],
        ),
        (
            "do: recover, hook: raise",
            "{hook_raised: [1]}",
            [o.HookRaised((101,))],
            [o.HookRaised(), o.HookRaised((9,))],
        ),
        (
            "do: checkpoint, handle: 3",
            "{checkpointed: {cancel: true}}",
            [o.Checkpointed(True)],
            [o.Checkpointed(False)],
        ),
        ("do: read_artifact, job: 1", "artifact", [o.Artifact(None), o.Artifact("a7")], [o.REJECTED]),
        ("do: read_artifact, job: 1", "{artifact: null}", [o.Artifact(None)], [o.Artifact("a7"), o.Artifact("gone")]),
        (
            "do: read_artifact, job: 1",
            "{artifact: 3}",
            [o.Artifact("a7")],
            [o.Artifact("b1"), o.Artifact(None), o.Artifact("gone")],
        ),
        (
            "do: read_artifact, job: 2",
            "{artifact: {step: 3, nth: 1}}",
            [o.Artifact("b1")],
            [o.Artifact("a7"), o.Artifact(None)],
        ),
        ("do: classify, code: X", "{classified: null}", [o.Classified(None)], [o.Classified("LEASE")]),
        (
            "do: atomically, commands: [{do: complete, handle: 3}]",
            "{atomic: [rejected]}",
            [o.Atomic((o.REJECTED,))],
            [o.Atomic(()), o.Atomic((o.Accepted("succeeded"),)), o.REJECTED],
        ),
    ],
)
def test_an_expectation_accepts_what_it_says(
    step: str, expect: str, agrees: list[o.Outcome], differs: list[o.Outcome]
) -> None:
    expected = expecting(step, expect)
    assert [outcome for outcome in agrees if not expected.matches(outcome, MADE)] == []
    assert [outcome for outcome in differs if expected.matches(outcome, MADE)] == []
    assert not expected.matches(None, MADE)


def test_a_job_that_was_never_enqueued_agrees_with_nothing() -> None:
    assert not expecting("do: claim, worker: 1", "{claimed: [{job: 1}]}").matches(o.Claimed(handles(101)), Binding())


def test_an_expectation_describes_itself_in_the_words_of_the_file() -> None:
    expected = expecting("do: complete, handle: 3", "{any: [rejected, {accepted: canceled}]}")
    assert expected.describe() == "rejected or accepted: canceled"
