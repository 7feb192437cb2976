"""A run's result as JUnit XML, for CI systems: one test case for each pair of clause and queue that is built.

It renders the JSON result and decides nothing. The file is red exactly when the run's exit code says so.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import TypeVar

from junitparser import Error, Failure, JUnitXml, Skipped, TestCase, TestSuite

from .document import write_text
from .result import ClauseResult, Exit, FailureResult, Result, Unmet, exit_code

_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_SKIPPED = ("not applicable", "expected failure")


def classname(adapter: str, clause: str) -> str:
    """What groups the clauses of one area: `sqlite.FENCE`."""
    return f"{adapter}.{clause.rpartition('-')[0]}"


def case_names(adapter: str, clause: str, queue: str) -> tuple[str, str]:
    """The class name and the name of a pair's test case, the same in pytest's own file: `sqlite.FENCE`,
    `FENCE-01[backfill]`.
    """
    return classname(adapter, clause), f"{clause}[{queue}]"


def junit(result: Result) -> JUnitXml:
    """The result as one suite. A failure's text is its story; what was not decided, or is required and not met, is a
    failure too.
    """
    suite = TestSuite("fencepost")
    for name in ("adapter", "profile", "seed", "verdict"):
        suite.add_property(name, _clean(str(getattr(result, name))))
    suite.add_property("not built", str(sum(not pair.built for pair in result.clauses)))
    for name, version in result.versions.items():
        suite.add_property(name, _clean(version))
    suite.add_testcases([*_cases(result)])
    xml = JUnitXml("fencepost")
    xml.add_testsuite(suite)
    xml.update_statistics()
    suite.time = xml.time = result.coverage.seconds
    return xml


def write(result: Result, path: Path) -> None:
    """Write the result as JUnit XML, atomically; makes missing folders.

    Raises:
        OSError: the place can't be written to.
    """
    text = junit(result).tostring().decode("utf-8")
    write_text(f'<?xml version="1.0" encoding="utf-8"?>\n{text}\n', path)


def _cases(result: Result) -> Iterator[TestCase]:
    failures = {(failure.clause, failure.queue): failure for failure in result.failures}
    red = False
    for pair in result.clauses:
        if pair.built:
            problem = _of_pair(pair, failures.pop((pair.id, pair.queue), None), result.unmet_by(pair))
            red = red or isinstance(problem, Failure)
            yield _case(case_names(result.adapter, pair.id, pair.queue), problem)
    for failure in failures.values():  # found beside what was asked for
        if failure.expected is None:
            red = True
            yield _case(case_names(result.adapter, failure.clause, failure.queue), _of_failure(failure))
    told = {(pair.id, pair.queue) for pair in result.clauses if pair.built}
    for each in result.unmet:
        if not any((clause, each.queue) in told for clause in each.clauses):  # of what was left out, or is not built
            red = True
            yield _case((f"{result.adapter}.require", f"{each.requirement}[{each.queue}]"), _of_unmet([each]))
    code = exit_code(result)
    if code not in (Exit.CONFORMANT, Exit.NOT_CONFORMANT) or (code == Exit.NOT_CONFORMANT and not red):
        yield _case((f"{result.adapter}.run", "run"), _told(Error, result.verdict, _WHY[code]))


_WHY = {
    Exit.NOT_CONFORMANT: "nothing failed, but the run decided too little",
    Exit.INTERRUPTED: "interrupted: this is what had been found until then",
    Exit.HARNESS: "the adapter or its database could not be driven: what was found until then cannot be trusted",
    Exit.NOTHING_MEASURED: "nothing was measured: of all that was asked for, nothing applies",
}


def _of_pair(pair: ClauseResult, failure: FailureResult | None, unmet: Collection[Unmet]) -> Failure | Skipped | None:
    if unmet and pair.standing in ("pass", *_SKIPPED):
        return _of_unmet(unmet)
    if pair.standing == "pass":
        return None
    if pair.standing in _SKIPPED:
        return _told(Skipped, pair.standing, pair.remark)
    if failure is not None and pair.standing == "fail":
        return _of_failure(failure)
    return _told(Failure, pair.standing, pair.remark)


def _of_failure(failure: FailureResult) -> Failure:
    return _told(Failure, "fail", failure.why, failure.story)


def _of_unmet(unmet: Iterable[Unmet]) -> Failure:
    return _told(Failure, "requirement not met", "\n".join(map(str, unmet)))


Problem = TypeVar("Problem", Failure, Error, Skipped)


def _told(kind: type[Problem], standing: str, message: str, text: str = "") -> Problem:
    problem = kind(_clean(message), f"fencepost.{standing.replace(' ', '-')}")
    problem.text = _clean(text or message)
    return problem


def _case(names: tuple[str, str], problem: Failure | Error | Skipped | None) -> TestCase:
    group, name = names
    case = TestCase(_clean(name), _clean(group))
    if problem is not None:
        case.result = [problem]
    return case


def _clean(text: str) -> str:
    """Without what XML cannot hold, which a queue may have put into its answers."""
    return _NOT_XML.sub("\N{REPLACEMENT CHARACTER}", text)
