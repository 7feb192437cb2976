"""The clause-naming table, row by row: which clause a wrong answer to a write breaks, and for what reason, on every
queue and for every verb by handle.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest
from fencepost.model import commands as c
from fencepost.model import outcomes as o
from fencepost.model.queues import BACKFILL, BUILD, MUTATION, SCREENSHOT, QueueSpec
from fencepost.model.world import Record
from judging import EXPIRY, NOW, STATUS, WRITE_WITH, broken, checks_of, clause_of, judged, record, row_of, unheld

QUEUES = (BUILD, SCREENSHOT, BACKFILL, MUTATION)
NEWER: dict[str, c.Token] = {"owner": None, "generation": 3, "attempt_id": "three"}


class Line(NamedTuple):
    """A row of the table: how the job stands to the handle, and what a wrong answer to each kind of write breaks."""

    name: str
    changes: dict[str, Any]
    renew: str
    write: str
    upload: str

    def clause(self, verb: str) -> str:
        return {"renew": self.renew, "put_artifact": self.upload}.get(verb, self.write)


def refused(spec: QueueSpec) -> Iterator[Line]:
    """The rows in which a write must be refused, in the table's order."""
    newer = NEWER[spec.fence]
    mine = record(spec).issued[0]
    for status in ("succeeded", "failed", "cancelled", "skipped"):
        if spec.spell(status) in spec.terminal:
            yield Line(f"terminal, {status}", unheld(status), "LEASE-02", "TERM-02", "TERM-02")
    yield Line("pending again", unheld("pending"), "LEASE-02", "FENCE-02", "FENCE-02")
    other = {"owner": 2, "token": newer, "issued": (mine, (2, newer))}
    yield Line("another owner", other, "LEASE-02", "FENCE-02", "FENCE-02")
    yield Line("another owner", {"owner": 2}, "LEASE-02", "FENCE-02", "FENCE-02")
    if spec.has_token:
        older = {"token": newer, "issued": (mine, (1, newer))}
        yield Line("older token", older, "FENCE-03", "FENCE-03", "FENCE-04")
    yield Line("expired", {"expires": NOW - 1}, "LEASE-04", "FENCE-01", "FENCE-01")
    yield Line("expired in this tick", {"expires": NOW}, "LEASE-04", "FENCE-01", "FENCE-01")
    if spec.deadline:
        for passed in (NOW - 1, NOW):
            yield Line("deadline passed", {"deadline": passed}, "LEASE-03", "DEAD-01", "DEAD-01")


def verbs(spec: QueueSpec) -> list[str]:
    return [verb for verb in WRITE_WITH if verb in spec.verbs]


def asked(job: Record, verb: str) -> Record:
    """The job as nothing but its standing refuses the write: an acknowledgement needs a request."""
    return job._replace(cancel=50) if verb == "acknowledge" else job


REFUSED = [
    pytest.param(spec, line, verb, id=f"{spec.key}: {verb}: {line.name} {at}")
    for spec in QUEUES
    for at, line in enumerate(refused(spec))
    for verb in verbs(spec)
    if not (spec.repeats_complete and verb == "complete" and line.name == "terminal, succeeded")
]


def test_the_table_has_a_line_for_every_verb_of_every_queue() -> None:
    served = {spec.key: verbs(spec) for spec in QUEUES}
    assert served["build"] == ["renew", "complete", "fail", "release", "put_artifact"]
    assert served["screenshot"] == ["renew", "complete", "fail", "release", "acknowledge", "skip"]
    assert served["backfill"] == served["mutation"] == ["renew", "complete", "fail", "release", "acknowledge"]
    assert len(REFUSED) == 188


