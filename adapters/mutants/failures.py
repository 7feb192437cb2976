"""Faults of failures: retries and their budget, error codes and their families (ATT-01, ATT-02, ERR-01…03).

This module must never know of claims or sweeps.
"""

from __future__ import annotations

from fencepost.adapters.reference import predicates as p

from . import codes
from . import wrong as w
from .mutant import Mutant, add, but, drop, put, shift

FAILURE_MUTANTS: tuple[Mutant, ...] = (
    Mutant(
        "retry-counts",
        "ATT-01",
        "A retried failure counts a second attempt.",
        add("writes.retry.requeue", p.count_attempt),
    ),
    Mutant(
        "retry-uncounts",
        "ATT-01",
        "A retried failure gives its attempt back, so a job may fail for ever.",
        add("writes.retry.requeue", p.uncount_attempt),
    ),
    Mutant(
        "retry-at-once",
        "ATT-02",
        "A retry is due at once: the back-off was multiplied by zero (console PR#3727).",
        put("writes.retry.requeue", "next_attempt_at", w.retry_at_once),
        "mutation",
    ),
    Mutant(
        "retry-without-due",
        "ATT-02",
        "A retry forgets to write when it is due.",
        drop("writes.retry.requeue", "next_attempt_at"),
        "mutation",
    ),
    Mutant(
        "retry-without-end",
        "ATT-02",
        "A retryable failure is retried whatever the budget says.",
        drop("writes.retry.requeue.when", "budget_left"),
    ),
    Mutant(
        "retry-once-too-often",
        "ATT-02",
        "A used-up budget still buys one more retry.",
        shift("writes.retry.requeue.when", "budget_left"),
    ),
    Mutant(
        "retry-budget-hard-coded",
        "ATT-02",
        "A retry asks for three attempts, not for the row's own maximum.",
        put("writes.retry.requeue.when", "budget_left", w.three_attempts),
    ),
    Mutant(
        "retry-keeps-owner",
        "ATT-02",
        "A retried job still names its former owner.",
        drop("writes.retry.requeue", "worker_id"),
    ),
    Mutant(
        "infra-never-retried",
        "ATT-02",
        "An infrastructure failure that is listed as retryable ends the job.",
        but("policy.INFRA", "fail"),
    ),
    Mutant(
        "codes-precedence",
        "ERR-01",
        "LIMIT patterns are read before CANCEL patterns.",
        but("classify", codes.limit_before_cancel),
    ),
    Mutant("codes-unanchored", "ERR-01", "Patterns match anywhere in a code.", but("classify", codes.unanchored)),
    Mutant(
        "codes-without-exact",
        "ERR-01",
        "The exact entry is missing, so a full Vite queue is a limit.",
        but("classify", codes.without_exact),
    ),
    Mutant(
        "codes-any-failed",
        "ERR-01",
        "Every code that ends in `_FAILED` counts as CONTENT.",
        but("classify", codes.any_failed),
    ),
    Mutant(
        "fail-takes-any-code", "ERR-01", "A code of no family is recorded as a failure.", but("unknown_code", "fail")
    ),
    Mutant("content-retried", "ERR-02", "A content failure is retried.", but("policy.CONTENT", "retry")),
    Mutant(
        "infra-always-retried",
        "ERR-02",
        "Every infrastructure failure is retried, listed or not (ArcReel PR#793).",
        but("policy.INFRA", "retry"),
    ),
    Mutant("limit-retried", "ERR-02", "A limit failure is retried.", but("policy.LIMIT", "retry")),
    Mutant(
        "cancel-code-fails",
        "ERR-02",
        "A failure with a CANCEL code ends failed, not cancelled.",
        but("policy.CANCEL", "fail"),
    ),
    Mutant(
        "fence-code-recorded",
        "ERR-02",
        "The holder records a FENCE code as its own failure.",
        but("policy.FENCE", "fail"),
    ),
    Mutant(
        "infra-as-content", "ERR-03", "A code of another family than what happened is taken.", but("match_what", False)
    ),
    Mutant(
        "fail-records-content",
        "ERR-03",
        "Every failure is recorded as a failed validation.",
        put("writes.fail.failed", "error_code", w.code("ERR-03", "PAGE_VALIDATION_FAILED")),
    ),
    Mutant(
        "retry-records-content",
        "ERR-03",
        "An infrastructure failure that is retried is recorded as a failed validation.",
        put("writes.retry.requeue", "error_code", w.code("ERR-03", "PAGE_VALIDATION_FAILED")),
    ),
    Mutant(
        "fail-cancelled-records-content",
        "ERR-03",
        "Whatever fails after a cancel request is recorded as a failed validation.",
        add("writes.fail.cancelled", w.code("ERR-03", "PAGE_VALIDATION_FAILED")),
    ),
)
