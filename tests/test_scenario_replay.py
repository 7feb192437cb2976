"""Replays of scenario files: what passes, what fails, and what is neither."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from fencepost.adapters.contract import Adapter
from fencepost.adapters.memory import MemoryAdapter
from fencepost.adapters.reference.adapter import SqliteAdapter
from fencepost.conformance.findings import Finding, expectations, scenario_of
from fencepost.conformance.replay import Replayed, replay, told
from fencepost.model import commands as c
from fencepost.model import outcomes as o
from fencepost.model.queues import BACKFILL, BUILD, QUEUES
from fencepost.model.trace import Trace, TraceStep
from fencepost.model.world import Violation
from fencepost.scenarios import Scenario, dump, loads
from planted_queues import Late
from shipped import SHIPPED, Sessions, mutated


@pytest.fixture
def sessions() -> Iterator[Sessions]:
    with Sessions() as opened:
        yield opened


def file(clause: str, *steps: str, queue: str = "backfill", race: str = "", adapters: str = "[sqlite]") -> Scenario:
    listed = "".join(f"- {{{step}}}\n" for step in steps)
    head = f"fencepost: 1\nid: x\nclause: {clause}\nqueue: {queue}\ntitle: t\nadapters: {adapters}\n"
    return loads(f"{head}steps:\n{listed}{race}")


ENQUEUE = "do: enqueue"
CLAIM = "do: claim, worker: 1"


def two_claims(first: str = "", second: str = "", schedule: str | None = "111122") -> str:
    """Worker 1 claims, and then worker 2, as one schedule of SQLite's statements; without one, in every order."""
    lanes = f"[{{{CLAIM}{first}}}], [{{do: claim, worker: 2{second}}}]"
    return f"together: {{actors: [{lanes}]}}\n" + (f"schedule: '{schedule}'\n" if schedule else "")


# Diverged ------------------------------------------------------------------------------------------------------------


def test_what_a_lane_answers_is_compared_with_what_the_file_expects(sessions: Sessions) -> None:
    nothing, job = ", expect: {claimed: []}", ", expect: {claimed: [{job: 1}]}"
    right = sessions.right("backfill")
    assert replay(right, file("CLAIM-06", ENQUEUE, race=two_claims(job, nothing))).verdict == "pass"
    other = replay(right, file("CLAIM-06", ENQUEUE, race=two_claims(nothing, job)))
    assert (other.verdict, other.why) == ("diverged", "step 2: expected claimed: [], got claimed: [{job: 1}]")


def test_what_is_answered_before_the_lanes_is_compared_too(sessions: Sessions) -> None:
    steps = ENQUEUE, ENQUEUE, f"{CLAIM}, expect: {{claimed: []}}"
    other = replay(sessions.right("backfill"), file("CLAIM-06", *steps, race=two_claims()))
    assert (other.verdict, other.why) == ("diverged", "step 3: expected claimed: [], got claimed: [{job: 1}]")


def test_a_step_that_could_not_run_says_why(sessions: Sessions) -> None:
    right = sessions.right("backfill")
    steps = (ENQUEUE, CLAIM, "do: advance_to, instant: expiry, job: 1, offset: -300")
    assert replay(right, file("CLAIM-01", *steps)).why == "step 3 could not run: job 1's expiry is not ahead"
    before = replay(right, file("CLAIM-06", *steps, race=two_claims()))
    assert (before.verdict, before.why) == ("diverged", "step 3 could not run: job 1's expiry is not ahead")
    lane = "together: {actors: [[{do: claim, worker: 1}, {do: complete, handle: 3, expect: rejected}]]}\n"
    beside = replay(right, file("CLAIM-01", ENQUEUE, CLAIM, race=lane + "schedule: '111'\n"))
    assert beside.why == "step 4 could not run: what it refers to was not made, or its instant was not ahead"


def test_both_sides_of_a_difference_are_in_the_words_of_the_file(sessions: Sessions) -> None:
    steps = ("do: advance, seconds: 1", ENQUEUE, f"{CLAIM}, expect: {{claimed: []}}")
    assert replay(sessions.right("backfill"), file("CLAIM-01", *steps)).why == (
        "step 3: expected claimed: [], got claimed: [{job: 2}]"
    )


