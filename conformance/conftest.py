"""Short names of the plugin's options, for `pytest conformance`."""

from __future__ import annotations

import pytest
from fencepost.conformance.plugin import add_options


def pytest_addoption(parser: pytest.Parser) -> None:
    add_options(parser, "", ("adapter", "queue", "clause", "require", "seed", "profile"))
