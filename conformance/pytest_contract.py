"""`pytest conformance`: one item for each (clause, queue) pair, which all read their verdict from one run of the queue.

It decides no verdict: it asks for a run of what was selected, once, and says what the result says.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from fencepost.model.applicability import pairs
from fencepost.model.clauses import CLAUSES
from fencepost.reports.junit import case_names
from fencepost.reports.result import ClauseResult

from .parts import Part, Place, Stopped
from .pytest_runs import runs_of
from .pytest_settings import plan_of
from .run import needed_capability


class NotConformant(Exception):
    """A pair that is no pass; the message is all that there is to say."""


class ContractItem(pytest.Item):
    """One clause on one queue: `CLAIM-01[backfill]`."""

    def __init__(self, *, clause: str, queue: str, adapter: str, **rest: Any) -> None:
        super().__init__(**rest)
        self.clause = clause
        self.queue = queue
        self.fencepost_junit = case_names(adapter, clause, queue)
        # By keyword, since that is what `-m "clause(id='FENCE-01')"` compares.
        self.add_marker(pytest.mark.clause(id=clause))
        self.add_marker(pytest.mark.level(name=str(CLAUSES[clause].level)))
        needed = needed_capability(clause)
        if needed is not None:
            self.add_marker(pytest.mark.capability(name=needed))

    def runtest(self) -> None:
        runs = runs_of(self.session, _places(self.session))
        try:
            part = runs.part(self.queue)
        except Stopped as error:
            raise NotConformant(f"{self._title()}\nnot run: {error}") from None
        if part.fault:
            raise NotConformant(runs.told(part))
        pair = part.pair(self.clause)
        if pair.standing == "not applicable":
            pytest.skip(pair.reason)
        if pair.standing == "expected failure":
            pytest.xfail(str(pair.expected))
        if pair.standing != "pass":
            raise NotConformant(self._told(pair, part))

    def _told(self, pair: ClauseResult, part: Part) -> str:
        """Why this pair is no pass: its story, or what it lacks."""
        failure = part.failure(self.clause)
        return failure.story if failure is not None else f"{self._title()}\n{self._standing(pair)}"

    def _standing(self, pair: ClauseResult) -> str:
        return f"{pair.standing} on queue {pair.queue}: {pair.remark}"

    def _title(self) -> str:
        return f"{self.clause}  {CLAUSES[self.clause].title}"

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], *rest: Any, **more: Any) -> Any:
        if isinstance(excinfo.value, NotConformant):
            return str(excinfo.value)
        return super().repr_failure(excinfo, *rest, **more)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        return self.path, 0, self.name  # a line, which pytest needs to say where a marker skips


def contract_items(collector: pytest.Module) -> list[pytest.Item]:
    """An item for each built pair that the settings leave.

    Raises:
        Refused: something that was asked for cannot be used.
    """
    plan = plan_of(collector.config)
    return [
        ContractItem.from_parent(collector, name=f"{clause}[{queue}]", clause=clause, queue=queue, adapter=plan.adapter)
        for clause, queue, cell in pairs(plan.queues)
        if cell.status != "not built" and (plan.clauses is None or clause in plan.clauses)
    ]


def _places(session: pytest.Session) -> tuple[Place, ...]:
    """All that the session is to judge, whichever process does it."""
    return tuple((item.clause, item.queue) for item in session.items if isinstance(item, ContractItem))
