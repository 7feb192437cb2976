"""Expected outcomes: what a scenario file says about an outcome, and whether an outcome agrees with it.

What a file does not say is not compared; tokens and reasons can't be said at all. Jobs are named by the number of
the step that enqueued them, attempts by that of the claim that began them. It must never decide what is legal: that is
the model's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import yaml
from fencepost.model import outcomes as o
from fencepost.model.commands import Handle, HandleRef
from fencepost.model.paths import Binding, Naming
from fencepost.model.values import Value

ANY = "any"


@dataclass(frozen=True, slots=True)
class Kind:
    """How one type of outcome is written: `main` is the field whose value stands under the kind's own name."""

    type: type[Value]
    main: str | None
    fields: tuple[str, ...]


KINDS: dict[str, Kind] = {
    "enqueued": Kind(o.Enqueued, None, ()),
    "claimed": Kind(o.Claimed, "handles", ("handles", "hooked")),
    "accepted": Kind(o.Accepted, "status", ("status", "due")),
    "rejected": Kind(o.Rejected, None, ()),
    "cancel_answer": Kind(o.CancelAnswer, "answer", ("answer",)),
    "recovered": Kind(o.Recovered, "rows", ("rows", "count", "hooked", "failed", "dml")),
    "artifact": Kind(o.Artifact, "attempt", ("attempt",)),
    "checkpointed": Kind(o.Checkpointed, None, ("cancel",)),
    "probed": Kind(o.Probed, None, ("transactions", "locks")),
    "classified": Kind(o.Classified, "family", ("family",)),
    "atomic": Kind(o.Atomic, "outcomes", ("outcomes",)),
    "done": Kind(o.Done, None, ()),
    "conflict": Kind(o.Conflict, None, ()),
    "hook_raised": Kind(o.HookRaised, "hooked", ("hooked",)),
    "unknown": Kind(o.Unknown, None, ()),
}
"""Every outcome by the name it has in a file."""

PARTS: dict[str, Kind] = {
    "handle": Kind(Handle, None, ("job",)),
    "row": Kind(o.RecoveredRow, None, ("job", "status", "due")),
}
"""What stands in lists inside outcomes."""

HOLDS = {
    "job": "job",
    "attempt": "attempt",
    "hooked": "jobs",
    **dict.fromkeys(("handles", "rows", "outcomes", "choices"), "expectations"),
}
"""What a field holds that is no plain value: one job, an attempt or None, several jobs or None, or expectations of
their own.
"""

_BY_TYPE = {kind.type: name for name, kind in (KINDS | PARTS).items()}


@dataclass(frozen=True, slots=True)
class Expected:
    """What is said of an outcome, or of one handle or row inside it.

    `kind` is a key of `KINDS` or `PARTS`, or `any` of several; `said` are the (field, value) pairs to compare, in the
    order of the kind's fields.
    """

    kind: str
    said: tuple[tuple[str, Any], ...] = ()

    def matches(self, outcome: Value | None, made: Binding) -> bool:
        """Whether the outcome agrees; `made` are the jobs and handles of the run, as its outcomes spell them."""
        if self.kind == ANY:
            return any(choice.matches(outcome, made) for choice in self.choices)
        if type(outcome) is not (KINDS | PARTS)[self.kind].type:
            return False
        return all(_agrees(name, value, getattr(outcome, name), made) for name, value in self.said)

    @property
    def choices(self) -> tuple[Expected, ...]:
        """The outcomes of which any will do: itself alone, unless the kind is `any`."""
        return dict(self.said)["choices"] if self.kind == ANY else (self,)

    def describe(self) -> str:
        """One line in the words of the file, where jobs are numbers of steps."""
        return " or ".join(_line(choice) for choice in self.choices)


def any_of(expected: Iterable[Expected]) -> Expected:
    """Any of these will do; one alone is itself. At least one is needed."""
    choices = tuple(dict.fromkeys(expected))
    return choices[0] if len(choices) == 1 else Expected(ANY, (("choices", choices),))


