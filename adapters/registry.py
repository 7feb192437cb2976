"""Finding adapters by name: entry points of the group `fencepost.adapters`, or `module:Class`."""

from __future__ import annotations

import difflib
import importlib
import traceback
from collections.abc import Iterable
from importlib.metadata import entry_points
from inspect import isabstract
from typing import TypeGuard

from .contract import Adapter, AdapterError
from .sync import SyncAdapter, served

GROUP = "fencepost.adapters"


def known_adapters() -> list[str]:
    """The names of the installed adapters, sorted."""
    return sorted({point.name for point in entry_points(group=GROUP)})


def adapter_class(name: str) -> type[Adapter]:
    """The adapter class that a name or `module:Class` stands for; one with plain methods comes wrapped (`served`).

    Raises:
        AdapterError: there is none; the message names the known ones and the nearest.
    """
    if ":" in name:
        return _from_module(name)
    points = {point.name: point for point in entry_points(group=GROUP)}
    if name not in points:
        raise AdapterError(f"{unknown('adapter', name, sorted(points))} Or give module:Class of your own.")
    return _checked(name, points[name].load())


def unknown(what: str, name: str, known: Iterable[str]) -> str:
    """The message for a name that stands for nothing: whole sentences, with the nearest known name and all others."""
    names = list(known)
    near = difflib.get_close_matches(name, names, 1)
    hint = f"; did you mean {near[0]!r}?" if near else "."
    return f"there is no {what} {name!r}{hint} Known: {', '.join(names)}."


def _from_module(name: str) -> type[Adapter]:
    module_name, _, class_name = name.partition(":")
    if not (class_name and all(part.isidentifier() for part in module_name.split("."))):
        raise AdapterError(f"adapter {name!r} is no module:Class; write it as in `package.module:MyAdapter`")
    try:
        module = importlib.import_module(module_name)
    except ImportError as error:
        raise AdapterError(
            f"adapter {name!r}: module {module_name!r} cannot be imported ({error}); "
            "run from the folder it lies in, or install it"
        ) from error
    except Exception as error:
        raise AdapterError(
            f"adapter {name!r}: importing {module_name!r} raised {_said(error)}; mend that first"
        ) from error
    found = getattr(module, class_name, None)
    if found is None:
        classes = [key for key, item in vars(module).items() if _is_adapter(item) and not isabstract(item)]
        raise AdapterError(
            f"adapter {name!r}: {module_name} has no {class_name!r}; its adapters: {', '.join(classes) or 'none'}"
        )
    return _checked(name, found)


def _said(error: Exception) -> str:
    """What a module raised when it was imported, and where."""
    at = traceback.extract_tb(error.__traceback__)[-1]
    place = (error.filename, error.lineno) if isinstance(error, SyntaxError) else (at.filename, at.lineno)
    return f"{type(error).__name__}: {getattr(error, 'msg', error)} ({place[0]}, line {place[1]})"


def _is_adapter(found: object) -> TypeGuard[type[Adapter] | type[SyncAdapter]]:
    return isinstance(found, type) and issubclass(found, (Adapter, SyncAdapter))


def _checked(name: str, found: object) -> type[Adapter]:
    if not _is_adapter(found):
        raise AdapterError(
            f"adapter {name!r} is {found!r}, not a subclass of fencepost.adapters.contract.Adapter, nor of "
            "fencepost.adapters.sync.SyncAdapter"
        )
    if isabstract(found):
        missing = ", ".join(sorted(found.__abstractmethods__))
        raise AdapterError(
            f"adapter {name!r} lacks {missing}; write them as fencepost.adapters.contract says, "
            "or name a subclass that has them"
        )
    return served(found) if issubclass(found, SyncAdapter) else found
