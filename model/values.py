"""Interned immutable values: equal values are one object, so equality and hashing cost one pointer comparison.

Commands and outcomes are compared and used as dictionary keys in every hot loop of the project.
NamedTuples would compare equal across types (`Renew(1) == Complete(1)`) and so poison caches;
interning keeps types apart and needs no per-comparison work.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, dataclass_transform

T = TypeVar("T")

new = tuple.__new__
"""`new(World, (…))` makes a NamedTuple at half the cost of its own constructor; for the hot path alone."""


class Interned(type):
    """Metaclass that returns the one existing instance for equal constructor arguments."""

    if not TYPE_CHECKING:  # type checkers keep the dataclass signature

        def __call__(cls, *args: Any, **kwargs: Any) -> Any:
            pool = cls._pool
            if not kwargs:
                known = pool.get(args)
                if known is not None:
                    return known
            made = super().__call__(*args, **kwargs)
            key = tuple(getattr(made, name) for name in cls._names)
            made = pool.setdefault(key, made)
            if not kwargs:
                pool[args] = made
            return made


@dataclass_transform(frozen_default=True, eq_default=False)
def value(cls: type[T]) -> type[T]:
    """Make a class a frozen, slotted dataclass compared by identity; use it with `metaclass=Interned`."""
    made = dataclass(frozen=True, slots=True, eq=False)(cls)
    made._pool = {}  # type: ignore[attr-defined]
    made._names = tuple(f.name for f in fields(made))  # type: ignore[attr-defined, arg-type]
    made.__reduce__ = _reduce  # type: ignore[method-assign]
    return made


def _reduce(self: Any) -> tuple[type, tuple[Any, ...]]:
    """Pickle and copy through the constructor, so that identity survives."""
    return type(self), field_values(self)


def field_values(item: Any) -> tuple[Any, ...]:
    """The constructor arguments of an interned value, in order."""
    return tuple(getattr(item, name) for name in type(item)._names)


def field_names(cls: type) -> tuple[str, ...]:
    """The names of an interned value's fields, in constructor order."""
    names: tuple[str, ...] = cls._names  # type: ignore[attr-defined]
    return names


class Value(metaclass=Interned):
    """Base of every interned value."""

    __slots__ = ()
    _pool: ClassVar[dict[Any, Any]]
    _names: ClassVar[tuple[str, ...]]
