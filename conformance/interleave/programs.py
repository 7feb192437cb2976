"""The races that are certified: what is there before, what then runs at once, and which clauses that is about.

Data only. It knows commands and clauses; never an adapter, a schedule or an outcome.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from fencepost.model import commands as c
from fencepost.model.queues import QueueSpec
from fencepost.model.trace import Trace, TraceStep


@dataclass(frozen=True, slots=True)
class Program:
    """Commands of one actor each that run at once, after a prefix that runs alone.

    `before` are labelled 1, 2, 3 …; the commands of the clock's lane and then of the actors' lanes go on counting.
    """

    clauses: tuple[str, ...]
    """What an exhausted search certifies."""
    before: tuple[c.Command, ...]
    lanes: tuple[tuple[c.Command, ...], ...]
    clock: tuple[c.Command, ...] = ()
    fits: Callable[[QueueSpec], bool] = lambda _: True
    """Which queues it is a race of, beside that they must serve its verbs."""
    where_locked: tuple[str, ...] = ()
    """What it certifies besides where rows stay locked until commit (`Capabilities.row_locks`)."""
    about: str = ""
    """What tells it from another program of the same pair."""

    @property
    def verbs(self) -> frozenset[str]:
        """The verbs that it asks for, by name; the clock is nobody's."""
        lanes = (self.before, *self.lanes)
        return frozenset(command.verb for lane in lanes for command in lane) - {c.Advance.verb}

    @property
    def pair(self) -> str:
        """Such as `complete ‖ recover claim`: lanes parted by a bar, each one's verbs by spaces."""
        return " ‖ ".join(" ".join(command.verb for command in lane) for lane in self.lanes)

    @property
    def name(self) -> str:
        """The pair, and what it is about; no other program has this name."""
        return f"{self.pair}, {self.about}" if self.about else self.pair

    def trace(self) -> Trace:
        """The commands as a trace with lanes, and without a schedule."""
        labelled = [TraceStep(n, command) for n, command in enumerate(self.before, 1)]
        label, lanes = len(labelled), []
        for lane in (self.clock, *self.lanes):
            lanes.append(tuple(TraceStep(label + n, command) for n, command in enumerate(lane, 1)))
            label += len(lane)
        return Trace(tuple(labelled), tuple(lanes))

    def certified(self, row_locks: bool) -> tuple[str, ...]:
        """The clauses that it is about on such a database."""
        return self.clauses + self.where_locked if row_locks else self.clauses


_JOB, _HANDLE = c.JobRef(1), c.HandleRef(2)
_HELD = (c.Enqueue(), c.Claim(1))
_LAST_INSTANT = (*_HELD, c.AdvanceTo("expiry", _JOB, -1))
_EXPIRED = (*_HELD, c.AdvanceTo("expiry", _JOB, 0))
_EXPIRES = (c.AdvanceTo("expiry", _JOB, 0),)
"""The lease may run out between any two statements of the others."""

_CLAIMS = Program(("CLAIM-06", "CLAIM-11"), (c.Enqueue(),), ((c.Claim(1),), (c.Claim(2),)), about="one job")

