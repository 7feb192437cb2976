"""The scenario files that come with fencepost: those written by hand, and the mutants' stories."""

from __future__ import annotations

from pathlib import Path

FOLDER = Path(__file__).parent.parent / "scenarios"
STORIES = FOLDER / "regressions"
REGRESSIONS = sorted(STORIES.glob("*.yaml"))
HAND = sorted(path for path in FOLDER.glob("*/*.yaml") if path.parent != STORIES)
EXPORT = "fencepost mutants --export=scenarios/regressions"
"""What writes the mutants' stories."""
