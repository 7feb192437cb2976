"""A pytest plugin for sessions that are about something else: the profile `quick` draws hardly anything, and of the
model's shortest traces only those are looked for that take the least time to find.
"""

from __future__ import annotations

from dataclasses import replace

from fencepost.conformance import reduce
from fencepost.conformance.profiles import PROFILES

PROFILES["quick"] = replace(PROFILES["quick"], examples=10, longest=20)
reduce._SHORT = reduce._SHORT[:1]
