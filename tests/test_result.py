"""The JSON result: its verdicts, its exit codes, and a file that can't lie by being cut off or edited."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from fencepost.reports import mutants as m
from fencepost.reports import result as r
from fencepost.reports.document import ResultError
from fencepost.reports.terminal import Progress, make_console, render_result
from pydantic import ValidationError
from rich.console import Console


def pair(verdict: r.PairVerdict = "pass", reason: str = "", clause: str = "CLAIM-01", **counts: int) -> r.ClauseResult:
    return r.ClauseResult(id=clause, queue="backfill", verdict=verdict, reason=reason, **counts)


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


@pytest.mark.parametrize(
    ("verdict", "code"), [("pass", 0), ("self-check", 0), ("fail", 1), ("inconclusive", 1), ("harness error", 3)]
)
def test_exit_codes_follow_the_verdict(verdict: r.RunVerdict, code: int) -> None:
    assert r.exit_code(verdict) == code


def test_interruption_and_an_empty_run_have_codes_of_their_own() -> None:
    assert r.exit_code("harness error", interrupted=True) == 2
    assert r.exit_code("inconclusive", measured=False) == 5
    assert r.exit_code("harness error", measured=False) == 3
    assert int(r.Exit.USAGE) == 4


@pytest.mark.parametrize("verdict", ["pass", "self-check", "inconclusive"])
def test_a_result_with_a_failure_cannot_claim_to_be_anything_better(verdict: str) -> None:
    with pytest.raises(ValidationError, match="say 'fail'"):
        a_result(verdict=verdict)


def test_a_result_cannot_pass_over_a_pair_that_was_not_exercised() -> None:
    with pytest.raises(ValidationError, match="inconclusive"):
        a_result(verdict="pass", clauses=(pair(), pair("not exercised", "never checked")), failures=())


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
        "schema", "verdict", "adapter", "profile", "seed", "queues", "clauses", "certificates", "failures", "coverage",
        "versions", "footer",
    ]  # fmt: skip
    assert body["schema"] == 1
    assert list(body["clauses"][0]) == ["id", "queue", "verdict", "checked", "teeth", "reason"]
    assert list(body["certificates"][0]) == [
        "clause", "queue", "adapter", "pair", "schedules", "exhaustive", "bound"
    ]  # fmt: skip
    assert list(body["failures"][0]) == ["clause", "reason", "why", "queue", "scenario", "length", "story"]
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
        ({"schema": 2}, "has schema 2, this version reads 1; read it with a newer fencepost"),
        ({"schema": 0}, "has schema 0"),
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


def mutant(name: str, killed_by: str | None = "FENCE-02", **changed: Any) -> m.MutantResult:
    fields = {"clause": "FENCE-02", "queue": "backfill", "adapter": "sqlite", "shortest": 5, "seconds": 0.25}
    return m.MutantResult(id=name, killed_by=killed_by, **{**fields, **changed})


TWENTY = m.Seeds(run=20, killed=20, shortest=19, canonical=18)


def test_the_kill_table_derives_strays_and_figures_from_its_rows(tmp_path: Path) -> None:
    table = m.kill_table(
        [
            mutant("no-owner", examples=4, length=5, evaluations=3, seeds=TWENTY),
            mutant("no-lease", "FENCE-01", also=("FENCE-01",), length=6, evaluations=5),
            mutant("late-fence", schedules=31, length=5, evaluations=7, seconds=9.0),
            mutant("lost", None),
            mutant("wrong", "CLAIM-01", length=5, evaluations=9),
        ],
        [m.Equivalent(id="same", reason="explore: every edge equal")],
    )
    assert [stray.id for stray in table.survivors] == ["lost"]
    assert [(stray.id, stray.killed_by) for stray in table.misnamed] == [("wrong", "CLAIM-01")]
    assert not table.clean
    assert table.summary == m.Summary(
        mutants=5,
        killed=4,
        seconds_median=0.25,
        schedules_max=31,
        evaluations_median=6,
        shortest_share=19 / 24,
        canonical_share=18 / 24,
    )
    path = tmp_path / "mutants.json"
    m.write(table, path)
    assert m.read(path) == table
    body = json.loads(path.read_text())
    assert list(body) == ["schema", "mutants", "equivalent", "survivors", "misnamed", "summary", "footer"]
    assert list(body["mutants"][0]) == [
        "id", "clause", "also", "queue", "adapter", "killed_by", "examples", "schedules", "evaluations", "seconds",
        "length", "shortest", "seeds",
    ]  # fmt: skip
    out = io.StringIO()
    m.render_mutants(table, make_console(out))
    assert "lost (FENCE-02) survived on sqlite backfill" in out.getvalue()
    assert "wrong (FENCE-02) was killed under CLAIM-01 on sqlite backfill" in out.getvalue()
    assert "4 of 5 mutants killed, 1 under a wrong name" in out.getvalue()


def test_a_kill_table_is_clean_only_with_mutants_that_all_died_under_their_name() -> None:
    assert m.kill_table([mutant("no-owner", length=5)]).clean
    assert not m.kill_table([]).clean


def test_more_kills_than_runs_are_refused() -> None:
    with pytest.raises(ValidationError):
        m.Seeds(run=1, killed=2)
    with pytest.raises(ValidationError):
        m.Seeds(run=2, killed=1, shortest=2)
