"""The story of a failure in at most 30 lines: what was done, step by step, and where the contract was broken.

It lays out what a trace and a violation say, and judges nothing. `command_phrase` and `outcome_phrase` are the
words it uses, for others who print commands.
"""

from __future__ import annotations

import textwrap
from collections import Counter
from dataclasses import dataclass, replace

from fencepost.model import commands as c
from fencepost.model import outcomes as o
from fencepost.model.clauses import CLAUSES
from fencepost.model.trace import Trace, TraceStep

from .phrases import command_phrase, hook_note, outcome_phrase, worker_of

__all__ = ["MAX_LINES", "MAX_STEPS", "WIDTH", "Failure", "command_phrase", "outcome_phrase", "story"]

WIDTH = 100
"""Columns of a line."""
MAX_LINES = 30
MAX_STEPS = 22
"""A trace with more steps than this is told without its middle."""

_COMMAND_COLUMN = 34
_OUTCOME_COLUMN = 24


@dataclass(frozen=True, slots=True)
class Failure:
    """One counterexample, ready to be told. The jobs in the trace's outcomes are ordinals: 1, 2 … in enqueue order."""

    clause: str
    reason: str
    why: str
    queue: str
    adapter: str
    trace: Trace
    """With the outcomes that were observed; the last step is the one that broke the clause."""
    lease_seconds: int | None = None
    """How long the queue's claims last that ask for no other lease."""
    scenario: str | None = None
    """The path of the scenario file that was written."""
    replay: str | None = None
    """The command that replays it."""
    unreduced: int | None = None
    """How many commands the trace had before it was reduced."""


def story(failure: Failure) -> str:
    """The failure in at most 30 lines of about 100 columns, without a final newline.

    Raises:
        TypeError: the trace holds a command or an outcome that has no phrase.
    """
    failure = replace(failure, why=" ".join(failure.why.split()))
    trace = failure.trace
    blocks = _step_blocks(failure)
    play = _play(trace) if any(trace.lanes) else []
    why = _wrapped(f"✗ {failure.why}", 5) if play or not blocks else []
    title, tail = _title(failure), _tail(failure)
    room = MAX_LINES - len(title) - len(why) - len(tail)
    play = _elided([[line] for line in play], max(room - 8, room - sum(map(len, blocks))), "line")
    room -= len(play)
    steps = _elided(blocks, room if len(blocks) <= MAX_STEPS else min(room, MAX_STEPS), "step")
    return "\n".join(line.rstrip() for line in [*title, *steps, *play, *why, *tail])


def _title(failure: Failure) -> list[str]:
    """The clause with its title, and where it failed at the right: on a line of its own where one is too short."""
    clause = CLAUSES.get(failure.clause)
    left = f"{failure.clause}  {clause.title if clause else ''}".rstrip()
    place = f"adapter {failure.adapter} · queue {failure.queue}"
    room = WIDTH - len(left)
    return [left + f"{place:>{room}}"] if len(place) + 3 <= room else [left, f"{place:>{WIDTH}}"]


def _step_blocks(failure: Failure) -> list[list[str]]:
    """The lines of each step of the prefix; without lanes the last step carries the reason."""
    trace = failure.trace
    notes = _notes(failure)
    said = [(step, command_phrase(step.command, trace), _answer(step, notes)) for step in trace.steps]
    digits = max((len(str(step.label)) for step in trace.steps), default=1)
    left = min(max((len(command) for _, command, _ in said), default=0), _COMMAND_COLUMN)
    right = min(max((len(answer) for _, _, answer in said), default=0), _OUTCOME_COLUMN)
    blocks = []
    for step, command, answer in said:
        line = f"{step.label:>{digits + 2}}  {command:<{left}}" + (f"  → {answer:<{right}}" if answer else "")
        broken = step is trace.steps[-1] and not any(trace.lanes)
        marked = f"{line}  ✗ {failure.why}"
        if broken and len(marked) <= WIDTH:
            blocks.append([marked])
        else:
            lines = _folded(line, WIDTH, digits + 6)
            blocks.append([*lines, *(_wrapped(f"✗ {failure.why}", digits + 4) if broken else [])])
    return blocks


def _answer(step: TraceStep, notes: dict[int, str]) -> str:
    """What the step answered; nothing for a clock that moved, or where no outcome was recorded."""
    if step.outcome is None or isinstance(step.outcome, o.Done):
        return ""
    return notes.get(step.label) or outcome_phrase(step.outcome)


