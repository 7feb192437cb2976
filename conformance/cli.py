"""The command line: what can be asked, in words that teach, and which module answers.

Only click is imported here, so that help is there at once; each command imports what it needs when it is run.
The options of `run` are the settings of the table in `options`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from fencepost.conformance.options import OPTIONS

if TYPE_CHECKING:
    from fencepost.conformance.settings import Settings

F = TypeVar("F", bound=Callable[..., Any])

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


def _setting(key: str) -> Callable[[F], F]:
    """The option of one setting; its default is what the settings say elsewhere."""
    (option,) = [option for option in OPTIONS if option.key == key]
    return click.option(
        f"--{option.flag}",
        key.replace("-", "_"),
        metavar=option.metavar,
        multiple=option.many,
        type=option.type,
        help=f"{option.help[0].upper()}{option.help[1:]}.",
    )


def _settings(command: F) -> F:
    """An option for each setting."""
    for option in reversed(OPTIONS):
        command = _setting(option.key)(command)
    return command


_json = click.option("--json", "file", type=click.Path(path_type=Path, dir_okay=False), help="Write the result here.")
_quiet = click.option("--quiet", is_flag=True, help="Print the verdict alone.")


def _profile(default: str) -> Callable[[F], F]:
    text = "How deep to look: quick, ci or nightly."
    return click.option("--profile", metavar="NAME", default=default, show_default=True, help=text)


def _server(command: F) -> F:
    """Which PostgreSQL the adapter `pg` works on; where nobody says one, one of its own."""
    return _setting("pg-dsn")(_setting("pg-image")(command))


def _read(**given: Any) -> Settings:
    """The settings here, with these options over them. The server that they name is from now on the one of `pg`."""
    from .settings import nearest_pyproject, read_settings

    settings = read_settings(nearest_pyproject(Path.cwd()), {key.replace("_", "-"): of for key, of in given.items()})
    settings.use_server()
    return settings


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
@_settings
@_quiet
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
    settings = _read(**given)
    from .commands.run import run_adapter

    return run_adapter(settings, quiet)


@cli.command(
    epilog="""\b
Examples:
  fencepost smoke --adapter=mine:Queue
  fencepost smoke --adapter=sqlite --queue=build"""
)
@_setting("adapter")
@_setting("queues")
@_server
def smoke(**given: Any) -> int:
    """Check an adapter's plumbing.

    In some two seconds and step by step: can it be made, opened, reset and closed, is there a method for each verb,
    does it answer what it must, does a snapshot show what was done? Each step that fails says what to do next.
    Whether the queue keeps its contract, `fencepost run` tells.
    """
    settings = _read(**given)
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
@_setting("adapter")
@_server
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
    settings = _read(pg_dsn=pg_dsn, pg_image=pg_image)
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


@cli.command(
    epilog="""\b
Examples:
  fencepost mutants --clause=FENCE-02
  fencepost mutants --adapter=sqlite --seeds=20 --json=kills.json
  fencepost mutants --export=scenarios/regressions"""
)
@click.option("--adapter", "adapters", multiple=True, metavar="NAME", help="Only on sqlite or pg; may be repeated.")
@_setting("clauses")
@click.option("--id", "ids", multiple=True, metavar="ID", help="Only this mutant; may be repeated.")
@click.option("--seeds", type=click.IntRange(1), default=1, show_default=True, help="Runs of each mutant.")
@click.option(
    "--export",
    "folder",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Instead, write each mutant's shortest story into this folder, as a scenario file.",
)
@_profile("quick")
@_json
@_server
def mutants(
    adapters: tuple[str, ...],
    clauses: tuple[str, ...],
    ids: tuple[str, ...],
    seeds: int,
    folder: Path | None,
    profile: str,
    file: Path | None,
    pg_dsn: str | None,
    pg_image: str | None,
) -> int:
    """Test the tests with planted faults.

    Each is planted in the reference queue, and must be found under the clause that it breaks.

    Exit code 1 if a mutant survived or was found under another name, or if it has no story to export.
    """
    _read(pg_dsn=pg_dsn, pg_image=pg_image)
    if folder is not None:
        _without("--export", adapters="--adapter", seeds="--seeds", profile="--profile", file="--json")
        from .commands.regressions import export_stories

        return export_stories(clauses, ids, _writable_folder(folder))
    from .commands.measure import kill_mutants

    return kill_mutants(adapters, clauses, ids, seeds, profile, _writable(file))


@cli.command(
    epilog="""\b
Example:
  fencepost soak --seeds=20 --json=soak.json"""
)
@click.option("--adapter", "adapters", multiple=True, metavar="NAME", help="Only on sqlite or pg; may be repeated.")
@click.option("--seeds", type=click.IntRange(1), default=20, show_default=True, help="Seeds 1 to N.")
@click.option("--replays", type=click.IntRange(0), default=200, show_default=True, help="Replays of each found race.")
@_profile("ci")
@_json
@_server
def soak(
    adapters: tuple[str, ...],
    seeds: int,
    replays: int,
    profile: str,
    file: Path | None,
    pg_dsn: str | None,
    pg_image: str | None,
) -> int:
    """Look for false alarms.

    Runs the right queue under many seeds, and replays found races many times.

    Exit code 1 if anything was reported, or a replay did not end as it had been found.
    """
    _read(pg_dsn=pg_dsn, pg_image=pg_image)
    from .commands.measure import soak_reference

    return soak_reference(adapters, seeds, replays, profile, _writable(file))


@cli.group()
def bench() -> None:
    """Measure how fast fencepost itself is."""


@bench.command()
@click.option("--seconds", type=click.FloatRange(0.1), default=5.0, show_default=True, help="For each gate.")
@_json
@_server
def engine(seconds: float, file: Path | None, pg_dsn: str | None, pg_image: str | None) -> int:
    """Measure the engines, and print the figures as JSON."""
    _read(pg_dsn=pg_dsn, pg_image=pg_image)
    from .commands.measure import bench_engine

    return bench_engine(seconds, _writable(file))


def _without(option: str, **others: str) -> None:
    """Refuse what was given beside an option that it means nothing to; `others` are options by parameter."""
    context = click.get_current_context()
    for parameter, other in others.items():
        if context.get_parameter_source(parameter) is click.core.ParameterSource.COMMANDLINE:
            raise click.UsageError(f"{other} means nothing to {option}; leave one of them out")


def _writable(file: Path | None) -> Path | None:
    """The file of --json, if it will be possible to write it."""
    from .settings import check_writable

    if file is not None:
        check_writable(file, "--json")
    return file


def _writable_folder(folder: Path) -> Path:
    """The folder of --export, made if absent, if files can be written into it."""
    from .settings import check_writable

    check_writable(folder / "mutant.yaml", "--export")
    return folder


if __name__ == "__main__":
    main()
