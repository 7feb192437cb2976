"""Hostile adapters: each ends in a harness verdict or under the right clause; never in a pass or as another's fault."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hostile
import pytest
from fencepost.adapters.contract import Adapter, Capabilities
from fencepost.adapters.memory import MemoryAdapter
from fencepost.adapters.reference.adapter import ReferenceActor, SqliteAdapter
from fencepost.adapters.reference.rules import CONTRACT
from fencepost.adapters.sync import SyncAdapter, served
from fencepost.conformance import races
from fencepost.conformance.cli import call
from fencepost.conformance.commands import replay
from fencepost.conformance.controls import LEAK
from fencepost.conformance.profiles import PROFILES
from fencepost.conformance.run import Outcome
from fencepost.conformance.watchdog import USUAL, Limits
from fencepost.model import commands as c
from fencepost.model import outcomes as o
from fencepost.reports.result import exit_code
from runs import OWN, TINY, mutant_named, planned, went

IMPATIENT = Limits(example=1.5, closing=1.5)


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run leaves its files below the folder that it was started in."""
    monkeypatch.chdir(tmp_path)


def tried(make: type[Adapter], *clauses: str, limits: Limits = USUAL, queue: str = "") -> Outcome:
    """A tiny run on the adapter's first queue."""
    plan = planned(make, *clauses, queues=(queue or next(iter(make.queues)),))
    return went(dataclasses.replace(plan, limits=limits))


def broken_by(mutant: str) -> type[SqliteAdapter]:
    """The reference queue with this fault in it."""

    class Broken(SqliteAdapter):
        def __init__(self) -> None:
            super().__init__(rules=mutant_named(mutant).change(CONTRACT))

    return Broken


def faulted(outcome: Outcome) -> str:
    """What ended a run that says nothing about any clause."""
    assert outcome.result.verdict == "harness error" and exit_code(outcome.result) == 3
    assert outcome.result.failures == (), "the queue is blamed for nothing"
    return outcome.fault


def broken(outcome: Outcome) -> list[str]:
    assert outcome.fault == ""
    return [failure.clause for failure in outcome.result.failures]


# ------------------------------------------------------------------------------------------------------------ it hangs


@pytest.mark.parametrize("make", [hostile.hanging, hostile.awaiting], ids=["blocking", "awaiting"])
@pytest.mark.parametrize("where", ["open", "reset", "snapshot", "enqueue", "complete", "close"])
def test_what_never_comes_back_is_named(make: type, where: str) -> None:
    fault = faulted(tried(make(where), limits=IMPATIENT))
    assert fault.startswith(f"adapter {OWN}: {where} did not come to an end within 1.5 s; let it end, or allow")
    assert "hostile.py" in fault, "the adapter's own frames"


def test_what_was_found_before_it_hung_is_kept() -> None:
    class Late(hostile.Queue):  # type: ignore[misc, name-defined]
        def complete(self, job: int, worker: str, now: int) -> bool:
            return bool(super().complete(job, worker, 0))

    make = hostile.hanging("recover", after=60)
    make.kind.queue = Late  # type: ignore[attr-defined]
    outcome = tried(make, limits=IMPATIENT)
    assert "recover did not come to an end" in outcome.fault
    assert outcome.result.verdict == "harness error"
    assert "FENCE-01" in [failure.clause for failure in outcome.result.failures]
    assert outcome.result.coverage.examples > 0


def test_what_swallows_the_alarm_and_goes_on_does_not_pass() -> None:
    fault = faulted(tried(hostile.with_actor(hostile.Swallowing), limits=IMPATIENT))
    assert fault.startswith(f"adapter {OWN}: complete did not come to an end within 1.5 s")


@pytest.mark.parametrize("hang", [hostile.never, hostile.never_async], ids=["blocking", "awaiting"])
def test_what_hangs_in_a_race_is_named(hang: object) -> None:
    make = hostile.racing(hang)  # type: ignore[arg-type]
    fault = faulted(tried(make, "CANCEL-09", limits=IMPATIENT, queue="backfill"))
    assert fault.startswith(f"adapter {OWN}: complete did not come to an end within 1.5 s")


