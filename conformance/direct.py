"""Stories told directly, since the model's states do not know what they are about.

Of CLAIM-13: a claim, then another transaction of the same worker, committed or rolled back. The driver reads every
handle again after every command; these stories see to it that there is something to find. And of faults that show only
once time has passed, where the model's states say no more than that something is over.
"""

from __future__ import annotations

from collections.abc import Iterator

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


def late_stories(spec: QueueSpec) -> Iterator[tuple[str, Trace]]:
    """Stories in which time passes after an end, each with the clause that it is about: a sweep finds a lease that is
    over for longer than it lasted; a success is reported again later.
    """
    begun = c.Enqueue(), c.Claim(1, *spec.bounds)
    if "recover" in spec.verbs:
        yield "REC-01", trace_of(*begun, c.Advance(2 * spec.lease_seconds + 1), c.Recover())
    done = c.Complete(c.HandleRef(2))
    yield "FENCE-05" if spec.repeats_complete else "TERM-02", trace_of(*begun, done, c.Advance(1), done)
