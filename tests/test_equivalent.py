"""What the catalogue calls equivalent breaks nothing: played and raced where it differs from the contract, on every
database that it is meant for, it is never told from a right queue.

Only traces and races count in which a verb stands whose statements are others. Played is the model's shortest one to
each check, on SQLite the first ones in explore's order too. A changed condition is raced as well, in every order of
statements, with what may come between; a changed value is written at once with its conditions, so that no order of
statements leads to a row which no order of commands leads to.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator

import pytest
from fencepost.adapters.mutants.catalogue import EQUIVALENT
from fencepost.adapters.mutants.mutant import Mutant
from fencepost.adapters.reference.adapter import PostgresAdapter, SqliteAdapter
from fencepost.adapters.reference.rules import CONTRACT, Verb
from fencepost.conformance.interleave.engine import certify
from fencepost.conformance.interleave.programs import Program, programs_of
from fencepost.conformance.reduce import finder, first_witnesses
from fencepost.conformance.session import Session
from fencepost.model import commands as c
from fencepost.model.paths import symbolic
from fencepost.model.queues import QUEUES
from fencepost.model.trace import Trace
from rules_sent import decisions, statements

FIRST = {"sqlite": 60, "pg": 0}
"""How many of explore's traces are played beside the shortest one to each check."""

SWEEPS = {"recover", "tick", "start_up"}
SENT_BY = {
    "candidates": {"claim"}, "named_candidate": {"claim"}, "take": {"claim"}, "take_named": {"claim"},
    "cancel": {"request_cancel"}, "cancel_as": {"request_cancel"}, "find_expired": {"recover", "tick"},
    "recover_expired": {"recover", "tick"}, "find_left_behind": {"start_up"}, "recover_left_behind": {"start_up"},
    "end_pending": SWEEPS, "write.retry": {"fail"}, "write.abandon": {"fail"}, "repeated": {"complete"},
    "upload": {"put_artifact"}, "write.promote": {"put_artifact"}, "clean_up": {"put_artifact"},
    "artifact": {"read_artifact"}, **{f"write.{verb}": {verb.value} for verb in Verb},
    "check.checkpoint": {"checkpoint"},
}  # fmt: skip
"""Which verbs send a statement. The other checks and the unfenced writes are sent under no rules but a race's."""

JOB, HANDLE = c.JobRef(1), c.HandleRef(2)
HELD = (c.Enqueue(), c.Claim(1))
ENDING = (*HELD, c.AdvanceTo("expiry", JOB, -1))
EXPIRES = (c.AdvanceTo("expiry", JOB, 0),)
CALLED_OFF = (c.Enqueue(), c.RequestCancel(JOB, by_parent=True))
BY_HANDLE = (c.Renew(HANDLE), c.Fail(HANDLE), c.Release(HANDLE), c.Acknowledge(HANDLE))
"""A completion is raced by every run."""

RIVALS = (
    Program((), (c.Enqueue(),), ((c.Claim(1),), (c.RequestCancel(JOB, by_parent=True),))),
    Program((), (c.Enqueue(),), ((c.Claim(1),), (c.RequestCancel(JOB, by_parent=True), c.Recover()))),
    Program((), CALLED_OFF, ((c.Recover(),), (c.RequestCancel(JOB),))),
    *(Program((), ENDING, ((write,), (c.Recover(),)), EXPIRES) for write in BY_HANDLE[1:]),
    *(Program((), HELD, ((write,), (c.StartUp(0),))) for write in BY_HANDLE),
    *(Program((), HELD, ((write,), (c.RequestCancel(JOB),))) for write in BY_HANDLE),
    Program((), HELD, ((c.Release(HANDLE), c.Claim(1)), (c.StartUp(0),))),
)  # fmt: skip
"""Races that no run certifies: of everything that an equivalent changes with what may come between."""


def changed(mutant: Mutant) -> tuple[set[str], bool]:
    """The verbs whose statements are others under this mutant, and whether a condition is."""
    assert decisions(mutant.change, "sqlite") == decisions(None, "sqlite")
    verbs: set[str] = set()
    condition = False
    sent, right = (statements(change, mutant.queue, "sqlite") for change in (mutant.change, None))
    for one, other in zip(sent, right, strict=True):
        name = one.split(": ")[0]
        by = SENT_BY.get(name, SENT_BY.get(name.split(".")[0], set()))
        if by and one != other:
            verbs |= by
            condition |= one.split(" WHERE ")[1:] != other.split(" WHERE ")[1:]
    return verbs, condition


def verbs_in(commands: Iterable[c.Command]) -> set[str]:
    found: set[str] = set()
    for command in commands:
        found |= verbs_in(command.commands) if isinstance(command, c.Atomically) else {command.verb}
    return found


def explored(queue: str) -> Iterator[Trace]:
    """Explore's traces, in its own order."""
    search = finder(QUEUES[queue])
    for at in itertools.count():
        while at >= len(search.states):
            assert search.expand()
        for command, _, _ in search.judged(at):
            yield symbolic(search.spec, [*search.path(at), command])


def traces(queue: str, verbs: set[str], first: int) -> Iterator[Trace]:
    def touched(trace: Trace) -> bool:
        return bool(verbs & verbs_in(step.command for step in trace.steps))

    yield from filter(touched, first_witnesses(QUEUES[queue]).values())
    yield from itertools.islice(filter(touched, explored(queue)), first)


def races(queue: str, verbs: set[str]) -> Iterator[Program]:
    spec = QUEUES[queue]
    for program in (*programs_of(spec), *(rival for rival in RIVALS if rival.verbs <= spec.verbs)):
        if verbs & verbs_in(itertools.chain(*program.lanes)):
            yield program


MEANT_FOR = [(mutant, database) for mutant, _ in EQUIVALENT for database in mutant.adapters]


@pytest.mark.parametrize(("mutant", "database"), MEANT_FOR, ids=[f"{mutant.id}-{name}" for mutant, name in MEANT_FOR])
def test_an_equivalent_is_never_told_from_a_right_queue(mutant: Mutant, database: str) -> None:
    rules, (verbs, condition) = mutant.change(CONTRACT), changed(mutant)
    adapter = SqliteAdapter(rules=rules) if database == "sqlite" else PostgresAdapter(rules=rules)
    with Session(adapter, QUEUES[mutant.queue]) as session:
        assert not any(session.play(trace).violation for trace in traces(mutant.queue, verbs, FIRST[database]))
        tested = {check.clause for check in session.driver.tally if check.teeth}
        for program in races(mutant.queue, verbs) if condition else ():
            found = session.run(certify(adapter, session.spec, program))
            assert found.violation is None and found.exhaustive, program.name
            tested |= {certificate.clause for certificate in found.certificates}
    assert mutant.clause in tested, "the clause in question was tested"
