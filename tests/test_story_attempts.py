"""Stories of queues that name their attempts: ids are counted and never told, leases end at deadlines."""

from __future__ import annotations

import re
import textwrap
from dataclasses import replace
from pathlib import Path

import pytest
from fencepost.conformance.findings import Finding, report
from fencepost.model import commands as c
from fencepost.model import outcomes as o
from fencepost.model.queues import BUILD, MUTATION, QueueSpec
from fencepost.model.trace import Trace, TraceStep
from fencepost.model.world import Violation
from fencepost.reports.phrases import outcome_phrase, with_attempts_named
from fencepost.reports.story import Failure, story
from fencepost.scenarios import load

IDS = ("5b0c2f4e-91d7", "host-a:1:w1#2", "c4f1")


def told(*pairs: tuple[c.Command, o.Outcome | None]) -> Trace:
    return Trace(tuple(TraceStep(label, command, outcome) for label, (command, outcome) in enumerate(pairs, 1)))


def claimed(*handles: tuple[c.JobId, c.Token]) -> o.Claimed:
    return o.Claimed(tuple(c.Handle(job, 1, token) for job, token in handles))


def mixed_up(first: str, second: str) -> Failure:
    """A reader is given what an older attempt has made."""
    trace = told(
        (c.Enqueue(deadline_in=1000), o.Enqueued(1)),
        (c.Claim(1), claimed((1, first))),
        (c.PutArtifact(c.HandleRef(2)), o.Accepted("running")),
        (c.AdvanceTo("expiry", c.JobRef(1)), o.DONE),
        (c.Recover(), o.Recovered((o.RecoveredRow(1, "pending"),), 1)),
        (c.Claim(1), claimed((1, second))),
        (c.ReadArtifact(c.JobRef(1)), o.Artifact(first)),
    )
    why = f"a reader must be given none, was given the artifact of attempt {first}, not {second}"
    return Failure("FENCE-04", "read_artifact: none yet", why, BUILD, "pg", trace)


def test_attempts_are_counted_in_the_order_of_their_claims_and_leases_are_cut() -> None:
    assert story(mixed_up(IDS[0], IDS[1])).split("\n") == textwrap.dedent(
        """\
        FENCE-04  An artifact is stored, promoted and read under the job's current attempt only
                                                                                    adapter pg · queue build
          1  enqueue, deadline in 1000 s         → job 1
          2  w1 claims                           → job 1, attempt 1, lease until +960 s
          3  w1 uploads its artifact (claimed at step 2)  → accepted, running
          4  clock to job 1's lease expiry
          5  sweep                               → job 1 pending
          6  w1 claims                           → job 1, attempt 2, lease until +40 s, its deadline
          7  read the artifact of job 1          → the artifact of attempt 1
             ✗ a reader must be given none, was given the artifact of attempt 1, not attempt 2
          check: read_artifact: none yet"""
    ).split("\n")


def test_a_story_reads_alike_whatever_the_ids() -> None:
    assert story(mixed_up("a7", "a8")) == story(mixed_up("9.1", "9.12")) == story(mixed_up(IDS[0], IDS[2]))


def test_what_is_kept_of_a_failure_names_no_id_either(tmp_path: Path) -> None:
    failure = mixed_up(IDS[0], IDS[1])
    violation = Violation(failure.clause, failure.reason, failure.why)
    kept = report(Finding(BUILD, failure.trace, violation, 7), "pg", 1, tmp_path)
    found = load(kept.scenario).found
    assert found is not None
    assert kept.why == found.why == "a reader must be given none, was given the artifact of attempt 1, not attempt 2"
    everything = kept.model_dump_json() + Path(kept.scenario).read_text(encoding="utf-8")
    assert not any(each in everything for each in IDS)


