"""Queues with a clock of their own: an adapter moves it, and what cannot be met exactly is said not to be exercised."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from io import StringIO
from pathlib import Path

import pytest
from clocks import Late, OnTheWall, Telling, overridden, real, shifted
from fencepost.adapters.contract import Adapter, AdapterError
from fencepost.adapters.reference.adapter import ReferenceActor, SqliteAdapter
from fencepost.adapters.sync import served
from fencepost.conformance.profiles import PROFILES
from fencepost.conformance.run import Outcome
from fencepost.conformance.session import Session
from fencepost.model import commands as c
from fencepost.model import outcomes as o
from fencepost.model.trace import trace_of
from fencepost.model.world import Violation
from fencepost.reports.terminal import make_console, render_result
from runs import TINY, pairs_of, planned, went

CLAUSES = ("FENCE-01", "LEASE-03", "LEASE-04", "REC-01", "REC-02")
NOT_MET = "the very second at which a lease, back-off or deadline ends, where clock is {!r}: only beside it"


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run leaves its files below the folder that it was started in."""
    monkeypatch.chdir(tmp_path)


def tried(make: type[Adapter], profile: str = "quick") -> Outcome:
    return went(planned(make, *CLAUSES, queues=("jobs",), profile=PROFILES[profile]))


@pytest.mark.parametrize("make", [overridden, shifted])
def test_a_right_queue_passes_however_its_clock_is_moved(make: type) -> None:
    outcome = tried(make(Telling))
    assert outcome.fault == "" and outcome.result.failures == ()
    pairs = pairs_of(outcome.result)
    assert {clause: pairs[clause, "jobs"].verdict for clause in CLAUSES} == dict.fromkeys(CLAUSES, "pass")


def test_a_lease_that_is_valid_a_second_too_long_is_found_where_the_function_is_replaced() -> None:
    result = tried(overridden(Late)).result
    stories = {failure.clause: failure.story for failure in result.failures}
    assert set(stories) == {"FENCE-01", "LEASE-04"}
    assert "  3  clock to job 1's lease expiry\n  4  w1 completes " in stories["FENCE-01"]
    assert result.unexercised == ()


def test_where_stored_times_are_shifted_the_very_second_is_not_met_and_the_report_says_so() -> None:
    """The fault shows at the instant of the expiry and at no other, which a clock that goes on never meets."""
    result = tried(shifted(Late)).result
    assert result.verdict == "pass"
    assert result.unexercised == (NOT_MET.format("shifted"),)
    text = StringIO()
    render_result(result, make_console(text))
    assert "not exercised: the very second at which a lease" in text.getvalue()


@pytest.mark.parametrize("offset", [-1, 1])
def test_where_stored_times_are_shifted_the_seconds_beside_it_are_met(offset: int) -> None:
    expiry = c.AdvanceTo("expiry", c.JobRef(1), offset)
    trace = trace_of(c.Enqueue(), c.Claim(1), expiry, c.Complete(c.HandleRef(2)))
    adapter = shifted()()
    with Session(adapter, adapter.serves("jobs")) as session:
        run = session.play(trace)
    assert run.violation is None
    (check,) = [each for each in session.driver.tally if each.clause == "FENCE-01"]
    assert check.reason == ("complete: held in its last tick" if offset < 0 else "complete: expired")


STORY = trace_of(c.Enqueue(), c.Advance(5), c.Claim(1), c.AdvanceTo("expiry", c.JobRef(1), 1), c.Recover())


def test_a_clock_that_nobody_can_move_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = OnTheWall().hang(monkeypatch)
    adapter = real(clock)()
    with Session(adapter, adapter.serves("jobs")) as session:
        run = session.play(STORY)
    assert run.violation is None and run.world.jobs[0].status == "pending"
    assert clock.waits == pytest.approx([5, 61])
    result = went(planned(real(clock), "REC-01", queues=("jobs",), profile=TINY)).result
    assert result.verdict == "pass" and result.unexercised == (NOT_MET.format("real"),)


