"""`fencepost mutants`, `soak` and `bench engine`: fencepost measured on its own reference queue."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import click
from fencepost.adapters.contract import Adapter
from fencepost.adapters.memory import MemoryAdapter
from fencepost.adapters.mutants.catalogue import EQUIVALENT, MUTANTS
from fencepost.adapters.mutants.mutant import Mutant
from fencepost.adapters.reference.adapter import PostgresAdapter, SqliteAdapter
from fencepost.adapters.reference.rules import CONTRACT
from fencepost.conformance.bench import engine_bench
from fencepost.conformance.interleave.bench import gate_bench
from fencepost.conformance.interrupt import heard
from fencepost.conformance.mutation import Planted, kill_rows
from fencepost.conformance.selection import UnknownName, chosen_clauses, chosen_profile
from fencepost.conformance.session import Session
from fencepost.conformance.soak import Repeated, Soaked, document, repeat_races, soak_seed
from fencepost.model.queues import BACKFILL
from fencepost.reports.document import sealed, write_document
from fencepost.reports.mutants import Equivalent, MutantResult, kill_table, render_mutants, write
from fencepost.reports.result import Exit
from fencepost.reports.terminal import make_console

Reference = type[SqliteAdapter] | type[PostgresAdapter]
REFERENCE: dict[str, Reference] = {"sqlite": SqliteAdapter, "pg": PostgresAdapter}


def kill_mutants(
    adapters: tuple[str, ...],
    clauses: tuple[str, ...],
    ids: tuple[str, ...],
    seeds: int,
    profile: str,
    file: Path | None,
) -> int:
    """Kill the mutants that were asked for and print the table.

    Raises:
        UnknownName: a name stands for nothing, or no mutant is left.
    """
    work = planted(chosen_mutants(clauses, ids), _chosen(adapters))
    if not work:
        raise UnknownName("no mutant is left of those asked for")
    depth = chosen_profile(profile)
    rows: list[MutantResult] = []
    with kept() as run:
        for row in kill_rows(work, depth, seeds, teller(len(work) * seeds, run.check)):
            rows.append(row)
    equivalent = (Equivalent(id=mutant.id, reason=reason) for mutant, reason in EQUIVALENT)
    table = kill_table(rows, equivalent, interrupted=run.interrupted)
    render_mutants(table, make_console())
    if file is not None:
        write(table, file)
    return run.exit(table.clean)


def soak_reference(adapters: tuple[str, ...], seeds: int, replays: int, profile: str, file: Path | None) -> int:
    """Run the right queue under seeds 1 to `seeds`, then replay each found race.

    Raises:
        UnknownName: a name stands for nothing.
    """
    chosen, depth = _chosen(adapters), chosen_profile(profile)
    soaked: list[Soaked] = []
    repeated: list[Repeated] = []
    races = planted([mutant for mutant in MUTANTS if mutant.race], chosen)
    with kept() as run:
        for name, make in chosen.items():
            for seed in range(1, seeds + 1):
                one = Soaked(name, seed)
                soaked.append(one)
                soak_seed(one, make, depth, counter(f"{name} seed {seed}", run.check))
                click.echo(f"{name} seed {seed}: {one.examples} examples, {one.schedules} schedules")
        for race in repeat_races(races, replays, run.check) if replays else ():
            repeated.append(race)
            click.echo(f"{race.adapter} {race.mutant}: {race.identical} of {race.runs} replays identical")
    for one in soaked:
        for alarm in one.false_alarms:
            click.echo(f"{one.adapter} seed {one.seed}: false alarm: {alarm}")
    body = document(depth, soaked, repeated, interrupted=run.interrupted)
    click.echo(f"{body['false_alarms']} false alarms, {body['diverged']} replays that diverged")
    if file is not None:
        write_document(sealed(body, ("seeds", "replays")), file)
    return run.exit(not (body["false_alarms"] or body["diverged"]))


def bench_engine(seconds: float, file: Path | None) -> int:
    """Measure the engines, `seconds` for each gate, and print the figures as JSON."""

    with heard() as check:  # half of the figures are of no use: an interrupt leaves nothing to keep

        def say(what: str) -> None:
            check()
            click.echo(what, err=True)

        figures = engine_bench(MemoryAdapter, dict(REFERENCE), say)
        figures["gate"] = {}
        for name, make in REFERENCE.items():
            say(f"{name}: schedules with and without the gate")
            with Session(make(), BACKFILL) as session:
                figures["gate"][name] = session.run(gate_bench(session.adapter, session.spec, seconds))
        check()
    click.echo(json.dumps(figures, indent=1))
    if file is not None:
        write_document(figures, file)
    return int(Exit.CONFORMANT)


def chosen_mutants(clauses: tuple[str, ...], ids: tuple[str, ...]) -> list[Mutant]:
    """The mutants of these clauses and with these ids; without either, all.

    Raises:
        UnknownName: a name stands for nothing, or no mutant is left.
    """
    known = {mutant.id for mutant in MUTANTS}
    for name in ids:
        if name not in known:
            raise UnknownName(f"there is no mutant {name!r}; `fencepost list --mutants` shows all.")
    wanted = chosen_clauses(clauses)
    mutants = [
        mutant for mutant in MUTANTS if (not ids or mutant.id in ids) and (wanted is None or mutant.clause in wanted)
    ]
    if not mutants:
        raise UnknownName("no mutant is left of those asked for")
    return mutants


def planted(mutants: Iterable[Mutant], adapters: dict[str, Reference]) -> list[Planted]:
    """Each mutant on each of these adapters that it is meant for."""
    return [
        Planted(
            id=mutant.id,
            clause=mutant.clause,
            also=mutant.also,
            queue=mutant.queue,
            adapter=name,
            make=partial(mutated, make, mutant),
            pair=mutant.pair,
        )
        for mutant in mutants
        for name, make in adapters.items()
        if name in mutant.adapters
    ]


def mutated(make: Reference, mutant: Mutant) -> Adapter:
    """The reference queue with this fault in it."""
    return make(rules=mutant.change(CONTRACT))


def _chosen(names: tuple[str, ...]) -> dict[str, Reference]:
    for name in names:
        if name not in REFERENCE:
            raise UnknownName(f"mutants and soak are for {' and '.join(REFERENCE)}, not {name!r}")
    return {name: make for name, make in REFERENCE.items() if not names or name in names}


class Measuring:
    """A measurement that may be cut short; call `check` wherever what was measured until then can be kept."""

    interrupted = False

    def __init__(self, check: Callable[[], None]) -> None:
        self.check = check

    def exit(self, good: bool) -> int:
        """The exit code, `good` if what was measured is as it must be."""
        if self.interrupted:
            click.echo("interrupted: this is what had been measured until then", err=True)
            return int(Exit.INTERRUPTED)
        return int(Exit.CONFORMANT if good else Exit.NOT_CONFORMANT)


@contextmanager
def kept() -> Iterator[Measuring]:
    """Have an interrupt end the block, and note it, instead of losing what the block had found."""
    with heard() as check:
        measuring = Measuring(check)
        try:
            yield measuring
        except KeyboardInterrupt:
            measuring.interrupted = True


def teller(total: int, check: Callable[[], None]) -> Callable[[str], None]:
    """Tells progress on standard error, a line for each piece of work, and then calls `check`."""
    done = 0

    def say(what: str) -> None:
        nonlocal done
        done += 1
        click.echo(f"{done} of {total}  {what}", err=True)
        check()

    return say


def counter(what: str, check: Callable[[], None], every: int = 1_000) -> Callable[[], None]:
    """Tells on standard error how often it was called, every so often, and calls `check` each time."""
    done = 0

    def count() -> None:
        nonlocal done
        done += 1
        if done % every == 0:
            click.echo(f"{what}: {done} scripts and schedules", err=True)
        check()

    return count
