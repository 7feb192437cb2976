"""The examples of the documentation as modules of the tests: a plain queue, its adapter, and the shortest one."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

FOLDER = Path(__file__).parent.parent / "docs" / "examples"


def _loaded(name: str) -> ModuleType:
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
        assert spec is not None and spec.loader is not None
        sys.modules[name] = module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    return sys.modules[name]


plain_queue = _loaded("plain_queue")
plain_adapter = _loaded("plain_adapter")
shortest = _loaded("shortest")
