"""`fencepost smoke`: a line for each step, with what to do about those that fail."""

from __future__ import annotations

import textwrap

import click
from fencepost.conformance.faults import Hung, fault_of
from fencepost.conformance.selection import chosen_adapter, chosen_queues
from fencepost.conformance.settings import DEFAULT_ADAPTER, Settings
from fencepost.conformance.smoke import Line, smoke
from fencepost.conformance.watchdog import BLOCKED, leave
from fencepost.reports.result import Exit
from fencepost.reports.story import WIDTH
from fencepost.reports.terminal import plural

MARKS = {"good": "✓", "bad": "✗", "not tried": "–", "note": "·"}


def smoke_adapter(settings: Settings) -> int:
    """Go through the plumbing on each queue that was asked for and tell it; returns the exit code.

    Raises:
        UnknownName: a name stands for nothing.
    """
    adapter = settings.adapter or DEFAULT_ADAPTER
    make = settings.chosen("adapter", chosen_adapter, adapter)

    def last_words(hung: Hung) -> None:
        click.echo(told(Line("it comes back", "bad", f"{fault_of(hung, adapter)}\n{BLOCKED}")))
        leave(Exit.HARNESS)

    bad = good = 0
    for queue in settings.chosen("queues", lambda names: chosen_queues(names, make.queues), settings.queues):
        click.echo(f"adapter {adapter} · queue {queue}")
        for line in smoke(make, adapter, queue, last_words):
            click.echo(told(line))
            bad += line.verdict == "bad"
            good += line.verdict == "good"
    if bad:
        click.echo(f"{plural(bad, 'step')} failed. Mend the first one, and ask again.")
        return int(Exit.HARNESS)
    click.echo(f"All {plural(good, 'step')} are good. Next: fencepost run --adapter={adapter}")
    return int(Exit.CONFORMANT)


def told(line: Line) -> str:
    """The step on one line, and below it what to do."""
    tried = " (not tried)" if line.verdict == "not tried" else ""
    lines = [f"  {MARKS[line.verdict]} {line.what}{tried}"]
    for part in line.hint.splitlines():
        indent = " " * (6 + len(part) - len(part.lstrip()))
        lines += textwrap.wrap(part, WIDTH, initial_indent=indent, subsequent_indent=indent, break_long_words=False)
    return "\n".join(lines)
