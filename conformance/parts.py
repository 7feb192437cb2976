"""The runs of one pytest session, one for each queue, in a folder that all its processes see.

Whoever first needs a queue runs it, under a lock that dies with its process; all others read what came of it. So each
queue is run once, however pytest-xdist hands out the items, and two workers run two queues at the same time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

from fasteners import InterProcessLock
from fencepost.model.clauses import CLAUSES
from fencepost.model.queues import ALL_QUEUES
from fencepost.reports.document import write_document
from fencepost.reports.levels import levels_of, unmet_of
from fencepost.reports.result import ClauseResult, Coverage, FailureResult, Result, Strict, run_verdict

Place = tuple[str, str]
"""A clause and a queue."""


class Part(Strict):
    """The run of one queue. `places` are all that the session is to judge, `fault` is what broke the harness, if
    anything did.
    """

    places: tuple[Place, ...]
    result: Result
    fault: str = ""

    @property
    def ended_early(self) -> bool:
        """Whether no more queues are to be run."""
        return self.result.interrupted or bool(self.fault)

    def pair(self, clause: str) -> ClauseResult:
        """What was found for this clause on the queue."""
        (queue,) = self.result.queues
        return next(pair for pair in self.result.clauses if (pair.id, pair.queue) == (clause, queue))

    def failure(self, clause: str) -> FailureResult | None:
        """The counterexample to this clause, if one was found."""
        return next((failure for failure in self.result.failures if failure.clause == clause), None)


class Stopped(Exception):
    """A queue is not run any more, since the run of another one was interrupted or broke the harness."""


class Parts:
    """What is known of the session's queues; `run` runs one of them."""

    def __init__(self, folder: Path, queues: Sequence[str], run: Callable[[str], Part]) -> None:
        self._folder = folder
        self._queues = queues
        self._run = run
        self._read: dict[str, Part] = {}
        self.ran: set[str] = set()
        """The queues that this very process has run."""
        folder.mkdir(parents=True, exist_ok=True)

    def of(self, queue: str) -> Part:
        """What came of this queue's run. If another process is at it, this one runs what nobody has begun, or waits.

        Raises:
            Stopped: the queue has not been run, and no more will be.
        """
        while (known := self._known(queue)) is None:
            if not any(self._begun(candidate) for candidate in (queue, *self._queues)):
                with self._lock(queue, wait=True):
                    pass  # whoever was at it has ended: with a result, or for good
        return known

    def _begun(self, queue: str) -> bool:
        """Run this queue, unless it has been run or another process is at it."""
        if self._known(queue) is not None:
            return False
        with self._lock(queue, wait=False) as mine:
            if not mine or self._known(queue) is not None:
                return False
            for part in read_parts(self._folder):
                if part.ended_early:
                    raise Stopped(f"the run of queue {part.result.queues[0]} ended early")
            part = self._run(queue)
            self.ran.add(queue)
            write_document(part.model_dump(mode="json", by_alias=True), self._place(queue))
            return True

    def _known(self, queue: str) -> Part | None:
        place = self._place(queue)
        if queue not in self._read and place.exists():
            self._read[queue] = Part.model_validate_json(place.read_bytes())
        return self._read.get(queue)

    def _place(self, queue: str) -> Path:
        return self._folder / f"{quote(queue, safe='')}.json"

    @contextmanager
    def _lock(self, queue: str, *, wait: bool) -> Iterator[bool]:
        """Hold the right to run this queue; yields whether that was to be had."""
        lock = InterProcessLock(self._place(queue).with_suffix(".lock"))
        held = lock.acquire(blocking=wait)
        try:
            yield held
        finally:
            if held:
                lock.release()
            elif lock.lockfile is not None:  # what was tried in vain the library leaves open
                lock.lockfile.close()


def read_parts(folder: Path) -> list[Part]:
    """The parts that have been written into this folder."""
    parts = [Part.model_validate_json(place.read_bytes()) for place in folder.glob("*.json")]
    return sorted(parts, key=lambda part: queues_of(part.places).index(part.result.queues[0]))


def queues_of(places: Iterable[Place]) -> tuple[str, ...]:
    """The queues of these places, in their order."""
    return tuple(dict.fromkeys(queue for _, queue in places))


def merged(parts: Sequence[Part]) -> Part:
    """All parts as one, whose result is as if one run had done it all; at least one part.

    What was to be judged on a queue that was not run is `not exercised`. Such a queue meets no requirement, and its
    levels are not judged.
    """
    results = [part.result for part in parts]
    places = parts[0].places
    queues = queues_of(places)
    fault = next((part.fault for part in parts if part.fault), "")
    found = {(pair.id, pair.queue): pair for result in results for pair in result.clauses}
    for clause, queue in places:
        found.setdefault(
            (clause, queue), ClauseResult(id=clause, queue=queue, verdict="not exercised", reason=_NOT_RUN)
        )
    order = list(dict.fromkeys((*ALL_QUEUES, *queues)))
    clauses = tuple(sorted(found.values(), key=lambda pair: (_CLAUSES.index(pair.id), order.index(pair.queue))))
    failures = tuple(failure for result in results for failure in result.failures)
    interrupted = any(result.interrupted for result in results)
    cut_short = interrupted or bool(fault)
    judged = [pair for result in results for pair in result.clauses]
    unmet = () if cut_short else unmet_of(results[0].required, judged, queues)
    verdict = run_verdict(
        clauses,
        failures=sum(failure.expected is None for failure in failures),
        unmet=len(unmet),
        self_check=any(result.verdict == "self-check" for result in results),
        fault=bool(fault),
        interrupted=interrupted,
    )
    update = {
        "verdict": verdict,
        "interrupted": interrupted,
        "queues": queues,
        "clauses": clauses,
        "certificates": tuple(entry for result in results for entry in result.certificates),
        "failures": failures,
        "levels": levels_of(judged, queues, cut_short=cut_short),
        "unmet": unmet,
        "unclaimed": tuple(dict.fromkeys(note for result in results for note in result.unclaimed)),
        "coverage": _sum(result.coverage for result in results),
    }
    fields = {name: getattr(results[0], name) for name in Result.model_fields}
    return Part(places=places, result=Result(**{**fields, **update}), fault=fault)


_CLAUSES = list(CLAUSES)
_NOT_RUN = "its queue was not run: the session ended before, or skipped all its items"


def _sum(coverages: Iterable[Coverage]) -> Coverage:
    """All of them together; the seconds of processes at work at the same time add up too."""
    every = list(coverages)
    totals = {name: sum(getattr(coverage, name) for coverage in every) for name in Coverage.model_fields}
    return Coverage(**{**totals, "seconds": round(totals["seconds"], 2)})
