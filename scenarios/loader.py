"""From a YAML file to a `Scenario`, or to one clear error.

It must never run a trace nor import an adapter; adapters' names are checked against the installed entry points.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, TypeVar

from fencepost.model import commands as c
from fencepost.model.clauses import CLAUSES
from fencepost.model.queues import ALL_QUEUES, PENDING, QUEUES, RUNNING, QueueSpec
from fencepost.model.step import KINDS as ANSWERKINDS
from fencepost.model.trace import Trace, TraceStep
from pydantic import ValidationError

from .expected import ANY, KINDS, PARTS, Expected, jobs_named
from .format import MUTANT, VERSION, Found, Scenario, ScenarioError
from .forms import COMMAND_FORMS, COMMANDS, FROM_FORM, FileForm, Form, command_name, outcome_form
from .safe_yaml import read_yaml

F = TypeVar("F", bound=Form)

OUTCOME_FORMS = {name: outcome_form(name, kind.fields) for name, kind in KINDS.items()}

_QUIET = (c.Probe, c.Configure, c.Classify, c.Crash, c.Advance, c.AdvanceTo)
"""Commands that write no row: nothing conflicts with them, and no reply of theirs is lost."""


def _answers(command: type[c.Command]) -> tuple[str, ...]:
    kinds = ANSWERKINDS[c.Advance if command is c.AdvanceTo else command]
    return tuple(name for name, kind in KINDS.items() if kind.type in kinds) + (
        () if command in _QUIET else ("conflict", "unknown")
    )


_NEEDS: tuple[tuple[Callable[[Any], bool], Callable[[QueueSpec], bool], str], ...] = (
    (
        lambda asked: getattr(asked, "due_in", 0) > 0 or getattr(asked, "instant", "") == "due",
        lambda queue: queue.backs_off,
        "has no back-off, so no job of it is due later",
    ),
    (
        lambda asked: getattr(asked, "deadline_in", 0) > 0 or getattr(asked, "instant", "") == "deadline",
        lambda queue: queue.deadline,
        "has no deadlines",
    ),
    (
        lambda asked: isinstance(asked, c.Plant) and asked.field == "deadline",
        lambda queue: queue.deadline,
        "has no deadlines",
    ),
    (
        lambda asked: isinstance(asked, c.Plant) and asked.field == "lease",
        lambda queue: queue.claims_by_id,
        "does not look at a lease that is left on a pending job",
    ),
    (
        lambda asked: isinstance(asked, c.Claim) and asked.job is not None,
        lambda queue: queue.claims_by_id,
        "cannot be asked for one job",
    ),
)
"""What a command may ask for, what the queue must declare for that, and what is said of one that does not."""

ANSWERS: dict[type[c.Command], tuple[str, ...]] = {command: _answers(command) for command in c.COMMANDS}
"""What each command can answer; anything else in `expect:` is a slip of the pen."""


QueuesOf = Callable[[Sequence[str]], Mapping[str, QueueSpec]]
"""The queues of the first of these adapters, by key."""


def load(path: Path | str, queues_of: QueuesOf = lambda adapters: QUEUES) -> Scenario:
    """The scenario in this file. `queues_of` is asked, with the adapters that the file names, for a queue that is none
    of the contract's.

    Raises:
        ScenarioError: it cannot be read or is not a scenario; names the file, the step or line, and what to do.
    """
    path = Path(path)
    try:
        return loads(path.read_text(encoding="utf-8"), str(path), queues_of)
    except OSError as fault:
        raise ScenarioError(f"{path}: cannot be read ({fault.strerror}); check the path") from fault
    except UnicodeDecodeError as fault:
        raise ScenarioError(f"{path}: is not UTF-8 text; save it as UTF-8") from fault


def loads(text: str, name: str = "scenario", queues_of: QueuesOf = lambda adapters: QUEUES) -> Scenario:
    """The scenario in this text; `name` stands in errors, `queues_of` as for `load`.

    Raises:
        ScenarioError: as `load`.
    """
    return _Reader(name, queues_of).read(text)


class _Reader:
    """One pass over one file. Steps are numbered as they are read; lanes see the prefix and themselves."""

    def __init__(self, name: str, queues_of: QueuesOf) -> None:
        self.queues_of = queues_of
        self.place = self.name = name
        self.label = self.prefix = 0
        self.all: dict[int, c.Command] = {}
        self.seen: Mapping[int, c.Command] = {}
        self.expects: list[tuple[int, Any]] = []
        self.spec: QueueSpec

    def fail(self, message: str) -> ScenarioError:
        return ScenarioError(f"{self.place}: {message}")

    def read(self, text: str) -> Scenario:
        raw = read_yaml(text, self.name)
        self.version(raw)
        file = self.form(FileForm, raw)
        self.header(file)
        steps = self.sequence(file.steps, {})
        self.prefix = self.label
        prefix = {step.label: step.command for step in steps}
        lanes: tuple[tuple[TraceStep, ...], ...] = ()
        if file.together is not None:
            clock = self.sequence(file.together.clock, prefix, clock=True)
            lanes = (clock, *(self.sequence(actor, prefix, clock=False) for actor in file.together.actors))
        self.place = self.name
        if not self.all:
            raise self.fail("has no steps; write at least one, e.g. `- {do: enqueue}`")
        self.schedule(file, lanes)
        expected = {label: self.step_expectation(label, said) for label, said in self.expects}
        return Scenario(
            id=file.id,
            clause=file.clause,
            queue=file.queue,
            title=file.title,
            trace=Trace(steps, lanes, file.schedule),
            adapters=None if file.adapters is None else tuple(file.adapters),
            source=file.source,
            mutant=file.mutant,
            found=None if file.found is None else Found(**file.found.model_dump()),
            expected=expected,
        )

    def version(self, raw: Mapping[str, Any]) -> None:
        version = raw.get("fencepost")
        if type(version) is not int or version < 1:
            raise self.fail(f"is not a scenario file: it must say `fencepost: {VERSION}`, its format's version")
        if version > VERSION:
            raise self.fail(f"this file is version {version}, this fencepost reads {VERSION}: upgrade fencepost")

    def header(self, file: FileForm) -> None:
        if file.clause not in CLAUSES:
            raise self.fail(f"unknown clause `{file.clause}`{_nearest(file.clause, CLAUSES)}")
        queues: Mapping[str, QueueSpec] = QUEUES
        if file.queue not in queues:
            if file.queue in ALL_QUEUES:
                raise self.fail(f"queue `{file.queue}` is not built in this version; built: {', '.join(QUEUES)}")
            named = [*((file.found.adapter,) if file.found is not None else ()), *(file.adapters or ())]
            queues = self.queues_of(named)
        if file.queue not in queues:
            raise self.fail(f"unknown queue `{file.queue}`{_nearest(file.queue, queues)}")
        self.spec = queues[file.queue]
        if (file.source == MUTANT) != (file.mutant is not None):
            raise self.fail(f"`source: {MUTANT}` and the `mutant` whose story it is go together; write both or neither")
        known = _adapters()
        for adapter in file.adapters or ():
            if adapter not in known and ":" not in adapter:
                raise self.fail(
                    f"unknown adapter `{adapter}`{_nearest(adapter, known)}; an adapter of your own is `module:Class`"
                )

    def sequence(
        self, raw_steps: Iterable[Any], before: Mapping[int, c.Command], clock: bool | None = None
    ) -> tuple[TraceStep, ...]:
        """Read one actor's steps; `clock` tells whether they stand in the clock's lane or, False, in an actor's."""
        known = dict(before)
        steps = []
        for raw in raw_steps:
            self.label += 1
            command = self.step(raw, known)
            moves = isinstance(command, c.Advance | c.AdvanceTo)
            if clock and not moves:
                raise self.fail("the clock's lane only moves the clock; put this under `actors`")
            if clock is False and moves:
                raise self.fail("an actor's lane cannot move the clock; put this under `clock`")
            known[self.label] = self.all[self.label] = command
            steps.append(TraceStep(self.label, command))
        return tuple(steps)

    def step(self, raw: Any, known: Mapping[int, c.Command]) -> c.Command:
        self.place = f"{self.name}, step {self.label}"
        command = self.command(raw, known, ("do", "expect"))
        if "expect" in raw:
            self.expects.append((self.label, raw["expect"]))
        return command

    def command(self, raw: Any, known: Mapping[int, c.Command], around: tuple[str, ...]) -> c.Command:
        if not isinstance(raw, dict) or "do" not in raw:
            raise self.fail(f"must be a mapping like {{do: claim, worker: 1}}, not {raw!r}")
        do = raw["do"]
        if not isinstance(do, str) or do not in COMMANDS:
            raise self.fail(f"unknown command `do: {do}`{_nearest(str(do), COMMANDS)}")
        form = self.form(COMMAND_FORMS[do], {k: v for k, v in raw.items() if k not in around}, around)
        fields = {name: FROM_FORM.get(name, lambda same: same)(value) for name, value in form}
        if do == "atomically":
            fields["commands"] = tuple(self.inner(inner, known) for inner in fields["commands"])
        command = COMMANDS[do](**fields)
        self.references(fields, known)
        self.served(do, command)
        return command

    def served(self, do: str, command: c.Command) -> None:
        """Refuse what the queue has no such thing for."""
        queue = self.spec
        verbs = queue.verbs | {"advance"}
        if command.verb not in verbs:
            served = ", ".join(name for name, kind in COMMANDS.items() if kind.verb in verbs)
            raise self.fail(f"queue `{queue.key}` has no `{do}`; it has {served}")
        for asked, has, lacks in _NEEDS:
            if asked(command) and not has(queue):
                raise self.fail(f"queue `{queue.key}` {lacks}; leave that out")

    def inner(self, raw: Any, known: Mapping[int, c.Command]) -> c.Command:
        command = self.command(raw, known, ("do",))
        if not isinstance(command, c.ATOMIC_COMMANDS):
            allowed = ", ".join(map(command_name, c.ATOMIC_COMMANDS))
            raise self.fail(f"`{raw['do']}` cannot stand inside `atomically`; it may hold {allowed}")
        return command

    def references(self, fields: Mapping[str, Any], known: Mapping[int, c.Command]) -> None:
        handle, job, hook = fields.get("handle"), fields.get("job"), fields.get("hook")
        if handle is not None:
            self.claimed(handle, known)
        if job is not None:
            self.referred(job.step, c.Enqueue, known)
        if hook is not None:
            if (hook.kind == "poison") != (hook.job is not None):
                raise self.fail(f"hook `{hook.kind}`: `job` is for `poison`, which must name one")
            if hook.job is not None:
                self.referred(hook.job.step, c.Enqueue, known)

    def claimed(self, handle: c.HandleRef, known: Mapping[int, c.Command]) -> None:
        claim = self.referred(handle.step, c.Claim, known)
        most = min(claim.limit, claim.max_claims)
        if handle.nth >= most:
            raise self.fail(f"handle {handle.nth} of step {handle.step}: that claim makes at most {most}, from 0")

    def referred(self, label: int, wanted: type[c.Command], known: Mapping[int, c.Command]) -> Any:
        name = command_name(wanted)
        if label not in known:
            raise self.fail(f"refers to step {label}, which is no earlier step of its own; name an earlier `{name}`")
        found = known[label]
        if not isinstance(found, wanted):
            raise self.fail(f"refers to step {label}, which is `{command_name(type(found))}`; it must be `{name}`")
        return found

    def schedule(self, file: FileForm, lanes: tuple[tuple[TraceStep, ...], ...]) -> None:
        if lanes and not any(lanes[1:]):
            raise self.fail("`together` has no step of an actor; write one, or leave `together` out")
        if file.schedule is None:
            return
        if not lanes:
            raise self.fail("has a `schedule` but too few lanes; write `together` with the lanes that it orders")
        if file.adapters is None:
            raise self.fail("has a `schedule`, so it must name its `adapters`: other ones send other statements")
        for digit in file.schedule:
            if not ("0" <= digit <= "9") or int(digit) >= len(lanes):
                raise self.fail(f"schedule digit `{digit}` is no lane; lanes are 0 (clock) to {len(lanes) - 1}")
        if file.schedule.count("0") > len(lanes[0]):
            raise self.fail(f"the schedule moves the clock more often than the clock's lane has steps, {len(lanes[0])}")

    def step_expectation(self, label: int, raw: Any) -> Expected:
        self.place = f"{self.name}, step {label}"
        if label <= self.prefix:
            self.seen = {step: command for step, command in self.all.items() if step <= label}
        else:
            self.seen = self.all  # a lane may get to see a job of any other
        return self.expectation(raw, self.all[label])

    def expectation(self, raw: Any, command: c.Command) -> Expected:
        if isinstance(raw, dict) and ANY in raw:
            choices = raw[ANY]
            if len(raw) > 1 or not isinstance(choices, list) or len(choices) < 2:
                raise self.fail("`any` stands alone and lists two or more outcomes")
            return Expected(ANY, (("choices", tuple(self.expectation(choice, command) for choice in choices)),))
        kind, fields = self.outcome(raw)
        allowed = ANSWERS[type(command)]
        if kind not in allowed:
            raise self.fail(f"`{command_name(type(command))}` cannot answer `{kind}`; it answers {', '.join(allowed)}")
        form = self.form(OUTCOME_FORMS[kind], fields, rename={KINDS[kind].main or "": kind})
        said = form.model_dump(exclude_unset=True)
        if kind == "atomic" and said:
            said["outcomes"] = self.outcomes(said["outcomes"], command)
        expected = Expected(
            kind, tuple((name, _frozen(name, said[name])) for name in KINDS[kind].fields if name in said)
        )
        self.spelled(expected, command)
        for step in jobs_named(expected):
            self.referred(step, c.Enqueue, self.seen)
        attempt = dict(expected.said).get("attempt")
        if attempt is not None:
            self.claimed(attempt, self.seen)
        for name, value in expected.said:
            jobs = tuple(jobs_named(Expected(kind, ((name, value),))))
            if kind != "atomic" and len(set(jobs)) < len(jobs):
                raise self.fail(f"`{name}` of `{kind}` names a job twice; name each once")
        return expected

    def outcome(self, raw: Any) -> tuple[str, dict[str, Any]]:
        """The kind of an outcome, and its fields by the model's names."""
        said = {raw: {}} if isinstance(raw, str) else raw
        if not isinstance(said, dict) or not said:
            raise self.fail(f"`expect` must be an outcome like `rejected` or {{accepted: succeeded}}, not {raw!r}")
        kinds = [key for key in said if key in KINDS]
        if len(kinds) != 1:
            if len(kinds) > 1:
                raise self.fail(f"`expect` names {' and '.join(kinds)}; use `any: [...]` where several will do")
            first = str(next(iter(said)))
            raise self.fail(f"unknown outcome `{first}`{_nearest(first, [*KINDS, ANY])}")
        kind, fields = kinds[0], dict(said)
        value, main = fields.pop(kind), KINDS[kinds[0]].main
        if main in fields:
            raise self.fail(f"unknown key `{main}`: that is what stands under `{kind}`")
        if value == {} and not (main and fields):
            return kind, fields
        if main is not None:
            return kind, {main: value, **fields}
        if not isinstance(value, dict):
            raise self.fail(f"`{kind}` takes a mapping, not {value!r}")
        return kind, {**value, **fields}

    def outcomes(self, raw: list[Any], command: c.Command) -> tuple[Expected, ...]:
        assert isinstance(command, c.Atomically)  # ANSWERS lets no other command answer `atomic`
        if len(raw) != len(command.commands):
            raise self.fail(f"`atomic` lists {len(raw)} outcomes for {len(command.commands)} commands")
        return tuple(self.expectation(one, inner) for one, inner in zip(raw, command.commands, strict=True))

    def spelled(self, expected: Expected, command: c.Command) -> None:
        """Statuses are written as the queue stores them (TERM-04)."""
        said = dict(expected.said)
        statuses = [dict(row.said).get("status") for row in said.get("rows", ())] + [said.get("status")]
        words = {"configured"} if isinstance(command, c.Configure) else {PENDING, RUNNING, *self.spec.terminal}
        for status in statuses:
            if status is not None and status not in words:
                raise self.fail(f"`{status}` is no status here; {self.spec.key} stores {', '.join(sorted(words))}")

    def form(self, form: type[F], raw: Any, around: Iterable[str] = (), rename: Mapping[str, str] | None = None) -> F:
        try:
            return form.model_validate(raw)
        except ValidationError as fault:
            rename = rename or {}
            first = fault.errors(include_url=False)[0]
            loc = [rename.get(str(part), str(part)) for part in first["loc"]]
            where, last = ".".join(loc), loc[-1] if loc else ""
            if first["type"] == "extra_forbidden":
                keys = [rename.get(key, key) for key in form.model_fields]
                known = [*keys, *around] if len(loc) == 1 else []
                raise self.fail(f"unknown key `{where}`{_nearest(last, known)}") from None
            if first["type"] == "missing":
                raise self.fail(f"needs `{where}`") from None
            message = first["msg"][0].lower() + first["msg"][1:]
            quotes = "; put it in quotes" if first["type"] == "string_type" else ""
            raise self.fail(f"`{where}`: {message}, not {first['input']!r}{quotes}") from None


@cache
def _adapters() -> frozenset[str]:
    """The names of the installed adapters, none of which is imported."""
    return frozenset(point.name for point in entry_points(group="fencepost.adapters"))


def _frozen(name: str, value: Any) -> Any:
    """A form's plain data as an `Expected` holds it."""
    if name in ("handles", "rows"):
        part = name[:-1]
        return tuple(Expected(part, tuple((f, item[f]) for f in PARTS[part].fields if f in item)) for item in value)
    if name == "attempt":
        return value and c.HandleRef(**value)
    return tuple(value) if isinstance(value, list) else value


def _nearest(word: str, known: Iterable[str]) -> str:
    known = sorted(known)
    close = difflib.get_close_matches(word, known, 1, 0.5)
    if close:
        return f"; did you mean `{close[0]}`?"
    return f"; known: {', '.join(known)}" if 0 < len(known) <= 20 else ""
