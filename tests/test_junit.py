"""The JUnit file: red exactly when the run is, each pair under its own name, and nothing undecided told as a pass."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from fencepost.conformance.cli import call
from fencepost.conformance.profiles import PROFILES
from fencepost.reports import junit
from fencepost.reports import result as r
from fencepost.reports.levels import unmet_of
from junitparser import Error, Failure, JUnitXml, Skipped, TestCase
from test_result import NOTYET, a_result, pair

pytest_plugins = ["pytester"]


def cases(xml: JUnitXml) -> dict[tuple[str, str], TestCase]:
    return {(case.classname, case.name): case for suite in xml for case in suite}


def written(result: r.Result, folder: Path) -> dict[tuple[str, str], TestCase]:
    """The cases as a CI system reads them."""
    junit.write(result, folder / "junit.xml")
    return cases(JUnitXml.fromfile(str(folder / "junit.xml")))


def test_every_built_pair_is_a_case_by_area_clause_and_queue(tmp_path: Path) -> None:
    found = written(a_result(), tmp_path)
    assert set(found) == {
        ("pg.CLAIM", "CLAIM-01[backfill]"),
        ("pg.FENCE", "FENCE-02[backfill]"),
        ("pg.REC", "REC-12[backfill]"),
        ("pg.FENCE", "FENCE-03[backfill]"),
    }
    assert found["pg.CLAIM", "CLAIM-01[backfill]"].is_passed
    (failure,) = found["pg.FENCE", "FENCE-02[backfill]"].result
    assert isinstance(failure, Failure)
    assert (failure.message, failure.text) == ("must be rejected", "FENCE-02  the story [of w1]")
    (undecided,) = found["pg.REC", "REC-12[backfill]"].result
    assert isinstance(undecided, Failure)
    assert undecided.message == "3 of 100 checks with teeth"
    (skipped,) = found["pg.FENCE", "FENCE-03[backfill]"].result
    assert isinstance(skipped, Skipped)
    assert skipped.message == "the queue has no token"


def test_the_suite_counts_and_tells_what_was_run(tmp_path: Path) -> None:
    junit.write(a_result(), tmp_path / "deep" / "junit.xml")
    xml = JUnitXml.fromfile(str(tmp_path / "deep" / "junit.xml"))
    assert (xml.tests, xml.failures, xml.errors, xml.skipped, xml.time) == (4, 2, 0, 1, 12.345)
    (suite,) = xml
    said = {each.name: each.value for each in suite.properties()}
    assert said == {
        "adapter": "pg", "profile": "ci", "seed": "7", "verdict": "fail", "not built": "1",
        "fencepost": "0.1.0", "postgresql": "18.1",
    }  # fmt: skip


def test_an_expected_failure_is_skipped_with_its_reason_and_a_stale_one_fails(tmp_path: Path) -> None:
    known = pair("fail", "complete: superseded", clause="FENCE-02", checked=9, expected=NOTYET)
    stale = pair(checked=9, expected=NOTYET)
    found = written(a_result(clauses=(known, stale), failures=()), tmp_path)
    (excused,) = found["pg.FENCE", "FENCE-02[backfill]"].result
    assert isinstance(excused, Skipped) and "notyet: ticket 12" in excused.message
    (gone,) = found["pg.CLAIM", "CLAIM-01[backfill]"].result
    assert isinstance(gone, Failure) and "remove that entry" in gone.message


def test_what_is_required_and_not_met_fails_where_it_would_be_skipped_or_pass(tmp_path: Path) -> None:
    clauses = (pair(checked=9, reason="by one actor only", gap=True), pair("not applicable", "no token", "FENCE-03"))
    found = written(required_of(clauses, "CLAIM-01", "FENCE-03"), tmp_path)
    for clause, names in (
        ("CLAIM-01", ("pg.CLAIM", "CLAIM-01[backfill]")),
        ("FENCE-03", ("pg.FENCE", "FENCE-03[backfill]")),
    ):
        (unmet,) = found[names].result
        assert isinstance(unmet, Failure)
        assert unmet.message.startswith(f"{clause} is required of backfill, and is not met: ")
    assert len(found) == 2


def test_what_is_required_and_has_no_case_is_a_case_of_its_own(tmp_path: Path) -> None:
    clauses = (pair(checked=9), pair("not exercised", r.NOT_BUILT, "CLAIM-15"))
    found = written(required_of(clauses, "CLAIM-15", "FENCE-02"), tmp_path)
    assert found["pg.CLAIM", "CLAIM-01[backfill]"].is_passed
    said = {name: case.result[0].message for name, case in found.items() if case.is_failure}
    assert set(said) == {("pg.require", "CLAIM-15[backfill]"), ("pg.require", "FENCE-02[backfill]")}
    assert "left out of this run" in said["pg.require", "FENCE-02[backfill]"]


def required_of(clauses: tuple[r.ClauseResult, ...], *required: str) -> r.Result:
    unmet = unmet_of(required, clauses, ("backfill",))
    return a_result(clauses=clauses, failures=(), queues=("backfill",), required=required, unmet=unmet)


def test_a_failure_beside_what_was_asked_for_has_a_case_of_its_own(tmp_path: Path) -> None:
    found = written(a_result(clauses=(pair(checked=9),)), tmp_path)
    assert found["pg.FENCE", "FENCE-02[backfill]"].is_failure


def implied(clauses: tuple[r.ClauseResult, ...], failures: int, fault: bool, interrupted: bool) -> r.RunVerdict:
    return r.run_verdict(clauses, failures=failures, fault=fault, interrupted=interrupted)


PAIRS: tuple[dict[str, Any], ...] = (
    {"checked": 1},
    {"checked": 1, "expected": NOTYET},
    {"verdict": "fail", "checked": 1},
    {"verdict": "fail", "checked": 1, "expected": NOTYET},
    {"verdict": "inconclusive", "checked": 1},
    {"verdict": "not applicable"},
    {"verdict": "not applicable", "checked": 1},
    {"verdict": "not exercised"},
    {"verdict": "not exercised", "reason": r.NOT_BUILT},
)


@pytest.mark.parametrize(("fault", "interrupted"), [*product([False, True], repeat=2)])
@pytest.mark.parametrize("certified", [False, True])
@pytest.mark.parametrize("failures", [(), a_result().failures])
def test_the_file_is_red_exactly_when_the_run_is(
    fault: bool, interrupted: bool, certified: bool, failures: tuple[r.FailureResult, ...]
) -> None:
    certificates = a_result().certificates if certified else ()
    for first, second in product(PAIRS, repeat=2):
        clauses = (pair(**first), pair(**{**second, "clause": "REC-01"}))
        verdict = implied(clauses, len(failures), fault, interrupted)
        run = a_result(
            verdict=verdict, interrupted=interrupted, clauses=clauses, certificates=certificates, failures=failures
        )
        every = cases(junit.junit(run)).values()
        red = any(case.is_failure or case.is_error for case in every)
        assert red == (r.exit_code(run) != 0), run


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"verdict": "harness error"}, "the adapter or its database could not be driven"),
        ({"interrupted": True}, "interrupted"),
        ({"verdict": "inconclusive", "clauses": (), "certificates": (), "failures": ()}, "nothing was measured"),
    ],
)
def test_what_befell_the_whole_run_is_an_error_of_its_own(changes: dict[str, Any], said: str, tmp_path: Path) -> None:
    (error,) = written(a_result(**changes), tmp_path)["pg.run", "run"].result
    assert isinstance(error, Error)
    assert said in error.message


def test_what_xml_cannot_hold_is_no_damage(tmp_path: Path) -> None:
    (failure,) = a_result().failures
    odd = failure.model_copy(update={"story": "job \x00\x1b[31m <&> \ud800"})
    found = written(a_result(failures=(odd,)), tmp_path)
    (told,) = found["pg.FENCE", "FENCE-02[backfill]"].result
    assert told.text == "job \ufffd\ufffd[31m <&> \ufffd"


# ------------------------------------------------------------------------------------------------------- both faces


def standing(case: TestCase) -> str:
    return "red" if case.is_failure or case.is_error else "skipped" if case.is_skipped else "green"


@pytest.mark.parametrize("workers", ["-n0", "-n2"])
def test_the_command_line_and_pytest_write_the_same_names_and_standings(
    workers: str, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent))
    (pytester.path / "known.yaml").write_text("CANCEL-06: {kind: notyet, reason: ticket 12}\n")
    options = (
        "adapter=planted_queues:Boasting",
        "queue=backfill",
        "profile=quick",
        "seed=1",
        "expected-failures=known.yaml",
    )
    monkeypatch.setitem(PROFILES, "quick", replace(PROFILES["quick"], examples=10, longest=20))
    assert call(["run", *(f"--{each}" for each in options), "--junit=ours.xml"]) == 1
    ran = pytester.runpytest_subprocess(
        *("-p", "shallow", "--pyargs", "fencepost.conformance", "--junitxml=theirs.xml", workers),
        *(f"--fencepost-{each}" for each in options),
    )
    assert ran.ret == 1
    ours, theirs = (cases(JUnitXml.fromfile(str(pytester.path / f"{name}.xml"))) for name in ("ours", "theirs"))
    assert ("planted_queues:Boasting.FENCE", "FENCE-06[backfill]") in ours
    assert {names: standing(case) for names, case in ours.items()} == {
        names: standing(case) for names, case in theirs.items()
    }
    assert {standing(case) for case in ours.values()} == {"red", "skipped", "green"}


def test_a_file_that_cannot_be_written_any_more_keeps_no_other_from_being_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(PROFILES, "quick", replace(PROFILES["quick"], examples=10, longest=20))
    files = "--json=result.json", "--junit=junit.xml"
    options = "--adapter=planted_queues:InTheWay", "--queue=backfill", "--clause=ATT-01", "--profile=quick"
    assert call(["run", *options, *files]) == 4
    assert "Error: result.json: cannot be written (Is a directory); give another place" in capsys.readouterr().err
    assert ("planted_queues:InTheWay.ATT", "ATT-01[backfill]") in cases(JUnitXml.fromfile("junit.xml"))


def test_a_prefix_that_was_asked_for_stays(pytester: pytest.Pytester) -> None:
    options = "--fencepost-adapter=memory", "--fencepost-clause=CLAIM-06", "--junitxml=j.xml", "--junitprefix=nightly"
    pytester.makepyfile("def test_theirs(): pass")
    pytester.runpytest_subprocess(".", "--pyargs", "fencepost.conformance", *options)
    found = set(cases(JUnitXml.fromfile(str(pytester.path / "j.xml"))))
    assert ("nightly.memory.CLAIM", "CLAIM-06[backfill]") in found
    assert ("nightly.test_a_prefix_that_was_asked_for_stays", "test_theirs") in found
