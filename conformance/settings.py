"""What a run is asked for, from all who may say it: the table `[tool.fencepost]` of a pyproject.toml, FENCEPOST_
variables over it, and options over both.

It reads and refuses; it opens no adapter and runs nothing. No message of it shows a value that may hold a password.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from fencepost.adapters.registry import unknown
from fencepost.model.queues import QueueSpec
from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, SecretStr, StrictInt, ValidationError

from .expected_failures import NOTHING, ExpectedFailures, read_expected_failures
from .options import OPTIONS, PREFIX, Option
from .profiles import DEFAULT
from .selection import UnknownName, Unusable

T = TypeVar("T")

DEFAULT_ADAPTER = "sqlite"
TABLE = "[tool.fencepost]"
_BY_KEY = {option.key: option for option in OPTIONS}
_SERVER = ("pg-dsn", "pg-image")
"""Two ways to say one thing: whoever outranks another with one of them outranks the other one too."""


class _Origin(NamedTuple):
    """Where a setting was given: a place for people, and how far it outranks others."""

    rank: int
    place: str


class Settings(BaseModel):
    """All that a run can be asked for; what nobody said has its default."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", hide_input_in_errors=True, alias_generator=lambda name: name.replace("_", "-")
    )

    adapter: str | None = Field(default=None, min_length=1)
    queues: tuple[str, ...] = ()
    clauses: tuple[str, ...] = ()
    require: tuple[str, ...] = ()
    profile: str = DEFAULT
    seed: StrictInt | None = None
    json_file: Path | None = Field(default=None, alias="json")
    junit_file: Path | None = Field(default=None, alias="junit")
    expected_failures: Path | None = None
    example_timeout: float = Field(default=60.0, gt=0, allow_inf_nan=False)
    run_timeout: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    pg_dsn: SecretStr | None = None
    pg_image: str | None = None

    _origins: dict[str, _Origin] = PrivateAttr(default_factory=dict)

    def origin(self, key: str) -> str:
        """The place where this setting was given, for people; its name if it was not."""
        return self._origins[key].place if key in self._origins else key

    def outranks(self, key: str, other: str) -> bool:
        """Whether this setting was given by whoever outranks those who gave the other, which nobody may have given."""
        return self._rank(key) > self._rank(other)

    def _rank(self, key: str) -> int:
        return self._origins[key].rank if key in self._origins else -1

    def chosen(self, key: str, choose: Callable[[Any], T], value: Any) -> T:
        """What `choose` makes of this setting's value.

        Raises:
            UnknownName: as `choose` does, with the place where the name was given.
        """
        try:
            return choose(value)
        except UnknownName as error:
            raise UnknownName(f"{self.origin(key)}: {error}" if key in self._origins else str(error)) from error

    def expectations(self, served: Mapping[str, QueueSpec]) -> ExpectedFailures:
        """What the file of expected failures says of the queues that the adapter serves; nothing without one.

        Raises:
            Unusable: the file cannot be used.
        """
        return NOTHING if self.expected_failures is None else read_expected_failures(self.expected_failures, served)

    def check_files(self) -> None:
        """Make the folders of the files that will be written.

        Raises:
            Unusable: one cannot be written: better said before a long run than after it.
        """
        for key, file in (("json", self.json_file), ("junit", self.junit_file)):
            if file is not None:
                check_writable(file, self.origin(key))

    def use_server(self) -> None:
        """Tell the adapter `pg` which server to work on. It reads the environment, which an option outranks."""
        if self.pg_dsn is not None or self.pg_image is not None:
            os.environ[_BY_KEY["pg-dsn"].variable] = self.pg_dsn.get_secret_value() if self.pg_dsn else ""
            os.environ[_BY_KEY["pg-image"].variable] = self.pg_image or ""


def check_writable(file: Path, said: str) -> None:
    """Make the file's folder; `said` is what asked for the file.

    Raises:
        Unusable: the file cannot be written.
    """
    if file.is_dir():
        raise Unusable(f"{said} {file}: that is a folder; give the name of a file")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise Unusable(f"{said} {file}: {error.strerror}; give another place") from None
    if not os.access(file.parent, os.W_OK):
        raise Unusable(f"{said} {file}: the folder cannot be written to; give another place")


def nearest_pyproject(folder: Path) -> Path | None:
    """The pyproject.toml of this folder, or of the nearest one above it that has one."""
    places = (place / "pyproject.toml" for place in (folder, *folder.parents))
    return next((place for place in places if place.is_file()), None)


