"""One job's part of a command, and what every judge of one needs: ended and re-queued records, and spellings."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from . import commands as c
from . import outcomes as o
from .queues import OLD_SPELLINGS, PENDING, RUNNING
from .world import Check, Checks, Record, Violation

Answer: TypeAlias = "o.Outcome | o.RecoveredRow | c.Handle"
Judged: TypeAlias = "tuple[Record, Checks] | Violation"
Whole: TypeAlias = "Checks | Violation"
"""What a whole claim or sweep shows beside its parts."""


class Part(NamedTuple):
    """What a command did to one job: a claim's handle, a sweep's row, or the whole outcome of a one-job command."""

    job: int
    command: c.Command
    answer: Answer


def verb_of(command: c.Command) -> str:
    """The word that reasons use: the three kinds of sweep are one."""
    return "sweep" if type(command) in c.SWEEPS else command.verb


def row_reason(command: c.Command, status: str) -> str:
    """The reason of what a look at a row tests: what was done, and what the job became."""
    return f"{verb_of(command)}: {status} row"


def spelling(
    record: Record, command: c.Command, standard: str, stored: str, check: Check, why: str
) -> Violation | None:
    """None if `stored` is how the queue spells `standard`; else TERM-04, TERM-01 or the rule that chose the status."""
    spec = record.spec
    if stored == spec.spell(standard):
        return None
    reason = row_reason(command, standard)
    if stored not in spec.terminal and OLD_SPELLINGS.get(stored) == standard:
        return Violation("TERM-04", reason, f"the queue spells it {spec.spell(standard)!r}, not {stored!r}")
    if stored not in spec.terminal and stored not in (PENDING, RUNNING):
        return Violation("TERM-01", reason, f"{stored!r} is no status of this queue")
    return Violation(check.clause, check.reason, f"{why} {spec.spell(standard)!r}, got {stored!r}")


def terminal(record: Record, status: str, token: c.Token, cancel: int | None) -> Record:
    """The record ended: no owner, no lease."""
    spec, _, _, _, _, _, attempts, budget, _, _, issued, deadline, artifact, created = record
    return Record(spec, status, 0, token, None, 0, attempts, budget, None, cancel, issued, deadline, artifact, created)


def requeued(record: Record, token: c.Token, attempts: int, due: int | None) -> Record:
    """The record pending again."""
    spec, _, _, _, _, _, _, budget, _, cancel, issued, deadline, artifact, created = record
    return Record(spec, PENDING, 0, token, None, 0, attempts, budget, due, cancel, issued, deadline, artifact, created)
