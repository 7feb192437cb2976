"""The kill table: its strays and figures follow from its rows, and its file is read back as it was written."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from fencepost.reports import mutants as m
from fencepost.reports.terminal import make_console
from pydantic import ValidationError


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
            mutant("slower", length=5, evaluations=6, seconds=0.75),
            mutant("lost", None),
            mutant("wrong", "CLAIM-01", length=5, evaluations=9, seconds=0.75),
        ],
        [m.Equivalent(id="same", reason="explore: every edge equal")],
    )
    assert [stray.id for stray in table.survivors] == ["lost"]
    assert [(stray.id, stray.killed_by) for stray in table.misnamed] == [("wrong", "CLAIM-01")]
    assert not table.clean
    assert table.summary == m.Summary(
        mutants=6,
        killed=5,
        seconds_median=0.5,
        schedules_max=31,
        evaluations_median=6,
        shortest_share=19 / 25,
        canonical_share=18 / 25,
    )
    path = tmp_path / "mutants.json"
    m.write(table, path)
    assert m.read(path) == table
    body = json.loads(path.read_text())
    assert list(body) == [
        "schema",
        "interrupted",
        "mutants",
        "equivalent",
        "survivors",
        "misnamed",
        "summary",
        "footer",
    ]
    assert list(body["mutants"][0]) == [
        "id", "clause", "also", "queue", "adapter", "killed_by", "examples", "schedules", "evaluations", "seconds",
        "length", "shortest", "seeds",
    ]  # fmt: skip
    out = io.StringIO()
    m.render_mutants(table, make_console(out))
    assert "lost (FENCE-02) survived on sqlite backfill" in out.getvalue()
    assert "wrong (FENCE-02) was killed under CLAIM-01 on sqlite backfill" in out.getvalue()
    assert "5 of 6 mutants killed, 1 under a wrong name" in out.getvalue()


def test_a_kill_table_is_clean_only_with_mutants_that_all_died_under_their_name() -> None:
    assert m.kill_table([mutant("no-owner", length=5)]).clean
    assert not m.kill_table([]).clean
    assert not m.kill_table([mutant("no-owner", length=5)], interrupted=True).clean


def test_more_kills_than_runs_are_refused() -> None:
    with pytest.raises(ValidationError):
        m.Seeds(run=1, killed=2)
    with pytest.raises(ValidationError):
        m.Seeds(run=2, killed=1, shortest=2)
    with pytest.raises(ValidationError):
        m.Seeds(run=2, killed=1, canonical=2)
