"""The options that several commands share, and how they become settings."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from fencepost.conformance.options import OPTIONS

if TYPE_CHECKING:
    from fencepost.conformance.settings import Settings

F = TypeVar("F", bound=Callable[..., Any])


def with_setting(key: str) -> Callable[[F], F]:
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


def with_settings(command: F) -> F:
    """An option for each setting."""
    for option in reversed(OPTIONS):
        command = with_setting(option.key)(command)
    return command


with_json = click.option(
    "--json", "file", type=click.Path(path_type=Path, dir_okay=False), help="Write the result here."
)


def with_profile(default: str) -> Callable[[F], F]:
    """How deep to look, `default` where nobody says."""
    text = "How deep to look: quick, ci or nightly."
    return click.option("--profile", metavar="NAME", default=default, show_default=True, help=text)


def with_server(command: F) -> F:
    """Which PostgreSQL the adapter `pg` works on; where nobody says one, one of its own."""
    return with_setting("pg-dsn")(with_setting("pg-image")(command))


def read_here(**given: Any) -> Settings:
    """The settings here, with these options over them. The server that they name is from now on the one of `pg`."""
    from .settings import nearest_pyproject, read_settings

    settings = read_settings(nearest_pyproject(Path.cwd()), {key.replace("_", "-"): of for key, of in given.items()})
    settings.use_server()
    return settings
