"""The command line: what can be asked, in words that teach, and which module answers.

Only click is imported here, so that help is there at once; each command imports what it needs when it is run.
The options of `run` are the settings of the table in `options`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
from fencepost.conformance.cli_measure import bench, mutants, soak
from fencepost.conformance.cli_options import read_here, with_server, with_setting, with_settings

USAGE, INTERRUPTED, HARNESS = 4, 2, 3
"""As in `reports.result.Exit`, which is too slow to import before we know that it is needed."""

STORAGE = "HYPOTHESIS_STORAGE_DIRECTORY"

EXITS = """\b
Exit codes:
  0  conformant, or failing only as  3  the adapter or its database could not be driven
     expected                        4  a name, option or file that cannot be used
  1  not conformant, or undecided    5  nothing was measured
  2  interrupted"""


def main() -> None:
    """The console script."""
    code = call(sys.argv[1:])
    watchdog = sys.modules.get("fencepost.conformance.watchdog")
    if watchdog is not None and watchdog.has_rung():
        watchdog.leave(code)  # a thread of what hung may keep Python from ending
    sys.exit(code)


def call(arguments: Sequence[str]) -> int:
    """Run the command line; returns its exit code. Faults are told on standard error, without a traceback."""
    kept = os.environ.get(STORAGE)
    try:
        # Hypothesis otherwise leaves a folder of its own where it was started.
        os.environ[STORAGE] = kept or os.path.join(".fencepost", "hypothesis")
        return int(cli.main(list(arguments), prog_name="fencepost", standalone_mode=False) or 0)
    except click.exceptions.Abort:
        click.echo("interrupted", err=True)
        return INTERRUPTED
    except click.ClickException as error:
        error.show()
        return USAGE
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # an adapter's hanging, and a cancellation, are no `Exception`
        return _fault(error)
    finally:
        if kept is None:
            os.environ.pop(STORAGE, None)


def _fault(error: BaseException) -> int:
    """Tell what cannot be used or driven; whatever else was raised, by an adapter or by us, keeps its frames."""
    from fencepost.scenarios import ScenarioError

    from .faults import fault_of
    from .selection import Unusable

    if isinstance(error, (Unusable, ScenarioError)):
        click.echo(f"Error: {error}", err=True)
        return USAGE
    click.echo(f"Error: fencepost could not go on: {fault_of(error)}", err=True)
    return HARNESS


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}, epilog=EXITS)
@click.version_option(package_name="fencepost", message="%(prog)s %(version)s")
def cli() -> None:
    """Tell whether a durable job queue with leases keeps its contract.

    \b
    Start here:
      fencepost run --adapter=sqlite          test the reference queue on SQLite
      fencepost run --adapter=mine:Queue      test your own: class Queue of mine.py
      fencepost init-adapter mine             write the skeleton of such a class
      fencepost smoke --adapter=mine:Mine     check whether it does what it must
      fencepost replay .fencepost/failures/FENCE-02-found.yaml
      fencepost explain FENCE-02              what a clause demands, and its shortest story
    """


@cli.command(
    epilog="""\b
Examples:
  fencepost run --adapter=pg
  fencepost run --adapter=pg --pg-dsn=postgresql://me:secret@localhost/test
  fencepost run --queue=mutation --clause=FENCE-03 --profile=quick
  fencepost run --queue=mutation --require=level-2,REC-12
  fencepost run --seed=7 --json=result.json --junit=junit.xml"""
)
@with_settings
@click.option("--quiet", is_flag=True, help="Print the verdict alone.")
def run(quiet: bool, **given: Any) -> int:
    """Test an adapter against the contract.

    Draws scripts of commands, has the adapter serve them, and judges every answer and every row; then races two actors
    against each other in every order of their statements. A failure is told as its shortest story, with a file that
    replays it. The table at the end shows each clause on each queue, and how often it was checked; below it stands
    which levels each queue reached.

    A clause that the adapter cannot drive, or that the queue declares not to keep, is not applicable, and no failure.
    With --require it is one.

    Whatever is the same in every run can stand in the table [tool.fencepost] of the nearest pyproject.toml, under the
    name of its option (queues and clauses as lists), or in a variable such as FENCEPOST_ADAPTER. Options outrank
    variables, and variables the file.

    Ctrl-C ends the run and keeps what was found.
    """
    settings = read_here(**given)
    from .commands.run import run_adapter

    return run_adapter(settings, quiet)


@cli.command(
    epilog="""\b
Examples:
  fencepost smoke --adapter=mine:Queue
  fencepost smoke --adapter=sqlite --queue=build"""
)
@with_setting("adapter")
@with_setting("queues")
@with_server
def smoke(**given: Any) -> int:
    """Check an adapter's plumbing.

    In some two seconds and step by step: can it be made, opened, reset and closed, is there a method for each verb,
    does it answer what it must, does a snapshot show what was done? Each step that fails says what to do next.
    Whether the queue keeps its contract, `fencepost run` tells.
    """
    settings = read_here(**given)
    from .commands.smoke import smoke_adapter

    return smoke_adapter(settings)


@cli.command(
    epilog="""\b
