"""A run's result on a terminal, or as plain text where there is none, and its progress while it runs.

It renders the JSON result and decides nothing: what is not in the result is not shown.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import groupby
from types import TracebackType
from typing import IO, Self

from fencepost.model.clauses import CLAUSES
from rich import box
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TaskID, TextColumn, TimeElapsedColumn
from rich.progress import Progress as RichProgress
from rich.table import Table
from rich.text import Text

from .result import ClauseResult, LevelResult, Result
from .story import WIDTH

STYLES = {
    "pass": "green", "self-check": "cyan", "fail": "bold red", "harness error": "bold red", "inconclusive": "yellow",
    "not applicable": "dim", "not exercised": "yellow", "expected failure": "cyan", "expected failures": "cyan",
    "stale": "bold red",
}  # fmt: skip
_SHORT = {"not applicable": "n/a", "not exercised": "not exercised"}
_TITLE = 44
_CLAUSE, _LEAST, _GAP = 9, 24, 3
"""Columns for the longest clause's name, for the least of a title, and between two cells."""
_FEW = 3


def make_console(file: IO[str] | None = None) -> Console:
    """A console on this stream (standard output without one): plain text of 100 columns where it is no terminal."""
    console = Console(file=file, highlight=False, soft_wrap=False)
    if not console.is_terminal:
        console.width = WIDTH
    return console


def plural(number: int, noun: str) -> str:
    """ "1 example", "2 examples"."""
    return f"{number:,} {noun}{'s' * (number != 1)}"


def render_result(result: Result, console: Console, *, stories: bool = True) -> None:
    """Print the clause × queue table, the certificates, the failures' stories unless they were told before, the levels,
    the requirements that are not met, and last the verdict with what it covers."""
    built = [pair for pair in result.clauses if pair.built]
    if built:
        console.print(_table(result, built, console.width))
    for line in _reasons(built):
        console.print(line)
    left_out = len(result.clauses) - len(built)
    if left_out:
        console.print(Text(f"{plural(left_out, 'pair')} of clause and queue not exercised: not built", "dim"))
    for note in result.unclaimed:
        console.print(Text(f"present but unclaimed: {note}", STYLES["inconclusive"]))
    for note in result.unexercised:
        console.print(Text(f"not exercised: {note}", STYLES["not exercised"]))
    _certificates(result, console)
    for failure in result.failures if stories else ():
        if failure.expected is not None:
            continue  # its reason stands above; its story was not made short
        console.print()
        console.print(Text(failure.story), soft_wrap=True)
    console.print()
    for text in (*_levels(result), *_unmet(result)):
        console.print(text, soft_wrap=True)  # a line each, to be looked for in logs
    for text in _verdict(result):
        console.print(text)


def _table(result: Result, built: list[ClauseResult], width: int) -> Table:
    """The verdicts by clause and queue, with the numbers of checks if there is room for them beside the titles."""
    by_place = {(pair.id, pair.queue): pair for pair in built}
    queues = list(dict.fromkeys([*result.queues, *(pair.queue for pair in built)]))

    def widths(counted: bool) -> list[int]:
        of = {queue: [len(_cell(pair, counted)) for pair in built if pair.queue == queue] for queue in queues}
        return [max([len(queue), *cells]) for queue, cells in of.items()]

    counted = _CLAUSE + _LEAST + sum(most + _GAP for most in widths(True)) <= width
    caption = "verdict, checks / those with teeth" if counted else "the numbers of checks take a wider terminal"
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, caption=caption, expand=False)
    table.add_column("clause", no_wrap=True, min_width=_CLAUSE)
    table.add_column("", no_wrap=True, overflow="ellipsis", max_width=_TITLE)
    for queue, least in zip(queues, widths(counted), strict=True):
        table.add_column(queue, no_wrap=True, min_width=least)
    for clause in dict.fromkeys(pair.id for pair in built):
        known = CLAUSES.get(clause)
        cells = (_cell(by_place.get((clause, queue)), counted) for queue in queues)
        table.add_row(clause, Text(known.title if known else ""), *cells)
    return table


def _cell(pair: ClauseResult | None, counted: bool) -> Text:
    if pair is None:
        return Text("")
    counts = f" {pair.checked:,}/{pair.teeth:,}" if pair.checked and counted else ""
    said = _SHORT.get(pair.verdict, pair.verdict) + counts
    noted = {"expected failure": ", expected", "stale": ", stale"}.get(pair.standing, "")
    return Text(said + noted, STYLES[pair.standing])


