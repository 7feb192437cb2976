"""`pytest conformance`: one item for each (clause, queue) pair, which all read their verdict from one run.

It decides no verdict: it asks for a run of what was selected, once, and says what the result says.
"""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from fencepost.adapters.contract import Adapter
from fencepost.model.applicability import pairs
from fencepost.model.clauses import BUILT, CLAUSES
from fencepost.reports.result import ClauseResult, Exit, FailureResult, Result, Unmet, exit_code, write
from fencepost.reports.terminal import Progress, make_console, render_result

from .applicable import needed_capability
from .findings import FOLDER
from .plugin import FINISHERS, TELLERS
from .profiles import DEFAULT
from .run import Outcome, Plan, run
from .selection import (
    Unusable,
    chosen_adapter,
    chosen_clauses,
    chosen_profile,
    chosen_queues,
    chosen_requirements,
)


class NotConformant(Exception):
    """A pair that is no pass; the message is all that there is to say."""


class ContractItem(pytest.Item):
    """One clause on one queue: `CLAIM-01[backfill]`."""

    def __init__(self, *, clause: str, queue: str, **rest: Any) -> None:
        super().__init__(**rest)
        self.clause = clause
        self.queue = queue
        # By keyword, since that is what `-m "clause(id='FENCE-01')"` compares.
        self.add_marker(pytest.mark.clause(id=clause))
        self.add_marker(pytest.mark.level(name=str(CLAUSES[clause].level)))
        needed = needed_capability(clause)
        if needed is not None:
            self.add_marker(pytest.mark.capability(name=needed))

    def runtest(self) -> None:
        measurement = measurement_of(self.session)
        pair = measurement.pair(self.clause, self.queue)
        required = measurement.unmet(pair)
        if pair.verdict == "not applicable" and not required:
            pytest.skip(pair.reason)
        if pair.verdict != "pass" or required:
            raise NotConformant(measurement.told(pair))

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], *rest: Any, **more: Any) -> Any:
        if isinstance(excinfo.value, NotConformant):
            return str(excinfo.value)
        return super().repr_failure(excinfo, *rest, **more)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        return self.path, None, self.name


def contract_items(collector: pytest.Module) -> list[pytest.Item]:
    """An item for each built pair that the options leave."""
    option = collector.config.option
    clauses = _chosen(chosen_clauses, option.fencepost_clause or ())
    served = _adapter(option).queues
    queues = _chosen(chosen_queues, option.fencepost_queue or (), served)
    return [
        ContractItem.from_parent(collector, name=f"{clause}[{spec.key}]", clause=clause, queue=spec.key)
        for clause, spec, cell in pairs(served[queue] for queue in queues)
        if cell.status != "not built" and (clauses is None or clause in clauses)
    ]


def check_options(config: pytest.Config) -> None:
    """Refuse names that stand for nothing before anything is collected.

    Raises:
        pytest.UsageError: names the known ones and the nearest.
    """
    option = config.option
    _chosen(chosen_queues, option.fencepost_queue or (), _adapter(option).queues)
    _required(option)
    if option.fencepost_profile is not None:
        _chosen(chosen_profile, option.fencepost_profile)


def _adapter(option: Any) -> type[Adapter]:
    made: type[Adapter] = _chosen(chosen_adapter, option.fencepost_adapter or "sqlite")
    return made


def _required(option: Any) -> Any:
    clauses = _chosen(chosen_clauses, option.fencepost_clause or ())
    return _chosen(chosen_requirements, option.fencepost_require or (), clauses)


def _chosen(choose: Any, *names: Any) -> Any:
    try:
        return choose(*names)
    except Unusable as error:
        raise pytest.UsageError(str(error)) from None


