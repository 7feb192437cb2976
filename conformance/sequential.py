"""The sequential engine: Hypothesis draws scripts, model and adapter move together, every step is judged.

Hypothesis generates and reuses; it does not shrink, since the reducer asks the model first. The complete tables
(LEASE-01, ERR-01) and the direct test (CLAIM-13) run here too: they are traces like any other.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path

from fencepost.model import commands as c
from fencepost.model.choices import RATIOS
from fencepost.model.errors import EXAMPLES
from fencepost.model.queues import QueueSpec
from fencepost.model.trace import Trace, trace_of
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.database import DirectoryBasedExampleDatabase

from .driver import Run
from .generate import scripts
from .session import Session


class _Ended(Exception):
    """Ends Hypothesis' run at the first violation or fault."""


def hunt(
    session: Session,
    *,
    examples: int,
    longest: int,
    seed_value: int,
    known: frozenset[str] = frozenset(),
    database: Path | None = None,
    on_example: Callable[[], None] | None = None,
) -> Run | None:
    """Draw up to `examples` scripts of up to `longest` commands; the first run that breaks a clause not in `known`.

    `database` is a folder in which a failing script is kept and tried first the next time.

    Raises:
        Exception: what an example raised, a harness fault, also if it would not raise it again.
    """
    found: Run | None = None
    fault: Exception | None = None
    if known:
        # A kept script that ends in what is known already would be forgotten as one that fails no more.
        database = None

    # `seed` takes the database away; settings that are applied after it give it back.
    @settings(
        max_examples=examples,
        phases=(Phase.generate,) if database is None else (Phase.reuse, Phase.generate),
        database=None if database is None else DirectoryBasedExampleDatabase(database),
        deadline=None,
        suppress_health_check=list(HealthCheck),
        report_multiple_bugs=False,
        print_blob=False,
    )
    @seed(seed_value)
    @given(scripts(longest))
    def attempt(numbers: list[int]) -> None:
        nonlocal found, fault
        if found is not None or fault is not None:
            raise _Ended  # Hypothesis replays the failing script once more; what it showed is already known
        try:
            run = session.draw(numbers)
        except Exception as error:
            fault = error
            raise _Ended from error
        if on_example is not None:
            on_example()
        if run.violation is not None and run.violation.clause not in known:
            found = run
            raise _Ended

    with contextlib.suppress(_Ended):
        attempt()
    if fault is not None:
        raise fault
    return found


def tables(spec: QueueSpec) -> dict[str, Trace]:
    """The complete tables that this queue can be asked, by the clause that each exercises."""
    found = {}
    if "configure" in spec.verbs:
        found["LEASE-01"] = trace_of(*(c.Configure(lease, heartbeat) for lease, heartbeat in RATIOS))
    if "classify" in spec.verbs:
        found["ERR-01"] = trace_of(*(c.Classify(code) for code, _ in EXAMPLES))
    return found
