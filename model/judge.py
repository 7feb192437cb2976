"""Judging one job's part of a command: the unit of the sequential fold and of the linearizability search.

Where the contract leaves freedom the judge follows what was observed; where it does not, it refuses and names the
first matching clause.
"""

from __future__ import annotations

from collections.abc import Callable

from . import commands as c
from .given import judge_read
from .moves import judge_cancel, judge_claim, judge_sweep
from .part import Answer, Judged, Part
from .world import Record
from .writes import judge_checkpoint, judge_write


def step_part(record: Record, part: Part, now: int) -> Judged:
    """Judge one job's part of a command as one instant at `now` ticks, asked with the asker's clock.

    Returns the record after it and the checks it made, or the violation.
    """
    return _JUDGES[type(part.command)](record, part.command, part.answer, now)


_JUDGES: dict[type, Callable[[Record, c.Command, Answer, int], Judged]] = {
    c.Claim: judge_claim,
    c.Renew: judge_write,
    c.Complete: judge_write,
    c.Fail: judge_write,
    c.Skip: judge_write,
    c.Release: judge_write,
    c.PutArtifact: judge_write,
    c.ReadArtifact: judge_read,
    c.Acknowledge: judge_write,
    c.Checkpoint: judge_checkpoint,
    c.RequestCancel: judge_cancel,
    c.Recover: judge_sweep,
    c.Tick: judge_sweep,
    c.StartUp: judge_sweep,
}