class Measurement:
    """The one run of a session and what it found; the run starts when the first item asks."""

    def __init__(self, session: pytest.Session) -> None:
        self._session = session
        self._config = session.config
        self._places = [(item.clause, item.queue) for item in session.items if isinstance(item, ContractItem)]
        self.outcome = self._measured()
        self._pairs = {(pair.id, pair.queue): pair for pair in self.outcome.result.clauses}
        self._failures = {(failure.clause, failure.queue): failure for failure in self.outcome.result.failures}

    @property
    def result(self) -> Result:
        return self.outcome.result

    def pair(self, clause: str, queue: str) -> ClauseResult:
        """What was found for this pair."""
        return self._pairs[clause, queue]

    def unmet(self, pair: ClauseResult) -> list[Unmet]:
        """The requirements that are not met because of this pair."""
        return [each for each in self.result.unmet if each.queue == pair.queue and pair.id in each.clauses]

    def told(self, pair: ClauseResult) -> str:
        """Why this pair is no pass: its story, or what it lacks."""
        failure = self._failures.get((pair.id, pair.queue))
        if failure is not None:
            return failure.story
        head = f"{pair.id}  {CLAUSES[pair.id].title}"
        found = f"{pair.verdict} on queue {pair.queue}: {pair.reason}"
        return "\n".join([head, found, *map(str, self.unmet(pair))])

    def fault(self) -> str:
        """What broke the harness, and what was found until then: pytest prints no summary after such an exit."""
        stories = [failure.story for failure in self.result.failures]
        kept = f"what was found until then is kept in {next(self._files(self.result.adapter))}"
        return "\n\n".join([f"fencepost could not go on: {self.outcome.fault}", *stories, kept])

    def _plan(self) -> Plan:
        option = self._config.option
        make = _adapter(option)
        clauses = frozenset(clause for clause, _ in self._places)
        queues = {queue for _, queue in self._places}
        return Plan(
            adapter=option.fencepost_adapter or "sqlite",
            make=make,
            queues=tuple(key for key in make.queues if key in queues),
            clauses=None if clauses == frozenset(BUILT) else clauses,
            profile=_chosen(chosen_profile, option.fencepost_profile or DEFAULT),
            seed=secrets.randbelow(2**32) if option.fencepost_seed is None else option.fencepost_seed,
            required=_required(option),
        )

    def _measured(self) -> Outcome:
        plan = self._plan()
        with self._uncaptured():
            listener = _Watching(make_console())
            with listener:
                outcome = run(plan, listener)
        for path in self._files(plan.adapter):
            try:
                write(outcome.result, path)
            except OSError as error:
                pytest.exit(f"{path}: cannot be written ({error.strerror}); give another place", Exit.USAGE)
        return outcome

    def _files(self, adapter: str) -> Iterator[Path]:
        yield FOLDER / f"{adapter.replace(':', '.')}.json"
        if self._config.option.fencepost_json is not None:
            yield Path(self._config.option.fencepost_json)

    def _uncaptured(self) -> contextlib.AbstractContextManager[None]:
        capture: Any = self._config.pluginmanager.getplugin("capturemanager")
        return capture.global_and_fixture_disabled() if capture is not None else contextlib.nullcontext()

    def finish(self, session: pytest.Session) -> None:
        """The session's exit status is at least as bad as the run's."""
        code = exit_code(self.result)
        if session.exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED) and code:
            session.exitstatus = int(code)

    def tell(self, reporter: pytest.TerminalReporter) -> None:
        """The table, the verdict, and the story of what failed without having an item."""
        reporter.write_sep("=", "conformance")
        for failure in self.result.failures:
            if (failure.clause, failure.queue) not in self._places:
                reporter.write_line(failure.story)
        text = StringIO()
        console = make_console(text)
        render_result(self.result, console, stories=False)
        reporter.write(text.getvalue())


class _Watching(Progress):
    """Progress on a terminal; failures are told by the items."""

    def failed(self, failure: FailureResult) -> None:
        pass


_MEASUREMENT = pytest.StashKey[Measurement]()


def measurement_of(session: pytest.Session) -> Measurement:
    """The session's run, which this starts if it is the first to ask.

    Raises:
        KeyboardInterrupt: the run was interrupted; what it found is kept for the summary.
        pytest.exit.Exception: the adapter could not be driven; what was found until then is kept too.
    """
    stash = session.config.stash
    if _MEASUREMENT not in stash:
        measurement = stash[_MEASUREMENT] = Measurement(session)
        stash.setdefault(FINISHERS, []).append(measurement.finish)
        stash.setdefault(TELLERS, []).append(measurement.tell)
        if measurement.result.interrupted:
            raise KeyboardInterrupt
        if measurement.outcome.fault:
            pytest.exit(measurement.fault(), Exit.HARNESS)
    return stash[_MEASUREMENT]
