"""The queues that tests of the model run over: those of the contract, and some of one's own that declare other things
together.
"""

from __future__ import annotations

from dataclasses import replace

from fencepost.model.queues import BACKFILL, BUILD, MUTATION, SCREENSHOT, SKIPPED

CONTRACT = (BUILD, SCREENSHOT, BACKFILL, MUTATION)

DATED = replace(BACKFILL, key="dated", deadline=True)
"""Deadlines, beside cancels and stored codes."""
SHORT = replace(DATED, key="short of time", claim_margin_seconds=60)
"""A job is not begun that has too little time left."""
WINNING = replace(BACKFILL, key="winning", completion_wins=True)
BY_ID = replace(BACKFILL, key="by id", claims_by_id=True, hooks=False)
"""Claims of one job, and leases left behind, without any deadline; and no hooks."""
UNORDERED = replace(BACKFILL, key="unordered", ordered=False)
TIED = replace(BACKFILL, key="tied", monotonic_ids=False)
"""Of jobs that were enqueued at one instant nobody can tell the older."""
BLURRED = replace(BUILD, key="blurred", exact_clock=False)
"""Nobody can meet the very tick of an instant."""
EVERYTHING = replace(
    BUILD, key="everything", fence="generation", cancels=True, stores_code=True, backoff_seconds=5,
    terminal=BACKFILL.terminal | {SKIPPED},
)  # fmt: skip

OF_ITS_OWN = (DATED, SHORT, WINNING, BY_ID, UNORDERED, TIED, BLURRED, EVERYTHING)
EVERY = (*CONTRACT, *OF_ITS_OWN)