def read_settings(
    pyproject: Path | None,
    options: Mapping[str, Any],
    environment: Mapping[str, str] = os.environ,
    prefix: str = "--",
) -> Settings:
    """The settings by key, options over variables over the file; an option that is None or an empty list was not
    given.

    Paths in the file are relative to its folder. `prefix` is what options start with where they were given.

    Raises:
        Unusable: the file is damaged, or something in it or in a variable means nothing; names the nearest.
    """
    merged: dict[str, Any] = {}
    origins: dict[str, _Origin] = {}
    layers = _of_file(pyproject), _of_environment(environment), _of_options(options, prefix)
    for rank, layer in enumerate(layers):
        said = layer.checked()
        for key in _SERVER if any(_field(key) in said for key in _SERVER) else ():
            merged.pop(_field(key), None)
        merged.update(said)
        origins.update((key, _Origin(rank, layer.origin(key))) for key in layer.values)
    settings = Settings().model_copy(update=merged)
    settings._origins.update(origins)
    return settings


@dataclass(frozen=True, slots=True)
class _Layer:
    """Values by key, all from one place; `origin` says for people where a key's value was given."""

    values: Mapping[str, Any]
    origin: Callable[[str], str]
    folder: Path | None = None
    """What relative paths are relative to; None: the current folder."""

    def checked(self) -> dict[str, Any]:
        """The values by field, converted.

        Raises:
            Unusable: a key that does not exist, or a value of a wrong type.
        """
        try:
            read = Settings.model_validate(dict(self.values))
        except ValidationError as error:
            first = error.errors(include_input=False, include_url=False)[0]
            raise Unusable(self._problem(str(first["loc"][0]), first["type"])) from None
        if set(_SERVER) <= set(self.values):
            both = " and ".join(self.origin(key) for key in _SERVER)
            raise Unusable(f"{both} are both given; give at most one of them")
        return dict(self._found(read))

    def _problem(self, key: str, kind: str) -> str:
        if kind == "extra_forbidden":
            return f"{self.origin('').strip()}: {unknown('setting', key, _BY_KEY)}"
        return f"{self.origin(key)}: must be {_wanted(_BY_KEY[key])}"

    def _found(self, read: Settings) -> Iterator[tuple[str, Any]]:
        for name in read.model_fields_set:
            value = getattr(read, name)
            if isinstance(value, Path) and self.folder is not None:
                value = Path(os.path.relpath(self.folder / value))
            yield name, value


def _wanted(option: Option) -> str:
    if option.many:
        return f'a list of names, as in {option.key} = ["…"]'
    if option.seconds:
        return "a number of seconds above 0"
    return "a whole number" if option.number else "a text in quotes"


def _field(key: str) -> str:
    return next(name for name, field in Settings.model_fields.items() if field.alias == key)


def _of_file(path: Path | None) -> _Layer:
    def origin(key: str) -> str:
        return f"{path}: {TABLE} {key}"

    if path is None or not path.is_file():
        return _Layer({}, origin)
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise Unusable(f"{path}: cannot be read ({error.strerror})") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise Unusable(f"{path}: damaged TOML: {error}") from None
    tool = document.get("tool", {})
    table = tool.get("fencepost", {}) if isinstance(tool, dict) else {}
    if not isinstance(table, dict):
        raise Unusable(f"{path}: {TABLE} must be a table of settings")
    return _Layer(table, origin, path.parent)


def _of_environment(environment: Mapping[str, str]) -> _Layer:
    by_variable = {option.variable: option for option in OPTIONS}
    values: dict[str, Any] = {}
    for name, text in environment.items():
        if not name.startswith(PREFIX) or not text:  # an empty variable counts as unset
            continue
        if name not in by_variable:
            raise Unusable(unknown("variable", name, by_variable))
        option = by_variable[name]
        values[option.key] = _converted(option, text)
    return _Layer(values, lambda key: _BY_KEY[key].variable)


def _converted(option: Option, text: str) -> Any:
    if option.many:
        return [name.strip() for name in text.split(",") if name.strip()]
    if option.number and text.strip().removeprefix("-").isdecimal():
        return int(text)
    if option.seconds and text.strip().replace(".", "", 1).isdecimal():
        return float(text)
    return text


def _of_options(options: Mapping[str, Any], prefix: str) -> _Layer:
    for key, value in options.items():
        if value == "":  # such as a variable of the shell that nobody has set
            raise Unusable(f"{prefix}{_BY_KEY[key].flag}: give a {_BY_KEY[key].metavar}, or leave the option out")
    values = {key: value for key, value in options.items() if value is not None and value not in ((), [])}
    return _Layer(values, lambda key: prefix + _BY_KEY[key].flag)
