"""`fencepost run`: one run with progress, stories as they are found, and the table at the end."""

from __future__ import annotations

import click
from fencepost.conformance.planning import planned
from fencepost.conformance.run import Outcome, run
from fencepost.conformance.settings import Settings
from fencepost.conformance.watchdog import leave
from fencepost.reports import junit
from fencepost.reports.result import Exit, FailureResult, exit_code, write
from fencepost.reports.terminal import Progress, make_console, render_result
from rich.console import Console
from rich.text import Text


def run_adapter(settings: Settings, quiet: bool) -> int:
    """Run what was asked for and tell it; returns the exit code.

    Raises:
        Unusable: a name stands for nothing, something is required that is left out, or a file cannot be used.
    """
    plan = planned(settings)
    settings.check_files()
    console = make_console()
    if not quiet:
        queues = ", ".join(plan.queues)
        console.print(f"adapter {plan.adapter} · queues {queues} · profile {plan.profile.name} · seed {plan.seed}")
        if plan.aside:
            console.print(Text(plan.aside), soft_wrap=True)
    watching = _Watching(console, quiet)

    def last_words(outcome: Outcome) -> None:
        watching.__exit__(None, None, None)
        leave(_tell(outcome, settings, console, quiet))

    with watching:
        outcome = run(plan, watching, last_words)
    return _tell(outcome, settings, console, quiet)


def _tell(outcome: Outcome, settings: Settings, console: Console, quiet: bool) -> int:
    """Print and write what was found, where the settings say; returns the exit code."""
    result = outcome.result
    if quiet:
        click.echo(result.verdict)
    elif result.measured or not outcome.fault:
        render_result(result, console, stories=False)
    code = int(exit_code(result))
    for file, writing in ((settings.json_file, write), (settings.junit_file, junit.write)):
        try:
            if file is not None:
                writing(result, file)
        except OSError as error:
            # Its folder was there when the run began; what else there is to tell is told all the same.
            click.echo(f"Error: {file}: cannot be written ({error.strerror}); give another place", err=True)
            code = int(Exit.USAGE)
    if result.interrupted:
        click.echo("interrupted: this is what had been found until then", err=True)
    if outcome.fault:
        click.echo(f"Error: fencepost could not go on: {outcome.fault}", err=True)
    return code


class _Watching(Progress):
    """Progress on a terminal; each failure's story as it is found."""

    def __init__(self, console: Console, quiet: bool) -> None:
        super().__init__(console, quiet=quiet)
        self._console = console
        self._quiet = quiet

    def failed(self, failure: FailureResult) -> None:
        """Tell one failure that nobody expected."""
        if not self._quiet and failure.expected is None:
            self._console.print()
            self._console.print(Text(failure.story), soft_wrap=True)
