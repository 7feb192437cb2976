"""The failure story: every command and outcome has words, and the whole fits on a screen."""

from __future__ import annotations

import textwrap
from dataclasses import replace
from itertools import product

import pytest
from fencepost.model import commands as c
from fencepost.model import outcomes as o
from fencepost.model.clauses import CLAUSES
from fencepost.model.queues import BACKFILL, MUTATION
from fencepost.model.trace import Trace, TraceStep, trace_of
from fencepost.model.values import value
from fencepost.reports.phrases import COMMAND_PHRASES, OUTCOME_PHRASES
from fencepost.reports.story import Failure, command_phrase, outcome_phrase, story


def told(*pairs: tuple[c.Command, o.Outcome | None]) -> tuple[TraceStep, ...]:
    return tuple(TraceStep(label, command, outcome) for label, (command, outcome) in enumerate(pairs, 1))


def claimed(worker: int, *jobs: int, token: int | None = None) -> o.Claimed:
    return o.Claimed(tuple(c.Handle(job, worker, token) for job in jobs))


SUPERSEDED = Trace(
    told(
        (c.Enqueue(), o.Enqueued(1)),
        (c.Claim(1), claimed(1, 1)),
        (c.Advance(300), o.DONE),
        (c.Recover(), o.Recovered((o.RecoveredRow(1, "pending"),), 1)),
        (c.Claim(2), claimed(2, 1)),
        (c.Complete(c.HandleRef(2)), o.Accepted("succeeded")),
    )
)
FAILURE = Failure(
    clause="FENCE-02",
    reason="superseded",
    why="must be rejected: w1 was superseded at step 4",
    queue=BACKFILL,
    adapter="pg",
    trace=SUPERSEDED,
    scenario=".fencepost/failures/FENCE-02-3f2a.yaml",
    replay="fencepost replay .fencepost/failures/FENCE-02-3f2a.yaml --adapter=pg",
    unreduced=17,
)


def lines_of(text: str) -> list[str]:
    return textwrap.dedent(text).strip("\n").split("\n")


def test_the_story_of_a_superseded_worker() -> None:
    assert story(FAILURE).split("\n") == lines_of(
        """
        FENCE-02  A superseded worker is rejected on every write                 adapter pg · queue backfill
          1  enqueue       → job 1
          2  w1 claims     → job 1, attempt 1, lease until +300 s
          3  clock +300 s
          4  sweep         → job 1 pending
          5  w2 claims     → job 1, attempt 2, lease until +300 s
          6  w1 completes  → accepted, succeeded       ✗ must be rejected: w1 was superseded at step 4
          reduced from 17 commands to 6
          replay: fencepost replay .fencepost/failures/FENCE-02-3f2a.yaml --adapter=pg
        """
    )


def test_the_story_of_two_actors_at_once() -> None:
    trace = Trace(
        told((c.Enqueue(), o.Enqueued(1))),
        (
            (TraceStep(2, c.Advance(1), o.DONE),),
            (TraceStep(3, c.Claim(1), claimed(1, 1)),),
            (
                TraceStep(4, c.Claim(2), claimed(2, 1)),
                TraceStep(5, c.Complete(c.HandleRef(4)), o.Rejected("no such lease")),
            ),
        ),
        "12012112222",
    )
    failure = Failure("CLAIM-01", "claimed twice", "job 1 was claimed by w1 and by w2", MUTATION, "sqlite", trace)
    assert story(failure).split("\n") == lines_of(
        """
        CLAIM-01  Only a pending job can be claimed                          adapter sqlite · queue mutation
          1  enqueue  → job 1
             at once, schedule 12012112222:
             0 clock                       | 1 w1                          | 2 w2
             2  clock +1 s                 | 3  w1 claims → job 1          | 4  w2 claims → job 1
                                           |                               | 5  w2 completes → rejected:
                                           |                               |    no such lease
             0 clock  ··■········
             1 w1     ■··■·■■····
             2 w2     ·■··■··■■■■
             ✗ job 1 was claimed by w1 and by w2
          check: claimed twice
        """
    )


def test_a_lane_without_a_worker_is_the_control_actor() -> None:
    lanes = ((), (TraceStep(2, c.Recover(), None),), (TraceStep(3, c.RequestCancel(c.JobRef(1)), None),))
    text = story(replace(FAILURE, trace=Trace(told((c.Enqueue(), o.Enqueued(1))), lanes)))
    assert "1 control" in text
    assert "2 control" in text