@pytest.mark.parametrize("adapter", [MemoryAdapter, SqliteAdapter])
def test_whose_artifact_is_read_is_compared_whatever_the_queue_calls_its_attempts(
    sessions: Sessions, adapter: type[Adapter]
) -> None:
    def read(expect: str) -> Replayed:
        again = ("do: release, handle: 2", "do: claim, worker: 2", "do: put_artifact, handle: 5")
        last = f"do: read_artifact, job: 1, expect: {expect}"
        steps = (ENQUEUE, CLAIM, "do: put_artifact, handle: 2", *again, "do: complete, handle: 5", last)
        return replay(build, file("FENCE-04", *steps, queue="build", adapters="[memory, sqlite]"))

    build = sessions.of(adapter(), "build")
    assert read("{artifact: 5}").verdict == read("artifact").verdict == "pass"
    assert read("{artifact: 2}").why == "step 8: expected artifact: 2, got artifact: 5"
    assert read("{artifact: null}").why == "step 8: expected artifact: null, got artifact: 5"


# In every order ------------------------------------------------------------------------------------------------------


def test_a_race_without_a_schedule_passes_in_every_order(sessions: Sessions) -> None:
    race = file("CLAIM-06", ENQUEUE, race=two_claims(schedule=None))
    replayed = replay(sessions.right("backfill"), race)
    assert (replayed.verdict, replayed.violation) == ("pass", None)
    line = told(race, BACKFILL, "sqlite", "file.yaml", replayed)
    assert line.endswith("queue backfill, in all 50 orders of its statements")


def test_a_race_that_has_more_orders_than_are_replayed_says_so(
    sessions: Sessions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fencepost.conformance.replay.MOST_ORDERS", 7)
    race = file("CLAIM-06", ENQUEUE, race=two_claims(schedule=None))
    assert replay(sessions.right("backfill"), race).why == "in the first 7 orders of its statements"


def test_one_order_that_breaks_the_clause_is_a_failure_and_is_told(sessions: Sessions) -> None:
    race = file("CLAIM-06", ENQUEUE, race=two_claims(schedule=None))
    replayed = replay(sessions.of(mutated("claim-select-then-update"), "backfill"), race)
    assert (replayed.verdict, replayed.violation and replayed.violation.clause) == ("fail", "CLAIM-06")
    assert replayed.trace.schedule is not None and len(replayed.trace.lanes) == 3


def test_one_order_that_answers_otherwise_diverges_and_is_named(sessions: Sessions) -> None:
    expects = two_claims(", expect: {claimed: [{job: 1}]}", schedule=None)
    replayed = replay(sessions.right("backfill"), file("CLAIM-06", ENQUEUE, race=expects))
    assert replayed.verdict == "diverged"
    assert replayed.why.startswith("in the order ") and replayed.why.endswith(
        "step 2: expected claimed: [{job: 1}], got claimed: []"
    )


# Failed --------------------------------------------------------------------------------------------------------------


def test_a_clause_that_breaks_before_the_lanes_fails_with_its_story(sessions: Sessions) -> None:
    late = file(
        "FENCE-01", ENQUEUE, CLAIM, "do: advance_to, instant: expiry, job: 1", "do: complete, handle: 2",
        race=two_claims(),
    )  # fmt: skip
    replayed = replay(sessions.of(Late(), "backfill"), late)
    assert replayed.verdict == "fail"
    story = told(late, BACKFILL, "late", "file.yaml", replayed)
    assert story.startswith("FENCE-01 ") and "must be rejected: w1's lease has expired" in story


def test_a_handle_that_does_not_last_is_a_failure(sessions: Sessions) -> None:
    lasting = file("CLAIM-13", ENQUEUE, CLAIM, "do: renew, handle: 2")
    assert replay(sessions.right("backfill"), lasting).verdict == "pass"
    replayed = replay(sessions.of(mutated("claim-lazy-handles"), "backfill"), lasting)
    assert (replayed.verdict, replayed.violation and replayed.violation.clause) == ("fail", "CLAIM-13")


# Not exercised -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "scenario",
    [
        file("CLAIM-01", ENQUEUE),
        file("CLAIM-06", ENQUEUE, CLAIM, "do: claim, worker: 2"),
        file("REC-07", ENQUEUE, race=two_claims()),
    ],
    ids=["no step of the clause", "a race told one after the other", "another race"],
)
def test_what_never_tested_its_clause_is_no_pass(sessions: Sessions, scenario: Scenario) -> None:
    replayed = replay(sessions.right("backfill"), scenario)
    assert (replayed.verdict, replayed.violation) == ("not exercised", None)
    line = told(scenario, BACKFILL, "sqlite", "file.yaml", replayed)
    assert line.startswith("not exercised  file.yaml: ") and f"no step of it tests {scenario.clause}" in line


