"""Scenario files: traces with expected outcomes, as versioned YAML that replays for ever.

This package loads and writes them; the engines replay them. It imports only the model.
"""

from __future__ import annotations

from .expected import Expected, any_of, expectation_of
from .exporter import dump, write
from .format import MUTANT, VERSION, Found, Scenario, ScenarioError
from .loader import load, loads

__all__ = [
    "MUTANT",
    "VERSION",
    "Expected",
    "Found",
    "Scenario",
    "ScenarioError",
    "any_of",
    "dump",
    "expectation_of",
    "load",
    "loads",
    "write",
]