Examples:
  fencepost init-adapter my_queue
  fencepost init-adapter my_queue --async"""
)
@click.argument("name")
@click.option("--async", "asynchronous", is_flag=True, help="For a queue whose methods are async.")
def init_adapter(name: str, asynchronous: bool) -> int:
    """Write the skeleton of an adapter.

    Writes NAME.py into the current folder: a class with a method for each thing that fencepost asks of your queue, and
    with what each must do. It runs at once, and says of each method that you have not written yet what it must return.
    """
    from .commands.init_adapter import write_adapter

    return write_adapter(name, asynchronous)


@cli.command(
    epilog="""\b
Examples:
  fencepost replay .fencepost/failures/FENCE-02-found.yaml
  fencepost replay scenarios/fence/*.yaml --adapter=mine:Queue"""
)
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="FILE...")
@with_setting("adapter")
@with_server
def replay(files: tuple[Path, ...], adapter: str | None, pg_dsn: str | None, pg_image: str | None) -> int:
    """Replay scenario files.

    Does this adapter break the clause, and does it answer as the file expects?

    \b
    pass      every answer was legal and as expected
    fail      a clause was broken; its story is told
    diverged  legal, but another way than the file says: neither a pass nor a failure
    not exercised  as the file says, but nothing in it tested its clause: no pass either

    Without --adapter, a file that was found is replayed where it was found, any other on what it names, or else on the
    adapter of the settings.
    """
    settings = read_here(pg_dsn=pg_dsn, pg_image=pg_image)
    from .commands.replay import replay_files

    return replay_files(files, adapter, settings.adapter)


@cli.command(
    epilog="""\b
Examples:
  fencepost explore --queue=backfill --jobs=1
  fencepost explore --queue=backfill --workers=3 --leases=2
  fencepost explore --queue=mutation --clause=FENCE-03"""
)
@click.option("--queue", "queues", multiple=True, metavar="NAME", help="Only this queue; may be repeated.")
@click.option("--jobs", type=click.IntRange(1, 4), default=2, show_default=True, help="Most jobs.")
@click.option("--workers", type=click.IntRange(1, 4), default=2, show_default=True, help="Most workers.")
@click.option("--attempts", type=click.IntRange(1, 9), default=2, show_default=True, help="Attempts a job may have.")
@click.option("--depth", type=click.IntRange(1), help="Most commands of a trace; 6 if the clock is free.")
@click.option("--leases", type=click.IntRange(1), help="Bound the clock at so many leases, which makes states merge.")
@click.option("--clause", metavar="ID", help="Print the shortest trace that tests this clause instead.")
@click.option("--reason", metavar="CHECK", help="With --clause: that makes this very check.")
def explore(
    queues: tuple[str, ...],
    jobs: int,
    workers: int,
    attempts: int,
    depth: int | None,
    leases: int | None,
    clause: str | None,
    reason: str | None,
) -> int:
    """Search the model alone.

    Breadth first, without an adapter or a database.
    Prints the states and edges of the bounded world, and how often its edges test each clause.
    """
    if reason is not None and clause is None:
        raise click.UsageError("--reason needs --clause")
    from .commands.explore import explore_queues, show_witness

    if clause is not None:
        return show_witness(queues, clause, reason)
    return explore_queues(queues, jobs, workers, attempts, depth, leases)


@cli.command(name="list")
@click.option("--mutants", is_flag=True, help="The mutants instead.")
@click.option("--markdown", is_flag=True, help="The clauses instead, as the page docs/clauses.md.")
@click.option(
    "--capabilities-markdown",
    is_flag=True,
    help="What queues and adapters declare instead, as the tables of docs/capabilities-and-levels.md.",
)
def list_(mutants: bool, markdown: bool, capabilities_markdown: bool) -> int:
    """List the adapters, queues, profiles, clauses and mutants."""
    from .commands.capabilities import capabilities_tables
    from .commands.catalogue import clauses_page, list_all, list_mutants

    if mutants:
        click.echo(list_mutants())
    elif markdown:
        click.echo(clauses_page())
    else:
        click.echo(capabilities_tables() if capabilities_markdown else list_all())
    return 0


@cli.command(
    epilog="""\b
Example:
  fencepost explain FENCE-02"""
)
@click.argument("clause")
def explain(clause: str) -> int:
    """Explain a clause.

    Its source and level, where it applies, its shortest story, its mutants and its scenario files.
    """
    from .commands.explain import explained

    click.echo(explained(clause))
    return 0


for command in (mutants, soak, bench):
    cli.add_command(command)


if __name__ == "__main__":
    main()