def test_a_race_that_was_found_is_kept_when_it_is_interrupted_while_it_is_shortened(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(races, "reduce_race", interrupted)
    make: Any = broken_by("claim-select-then-update")
    outcome = tried(make, "CLAIM-06", queue="backfill")
    assert outcome.result.interrupted
    assert [failure.clause for failure in outcome.result.failures] == ["CLAIM-06"]


def test_a_race_that_was_found_is_kept_when_its_search_is_interrupted() -> None:
    """A fault of the statements alone does not end it: an illegal answer may come, which outranks it."""
    make: Any = broken_by("claim-upgrades-read")
    schedules = 0

    def press() -> None:
        nonlocal schedules
        schedules += 1
        if schedules == 10:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        for raced in races.race_all(make(), "backfill", clauses=frozenset({"CLAIM-11"}), on_schedule=press):
            kept = raced
    assert kept.finding is not None and kept.finding.violation.clause == "CLAIM-11"


def test_a_race_that_was_found_is_kept_when_it_hangs_while_it_is_shortened(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(races, "reduce_race", lambda *_: hostile.never_async())
    make: Any = broken_by("claim-select-then-update")
    outcome = tried(make, "CLAIM-06", limits=IMPATIENT, queue="backfill")
    assert "did not come to an end within 1.5 s" in outcome.fault
    assert outcome.result.verdict == "harness error"
    assert [failure.clause for failure in outcome.result.failures] == ["CLAIM-06"]


def test_a_run_that_takes_too_long_is_ended_between_two_examples_and_says_so() -> None:
    outcome = went(dataclasses.replace(planned(MemoryAdapter, profile=PROFILES["nightly"]), limits=Limits(run=2)))
    assert "the run's limit of 2 s is over" in outcome.fault
    assert outcome.result.verdict == "harness error"
    assert outcome.result.coverage.examples > 0


def test_a_run_that_takes_too_long_is_ended_within_an_example_too() -> None:
    fault = faulted(tried(hostile.hanging("claim"), limits=Limits(run=0.2)))
    assert fault.startswith(f"adapter {OWN}: the run's limit of 0.2 s is over, with claim under way")


BLOCKED = """
import os, sqlite3, sys
sys.path[:0] = [{tests!r}]
import hostile
from fencepost.conformance.run import run
from fencepost.conformance.watchdog import Limits
from runs import Watching, planned
import dataclasses
import os

class Stuck(hostile.PlainActor):
    def complete(self, command, now):
        (_, _, file) = self.queue.db.execute("PRAGMA database_list").fetchone()
        other = sqlite3.connect(file, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        self.queue.db.execute("PRAGMA busy_timeout = 600000")
        return super().complete(command, now)

def last_words(outcome):
    print(outcome.result.verdict, outcome.fault, flush=True)
    os._exit(3)

plan = planned(hostile.with_actor(Stuck), queues=("jobs",))
run(dataclasses.replace(plan, limits=Limits(example=0.3, grace=0.3)), Watching(), last_words)
"""


def test_what_no_signal_interrupts_is_told_by_another_thread(tmp_path: Path) -> None:
    """A wait for a lock inside of the database's own library ends when that gives up, and not before."""
    program = BLOCKED.format(tests=str(Path(__file__).parent))
    ran = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert ran.returncode == 3
    assert ran.stdout.startswith(f"harness error adapter {OWN}: complete did not come to an end within 0.3 s")
    assert "it blocks its thread where no signal interrupts it" in ran.stdout


def test_the_process_ends_even_if_nobody_can_tell_why(tmp_path: Path) -> None:
    program = BLOCKED.format(tests=str(Path(__file__).parent)).replace("os._exit(3)", "raise OSError('no room')")
    ran = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert ran.returncode == 3
    assert "OSError: no room" in ran.stderr


def test_the_command_line_sets_the_limits(capsys: pytest.CaptureFixture[str]) -> None:
    assert call(["run", "--adapter=hostile:Stuck", "--profile=quick", "--example-timeout=0.5"]) == 3
    assert "claim did not come to an end within 0.5 s" in capsys.readouterr().err
    assert call(["run", "--adapter=hostile:Stuck", "--profile=quick", "--run-timeout=0.5"]) == 3
    assert "the run's limit of 0.5 s is over, with claim under way" in capsys.readouterr().err


def test_the_pytest_plugin_sets_them_too(tmp_path: Path) -> None:
    options = ["--fencepost-adapter=hostile:Stuck", "--fencepost-example-timeout=0.5", "-p", "no:cacheprovider"]
    program = f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r}); import pytest; sys.exit(pytest.main())"
    command = [sys.executable, "-c", program, "--pyargs", "fencepost.conformance", *options]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert ran.returncode == 3
    told = "adapter hostile:Stuck: claim did not come to an end within 0.5 s; let it end, or allow for more by"
    assert f"{told} --fencepost-example-timeout" in ran.stdout + ran.stderr


