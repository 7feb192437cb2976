"""Each clause that a mutant's row of the catalogue names beside its own is really broken."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from fencepost.adapters.mutants.catalogue import MUTANTS
from fencepost.adapters.mutants.mutant import Mutant
from fencepost.conformance.direct import direct_stories
from fencepost.conformance.interleave.engine import first_failure
from fencepost.conformance.interleave.programs import programs_of
from fencepost.conformance.mutation import MOST_SCHEDULES
from fencepost.conformance.profiles import PROFILES
from fencepost.conformance.reduce import first_witnesses
from fencepost.conformance.sequential import hunt, tables
from fencepost.conformance.session import Session
from fencepost.model import commands as c
from fencepost.model.queues import QUEUES, QueueSpec
from fencepost.model.trace import Trace, trace_of
from shipped import BY_ID
from test_kills import broken

SEQUENTIAL = [mutant for mutant in MUTANTS if not mutant.race]
BESIDE = [(mutant, clause) for mutant in SEQUENTIAL for clause in mutant.also]
QUICK = PROFILES["quick"]
SEEDS = range(1, 7)

ONE, TWO = c.JobRef(1), c.JobRef(2)
POISON = {job: c.Hook("poison", job) for job in (ONE, TWO)}
CALLED_OFF = (c.Enqueue(), c.Enqueue(), c.Claim(1), c.RequestCancel(TWO, True), c.AdvanceTo("expiry", ONE))
BUSY = (c.Claim(1), c.Advance(100), c.Claim(1))
"""The same worker beats for a second job when the lease of the first one runs out."""

SHOWN: dict[tuple[str, str], Trace] = {
    ("sweep-leaves-cancelled-pending", "REC-12"): trace_of(*CALLED_OFF, c.Recover(1, POISON[ONE])),
    ("recover-nothing", "REC-12"): trace_of(*CALLED_OFF, c.Recover(1, POISON[TWO])),
    ("claim-due-late", "CLAIM-14"): trace_of(
        c.Enqueue(), c.Enqueue(3, 5), c.RequestCancel(ONE, True), c.AdvanceTo("due", TWO), c.Claim(1)
    ),
    ("claim-lease-left-late", "CLAIM-14"): trace_of(
        c.Enqueue(), c.Enqueue(), c.Plant(ONE, "lease", 300), c.Plant(TWO, "lease", 240), c.AdvanceTo("expiry", TWO),
        c.Claim(1),
    ),
    ("put-artifact-past-deadline", "FENCE-06"): trace_of(
        c.Enqueue(), c.Claim(1), c.PutArtifact(c.HandleRef(2)), c.Plant(ONE, "deadline", 0),
        c.PutArtifact(c.HandleRef(2)),
    ),
    ("artifact-key-of-job", "TERM-02"): trace_of(
        c.Enqueue(), c.Claim(1), c.Release(c.HandleRef(2)), c.Claim(1), c.PutArtifact(c.HandleRef(4)),
        c.Complete(c.HandleRef(4)), c.PutArtifact(c.HandleRef(2)),
    ),
    ("sweep-by-own-lease", "REC-12"): trace_of(
        c.Enqueue(), c.Enqueue(), c.Claim(1), c.Advance(250), c.Claim(1, 1, 1, 40), c.AdvanceTo("expiry", ONE),
        c.Recover(1, POISON[ONE]),
    ),
    **{
        (f"sweep-{fault}", "REC-12"): trace_of(
            c.Enqueue(), c.Enqueue(deadline_in=960), c.Claim(1), c.AdvanceTo("expiry", ONE), c.Recover(1, POISON[ONE])
        )
        for fault in ("leaves-overdue", "overdue-late")
    },
    ("recover-within-window", "REC-12"): trace_of(
        c.Enqueue(), c.Enqueue(), c.Claim(1), c.AdvanceTo("expiry", ONE), c.Claim(1), c.AdvanceTo("expiry", TWO),
        c.Recover(1, POISON[TWO]),
    ),
    ("sweep-generation-of-first", "REC-01"): trace_of(
        c.Enqueue(), c.Enqueue(), c.Claim(1), c.Claim(1), c.Release(c.HandleRef(4)), c.Claim(1),
        c.AdvanceTo("expiry", ONE), c.Recover(),
    ),
    ("recover-spares-busy-owner", "CANCEL-05"): trace_of(
        c.Enqueue(), c.Enqueue(), *BUSY, c.RequestCancel(ONE), c.AdvanceTo("expiry", ONE), c.Recover()
    ),
    ("recover-spares-busy-owner", "REC-03"): trace_of(
        c.Enqueue(1), c.Enqueue(), *BUSY, c.AdvanceTo("expiry", ONE), c.Recover()
    ),
    ("recover-spares-busy-owner", "REC-04"): trace_of(
        c.Enqueue(), c.Enqueue(), *BUSY, c.AdvanceTo("expiry", ONE), c.Tick()
    ),
    ("recover-spares-busy-owner", "REC-12"): trace_of(
        c.Enqueue(), c.Enqueue(), c.Enqueue(), c.Claim(2), *BUSY, c.AdvanceTo("expiry", ONE),
        c.Recover(1, POISON[ONE]),
    ),
}  # fmt: skip
"""Stories that show another clause where scripts seldom come."""


RACED = {
    ("claim-select-then-update", "CANCEL-09"): ("claim ‖ request_cancel", "sqlite"),
    ("claim-again-any-status", "CLAIM-11"): ("claim ‖ request_cancel", "pg"),
    ("claim-by-subselect", "CANCEL-09"): ("claim ‖ request_cancel", "pg"),
    ("claim-loser-acts", "CANCEL-09"): ("claim ‖ request_cancel", "sqlite"),
    ("claim-split", "CLAIM-14"): ("claim ‖ claim, two jobs", "pg"),
    ("write-checks-then-acts", "CANCEL-09"): ("complete ‖ request_cancel", "sqlite"),
    ("write-checks-then-acts", "LEASE-02"): ("renew ‖ recover", "sqlite"),
    ("write-by-status", "CANCEL-09"): ("complete ‖ request_cancel", "sqlite"),
    ("write-by-owner", "CANCEL-09"): ("complete ‖ request_cancel", "sqlite"),
    ("cancel-checks-then-acts", "REC-07"): ("request_cancel ‖ recover", "sqlite"),
    ("recover-by-id", "REC-02"): ("renew ‖ recover", "sqlite"),
    ("claim-in-pieces", "CLAIM-11"): ("claim ‖ claim, two jobs each", "sqlite"),
    ("claim-again-without-due", "CLAIM-11"): ("claim ‖ claim, one job", "pg"),
    ("claim-again-without-due", "CLAIM-14"): ("claim ‖ claim, two jobs", "pg"),
    ("claim-scanned-by-id", "CLAIM-01"): ("claim ‖ recover", "sqlite"),
    ("claim-scanned-by-id", "CLAIM-11"): ("complete ‖ release claim, the same worker", "pg"),
    ("claim-again-ended", "CLAIM-11"): ("claim ‖ claim, one job", "pg"),
    ("claim-again-ended", "CLAIM-14"): ("claim ‖ claim, two jobs", "pg"),
    ("claim-token-as-read", "CLAIM-11"): ("claim ‖ claim, one job", "pg"),
    ("claim-token-as-read", "CLAIM-14"): ("claim ‖ claim, two jobs", "pg"),
    ("promote-by-owner", "FENCE-03"): ("complete ‖ release claim, the same worker", "sqlite"),
}
"""In which race, and where, a fault of two actors breaks another clause too."""


def stories(spec: QueueSpec) -> Iterator[Trace]:
    yield from tables(spec).values()
    yield from direct_stories(spec)
    yield from first_witnesses(spec).values()


def reported(session: Session, traces: Iterator[Trace]) -> Iterator[str]:
    """The clauses that these traces break, each as often as it is broken."""
    for trace in traces:
        run = session.play(trace)
        if run.violation is not None:
            yield run.violation.clause


def drawn(session: Session, seed: int, known: set[str]) -> set[str]:
    """The clause, if any, that the first script breaks which breaks none of the known ones."""
    run = hunt(session, examples=QUICK.examples, longest=QUICK.longest, seed_value=seed, known=frozenset(known))
    return set() if run is None or run.violation is None else {run.violation.clause}


@pytest.mark.parametrize(("mutant", "clause"), BESIDE, ids=[f"{mutant.id}-{clause}" for mutant, clause in BESIDE])
def test_every_clause_that_a_row_names_beside_its_own_is_broken(mutant: Mutant, clause: str) -> None:
    others = {mutant.clause, *mutant.also} - {clause}
    with Session(broken(mutant), QUEUES[mutant.queue]) as session:
        shown = SHOWN.get((mutant.id, clause))
        if shown is not None:
            assert list(reported(session, iter([shown]))) == [clause]
        elif clause not in reported(session, stories(session.spec)):
            assert any(drawn(session, seed, others) == {clause} for seed in SEEDS)


def test_every_clause_beside_that_of_a_race_has_its_own_race() -> None:
    assert RACED.keys() == {(mutant.id, clause) for mutant in MUTANTS if mutant.race for clause in mutant.also}


@pytest.mark.parametrize(("name", "clause"), RACED, ids=[f"{name}-{clause}" for name, clause in RACED])
def test_a_fault_of_two_actors_breaks_the_clauses_beside_its_own(name: str, clause: str) -> None:
    mutant, (program_name, adapter) = BY_ID[name], RACED[name, clause]
    with Session(broken(mutant, adapter), QUEUES[mutant.queue]) as session:
        (program,) = (each for each in programs_of(session.spec) if each.name == program_name)
        found = session.run(
            first_failure(session.adapter, session.spec, program.trace(), clause, most=MOST_SCHEDULES)
        ).violation
    assert found is not None and found.clause == clause
