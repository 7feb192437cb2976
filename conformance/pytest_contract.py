"""`pytest conformance`: one item for each (clause, queue) pair, which all read their verdict from one run of the queue.

It decides no verdict: it asks for a run of what was selected, once, and says what the result says.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from fencepost.model.applicability import pairs
from fencepost.model.clauses import CLAUSES
from fencepost.reports.junit import case_names
from fencepost.reports.result import ClauseResult, Unmet

from .applicable import needed_capability
from .parts import Part, Place, Stopped
from .pytest_runs import runs_of
from .pytest_settings import plan_of
from .selection import chosen_adapter


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
        unmet = part.result.unmet_by(pair)
        if pair.standing == "not applicable" and not unmet:
            pytest.skip(pair.reason)
        if pair.standing == "expected failure" and not unmet:
            pytest.xfail(str(pair.expected))
        if pair.standing != "pass" or unmet:
            raise NotConformant(self._told(pair, part, unmet))

    def _told(self, pair: ClauseResult, part: Part, unmet: Iterable[Unmet]) -> str:
        """Why this pair is no pass, or not enough of one: its story, or what it lacks."""
        failure = part.failure(self.clause)
        said = failure.story if failure is not None else f"{self._title()}\n{self._standing(pair)}"
        return "\n".join([said, *map(str, unmet)])

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
    served = chosen_adapter(plan.adapter).queues
    return [
        ContractItem.from_parent(
            collector, name=f"{clause}[{spec.key}]", clause=clause, queue=spec.key, adapter=plan.adapter
        )
        for clause, spec, cell in pairs(served[queue] for queue in plan.queues)
        if cell.status != "not built" and (plan.clauses is None or clause in plan.clauses)
    ]


def _places(session: pytest.Session) -> tuple[Place, ...]:
    """All that the session is to judge, whichever process does it."""
    return tuple((item.clause, item.queue) for item in session.items if isinstance(item, ContractItem))
