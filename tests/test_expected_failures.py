"""The expected-failures file: it excuses what it names and nothing else, and notices what needs no excuse any more."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from fencepost.adapters.memory import MemoryAdapter
from fencepost.conformance import races, run
from fencepost.conformance.cli import call
from fencepost.conformance.expected_failures import ExpectedFailures, read_expected_failures
from fencepost.conformance.profiles import PROFILES
from fencepost.conformance.run import Plan
from fencepost.conformance.selection import Unusable
from fencepost.model.queues import QUEUES, QueueSpec
from fencepost.reports import result
from fencepost.reports.result import ExpectedFailure
from planted_queues import Hookless, Late, Teams
from runs import broken, pairs_of, planned, went

pytest_plugins = ["pytester"]

NOTYET = ExpectedFailure(kind="notyet", reason="ticket 12")
KNOWN = "FENCE-01:\n  kind: notyet\n  reason: ticket 12\n"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def expected_by(text: str, served: Mapping[str, QueueSpec] = QUEUES) -> ExpectedFailures:
    path = Path("known.yaml")
    path.write_text(text)
    return read_expected_failures(path, served)


def plan(make: type[MemoryAdapter] | type[Late], *clauses: str, text: str, queue: str = "backfill") -> Plan:
    whole = planned(make, *clauses, queues=(queue,), profile=PROFILES["quick"])
    return replace(whole, expected=expected_by(text))


# ------------------------------------------------------------------------------------------------------- the file


def test_an_entry_holds_for_all_queues_or_for_the_one_that_it_names() -> None:
    read = expected_by(
        "fence-01:\n  - {queue: backfill, kind: never, reason: by design}\n  - {kind: notyet, reason: ticket 12}\n"
        "REC-01: {queue: mutation, kind: notimpl, reason: no recovery}\n"
    )
    assert str(read.of("FENCE-01", "backfill")) == "never: by design"
    assert read.of("FENCE-01", "mutation") == NOTYET
    assert read.of("FENCE-01", "mutation", named=True) is None
    assert read.of("REC-01", "backfill") is None
    assert read.clauses("backfill") == {"FENCE-01"}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("FENCE-99: {kind: never, reason: x}", "known.yaml: there is no clause 'FENCE-99'; did you mean FENCE-"),
        ("BATCH-01: {kind: never, reason: x}", "known.yaml: clause BATCH-01 is not built in this version"),
        ("FENCE-01: {kind: nevr, reason: x}", "known.yaml: FENCE-01: there is no kind 'nevr'; did you mean 'never'?"),
        ("FENCE-01: {kind: never, reason: x, queu: backfill}", "there is no key 'queu'; did you mean 'queue'?"),
        ("FENCE-01: {kind: never, reason: x, queue: backfil}", "no queue 'backfil'; did you mean 'backfill'?"),
        ("FENCE-01: {kind: never, reason: x, queue: [backfill]}", "there is no queue"),
        ("FENCE-01: {kind: never}", "known.yaml: FENCE-01: lacks its `reason:`; say why the failure is expected"),
        ("FENCE-01: {kind: never, reason: ' '}", "lacks its `reason:`"),
        ("FENCE-01: {reason: x}", "lacks its `kind:`; give one of notimpl, notyet, never"),
        ("FENCE-01: []", "must have `kind:` and `reason:` below it"),
        ("FENCE-01: never", "must have `kind:` and `reason:` below it"),
        ("FENCE-01: [{kind: never, reason: x}, {kind: notyet, reason: y}]", "two entries for all queues; keep one"),
        ("FENCE-01: {kind: never, reason: x}\nFENCE-01: {kind: never, reason: x}", "key `FENCE-01` stands twice"),
        ("- FENCE-01", "an entry is a clause with `kind:` and `reason:` below it"),
        ("", "is empty; an entry is a clause"),
        ("FENCE-01: {kind", "known.yaml, line 1"),
    ],
)  # fmt: skip
def test_what_means_nothing_is_refused_with_the_place(text: str, said: str) -> None:
    with pytest.raises(Unusable) as refused:
        expected_by(text)
    assert said in str(refused.value)


def test_an_entry_may_name_a_queue_that_the_adapter_declares_itself() -> None:
    text = "FENCE-01: {queue: mails, kind: never, reason: by design}"
    assert str(expected_by(text, Teams.queues).of("FENCE-01", "mails")) == "never: by design"
    with pytest.raises(Unusable, match="there is no queue 'backfill'"):
        expected_by("FENCE-01: {queue: backfill, kind: never, reason: by design}", Teams.queues)


def test_a_file_that_is_not_there_is_refused() -> None:
    with pytest.raises(Unusable, match=r"nowhere\.yaml: cannot be read"):
        read_expected_failures(Path("nowhere.yaml"))


# ------------------------------------------------------------------------------------------------------- the run


def test_an_expected_failure_is_kept_with_its_reason_and_the_run_conforms() -> None:
    found = went(plan(Late, "FENCE-01", "CLAIM-01", text=KNOWN)).result
    pair = pairs_of(found)["FENCE-01", "backfill"]
    assert (pair.verdict, pair.expected, pair.standing) == ("fail", NOTYET, "expected failure")
    assert pairs_of(found)["CLAIM-01", "backfill"].standing == "pass"
    assert (found.verdict, result.exit_code(found)) == ("expected failures", 0)
    assert [failure.expected for failure in found.failures] == [NOTYET]


def test_a_failure_that_nobody_expected_still_fails_the_run() -> None:
    found = went(plan(Late, "FENCE-01", text="REC-01: {kind: never, reason: another one}")).result
    assert (found.verdict, result.exit_code(found)) == ("fail", 1)


def test_an_expected_failure_does_not_excuse_what_is_required() -> None:
    found = went(replace(plan(Late, "FENCE-01", text=KNOWN), required=("FENCE-01",))).result
    assert pairs_of(found)["FENCE-01", "backfill"].standing == "expected failure"
    assert [each.requirement for each in found.unmet] == ["FENCE-01"]
    assert (found.verdict, result.exit_code(found)) == ("fail", 1)


def test_an_expected_failure_beside_what_was_asked_for_is_excused_too() -> None:
    found = went(plan(Late, "CLAIM-01", text=KNOWN)).result
    assert [failure.clause for failure in found.failures] in ([], ["FENCE-01"])
    assert found.verdict == "pass"


def test_an_expectation_that_nothing_meets_fails_the_run() -> None:
    found = went(plan(MemoryAdapter, "FENCE-01", text=KNOWN)).result
    assert pairs_of(found)["FENCE-01", "backfill"].standing == "stale"
    assert (found.verdict, result.exit_code(found)) == ("fail", 1)


def test_an_expectation_of_what_does_not_apply_is_stale_where_it_names_the_queue() -> None:
    text = "CLAIM-12: {queue: backfill, kind: never, reason: no hooks}\nREC-08: {kind: never, reason: no hooks}"
    pairs = pairs_of(went(plan(Hookless, "CLAIM-12", "REC-08", text=text)).result)
    assert pairs["CLAIM-12", "backfill"].standing == "stale"
    assert pairs["REC-08", "backfill"].standing == "not applicable"


def test_an_expectation_is_judged_only_where_it_was_asked_for() -> None:
    found = went(plan(MemoryAdapter, "CLAIM-01", text=KNOWN)).result
    assert result.exit_code(found) == 0


def test_what_is_expected_is_not_made_short(monkeypatch: pytest.MonkeyPatch) -> None:
    def reduced(*_: object) -> None:
        raise AssertionError("nobody waits for this story")

    monkeypatch.setattr(run, "reduced", reduced)
    (failure,) = went(plan(Late, "FENCE-01", text=KNOWN)).result.failures
    assert failure.length > 4
    assert failure.scenario is not None and Path(failure.scenario).exists()


def test_a_race_that_is_expected_is_not_made_short_either(monkeypatch: pytest.MonkeyPatch) -> None:
    def shortened(*_: object) -> None:
        raise AssertionError("nobody waits for this story")

    monkeypatch.setattr(races, "_shortened", shortened)
    text = "CANCEL-09: {kind: notyet, reason: ticket 13}"
    made = broken("complete-checks-cancel-before")
    found = went(plan(made, "CANCEL-09", text=text)).result  # type: ignore[arg-type]
    assert [failure.clause for failure in found.failures] == ["CANCEL-09"]
    assert result.exit_code(found) == 0


def test_a_result_with_expectations_is_read_back_as_it_was_written() -> None:
    found = went(plan(Late, "FENCE-01", text=KNOWN)).result
    result.write(found, Path("result.json"))
    assert result.read(Path("result.json")) == found


def test_the_command_line_says_it_clearly(capsys: pytest.CaptureFixture[str]) -> None:
    Path("known.yaml").write_text(KNOWN)
    chosen = ("--queue=backfill", "--clause=FENCE-01", "--clause=CLAIM-01", "--profile=quick", "--seed=1")
    code = call(["run", "--adapter=planted_queues:Late", *chosen, "--expected-failures=known.yaml"])
    said = " ".join(capsys.readouterr().out.split())
    assert code == 0
    assert "EXPECTED FAILURES adapter planted_queues:Late" in said
    assert "1 of 2 pairs passed · 1 expected failure" in said
    assert "expected failure on backfill: FENCE-01: notyet: ticket 12 (fail: complete: expired" in said
    assert "✗" not in said

    assert call(["run", "--adapter=memory", *chosen, "--expected-failures=known.yaml"]) == 1
    assert "1 stale expectation" in " ".join(capsys.readouterr().out.split())
    assert call(["run", "--expected-failures=nowhere.yaml"]) == 4
    assert "nowhere.yaml: cannot be read" in capsys.readouterr().err


# ------------------------------------------------------------------------------------------------------- pytest

CONTRACT = "-p", "shallow", "--pyargs", "fencepost.conformance", "--fencepost-profile=quick", "--fencepost-seed=1"
CHOSEN = "--fencepost-queue=backfill", "--fencepost-clause=FENCE-01", "--fencepost-clause=CLAIM-01"
FILE = "--fencepost-expected-failures=known.yaml"


@pytest.fixture(autouse=True)
def beside_the_planted_queues(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent))


@pytest.mark.parametrize("workers", ["-n0", "-n2"])
def test_pytest_reports_an_expected_failure_as_one(workers: str, pytester: pytest.Pytester) -> None:
    (pytester.path / "known.yaml").write_text(KNOWN)
    adapter = "--fencepost-adapter=planted_queues:Late"
    ran = pytester.runpytest_subprocess(*CONTRACT, *CHOSEN, adapter, FILE, "-rx", workers)
    assert ran.parseoutcomes() == {"passed": 1, "xfailed": 1}
    assert ran.ret == 0
    ran.stdout.fnmatch_lines(["XFAIL *FENCE-01[[]backfill[]] - notyet: ticket 12"])
    assert "EXPECTED FAILURES  adapter planted_queues:Late" in ran.stdout.str()


def test_pytest_is_red_on_an_expected_failure_of_what_is_required(pytester: pytest.Pytester) -> None:
    (pytester.path / "known.yaml").write_text(KNOWN)
    options = "--fencepost-adapter=planted_queues:Late", "--fencepost-require=FENCE-01"
    ran = pytester.runpytest_subprocess(*CONTRACT, *CHOSEN, *options, FILE)
    assert (ran.ret, ran.parseoutcomes()) == (1, {"passed": 1, "failed": 1})
    assert "FENCE-01 is required of backfill, and is not met: failed: complete: expired" in ran.stdout.str()


@pytest.mark.parametrize("workers", ["-n0", "-n2"])
def test_pytest_is_red_on_a_stale_expectation(workers: str, pytester: pytest.Pytester) -> None:
    (pytester.path / "known.yaml").write_text(KNOWN)
    ran = pytester.runpytest_subprocess(*CONTRACT, *CHOSEN, "--fencepost-adapter=memory", FILE, workers)
    assert ran.parseoutcomes() == {"passed": 1, "failed": 1}
    assert ran.ret == 1
    told = "although its failure is expected (notyet: ticket 12): remove that entry"
    assert told in " ".join(ran.stdout.str().split())


def test_pytest_can_be_asked_for_the_stories_of_what_is_expected(pytester: pytest.Pytester) -> None:
    (pytester.path / "known.yaml").write_text(KNOWN)
    adapter = "--fencepost-adapter=planted_queues:Late"
    ran = pytester.runpytest_subprocess(*CONTRACT, *CHOSEN, adapter, FILE, "--runxfail")
    assert ran.ret == 1
    assert "lease has expired" in ran.stdout.str().partition("✗ must be rejected")[2]


def test_pytest_refuses_a_file_that_means_nothing(pytester: pytest.Pytester) -> None:
    (pytester.path / "known.yaml").write_text("FENCE-1: {kind: never, reason: x}")
    ran = pytester.runpytest_subprocess(*CONTRACT, FILE)
    assert ran.ret == 4
    assert "known.yaml: there is no clause 'FENCE-1'; did you mean FENCE-" in ran.stderr.str()
