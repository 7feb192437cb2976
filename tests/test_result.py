"""The JSON result: its verdicts, its exit codes, and a file that can't lie by being cut off or edited."""

from __future__ import annotations

import io
import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest
from fencepost.reports import mutants as m
from fencepost.reports import result as r
from fencepost.reports.document import ResultError
from fencepost.reports.terminal import Progress, make_console, render_result
from pydantic import ValidationError
from rich.console import Console

NOTYET = r.ExpectedFailure(kind="notyet", reason="ticket 12")


def pair(verdict: r.PairVerdict = "pass", reason: str = "", clause: str = "CLAIM-01", **other: Any) -> r.ClauseResult:
    return r.ClauseResult(id=clause, queue="backfill", verdict=verdict, reason=reason, **other)


def a_result(**changed: Any) -> r.Result:
    fields: dict[str, Any] = {
        "verdict": "fail",
        "adapter": "pg",
        "profile": "ci",
        "seed": 7,
        "queues": ("backfill", "mutation"),
        "clauses": (
            pair(checked=1200, teeth=340),
            pair("fail", clause="FENCE-02", checked=90, teeth=90),
            pair("inconclusive", "3 of 100 checks with teeth", clause="REC-12", checked=5, teeth=3),
            pair("not applicable", "the queue has no token", clause="FENCE-03"),
            pair("not exercised", r.NOT_BUILT, clause="CLAIM-15"),
        ),
        "certificates": (
            r.Certificate(
                clause="CLAIM-06",
                queue="backfill",
                adapter="pg",
                pair="claim ‖ claim",
                schedules=50,
                exhaustive=True,
                bound="2 actors, 1 job",
            ),
        ),
        "failures": (
            r.FailureResult(
                clause="FENCE-02",
                reason="complete: superseded",
                why="must be rejected",
                queue="backfill",
                scenario="FENCE-02-3f2a.yaml",
                length=6,
                story="FENCE-02  the story [of w1]",
            ),
        ),
        "coverage": r.Coverage(examples=100, steps=2000, schedules=50, seconds=12.345),
        "versions": {"fencepost": "0.1.0", "postgresql": "18.1"},
    }
    return r.Result(**{**fields, **changed})


@pytest.mark.parametrize(
    ("counted", "verdict"),
    [
        ({"checked": 500, "teeth": 100}, "pass"),
        ({"checked": 500, "teeth": 99}, "inconclusive"),
        ({"checked": 500, "teeth": 99, "minimum": 99}, "pass"),
        ({"checked": 500, "teeth": 0}, "inconclusive"),
        ({"checked": 0, "teeth": 0}, "not exercised"),
        ({"checked": 1, "teeth": 1, "complete": True}, "pass"),
        ({"checked": 0, "teeth": 0, "complete": True}, "not exercised"),
        ({"checked": 0, "teeth": 0, "schedules": 12, "complete": True}, "pass"),
        ({"checked": 0, "teeth": 0, "schedules": 100}, "pass"),
        ({"checked": 9, "teeth": 9, "schedules": 99}, "inconclusive"),
        ({"checked": 500, "teeth": 500, "failed": True}, "fail"),
        ({"checked": 1, "teeth": 1, "failed": True, "complete": True, "schedules": 100}, "fail"),
        ({"checked": 0, "teeth": 0, "built": False}, "not exercised"),
        ({"checked": 0, "teeth": 0, "applicable": False}, "not applicable"),
        ({"checked": 1, "teeth": 0, "applicable": False, "failed": True}, "fail"),
    ],
)
def test_a_pair_passes_only_on_enough_checks_with_teeth(counted: dict[str, Any], verdict: str) -> None:
    assert r.pair_verdict(**counted) == verdict


@pytest.mark.parametrize(
    ("pairs", "verdict"),
    [
        ([pair(), pair()], "pass"),
        ([pair(), pair("not applicable"), pair("not exercised", r.NOT_BUILT)], "pass"),
        ([pair(), pair("not exercised", "never checked")], "inconclusive"),
        ([pair(), pair("inconclusive")], "inconclusive"),
        ([pair("inconclusive"), pair("fail")], "fail"),
        ([pair("not applicable"), pair("not exercised", r.NOT_BUILT)], "inconclusive"),
        ([], "inconclusive"),
        ([pair(), pair("fail", expected=NOTYET)], "expected failures"),
        ([pair(), pair("inconclusive", expected=NOTYET)], "expected failures"),
        ([pair(), pair("not exercised", expected=NOTYET)], "expected failures"),
        ([pair("fail"), pair("fail", expected=NOTYET)], "fail"),
        ([pair("inconclusive"), pair("fail", expected=NOTYET)], "inconclusive"),
        ([pair(), pair(expected=NOTYET)], "fail"),
        ([pair(), pair("not applicable", expected=NOTYET)], "fail"),
    ],
)
def test_a_run_passes_only_when_every_pair_inside_it_does(pairs: list[r.ClauseResult], verdict: str) -> None:
    assert r.run_verdict(pairs) == verdict


