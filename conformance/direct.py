"""CLAIM-13, tested directly: what a claim returned stays usable after its commit and after a rollback elsewhere.

No trace shows this, because the driver reads a handle the moment it gets one. Here the handle is read late.
"""

from __future__ import annotations

from fencepost.adapters.contract import Adapter
from fencepost.model import commands as c
from fencepost.model import outcomes as o
from fencepost.model.world import Check, Violation

_CHECK = Check("CLAIM-13", "claim: handles are plain and lasting", True)
_ENDS: tuple[c.End, ...] = ("commit", "rollback", "raise")


async def lasting_handles(adapter: Adapter) -> list[Check] | Violation:
    """Claim, end other transactions of the same worker in each way, then read the handle.

    Returns a check per way (none if nothing was claimed), or the violation.
    """
    checks = []
    for end in _ENDS:
        await adapter.reset()
        control, worker = adapter.actor(0), adapter.actor(1)
        await control.perform(c.Enqueue(), 0)
        other = await control.perform(c.Enqueue(), 0)
        claimed = await worker.perform(c.Claim(1), 0)
        if not isinstance(other, o.Enqueued) or not isinstance(claimed, o.Claimed) or not claimed.handles:
            return []  # there is no handle to read; what else is wrong with such a claim, scripts will tell
        handle = claimed.handles[0]
        await worker.perform(c.Atomically((c.RequestCancel(other.job),), end), 1)
        try:
            plain = all(part is None or type(part) in (int, str) for part in (handle.job, handle.token))
        except Exception as error:  # whatever a dead row raises when it is read
            return Violation(_CHECK.clause, _CHECK.reason, f"reading the handle after a {end} raised {error!r}")
        if not plain:
            return Violation(_CHECK.clause, _CHECK.reason, f"the handle carries {handle.job!r}, no plain int or string")
        checks.append(_CHECK)
    return checks