def test_a_replay_of_what_hangs_ends_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "found.yaml"
    file.write_text(FOUND)
    monkeypatch.setattr(replay, "USUAL", IMPATIENT)
    assert call(["replay", str(file), "--adapter=hostile:Stuck"]) == 3
    said = capsys.readouterr().err
    assert "claim did not come to an end within 1.5 s; let it end" in said
    assert "--example-timeout" not in said, "a replay has no such option"


FOUND = """\
fencepost: 1
id: found
clause: FENCE-01
queue: jobs
title: A completion after the lease
source: found
found: {adapter: 'hostile:Stuck', seed: 1}
steps:
  - {do: enqueue}
  - {do: claim, worker: 1}
"""


# --------------------------------------------------------------------------------------------- it hands over nonsense


@pytest.mark.parametrize(
    ("verb", "answer", "said"),
    [
        ("complete", None, "complete returned None; return Accepted or Rejected"),
        ("complete", True, "complete returned True; return Accepted or Rejected"),
        ("complete", o.Accepted(None), "complete: Accepted: status is None, and must be str"),  # type: ignore[arg-type]
        ("enqueue", 7, "enqueue returned 7; return Enqueued"),
        ("enqueue", o.Enqueued(None), "enqueue: Enqueued: job is None, and must be int or str"),  # type: ignore[arg-type]
        ("claim", o.Claimed(("a job",)), "claim: Claimed: its handles hold 'a job'; let each be a Handle"),  # type: ignore[arg-type]
        ("claim", o.Claimed(7), "claim: Claimed: handles is 7, and must be a tuple of Handle"),  # type: ignore[arg-type]
        ("recover", o.Recovered(((1, "pending"),), 1), "recover: its rows hold (1, 'pending')"),  # type: ignore[arg-type]
        ("recover", o.Recovered((), "none"), "recover: Recovered: count is 'none', and must be int"),  # type: ignore[arg-type]
    ],
)
def test_a_wrong_type_is_told_with_what_to_return(verb: str, answer: object, said: str) -> None:
    assert said in faulted(tried(hostile.answering(verb, lambda _: answer)))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda rows: list(rows.values()), "snapshot returned [Row(status='pending'"),
        (lambda rows: {job: tuple(row) for job, row in rows.items()}, "is ('pending', None"),
        (lambda rows: {job: row._asdict() for job, row in rows.items()}, "is {'status': 'pending'"),
        (hostile.dated, "expires is datetime.datetime("),
        (lambda rows: {job: row._replace(attempts=str(row.attempts)) for job, row in rows.items()}, "attempts is '0'"),
    ],
    ids=["list", "tuples", "dicts", "dates", "texts"],
)
def test_rows_of_wrong_types_are_told_with_what_they_must_be(change: object, said: str) -> None:
    assert said in faulted(tried(hostile.showing(change)))  # type: ignore[arg-type]


def test_a_list_within_an_outcome_is_told_for_what_it_is() -> None:
    fault = faulted(tried(hostile.answering("claim", lambda claimed: o.Claimed(list(claimed.handles)))))  # type: ignore[arg-type]
    assert "claim raised TypeError" in fault and "tuples of them in place of lists" in fault


def test_a_verb_that_was_forgotten_is_named_with_the_two_ways_out() -> None:
    fault = faulted(tried(hostile.with_actor(hostile.Forgetful)))
    assert "Forgetful has no verb 'renew'; write `def renew(self, command, now)`, or declare" in fault


# ------------------------------------------------------------------------------------------------------------ it lies


def test_hooks_that_are_declared_and_never_called_break_their_clause() -> None:
    assert broken(tried(hostile.hooked(hostile.Deaf))) == ["CLAIM-12"]


def test_a_probe_that_sees_nothing_is_found_out() -> None:
    fault = faulted(tried(hostile.hooked(hostile.Blind, "probe")))
    assert "probe sees no open transaction while a claim's hook runs in one" in fault


def test_a_probe_that_sees_what_is_open_is_believed() -> None:
    outcome = tried(hostile.hooked(hostile.Seeing, "probe"))
    assert broken(outcome) == []
    assert [pair.verdict for pair in outcome.result.clauses if pair.id == "CLAIM-09"] == ["pass"]


def declared(base: type[Adapter], **more: object) -> type[Adapter]:
    capabilities = dataclasses.replace(base.capabilities, **more)  # type: ignore[arg-type]
    return type("Declared", (base,), {"capabilities": capabilities})