@pytest.mark.parametrize("reads", [round, math.floor])
@pytest.mark.parametrize("takes", [0.03, 0.11, 0.24])
def test_time_that_passes_by_itself_is_a_step_of_the_story(
    takes: float, reads: Callable[[float], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = OnTheWall().hang(monkeypatch)
    adapter = real(clock, takes, reads)()
    claims = [c.Enqueue(), *(c.Claim(1) for _ in range(12))]
    with Session(adapter, adapter.serves("jobs")) as session:
        run = session.play(trace_of(*claims))
        assert run.violation is None, run.violation
        moved = [command for command, _ in run.done if isinstance(command, c.Advance)]
        assert len(moved) == run.labels.count(0) == run.world.now > 0
        assert [label for label in run.labels if label] == list(range(1, 14))
        again = session.play(run.trace())
        assert again.violation is None
    result = went(planned(real(clock, takes, reads), *CLAUSES, queues=("jobs",), profile=TINY)).result
    assert result.failures == () and result.verdict == "pass"


def test_the_very_second_of_an_end_is_not_met_by_waiting_either(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = OnTheWall().hang(monkeypatch)
    adapter = real(clock, 0.2)()
    lease = adapter.serves("jobs").lease_seconds
    claimed = trace_of(
        c.Enqueue(), c.Claim(1), c.AdvanceTo("expiry", c.JobRef(1), -1), c.Claim(2), c.Claim(2), c.Recover()
    )
    with Session(adapter, adapter.serves("jobs")) as session:
        run = session.play(claimed)
    assert run.violation is None
    instants = [0]
    for command, _ in run.done:
        if isinstance(command, c.Advance):
            instants.append(instants[-1] + command.seconds)
    assert lease - 1 in instants and lease not in instants and lease + 1 in instants


def test_a_command_that_takes_too_long_by_the_real_clock_is_not_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = OnTheWall().hang(monkeypatch)
    adapter = real(clock, 0.7)()
    with Session(adapter, adapter.serves("jobs")) as session, pytest.raises(AdapterError) as slow:
        session.play(STORY)
    assert "claim took 0.7 s by the real clock, so nobody can tell which second it wrote" in str(slow.value)


def test_a_wrong_queue_is_found_by_the_real_clock_too(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = OnTheWall().hang(monkeypatch)

    class Never(real(clock, 0.02).kind):  # type: ignore[misc, attr-defined]
        queue = type("Never", (Telling,), {"valid": "< 2 *"})

    result = went(planned(served(Never), "FENCE-01", "LEASE-04", queues=("jobs",), profile=TINY)).result
    assert {failure.clause for failure in result.failures} == {"FENCE-01", "LEASE-04"}


def test_the_real_clock_goes_with_no_gate() -> None:
    class Held(SqliteAdapter):
        capabilities = dataclasses.replace(SqliteAdapter.capabilities, clock="real")

    assert "the real clock goes on while statements are held" in went(planned(Held, "FENCE-01")).fault


def test_a_row_that_moves_with_the_clock_is_the_adapters_fault() -> None:
    class Drifting(overridden().kind):  # type: ignore[misc, attr-defined]
        def advance(self, seconds: int) -> None:
            super().advance(seconds)
            self.view.db.execute("UPDATE jobs SET lease_until = lease_until + 1")

    fault = went(planned(served(Drifting), "FENCE-01", queues=("jobs",), profile=TINY)).fault
    assert "rows changed with the clock" in fault


def test_each_example_starts_its_clock_anew() -> None:
    adapter = overridden()()
    with Session(adapter, adapter.serves("jobs")) as session:
        for _ in range(2):
            run = session.play(trace_of(c.Enqueue(), c.Advance(9), c.Claim(1)))
            assert not isinstance(run.violation, Violation)
            assert run.world.rows is not None and run.world.rows[0].started == 9


class ClockedActor(ReferenceActor):
    """It goes by its adapter's clock, whatever it is told."""

    async def perform(self, command: c.Command, now: int) -> o.Outcome:
        adapter = self._adapter
        assert isinstance(adapter, Clocked)
        return await super().perform(command, adapter.clock)


class Clocked(SqliteAdapter):
    """The reference queue on a clock of its own; its statements can be scheduled."""

    capabilities = dataclasses.replace(SqliteAdapter.capabilities, clock="override")
    clock = 0

    async def reset(self) -> None:
        await super().reset()
        self.clock = 0

    async def advance(self, seconds: int) -> None:
        self.clock += seconds

    def actor(self, worker: int) -> ReferenceActor:
        return self._actors.setdefault(worker, ClockedActor(self, worker))


def test_races_in_which_time_passes_are_left_out_where_the_clock_is_the_queues_own_and_the_report_says_so() -> None:
    result = went(planned(Clocked, "REC-02", "REC-07", "CLAIM-06")).result
    assert result.failures == () and result.certificates
    assert not [entry for entry in result.certificates if "of the clock" in entry.bound]
    assert result.unexercised == ("races in which time passes between two statements, where clock is 'override'",)
    moved = went(planned(SqliteAdapter, "REC-02", "REC-07", "CLAIM-06")).result
    assert [entry for entry in moved.certificates if "of the clock" in entry.bound] and moved.unexercised == ()
