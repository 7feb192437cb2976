"""The settings of a run by the names that people give them, with their help: one row for each.

The pytest plugin, the command line and `settings` all read this table; whoever adds a row adds a field of the same
name in `settings`. Every pytest run imports this, so it imports nothing.
"""

from __future__ import annotations

from typing import NamedTuple


class Option(NamedTuple):
    """One setting. `key` is its name in `[tool.fencepost]`; `flag` its option, where it is another one.

    `many`: a list, and an option that may be repeated; `number`: a whole number; `seconds`: a length of time.
    """

    key: str
    metavar: str
    help: str
    singular: str = ""
    many: bool = False
    number: bool = False
    seconds: bool = False

    @property
    def flag(self) -> str:
        """The name of the option, without dashes and prefix."""
        return self.singular or self.key

    @property
    def type(self) -> type[int] | type[float] | type[str]:
        """What its text is turned into."""
        return int if self.number else float if self.seconds else str

    @property
    def variable(self) -> str:
        """The name of the environment variable."""
        return PREFIX + self.key.upper().replace("-", "_")


PREFIX = "FENCEPOST_"
"""What the names of our environment variables start with."""

OPTIONS: tuple[Option, ...] = (
    Option("adapter", "NAME", "the queue under test, or module:Class of your own (default: sqlite)"),
    Option("queues", "NAME", "only this queue; may be repeated (default: all)", singular="queue", many=True),
    Option("clauses", "ID", "only this clause; may be repeated (default: all)", singular="clause", many=True),
    Option("require", "NAME", "fail unless this clause or level (level-1) is kept; may be repeated", many=True),
    Option("profile", "NAME", "how deep to look: quick, ci or nightly (default: ci)"),
    Option("seed", "N", "where the drawn scripts start (default: random, and printed)", number=True),
    Option("json", "FILE", "write the result here"),
    Option("junit", "FILE", "write the result here too, as JUnit XML"),
    Option("expected-failures", "FILE", "the clauses that are known to fail, as YAML"),
    Option(
        "example-timeout", "SECONDS", "end the run if a script or schedule takes longer (default: 60)", seconds=True
    ),
    Option("run-timeout", "SECONDS", "end the run after so long (default: never)", seconds=True),
    Option("pg-dsn", "DSN", "for pg: postgresql://user:password@host:port/database"),
    Option("pg-image", "IMAGE", "for pg: run this container image (needs Docker)"),
)
