"""Artifacts before the judge: only the current attempt's is stored and read, and what a job refers to stays."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from fencepost.model import commands as c
from fencepost.model import outcomes as o
from fencepost.model.queues import BUILD
from fencepost.model.step import step
from fencepost.model.world import Context, Record, World
from judging import ATTEMPT, NOW, broken, build, checks_of, judge, judged, record, row_of, unheld

MINE, OLDER = "two", "one"
PUT = c.PutArtifact(ATTEMPT)
ACCEPTED = o.Accepted("running")


def stored(**changes: Any) -> Record:
    """Worker 1's second attempt has stored its artifact, the first one's handle is still about."""
    return build(**{"artifact": MINE, "issued": ((2, OLDER), (1, MINE)), **changes})


def kept(job: Record) -> tuple[str, str]:
    """What a refused upload tests whose object the job refers to."""
    return "FENCE-07", f"put_artifact: refused, and the {job.status} job refers to its key"


# ------------------------------------------------------------------------------------------------------------- stored


def test_the_holder_stores_its_artifact() -> None:
    job = build()
    right = row_of(job, artifact=MINE)
    assert checks_of(judged(job, PUT, ACCEPTED, right))["FENCE-04", "put_artifact: stored"]
    assert broken(judged(job, PUT, ACCEPTED, row_of(job, artifact=OLDER))) == ("FENCE-04", "put_artifact: running row")
    assert broken(judged(job, PUT, o.Accepted("succeeded"), right)) == ("FENCE-04", "put_artifact: stored")
    assert broken(judged(job, PUT, o.REJECTED)) == ("FENCE-01", "put_artifact: held")
    assert broken(judged(job, PUT, ACCEPTED)) == ("FENCE-06", "put_artifact: running row"), "nothing was stored"


def test_the_holder_may_store_it_again() -> None:
    job = stored()
    assert checks_of(judged(job, PUT, ACCEPTED))["FENCE-04", "put_artifact: stored"] is False, "who could tell?"
    assert broken(judged(job, PUT, o.REJECTED)) == ("FENCE-01", "put_artifact: held")
    assert broken(judged(job, PUT, ACCEPTED, row_of(job, artifact=None))) == ("FENCE-04", "put_artifact: running row")


LATE: dict[str, tuple[dict[str, Any], str]] = {
    "older token": ({"token": "three", "issued": ((1, MINE), (1, "three"))}, "FENCE-04"),
    "another owner": ({"owner": 2, "token": "three", "issued": ((1, MINE), (2, "three"))}, "FENCE-02"),
    "pending again": (unheld("pending"), "FENCE-02"),
    "terminal, succeeded": (unheld("succeeded"), "TERM-02"),
    "expired in this tick": ({"expires": NOW}, "FENCE-01"),
    "deadline passed": ({"deadline": NOW}, "DEAD-01"),
}


@pytest.mark.parametrize("name", LATE)
def test_a_late_upload_that_is_promoted_breaks_its_row_of_the_table_whatever_is_answered(name: str) -> None:
    changes, clause = LATE[name]
    job = build(**changes)
    promoted = row_of(job, artifact=MINE)
    for answer in (ACCEPTED, o.REJECTED):
        assert broken(judged(job, PUT, answer, promoted)) == (clause, f"put_artifact: {name}")
    assert broken(judged(job, PUT, ACCEPTED)) == ("FENCE-06", "put_artifact: a rejection says so")
    assert kept(job) not in checks_of(judged(job, PUT, o.REJECTED)), "the job refers to no artifact"


# --------------------------------------------------------------------------------------------------------- cleaned up

ENDINGS: dict[str, dict[str, Any]] = {
    "expired": {"expires": NOW},
    "deadline passed": {"deadline": NOW},
    "pending again": unheld("pending"),
    "succeeded": unheld("succeeded"),
    "failed": unheld("failed"),
}


@pytest.mark.parametrize("name", ENDINGS)
def test_a_late_upload_repeated_deletes_nothing_that_the_job_refers_to(name: str) -> None:
    job = stored(**ENDINGS[name])
    assert checks_of(judged(job, PUT, o.REJECTED))[kept(job)]
    assert broken(judged(job, PUT, o.REJECTED, row_of(job, artifact=None))) == kept(job)
    moved = broken(judged(job, PUT, o.REJECTED, row_of(job, attempts=9)))
    assert moved[0] != "FENCE-07" and moved[1].startswith("put_artifact: "), "nothing was deleted"


@pytest.mark.parametrize("name", ["pending again", "failed"])
def test_what_a_job_has_lost_nobody_can_delete(name: str) -> None:
    """A job that is to run again, or has failed, may have lost its artifact with its attempt."""
    job = stored(**ENDINGS[name])
    lost = row_of(job, artifact=None, token=None)
    world = World(BUILD, NOW, (job,), (lost,))
    assert kept(job) not in checks_of(step(world, PUT, o.REJECTED, Context(NOW, False, (lost,))))
    changed = step(world, PUT, o.REJECTED, Context(NOW, False, (lost._replace(attempts=9),)))
    assert broken(changed)[0] == ("TERM-02" if name == "failed" else "FENCE-02")


def test_another_attempts_upload_that_deletes_the_artifact_breaks_its_own_row_of_the_table() -> None:
    job, put = stored(), c.PutArtifact(c.Handle(1, 2, OLDER))
    assert kept(job) not in checks_of(judged(job, put, o.REJECTED))
    gone, over = (
        row_of(job, artifact=None),
        ("FENCE-02", "put_artifact: another owner, over another attempt's artifact"),
    )
    assert checks_of(judged(job, put, o.REJECTED, row_of(job)))[over]
    assert broken(judged(job, put, o.REJECTED, gone)) == over
    ended = stored(**unheld("succeeded"))
    assert (
        broken(judged(ended, put, o.REJECTED, row_of(ended, artifact=None)))[1] == "put_artifact: terminal, succeeded"
    )


def test_a_clean_up_that_deletes_another_jobs_artifact_is_told_by_that_job() -> None:
    held, ended = build(expires=NOW), stored(**unheld("succeeded"))
    for other, named in ((stored(), "FENCE-01"), (ended, "TERM-02")):
        rows = row_of(held), row_of(other)
        world = World(BUILD, NOW, (held, other), rows)
        found = step(world, PUT, o.REJECTED, Context(NOW, False, (rows[0], rows[1]._replace(artifact=None))))
        assert broken(found)[0] == named
    assert ("TERM-02", "put_artifact: terminal row") in checks_of(
        step(world, PUT, o.REJECTED, Context(NOW, False, rows))
    )


# --------------------------------------------------------------------------------------------------------------- read

READ = c.ReadArtifact(1)


@pytest.mark.parametrize(
    ("job", "answer", "named"),
    [
        (stored(), MINE, None),
        (stored(), OLDER, "read_artifact: the current attempt's"),
        (stored(), None, None),
        (stored(**unheld("succeeded")), MINE, None),
        (stored(**unheld("succeeded")), None, "read_artifact: the current attempt's"),
        (stored(**unheld("pending")), None, None),
        (stored(**unheld("failed")), None, None),
        (stored(**unheld("failed")), OLDER, "read_artifact: the current attempt's"),
        (stored(artifact=None), None, None),
        (stored(artifact=None), OLDER, "read_artifact: none yet"),
        (stored(artifact=None), MINE, "read_artifact: none yet"),
    ],
)
def test_a_reader_is_given_the_current_attempts_artifact(job: Record, answer: c.Token, named: str | None) -> None:
    found = judged(job, READ, o.Artifact(answer))
    if named is None:
        assert ("FENCE-04", "read_artifact: changes nothing") in checks_of(found)
    else:
        assert broken(found) == ("FENCE-04", named)


def test_a_reader_who_may_be_given_none_tests_little() -> None:
    for job in (stored(**unheld("pending")), stored()):  # lost, or kept back until it succeeds
        found = judged(job, READ, o.Artifact(None))
        assert checks_of(found)["FENCE-04", "read_artifact: the current attempt's"] is False
    new = record(BUILD, **unheld("pending"), token=None, issued=())
    assert checks_of(judged(new, READ, o.Artifact(None)))["FENCE-04", "read_artifact: none yet"] is False, (
        "no attempt yet"
    )
    assert checks_of(judged(stored(), READ, o.Artifact(MINE)))["FENCE-04", "read_artifact: the current attempt's"]


def test_a_look_changes_nothing() -> None:
    job = stored(**unheld("succeeded"))
    for changed in (row_of(job, artifact=None), row_of(job, finished=7)):
        assert broken(judged(job, READ, o.Artifact(MINE), changed)) == ("FENCE-04", "read_artifact: changes nothing")


# ----------------------------------------------------------------------------------------------- lost, or mixed up

ENDS: dict[str, tuple[c.Command, o.Outcome, dict[str, Any]]] = {
    "complete: succeeded row": (c.Complete(ATTEMPT), o.Accepted("succeeded"), unheld("succeeded")),
    "fail: failed row": (c.Fail(ATTEMPT), o.Accepted("failed"), unheld("failed")),
    "fail: pending row": (
        c.Fail(ATTEMPT, "infra", "RENDER_SERVICE_UNAVAILABLE"), o.Accepted("pending"), unheld("pending"),
    ),
    "release: pending row": (c.Release(ATTEMPT), o.Accepted("pending"), {**unheld("pending"), "attempts": 1}),
    "sweep: pending row": (c.StartUp(0), o.Recovered((o.RecoveredRow(1, "pending"),), 1), unheld("pending")),
    "renew: running row": (c.Renew(ATTEMPT), ACCEPTED, {"expires": NOW + 960, "lease": 960}),
}  # fmt: skip


@pytest.mark.parametrize("name", ENDS)
def test_an_artifact_that_is_lost_or_mixed_up_breaks_the_artifacts_fence(name: str) -> None:
    command, answer, after = ENDS[name]
    job = stored()
    right = row_of(job._replace(**after))
    assert checks_of(judged(job, command, answer, right))["FENCE-04", name]
    assert broken(judged(job, command, answer, right._replace(artifact=OLDER))) == ("FENCE-04", name)
    lost = judged(job, command, answer, right._replace(artifact=None))
    if name in ("complete: succeeded row", "renew: running row"):
        assert broken(lost) == ("FENCE-04", name)
    else:
        checks_of(lost)  # nobody needs what an attempt that came to nothing has stored


@pytest.mark.parametrize("name", [name for name in ENDS if name != "renew: running row"])
def test_an_artifact_that_outlives_its_attempts_id_breaks_the_invariant(name: str) -> None:
    command, answer, after = ENDS[name]
    job = stored()
    right = row_of(job._replace(**after))
    assert checks_of(judged(job, command, answer, right))["INV-5", name]
    for token in (None, OLDER):
        assert broken(judged(job, command, answer, right._replace(token=token))) == ("INV-5", name)
    if name != "complete: succeeded row":
        assert judge(job, command, answer, right._replace(token=None, artifact=None)) == "right", "both are gone"
    bare = build()
    without = row_of(bare._replace(**after), token=None)
    assert ("INV-5", name) not in checks_of(judged(bare, command, answer, without)), "it has stored nothing"


def test_a_claim_clears_the_reference_to_the_last_attempts_artifact() -> None:
    job = stored(**unheld("pending"))
    after = build(token="three", expires=NOW + 960, lease=960, attempts=3, issued=(*job.issued, (1, "three")))
    claimed = o.Claimed((c.Handle(1, 1, "three"),))
    right = row_of(after, started=NOW)
    assert judge(job, c.Claim(1), claimed, right) == "right"
    assert broken(judged(job, c.Claim(1), claimed, right._replace(artifact=MINE))) == ("CLAIM-05", "claim: running row")


def test_where_generations_are_counted_a_lost_lease_takes_the_artifact_with_it() -> None:
    spec = replace(BUILD, key="counting", fence="generation")
    job = record(spec, expires=NOW, artifact=2)
    again = job._replace(**unheld("pending"), token=3)
    swept = o.Recovered((o.RecoveredRow(1, "pending"),), 1)
    assert judge(job, c.Recover(), swept, row_of(again, artifact=None)) == "right"
    assert broken(judged(job, c.Recover(), swept, row_of(again, artifact=2))) == ("FENCE-04", "sweep: pending row")
    given_back = job._replace(expires=NOW + 5)
    released = given_back._replace(**unheld("pending"), attempts=1)
    found = judged(given_back, c.Release(c.Handle(1, 1, 2)), o.Accepted("pending"), row_of(released))
    assert ("INV-5", "release: pending row") not in checks_of(found), "another generation would break REL-01"
