"""How deep a run looks: the three profiles, as data."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Profile:
    """One depth: `examples` of up to `longest` commands are drawn; what then has fewer than `minimum` checks with teeth
    is aimed at with the model's own traces. Races are played in every order under each profile."""

    name: str
    examples: int
    longest: int
    minimum: int


PROFILES: dict[str, Profile] = {
    profile.name: profile
    for profile in (
        Profile("quick", examples=250, longest=40, minimum=1),
        Profile("ci", examples=500, longest=50, minimum=100),
        Profile("nightly", examples=10_000, longest=60, minimum=1000),
    )
}

DEFAULT = "ci"