def test_a_check_of_an_earlier_replay_does_not_count(sessions: Sessions) -> None:
    right = sessions.right("backfill")
    assert replay(right, SHIPPED["CLAIM-01-running-job"]).verdict == "pass"
    assert replay(right, file("CLAIM-01", ENQUEUE)).verdict == "not exercised"


# Found ---------------------------------------------------------------------------------------------------------------


def answered(*pairs: tuple[c.Command, o.Outcome]) -> Trace:
    return Trace(tuple(TraceStep(label, *pair) for label, pair in enumerate(pairs, 1)))


CLAIMED = o.Claimed((c.Handle(1, 1),))
LATE_SUCCESS = answered(
    (c.Enqueue(), o.Enqueued(1)),
    (c.Claim(1), CLAIMED),
    (c.RequestCancel(c.JobRef(1)), o.CancelAnswer("recorded")),
    (c.Complete(c.HandleRef(2)), o.Accepted("succeeded")),
)


def test_a_found_file_takes_every_legal_answer_for_the_one_that_was_wrong() -> None:
    found = scenario_of(Finding(BACKFILL, LATE_SUCCESS, Violation("CANCEL-06", "r", "w"), 4), "sqlite", 1)
    assert "{do: complete, handle: 2, expect: {any: [rejected, {accepted: cancelled}]}}" in dump(found)


def test_a_found_file_demands_the_answers_that_led_to_the_fault() -> None:
    expected = expectations(LATE_SUCCESS, QUEUES["backfill"])
    assert [expected[label].describe() for label in (2, 3)] == ["claimed: [{job: 1}]", "cancel_answer: recorded"]


def test_a_found_file_leaves_it_to_the_queue_when_a_job_is_due() -> None:
    token = o.Claimed((c.Handle(1, 1, 1),))
    failed = c.Fail(c.HandleRef(2), "lease", "LEASE_TIMEOUT_RECOVERED")
    begun = ((c.Enqueue(), o.Enqueued(1, 0)), (c.Claim(1), token), (failed, o.Accepted("pending", 77)))
    for trace in (answered(*begun), answered(*begun, (c.Claim(1), o.Claimed()))):
        assert expectations(trace, QUEUES["mutation"])[3].describe() == "accepted: pending"


def test_a_found_file_names_attempts_by_their_claims() -> None:
    mixed_up = answered(
        (c.Enqueue(), o.Enqueued(1)),
        (c.Claim(1), o.Claimed((c.Handle(1, 1, "5b0c"),))),
        (c.Plant(c.JobRef(1), "deadline", 60), o.DONE),
        (c.PutArtifact(c.HandleRef(2)), o.Accepted("running")),
        (c.ReadArtifact(c.JobRef(1)), o.Artifact("5b0c")),
        (c.Fail(c.HandleRef(2)), o.Accepted("failed")),
        (c.ReadArtifact(c.JobRef(1)), o.Artifact("made up")),
    )
    expected = expectations(mixed_up, BUILD)
    assert {label: said.describe() for label, said in expected.items()} == {
        2: "claimed: [{job: 1}]",
        4: "accepted: running",
        5: "artifact: 2",
        6: "accepted: failed",
        7: "artifact: 2 or artifact: null",
    }


def test_a_found_race_demands_what_was_answered_before_it() -> None:
    steps = answered((c.Enqueue(), o.Enqueued(1)), (c.Enqueue(), o.Enqueued(2)), (c.Claim(1, 2, 2), CLAIMED)).steps
    race = Trace(steps, ((), (TraceStep(4, c.Recover(), o.Recovered()),)), "1")
    assert expectations(race, QUEUES["backfill"])[3].describe() == "claimed: [{job: 1}]"


def test_what_was_found_passes_once_all_is_right_though_no_check_is_left_to_make(sessions: Sessions) -> None:
    unreturned = answered((c.Enqueue(), o.Enqueued(1)), (c.Enqueue(), o.Enqueued(2)), (c.Claim(1, 2, 2), CLAIMED))
    finding = Finding(BACKFILL, unreturned, Violation("CLAIM-07", "claim: running but not returned", "w"), 3)
    found = scenario_of(finding, "sqlite", 1)
    assert replay(sessions.right("backfill"), found).verdict == "pass"
    assert replay(sessions.of(mutated("claim-returns-first"), "backfill"), found).verdict == "fail"
