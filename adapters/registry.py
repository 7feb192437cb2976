"""Finding adapters by name: entry points of the group `fencepost.adapters`, or `module:Class`."""

from __future__ import annotations

import difflib
import importlib
from importlib.metadata import entry_points

from .contract import Adapter, AdapterError

GROUP = "fencepost.adapters"


def known_adapters() -> list[str]:
    """The names of the installed adapters, sorted."""
    return sorted({point.name for point in entry_points(group=GROUP)})


def adapter_class(name: str) -> type[Adapter]:
    """The adapter class that a name or `module:Class` stands for.

    Raises:
        AdapterError: there is none; the message names the known ones and the nearest.
    """
    if ":" in name:
        return _from_module(name)
    points = {point.name: point for point in entry_points(group=GROUP)}
    if name not in points:
        near = difflib.get_close_matches(name, points, 1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        known = ", ".join(sorted(points))
        raise AdapterError(f"there is no adapter {name!r}{hint} Known: {known}; or give module:Class of your own.")
    return _checked(name, points[name].load())


def _from_module(name: str) -> type[Adapter]:
    module_name, _, class_name = name.partition(":")
    try:
        module = importlib.import_module(module_name)
    except ImportError as error:
        raise AdapterError(
            f"adapter {name!r}: module {module_name!r} cannot be imported ({error}); "
            "run from the folder it lies in, or install it"
        ) from error
    found = getattr(module, class_name, None)
    if found is None:
        classes = [key for key, item in vars(module).items() if isinstance(item, type) and issubclass(item, Adapter)]
        raise AdapterError(f"adapter {name!r}: {module_name} has no {class_name!r}; its adapters: {', '.join(classes)}")
    return _checked(name, found)


def _checked(name: str, found: object) -> type[Adapter]:
    if not (isinstance(found, type) and issubclass(found, Adapter)):
        raise AdapterError(f"adapter {name!r} is {found!r}, not a subclass of fencepost.adapters.contract.Adapter")
    missing = sorted(getattr(found, "__abstractmethods__", ()))
    if missing:
        raise AdapterError(
            f"adapter {name!r} lacks {', '.join(missing)}; write them as fencepost.adapters.contract says"
        )
    return found