PLAIN = served(hostile.Plain)
ONLY = PLAIN.capabilities


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (declared(PLAIN, row_locks=True), "row_locks is declared with gate='none', which sees none"),
        (declared(SqliteAdapter, row_locks=True), "row_locks is declared with gate='sqlite', which sees none"),
        (declared(PLAIN, gate="sqlite"), "gate is 'sqlite', and what goes with it is missing"),
        (declared(PLAIN, counts_statements=True), "recover moved a job and says dml=None; count the statements"),
        (declared(PLAIN, clock="override"), "write `def advance(self, seconds)`"),
        (declared(PLAIN, clock="sundial"), "clock is 'sundial'; declare 'argument'"),
        (declared(PLAIN, without=ONLY.without | {"complet"}), "there is no verb 'complet'; did you mean 'complete'?"),
        (declared(PLAIN, without=ONLY.without | {"claim"}), "`without` names 'claim'; write it"),
        (hostile.frozen(), "clock is 'override', and after advance(7) a claim wrote the time 0 still"),
        (hostile.with_actor(hostile.Epochal), "that is no time since the beginning. Give your queue the `now`"),
    ],
)
def test_a_declaration_that_is_not_true_is_found_out(make: type[Adapter], said: str) -> None:
    assert said in faulted(tried(make))


# ------------------------------------------------------------------------------------------------- it leaves things


@pytest.fixture
def leaked() -> Iterator[None]:
    yield
    while hostile.Leaking.leaked:
        hostile.Leaking.leaked.pop().close()


@pytest.mark.usefixtures("leaked")
def test_what_leaks_is_told_by_a_run_of_races_alone_too() -> None:
    class LeakingActor(ReferenceActor):
        async def complete(self, command: c.Complete, now: int) -> o.Outcome:
            hostile.Leaking.leaked += [Path(os.devnull).open() for _ in range(LEAK)]  # noqa: SIM115
            return await super().complete(command, now)

    class Leaking(SqliteAdapter):
        def actor(self, worker: int) -> ReferenceActor:
            return self._actors.setdefault(worker, LeakingActor(self, worker))

    fault = faulted(tried(Leaking, "CANCEL-09", queue="backfill"))
    assert "more files and connections are open than at the start" in fault


@pytest.mark.usefixtures("leaked")
def test_connections_that_nobody_closes_are_counted() -> None:
    fault = faulted(tried(hostile.with_actor(hostile.Leaking)))
    assert "more files and connections are open than at the start; close what `reset`, a verb" in fault


def test_a_connection_that_closing_leaves_open_is_counted() -> None:
    make, left = hostile.unclosing()
    try:
        fault = faulted(tried(make))
    finally:
        for connection in left:
            connection.close()
    assert "after it was opened and closed 2 times more; let `close` close" in fault


def test_jobs_that_a_reset_leaves_are_told() -> None:
    fault = faulted(tried(served(hostile.Unreset)))
    assert "let `reset` remove all jobs" in fault


def test_a_transaction_that_is_left_open_makes_the_next_verb_raise() -> None:
    fault = faulted(tried(hostile.with_actor(hostile.OpenEnded)))
    assert "raised OperationalError: database is locked" in fault
    assert "a call before this one has left its transaction open" in fault


def test_a_transaction_that_is_left_open_breaks_its_clause_where_conflicts_are_answers() -> None:
    make = hostile.with_actor(hostile.Impatient, reset=SyncAdapter.reset)
    assert broken(tried(make)) == ["CLAIM-09"]


# ------------------------------------------------------------------------------------------------------------ it wavers


def test_answers_that_waver_fail_under_the_clause_that_they_break() -> None:
    assert broken(tried(hostile.with_actor(hostile.Wavering), "FENCE-01")) == ["FENCE-01"]


# ------------------------------------------------------------------------------------------- it can more than it says


def test_what_is_there_and_not_declared_is_told() -> None:
    make = declared(PLAIN, without=ONLY.without | {"renew", "fail"})
    outcome = tried(make, "CLAIM-01")
    assert outcome.result.unclaimed == (
        "fail: there, although `without` names it",
        "renew: there, although `without` names it",
    )
    assert outcome.result.verdict == "pass"
    assert tried(PLAIN, "CLAIM-01").result.unclaimed == ()


def test_the_plain_adapter_itself_is_right() -> None:
    assert broken(tried(PLAIN)) == []
    assert TINY.minimum == 1 and isinstance(ONLY, Capabilities)
