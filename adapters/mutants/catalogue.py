"""The catalogue: every mutant, and every candidate that was proved to break nothing. Data only."""

from __future__ import annotations

from .claims import CLAIM_MUTANTS
from .ends import CANCEL_MUTANTS, END_MUTANTS
from .equivalent import EQUIVALENT
from .failures import FAILURE_MUTANTS
from .fences import FENCE_MUTANTS, LEASE_MUTANTS
from .mutant import Mutant
from .races import RACES
from .sweeps import SWEEP_MUTANTS

__all__ = ["EQUIVALENT", "MUTANTS"]

MUTANTS: tuple[Mutant, ...] = (
    *CLAIM_MUTANTS,
    *LEASE_MUTANTS,
    *FENCE_MUTANTS,
    *END_MUTANTS,
    *CANCEL_MUTANTS,
    *SWEEP_MUTANTS,
    *FAILURE_MUTANTS,
    *RACES,
)
"""In the order of the contract's chapters; races last."""
