"""CLAIM-13, tested directly: a claim, then another transaction of the same worker, committed or rolled back.

The driver reads every handle again after every command; these stories see to it that there is something to find.
"""

from __future__ import annotations

from fencepost.model import commands as c
from fencepost.model.queues import QueueSpec
from fencepost.model.trace import Trace, trace_of

AFTER_COMMIT = trace_of(c.Enqueue(), c.Claim(1), c.Renew(c.HandleRef(2)))
AFTER_END = trace_of(c.Enqueue(), c.Claim(1), c.Complete(c.HandleRef(2)))
"""Where nothing is renewed."""
AFTER_ROLLBACK = trace_of(c.Enqueue(), c.Enqueue(), c.Claim(1), c.Claim(1, hook=c.Hook("raise")))


def direct_stories(spec: QueueSpec) -> tuple[Trace, ...]:
    """The shortest stories after which a handle may have gone bad, of those that this queue can be asked for."""
    commit = AFTER_COMMIT if "renew" in spec.verbs else AFTER_END
    return (commit, AFTER_ROLLBACK) if spec.hooks else (commit,)
