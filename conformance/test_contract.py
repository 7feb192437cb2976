"""The contract: one item for each clause and queue that are built, all of them judged by one run."""

from __future__ import annotations

from fencepost.conformance.pytest_contract import contract_items as fencepost_items

__all__ = ["fencepost_items"]
