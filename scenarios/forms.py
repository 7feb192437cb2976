"""The forms of a scenario file, as pydantic models: the header, one form per command, one per outcome.

Commands' forms are derived from the model's commands, so that a new command can be written as soon as it exists.
It must never resolve a reference: forms know one mapping at a time.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from types import SimpleNamespace
from typing import Annotated, Any, Literal, get_type_hints

from fencepost.model import commands as c
from fencepost.model.values import field_names
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, create_model
from pydantic_core import PydanticCustomError


class Form(BaseModel):
    """Base of all forms: no unknown keys, no conversions."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


def _short(key: str) -> BeforeValidator:
    """Let a bare value stand for a mapping with just this key."""
    return BeforeValidator(lambda raw: raw if isinstance(raw, dict | BaseModel) else {key: raw})


class HandleForm(Form):
    """`handle: 2`, or `handle: {step: 2, nth: 1}` where a claim returned several."""

    step: int
    nth: Annotated[int, Field(ge=0)] = 0


class HookForm(Form):
    """`hook: raise`, or `hook: {kind: poison, job: 1}`."""

    kind: c.HookKind
    job: int | None = None


class FoundForm(Form):
    """`found:`, which the exporter fills in."""

    adapter: str
    seed: int | None = None
    reason: str = ""
    why: str = ""


class TogetherForm(Form):
    """`together:` lanes that run at once."""

    clock: list[Any] = []
    actors: Annotated[list[list[Any]], Field(min_length=1, max_length=9)]


class FileForm(Form):
    """A whole file; its steps are read one by one."""

    fencepost: int
    id: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]
    clause: str
    queue: str
    title: Annotated[str, Field(min_length=1)]
    adapters: Annotated[list[str], Field(min_length=1)] | None = None
    source: Annotated[str, Field(min_length=1)] = "hand"
    mutant: Annotated[str, Field(min_length=1)] | None = None
    found: FoundForm | None = None
    steps: list[Any]
    together: TogetherForm | None = None
    schedule: str | None = None


MOST = 10**9
"""What a number in a file may come to: about 31 years of seconds, which every database can add to an instant."""
_Count = Annotated[int, Field(ge=0, le=MOST)]
_Positive = Annotated[int, Field(ge=1, le=MOST)]
_Signed = Annotated[int, Field(ge=-MOST, le=MOST)]

_FIELDS: dict[str, Any] = {
    "handle": Annotated[HandleForm, _short("step")],
    "job": int,
    "hook": Annotated[HookForm, _short("kind")] | None,
    "commands": Annotated[list[Any], Field(min_length=1)],
    "worker": Annotated[int, Field(ge=1, lt=len(c.WORKER_NAMES))],
    "host": Annotated[int, Field(ge=0, lt=len(c.HOSTS))],
    "max_attempts": _Positive,
    "due_in": _Count,
    "deadline_in": _Count,
    "limit": _Count,
    "max_claims": _Count,
    "batch": _Positive,
    "seconds": _Count,
    "offset": _Signed,
    "lease": _Positive | None,
}
"""Fields that are written otherwise than the model holds them, or that have bounds; by name in every command."""

_FIELDS_OF: dict[type[c.Command], dict[str, Any]] = {
    c.Configure: {"lease": _Signed, "heartbeat": _Signed},
    c.Plant: {"job": int, "seconds": _Signed},
}
"""The same for commands of which a field has other bounds than elsewhere: what a queue is asked to take or to refuse
(LEASE-01), and an instant that may have passed.
"""


def _command_form(command: type[c.Command]) -> type[Form]:
    known = _FIELDS_OF.get(command, _FIELDS)
    own = {name: command.__annotations__[name] for name in field_names(command) if name not in known}
    hints = get_type_hints(SimpleNamespace(__annotations__=own), vars(c))
    fields: dict[str, Any] = {}
    for name in field_names(command):
        default = command.__dataclass_fields__[name].default  # type: ignore[attr-defined]
        required = not isinstance(default, int | str | bool | None)
        fields[name] = (known[name] if name in known else hints[name], ... if required else default)
    return create_model(command.__name__ + "Form", __base__=Form, **fields)


def command_name(command: type[c.Command]) -> str:
    """How a command is named after `do:`, e.g. `advance_to`."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", command.__name__).lower()


COMMANDS: dict[str, type[c.Command]] = {command_name(command): command for command in c.COMMANDS}
COMMAND_FORMS: dict[str, type[Form]] = {name: _command_form(command) for name, command in COMMANDS.items()}

FromForm = Callable[[Any], Any]

FROM_FORM: dict[str, FromForm] = {
    "handle": lambda form: c.HandleRef(form.step, form.nth),
    "job": lambda form: None if form is None else c.JobRef(form),
    "hook": lambda form: form and c.Hook(form.kind, None if form.job is None else c.JobRef(form.job)),
}
"""From a form's field to the model's value; fields not listed are the same in both."""


class HandlePart(Form):
    """One handle in `claimed:`."""

    job: int


class RowPart(Form):
    """One row in `recovered:`."""

    job: int
    status: str
    due: int | None = None


def _claim_or_null(raw: Any) -> Any:
    if isinstance(raw, str):
        raise PydanticCustomError("attempt", "must be the step of the claim that began the attempt, or null for none")
    return raw


class OutcomeForm(Form):
    """Every field that an outcome may have; each kind has a form with its own fields of these."""

    handles: list[HandlePart] = []
    hooked: list[int] | None = None
    status: str = ""
    due: int | None = None
    answer: Literal["cancelled", "recorded", "terminal"] = "recorded"
    rows: list[RowPart] = []
    count: int = 0
    failed: bool = False
    dml: int = 0
    attempt: Annotated[HandleForm, _short("step"), BeforeValidator(_claim_or_null)] | None = None
    cancel: bool = False
    transactions: int = 0
    locks: int = 0
    family: str | None = None
    outcomes: list[Any] = []


def outcome_form(name: str, fields: tuple[str, ...]) -> type[Form]:
    """The form of an outcome with just these fields, none of which must be said."""
    known = OutcomeForm.model_fields
    chosen: dict[str, Any] = {field: (known[field].annotation, known[field].default) for field in fields}
    return create_model(name + "_form", __base__=Form, **chosen)
