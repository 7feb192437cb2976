"""Stories told directly, since the model's states do not know what they are about.

Of CLAIM-13: a claim, then another transaction of the same worker, committed or rolled back. The driver reads every
handle again after every command; these stories see to it that there is something to find. And of faults that show
only later, or in several rows: once time has passed, where the model's states say no more than that something is over,
or once somebody looks at what a refusal left behind, of which they say nothing.
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
    """Stories of what shows late or in several rows alone, each with the clause that it is about: a sweep finds a lease
    that is over for longer than it lasted, or its hook raises for a batch of two; a success is reported again later; a
    reader comes after an upload was refused; a job runs again that has an artifact.
    """
    begun = c.Enqueue(), c.Claim(1, *spec.bounds)
    over = c.Advance(spec.lease_seconds + 1)
    held = c.HandleRef(2)
    if "recover" in spec.verbs:
        yield "REC-01", trace_of(*begun, c.Advance(2 * spec.lease_seconds + 1), c.Recover())
        if spec.hooks:
            two = c.Enqueue(), c.Enqueue(), c.Claim(1, 2, 2)
            yield "REC-08", trace_of(*two, over, c.Recover(hook=c.Hook("raise")))
    again = "FENCE-05" if spec.repeats_complete else "TERM-02"
    yield again, trace_of(*begun, c.Complete(held), c.Advance(1), c.Complete(held))
    if {"put_artifact", "read_artifact"} <= spec.verbs:
        yield "FENCE-04", trace_of(*begun, over, c.PutArtifact(held), c.ReadArtifact(c.JobRef(1)))
    if {"put_artifact", "release"} <= spec.verbs:
        yield "CLAIM-05", trace_of(*begun, c.PutArtifact(held), c.Release(held), c.Claim(1, *spec.bounds))