@pytest.mark.parametrize(
    ("text", "named"),
    [
        (f"token {IDS[0]} was issued before", "attempt 1 was issued before"),
        (f"job 1: token should be {IDS[1]}, is {IDS[0]}", "job 1: token should be attempt 2, is attempt 1"),
        (f"(token {IDS[1]}, not {IDS[0]})", "(attempt 2, not attempt 1)"),
        (f"{IDS[1]}0 and x{IDS[2]} are others", f"{IDS[1]}0 and x{IDS[2]} are others"),
        ("job 3: attempt count should be 3, is 3", "job 3: attempt count should be 3, is 3"),
        ("token 3 was issued before", "attempt 4 was issued before"),
        ("that of attempt gone, or of gone.", "that of an unknown attempt, or of an unknown attempt."),
        ("w1's lease has expired", "w1's lease has expired"),
    ],
)
def test_ids_are_found_in_what_the_judge_says(text: str, named: str) -> None:
    trace = told(
        (c.Claim(1, 9, 9), claimed((1, IDS[0]), (2, IDS[1]), (3, IDS[2]), (4, "3"))),
        (c.ReadArtifact(c.JobRef(1)), o.Artifact("gone")),
        (c.ReadArtifact(c.JobRef(1)), o.Artifact(IDS[0])),
    )
    assert with_attempts_named(text, trace) == named


def test_an_attempt_that_no_claim_returned_is_unknown() -> None:
    trace = told((c.Claim(1), claimed((1, "a"))), (c.ReadArtifact(c.JobRef(1)), o.Artifact("b")))
    assert outcome_phrase(o.Artifact("b"), trace) == "the artifact of an unknown attempt"
    assert outcome_phrase(o.Artifact("a"), trace) == "the artifact of attempt 1"


def answers(queue: QueueSpec, trace: Trace) -> list[str]:
    """What the story tells of each claim."""
    text = " ".join(story(Failure("FENCE-01", "", "", queue, "pg", trace)).split())
    return re.findall(r" claims[^→]*→ (.*?) (?=\d+ [a-z]\S+ )", text)


def test_a_lease_that_ends_at_the_deadline_says_so_wherever_the_clock_has_come_from() -> None:
    job, first, later = c.JobRef(1), c.HandleRef(3), c.HandleRef(10)
    trace = told(
        (c.Enqueue(9, 20, 500), o.Enqueued(1)),
        (c.AdvanceTo("due", job, 1), o.DONE),  # +21
        (c.Claim(1, lease=100), claimed((1, "a"))),
        (c.Advance(50), o.DONE),  # +71
        (c.Renew(first, 200), o.Accepted("running")),
        (c.AdvanceTo("expiry", job, -1), o.DONE),  # +270
        (c.Fail(first, "lease", "PAGE_JOB_INTERRUPTED"), o.Accepted("pending", 290)),
        (c.AdvanceTo("due", job), o.DONE),  # +290
        (c.Enqueue(), o.Enqueued(2)),
        (c.Claim(1, 2, 2), claimed((1, "b"), (2, "c"))),
        (c.Plant(job, "deadline", 5), o.DONE),
        (c.AdvanceTo("deadline", job, -1), o.DONE),  # +294
        (c.Release(later), o.Accepted("pending")),
        (c.Claim(1, job=job), claimed((1, "d"))),
        (c.Plant(job, "deadline", 9), o.DONE),
        (c.AdvanceTo("expiry", job), o.DONE),  # +295
        (c.Recover(), o.Recovered((o.RecoveredRow(1, "pending", 300),), 1)),
        (c.AdvanceTo("due", job), o.DONE),  # +300
        (c.Plant(job, "deadline", 1000), o.DONE),
        (c.Claim(1), claimed((1, "e"))),
        (c.Complete(c.HandleRef(20)), o.REJECTED),
    )
    assert answers(replace(BUILD, lease_seconds=300, heartbeat_seconds=100, backoff_seconds=5), trace) == [
        "job 1, attempt 1, lease until +100 s",
        "job 1, attempt 2, lease until +210 s, its deadline; job 2, attempt 3, lease until +300 s",
        "job 1, attempt 4, lease until +1 s, its deadline",
        "job 1, attempt 5, lease until +300 s",
    ]


def test_what_comes_after_an_answer_that_was_not_legal_tells_only_what_was_answered() -> None:
    trace = told(
        (c.Enqueue(), o.Enqueued(1, 0)),
        (c.Claim(1), claimed((1, 7))),
        (c.Claim(1), claimed((1, 1))),
        (c.Complete(c.HandleRef(3)), o.REJECTED),
    )
    assert answers(MUTATION, trace) == ["job 1, token 7", "job 1, token 1"]
