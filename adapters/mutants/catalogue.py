"""The catalogue: every mutant, and every candidate that was proved to break nothing. Data only."""

from __future__ import annotations

from .artifacts import ARTIFACT_MUTANTS
from .builds import ATTEMPT_MUTANTS, BUILD_END_MUTANTS, CLAIM_ONE_MUTANTS
from .claims import CLAIM_MUTANTS
from .deadlines import DEADLINE_MUTANTS
from .ends import CANCEL_MUTANTS, END_MUTANTS
from .equivalent import EQUIVALENT
from .failures import FAILURE_MUTANTS
from .fences import FENCE_MUTANTS, LEASE_MUTANTS
from .mutant import Mutant
from .races import RACES
from .skips import SKIP_MUTANTS
from .sweeps import SWEEP_MUTANTS

__all__ = ["EQUIVALENT", "MUTANTS"]

MUTANTS: tuple[Mutant, ...] = (
    *CLAIM_MUTANTS,
    *CLAIM_ONE_MUTANTS,
    *LEASE_MUTANTS,
    *FENCE_MUTANTS,
    *ATTEMPT_MUTANTS,
    *ARTIFACT_MUTANTS,
    *END_MUTANTS,
    *SKIP_MUTANTS,
    *BUILD_END_MUTANTS,
    *CANCEL_MUTANTS,
    *SWEEP_MUTANTS,
    *DEADLINE_MUTANTS,
    *FAILURE_MUTANTS,
    *RACES,
)
"""In the order of the contract's chapters; races last."""