@pytest.mark.parametrize("trace", [Trace(()), Trace((), ((), ())), Trace(SUPERSEDED.steps, ((), ()))])
def test_the_reason_is_told_even_without_steps_or_with_empty_lanes(trace: Trace) -> None:
    text = story(replace(FAILURE, trace=trace))
    assert text.count("✗ must be rejected: w1 was superseded at step 4") == 1
    assert "at once" not in text


def test_every_command_and_every_outcome_has_a_phrase() -> None:
    assert set(COMMAND_PHRASES) == set(c.COMMANDS)
    assert set(OUTCOME_PHRASES) == set(o.OUTCOMES)


def test_a_type_without_a_phrase_is_an_error() -> None:
    @value
    class Sing(c.Command):
        pass

    @value
    class Sung(o.Outcome):
        pass

    with pytest.raises(TypeError, match="Sing"):
        command_phrase(Sing(), trace_of())
    with pytest.raises(TypeError, match="Sung"):
        outcome_phrase(Sung(), trace_of())


HANDLE = c.HandleRef(3)
TWO_JOBS = Trace(
    told(
        (c.Enqueue(), o.Enqueued(1)),
        (c.Enqueue(), o.Enqueued(2)),
        (c.Claim(1, limit=2, max_claims=2), claimed(1, 1, 2)),
        (c.Claim(2), claimed(2)),
        (c.Claim(2), claimed(2)),
    )
)


@pytest.mark.parametrize(
    ("command", "phrase"),
    [
        (c.Enqueue(), "enqueue"),
        (c.Enqueue(1, 5), "enqueue, 1 attempt at most, due in 5 s"),
        (c.Enqueue(deadline_in=60), "enqueue, deadline in 60 s"),
        (c.Claim(1), "w1 claims"),
        (c.Claim(2, limit=5, max_claims=3, lease=60), "w2 claims up to 3, scanning 5 for 60 s"),
        (c.Claim(2, limit=5, job=c.JobRef(2)), "w2 claims job 2"),
        (c.Claim(1, hook=c.Hook("ok")), "w1 claims, with a hook"),
        (c.Claim(1, hook=c.Hook("raise")), "w1 claims, with a hook that raises"),
        (c.Claim(1, hook=c.Hook("cancel")), "w1 claims, with a hook that is cancelled"),
        (c.Renew(HANDLE), "w1 renews job 1"),
        (c.Renew(c.HandleRef(3, 1), 60), "w1 renews job 2 for 60 s"),
        (c.Complete(HANDLE), "w1 completes job 1"),
        (c.Complete(c.HandleRef(4)), "w2 completes (claimed at step 4)"),
        (c.Complete(c.HandleRef(9)), "the holder of step 9 completes"),
        (c.Complete(c.Handle(2, 1, 7)), "w1 completes job 2"),
        (c.Fail(HANDLE, "infra", "RENDER_SERVICE_UNAVAILABLE"), "w1 fails job 1: infra, RENDER_SERVICE_UNAVAILABLE"),
        (c.Skip(HANDLE), "w1 skips job 1"),
        (c.Release(HANDLE), "w1 releases job 1"),
        (c.PutArtifact(HANDLE), "w1 uploads its artifact for job 1"),
        (c.PutArtifact(c.HandleRef(4)), "w2 uploads its artifact (claimed at step 4)"),
        (c.ReadArtifact(c.JobRef(2)), "read the artifact of job 2"),
        (c.Plant(c.JobRef(1), "deadline", 10), "set job 1's deadline to 10 s from now"),
        (c.Plant(c.JobRef(1), "deadline", 0), "set job 1's deadline to now"),
        (c.Plant(c.JobRef(1), "deadline", -5), "set job 1's deadline to 5 s ago"),
        (c.Plant(c.JobRef(2), "lease", 10), "leave a lease on job 2 to 10 s from now"),
        (c.Acknowledge(HANDLE), "w1 acknowledges job 1 as cancelled"),
        (c.Checkpoint(HANDLE), "w1 checks job 1 for a cancel"),
        (c.RequestCancel(c.JobRef(2)), "cancel job 2"),
        (c.RequestCancel(c.JobRef(2), by_parent=True), "parent cancels job 2"),
        (c.RequestCancel(c.JobRef(9)), "cancel the job of step 9"),
        (c.Recover(), "sweep"),
        (
            c.Recover(1, c.Hook("poison", c.JobRef(2))),
            "sweep in batches of 1, with a hook that raises on job 2",
        ),
        (c.Tick(2), "w2 ticks"),
        (c.StartUp(0), "the process of w1 starts up (host-a)"),
        (c.StartUp(1), "the process of w2 starts up (host-b)"),
        (c.Probe(), "look for open transactions"),
        (c.Configure(300, 100), "configure lease 300 s, heartbeat 100 s"),
        (c.Classify("LEASE_LOST"), "classify 'LEASE_LOST'"),
        (
            c.Atomically((c.Renew(HANDLE), c.Complete(HANDLE)), "rollback"),
            "in one transaction: w1 renews job 1; w1 completes job 1; then roll back",
        ),
        (c.Crash(1), "w1 crashes"),
        (c.Advance(300), "clock +300 s"),
        (c.AdvanceTo("expiry", c.JobRef(1), -1), "clock to job 1's lease expiry −1 s"),
        (c.AdvanceTo("expiry", c.JobRef(1), 1), "clock to job 1's lease expiry +1 s"),
        (c.AdvanceTo("due", c.JobRef(2)), "clock to job 2's due instant"),
        (c.AdvanceTo("deadline", c.JobRef(1), -1), "clock to job 1's deadline −1 s"),
    ],
)
def test_commands_in_plain_english(command: c.Command, phrase: str) -> None:
    assert command_phrase(command, TWO_JOBS) == phrase