def _notes(failure: Failure) -> dict[int, str]:
    """By label, the phrase of each legal claim of the prefix with what its outcome does not say: attempt and lease.

    Attempts are counted as the contract counts them, from what was answered: one per claim, one less per release. The
    rows were found to say the same, but for the last step's of a story without lanes: that is where it went wrong.
    """
    attempts: Counter[c.JobId] = Counter()
    jobs: dict[c.HandleRef, c.JobId] = {}
    notes: dict[int, str] = {}
    trace = failure.trace
    for step in trace.steps if any(trace.lanes) else trace.steps[:-1]:
        command, outcome = step.command, step.outcome
        for part, answer in _committed(command, outcome):
            if isinstance(part, c.Release) and isinstance(answer, o.Accepted) and answer.status == "pending":
                job = part.handle.job if isinstance(part.handle, c.Handle) else jobs.get(part.handle)
                if job is not None:
                    attempts[job] -= 1
        if not (isinstance(command, c.Claim) and isinstance(outcome, o.Claimed) and outcome.handles):
            continue
        said = []
        for nth, handle in enumerate(outcome.handles):
            attempts[handle.job] += 1
            jobs[c.HandleRef(step.label, nth)] = handle.job
            token = "" if handle.token is None else f", token {handle.token}"
            said.append(f"job {handle.job}, attempt {attempts[handle.job]}{token}")
        lease = command.lease or failure.lease_seconds
        until = f", lease until +{lease} s" if lease else ""
        moved = tuple(handle.job for handle in outcome.handles)
        notes[step.label] = "; ".join(said) + until + hook_note(outcome.hooked, moved)
    return notes


def _committed(command: c.Command, outcome: o.Outcome | None) -> tuple[tuple[c.Command, o.Outcome | None], ...]:
    """The commands that took effect on their own or in the caller's committed transaction, with their outcomes."""
    if not isinstance(command, c.Atomically):
        return ((command, outcome),)
    if command.end != "commit" or not isinstance(outcome, o.Atomic):
        return ()
    return tuple(zip(command.commands, outcome.outcomes, strict=False))


def _play(trace: Trace) -> list[str]:
    """The lanes side by side, and the turns that the schedule gave them."""
    shown = [number for number, lane in enumerate(trace.lanes) if lane]
    names = {number: _lane_name(number, trace) for number in shown}
    width = (WIDTH - 5 - 3 * (len(shown) - 1)) // max(len(shown), 1)
    cells = {number: [line for step in trace.lanes[number] for line in _cell(step, trace, width)] for number in shown}
    lines = ["     at once" + (f", schedule {_cut(trace.schedule)}" if trace.schedule else "") + ":"]
    lines.append("     " + " | ".join(f"{names[number]:<{width}}" for number in shown))
    for row in range(max(map(len, cells.values()), default=0)):
        line = (cells[number][row] if row < len(cells[number]) else "" for number in shown)
        lines.append("     " + " | ".join(f"{text:<{width}}" for text in line))
    if trace.schedule:
        left = max(map(len, names.values()), default=0)
        for number in shown:
            turns = "".join("■" if digit == str(number) else "·" for digit in trace.schedule)
            lines.append(f"     {names[number]:<{left}}  {_cut(turns)}")
    return lines


def _cut(turns: str) -> str:
    """What fits on a line; the scenario file has the whole schedule."""
    return turns if len(turns) <= 76 else turns[:75] + "…"


def _cell(step: TraceStep, trace: Trace, width: int) -> list[str]:
    answer = _answer(step, {})
    text = f"{step.label}  {command_phrase(step.command, trace)}" + (f" → {answer}" if answer else "")
    return _folded(text, width, 3)


def _lane_name(number: int, trace: Trace) -> str:
    """The lane's digit in the schedule, and the worker that acts in it."""
    if number == 0:
        return "0 clock"
    for step in trace.lanes[number]:
        if isinstance(step.command, c.Claim | c.Tick | c.Crash):
            return f"{number} w{step.command.worker}"
        if isinstance(step.command, c.HandleCommand):
            worker = worker_of(step.command.handle, trace)
            return f"{number} w{worker}" if worker is not None else str(number)
    return f"{number} control"


def _tail(failure: Failure) -> list[str]:
    lines = []
    if failure.reason and failure.reason not in failure.why:
        lines += _wrapped(f"check: {failure.reason}", 2)
    if failure.unreduced is not None and failure.unreduced > failure.trace.length:
        lines.append(f"  reduced from {failure.unreduced} commands to {failure.trace.length}")
    if failure.scenario and failure.scenario not in (failure.replay or ""):
        lines.append(f"  scenario: {failure.scenario}")
    if failure.replay:
        lines.append(f"  replay: {failure.replay}")
    return lines


def _wrapped(text: str, indent: int) -> list[str]:
    return _folded(" " * indent + text, WIDTH, indent + 2, most=3)


def _folded(text: str, width: int, indent: int, most: int = 4) -> list[str]:
    """At most so many lines, the later ones indented, so that one long text leaves room for the others."""
    return textwrap.wrap(text, width, subsequent_indent=" " * indent, max_lines=most, placeholder=" …")


def _elided(blocks: list[list[str]], room: int, noun: str) -> list[str]:
    """All lines if there is room for them; otherwise the first and the last blocks around "… n steps …"."""
    lines = [line for block in blocks for line in block]
    if len(lines) <= room:
        return lines
    head: list[str] = []
    tail: list[str] = []
    first, last = 0, len(blocks)
    while first < last:
        from_tail = len(tail) <= len(head)
        block = blocks[last - 1] if from_tail else blocks[first]
        if tail and len(head) + len(tail) + len(block) + 1 > room:
            break
        if from_tail:
            tail, last = [*block, *tail], last - 1
        else:
            head, first = [*head, *block], first + 1
    hidden = last - first
    return [*head, f"     … {hidden} {noun}{'s' * (hidden != 1)} …", *tail]
