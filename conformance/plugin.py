"""The pytest plugin: options, markers, and whom to ask for items. It says what happens when, and does none of it.

Every pytest run on a machine with fencepost installed imports this, so it imports nothing heavy by itself.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Iterable
from pathlib import Path
from typing import Any

import pytest

from .options import OPTIONS, PREFIX, Option

ITEMS = "fencepost_items"
"""A test module that has a function of this name lets it make its items."""

USAGE = 4
"""As in `reports.result.Exit`, which is too slow to import for runs that are none of ours."""


class Refused(pytest.Collector.CollectError):
    """Something that the items need cannot be used: the session ends with the exit status 4."""


def add_options(parser: pytest.Parser, prefix: str, options: Iterable[Option]) -> None:
    """Add these options under a prefix; whatever the prefix, they mean the same."""
    group = parser.getgroup("fencepost", "conformance of job queues")
    for option in options:
        kind: dict[str, Any] = {"action": "append"} if option.many else {"type": option.type}
        name = f"--{prefix}{option.flag}"
        group.addoption(name, dest=destination(option), default=None, metavar=option.metavar, help=option.help, **kind)


def destination(option: Option) -> str:
    """The attribute of `config.option` that holds this option."""
    return f"fencepost_{option.key.replace('-', '_')}"


def pytest_addoption(parser: pytest.Parser) -> None:
    add_options(parser, "fencepost-", OPTIONS)


def pytest_configure(config: pytest.Config) -> None:
    select = "-m \"clause(id='FENCE-01')\""
    config.addinivalue_line("markers", f"clause(id): the clause of the contract that this test is about; {select}")
    config.addinivalue_line("markers", "capability(name): what an adapter must declare for the clause to apply")
    config.addinivalue_line("markers", "level(name): the conformance level that this test counts for")
    config.pluginmanager.register(_Reports(config))
    if _is_asked_for(config):
        from .pytest_settings import check_settings

        check_settings(config)


def _is_asked_for(config: pytest.Config) -> bool:
    """Whether anybody has said how fencepost is to run."""
    if any(getattr(config.option, destination(option), None) is not None for option in OPTIONS):
        return True
    if any(name.startswith(PREFIX) for name in os.environ):
        return True
    try:
        text = (config.rootpath / "pyproject.toml").read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return False
    if "fencepost" not in text:
        return False
    import tomllib

    try:
        return "fencepost" in tomllib.loads(text).get("tool", {})
    except tomllib.TOMLDecodeError:
        return False


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


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, Any, Any]:
    """Mark the report of what was refused; the mark goes with it from a worker to the session that it works for."""
    report = yield
    call = getattr(report, "call", None)
    if call is not None and call.excinfo is not None and isinstance(call.excinfo.value, Refused):
        report.fencepost_refused = True
    return report


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, Any, Any]:
    """Give the report the names that our items have in JUnit files; they go with it to the session that writes one."""
    report = yield
    names = getattr(item, "fencepost_junit", None)
    if names is not None:
        report.fencepost_junit = names
    return report


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Tell a worker of pytest-xdist what all processes of a session share."""
    node.workerinput["fencepost"] = shared(node.config)


def is_worker(config: pytest.Config) -> bool:
    """Whether this process works for another one, which sums up."""
    return hasattr(config, "workerinput")


def shared(config: pytest.Config) -> dict[str, Any]:
    """What is one for all processes of a session: a `folder` of its own, which whoever needs it makes, and a `seed`."""
    if is_worker(config):
        return dict(getattr(config, "workerinput")["fencepost"])  # noqa: B009 (mypy knows no such attribute)
    if _SHARED not in config.stash:
        name = f"session-{os.getpid()}-{os.urandom(4).hex()}"
        folder = os.path.abspath(os.path.join(".fencepost", name))
        config.stash[_SHARED] = {"folder": folder, "seed": int.from_bytes(os.urandom(4))}
    return config.stash[_SHARED]


class _Reports:
    """Looks at the reports of this session and of its workers."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if getattr(report, "fencepost_refused", False):
            self._config.stash[_REFUSED] = True

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Give `--junitxml` the names of our items, where it would take the path of a file of ours."""
        names = getattr(report, "fencepost_junit", None)
        if names is None:
            return
        from _pytest.junitxml import xml_key

        xml = self._config.stash.get(xml_key, None)
        if xml is not None:
            classname, name = names
            reporter = xml.node_reporter(report)
            reporter.add_attribute("classname", f"{xml.prefix}.{classname}" if xml.prefix else classname)
            reporter.add_attribute("name", name)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Close what the items left open; a run that did not conform is red even if no item of it was."""
    stash = session.config.stash
    for finish in stash.get(FINISHERS, []):
        finish(session)
    if not is_worker(session.config) and _SHARED in stash and os.path.isdir(stash[_SHARED]["folder"]):
        from .pytest_runs import conclude

        conclude(session)
    if _REFUSED in stash:
        session.exitstatus = USAGE


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    for tell in config.stash.get(TELLERS, []):
        tell(terminalreporter)


FINISHERS = pytest.StashKey[list[Any]]()
"""What is to be done with the session when it ends."""
TELLERS = pytest.StashKey[list[Any]]()
"""What is to be told to the terminal at the end."""
_SHARED = pytest.StashKey[dict[str, Any]]()
_REFUSED = pytest.StashKey[bool]()
