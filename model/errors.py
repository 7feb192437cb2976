"""The six families of error codes (R§4, ERR-01) as data, and what reads them.

Codes decide by their family alone. This module must never know of error messages, of queues or of retries:
whether an INFRA code is retried is the queue's declaration.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import TypeAlias

from .commands import What

Patterns: TypeAlias = tuple[tuple[str, tuple[str, ...]], ...]

_CONTENT_RESULTS = (
    "VALIDATION_FAILED", "CONTENT_FAILED", "*_CONTENT_FAILED", "SOURCE_FAILED", "*_SOURCE_FAILED",
    "PARSE_FAILED", "*_PARSE_FAILED", "COMPILE_FAILED", "*_COMPILE_FAILED", "BUILD_FAILED", "*_BUILD_FAILED",
)  # fmt: skip
"""A bare `_FAILED` is CONTENT only behind a verdict on the source or its content (ours: R§4 gives no list).

Anything else that failed (an upload, a dispatch) may be a broken downstream, which R§4 forbids to record as CONTENT.
"""

EXACT: dict[str, str] = {"RUNTIME_VITE_QUEUE_FULL": "INFRA"}
"""Whole codes that outrank every pattern: R§4 lists this one as INFRA although it ends like a LIMIT code."""

PATTERNS: Patterns = (
    ("FENCE", ("*_LEASE_LOST", "*_LEASE_OWNER_*", "*_STATE_INCONSISTENT")),
    # R§4 also lists `_RUN_CANCELLED`, which `*_CANCELLED` contains.
    ("CANCEL", ("*_CANCELLED", "*_RUN_NOT_ACTIVE")),
    ("LIMIT", ("*_QUEUE_FULL", "*_MAX_ATTEMPTS", "*_ADMISSION_*")),
    ("LEASE", ("LEASE_TIMEOUT_*", "*_LEASE_*", "*_INTERRUPTED")),
    ("INFRA", ("RENDER_*", "RUNTIME_*", "*_UNAVAILABLE", "*_TIMEOUT")),
    ("CONTENT", ("*_VALIDATION_*", "*_STALE", *_CONTENT_RESULTS)),
)
"""Families in order of precedence, each with its patterns.

A pattern is matched against the whole code. `*` stands for one or more upper-case letters, digits and underscores,
so a code that is nothing but the pattern's own words (`_TIMEOUT`, `LEASE_LOST`) has no family.
"""

FAMILIES: tuple[str, ...] = tuple(family for family, _ in PATTERNS)
"""The families' names, in order of precedence."""

WHAT: dict[str, What] = {"CANCEL": "cancel", "LIMIT": "limit", "LEASE": "lease", "INFRA": "infra", "CONTENT": "content"}
"""What must have happened for a code of this family to be recorded (ERR-03). FENCE is never recorded (ERR-02)."""


LISTED = frozenset({"INFRA", "LIMIT"})
"""Families of which a queue may retry codes that it lists (ERR-02)."""


def classifier(exact: Mapping[str, str] = EXACT, patterns: Patterns = PATTERNS) -> Callable[[str], str | None]:
    """A function from an error code to its family, by these tables (None for a code of no family)."""
    matchers = [(family, re.compile("|".join(map(_expression, globs)))) for family, globs in patterns]

    # Codes come back again and again, one per failure that is judged.
    @lru_cache(maxsize=4096)
    def family_of(code: str) -> str | None:
        found = (family for family, matcher in matchers if matcher.fullmatch(code))
        return exact[code] if code in exact else next(found, None)

    return family_of


def _expression(glob: str) -> str:
    return "[A-Z0-9_]+".join(map(re.escape, glob.split("*")))


classify = classifier()
"""The family of an error code, or None for a code of no family (ERR-01, R§4)."""