@pytest.mark.parametrize(
    ("outcome", "phrase"),
    [
        (o.Enqueued(1), "job 1"),
        (o.Claimed(), "nothing"),
        (claimed(1, 1, 2), "job 1; job 2"),
        (claimed(1, 1, token=3), "job 1, token 3"),
        (o.Claimed((c.Handle(1, 1),), (1,)), "job 1"),
        (o.Claimed((c.Handle(1, 1),), (1, 2)), "job 1, hook given job 1, job 2"),
        (o.Accepted("succeeded"), "accepted, succeeded"),
        (o.Accepted("pending", 12), "accepted, pending, due at tick 12"),
        (o.Rejected(), "rejected"),
        (o.Rejected("lease expired"), "rejected: lease expired"),
        (o.CancelAnswer("cancelled"), "cancelled at once"),
        (o.CancelAnswer("recorded"), "request recorded"),
        (o.CancelAnswer("terminal"), "too late, terminal"),
        (o.Recovered(), "nothing recovered"),
        (o.Recovered(dml=1), "nothing recovered, 1 write statement"),
        (o.Recovered((o.RecoveredRow(1, "pending", 5),), 1, (1,), False, 1), "job 1 pending, due at tick 5"),
        (o.Recovered((o.RecoveredRow(1, "failed"),), 2), "job 1 failed, counted as 2"),
        (
            o.Recovered((o.RecoveredRow(1, "pending", 5), o.RecoveredRow(2, "failed")), 2),
            "job 1 pending, due at tick 5; job 2 failed",
        ),
        (
            o.Recovered((o.RecoveredRow(1, "failed"),), 1, (1, 2), True),
            "job 1 failed, a batch rolled back, hook given job 1, job 2",
        ),
        (o.Artifact(None), "no artifact"),
        (o.Artifact(3), "the artifact of token 3"),
        (o.Checkpointed(True), "cancel requested"),
        (o.Checkpointed(False), "no cancel requested"),
        (o.Probed(0, 0), "none, no locks"),
        (o.Probed(1, 2), "1 open, 2 locks"),
        (o.Classified("INFRA"), "INFRA"),
        (o.Classified(None), "no family"),
        (o.Atomic((o.Accepted("running"), o.REJECTED)), "accepted, running; rejected"),
        (o.DONE, "done"),
        (o.CONFLICT, "write conflict, no effect"),
        (o.HookRaised((1,)), "the hook raised (given job 1)"),
        (o.UNKNOWN, "reply lost"),
    ],
)
def test_outcomes_in_plain_english(outcome: o.Outcome, phrase: str) -> None:
    assert outcome_phrase(outcome, TWO_JOBS) == phrase


def test_a_lone_job_with_a_lone_handle_goes_without_saying() -> None:
    assert command_phrase(c.Complete(c.HandleRef(2)), SUPERSEDED) == "w1 completes"


def test_a_process_of_which_no_worker_plays_is_said_to_be_of_others() -> None:
    trace = Trace(told((c.Enqueue(), o.Enqueued(1)), (c.Claim(1), claimed(1, 1)), (c.Claim(3), o.Claimed())))
    assert command_phrase(c.StartUp(0), trace) == "the process of w1 and w3 starts up (host-a)"
    assert command_phrase(c.StartUp(1), trace) == "a process of other workers starts up (host-b)"


