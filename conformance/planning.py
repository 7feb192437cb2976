"""From the settings to the plan of a run: every name looked up, before anything is opened."""

from __future__ import annotations

import secrets

from .run import Plan
from .selection import chosen_adapter, chosen_clauses, chosen_profile, chosen_queues, chosen_requirements, left_out
from .settings import DEFAULT_ADAPTER, Settings
from .watchdog import Limits


def planned(settings: Settings) -> Plan:
    """The plan that the settings ask for; a seed that nobody gave is drawn here.

    What is required for every run, in the file for example, does not forbid a narrower one: whoever outranks that place
    and asks for few clauses is not held to what needs others.

    Raises:
        Unusable: a name stands for nothing, something is required that the run leaves out, or the file of expected
            failures cannot be used; says where and what to do.
    """
    adapter = settings.adapter or DEFAULT_ADAPTER
    make = settings.chosen("adapter", chosen_adapter, adapter)
    clauses = settings.chosen("clauses", chosen_clauses, settings.clauses)
    held_to = None if settings.outranks("clauses", "require") else clauses
    required = settings.chosen("require", lambda names: chosen_requirements(names, held_to), settings.require)
    aside = [name for name in required if left_out(name, clauses)]
    return Plan(
        adapter=adapter,
        make=make,
        queues=settings.chosen("queues", lambda names: chosen_queues(names, make.queues), settings.queues),
        clauses=clauses,
        profile=settings.chosen("profile", chosen_profile, settings.profile),
        seed=secrets.randbelow(2**32) if settings.seed is None else settings.seed,
        required=tuple(name for name in required if name not in aside),
        limits=Limits(settings.example_timeout, settings.run_timeout),
        expected=settings.expectations(make.queues),
        aside=_told(settings, aside) if aside else "",
    )


def _told(settings: Settings, aside: list[str]) -> str:
    where, by = settings.origin("require"), settings.origin("clauses")
    return f"{where}: {', '.join(aside)} not required of this run, which {by} narrows to other clauses"