EXAMPLES: tuple[tuple[str, str | None], ...] = (
    # Every example of R§4, in its order.
    ("LEASE_TIMEOUT_RECOVERED", "LEASE"),
    ("AI_PAGE_MUTATION_INTERRUPTED", "LEASE"),
    ("PAGE_SCREENSHOT_JOB_INTERRUPTED", "LEASE"),
    ("RENDER_SERVICE_UNAVAILABLE", "INFRA"),
    ("RENDER_DEADLINE_EXCEEDED", "INFRA"),
    ("RUNTIME_VITE_QUEUE_FULL", "INFRA"),
    ("PAGE_VALIDATION_FAILED", "CONTENT"),
    ("PAGE_SCREENSHOT_JOB_STALE", "CONTENT"),
    ("AI_RUN_CANCELLED", "CANCEL"),
    ("RENDER_CANCELLED", "CANCEL"),
    ("AI_RUN_NOT_ACTIVE", "CANCEL"),
    ("AI_PAGE_MUTATION_LEASE_LOST", "FENCE"),
    ("BUILD_LEASE_OWNER_MISMATCH", "FENCE"),
    ("AI_EXTERNAL_STATE_INCONSISTENT", "FENCE"),
    ("RENDER_QUEUE_FULL", "LIMIT"),
    ("LEASE_TIMEOUT_MAX_ATTEMPTS", "LIMIT"),
    # Each pattern that the examples leave out.
    ("PAGE_LEASE_EXPIRED", "LEASE"),
    ("RUNTIME_SANDBOX_CRASHED", "INFRA"),
    ("STORAGE_UNAVAILABLE", "INFRA"),
    ("PROVIDER_TIMEOUT", "INFRA"),
    ("PAGE_VALIDATION_REJECTED", "CONTENT"),
    ("API_MUTATION_MAX_ATTEMPTS", "LIMIT"),
    ("BUILD_ADMISSION_REFUSED", "LIMIT"),
    ("AI_PAGE_RUN_NOT_ACTIVE", "CANCEL"),
    # An exact entry is the whole code.
    ("RUNTIME_POOL_QUEUE_FULL", "LIMIT"),
    ("MY_RUNTIME_VITE_QUEUE_FULL", "LIMIT"),
    ("RUNTIME_VITE_QUEUE_FULLER", "INFRA"),
    # Precedence, each pair of families that a code can claim at once.
    ("AI_LEASE_OWNER_RUN_CANCELLED", "FENCE"),
    ("BUILD_LEASE_OWNER_MAX_ATTEMPTS", "FENCE"),
    ("LEASE_TIMEOUT_LEASE_LOST", "FENCE"),
    ("RENDER_LEASE_LOST", "FENCE"),
    ("PAGE_VALIDATION_LEASE_LOST", "FENCE"),
    ("RENDER_ADMISSION_CANCELLED", "CANCEL"),
    ("LEASE_TIMEOUT_CANCELLED", "CANCEL"),
    ("RENDER_RUN_NOT_ACTIVE", "CANCEL"),
    ("PAGE_VALIDATION_CANCELLED", "CANCEL"),
    ("PAGE_LEASE_QUEUE_FULL", "LIMIT"),
    ("RENDER_ADMISSION_TIMEOUT", "LIMIT"),
    ("PAGE_VALIDATION_QUEUE_FULL", "LIMIT"),
    ("RENDER_INTERRUPTED", "LEASE"),
    ("PAGE_LEASE_TIMEOUT", "LEASE"),
    ("PAGE_LEASE_STALE", "LEASE"),
    ("RENDER_VALIDATION_FAILED", "INFRA"),
    ("PAGE_VALIDATION_TIMEOUT", "INFRA"),
    # A bare `_FAILED` is a content result or nothing.
    ("VALIDATION_FAILED", "CONTENT"),
    ("CONTENT_FAILED", "CONTENT"),
    ("SOURCE_FAILED", "CONTENT"),
    ("PARSE_FAILED", "CONTENT"),
    ("COMPILE_FAILED", "CONTENT"),
    ("BUILD_FAILED", "CONTENT"),
    ("PROJECT_BUILD_FAILED", "CONTENT"),
    ("PAGE_SOURCE_PARSE_FAILED", "CONTENT"),
    ("PAGE_SOURCE_FAILED", "CONTENT"),
    ("AI_CONTENT_FAILED", "CONTENT"),
    ("COMPONENT_COMPILE_FAILED", "CONTENT"),
    ("RENDER_FAILED", "INFRA"),
    ("PROVIDER_UPLOAD_FAILED", None),
    ("DISPATCH_FAILED", None),
    ("PAGE_REBUILD_FAILED", None),
    # Anchors: a prefix only begins a code, a suffix only ends one, an infix has words on both sides.
    ("PAGE_RENDER_CRASHED", None),
    ("PRERENDER_CRASHED", None),
    ("SUBRUNTIME_CRASHED", None),
    ("MY_LEASE_TIMEOUT_RECOVERED", "LEASE"),
    ("RELEASE_TIMEOUT_RECOVERED", None),
    ("PAGE_RELEASE_REFUSED", None),
    ("PAGE_LEASE_LOST_TWICE", "LEASE"),
    ("PAGE_STATE_INCONSISTENT_AGAIN", None),
    ("PAGE_CANCELLED_LATE", None),
    ("PAGE_RUN_NOT_ACTIVE_YET", None),
    ("PAGE_QUEUE_FULLER", None),
    ("PAGE_MAX_ATTEMPTS_RAISED", None),
    ("PAGE_INTERRUPTED_TWICE", None),
    ("STORAGE_UNAVAILABLE_AGAIN", None),
    ("PROVIDER_TIMEOUT_RETRY", None),
    ("PAGE_STALENESS", None),
    ("BUILD_FAILED_TWICE", None),
    ("PROJECT_BUILD_FAILED_TWICE", None),
    ("LEASE_LOST", None),
    ("LEASE_OWNER_MISMATCH", None),
    ("VALIDATION_REJECTED", None),
    ("ADMISSION_REFUSED", None),
    ("QUEUE_FULL", None),
    ("_TIMEOUT", None),
    ("RENDER_", None),
    # No family: a run's own word (R§6.3), the other spelling, free text.
    ("AI_RUN_PROCESS_STOPPED", None),
    ("API_MUTATION_CANCELED", None),
    ("SOMETHING_WENT_WRONG", None),
    ("render_service_unavailable", None),
    ("Render_Service_Unavailable", None),
    ("RENDER SERVICE TIMEOUT", None),
    ("RENDER_SERVICE_UNAVAILABLE\n", None),
    ("", None),
)
"""The reviewed table of ERR-01: a code, and its family or None."""
