"""Replays of scenario files: what passes, what fails, and what is neither. The shipped files test what they say."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from fencepost.adapters import memory_store
from fencepost.adapters.contract import Adapter
from fencepost.adapters.memory import MemoryAdapter
from fencepost.adapters.mutants.catalogue import MUTANTS
from fencepost.adapters.reference.adapter import PostgresAdapter, SqliteAdapter
from fencepost.adapters.reference.rules import CONTRACT
from fencepost.conformance.findings import Finding, expectations, scenario_of
from fencepost.conformance.replay import Replayed, replay, told
from fencepost.conformance.session import Session
from fencepost.model import commands as c
from fencepost.model import outcomes as o
from fencepost.model.queues import BACKFILL, BUILD, QUEUES
from fencepost.model.trace import Trace, TraceStep
from fencepost.model.world import Violation
from fencepost.scenarios import Scenario, dump, load, loads
from planted_queues import Late
from shipped import HAND

SHIPPED = {path.stem: load(path) for path in HAND}
RACES = {name: scenario for name, scenario in SHIPPED.items() if any(scenario.trace.lanes)}
DATABASES: dict[str, type[SqliteAdapter] | type[PostgresAdapter]] = {"sqlite": SqliteAdapter, "pg": PostgresAdapter}


class Sessions(ExitStack):
    """Adapters that are open while a test runs, one for each queue."""

    def __init__(self) -> None:
        super().__init__()
        self._right: dict[str, Session] = {}

    def of(self, adapter: Adapter, queue: str) -> Session:
        return self.enter_context(Session(adapter, QUEUES[queue]))

    def right(self, queue: str) -> Session:
        """The contract's own queue on SQLite."""
        if queue not in self._right:
            self._right[queue] = self.of(SqliteAdapter(), queue)
        return self._right[queue]


@pytest.fixture
def sessions() -> Iterator[Sessions]:
    with Sessions() as opened:
        yield opened


def mutated(name: str, database: str = "sqlite") -> Adapter:
    (mutant,) = [mutant for mutant in MUTANTS if mutant.id == name]
    return DATABASES[database](rules=mutant.change(CONTRACT))


def file(clause: str, *steps: str, queue: str = "backfill", race: str = "", adapters: str = "[sqlite]") -> Scenario:
    listed = "".join(f"- {{{step}}}\n" for step in steps)
    head = f"fencepost: 1\nid: x\nclause: {clause}\nqueue: {queue}\ntitle: t\nadapters: {adapters}\n"
    return loads(f"{head}steps:\n{listed}{race}")


ENQUEUE = "do: enqueue"
CLAIM = "do: claim, worker: 1"


def two_claims(first: str = "", second: str = "") -> str:
    """Worker 1 claims, and then worker 2, as one schedule of SQLite's statements."""
    lanes = f"[{{{CLAIM}{first}}}], [{{do: claim, worker: 2{second}}}]"
    return f"together: {{actors: [{lanes}]}}\nschedule: '111122'\n"


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
        steps = (ENQUEUE, CLAIM, "do: put_artifact, handle: 2", *again, last)
        return replay(build, file("FENCE-04", *steps, queue="build", adapters="[memory, sqlite]"))

    build = sessions.of(adapter(), "build")
    assert read("{artifact: 5}").verdict == read("artifact").verdict == "pass"
    assert read("{artifact: 2}").why == "step 7: expected artifact: 2, got artifact: 5"
    assert read("{artifact: null}").why == "step 7: expected artifact: null, got artifact: 5"


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


# The shipped files ---------------------------------------------------------------------------------------------------


def test_every_shipped_file_has_a_check_with_teeth_of_its_clause(sessions: Sessions) -> None:
    toothless = []
    for name, scenario in SHIPPED.items():
        if name not in RACES:
            session = sessions.right(scenario.queue)
            session.driver.tally.clear()
            assert session.play(scenario.trace).violation is None
            if not any(check.teeth and check.clause == scenario.clause for check in session.driver.tally):
                toothless.append(name)
    assert toothless == []


@pytest.mark.parametrize("delay", [1, 100_000])
def test_no_shipped_file_depends_on_how_long_a_queue_backs_off(
    sessions: Sessions, monkeypatch: pytest.MonkeyPatch, delay: int
) -> None:
    monkeypatch.setattr(memory_store, "DELAYS", (delay,))
    opened = {queue: sessions.of(MemoryAdapter(), queue) for queue in QUEUES}
    sequential = {name: scenario for name, scenario in SHIPPED.items() if name not in RACES}
    verdicts = {name: replay(opened[scenario.queue], scenario) for name, scenario in sequential.items()}
    assert [(name, each.why) for name, each in verdicts.items() if each.verdict != "pass"] == []


WRONG = {
    "CLAIM-06-both-read-one-job": ("claim-select-then-update", "claim-loser-acts"),
    "CLAIM-11-nobody-waits": ("claim-waits",),
    "CLAIM-14-locked-head": (),
    "CANCEL-09-between-read-and-claim": ("claim-select-then-update", "claim-loser-acts"),
    "CANCEL-09-before-a-completion-commits": ("complete-after-cancel",),
    "REC-07-finished-after-the-sweep-read-it": ("recover-by-id",),
    "REC-07-two-sweepers-at-once": ("recover-by-id",),
    "REC-02-renewed-after-the-sweep-read-it": ("recover-by-id", "recover-over-renewal"),
}
"""The faults that each shipped race shows. A queue that takes the limit before the lock sends fewer statements than the
contract's, so that no schedule of CLAIM-14 fits both: there it diverges."""


def test_every_shipped_race_names_the_fault_that_it_shows() -> None:
    assert WRONG.keys() == RACES.keys()
    assert {scenario.clause for scenario in RACES.values()} == {
        "CLAIM-06", "CLAIM-11", "CLAIM-14", "CANCEL-09", "REC-02", "REC-07",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("name", "database"),
    [(name, database) for name, scenario in RACES.items() for database in scenario.adapters or ()],
)
def test_a_shipped_race_passes_on_the_right_queue_and_fails_on_the_wrong_one(
    sessions: Sessions, name: str, database: str
) -> None:
    scenario = RACES[name]

    def played(adapter: Adapter) -> Replayed:
        return replay(sessions.of(adapter, scenario.queue), scenario)

    assert played(DATABASES[database]()).verdict == "pass"
    for fault in WRONG[name]:
        replayed = played(mutated(fault, database))
        assert (fault, replayed.violation and replayed.violation.clause) == (fault, scenario.clause)


def test_a_queue_that_lets_a_locked_head_starve_the_rest_does_not_pass(sessions: Sessions) -> None:
    session = sessions.of(mutated("claim-limit-before-lock", "pg"), "backfill")
    assert replay(session, RACES["CLAIM-14-locked-head"]).verdict == "diverged"
