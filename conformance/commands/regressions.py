"""`fencepost mutants --export`: the shortest story of each mutant as a scenario file."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from functools import cache, partial
from pathlib import Path

import click
from fencepost.adapters.contract import Adapter
from fencepost.adapters.memory import MemoryAdapter
from fencepost.adapters.mutants.catalogue import MUTANTS
from fencepost.conformance.regressions import Right, regression
from fencepost.conformance.session import Session
from fencepost.model.queues import QUEUES
from fencepost.scenarios import ScenarioError, load, write

from .measure import REFERENCE, chosen_mutants, kept, planted, teller


def export_stories(clauses: tuple[str, ...], ids: tuple[str, ...], folder: Path) -> int:
    """Write the stories of the mutants that were asked for into this folder, each as `<id>.yaml`; returns the exit
    code.

    Where all were asked for, the files of mutants that are no more are removed. Other files are left alone.

    Raises:
        UnknownName: a name stands for nothing, or no mutant is left.
        ScenarioError: another file stands where a story belongs; nothing was written.
    """
    mutants = chosen_mutants(clauses, ids)
    for mutant in mutants:
        _check(folder / f"{mutant.id}.yaml", mutant.id)
    untold = []
    with kept() as run, ExitStack() as stack:
        right = _right(stack)
        tell = teller(len(mutants), run.check)
        for mutant in mutants:
            try:
                write(regression(planted([mutant], REFERENCE), right, mutant.title), folder)
            except LookupError as error:
                untold.append(str(error))
            tell(mutant.id)
        if not (clauses or ids):
            _remove_strays(folder)
    for line in untold:
        click.echo(line)
    return run.exit(not untold)


def _check(path: Path, mutant: str) -> None:
    if path.exists() and load(path).mutant != mutant:
        raise ScenarioError(f"{path}: is no story of the mutant {mutant}; move it, or give another folder")


def _right(stack: ExitStack) -> Right:
    """The right queues, each opened when it is first asked for and closed with the stack."""

    def opened(make: Callable[[], Adapter], queue: str) -> Session:
        return stack.enter_context(Session(make(), QUEUES[queue]))

    return {name: cache(partial(opened, make)) for name, make in {"memory": MemoryAdapter, **REFERENCE}.items()}


def _remove_strays(folder: Path) -> None:
    known = {mutant.id for mutant in MUTANTS}
    for path in sorted(folder.glob("*.yaml")):
        try:
            mutant = load(path).mutant
        except ScenarioError:
            continue  # somebody's damaged file is not ours to remove
        if mutant is not None and mutant not in known:
            path.unlink()
            click.echo(f"removed {path}: there is no mutant {mutant} any more")
