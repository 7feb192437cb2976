"""The pytest plugin: options, markers, and whom to ask for items. It says what happens when, and does none of it.

Every pytest run on a machine with fencepost installed imports this, so it imports nothing heavy by itself.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

OPTIONS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("adapter", {"metavar": "NAME", "help": "the adapter to test, or module:Class of your own (default: sqlite)"}),
    ("queue", {"action": "append", "metavar": "NAME", "help": "only this queue; may be repeated (default: all)"}),
    ("clause", {"action": "append", "metavar": "ID", "help": "only this clause; may be repeated (default: all)"}),
    ("require", {"action": "append", "metavar": "NAME", "help": "fail unless this clause or level (level-1) is kept"}),
    ("seed", {"type": int, "metavar": "N", "help": "where the drawn scripts start (default: random, and printed)"}),
    ("profile", {"metavar": "NAME", "help": "how deep to look: quick, ci or nightly (default: ci)"}),
    ("json", {"metavar": "FILE", "help": "write the result here too, beside .fencepost/<adapter>.json"}),
)  # fmt: skip
"""Our options: name, and what argparse wants to know. In pytest they are called `--fencepost-<name>`."""

ITEMS = "fencepost_items"
"""A test module that has a function of this name lets it make its items."""


def add_options(parser: pytest.Parser, prefix: str, names: tuple[str, ...]) -> None:
    """Add these options under a prefix; whatever the prefix, they mean the same."""
    group = parser.getgroup("fencepost", "conformance of job queues")
    for name, about in OPTIONS:
        if name in names:
            group.addoption(f"--{prefix}{name}", dest=f"fencepost_{name}", default=None, **about)


def pytest_addoption(parser: pytest.Parser) -> None:
    add_options(parser, "fencepost-", tuple(name for name, _ in OPTIONS))


def pytest_configure(config: pytest.Config) -> None:
    select = "-m \"clause(id='FENCE-01')\""
    config.addinivalue_line("markers", f"clause(id): the clause of the contract that this test is about; {select}")
    config.addinivalue_line("markers", "capability(name): what an adapter must declare for the clause to apply")
    config.addinivalue_line("markers", "level(name): the conformance level that this test counts for")
    if any(getattr(config.option, f"fencepost_{name}", None) is not None for name, _ in OPTIONS):
        from .pytest_contract import check_options

        check_options(config)


def pytest_pycollect_makeitem(collector: pytest.Module | pytest.Class, name: str, obj: object) -> Any:
    """Let a module make its own items; None leaves everything else to pytest."""
    return obj(collector) if name == ITEMS and callable(obj) else None


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Scenario files: below a folder `scenarios`, or given by their path."""
    if file_path.suffix != ".yaml":
        return None
    if "scenarios" not in file_path.parent.parts and not parent.session.isinitpath(file_path):
        return None
    from .pytest_scenarios import ScenarioFile, is_scenario

    return ScenarioFile.from_parent(parent, path=file_path) if is_scenario(file_path) else None


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Close what the items left open; a run that did not conform is red even if no item of it was."""
    for finish in session.config.stash.get(FINISHERS, []):
        finish(session)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    for tell in config.stash.get(TELLERS, []):
        tell(terminalreporter)


FINISHERS = pytest.StashKey[list[Any]]()
"""What is to be done with the session when it ends."""
TELLERS = pytest.StashKey[list[Any]]()
"""What is to be told to the terminal at the end."""