def expectation_of(outcome: Value, naming: Naming, due: bool = True) -> Expected:
    """What a file says to demand this outcome; `naming` tells which step made each job and attempt that it names.

    Left unsaid: tokens, reasons, empty instants, and statement counts other than 0, which adapters are free in; without
    `due` also when jobs are due again, which queues are free in.
    """
    name = _BY_TYPE[type(outcome)]
    said: list[tuple[str, Any]] = []
    for field in (KINDS | PARTS)[name].fields:
        seen = getattr(outcome, field)
        if not _to_be_said(field, seen, outcome, due):
            continue
        match HOLDS.get(field):
            case "job":
                seen = naming.jobs[seen].step
            case "jobs":
                seen = tuple(naming.jobs[job].step for job in seen)
            case "attempt" if seen is not None:
                seen = {handle.token: claim for handle, claim in naming.handles.items()}[seen]
            case "expectations":
                seen = tuple(expectation_of(item, naming, due) for item in seen)
        said.append((field, seen))
    return Expected(name, tuple(said))


def _to_be_said(field: str, seen: Any, outcome: Value, due: bool) -> bool:
    if field == "due":
        return due and seen is not None
    if field == "hooked":
        return seen is not None
    if field == "failed":  # a matter of hooks
        return bool(seen) or getattr(outcome, "hooked", None) is not None
    return field != "dml" or seen == 0


def relabelled(expected: Expected, label: Callable[[int], int]) -> Expected:
    """The same expectation with its steps numbered anew."""

    def anew(name: str, value: Any) -> Any:
        match HOLDS.get(name):
            case "job":
                return label(value)
            case "jobs" if value is not None:
                return tuple(map(label, value))
            case "attempt" if value is not None:
                return HandleRef(label(value.step), value.nth)
            case "expectations":
                return tuple(relabelled(item, label) for item in value)
        return value

    return Expected(expected.kind, tuple((name, anew(name, value)) for name, value in expected.said))


def jobs_named(expected: Expected) -> Iterator[int]:
    """The numbers of the enqueuing steps that an expectation names."""
    for name, value in expected.said:
        match HOLDS.get(name):
            case "job":
                yield value
            case "jobs":
                yield from value or ()
            case "expectations":
                yield from (step for item in value for step in jobs_named(item))


def written(expected: Expected) -> Any:
    """The expectation as plain YAML data; the shortest form: a bare word where nothing more is said."""
    if expected.kind == ANY:
        return {ANY: [written(choice) for choice in expected.choices]}
    said = {name: _plain(value) for name, value in expected.said}
    if expected.kind in PARTS:
        return said
    main = KINDS[expected.kind].main
    if main is None:
        return {expected.kind: said} if said else expected.kind
    if not said:
        return expected.kind
    if main not in said:
        raise ValueError(f"an expectation of {expected.kind} that says {', '.join(said)} must say its {main}")
    return {expected.kind: said.pop(main), **said}


def _plain(value: Any) -> Any:
    if isinstance(value, HandleRef):
        return {"step": value.step, "nth": value.nth} if value.nth else value.step
    if not isinstance(value, tuple):
        return value
    return [written(item) if isinstance(item, Expected) else item for item in value]


def _agrees(name: str, said: Any, seen: Any, made: Binding) -> bool:
    """Whether one field agrees. Claims come in order (CLAIM-08); rows of a sweep and hooked jobs in any order."""
    jobs = made.jobs
    if name == "job":
        return said in jobs and jobs[said] == seen
    if name == "attempt" and said is not None:
        return seen in [handle.token for handle in made.handles.get(said.step, ())[said.nth : said.nth + 1]]
    if name == "dml":
        return seen is None or seen == said  # None: the adapter cannot count statements
    if name == "hooked":
        if said is None or seen is None:
            return said is seen
        return all(step in jobs for step in said) and Counter(jobs[step] for step in said) == Counter(seen)
    if name == "rows":
        rows = {row.job: row for row in seen}
        named = [(jobs.get(dict(row.said)["job"]), row) for row in said]
        return len(said) == len(seen) and all(job in rows and row.matches(rows[job], made) for job, row in named)
    if name in ("handles", "outcomes"):
        return len(said) == len(seen) and all(item.matches(found, made) for item, found in zip(said, seen, strict=True))
    return bool(seen == said)


def _line(expected: Expected) -> str:
    data = written(expected)
    if isinstance(data, str):
        return data
    return yaml.safe_dump(data, default_flow_style=True, sort_keys=False, width=10**6).strip()[1:-1]
