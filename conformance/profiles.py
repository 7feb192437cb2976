"""How deep a run looks: the three profiles, as data."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Profile:
    """One depth: `examples` of up to `longest` commands are drawn; what then has fewer than `minimum` checks with teeth
    is aimed at with the model's own traces; `random_schedules` are tried beyond the certificates."""

    name: str
    examples: int
    longest: int
    minimum: int
    random_schedules: int


PROFILES: dict[str, Profile] = {
    profile.name: profile
    for profile in (
        Profile("quick", examples=250, longest=40, minimum=1, random_schedules=0),
        Profile("ci", examples=500, longest=50, minimum=100, random_schedules=20),
        Profile("nightly", examples=10_000, longest=60, minimum=1000, random_schedules=1000),
    )
}

DEFAULT = "ci"