def _reasons(built: Iterable[ClauseResult]) -> Iterable[Text]:
    """One line for all the pairs that are no pass or fail for the same reason."""
    groups: dict[tuple[str, str, str], list[str]] = {}
    for pair in built:
        if pair.standing not in ("pass", "fail"):
            groups.setdefault((pair.standing, pair.queue, pair.remark), []).append(pair.id)
    for (standing, queue, remark), clauses in groups.items():
        said = f": {remark}" if remark else ""
        yield Text(f"{standing} on {queue}: {', '.join(clauses)}{said}", STYLES[standing])


def _certificates(result: Result, console: Console) -> None:
    if not result.certificates:
        return
    console.print()
    console.print("certificates")
    for entry in result.certificates:
        how = "all" if entry.exhaustive else "cut at"
        count = plural(entry.schedules, "schedule")
        line = f"  {entry.clause}  {entry.pair}  {entry.queue}, {entry.adapter}: {how} {count}; {entry.bound}"
        console.print(Text(line, "" if entry.exhaustive else STYLES["inconclusive"]))


def _levels(result: Result) -> Iterable[Text]:
    """One line for each queue: how it stands to each level, and what keeps it from the lowest that is not reached."""
    for queue, levels in groupby(result.levels, key=lambda level: level.queue):
        told = list(levels)
        lowest = next((level for level in told if level.verdict != "reached"), None)
        yield Text(f"levels: {queue} {', '.join(map(_level, told))}{_obstacles(lowest) if lowest else ''}")


def _level(level: LevelResult) -> str:
    untested = f" (not built: {_few(level.not_built)})" if level.not_built and level.verdict == "reached" else ""
    return f"{level.level} {level.verdict}{untested}"


def _obstacles(level: LevelResult) -> str:
    told = [": ".join(filter(None, (_few(each.clauses), each.why))) for each in level.obstacles[:_FEW]]
    more = len(level.obstacles) - len(told)
    return f": {'; '.join(told)}" + (f"; and {plural(more, 'more reason')}" if more else "")


def _few(clauses: Sequence[str]) -> str:
    more = f" and {len(clauses) - _FEW} more" if clauses[_FEW:] else ""
    return ", ".join(clauses[:_FEW]) + more


def _unmet(result: Result) -> Iterable[Text]:
    return (Text(str(each), STYLES["fail"]) for each in result.unmet)


def _verdict(result: Result) -> Iterable[Text]:
    coverage = result.coverage
    counts = " · ".join(
        plural(number, noun)
        for number, noun in (
            (coverage.examples, "example"),
            (coverage.steps, "step"),
            (coverage.schedules, "schedule"),
        )
    )
    standings = Counter(pair.standing for pair in result.clauses)
    applicable = sum(pair.built and pair.verdict != "not applicable" for pair in result.clauses)
    head = Text(result.verdict.upper(), STYLES[result.verdict])
    head.append(f"  adapter {result.adapter} · profile {result.profile} · seed {result.seed}", "default")
    head.append(f" · {standings['pass']} of {plural(applicable, 'pair')} passed", "default")
    unexpected = sum(failure.expected is None for failure in result.failures)
    for number, noun in (
        (unexpected, "failure"),
        (standings["expected failure"], "expected failure"),
        (standings["stale"], "stale expectation"),
    ):
        if number:
            head.append(f" · {plural(number, noun)}", "default")
    if result.unmet:
        unmet = {(each.requirement, each.queue) for each in result.unmet}
        head.append(f" · {plural(len(unmet), 'requirement')} not met", "default")
    yield head
    yield Text(f"{counts} · {coverage.seconds:.1f} s")
    if result.versions:
        yield Text(" · ".join(f"{name} {version}" for name, version in result.versions.items()), "dim")


class Progress:
    """Progress bars on a terminal; silent everywhere else, and when `quiet`. Use it as a context manager."""

    def __init__(self, console: Console, *, quiet: bool = False) -> None:
        self._tasks: dict[str, TaskID] = {}
        self._bars: RichProgress | None = None
        if console.is_terminal and not quiet:
            self._bars = RichProgress(
                TextColumn("{task.description}", markup=False),
                BarColumn(),
                MofNCompleteColumn(),
                TimeElapsedColumn(),
                console=console,
                transient=True,
            )

    def __enter__(self) -> Self:
        if self._bars is not None:
            self._bars.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bars is not None:
            self._bars.stop()

    def task(self, name: str, total: int | None = None) -> None:
        """Begin a task of `total` units; None where the end is not known."""
        if self._bars is not None:
            self._tasks[name] = self._bars.add_task(name, total=total)

    def advance(self, name: str, n: int = 1) -> None:
        """`n` more units of this task are done.

        Raises:
            KeyError: on a terminal, a task that was never begun.
        """
        if self._bars is not None:
            self._bars.advance(self._tasks[name], n)
