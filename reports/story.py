"""The story of a failure in at most 30 lines: what was done, step by step, and where the contract was broken.

It lays out what a trace and a violation say, and judges nothing. `command_phrase` and `outcome_phrase` are the
words it uses, for others who print commands.
"""

from __future__ import annotations

import textwrap
from dataclasses import dataclass, replace

from fencepost.model import commands as c
from fencepost.model import outcomes as o
from fencepost.model.clauses import CLAUSES
from fencepost.model.paths import Binding, Dangling
from fencepost.model.queues import QueueSpec
from fencepost.model.step import step as judged
from fencepost.model.trace import Trace, TraceStep
from fencepost.model.view import cut_short
from fencepost.model.world import Context, Step, World

from .phrases import attempt_name, command_phrase, hook_note, outcome_phrase, with_attempts_named, worker_of

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
    queue: QueueSpec
    adapter: str
    trace: Trace
    """With the outcomes that were observed; the last step is the one that broke the clause."""
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
    trace = failure.trace
    failure = replace(failure, why=" ".join(with_attempts_named(failure.why, trace).split()))
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
    place = f"adapter {failure.adapter} · queue {failure.queue.key}"
    room = WIDTH - len(left)
    return [left + f"{place:>{room}}"] if len(place) + 3 <= room else [left, f"{place:>{WIDTH}}"]


def _step_blocks(failure: Failure) -> list[list[str]]:
    """The lines of each step of the prefix; without lanes the last step carries the reason."""
    trace = failure.trace
    notes = _notes(failure)
    said = [(step, command_phrase(step.command, trace), _answer(step, trace, notes)) for step in trace.steps]
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


def _answer(step: TraceStep, trace: Trace, notes: dict[int, str]) -> str:
    """What the step answered; nothing for a clock that moved, or where no outcome was recorded."""
    if step.outcome is None or isinstance(step.outcome, o.Done):
        return ""
    return notes.get(step.label) or outcome_phrase(step.outcome, trace)


def _notes(failure: Failure) -> dict[int, str]:
    """By label, the phrase of each legal claim of the prefix with what its outcome does not say.

    The model follows what was answered, and the rows were found to say the same; but for the last step's of a story
    without lanes: that is where it went wrong.
    """
    world, binding = World(failure.queue), Binding()
    notes: dict[int, str] = {}
    trace = failure.trace
    for each in trace.steps if any(trace.lanes) else trace.steps[:-1]:
        try:
            command = binding.bind(each.command, world)
        except Dangling:
            continue
        if each.outcome is None:
            break
        after = judged(world, command, each.outcome, Context(world.now))
        if not isinstance(after, Step):
            break
        world = after.world
        binding.note(each.label, each.outcome)
        if isinstance(command, c.Claim) and isinstance(each.outcome, o.Claimed) and each.outcome.handles:
            notes[each.label] = _won(command, each.outcome, world, trace)
    return notes


def _won(claim: c.Claim, outcome: o.Claimed, world: World, trace: Trace) -> str:
    """The jobs just claimed, with the attempt that each is and how long from now its lease lasts."""
    jobs = tuple(handle.job for handle in outcome.handles)
    said, leases = [], []
    for handle in outcome.handles:
        record = world.jobs[handle.job - 1]  # type: ignore[operator]
        count = f", attempt {record.attempts}" if not isinstance(handle.token, str) else ""
        token = f", {attempt_name(handle.token, trace)}" if handle.token is not None else ""
        said.append(f"job {handle.job}{count}{token}")
        leases.append(f", lease until +{record.lease} s{', its deadline' * cut_short(claim, record)}")
    if len(set(leases)) == 1:
        return "; ".join(said) + leases[0] + hook_note(outcome.hooked, jobs)
    return "; ".join(map("".join, zip(said, leases, strict=True))) + hook_note(outcome.hooked, jobs)


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
    answer = _answer(step, trace, {})
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
