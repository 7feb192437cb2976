"""No certificate is hollow: for each clause that a race certifies some mutant breaks just that, in just that race."""

from __future__ import annotations

import pytest
from fencepost.adapters.mutants.catalogue import MUTANTS
from fencepost.conformance.interleave.engine import first_failure
from fencepost.conformance.interleave.programs import PROGRAMS, programs_of
from fencepost.conformance.mutation import MOST_SCHEDULES
from fencepost.conformance.session import Session
from fencepost.model.queues import QUEUES
from test_kills import broken

MUTANT = {mutant.id: mutant for mutant in MUTANTS}

REFUTED_BY = {
    ("claim ‖ claim, one job", "CLAIM-06"): "claim-loser-acts",
    ("claim ‖ claim, one job", "CLAIM-11"): "claim-upgrades-read",
    ("claim ‖ claim, two jobs", "CLAIM-06"): "claim-select-then-update",
    ("claim ‖ claim, two jobs", "CLAIM-11"): "claim-upgrades-read",
    ("claim ‖ claim, two jobs", "CLAIM-14"): "claim-limit-before-lock",
    ("claim ‖ claim, two jobs each", "CLAIM-06"): "claim-select-then-update",
    ("claim ‖ claim, two jobs each", "CLAIM-11"): "claim-upgrades-read",
    ("claim ‖ claim, two jobs, both scanned for one", "CLAIM-06"): "claim-scanned-by-id",
    ("claim ‖ claim, two jobs, both scanned for one", "CLAIM-11"): "claim-upgrades-read",
    ("claim ‖ request_cancel", "CANCEL-09"): "cancel-checks-then-acts",
    ("complete ‖ request_cancel", "CANCEL-09"): "complete-checks-cancel-before",
    ("complete ‖ recover", "REC-07"): "recover-by-id",
    ("complete ‖ recover, with a hook", "REC-08"): "sweep-hook-gets-read",
    ("renew ‖ recover", "REC-02"): "recover-over-renewal",
    ("recover ‖ recover", "REC-07"): "recover-by-id",
    ("request_cancel ‖ recover", "REC-07"): "recover-as-read",
    ("recover ‖ recover, a job called off", "REC-07"): "call-off-by-id",
    ("recover ‖ recover, a job overdue", "REC-07"): "lapse-by-id",
    ("complete ‖ start_up", "REC-07"): "start-up-by-id",
    ("complete ‖ recover claim, another worker", "FENCE-02"): "write-by-status",
    ("complete ‖ release claim, the same worker", "FENCE-03"): "write-by-owner",
    ("claim ‖ claim release", "FENCE-03"): "claim-token-as-read",
    ("claim ‖ claim fail", "CLAIM-03"): "claim-again-without-due",
    ("claim ‖ claim fail", "CLAIM-11"): "claim-upgrades-read",
    ("put_artifact ‖ release claim, the same worker", "FENCE-04"): "promote-by-owner",
    ("put_artifact ‖ put_artifact", "FENCE-07"): "clean-up-while-promoting",
    ("claim ‖ recover", "CLAIM-01"): "claim-again-ended",
    ("claim ‖ recover", "DEAD-01"): "recover-requeues-overdue",
}
NAMED_OTHERWISE = {("renew ‖ recover", "REC-07"): "a sweep that overwrites a renewal takes a valid lease: REC-02"}


def test_every_certificate_can_be_refuted() -> None:
    certified = {(program.name, clause) for program in PROGRAMS for clause in program.certified(row_locks=True)}
    assert certified - NAMED_OTHERWISE.keys() == REFUTED_BY.keys()


@pytest.mark.parametrize(("name", "clause"), REFUTED_BY, ids=[f"{name}-{clause}" for name, clause in REFUTED_BY])
def test_a_certificate_is_refuted_in_its_race_and_under_its_clause(name: str, clause: str) -> None:
    mutant = MUTANT[REFUTED_BY[name, clause]]
    program = next(program for program in PROGRAMS if program.name == name)
    played_on = [queue for queue, spec in QUEUES.items() if program in programs_of(spec)]
    queue = mutant.queue if mutant.queue in played_on else played_on[0]
    with Session(broken(mutant, mutant.adapters[0]), QUEUES[queue]) as session:
        adapter, spec = session.adapter, session.spec
        found = session.run(first_failure(adapter, spec, program.trace(), clause, most=MOST_SCHEDULES))
    assert found.violation is not None and found.violation.clause == clause
