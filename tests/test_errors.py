"""ERR-01: every reviewed code has the family that the table names, and precedence and anchors are what decide."""

from __future__ import annotations

import pytest
from fencepost.model.commands import Fail, HandleRef
from fencepost.model.errors import EXACT, EXAMPLES, FAMILIES, PATTERNS, WHAT, Patterns, classifier, classify
from fencepost.model.queues import QUEUES


def changed(exact: dict[str, str] = EXACT, patterns: Patterns = PATTERNS) -> set[str]:
    """The examples that altered tables classify otherwise."""
    altered = classifier(exact, patterns)
    return {code for code, family in EXAMPLES if altered(code) != family}


def swapped(first: str, second: str) -> Patterns:
    """The table with two families' ranks exchanged."""
    order = [{first: second, second: first}.get(family, family) for family in FAMILIES]
    return tuple((family, dict(PATTERNS)[family]) for family in order)


@pytest.mark.parametrize(("code", "family"), EXAMPLES, ids=[repr(code) for code, _ in EXAMPLES])
def test_every_example_has_the_family_of_the_table(code: str, family: str | None) -> None:
    assert classify(code) == family


def test_the_table_is_reviewed_whole() -> None:
    assert FAMILIES == ("FENCE", "CANCEL", "LIMIT", "LEASE", "INFRA", "CONTENT")
    assert len(EXAMPLES) == len(dict(EXAMPLES)) == 92
    assert {family for _, family in EXAMPLES} == {*FAMILIES, None}


def test_the_exact_entry_outranks_every_pattern() -> None:
    assert changed(exact={}) == {"RUNTIME_VITE_QUEUE_FULL"}
    assert classifier({})("RUNTIME_VITE_QUEUE_FULL") == "LIMIT"


@pytest.mark.parametrize(
    ("first", "second", "code"),
    [
        ("FENCE", "CANCEL", "AI_LEASE_OWNER_RUN_CANCELLED"),
        ("CANCEL", "LIMIT", "RENDER_ADMISSION_CANCELLED"),
        ("LIMIT", "LEASE", "LEASE_TIMEOUT_MAX_ATTEMPTS"),
        ("LEASE", "INFRA", "RENDER_INTERRUPTED"),
        ("INFRA", "CONTENT", "RENDER_VALIDATION_FAILED"),
        ("FENCE", "LEASE", "AI_PAGE_MUTATION_LEASE_LOST"),
        ("CANCEL", "INFRA", "RENDER_CANCELLED"),
        ("LIMIT", "INFRA", "RENDER_QUEUE_FULL"),
    ],
)
def test_precedence_is_what_decides(first: str, second: str, code: str) -> None:
    assert classify(code) == first
    assert classifier(patterns=swapped(first, second))(code) == second


ALL_PATTERNS = [(family, pattern) for family, patterns in PATTERNS for pattern in patterns]
ANCHORED = [(f, p) for f, p in ALL_PATTERNS if (p[0], p[-1]) != ("*", "*") and ("_FAILED" not in p or "BUILD" in p)]


@pytest.mark.parametrize(("family", "pattern"), ALL_PATTERNS)
def test_no_pattern_can_be_dropped_unnoticed(family: str, pattern: str) -> None:
    without = tuple((f, tuple(p for p in patterns if (f, p) != (family, pattern))) for f, patterns in PATTERNS)
    assert changed(patterns=without)


@pytest.mark.parametrize(("family", "pattern"), ANCHORED)
def test_no_anchor_can_be_lifted_unnoticed(family: str, pattern: str) -> None:
    for loose in ("*" + pattern, pattern + "*"):
        if "**" not in loose:
            lifted = tuple((f, (*patterns, loose) if f == family else patterns) for f, patterns in PATTERNS)
            assert changed(patterns=lifted), loose


def test_a_bare_failed_is_content_only_for_content_results() -> None:
    lax = tuple((f, (*globs, "*_FAILED") if f == "CONTENT" else globs) for f, globs in PATTERNS)
    assert changed(patterns=lax) == {"PROVIDER_UPLOAD_FAILED", "DISPATCH_FAILED", "PAGE_REBUILD_FAILED"}


def test_every_family_but_fence_says_what_happened() -> None:
    assert set(WHAT) == {*FAMILIES} - {"FENCE"}
    assert all(what == family.lower() for family, what in WHAT.items())
    default = Fail(HandleRef(1))
    assert WHAT[str(classify(default.code))] == default.what


def test_the_codes_that_queues_retry_are_infra() -> None:
    assert {classify(code) for spec in QUEUES.values() for code in spec.retryable_codes} == {"INFRA"}
