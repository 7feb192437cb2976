"""`fencepost replay`: scenario files, each with its verdict."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import click
from fencepost.adapters.registry import unknown
from fencepost.conformance.faults import Hung, fault_of
from fencepost.conformance.replay import replay, told
from fencepost.conformance.selection import UnknownName, chosen_adapter
from fencepost.conformance.session import Session
from fencepost.conformance.settings import DEFAULT_ADAPTER
from fencepost.conformance.watchdog import BLOCKED, USUAL, leave, watching
from fencepost.model.queues import QueueSpec
from fencepost.reports.result import Exit
from fencepost.scenarios import Scenario, load


def replay_files(files: Iterable[Path], adapter: str | None, usual: str | None) -> int:
    """Replay each file and tell its verdict; returns the exit code. A file that cannot be used is told before any runs.

    `adapter` was asked for, `usual` is for the files that name none.

    Raises:
        ScenarioError: a file cannot be used.
        UnknownName: there is no such adapter, or it serves no such queue.
        AdapterError: the adapter cannot be driven.
    """
    usual = usual or DEFAULT_ADAPTER

    def queues_of(named: Sequence[str]) -> Mapping[str, QueueSpec]:
        return chosen_adapter(adapter or (*named, usual)[0]).queues

    work = [
        (path, scenario, adapter or home(scenario, usual)) for path in files for scenario in [load(path, queues_of)]
    ]
    classes = {name: chosen_adapter(name) for _, _, name in work}
    for path, scenario, name in work:
        if scenario.queue not in classes[name].queues:
            raise UnknownName(f"{path}: {unknown(f'queue of adapter {name}', scenario.queue, classes[name].queues)}")

    def last_words(hung: Hung) -> None:
        click.echo(f"Error: fencepost could not go on: {fault_of(hung)}\n{BLOCKED}", err=True)
        leave(Exit.HARNESS)

    good = True
    with ExitStack() as stack:
        stack.enter_context(watching(replace(USUAL, advice=""), last_words))
        sessions: dict[tuple[str, str], Session] = {}
        for path, scenario, name in work:
            place = name, scenario.queue
            if place not in sessions:
                sessions[place] = stack.enter_context(Session(classes[name](), classes[name].serves(scenario.queue)))
            replayed = replay(sessions[place], scenario)
            good = good and replayed.verdict == "pass"
            click.echo(told(scenario, sessions[place].spec, name, str(path), replayed))
    return int(Exit.CONFORMANT if good else Exit.NOT_CONFORMANT)


def home(scenario: Scenario, usual: str) -> str:
    """Where a file is replayed that nobody said it for: where it was found, or the first adapter that it names."""
    if scenario.found is not None:
        return scenario.found.adapter
    return scenario.adapters[0] if scenario.adapters else usual
