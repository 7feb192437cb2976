"""Which clause applies to a queue as an adapter can drive it: what the queue declares, and then what engines need.

Plain data and no engine: the catalogue of what there is reads it too.
"""

from __future__ import annotations

from collections.abc import Iterator

from fencepost.adapters.contract import Capabilities
from fencepost.model.applicability import Cell, cell
from fencepost.model.clauses import CLAUSES
from fencepost.model.queues import QueueSpec

_NEEDS = {
    "CLAIM-09": "probe", "CLAIM-12": "hooks", "REC-06": "counts_statements", "REC-08": "hooks", "REC-12": "hooks",
}  # fmt: skip
_LACKING = {
    "gate": Cell("not applicable", "the adapter declares no gate: its statements cannot be scheduled", gap=True),
    "counts_statements": Cell("not applicable", "the adapter does not count statements", gap=True),
}


def not_looked_at(capabilities: Capabilities) -> Iterator[str]:
    """What is not looked at of clauses that apply, since the adapter declares a clock of the queue's own."""
    clock = capabilities.clock
    if clock in ("shifted", "real"):
        yield f"the very second at which a lease, back-off or deadline ends, where clock is {clock!r}: only beside it"
    if clock != "argument" and capabilities.gate != "none":
        yield f"races in which time passes between two statements, where clock is {clock!r}"


def needed_capability(clause: str) -> str | None:
    """What an adapter must declare that it can do, or this clause does not apply to it, if there is anything."""
    return "gate" if CLAUSES[clause].engine == "interleaved" else _NEEDS.get(clause)


def driven_cell(clause: str, queue: QueueSpec, capabilities: Capabilities) -> Cell:
    """Whether a clause applies to this queue where the adapter is capable of this. What the queue itself lacks is told
    before what the adapter does.
    """
    own = cell(clause, capabilities.of(queue))
    if own.status != "applies":
        return own
    needed = needed_capability(clause)
    if needed in _LACKING and getattr(capabilities, needed) in (False, "none"):
        return _LACKING[needed]
    return own
