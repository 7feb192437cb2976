"""How deep a run looks: the three profiles, as data."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Profile:
    """One depth. `examples` of up to `longest` commands make a round; `rounds` is how often a round may be repeated
    until every pair has its minimum of checks with teeth; `random_schedules` are tried beyond the certificates."""

    name: str
    examples: int
    longest: int
    rounds: int
    minimum: int
    random_schedules: int


PROFILES: dict[str, Profile] = {
    profile.name: profile
    for profile in (
        Profile("quick", examples=250, longest=30, rounds=1, minimum=1, random_schedules=0),
        Profile("ci", examples=400, longest=40, rounds=8, minimum=100, random_schedules=20),
        Profile("nightly", examples=4000, longest=60, rounds=8, minimum=1000, random_schedules=1000),
    )
}

DEFAULT = "ci"
