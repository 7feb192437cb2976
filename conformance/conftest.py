"""Short names of the plugin's options, for `pytest conformance` in the repository and nowhere else.

pytest also reads this file where the package was only asked for by its name: there the short names are other people's.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from fencepost.conformance.options import OPTIONS
from fencepost.conformance.plugin import add_options

REPOSITORY = Path(__file__).resolve().parent.parent
SHORT = ("adapter", "queues", "clauses", "require", "seed", "profile")


def pytest_addoption(parser: pytest.Parser) -> None:
    if Path.cwd() == REPOSITORY:
        add_options(parser, "", [option for option in OPTIONS if option.key in SHORT])
