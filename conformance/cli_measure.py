"""The commands that measure fencepost itself: `mutants`, `soak` and `bench`."""

from __future__ import annotations

from pathlib import Path

import click
from fencepost.conformance.cli_options import read_here, with_json, with_profile, with_server, with_setting


@click.command(
    epilog="""\b
Examples:
  fencepost mutants --clause=FENCE-02
  fencepost mutants --adapter=sqlite --seeds=20 --json=kills.json
  fencepost mutants --export=scenarios/regressions"""
)
@click.option("--adapter", "adapters", multiple=True, metavar="NAME", help="Only on sqlite or pg; may be repeated.")
@with_setting("clauses")
@click.option("--id", "ids", multiple=True, metavar="ID", help="Only this mutant; may be repeated.")
@click.option("--seeds", type=click.IntRange(1), default=1, show_default=True, help="Runs of each mutant.")
@click.option(
    "--export",
    "folder",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Instead, write each mutant's shortest story into this folder, as a scenario file.",
)
@with_profile("quick")
@with_json
@with_server
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
    read_here(pg_dsn=pg_dsn, pg_image=pg_image)
    if folder is not None:
        _without("--export", adapters="--adapter", seeds="--seeds", profile="--profile", file="--json")
        from .commands.regressions import export_stories

        return export_stories(clauses, ids, _writable_folder(folder))
    from .commands.measure import kill_mutants

    return kill_mutants(adapters, clauses, ids, seeds, profile, _writable(file))


@click.command(
    epilog="""\b
Example:
  fencepost soak --seeds=20 --json=soak.json"""
)
@click.option("--adapter", "adapters", multiple=True, metavar="NAME", help="Only on sqlite or pg; may be repeated.")
@click.option("--seeds", type=click.IntRange(1), default=20, show_default=True, help="Seeds 1 to N.")
@click.option("--replays", type=click.IntRange(0), default=200, show_default=True, help="Replays of each found race.")
@with_profile("ci")
@with_json
@with_server
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
    read_here(pg_dsn=pg_dsn, pg_image=pg_image)
    from .commands.measure import soak_reference

    return soak_reference(adapters, seeds, replays, profile, _writable(file))


@click.group()
def bench() -> None:
    """Measure how fast fencepost itself is."""


@bench.command()
@click.option("--seconds", type=click.FloatRange(0.1), default=5.0, show_default=True, help="For each gate.")
@with_json
@with_server
def engine(seconds: float, file: Path | None, pg_dsn: str | None, pg_image: str | None) -> int:
    """Measure the engines, and print the figures as JSON."""
    read_here(pg_dsn=pg_dsn, pg_image=pg_image)
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