PROGRAMS: tuple[Program, ...] = (
    _CLAIMS,
    replace(_CLAIMS, before=(c.Enqueue(), c.Enqueue()), where_locked=("CLAIM-14",), about="two jobs"),
    replace(
        _CLAIMS,
        before=(c.Enqueue(), c.Enqueue()),
        lanes=((c.Claim(1, 2, 2),), (c.Claim(2, 2, 2),)),
        about="two jobs each",
    ),
    replace(
        _CLAIMS,
        before=(c.Enqueue(), c.Enqueue()),
        lanes=((c.Claim(1, 2, 1),), (c.Claim(2, 2, 1),)),
        fits=lambda q: q.bounds[0] > q.bounds[1],
        about="two jobs, both scanned for one",
    ),
    Program(("CANCEL-09",), (c.Enqueue(),), ((c.Claim(1),), (c.RequestCancel(_JOB),))),
    Program(("CANCEL-09",), _HELD, ((c.Complete(_HANDLE),), (c.RequestCancel(_JOB),))),
    Program(("REC-07",), _LAST_INSTANT, ((c.Complete(_HANDLE),), (c.Recover(),)), _EXPIRES),
    Program(  # whoever completes one of two jobs in time takes it from the sweep
        ("REC-08",), (c.Enqueue(), c.Enqueue(), c.Claim(1, 2, 2), c.AdvanceTo("expiry", _JOB, -1)),
        ((c.Complete(c.HandleRef(3)),), (c.Recover(10, c.Hook("ok")),)), _EXPIRES,
        fits=lambda q: q.hooks, about="with a hook",
    ),
    Program(("REC-02", "REC-07"), _LAST_INSTANT, ((c.Renew(_HANDLE),), (c.Recover(),)), _EXPIRES),
    Program(("REC-07",), _EXPIRED, ((c.Recover(),), (c.Recover(),))),
    Program(("REC-07",), _EXPIRED, ((c.RequestCancel(_JOB),), (c.Recover(),))),
    Program(
        ("REC-07",), (c.Enqueue(), c.RequestCancel(_JOB, by_parent=True)), ((c.Recover(),), (c.Recover(),)),
        about="a job called off",
    ),
    Program(
        ("REC-07",), (c.Enqueue(deadline_in=60), c.AdvanceTo("deadline", _JOB, 0)),
        ((c.Recover(),), (c.Recover(),)), fits=lambda q: q.deadline, about="a job overdue",
    ),
    Program(("REC-07",), _HELD, ((c.Complete(_HANDLE),), (c.StartUp(0),))),
    Program(
        ("FENCE-02",), _LAST_INSTANT, ((c.Complete(_HANDLE),), (c.Recover(), c.Claim(2))), _EXPIRES,
        fits=lambda q: not q.has_token, about="another worker",
    ),
    Program(  # the job must be due again at once, so that the claim needs no move of the clock
        ("FENCE-03",), _HELD, ((c.Complete(_HANDLE),), (c.Release(_HANDLE), c.Claim(1))),
        fits=lambda q: q.has_token, about="the same worker",
    ),
    Program(  # whoever comes late finds the job pending once more, its token spent
        ("FENCE-03",), (c.Enqueue(),), ((c.Claim(1),), (c.Claim(2), c.Release(c.HandleRef(3)))),
        fits=lambda q: q.has_token,
    ),
    Program(  # whoever comes late finds the job pending once more, but backing off
        ("CLAIM-03", "CLAIM-11"), (c.Enqueue(),),
        ((c.Claim(1),), (c.Claim(2), c.Fail(c.HandleRef(3), "lease", "LEASE_TIMEOUT_RECOVERED"))),
        fits=lambda q: q.backs_off,
    ),
    Program(
        ("FENCE-04",), _HELD, ((c.PutArtifact(_HANDLE),), (c.Release(_HANDLE), c.Claim(1))), about="the same worker",
    ),
    Program(("FENCE-07",), _LAST_INSTANT, ((c.PutArtifact(_HANDLE),), (c.PutArtifact(_HANDLE),)), _EXPIRES),
    Program(  # the claim takes the job before its deadline, or the sweep ends it
        ("CLAIM-01", "DEAD-01"), (c.Enqueue(deadline_in=60), c.AdvanceTo("deadline", _JOB, -1)),
        ((c.Claim(1),), (c.Recover(),)), (c.AdvanceTo("deadline", _JOB, 0),), fits=lambda q: q.deadline,
    ),
)  # fmt: skip
"""The races of two actors, simplest first in each chapter."""


def programs_of(queue: QueueSpec) -> tuple[Program, ...]:
    """The programs that this queue can be asked to play."""
    return tuple(program for program in PROGRAMS if program.verbs <= queue.verbs and program.fits(queue))
