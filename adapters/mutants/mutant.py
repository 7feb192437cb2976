"""What a mutant is: one realistic fault of the reference runtime as a change of its rules, and the clause it breaks.

The changes that recur are functions here. This module must never know how a mutant is killed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, TypeAlias

from fencepost.adapters.reference.rules import Rules, Verb

Change: TypeAlias = Callable[[Rules], Rules]


@dataclass(frozen=True)
class Mutant:
    """A fault. `title` says in one sentence what goes wrong, and names the public report of it where there is one."""

    id: str
    clause: str
    title: str
    change: Change
    """From the contract's rules to the faulty ones; raises LookupError where there is nothing to change."""
    queue: str = "backfill"
    adapters: tuple[str, ...] = ("sqlite", "pg")
    also: tuple[str, ...] = ()
    """Other clauses that this fault truly breaks."""
    pair: str | None = None
    """What must overlap, for a fault that takes two actors at once: the name of the program that shows it."""

    @property
    def race(self) -> bool:
        """Whether it takes two actors at once."""
        return self.pair is not None


_NO_REPORTS: Mapping[Verb, str] = MappingProxyType({})


def each(
    kind: str,
    clause: str,
    title: str,
    change: Callable[[Verb], Change],
    verbs: Iterable[Verb],
    queue: str = "backfill",
    reports: Mapping[Verb, str] = _NO_REPORTS,
    also: tuple[str, ...] = (),
) -> tuple[Mutant, ...]:
    """The same fault in each of these verbs. `title` has a place for the verb and no full stop; `reports` names public
    reports of it.
    """
    return tuple(
        Mutant(
            f"{verb}-{kind}".replace("_", "-"),
            clause,
            title.format("upload" if verb == Verb.PUT_ARTIFACT else verb)
            + (f" ({reports[verb]})." if verb in reports else "."),
            change(verb),
            queue,
            also=also,
        )
        for verb in verbs
    )


def drop(place: str, *names: str) -> Change:
    """Leave terms out."""

    def change(rules: Rules) -> Rules:
        for name in names:
            rules = rules.without(place, name)
        return rules

    return change


def add(place: str, *terms: Any) -> Change:
    """Put terms in."""

    def change(rules: Rules) -> Rules:
        for term in terms:
            rules = rules.added(place, term)
        return rules

    return change


def put(place: str, name: str, term: Any) -> Change:
    """Put a term in another's place."""
    return lambda rules: rules.replaced(place, name, term)


def shift(place: str, name: str) -> Change:
    """Move a bound by one instant."""
    return lambda rules: rules.shifted(place, name)


def swap(place: str, one: str, other: str) -> Change:
    """Let two terms change places."""
    return lambda rules: rules.swapped(place, one, other)


def but(place: str, value: Any) -> Change:
    """Set a field, or an entry of one, to another value."""
    return lambda rules: rules.but(place, value)


def both(*changes: Change) -> Change:
    """One change after another."""

    def change(rules: Rules) -> Rules:
        for each in changes:
            rules = each(rules)
        return rules

    return change


def twice(make: Callable[..., Change], place: str, *terms: Any) -> Change:
    """The same change where rows are read (`claim_where`, `expired`, `left_behind`, `called_off`) and where the update
    looks at them again."""
    return both(make(place, *terms), make(f"{place.removesuffix('_where')}_again", *terms))