def test_a_self_check_replaces_a_pass_and_nothing_else() -> None:
    assert r.run_verdict([pair()], self_check=True) == "self-check"
    assert r.run_verdict([pair("fail")], self_check=True) == "fail"
    assert r.run_verdict([pair("inconclusive")], self_check=True) == "inconclusive"


def test_a_counterexample_fails_the_run_and_a_broken_harness_says_nothing_about_the_adapter() -> None:
    assert r.run_verdict([pair()], failures=1) == "fail"
    assert r.run_verdict([pair("fail")], failures=1, fault=True) == "harness error"


def bare(verdict: r.RunVerdict, *pairs: r.ClauseResult, **changed: Any) -> r.Result:
    return a_result(**{"verdict": verdict, "clauses": pairs, "certificates": (), "failures": (), **changed})


@pytest.mark.parametrize(
    ("verdict", "of", "code"),
    [("pass", "pass", 0), ("self-check", "pass", 0), ("fail", "fail", 1), ("inconclusive", "inconclusive", 1),
     ("harness error", "pass", 3)],
)  # fmt: skip
def test_exit_codes_follow_the_verdict(verdict: r.RunVerdict, of: r.PairVerdict, code: int) -> None:
    assert r.exit_code(bare(verdict, pair(of, checked=1))) == code


def test_interruption_and_an_empty_run_have_codes_of_their_own() -> None:
    assert r.exit_code(bare("inconclusive", pair(checked=1), interrupted=True)) == 2
    assert r.exit_code(bare("harness error", interrupted=True)) == 2
    assert r.exit_code(bare("inconclusive")) == 5
    assert r.exit_code(bare("harness error")) == 3
    assert int(r.Exit.USAGE) == 4


def test_a_failure_that_was_expected_is_conformant_and_one_that_is_gone_is_not() -> None:
    assert r.exit_code(bare("expected failures", pair("fail", checked=1, expected=NOTYET))) == 0
    assert r.exit_code(bare("fail", pair(checked=1, expected=NOTYET))) == 1
    with pytest.raises(ValidationError, match="say 'expected failures'"):
        bare("pass", pair("fail", checked=1, expected=NOTYET))
    with pytest.raises(ValidationError, match="say 'fail'"):
        bare("pass", pair(checked=1, expected=NOTYET))


def test_a_counterexample_that_was_expected_does_not_fail_the_run_also_beside_what_was_asked_for() -> None:
    (failure,) = a_result().failures
    known = failure.model_copy(update={"expected": NOTYET})
    assert r.exit_code(bare("pass", pair(checked=1), failures=(known,))) == 0
    with pytest.raises(ValidationError, match="say 'fail'"):
        bare("pass", pair(checked=1), failures=(failure, known))


def test_checks_of_what_does_not_apply_measure_nothing() -> None:
    assert r.exit_code(bare("inconclusive", pair("not applicable", checked=7, teeth=7))) == 5


def test_a_certificate_alone_is_something_measured() -> None:
    assert a_result(verdict="inconclusive", clauses=(), failures=()).measured
    assert not bare("inconclusive").measured


def test_a_run_that_was_cut_short_is_never_better_than_inconclusive() -> None:
    assert r.run_verdict([pair()], interrupted=True) == "inconclusive"
    assert r.run_verdict([pair()], interrupted=True, self_check=True) == "inconclusive"
    assert r.run_verdict([pair("fail")], interrupted=True) == "fail"
    for green in ("pass", "self-check"):
        with pytest.raises(ValidationError, match="say 'inconclusive'"):
            bare(green, pair(checked=1), interrupted=True)


def test_a_pair_that_was_never_checked_cannot_pass() -> None:
    with pytest.raises(ValidationError, match="CLAIM-01 on backfill passes, although it was never checked"):
        bare("inconclusive", pair())