@pytest.mark.parametrize(("spec", "line", "verb"), REFUSED)
def test_a_write_that_must_be_refused_names_its_row_of_the_table(spec: QueueSpec, line: Line, verb: str) -> None:
    job = asked(record(spec, **line.changes), verb)
    write = WRITE_WITH[verb](c.Handle(1, 1, record(spec).token))
    named = line.clause(verb), f"{verb}: {line.name}"
    accepted = o.Accepted(spec.spell(STATUS[verb]))
    changed = row_of(job, attempts=9)
    assert checks_of(judged(job, write, o.REJECTED))[named], "counted with teeth"
    final = named == ("DEAD-01", "fail: deadline passed")  # it may be accepted too, if it ends the job
    if not final:
        assert broken(judged(job, write, accepted, changed)) == named
    assert broken(judged(job, write, o.REJECTED, changed)) == named, "rejected, with the row changed"
    silent = "FENCE-06", f"{verb}: a rejection says so"
    unchanged = silent if not final else ("FENCE-06", "fail: failed row")
    assert broken(judged(job, write, accepted)) == unchanged, "accepted, with the row unchanged"
    assert checks_of(judged(job, write, o.REJECTED))[silent]


HELD = [pytest.param(spec, verb, id=f"{spec.key}: {verb}") for spec in QUEUES for verb in verbs(spec)]


@pytest.mark.parametrize(("spec", "verb"), HELD)
@pytest.mark.parametrize(("left", "name"), [(2, "held"), (1, "held in its last tick")])
def test_a_write_of_the_holder_must_be_accepted(spec: QueueSpec, verb: str, left: int, name: str) -> None:
    job = asked(record(spec, expires=NOW + left), verb)
    write = WRITE_WITH[verb](c.Handle(1, 1, job.token))
    clause = "LEASE-03" if verb == "renew" else "FENCE-01"
    assert broken(judged(job, write, o.REJECTED)) == (clause, f"{verb}: {name}")
    silent = judged(job, write, o.Accepted(spec.spell(STATUS[verb])))
    assert clause_of(silent) == "FENCE-06", "the row is unchanged"


@pytest.mark.parametrize(("spec", "verb"), HELD)
@pytest.mark.parametrize(("offset", "valid"), [(-1, True), (0, False), (1, False)])
def test_a_lease_is_valid_until_the_tick_before_its_expiry(
    spec: QueueSpec, verb: str, offset: int, valid: bool
) -> None:
    job = asked(record(spec), verb)
    write = WRITE_WITH[verb](c.Handle(1, 1, job.token))
    now = EXPIRY + offset
    found = judged(job, write, o.REJECTED, now=now)
    if valid:
        assert broken(found)[1] == f"{verb}: held in its last tick"
    else:
        clause = "LEASE-04" if verb == "renew" else "FENCE-01"
        assert checks_of(found)[clause, f"{verb}: {'expired' if offset else 'expired in this tick'}"]


@pytest.mark.parametrize("verb", verbs(BUILD))
@pytest.mark.parametrize(("offset", "valid"), [(-1, True), (0, False), (1, False)])
def test_a_planted_deadline_is_kept_until_the_tick_before_it(verb: str, offset: int, valid: bool) -> None:
    """The lease runs on for a while: it was cut to no such deadline."""
    deadline = EXPIRY - 5
    job = record(BUILD, deadline=deadline)
    write = WRITE_WITH[verb](c.Handle(1, 1, job.token))
    found = judged(job, write, o.REJECTED, now=deadline + offset)
    if valid:
        assert broken(found) == ("LEASE-03" if verb == "renew" else "FENCE-01", f"{verb}: held")
    else:
        assert checks_of(found)["LEASE-03" if verb == "renew" else "DEAD-01", f"{verb}: deadline passed"]


def test_an_expired_lease_outranks_a_deadline_that_has_passed_too() -> None:
    """Leases are cut to deadlines, so that both pass at once where nobody has planted anything."""
    job = record(BUILD, expires=NOW, deadline=NOW)
    write = c.Complete(c.Handle(1, 1, job.token))
    assert checks_of(judged(job, write, o.REJECTED))["FENCE-01", "complete: expired in this tick"]
    renew = c.Renew(c.Handle(1, 1, job.token))
    assert checks_of(judged(job, renew, o.REJECTED))["LEASE-04", "renew: expired in this tick"]
