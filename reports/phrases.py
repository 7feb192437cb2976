"""Commands and outcomes in plain English: one table row per type, for stories, `explain` and `explore`.

It knows the values alone, never what is legal: a wrong answer reads as well as a right one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from fencepost.model import commands as c
from fencepost.model import outcomes as o
from fencepost.model.trace import Trace, TraceStep

_DEFAULT_ENQUEUE = c.Enqueue()
_DEFAULT_RECOVER = c.Recover()


def all_steps(trace: Trace) -> Iterator[TraceStep]:
    """The steps of the prefix, then those of each lane."""
    yield from trace.steps
    for lane in trace.lanes:
        yield from lane


def step_at(trace: Trace, label: int) -> TraceStep | None:
    """The step with this label, if the trace still has it."""
    return next((step for step in all_steps(trace) if step.label == label), None)


def job_name(job: c.JobId | c.JobRef | None, trace: Trace) -> str:
    """ "job 2": by what the enqueue answered, or else by the order of the enqueues."""
    if not isinstance(job, c.JobRef):
        return f"job {job}"
    enqueues = [step for step in all_steps(trace) if isinstance(step.command, c.Enqueue)]
    for ordinal, step in enumerate(enqueues, 1):
        if step.label == job.step:
            return f"job {step.outcome.job if isinstance(step.outcome, o.Enqueued) else ordinal}"
    return f"the job of step {job.step}"


def attempt_name(token: c.Token, trace: Trace) -> str:
    """What a fence token is called: a generation "token 3", an attempt id "attempt 2".

    A queue makes its ids anew in every run, and long ones; a story counts them in the order of its claims.
    """
    return _attempts(trace).get(token, _UNKNOWN) if isinstance(token, str) else f"token {token}"


def with_attempts_named(text: str, trace: Trace) -> str:
    """The text with the attempt ids in it that the trace shows called as `attempt_name` calls them."""
    names = _attempts(trace)

    def named(found: re.Match[str]) -> str:
        # "is 7" may be any number; "token 7" is not.
        return names[found[2]] if found[1] or not found[2].isdigit() else found[0]

    ids = "|".join(map(re.escape, sorted(names, key=len, reverse=True)))
    return re.sub(rf"((?:token|attempt) )?(?<![\w.-])({ids})(?![\w-]|\.\w)", named, text) if ids else text


_UNKNOWN = "an unknown attempt"


def _attempts(trace: Trace) -> dict[str, str]:
    """What each attempt id that an outcome of the trace shows is called; unknown is one that no claim returned."""
    answers = [step.outcome for step in all_steps(trace)]
    claimed = [handle.token for answer in answers if isinstance(answer, o.Claimed) for handle in answer.handles]
    read = [answer.attempt for answer in answers if isinstance(answer, o.Artifact)]
    names = {token: _UNKNOWN for token in read if isinstance(token, str)}
    ids = dict.fromkeys(token for token in claimed if isinstance(token, str))
    return names | {token: f"attempt {number}" for number, token in enumerate(ids, 1)}


def worker_of(handle: c.Handle | c.HandleRef, trace: Trace) -> int | None:
    """The worker that claimed this handle; None if the trace has no such claim."""
    if isinstance(handle, c.Handle):
        return handle.worker
    origin = step_at(trace, handle.step)
    return origin.command.worker if origin is not None and isinstance(origin.command, c.Claim) else None


def handle_job(handle: c.Handle | c.HandleRef, trace: Trace) -> c.JobId | None:
    """The job of this handle, once the claim has answered."""
    if isinstance(handle, c.Handle):
        return handle.job
    origin = step_at(trace, handle.step)
    if origin is None or not isinstance(origin.outcome, o.Claimed) or handle.nth >= len(origin.outcome.handles):
        return None
    return origin.outcome.handles[handle.nth].job


def _who(handle: c.Handle | c.HandleRef, trace: Trace) -> str:
    worker = worker_of(handle, trace)
    return f"the holder of step {handle.step}" if isinstance(handle, c.HandleRef) and worker is None else f"w{worker}"


def _which(handle: c.Handle | c.HandleRef, trace: Trace, link: str = "") -> str:
    """What tells this handle from others: its job where there are many, its claim where its worker has two."""
    said = ""
    if sum(isinstance(step.command, c.Enqueue) for step in all_steps(trace)) > 1:
        job = handle_job(handle, trace)
        said = f"{link} job {job}" if job is not None else ""
    if isinstance(handle, c.HandleRef):
        worker = worker_of(handle, trace)
        claims = [s for s in all_steps(trace) if isinstance(s.command, c.Claim) and s.command.worker == worker]
        if len(claims) > 1:
            said += f" (claimed at step {handle.step})"
    return said


def _hook(hook: c.Hook | None, trace: Trace) -> str:
    if hook is None:
        return ""
    says = {"ok": "a hook", "raise": "a hook that raises", "cancel": "a hook that is cancelled"}
    return f", with {says.get(hook.kind) or f'a hook that raises on {job_name(hook.job, trace)}'}"


def _lease(seconds: int | None) -> str:
    return "" if seconds is None else f" for {seconds} s"


def signed(seconds: int) -> str:
    """ "+300 s", "−1 s": a length of time relative to something."""
    return f"{'−' if seconds < 0 else '+'}{abs(seconds)} s"


def _enqueue(command: c.Enqueue, _: Trace) -> str:
    budget = command.max_attempts
    attempts = f", {budget} attempt{'s' * (budget != 1)} at most" if budget != _DEFAULT_ENQUEUE.max_attempts else ""
    due = f", due in {command.due_in} s" if command.due_in else ""
    return f"enqueue{attempts}{due}" + (f", deadline in {command.deadline_in} s" if command.deadline_in else "")


def _claim(command: c.Claim, trace: Trace) -> str:
    many = (command.limit, command.max_claims) != (1, 1)
    bounds = f" up to {command.max_claims}, scanning {command.limit}" if many else ""
    if command.job is not None:
        bounds = f" {job_name(command.job, trace)}"
    return f"w{command.worker} claims{bounds}{_lease(command.lease)}{_hook(command.hook, trace)}"


def _recover(command: c.Recover, trace: Trace) -> str:
    batch = f" in batches of {command.batch}" if command.batch != _DEFAULT_RECOVER.batch else ""
    return f"sweep{batch}{_hook(command.hook, trace)}"


def _start_up(command: c.StartUp, trace: Trace) -> str:
    """Whose process it is: that of the workers of this story that live on its host."""
    claims = {step.command.worker for step in all_steps(trace) if isinstance(step.command, c.Claim)}
    workers = [f"w{worker}" for worker in sorted(claims) if c.host_of(worker) == command.host]
    whose = f"the process of {' and '.join(workers)}" if workers else "a process of other workers"
    return f"{whose} starts up ({c.HOSTS[command.host]})"


def _advance_to(command: c.AdvanceTo, trace: Trace) -> str:
    instant = {"expiry": "lease expiry", "due": "due instant", "deadline": "deadline"}[command.instant]
    offset = f" {signed(command.offset)}" if command.offset else ""
    return f"clock to {job_name(command.job, trace)}'s {instant}{offset}"


def _atomically(command: c.Atomically, trace: Trace) -> str:
    inside = "; ".join(command_phrase(part, trace) for part in command.commands)
    end = {"commit": "commit", "rollback": "roll back", "raise": "raise"}[command.end]
    return f"in one transaction: {inside}; then {end}"


def _plant(command: c.Plant, trace: Trace) -> str:
    job, seconds = job_name(command.job, trace), command.seconds
    instant = f"{abs(seconds)} s {'from now' if seconds > 0 else 'ago'}" if seconds else "now"
    return (
        f"set {job}'s deadline to {instant}" if command.field == "deadline" else f"leave a lease on {job} to {instant}"
    )


def _by_holder(verb: str, rest: str = "", link: str = "") -> Callable[[Any, Trace], str]:
    """ "w1 completes job 2": the worker, the verb, which handle if that needs saying, and the rest."""
    return lambda command, trace: f"{_who(command.handle, trace)} {verb}{_which(command.handle, trace, link)}{rest}"


COMMAND_PHRASES: dict[type[c.Command], Callable[[Any, Trace], str]] = {
    c.Enqueue: _enqueue,
    c.Claim: _claim,
    c.Renew: lambda x, t: _by_holder("renews", _lease(x.lease))(x, t),
    c.Complete: _by_holder("completes"),
    c.Fail: lambda x, t: _by_holder("fails", f": {x.what}, {x.code}")(x, t),
    c.Skip: _by_holder("skips"),
    c.Release: _by_holder("releases"),
    c.PutArtifact: _by_holder("uploads its artifact", link=" for"),
    c.ReadArtifact: lambda x, t: f"read the artifact of {job_name(x.job, t)}",
    c.Acknowledge: _by_holder("acknowledges", " as cancelled"),
    c.Checkpoint: _by_holder("checks", " for a cancel"),
    c.RequestCancel: lambda x, t: f"{'parent cancels' if x.by_parent else 'cancel'} {job_name(x.job, t)}",
    c.Recover: _recover,
    c.Tick: lambda x, _: f"w{x.worker} ticks",
    c.StartUp: _start_up,
    c.Probe: lambda _x, _t: "look for open transactions",
    c.Plant: _plant,
    c.Configure: lambda x, _: f"configure lease {x.lease} s, heartbeat {x.heartbeat} s",
    c.Classify: lambda x, _: f"classify {x.code!r}",
    c.Atomically: _atomically,
    c.Crash: lambda x, _: f"w{x.worker} crashes",
    c.Advance: lambda x, _: f"clock {signed(x.seconds)}",
    c.AdvanceTo: _advance_to,
}


def _jobs(jobs: Iterable[c.JobId]) -> str:
    return ", ".join(f"job {job}" for job in jobs) or "nothing"


def hook_note(hooked: tuple[c.JobId, ...] | None, moved: tuple[c.JobId, ...]) -> str:
    """What the hook was given, where that is not what was claimed or moved."""
    return "" if hooked is None or hooked == moved else f", hook given {_jobs(hooked)}"


def _due(due: int | None) -> str:
    return "" if due is None else f", due at tick {due}"


def _claimed(outcome: o.Claimed, trace: Trace) -> str:
    jobs = tuple(handle.job for handle in outcome.handles)
    tokens = ["" if handle.token is None else f", {attempt_name(handle.token, trace)}" for handle in outcome.handles]
    said = "; ".join(f"job {job}{token}" for job, token in zip(jobs, tokens, strict=True)) or "nothing"
    return said + hook_note(outcome.hooked, jobs)


def _recovered(outcome: o.Recovered, _: Trace) -> str:
    said = "; ".join(f"job {row.job} {row.status}{_due(row.due)}" for row in outcome.rows) or "nothing recovered"
    if outcome.count != len(outcome.rows):
        said += f", counted as {outcome.count}"
    if outcome.dml and not outcome.rows:
        said += f", {outcome.dml} write statement{'s' * (outcome.dml != 1)}"
    if outcome.failed:
        said += ", a batch rolled back"
    return said + hook_note(outcome.hooked, tuple(row.job for row in outcome.rows))


def _artifact(outcome: o.Artifact, trace: Trace) -> str:
    return "no artifact" if outcome.attempt is None else f"the artifact of {attempt_name(outcome.attempt, trace)}"


def _probed(outcome: o.Probed, _: Trace) -> str:
    if not (outcome.transactions or outcome.locks):
        return "none, no locks"
    return f"{outcome.transactions} open, {outcome.locks} lock{'s' * (outcome.locks != 1)}"


_ANSWERS = {"cancelled": "cancelled at once", "recorded": "request recorded", "terminal": "too late, terminal"}

OUTCOME_PHRASES: dict[type[o.Outcome], Callable[[Any, Trace], str]] = {
    o.Enqueued: lambda x, _: f"job {x.job}",
    o.Claimed: _claimed,
    o.Accepted: lambda x, _: f"accepted, {x.status}{_due(x.due)}",
    o.Rejected: lambda x, _: f"rejected: {x.reason}" if x.reason else "rejected",
    o.CancelAnswer: lambda x, _: _ANSWERS[x.answer],
    o.Recovered: _recovered,
    o.Artifact: _artifact,
    o.Checkpointed: lambda x, _: "cancel requested" if x.cancel else "no cancel requested",
    o.Probed: _probed,
    o.Classified: lambda x, _: x.family or "no family",
    o.Atomic: lambda x, t: "; ".join(outcome_phrase(part, t) for part in x.outcomes) or "nothing",
    o.Done: lambda _x, _t: "done",
    o.Conflict: lambda _x, _t: "write conflict, no effect",
    o.HookRaised: lambda x, _: f"the hook raised (given {_jobs(x.hooked)})",
    o.Unknown: lambda _x, _t: "reply lost",
}


def command_phrase(command: c.Command, trace: Trace) -> str:
    """A command in plain English; `trace` resolves its references to earlier steps.

    Raises:
        TypeError: a command type without a row in the table.
    """
    phrase = COMMAND_PHRASES.get(type(command))
    if phrase is None:
        raise TypeError(f"no phrase for the command {type(command).__name__}; add a row to COMMAND_PHRASES")
    return phrase(command, trace)


def outcome_phrase(outcome: o.Outcome, trace: Trace) -> str:
    """An outcome in plain English; `trace` tells which attempt is which.

    Raises:
        TypeError: an outcome type without a row in the table.
    """
    phrase = OUTCOME_PHRASES.get(type(outcome))
    if phrase is None:
        raise TypeError(f"no phrase for the outcome {type(outcome).__name__}; add a row to OUTCOME_PHRASES")
    return phrase(outcome, trace)
