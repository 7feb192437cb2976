"""`fencepost mutants`, `soak` and `bench engine`: fencepost measured on its own reference queue."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
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
from fencepost.conformance.mutation import Planted, kill_rows
from fencepost.conformance.selection import UnknownName, chosen_clauses, chosen_profile
from fencepost.conformance.session import Session
from fencepost.conformance.soak import document, repeat_races, soak_seed
from fencepost.model.queues import BACKFILL
from fencepost.reports.document import sealed, write_document
from fencepost.reports.mutants import Equivalent, kill_table, render_mutants, write
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
    known = {mutant.id for mutant in MUTANTS}
    for name in ids:
        if name not in known:
            raise UnknownName(f"there is no mutant {name!r}; `fencepost list` shows all.")
    wanted = chosen_clauses(clauses)
    mutants = [
        mutant for mutant in MUTANTS if (not ids or mutant.id in ids) and (wanted is None or mutant.clause in wanted)
    ]
    work = planted(mutants, _chosen(adapters))
    if not work:
        raise UnknownName("no mutant is left of those asked for")
    say = _teller(len(work) * seeds)
    rows = list(kill_rows(work, chosen_profile(profile), seeds, say))
    table = kill_table(rows, (Equivalent(id=mutant.id, reason=reason) for mutant, reason in EQUIVALENT))
    render_mutants(table, make_console())
    if file is not None:
        write(table, file)
    return int(Exit.CONFORMANT if table.clean else Exit.NOT_CONFORMANT)


def soak_reference(adapters: tuple[str, ...], seeds: int, replays: int, profile: str, file: Path | None) -> int:
    """Run the right queue under seeds 1 to `seeds`, then replay each found race.

    Raises:
        UnknownName: a name stands for nothing.
    """
    chosen, depth = _chosen(adapters), chosen_profile(profile)
    soaked, repeated = [], []
    for name, make in chosen.items():
        for seed in range(1, seeds + 1):
            one = soak_seed(name, make, depth, seed)
            soaked.append(one)
            click.echo(f"{name} seed {seed}: {one.examples} examples, {one.schedules} schedules")
            for alarm in one.false_alarms:
                click.echo(f"  false alarm: {alarm}")
    races = planted([mutant for mutant in MUTANTS if mutant.race], chosen)
    for race in repeat_races(races, replays) if replays else ():
        repeated.append(race)
        click.echo(f"{race.adapter} {race.mutant}: {race.identical} of {race.runs} replays identical")
    body = document(depth, soaked, repeated)
    click.echo(f"{body['false_alarms']} false alarms, {body['diverged']} replays that diverged")
    if file is not None:
        write_document(sealed(body, ("seeds", "replays")), file)
    return int(Exit.NOT_CONFORMANT if body["false_alarms"] or body["diverged"] else Exit.CONFORMANT)


def bench_engine(seconds: float, file: Path | None) -> int:
    """Measure the engines, `seconds` for each gate, and print the figures as JSON."""

    def say(what: str) -> None:
        click.echo(what, err=True)

    figures = engine_bench(MemoryAdapter, dict(REFERENCE), say)
    figures["gate"] = {}
    for name, make in REFERENCE.items():
        say(f"{name}: schedules with and without the gate")
        with Session(make(), BACKFILL) as session:
            figures["gate"][name] = session.run(gate_bench(session.adapter, session.spec, seconds))
    text = json.dumps(figures, indent=1)
    click.echo(text)
    if file is not None:
        file.write_text(text + "\n", encoding="utf-8")
    return int(Exit.CONFORMANT)


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


def _teller(total: int) -> Callable[[str], None]:
    """Tells progress on standard error, in one line on a terminal."""
    done = 0

    def say(what: str) -> None:
        nonlocal done
        done += 1
        click.echo(f"{done} of {total}  {what}", err=True)

    return say
