"""The catalogue: every mutant, and every candidate that was proved to break nothing. Data only."""

from __future__ import annotations

from .claims import CLAIM_MUTANTS
from .mutant import Mutant
from .races import RACES
from .sweeps import SWEEP_MUTANTS
from .writes import WRITE_MUTANTS

MUTANTS: tuple[Mutant, ...] = (*CLAIM_MUTANTS, *WRITE_MUTANTS, *SWEEP_MUTANTS, *RACES)
"""In the order of the contract's chapters; races last."""
