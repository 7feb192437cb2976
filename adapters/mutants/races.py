"""Faults that take two actors at once. This module must never know how they are scheduled."""

from __future__ import annotations

RACES: tuple = ()
EQUIVALENT: tuple = ()
