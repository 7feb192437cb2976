"""The examples of the documentation: a plain queue that keeps its contract, and three faults in it that are found."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from examples import FOLDER, plain_adapter, plain_queue, shortest
from fencepost.adapters.contract import Adapter
from fencepost.adapters.registry import adapter_class
from fencepost.adapters.sync import served
from fencepost.conformance.profiles import PROFILES
from fencepost.reports.result import FailureResult
from runs import pairs_of, planned, went

Queue: Any = plain_queue.Queue
QUICK = PROFILES["quick"]


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run leaves its files below the folder that it was started in."""
    monkeypatch.chdir(tmp_path)


def lines(name: str) -> int:
    """All lines of the file: those of code, of comments and of documentation, and the empty ones."""
    return len((FOLDER / name).read_text(encoding="utf-8").splitlines())


def test_the_queue_is_a_small_one_and_its_adapters_are_shorter_still() -> None:
    assert lines("plain_queue.py") <= 110
    assert lines("plain_adapter.py") <= 60
    assert lines("shortest.py") <= 30
    assert "fencepost" not in (FOLDER / "plain_queue.py").read_text(encoding="utf-8").partition('"""\n\n')[2]


@pytest.mark.parametrize("name", ["plain_adapter:Plain", "shortest:Shortest"])
def test_the_plain_queue_keeps_its_contract_as_far_as_each_adapter_serves_it(name: str) -> None:
    make = adapter_class(name)
    outcome = went(planned(make, queues=("jobs",), profile=QUICK))
    assert outcome.fault == "" and outcome.result.failures == ()
    assert outcome.result.verdict == "pass"
    pairs = pairs_of(outcome.result)
    assert pairs["FENCE-01", "jobs"].verdict == "pass"
    assert pairs["REC-03", "jobs"].verdict == ("pass" if name.startswith("plain") else "not applicable")


def planted(queue: type[Any]) -> type[Adapter]:
    return served(type("Planted", (plain_adapter.Plain,), {"queue": queue}))


class Careless(Queue):  # type: ignore[misc]
    """A completion looks at the owner alone."""

    def complete(self, job: int, worker: str, now: int) -> bool:
        done = self.db.execute(
            "UPDATE jobs SET status = 'succeeded', lease_until = NULL, finished_at = ?"
            " WHERE id = ? AND status = 'running' AND worker = ?",
            (now, job, worker),
        )
        return bool(done.rowcount == 1)


class Forgiving(Queue):  # type: ignore[misc]
    """What is recovered may start afresh."""

    def recover(self, now: int) -> list[Any]:
        rows: list[Any] = super().recover(now)
        self.db.executemany("UPDATE jobs SET attempts = 0 WHERE id = ?", [(row["id"],) for row in rows])
        return rows


class Greedy(Queue):  # type: ignore[misc]
    """A claim takes whatever is there, and returns what was asked for."""

    def claim(self, worker: str, now: int, limit: int = 1, lease: int = 60) -> list[int]:
        jobs: list[int] = super().claim(worker, now, 100, lease)
        return jobs[:limit]


CARELESS = """\
  1  enqueue                        → job 1
  2  w1 claims                      → job 1, attempt 1, lease until +60 s
  3  clock to job 1's lease expiry
  4  w1 completes                   → accepted, succeeded
     ✗ must be rejected: w1's lease has expired
"""
FORGIVING = """\
  1  enqueue                        → job 1
  2  w1 claims                      → job 1, attempt 1, lease until +60 s
  3  clock to job 1's lease expiry
  4  sweep                          → job 1 pending
     ✗ job 1: attempt count should be 1, is 0
"""
GREEDY = """\
  1  enqueue    → job 1
  2  enqueue    → job 2
  3  w1 claims  → job 1  ✗ job 2 runs, and nobody holds its handle
"""


@pytest.mark.parametrize(
    ("queue", "clause", "story"),
    [(Careless, "FENCE-01", CARELESS), (Forgiving, "REC-03", FORGIVING), (Greedy, "CLAIM-07", GREEDY)],
)
def test_a_fault_in_the_plain_queue_is_found_under_its_clause_and_the_story_names_it(
    queue: type[Any], clause: str, story: str
) -> None:
    outcome = went(planned(planted(queue), queues=("jobs",), profile=QUICK))
    (failure,) = found(outcome.result.failures, clause)
    assert story in failure.story
    assert failure.story.startswith(clause)
    assert [each.clause for each in outcome.result.failures] == [clause], "and under no other"


def found(failures: tuple[FailureResult, ...], clause: str) -> list[FailureResult]:
    return [failure for failure in failures if failure.clause == clause]


def test_the_shortest_adapter_serves_three_verbs() -> None:
    assert served(shortest.Shortest).capabilities.without.isdisjoint({"enqueue", "claim", "complete", "crash"})
