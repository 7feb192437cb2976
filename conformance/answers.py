"""Whether what an adapter hands over is of the kind and the types that the adapter contract says.

Asked where something is wrong already, and by `fencepost smoke`: what is of a wrong type is the adapter's fault, and
never the queue's. It has no opinion about what is legal.
"""

from __future__ import annotations

from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from fencepost.model import commands as c
from fencepost.model import outcomes as o
from fencepost.model.step import KINDS
from fencepost.model.values import field_names

TICKS = "instants are whole ticks of one second, counted as `now` counts them"
_INSTANTS = frozenset({"expires", "heartbeat", "started", "finished", "due", "cancel", "deadline"})


def answer_fault(command: c.Command, answer: object) -> str:
    """What is wrong with what a verb returned, and what it must return; nothing if its kind and types are right."""
    kinds = KINDS[type(command)]
    wanted = " or ".join(kind.__name__ for kind in kinds)
    if type(answer) not in (*kinds, o.Conflict):
        return f"{command.verb} returned {_shown(answer)}; return {wanted}"
    if isinstance(answer, o.Atomic) and isinstance(command, c.Atomically):
        inner = zip(command.commands, answer.outcomes, strict=False)
        return next(filter(None, (answer_fault(each, one) for each, one in inner)), "")
    if isinstance(answer, o.Recovered) and isinstance(answer.rows, tuple):
        wrong = next((row for row in answer.rows if type(row) is not o.RecoveredRow), None)
        if wrong is not None:
            return f"{command.verb}: its rows hold {_shown(wrong)}; let each be a RecoveredRow"
        faults = (_fields_fault(row, f"{command.verb}: RecoveredRow") for row in answer.rows)
        return next(filter(None, faults), "") or _fields_fault(answer, f"{command.verb}: Recovered")
    return _fields_fault(answer, f"{command.verb}: {type(answer).__name__}")


def rows_fault(rows: object) -> str:
    """What is wrong with what `snapshot` returned; nothing if its types are right."""
    if not isinstance(rows, dict):
        return f"snapshot returned {_shown(rows)}; return a dict from job id to Row"
    for job, row in rows.items():
        if not _fits(job, int | str):
            return f"snapshot: a job is called {_shown(job)}; name jobs by the int or string that enqueue returned"
        if type(row) is not o.Row:
            return f"snapshot: job {job} is {_shown(row)}; make it a Row"
        fault = _fields_fault(row, f"snapshot: job {job}")
        if fault:
            return fault
    return ""


def _fields_fault(value: object, where: str) -> str:
    for name, hint in _hints(type(value)).items():
        found = getattr(value, name)
        if name == "handles" and isinstance(found, tuple):
            fault = next(filter(None, (_handle_fault(each, where) for each in found)), "")
            if fault:
                return fault
            continue
        if not _fits(found, hint):
            more = f"; {TICKS}" if name in _INSTANTS else ""
            return f"{where}: {name} is {_shown(found)}, and must be {_named(hint)}{more}"
    return ""


def _handle_fault(handle: object, where: str) -> str:
    """What has not even the attributes of a handle is none; whether one is plain and lasting, CLAIM-13 judges."""
    try:
        for name in field_names(c.Handle):
            getattr(handle, name)
    except AttributeError:
        return f"{where}: its handles hold {_shown(handle)}; let each be a Handle"
    except Exception:
        return ""
    return ""


def _hints(kind: type) -> dict[str, Any]:
    """The types of a value's fields, by name."""
    hints = get_type_hints(kind)
    return {name: hints[name] for name in getattr(kind, "_fields", None) or field_names(kind)}


def _fits(value: object, hint: Any) -> bool:
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return any(_fits(value, each) for each in inner)
    if origin is Literal:
        return value in inner
    if origin is tuple:
        return isinstance(value, tuple) and all(_fits(each, inner[0]) for each in value)
    return isinstance(value, hint) and (hint is not int or not isinstance(value, bool))


def _named(hint: Any) -> str:
    inner = get_args(hint)
    if get_origin(hint) in (Union, UnionType):
        return " or ".join(map(_named, inner))
    if get_origin(hint) is Literal:
        return " or ".join(map(repr, inner))
    if get_origin(hint) is tuple:
        return f"a tuple of {_named(inner[0])}"
    return "None" if hint is NoneType else str(hint.__name__)


def _shown(value: object) -> str:
    told = repr(value)
    return told if len(told) <= 60 else f"{told[:57]}… ({type(value).__name__})"
