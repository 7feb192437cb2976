"""The scenario files written by hand: one for every clause at least, and each one bites.

Each tests what it says, and each is failed by some wrong queue under its clause.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from fencepost.adapters import memory_store
from fencepost.adapters.contract import Adapter
from fencepost.adapters.memory import MemoryActor, MemoryAdapter
from fencepost.adapters.mutants.catalogue import MUTANTS
from fencepost.conformance.replay import Replayed, replay
from fencepost.model import commands as c
from fencepost.model import outcomes as o
from fencepost.model.clauses import BUILT, CLAUSES
from fencepost.model.queues import PENDING, QUEUES, RUNNING, SUCCEEDED
from fencepost.scenarios import load
from shipped import DATABASES, HAND, RACES, REGRESSIONS, SHIPPED, Sessions, mutated

ALONE = {name: scenario for name, scenario in SHIPPED.items() if name not in RACES}
"""The stories of one command after another."""


@pytest.fixture
def sessions() -> Iterator[Sessions]:
    with Sessions() as opened:
        yield opened


@pytest.fixture(scope="module")
def kept() -> Iterator[Sessions]:
    """The right queues, open for all tests."""
    with Sessions() as opened:
        yield opened


# What they test ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("clause", BUILT)
def test_every_built_clause_has_a_file_of_its_engine(clause: str) -> None:
    files = [name for name, scenario in SHIPPED.items() if scenario.clause == clause]
    assert files, f"write scenarios/<area>/{clause}-<slug>.yaml by hand"
    if CLAUSES[clause].engine == "interleaved" or CLAUSES[clause].also_interleaved:
        assert any(name in RACES for name in files), f"{clause} shows when two act at once: write a race"


@pytest.mark.parametrize("queue", QUEUES)
def test_every_queue_has_its_files(queue: str) -> None:
    assert any(scenario.queue == queue for scenario in SHIPPED.values())


def test_no_file_of_hand_is_found_or_of_a_mutant() -> None:
    for path in HAND:
        scenario = load(path)
        assert scenario.found is None and scenario.mutant is None and scenario.source not in ("found", "mutant")


@pytest.mark.parametrize("name", ALONE)
def test_a_file_has_a_check_with_teeth_of_its_clause(kept: Sessions, name: str) -> None:
    scenario = ALONE[name]
    session = kept.right(scenario.queue)
    session.driver.tally.clear()
    assert session.play(scenario.trace).violation is None
    assert any(check.teeth and check.clause == scenario.clause for check in session.driver.tally)


@pytest.mark.parametrize("delay", [1, 100_000])
def test_no_file_depends_on_how_long_a_queue_backs_off(
    sessions: Sessions, monkeypatch: pytest.MonkeyPatch, delay: int
) -> None:
    monkeypatch.setattr(memory_store, "DELAYS", (delay,))
    opened = {queue: sessions.of(MemoryAdapter(), queue) for queue in QUEUES}
    everywhere = [scenario for scenario in map(load, HAND + REGRESSIONS) if scenario.adapters is None]
    verdicts = {scenario.id: replay(opened[scenario.queue], scenario) for scenario in everywhere}
    assert [(name, each.why) for name, each in verdicts.items() if each.verdict != "pass"] == []


# That they bite ------------------------------------------------------------------------------------------------------


class Impatient(MemoryActor):
    async def complete(self, command: c.Complete, now: int) -> o.Outcome:
        """Count the last second of a lease as expired."""
        return await super().complete(command, now + 1)


class Unfenced(MemoryActor):
    async def complete(self, command: c.Complete, now: int) -> o.Outcome:
        """End a pending job by any handle of it."""
        job = self._store.named(command.handle.job)  # type: ignore[union-attr]
        if job.status != PENDING:
            return await super().complete(command, now)
        self._store.finish(job, SUCCEEDED, None, now)
        return o.Accepted(SUCCEEDED)


class Overruling(MemoryActor):
    async def atomically(self, command: c.Atomically, now: int) -> o.Outcome:
        """Tell a caller that all went well."""
        answer = await super().atomically(command, now)
        assert isinstance(answer, o.Atomic)
        return o.Atomic(tuple(o.Accepted(SUCCEEDED) if type(each) is o.Rejected else each for each in answer.outcomes))


class Beating(MemoryActor):
    async def renew(self, command: c.Renew, now: int) -> o.Outcome:
        """Give an ended job a lease."""
        job = self._store.named(command.handle.job)  # type: ignore[union-attr]
        if job.status == RUNNING:
            return await super().renew(command, now)
        job.expires = now + 300
        self._store.publish(job)
        return o.Accepted(RUNNING)


class LastBatch(MemoryActor):
    async def recover(self, command: c.Recover, now: int) -> o.Outcome:
        """Count one batch alone."""
        answer = await super().recover(command, now)
        assert isinstance(answer, o.Recovered)
        count = min(answer.count, command.batch)
        return o.Recovered(answer.rows, count, answer.hooked, answer.failed, answer.dml)


class SettingBack(MemoryActor):
    async def recover(self, command: c.Recover, now: int) -> o.Outcome:
        """Queue finished jobs again."""
        answer = await super().recover(command, now)
        for job in self._store.jobs.values():
            if job.status == SUCCEEDED:
                self._store.requeue(job, None, None)
        return answer


class Reviving(MemoryActor):
    async def start_up(self, command: c.StartUp, now: int) -> o.Outcome:
        """Run ended jobs again."""
        answer = await super().start_up(command, now)
        for job in self._store.jobs.values():
            if job.status not in (PENDING, RUNNING):
                job.status = RUNNING
                self._store.publish(job)
        return answer


class Running(MemoryActor):
    async def complete(self, command: c.Complete, now: int) -> o.Outcome:
        """Run a job that was called off, behind one that is completed."""
        answer = await super().complete(command, now)
        for job in self._store.jobs.values():
            if job.status == PENDING and job.cancel is not None:
                job.status = RUNNING
                self._store.publish(job)
        return answer


class Guessing(MemoryActor):
    async def classify(self, command: c.Classify, now: int) -> o.Outcome:
        """Take a code of no family for one of INFRA."""
        answer = await super().classify(command, now)
        assert isinstance(answer, o.Classified)
        return o.Classified(answer.family or "INFRA")


WRONG_ACTORS: dict[str, type[MemoryActor]] = {
    "ERR-01-families": Guessing,
    "FENCE-01-last-second": Impatient,
    "FENCE-02-pending-again": Unfenced,
    "FENCE-06-inside-a-callers-transaction": Overruling,
    "INV-6-requested-is-never-claimed": Running,
    "INV-7-nothing-leaves-a-terminal-status": Reviving,
    "LEASE-02-finished-job": Beating,
    "REC-10-count-over-batches": LastBatch,
    "TERM-02-finished-job-stays-finished": SettingBack,
}
"""Who fails the stories that no mutant fails."""


class Wrong(MemoryAdapter):
    """The memory queue with other actors."""

    def __init__(self, acting: type[MemoryActor]) -> None:
        super().__init__()
        self._acting = acting

    def actor(self, worker: int) -> MemoryActor:
        return self._acting(self._opened())


def broken(sessions: Sessions, adapter: Adapter, name: str) -> str | None:
    """The clause that this queue breaks in the story."""
    scenario = SHIPPED[name]
    violation = replay(sessions.of(adapter, scenario.queue), scenario).violation
    return None if violation is None else violation.clause


@pytest.mark.parametrize("name", ALONE)
def test_a_file_is_failed_by_a_wrong_queue_under_its_clause(sessions: Sessions, name: str) -> None:
    clause, queue = ALONE[name].clause, ALONE[name].queue
    if name in WRONG_ACTORS:
        assert broken(sessions, Wrong(WRONG_ACTORS[name]), name) == clause
        return
    faults = [mutant for mutant in MUTANTS if mutant.clause == clause and not mutant.race]
    faults.sort(key=lambda fault: fault.queue != queue)  # those of the file's own queue are the likeliest
    assert any(broken(sessions, mutated(fault.id), name) == clause for fault in faults)


def test_no_wrong_actor_is_left_over() -> None:
    assert WRONG_ACTORS.keys() <= ALONE.keys()


WRONG = {
    "CANCEL-09-before-a-completion-commits": ("complete-after-cancel",),
    "CANCEL-09-between-read-and-claim": ("claim-select-then-update", "claim-loser-acts"),
    "CANCEL-09-claim-meets-cancel": ("cancel-checks-then-acts", "claim-loser-acts"),
    "CLAIM-03-backing-off-since-it-was-read": ("claim-again-without-due",),
    "CLAIM-06-both-read-one-job": ("claim-select-then-update", "claim-loser-acts"),
    "CLAIM-11-nobody-waits": ("claim-waits",),
    "CLAIM-11-rows-of-a-batch-are-passed-by": ("claim-waits",),
    "CLAIM-14-locked-head": (),
    "DEAD-01-claimed-in-the-last-second": ("recover-requeues-overdue",),
    "DEAD-01-claimed-in-the-last-second-pg": ("recover-requeues-overdue",),
    "FENCE-02-completes-behind-its-successor": ("complete-anybody",),
    "FENCE-02-completes-behind-its-successor-pg": ("complete-anybody",),
    "FENCE-03-completes-behind-its-next-claim": ("complete-older-token",),
    "FENCE-03-completes-behind-its-next-claim-pg": ("complete-older-token",),
    "FENCE-03-named-attempts-in-every-order": ("complete-older-attempt", "write-by-owner"),
    "FENCE-04-upload-in-every-order": ("put-artifact-older-attempt", "write-by-owner"),
    "REC-02-renewed-after-the-sweep-read-it": ("recover-by-id", "recover-over-renewal"),
    "REC-07-called-off-once": ("call-off-by-id", "call-off-again-any-status"),
    "REC-07-finished-after-the-sweep-read-it": ("recover-by-id",),
    "REC-07-finished-while-its-process-starts": ("start-up-by-id",),
    "REC-07-sweep-meets-cancel": ("cancel-checks-then-acts",),
    "REC-07-two-sweepers-at-once": ("recover-by-id",),
}
"""The faults that each race shows. A queue that takes the limit before the lock sends fewer statements than the
contract's, so that no schedule of CLAIM-14 fits both: there it diverges."""


def test_every_race_names_the_fault_that_it_shows() -> None:
    assert WRONG.keys() == RACES.keys()


@pytest.mark.parametrize(
    ("name", "database"),
    [(name, database) for name, scenario in RACES.items() for database in scenario.adapters or ()],
)
def test_a_race_passes_on_the_right_queue_and_fails_on_the_wrong_one(
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
