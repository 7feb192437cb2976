"""Changed copies of a frozen value made of named terms: the one way to make a rule wrong on purpose.

A *place* says where a term stands: a field (`claim_where`), an entry of a mapping (`fence.renew`, `writes.retry`), the
assignments of a case (`recover.requeue`), or its conditions (`recover.requeue.when`). Whatever is not there to be
changed is an error, never a silent no-op. This module must never know which rules there are.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Self, TypeVar

from .terms import Case, Pred

E = TypeVar("E")


class Editable:
    """Base of a frozen dataclass whose fields hold tuples of named terms, mappings to those, or plain values."""

    __slots__ = ()

    def without(self, place: str, name: str | Pred) -> Self:
        """These rules less one term.

        Raises:
            LookupError: there is no such term at this place.
        """
        return self._edit(place, lambda terms: _cut(terms, _index(place, terms, name), ()))

    def replaced(self, place: str, name: str | Pred, term: Any) -> Self:
        """These rules with another term instead of one. Raises LookupError as `without`."""
        return self._edit(place, lambda terms: _cut(terms, _index(place, terms, name), (term,)))

    def added(self, place: str, term: Any) -> Self:
        """These rules with one term more, in front.

        Raises:
            LookupError: there is no such place, or it has a term of this name.
        """

        def add(terms: tuple[Any, ...]) -> tuple[Any, ...]:
            if any(term.name == other.name for other in terms):
                raise LookupError(f"{place} has a {term.name!r} already; replace it")
            return (term, *terms)

        return self._edit(place, add)

    def shifted(self, place: str, name: str | Pred) -> Self:
        """These rules with one predicate's bound moved by one instant. Raises LookupError as `without`."""
        return self._edit(place, lambda terms: _map(place, terms, name, Pred.shifted))

    def swapped(self, place: str, one: str, other: str) -> Self:
        """These rules with two terms in each other's place. Raises LookupError as `without`."""

        def swap(terms: tuple[Any, ...]) -> tuple[Any, ...]:
            i, j = _index(place, terms, one), _index(place, terms, other)
            changed = list(terms)
            changed[i], changed[j] = terms[j], terms[i]
            return tuple(changed)

        return self._edit(place, swap)

    def but(self, place: str, value: Any) -> Self:
        """These rules with another value in a field (`tick_sweeps`) or an entry of one (`policy.INFRA`).

        Raises:
            LookupError: there is no such field or entry, or it has this value already.
        """
        field, _, key = self._path(place).partition(".")
        old = self._field(field)
        if key:
            entry = _entry(place, old, key)
            if old[entry] == value:
                raise LookupError(f"{place} is {value!r} already")
            return _with(self, **{field: MappingProxyType({**old, entry: value})})
        if old == value:
            raise LookupError(f"{place} is {value!r} already")
        return _with(self, **{field: value})

    def at(self, place: str) -> tuple[Any, ...]:
        """The terms at a place. Raises LookupError if there is no such place."""
        found: list[tuple[Any, ...]] = []

        def look(terms: tuple[Any, ...]) -> tuple[Any, ...]:
            found.append(terms)
            return terms

        self._edit(place, look)
        return found[0]

    def _field(self, field: str) -> Any:
        if field not in {known.name for known in dataclasses.fields(self)}:  # type: ignore[arg-type]
            raise LookupError(f"the rules have no field {field!r}")
        return getattr(self, field)

    @classmethod
    def _path(cls, place: str) -> str:
        """The place in full; a subclass may know short forms."""
        return place

    def _edit(self, place: str, change: Callable[[tuple[Any, ...]], tuple[Any, ...]]) -> Self:
        path = self._path(place)
        field, *rest = path.split(".")
        old = self._field(field)
        if isinstance(old, Mapping):
            if not rest:
                raise LookupError(f"{path} is a mapping; name one of {', '.join(map(str, old))}")
            key = _entry(path, old, rest[0])
            return _with(self, **{field: MappingProxyType({**old, key: _edit_terms(path, old[key], rest[1:], change)})})
        return _with(self, **{field: _edit_terms(path, old, rest, change)})


def _with(rules: E, **fields: Any) -> E:
    changed: E = dataclasses.replace(rules, **fields)  # type: ignore[type-var]
    return changed


def _edit_terms(
    path: str, terms: Any, rest: list[str], change: Callable[[tuple[Any, ...]], tuple[Any, ...]]
) -> tuple[Any, ...]:
    if not isinstance(terms, tuple):
        raise LookupError(f"{path} holds no terms")
    if not rest:
        return change(terms)
    at = _index(path, terms, rest[0])
    part = rest[1] if len(rest) > 1 else "set"
    if not isinstance(terms[at], Case) or part not in ("set", "when"):
        raise LookupError(f"{path} is no case's conditions or assignments")
    case = dataclasses.replace(terms[at], **{part: change(getattr(terms[at], part))})
    return _cut(terms, at, (case,))


def _index(place: str, terms: tuple[Any, ...], name: str | Pred) -> int:
    wanted = name.name if isinstance(name, Pred) else name
    for at, term in enumerate(terms):
        if term.name == wanted:
            return at
    raise LookupError(f"{place} has no {wanted!r}; it has {', '.join(term.name for term in terms) or 'nothing'}")


def _entry(place: str, mapping: Mapping[Any, Any], key: str) -> Any:
    for known in mapping:
        if known == key:
            return known
    raise LookupError(f"{place}: no entry {key!r}; there are {', '.join(map(str, mapping))}")


def _cut(terms: tuple[Any, ...], at: int, instead: tuple[Any, ...]) -> tuple[Any, ...]:
    return (*terms[:at], *instead, *terms[at + 1 :])


def _map(place: str, terms: tuple[Any, ...], name: str | Pred, change: Callable[[Any], Any]) -> tuple[Any, ...]:
    at = _index(place, terms, name)
    if not isinstance(terms[at], Pred):
        raise LookupError(f"{place}: {terms[at].name!r} is no predicate")
    return _cut(terms, at, (change(terms[at]),))
