"""`fencepost explore`: what the model alone can do, and the shortest way to a clause."""

from __future__ import annotations

import time

import click
from fencepost.conformance.reduce import witnesses
from fencepost.conformance.selection import UnknownName, chosen_queues, known_clause
from fencepost.model.choices import Bounds
from fencepost.model.clauses import CLAUSES
from fencepost.model.explore import explored
from fencepost.model.queues import QUEUES
from fencepost.reports.result import Exit
from fencepost.reports.terminal import plural

from .traces import trace_lines

DEPTH = 6
"""Commands of a trace where the clock is free and no depth is given: without either bound there is no end."""


def explore_queues(
    queues: tuple[str, ...], jobs: int, workers: int, attempts: int, depth: int | None, leases: int | None
) -> int:
    """Search each queue's bounded world to its end and print what is there.

    Raises:
        UnknownName: there is no such queue.
    """
    for key in chosen_queues(queues):
        spec = QUEUES[key]
        until = None if leases is None else leases * spec.lease_seconds
        deepest = depth if depth is not None or until is not None else DEPTH
        bounds = Bounds(jobs=jobs, workers=workers, budgets=(attempts,), depth=deepest, until=until)
        started = time.perf_counter()
        found = explored(spec, bounds)
        seconds = time.perf_counter() - started
        clock = "free clock" if until is None else f"clock up to {until} s"
        depths = "" if deepest is None else f", at most {deepest} commands"
        size = " × ".join((plural(jobs, "job"), plural(workers, "worker"), plural(attempts, "attempt")))
        click.echo(f"{key}: {size}, {clock}{depths}")
        rate = found.edges / seconds
        click.echo(f"  {found.states:,} states · {found.edges:,} edges · {seconds:.2f} s · {rate:,.0f} edges/s")
        click.echo(f"  {'clause':<10}{'checks':>12}{'with teeth':>12}")
        for clause in CLAUSES:
            if clause in found.clauses:
                checks, teeth = found.clauses[clause]
                click.echo(f"  {clause:<10}{checks:>12,}{teeth:>12,}")
    return int(Exit.CONFORMANT)


def show_witness(queues: tuple[str, ...], name: str, reason: str | None) -> int:
    """Print the shortest trace that tests a clause, on each queue that has one.

    Raises:
        UnknownName: there is no such clause or queue, or no trace makes this check.
    """
    clause = known_clause(name)
    shown = False
    # To know that no trace of one actor makes a check, a search must go to its end.
    alone = CLAUSES[clause].engine != "interleaved"
    for key in chosen_queues(queues) if alone else ():
        trace = next(witnesses(QUEUES[key], clause, reason), None)
        if trace is not None:
            shown = True
            click.echo(f"{clause}  {CLAUSES[clause].title}, on {key}")
            click.echo("\n".join(trace_lines(trace)))
    if not shown:
        which = f"check {reason!r} of {clause}" if reason is not None else clause
        raise UnknownName(f"no trace of one actor makes {which}; `fencepost explain {clause}` says what tests it.")
    return int(Exit.CONFORMANT)
