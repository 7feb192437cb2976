"""The kill table: what became of every planted fault, as a JSON document and as a table on a terminal.

It counts and lays out; how a mutant is made and killed is for others to know.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from statistics import median
from typing import Any, Literal

from pydantic import Field, ValidationError, model_validator
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from .document import ResultError, read_document, sealed, write_document
from .result import Strict
from .terminal import STYLES, plural

SCHEMA = 1
COUNTED = ("mutants", "equivalent", "survivors", "misnamed")


class Seeds(Strict):
    """Over many seeds: runs, kills, kills whose trace was a shortest one, and kills reduced to the canonical one."""

    run: int = Field(default=1, ge=1)
    killed: int = Field(default=0, ge=0)
    shortest: int = Field(default=0, ge=0)
    canonical: int = Field(default=0, ge=0)

    @model_validator(mode="after")
    def _within(self) -> Seeds:
        if self.killed > self.run or max(self.shortest, self.canonical) > self.killed:
            raise ValueError("more kills than runs, or more shortest or canonical kills than kills")
        return self


class MutantResult(Strict):
    """One mutant on one queue of one adapter.

    `examples` and `schedules` until the kill; `evaluations` of the reducer; `seconds` until the kill; `length` of
    the reduced trace and `shortest` possible one, in commands; None of a mutant that nothing shows.
    """

    id: str
    clause: str
    also: tuple[str, ...] = ()
    """Other clauses that this fault truly breaks."""
    queue: str
    adapter: str
    killed_by: str | None
    """The clause that the failure was reported under; None: it survived."""
    examples: int = Field(default=0, ge=0)
    schedules: int = Field(default=0, ge=0)
    evaluations: int = Field(default=0, ge=0)
    seconds: float = Field(default=0.0, ge=0, allow_inf_nan=False)
    length: int | None = Field(default=None, ge=1)
    shortest: int | None = Field(ge=1)
    seeds: Seeds = Seeds()

    @property
    def misnamed(self) -> bool:
        """Whether it was killed under the name of a clause that it does not break."""
        return self.killed_by is not None and self.killed_by not in (self.clause, *self.also)


class Equivalent(Strict):
    """A mutant that was reviewed and proved to break nothing; `reason` says how."""

    id: str
    reason: str = Field(min_length=1)


class Stray(Strict):
    """A fault of the suite: a mutant that survived (`killed_by` None) or was killed under a wrong name."""

    id: str
    queue: str
    adapter: str
    clause: str
    killed_by: str | None


class Summary(Strict):
    """The figures over all mutants; a race is a mutant that was killed by schedules. None: there was none to count."""

    mutants: int
    killed: int
    seconds_median: float | None
    """Of the sequential mutants."""
    schedules_max: int | None
    """Of the races."""
    evaluations_median: float | None
    """Of the killed ones."""
    shortest_share: float | None
    """Of all (mutant × seed)."""
    canonical_share: float | None


class KillTable(Strict):
    """All mutants. Make it with `kill_table`, which derives the strays and the summary from the rows."""

    schema_version: Literal[1] = Field(default=1, alias="schema")
    interrupted: bool = False
    """Whether somebody ended it early; mutants that were not reached are not in it."""
    mutants: tuple[MutantResult, ...]
    equivalent: tuple[Equivalent, ...]
    survivors: tuple[Stray, ...]
    misnamed: tuple[Stray, ...]
    summary: Summary

    @property
    def clean(self) -> bool:
        """Whether every mutant that was asked for was killed under a name of its own."""
        return bool(self.mutants) and not (self.interrupted or self.survivors or self.misnamed)


def kill_table(
    mutants: Iterable[MutantResult], equivalent: Iterable[Equivalent] = (), *, interrupted: bool = False
) -> KillTable:
    """The whole table from its rows."""
    rows = tuple(mutants)
    return KillTable(
        interrupted=interrupted,
        mutants=rows,
        equivalent=tuple(equivalent),
        survivors=tuple(_stray(row) for row in rows if row.killed_by is None),
        misnamed=tuple(_stray(row) for row in rows if row.misnamed),
        summary=_summary(rows),
    )


def _stray(row: MutantResult) -> Stray:
    return Stray(id=row.id, queue=row.queue, adapter=row.adapter, clause=row.clause, killed_by=row.killed_by)


def _summary(rows: tuple[MutantResult, ...]) -> Summary:
    killed = [row for row in rows if row.killed_by is not None]
    sequential = [row.seconds for row in killed if not row.schedules]
    races = [row.schedules for row in killed if row.schedules]
    runs = sum(row.seeds.run for row in rows)
    return Summary(
        mutants=len(rows),
        killed=len(killed),
        seconds_median=median(sequential) if sequential else None,
        schedules_max=max(races, default=None),
        evaluations_median=median(row.evaluations for row in killed) if killed else None,
        shortest_share=sum(row.seeds.shortest for row in rows) / runs if runs else None,
        canonical_share=sum(row.seeds.canonical for row in rows) / runs if runs else None,
    )


def document(table: KillTable) -> dict[str, Any]:
    """The table as the JSON document that `write` writes, footer included."""
    return sealed(table.model_dump(mode="json", by_alias=True), COUNTED)


def write(table: KillTable, path: Path) -> None:
    """Write the table atomically; makes missing folders.

    Raises:
        OSError: the place can't be written to.
    """
    write_document(document(table), path)


def read(path: Path) -> KillTable:
    """Read a table that `write` wrote.

    Raises:
        ResultError: the file is missing, cut off, edited, of a newer schema, or no kill table.
    """
    try:
        return KillTable.model_validate(read_document(path, SCHEMA, COUNTED))
    except ValidationError as error:
        raise ResultError(
            f"{path}: no kill table: {error.errors()[0]['msg']}; give a file of `mutants --json`"
        ) from error


def render_mutants(table: KillTable, console: Console) -> None:
    """Print a row per mutant, then the equivalent ones, the strays and the figures."""
    rows = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in ("mutant", "clause", "place", "killed by"):
        rows.add_column(name, no_wrap=name != "mutant", overflow="fold")
    for name in ("tries", "s", "length", "seeds"):
        rows.add_column(name, justify="right", no_wrap=True)
    for row in table.mutants:
        style = STYLES["fail"] if row.killed_by is None or row.misnamed else ""
        length = f"{row.length or '–'}/{row.shortest or '–'}"
        tries = f"{row.schedules} sch" if row.schedules else f"{row.examples} ex"
        seeds = f"{row.seeds.killed}/{row.seeds.run}"
        cells = (row.id, row.clause, f"{row.adapter} {row.queue}", row.killed_by or "survived", tries)
        rows.add_row(*(Text(cell) for cell in (*cells, f"{row.seconds:.2f}", length, seeds)), style=style)
    console.print(rows)
    for entry in table.equivalent:
        console.print(Text(f"equivalent  {entry.id}: {entry.reason}", "dim"))
    for stray in (*table.survivors, *table.misnamed):
        what = "survived" if stray.killed_by is None else f"was killed under {stray.killed_by}"
        console.print(Text(f"{stray.id} ({stray.clause}) {what} on {stray.adapter} {stray.queue}", STYLES["fail"]))
    console.print(Text(" · ".join(_figures(table)), STYLES["pass" if table.clean else "fail"]))


def _figures(table: KillTable) -> Iterable[str]:
    summary = table.summary
    yield f"{summary.killed} of {plural(summary.mutants, 'mutant')} killed, {len(table.misnamed)} under a wrong name"
    if summary.seconds_median is not None:
        yield f"sequential {summary.seconds_median:.2f} s in the median"
    if summary.schedules_max is not None:
        yield f"races at most {plural(summary.schedules_max, 'schedule')}"
    if summary.evaluations_median is not None:
        yield f"{summary.evaluations_median:g} evaluations in the median"
    if summary.shortest_share is not None and summary.canonical_share is not None:
        yield f"shortest {summary.shortest_share:.0%}, canonical {summary.canonical_share:.0%}"