def test_the_step_that_failed_tells_only_what_was_answered() -> None:
    """What the contract would have made of a claim is no news of a queue that has just broken it."""
    steps = told((c.Enqueue(), o.Enqueued(1)), (c.Claim(1), claimed(1, 1)), (c.Claim(2), claimed(2, 1, token=7)))
    lines = story(replace(FAILURE, trace=Trace(steps))).split("\n")
    assert lines[2] == "  2  w1 claims  → job 1, attempt 1, lease until +300 s"
    assert lines[3].startswith("  3  w2 claims  → job 1, token 7 ")
    raced = story(replace(FAILURE, trace=Trace(steps[:2], ((), (steps[2],)), "11")))
    assert "  2  w1 claims  → job 1, attempt 1, lease until +300 s" in raced, "what came before the race was legal"


def test_a_released_attempt_is_not_counted_and_tokens_are_told() -> None:
    trace = Trace(
        told(
            (c.Enqueue(), o.Enqueued(1, 0)),
            (c.Claim(1, lease=60), claimed(1, 1, token=1)),
            (c.Atomically((c.Release(c.HandleRef(2)),), "commit"), o.Atomic((o.Accepted("pending"),))),
            (c.Claim(1), claimed(1, 1, token=2)),
            (c.Atomically((c.Release(c.HandleRef(4)),), "rollback"), o.Atomic((o.Accepted("pending"),))),
            (c.Release(c.HandleRef(4)), o.Accepted("pending")),
            (c.Claim(1), claimed(1, 1, token=3)),
            (c.AdvanceTo("expiry", c.JobRef(1)), o.DONE),
            (c.Recover(), o.Recovered((o.RecoveredRow(1, "pending", 50),), 1)),
            (c.AdvanceTo("due", c.JobRef(1)), o.DONE),
            (c.Claim(1), claimed(1, 1, token=5)),
            (c.Complete(c.HandleRef(11)), o.Accepted("succeeded")),
        )
    )
    text = story(replace(FAILURE, queue=MUTATION, trace=trace))
    assert "→ job 1, attempt 1, token 1, lease until +60 s" in text
    assert "→ job 1, attempt 1, token 2, lease until +45 s" in text
    assert "→ job 1, attempt 1, token 3, lease until +45 s" in text
    assert "→ job 1, attempt 2, token 5, lease until +45 s" in text


def test_the_middle_of_a_long_story_is_left_out() -> None:
    steps = told(*[(c.Advance(n), o.DONE) for n in range(1, 60)])
    lines = story(replace(FAILURE, trace=Trace(steps))).split("\n")
    shown = [line for line in lines if "clock +" in line]
    hidden = 59 - len(shown)
    assert f"     … {hidden} steps …" in lines
    assert "clock +1 s" in shown[0]
    assert "clock +59 s" in shown[-1]
    assert "✗ must be rejected" in shown[-1]
    assert len(shown) == 21


def test_twenty_two_steps_are_told_in_full() -> None:
    steps = told(*[(c.Advance(n), o.DONE) for n in range(1, 23)])
    assert "…" not in story(replace(FAILURE, trace=Trace(steps)))


@pytest.mark.parametrize(("length", "lane", "words"), [*product((0, 1, 6, 22, 200), (0, 1, 3, 40), (1, 200))])
def test_no_story_is_longer_than_thirty_lines(length: int, lane: int, words: int) -> None:
    handle = c.HandleRef(1)
    every = c.Atomically((c.Renew(handle), c.Fail(handle), c.Complete(handle), c.Release(handle)) * 2, "raise")
    said = o.Atomic((o.Rejected("the lease has expired"),) * 8)
    prefix = told((c.Claim(1), claimed(1, 1)), *[(every, said)] * length)
    actor = tuple(TraceStep(1000 + n, every, said) for n in range(lane))
    trace = Trace(prefix, ((), actor, actor) if lane else (), "12" * 400 if lane else None)
    text = " ".join(["words"] * words)
    lines = story(replace(FAILURE, trace=trace, why=text, reason=text + "!")).split("\n")
    assert len(lines) <= 30
    assert max(map(len, lines)) <= 100
    assert any("✗ words" in line for line in lines)
    assert lines[-1].startswith("  replay: ")


@pytest.mark.parametrize("clause", CLAUSES)
def test_every_title_is_told_whole(clause: str) -> None:
    lines = story(replace(FAILURE, clause=clause)).split("\n")
    assert lines[0].startswith(f"{clause}  {CLAUSES[clause].title}")
    assert "adapter pg · queue backfill" in lines[0] + lines[1]


def test_the_scenario_is_named_once() -> None:
    assert "scenario:" not in story(FAILURE)
    assert "  scenario: .fencepost/failures/FENCE-02-3f2a.yaml" in story(replace(FAILURE, replay=None))
