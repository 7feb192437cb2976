"""`fencepost replay`: scenario files, each with its verdict."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

import click
from fencepost.adapters.registry import unknown
from fencepost.conformance.replay import replay, told
from fencepost.conformance.selection import UnknownName, chosen_adapter
from fencepost.conformance.session import Session
from fencepost.conformance.watchdog import USUAL, watching
from fencepost.model.queues import QueueSpec
from fencepost.reports.result import Exit
from fencepost.scenarios import Scenario, load

DEFAULT = "sqlite"
"""Where a file is replayed that says nothing of adapters."""


def replay_files(files: Iterable[Path], adapter: str | None) -> int:
    """Replay each file and tell its verdict; returns the exit code. A file that cannot be used is told before any runs.

    Raises:
        ScenarioError: a file cannot be used.
        UnknownName: there is no such adapter, or it serves no such queue.
        AdapterError: the adapter cannot be driven.
    """

    def queues_of(named: Sequence[str]) -> Mapping[str, QueueSpec]:
        return chosen_adapter(adapter or (*named, DEFAULT)[0]).queues

    work = [(path, scenario, adapter or home(scenario)) for path in files for scenario in [load(path, queues_of)]]
    classes = {name: chosen_adapter(name) for _, _, name in work}
    for path, scenario, name in work:
        if scenario.queue not in classes[name].queues:
            raise UnknownName(f"{path}: {unknown(f'queue of adapter {name}', scenario.queue, classes[name].queues)}")
    good = True
    with ExitStack() as stack:
        stack.enter_context(watching(USUAL))
        sessions: dict[tuple[str, str], Session] = {}
        for path, scenario, name in work:
            place = name, scenario.queue
            if place not in sessions:
                sessions[place] = stack.enter_context(Session(classes[name](), classes[name].serves(scenario.queue)))
            replayed = replay(sessions[place], scenario)
            good = good and replayed.verdict == "pass"
            click.echo(told(scenario, sessions[place].spec, name, str(path), replayed))
    return int(Exit.CONFORMANT if good else Exit.NOT_CONFORMANT)


def home(scenario: Scenario) -> str:
    """Where a file is replayed that nobody said it for: where it was found, or the first adapter that it names."""
    if scenario.found is not None:
        return scenario.found.adapter
    return scenario.adapters[0] if scenario.adapters else DEFAULT
