"""What ended a run that should have gone on: in words, and with the frames that help whoever mends it."""

from __future__ import annotations

import traceback

from fencepost.adapters.contract import AdapterError

_ENGINES = "fencepost.conformance"
_BESIDE = ("fencepost.model", "fencepost.reports", "fencepost.scenarios", "hypothesis", "asyncio", "contextlib")
"""What an engine calls that is no adapter. Whatever else it calls is one, with all that this one calls in turn."""


def fault_of(error: BaseException, adapter: str = "") -> str:
    """What was raised, by which verb of the adapter, with the adapter's own frames; all frames if it was no adapter.

    `adapter` is the name that it was asked for by. An `AdapterError` says by itself what to do.
    """
    # What else went wrong is noted; Hypothesis notes its numbers, which say nothing that the seed does not.
    notes = [note for note in getattr(error, "__notes__", ()) if not note.startswith("Falsifying example")]
    if isinstance(error, AdapterError):
        return "\n".join([str(error), *notes])
    said = "\n".join([f"{type(error).__name__}: {error}".removesuffix(": "), *notes])
    frames = list(traceback.walk_tb(error.__traceback__))
    last = max((at for at, (frame, _) in enumerate(frames) if _in(frame.f_globals, (_ENGINES,))), default=-1)
    own = frames[last + 1 :] if last >= 0 else []
    if not own or _in(own[0][0].f_globals, _BESIDE):
        whole = "".join(traceback.format_exception(error))
        return f"an exception that nobody expected; please report it as a fault of fencepost\n{whole}".rstrip()
    caller = own[0][0]
    verb = getattr(caller.f_locals.get("command"), "verb", caller.f_code.co_name)
    told = "".join(traceback.StackSummary.extract(iter(own)).format())
    return f"adapter {adapter or 'under test'}: {verb} raised {said}\n{told}".rstrip()


def _in(module: dict[str, object], packages: tuple[str, ...]) -> bool:
    name = str(module.get("__name__", ""))
    return any(name == package or name.startswith(package + ".") for package in packages)
