"""What ended a run that should have gone on: in words, and with the frames that help whoever mends it."""

from __future__ import annotations

import traceback
from types import FrameType
from typing import TypeAlias

from fencepost.adapters.conflicts import is_conflict
from fencepost.adapters.contract import AdapterError

_ENGINES = "fencepost.conformance"
_BESIDE = ("fencepost.model", "fencepost.reports", "fencepost.scenarios", "hypothesis", "asyncio", "contextlib")
"""What an engine calls that is no adapter. Whatever else it calls is one, with all that this one calls in turn."""

Frames: TypeAlias = list[tuple[FrameType, int]]
"""Frames with the lines that they are at, the outermost first."""


class Hung(BaseException):
    """A call into the adapter did not come to an end in time, or the run did not; `stack` are the adapter's frames.

    No `Exception`, so that a queue which tries again after whatever went wrong does not try again after this.
    """

    def __init__(self, said: str, stack: str = "") -> None:
        super().__init__(said)
        self.stack = stack


def fault_of(error: BaseException, adapter: str = "") -> str:
    """What was raised, by which verb of the adapter, with the adapter's own frames; all frames if it was no adapter.

    `adapter` is the name that it was asked for by. An `AdapterError` says by itself what to do.
    """
    # What else went wrong is noted; Hypothesis notes its numbers, which say nothing that the seed does not.
    notes = [note for note in getattr(error, "__notes__", ()) if not note.startswith("Falsifying example")]
    whom = f"adapter {adapter or 'under test'}"
    if isinstance(error, Hung):
        return "\n".join([f"{whom}: {error}", *notes, error.stack]).rstrip()
    if isinstance(error, AdapterError):
        return "\n".join([str(error), *notes])
    said = "\n".join([f"{type(error).__name__}: {error}".removesuffix(": "), *notes])
    own = own_frames(list(traceback.walk_tb(error.__traceback__)))
    if not own:
        whole = "".join(traceback.format_exception(error))
        return f"an exception that nobody expected; please report it as a fault of fencepost\n{whole}".rstrip()
    hint = f"\n{_LEFT_OPEN}" if is_conflict(error) else f"\n{_TUPLES}" if "unhashable" in str(error) else ""
    told = "".join(traceback.StackSummary.extract(iter(own)).format())
    return f"{whom}: {verb_of(own)} raised {said}{hint}\n{told}".rstrip()


_LEFT_OPEN = (
    "a write conflict that another client can cause is no exception, but `o.CONFLICT`; if nobody else was at work, a "
    "call before this one has left its transaction open: end it in every verb, also where there was nothing to write"
)


_TUPLES = "an outcome holds plain values, and tuples of them in place of lists"


def without_arguments(error: TypeError) -> str:
    """What is wrong with an adapter whose making raised this; nothing if its `__init__` was entered."""
    frames = list(traceback.walk_tb(error.__traceback__))
    if any(frame.f_code.co_name == "__init__" and not _in(frame.f_globals, ("fencepost",)) for frame, _ in frames):
        return ""
    return f"it cannot be made without arguments: {error}; give every parameter of its `__init__` a default"


def own_frames(frames: Frames) -> Frames:
    """Those of the adapter that an engine has called; none if it called something else."""
    last = max((at for at, (frame, _) in enumerate(frames) if _in(frame.f_globals, (_ENGINES,))), default=-1)
    own = frames[last + 1 :] if last >= 0 else []
    return [] if own and _in(own[0][0].f_globals, _BESIDE) else own


def verb_of(own: Frames) -> str:
    """What the adapter was asked for: the verb of its command, or the method that was called."""
    caller = own[0][0]
    return str(getattr(caller.f_locals.get("command"), "verb", caller.f_code.co_name))


def _in(module: dict[str, object], packages: tuple[str, ...]) -> bool:
    name = str(module.get("__name__", ""))
    return any(name == package or name.startswith(package + ".") for package in packages)
