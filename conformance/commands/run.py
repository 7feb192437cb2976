"""`fencepost run`: one run with progress, stories as they are found, and the table at the end."""

from __future__ import annotations

import secrets
from pathlib import Path

import click
from fencepost.conformance.run import Outcome, Plan, run
from fencepost.conformance.selection import (
    chosen_adapter,
    chosen_clauses,
    chosen_profile,
    chosen_queues,
    chosen_requirements,
)
from fencepost.conformance.watchdog import USUAL, Limits, leave
from fencepost.reports.result import FailureResult, exit_code, write
from fencepost.reports.terminal import Progress, make_console, render_result
from rich.console import Console
from rich.text import Text


def run_adapter(
    adapter: str,
    queues: tuple[str, ...],
    clauses: tuple[str, ...],
    required: tuple[str, ...],
    seed: int | None,
    profile: str,
    file: Path | None,
    quiet: bool,
    limits: Limits = USUAL,
) -> int:
    """Run what was asked for and tell it; returns the exit code.

    Raises:
        Unusable: a name stands for nothing, or something is required that is not asked for.
    """
    make = chosen_adapter(adapter)
    narrowed = chosen_clauses(clauses)
    plan = Plan(
        adapter=adapter,
        make=make,
        queues=chosen_queues(queues, make.queues),
        clauses=narrowed,
        profile=chosen_profile(profile),
        seed=secrets.randbelow(2**32) if seed is None else seed,
        limits=limits,
        required=chosen_requirements(required, narrowed),
    )
    console = make_console()
    if not quiet:
        console.print(f"adapter {adapter} · queues {', '.join(plan.queues)} · profile {profile} · seed {plan.seed}")
    watching = _Watching(console, quiet)

    def last_words(outcome: Outcome) -> None:
        watching.__exit__(None, None, None)
        leave(_tell(outcome, console, file, quiet))

    with watching:
        outcome = run(plan, watching, last_words)
    return _tell(outcome, console, file, quiet)


def _tell(outcome: Outcome, console: Console, file: Path | None, quiet: bool) -> int:
    """Print and write what was found; returns the exit code."""
    result = outcome.result
    if quiet:
        click.echo(result.verdict)
    elif result.measured or not outcome.fault:
        render_result(result, console, stories=False)
    if file is not None:
        write(result, file)
    if result.interrupted:
        click.echo("interrupted: this is what had been found until then", err=True)
    if outcome.fault:
        click.echo(f"Error: fencepost could not go on: {outcome.fault}", err=True)
    return int(exit_code(result))


class _Watching(Progress):
    """Progress on a terminal; each failure's story as it is found."""

    def __init__(self, console: Console, quiet: bool) -> None:
        super().__init__(console, quiet=quiet)
        self._console = console
        self._quiet = quiet

    def failed(self, failure: FailureResult) -> None:
        """Tell one failure."""
        if not self._quiet:
            self._console.print()
            self._console.print(Text(failure.story), soft_wrap=True)
