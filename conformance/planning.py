"""From the settings to the plan of a run: every name looked up, before anything is opened."""

from __future__ import annotations

import secrets

from .run import Plan
from .selection import chosen_adapter, chosen_clauses, chosen_profile, chosen_queues
from .settings import DEFAULT_ADAPTER, Settings


def planned(settings: Settings) -> Plan:
    """The plan that the settings ask for; a seed that nobody gave is drawn here.

    Raises:
        Unusable: a name stands for nothing, or the file of expected failures cannot be used; says where and what to do.
    """
    adapter = settings.adapter or DEFAULT_ADAPTER
    return Plan(
        adapter=adapter,
        make=settings.chosen("adapter", chosen_adapter, adapter),
        queues=settings.chosen("queues", chosen_queues, settings.queues),
        clauses=settings.chosen("clauses", chosen_clauses, settings.clauses),
        profile=settings.chosen("profile", chosen_profile, settings.profile),
        seed=secrets.randbelow(2**32) if settings.seed is None else settings.seed,
        expected=settings.expectations(),
    )
