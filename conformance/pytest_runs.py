"""The runs behind the items of a pytest session, and their sum at its end: one result, one verdict, one exit status."""

from __future__ import annotations

import contextlib
import shutil
import sys
from collections.abc import Iterator
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from fencepost.model.clauses import BUILT
from fencepost.reports import junit
from fencepost.reports.result import Exit, FailureResult, Result, exit_code, write
from fencepost.reports.terminal import Progress, make_console, render_result

from .findings import FOLDER
from .parts import Part, Parts, Place, merged, queues_of, read_parts
from .plugin import TELLERS, is_worker, shared
from .pytest_settings import plan_of, settings_of
from .run import Outcome, run
from .watchdog import leave


class Runs:
    """What the items of this process ask. A queue's run starts when the first item of any process asks for it."""

    def __init__(self, session: pytest.Session, places: tuple[Place, ...]) -> None:
        self._session = session
        self._config = session.config
        served = plan_of(session.config).queues
        self._places = tuple(sorted(places, key=lambda place: served.index(place[1])))
        self._parts = Parts(_folder(session.config), queues_of(self._places), self._run)

    def part(self, queue: str) -> Part:
        """What came of this queue's run.

        Raises:
            Stopped: it has not been run, and will not be.
            KeyboardInterrupt: it was interrupted; what it found is kept for the end of the session.
            pytest.exit.Exception: the adapter could not be driven; what was found until then is kept too.
        """
        part = self._parts.of(queue)
        if part.ended_early and is_worker(self._config):
            # An exception that ends a worker leaves the session that it works for with an error of its own.
            self._session.shouldstop = "fencepost could not go on" if part.fault else "fencepost was interrupted"
        elif part.result.interrupted:
            raise KeyboardInterrupt
        elif part.fault:
            pytest.exit(self.told(part), Exit.HARNESS)
        return part

    def told(self, part: Part) -> str:
        """What broke the harness, and what was found until then: pytest prints no summary after such an exit.

        It is told once, by the process that it happened to.
        """
        (queue,) = part.result.queues
        if queue not in self._parts.ran:
            return f"not judged: the run of queue {queue} ended early"
        return _stopped(part)

    def _run(self, queue: str) -> Part:
        clauses = frozenset(clause for clause, of in self._places if of == queue)
        plan = replace(plan_of(self._config), queues=(queue,), clauses=None if clauses == frozenset(BUILT) else clauses)
        with self._uncaptured(), _Watching(make_console()) as listener:
            outcome = run(plan, listener, self._last_words)
        return Part(places=self._places, result=outcome.result, fault=outcome.fault)

    def _last_words(self, outcome: Outcome) -> None:
        """Keep and tell what was found, and end this process: pytest itself is what hangs."""
        write(outcome.result, _own_file(outcome.result))
        part = Part(places=self._places, result=outcome.result, fault=outcome.fault)
        print(f"\n{_stopped(part)}", file=sys.__stderr__)
        leave(Exit.HARNESS)

    def _uncaptured(self) -> contextlib.AbstractContextManager[None]:
        capture: Any = self._config.pluginmanager.getplugin("capturemanager")
        return capture.global_and_fixture_disabled() if capture is not None else contextlib.nullcontext()


class _Watching(Progress):
    """Progress on a terminal; failures are told by the items."""

    def failed(self, failure: FailureResult) -> None:
        pass


def _stopped(part: Part) -> str:
    stories = [failure.story for failure in part.result.failures]
    kept = f"what was found until then is kept in {_own_file(part.result)}"
    return "\n\n".join([f"fencepost could not go on: {part.fault}", *stories, kept])


def _folder(config: pytest.Config) -> Path:
    return Path(shared(config)["folder"])


def _own_file(result: Result) -> Path:
    return FOLDER / f"{result.adapter.replace(':', '.')}.json"


def conclude(session: pytest.Session) -> None:
    """Sum up the runs of all processes: write the result, and have the session's exit status be as bad as the run's."""
    folder = _folder(session.config)
    parts = read_parts(folder)
    shutil.rmtree(folder)
    if not parts:
        return
    whole = merged(parts)
    aside = plan_of(session.config).aside
    session.config.stash.setdefault(TELLERS, []).append(lambda reporter: _tell(whole, aside, reporter))
    code = exit_code(whole.result)
    if code == Exit.HARNESS or (
        code and session.exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED)
    ):
        session.exitstatus = int(code)
    for path, write_to in _files(session.config, whole.result):
        try:
            write_to(whole.result, path)
        except OSError as error:
            session.exitstatus = int(Exit.USAGE)
            said = f"{path}: cannot be written ({error.strerror}); give another place"
            session.config.stash[TELLERS].append(lambda reporter, said=said: reporter.write_line(said, red=True))


def _files(config: pytest.Config, result: Result) -> Iterator[tuple[Path, Any]]:
    settings = settings_of(config)
    yield _own_file(result), write
    if settings.json_file is not None:
        yield settings.json_file, write
    if settings.junit_file is not None:
        yield settings.junit_file, junit.write


def _tell(whole: Part, aside: str, reporter: pytest.TerminalReporter) -> None:
    """The table, the verdict, and the stories that no item has told: of clauses that were not asked for, or whose items
    the session did not come to; and what the plan left `aside`.
    """
    reporter.write_sep("=", "conformance")
    if aside:
        reporter.write_line(aside)
    told = [report.longreprtext for report in reporter.stats.get("failed", [])]
    for failure in whole.result.failures:
        if failure.expected is None and not any(failure.story in text for text in told):
            reporter.write_line(failure.story)
    text = StringIO()
    console = make_console(text)
    render_result(whole.result, console, stories=False)
    reporter.write(text.getvalue())


_RUNS = pytest.StashKey[Runs]()


def runs_of(session: pytest.Session, places: tuple[Place, ...]) -> Runs:
    """The runs of this session, which is to judge these places."""
    if _RUNS not in session.config.stash:
        session.config.stash[_RUNS] = Runs(session, places)
    return session.config.stash[_RUNS]