def test_a_run_in_which_nothing_failed_cannot_fail() -> None:
    with pytest.raises(ValidationError, match="say 'pass'"):
        bare("fail", pair(checked=1))


@pytest.mark.parametrize("verdict", ["pass", "self-check", "inconclusive"])
def test_a_result_with_a_failure_cannot_claim_to_be_anything_better(verdict: str) -> None:
    with pytest.raises(ValidationError, match="say 'fail'"):
        a_result(verdict=verdict)


def test_a_result_cannot_pass_over_a_pair_that_was_not_exercised() -> None:
    with pytest.raises(ValidationError, match="inconclusive"):
        a_result(verdict="pass", clauses=(pair(checked=1), pair("not exercised", "never checked")), failures=())


def test_what_was_written_is_read_back(tmp_path: Path) -> None:
    path = tmp_path / "new" / "folder" / "result.json"
    r.write(a_result(), path)
    assert r.read(path) == a_result()
    assert [entry.name for entry in path.parent.iterdir()] == ["result.json"]


def test_the_file_has_the_documented_shape(tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    r.write(a_result(), path)
    body = json.loads(path.read_text())
    assert list(body) == [
        "schema", "verdict", "interrupted", "adapter", "profile", "seed", "queues", "clauses", "certificates",
        "failures", "levels", "required", "unmet", "coverage", "unclaimed", "versions", "footer",
    ]  # fmt: skip
    assert body["schema"] == 2
    assert list(body["clauses"][0]) == ["id", "queue", "verdict", "checked", "teeth", "reason", "gap", "expected"]
    assert list(body["certificates"][0]) == [
        "clause", "queue", "adapter", "pair", "schedules", "exhaustive", "bound"
    ]  # fmt: skip
    assert list(body["failures"][0]) == [
        "clause", "reason", "why", "queue", "scenario", "length", "story", "expected"
    ]  # fmt: skip
    assert list(body["footer"]) == ["clauses", "certificates", "failures", "digest"]
    assert (body["footer"]["clauses"], body["footer"]["certificates"], body["footer"]["failures"]) == (5, 1, 1)


def test_a_file_cut_off_anywhere_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    r.write(a_result(), path)
    whole = path.read_bytes()
    for end in range(0, len(whole) - 1, 7):  # without its last newline the file is still whole
        path.write_bytes(whole[:end])
        with pytest.raises(ResultError, match=r"result\.json: cut off"):
            r.read(path)


def edited(path: Path, **changes: Any) -> None:
    body = json.loads(path.read_text())
    body.update(changes)
    path.write_text(json.dumps({key: value for key, value in body.items() if value is not None}))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"footer": None}, "footer is missing"),
        ({"failures": []}, "holds 0 failures, its footer says 1"),
        ({"clauses": "none"}, "holds 0 clauses, its footer says 5"),
        ({"seed": 8}, "digest: it was edited"),
        ({"verdict": "pass"}, "digest: it was edited"),
        ({"extra": 1}, "digest: it was edited"),
        ({"schema": 3}, "has schema 3, this version reads 2; read it with a newer fencepost"),
        ({"schema": 1}, "has schema 1, this version reads 2; write it with a new run"),
        ({"schema": None}, "no schema number"),
    ],
)
def test_an_edited_file_is_refused_with_the_reason(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    path = tmp_path / "result.json"
    r.write(a_result(), path)
    edited(path, **changes)
    with pytest.raises(ResultError, match=message):
        r.read(path)


def test_reformatting_a_file_is_no_edit(tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    r.write(a_result(), path)
    path.write_text(json.dumps(json.loads(path.read_text()), sort_keys=True))
    assert r.read(path) == a_result()


def test_other_files_are_refused_with_the_reason(tmp_path: Path) -> None:
    with pytest.raises(ResultError, match="can't be read"):
        r.read(tmp_path / "missing.json")
    path = tmp_path / "other.json"
    path.write_text("[]")
    with pytest.raises(ResultError, match="no fencepost result"):
        r.read(path)
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(ResultError, match="not JSON"):
        r.read(path)
    m.write(m.kill_table([]), path)
    edited(path, schema=r.SCHEMA)
    with pytest.raises(ResultError, match="footer says None"):
        r.read(path)


def test_a_failed_write_leaves_the_old_file_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "result.json"
    r.write(a_result(), path)

    def broken(*_: Any) -> None:
        raise OSError("disk full")

    monkeypatch.setattr("os.replace", broken)
    with pytest.raises(OSError, match="disk full"):
        r.write(a_result(seed=8), path)
    assert r.read(path).seed == 7
    assert [entry.name for entry in tmp_path.iterdir()] == ["result.json"]


def test_a_report_is_on_the_disk_before_it_has_its_name_and_everybody_may_read_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = []
    for name in ("fsync", "replace"):
        real = getattr(os, name)
        monkeypatch.setattr(os, name, lambda *rest, name=name, real=real: (done.append(name), real(*rest))[1])
    path = tmp_path / "result.json"
    r.write(a_result(), path)
    assert done == ["fsync", "replace"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o644


def rendered(result: r.Result, **options: bool) -> str:
    out = io.StringIO()
    render_result(result, make_console(out), **options)
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines())


def test_the_terminal_shows_the_table_the_reasons_the_stories_and_the_verdict() -> None:
    text = rendered(a_result())
    assert "\x1b" not in text
    assert max(map(len, text.splitlines())) <= 100
    lines = [" ".join(line.split()) for line in text.splitlines()]
    assert "CLAIM-01 Only a pending job can be claimed pass 1,200/340" in lines
    assert "FENCE-02 A superseded worker is rejected on every wr… fail 90/90" in lines
    assert "inconclusive on backfill: REC-12: 3 of 100 checks with teeth" in lines
    assert "not applicable on backfill: FENCE-03: the queue has no token" in lines
    assert "1 pair of clause and queue not exercised: not built" in lines
    assert not any(line.startswith("CLAIM-15") for line in lines)
    assert "CLAIM-06 claim ‖ claim backfill, pg: all 50 schedules; 2 actors, 1 job" in lines
    assert "FENCE-02 the story [of w1]" in lines
    assert lines[-3:] == [
        "FAIL adapter pg · profile ci · seed 7 · 1 of 3 pairs passed · 1 failure",
        "100 examples · 2,000 steps · 50 schedules · 12.3 s",
        "fencepost 0.1.0 · postgresql 18.1",
    ]


def test_the_terminal_tells_an_expected_failure_by_its_reason_and_a_stale_one_to_remove_it() -> None:
    (failure,) = a_result().failures
    clauses = (
        pair("fail", "complete: superseded", clause="FENCE-02", checked=90, teeth=90, expected=NOTYET),
        pair(checked=9, teeth=9, expected=NOTYET),
    )
    known = failure.model_copy(update={"expected": NOTYET})
    lines = [" ".join(line.split()) for line in rendered(a_result(clauses=clauses, failures=(known,))).splitlines()]
    assert "CLAIM-01 Only a pending job can be claimed pass 9/9, stale" in lines
    assert "FENCE-02 A superseded worker is rejected on every wr… fail 90/90, expected" in lines
    assert "expected failure on backfill: FENCE-02: notyet: ticket 12 (fail: complete: superseded)" in lines
    told = " ".join(lines)
    assert "although its failure is expected (notyet: ticket 12): remove that entry" in told
    assert "0 of 2 pairs passed · 1 expected failure · 1 stale expectation" in told
    assert "the story" not in told


def test_a_certificate_that_was_cut_is_not_said_to_hold_for_all_schedules() -> None:
    (whole,) = a_result().certificates
    text = rendered(a_result(certificates=(whole.model_copy(update={"exhaustive": False}),)))
    assert "CLAIM-06  claim ‖ claim  backfill, pg: cut at 50 schedules; 2 actors, 1 job" in text


def test_stories_that_were_told_before_are_not_told_again() -> None:
    assert "the story [of w1]" not in rendered(a_result(), stories=False)


def test_progress_is_silent_where_there_is_no_terminal() -> None:
    shown = io.StringIO()
    for console, quiet in ((make_console(shown), False), (Console(file=shown, force_terminal=True), True)):
        with Progress(console, quiet=quiet) as progress:
            progress.task("backfill", 10)
            progress.advance("backfill", 3)
    assert shown.getvalue() == ""


def test_progress_counts_on_a_terminal() -> None:
    shown = io.StringIO()
    with Progress(Console(file=shown, force_terminal=True, width=80)) as progress:
        progress.task("backfill", 10)
        progress.advance("backfill", 3)
    assert "backfill" in shown.getvalue()
    assert "3/10" in shown.getvalue()
