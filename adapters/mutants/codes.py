"""Faulty classifications of error codes, each wrong in one way (ERR-01). This module must never know what a family
leads to.
"""

from __future__ import annotations

import re

from fencepost.model.errors import PATTERNS, Patterns, classifier, classify


def _reordered(first: str, second: str) -> Patterns:
    """The patterns with `second` right before `first`."""
    by_family = dict(PATTERNS)
    order = [family for family in by_family if family != second]
    order.insert(order.index(first), second)
    return tuple((family, by_family[family]) for family in order)


_LIMIT_BEFORE_CANCEL = _reordered("CANCEL", "LIMIT")
_ANYWHERE = tuple(
    (family, re.compile("|".join("[A-Z0-9_]+".join(map(re.escape, glob.strip("*").split("*"))) for glob in globs)))
    for family, globs in PATTERNS
)
_ANY_FAILED = tuple((family, (*globs, "*_FAILED") if family == "CONTENT" else globs) for family, globs in PATTERNS)


limit_before_cancel = classifier(patterns=_LIMIT_BEFORE_CANCEL)
"""LIMIT outranks CANCEL."""

without_exact = classifier(exact={})
"""No code outranks the patterns."""

any_failed = classifier(patterns=_ANY_FAILED)
"""A bare `_FAILED` is a verdict on the content."""


def unanchored(code: str) -> str | None:
    """A code of no family gets that of any pattern that stands somewhere in it."""
    return classify(code) or next((family for family, pattern in _ANYWHERE if pattern.search(code)), None)
