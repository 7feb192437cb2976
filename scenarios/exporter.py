"""From a `Scenario` to its YAML file: one step a line, keys in one order, defaults left out.

It must never decide what a scenario expects: it writes what it is given.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import yaml
from fencepost.model import commands as c
from fencepost.model.queues import QUEUES
from fencepost.model.trace import TraceStep
from fencepost.model.values import Value

from .expected import relabelled, written
from .format import VERSION, Scenario, ScenarioError
from .forms import command_name
from .loader import QueuesOf, load


def dump(scenario: Scenario) -> str:
    """The file's text. Steps are numbered anew in file order, so that a shortened trace reads 1, 2, 3 …

    Raises:
        ScenarioError: the trace refers to a step that it does not hold, or to bound handles and ids.
    """
    return _Writer(scenario).text()


def write(scenario: Scenario, directory: Path | str, queues_of: QueuesOf = lambda adapters: QUEUES) -> Path:
    """Write the scenario into this directory, made if absent, in one atomic step; return the file's path.

    A hand-written scenario is named by its id. A found one is named `<clause>-<hex>` by its content, where the same
    story found again (by another seed, on another adapter) takes the same file; an identical file stays untouched.
    `queues_of` as for `load`.
    """
    directory = Path(directory)
    directory.mkdir(parents=True, exist_ok=True)
    if scenario.found is None:
        path = directory / f"{scenario.id}.yaml"
    else:
        path = _place(scenario, directory, queues_of)
        scenario = replace(scenario, id=path.stem)
    text = dump(scenario)
    if not path.exists() or path.read_bytes() != text.encode():
        _write_atomically(path, text)
    return path


def _place(scenario: Scenario, directory: Path, queues_of: QueuesOf) -> Path:
    digest = hashlib.sha256(_story(scenario).encode()).hexdigest()
    for length in range(4, len(digest), 4):
        path = directory / f"{scenario.clause}-{digest[:length]}.yaml"
        if not path.exists():
            return path
        try:
            if _story(load(path, queues_of)) == _story(scenario):
                return path
        except ScenarioError:
            continue  # somebody's damaged file is not ours to replace
    return path


def _story(scenario: Scenario) -> str:
    """What makes two found scenarios the same: all but the name and the circumstances."""
    return dump(replace(scenario, id="same", found=None))


def _write_atomically(path: Path, text: str) -> None:
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        temporary.write_bytes(text.encode())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


class _Writer:
    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario
        trace = scenario.trace
        labels = [step.label for lane in (trace.steps, *trace.lanes) for step in lane]
        self.numbers = {label: number for number, label in enumerate(labels, 1)}

    def number(self, label: int) -> int:
        if label not in self.numbers:
            raise ScenarioError(f"{self.scenario.id}: refers to step {label}, which its trace does not hold")
        return self.numbers[label]

    def text(self) -> str:
        scenario, trace = self.scenario, self.scenario.trace
        head: dict[str, Any] = {
            "fencepost": VERSION,
            "id": scenario.id,
            "clause": scenario.clause,
            "queue": scenario.queue,
            "title": scenario.title,
        }
        if scenario.adapters is not None:
            head["adapters"] = list(scenario.adapters)
        head["source"] = scenario.source
        if scenario.mutant is not None:
            head["mutant"] = scenario.mutant
        if scenario.found is not None:
            head["found"] = {key: value for key, value in asdict(scenario.found).items() if value not in (None, "")}
        lines = [f"{key}: {_flow(value)}" for key, value in head.items()]
        lines += self.steps("steps", trace.steps, "")
        if trace.lanes:
            clock, *actors = trace.lanes
            lines.append("together:")
            if clock:
                lines += self.steps("clock", clock, "  ")
            lines.append("  actors:")
            for actor in actors:
                listed = [self.step(step) for step in actor]
                lines.append(f"    - - {listed[0]}" if listed else "    - []")
                lines += [f"      - {step}" for step in listed[1:]]
        if trace.schedule is not None:
            lines.append(f"schedule: {_flow(trace.schedule)}")
        return "\n".join(lines) + "\n"

    def steps(self, key: str, steps: Iterable[TraceStep], indent: str) -> list[str]:
        listed = [f"{indent}  - {self.step(step)}" for step in steps]
        return [f"{indent}{key}:", *listed] if listed else [f"{indent}{key}: []"]

    def step(self, step: TraceStep) -> str:
        raw = self.command(step.command)
        expected = self.scenario.expected.get(step.label)
        if expected is not None:
            raw["expect"] = written(relabelled(expected, self.number))
        return _flow(raw)

    def command(self, command: c.Command) -> dict[str, Any]:
        raw: dict[str, Any] = {"do": command_name(type(command))}
        fields: Mapping[str, Any] = type(command).__dataclass_fields__  # type: ignore[attr-defined]
        for name, field in fields.items():
            value = getattr(command, name)
            if value != field.default:
                raw[name] = self.plain(value)
        return raw

    def plain(self, value: Any) -> Any:
        match value:
            case c.JobRef(step=step):
                return self.number(step)
            case c.HandleRef(step=step, nth=0):
                return self.number(step)
            case c.HandleRef(step=step, nth=nth):
                return {"step": self.number(step), "nth": nth}
            case c.Hook(kind=kind, job=None):
                return kind
            case c.Hook(kind=kind, job=job):
                return {"kind": kind, "job": self.plain(job)}
            case tuple():
                return [self.command(inner) for inner in value]
            case Value():
                raise ScenarioError(f"{self.scenario.id}: {value!r} is bound to a run; write a reference to its step")
        return value


class _Dumper(yaml.SafeDumper):
    """`SafeDumper` that never breaks a line inside a string."""

    def represent_words(self, words: str) -> yaml.ScalarNode:
        style = None if words.splitlines() == [words] else '"'
        return self.represent_scalar("tag:yaml.org,2002:str", words, style=style)


_Dumper.add_representer(str, _Dumper.represent_words)


def _flow(value: Any) -> str:
    """YAML on one line."""
    text = yaml.dump(value, Dumper=_Dumper, default_flow_style=True, sort_keys=False, allow_unicode=True, width=10**6)
    return text.removesuffix("\n").removesuffix("\n...")
