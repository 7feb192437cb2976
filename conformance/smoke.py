"""Step by step through an adapter's plumbing: each verb once, where a right queue cannot but serve it.

What it finds is the adapter's to mend, or a queue that does not work at all. Whether a queue keeps its contract it does
not ask: that takes the engines, which need all this to be right.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

from fencepost.adapters.contract import Actor, Adapter, AdapterError
from fencepost.model import commands as c
from fencepost.model import outcomes as o
from fencepost.model.queues import PENDING, RUNNING, QueueSpec

from .answers import TICKS, answer_fault, rows_fault
from .controls import check_capabilities, check_closing, declaration_faults, unclaimed
from .driver import Driver, worker_of
from .faults import Hung, fault_of, without_arguments
from .session import Session
from .watchdog import Limits, at_work, watching


class Line(NamedTuple):
    """One step: what was looked at and, unless it is good, what is wrong and what to do."""

    what: str
    verdict: Literal["good", "bad", "not tried", "note"] = "good"
    hint: str = ""


LIMITS = Limits(example=10.0, advice="")
"""A step that takes longer hangs."""


def smoke(
    make: Callable[[], Adapter], name: str, queue: str, last_words: Callable[[Hung], None] | None = None
) -> Iterator[Line]:
    """Go through the plumbing of the adapter that is called `name` with one of its queues.

    `last_words` is called, in another thread, if a step blocks and nothing can get it back; it must end the process.
    """
    with watching(LIMITS, last_words):
        try:
            with at_work():
                adapter = make()
        except (Exception, Hung) as error:
            why = without_arguments(error) if isinstance(error, TypeError) else ""
            yield Line("it can be made", "bad", why or fault_of(error, name))
            return
        yield Line("it can be made")
        faults = list(declaration_faults(adapter))
        yield from (Line("what it declares can be true", "bad", fault) for fault in faults)
        if faults:
            return
        yield Line("what it declares can be true")
        yield from _Smoke(make, name, adapter, adapter.serves(queue)).lines()


ACTORS = "actors: each worker has a client of its own"
SNAPSHOT = "reset, snapshot: an empty queue has no jobs"

Step: TypeAlias = Callable[[], Awaitable[str]]
"""Looks at one thing; returns what is wrong with it, if anything."""


class _Smoke:
    def __init__(self, make: Callable[[], Adapter], name: str, adapter: Adapter, spec: QueueSpec) -> None:
        self.make = make
        self.name = name
        self.adapter = adapter
        self.session = Session(adapter, spec)
        self.spec = self.session.spec
        self.bad: set[str] = set()
        self.hung: Hung | None = None

    def lines(self) -> Iterator[Line]:
        spec = self.spec
        try:
            self.session.__enter__()
        except (Exception, Hung) as error:
            yield Line(f"open: queue {spec.key}", "bad", self.told(error))
            yield Line("all the rest", "not tried", "open comes first")
            return
        yield Line(f"open: queue {spec.key}")
        try:
            yield from self.inside()
        except BaseException as error:  # every step tells its own faults, so this is one of ours, or an interrupt
            self.session.__exit__(type(error), error, None)
            raise
        yield from self.closed()

    def closed(self) -> Iterator[Line]:
        if self.hung:
            self.session.__exit__(Hung, self.hung, None)
            yield Line("close", "not tried", "something hung")
            return
        yield self.asked("close: closes, twice, and opens again", self.again)
        yield self.step("close: closes", lambda: self.session.__exit__(None, None, None))
        if not self.hung and "close: closes" not in self.bad:
            leaving = "close: leaves no file or connection open"
            yield self.step(leaving, lambda: check_closing(self.make, self.spec.key))

    async def again(self) -> str:
        for _ in range(2):
            await self.adapter.close()
        await self.adapter.open(self.spec)
        rows = await self.adapter.snapshot()
        return f"opened again, it holds {len(rows)} jobs; let `open` make a new place, which is empty" if rows else ""

    def inside(self) -> Iterator[Line]:
        yield self.asked(ACTORS, self.actors)
        if ACTORS not in self.bad:
            yield from self.verbs()
            yield self.asked(SNAPSHOT, self.empty)
        if not self.bad.isdisjoint((ACTORS, SNAPSHOT)):
            yield Line("all the rest", "not tried", "that comes first")
            return
        for trial in TRIALS:
            if trial.verb in self.spec.verbs and not self.hung:
                yield from self.tried(trial)
        for what, look in (
            ("time: instants are ticks", self.ticks),
            ("actors: two workers hold a job each", self.two_workers),
            ("reset: removes all jobs, and actors stay usable", self.reset),
            ("capabilities: what is declared is true", self.declared),
        ):
            if self.hung or not {"enqueue", "claim"}.isdisjoint(self.bad):
                yield Line(what, "not tried", "something hung" if self.hung else "it needs `enqueue` and `claim`")
            else:
                yield self.asked(what, look)
        for note in unclaimed(self.adapter):
            yield Line("present but unclaimed", "note", f"{note}; take it out of what is declared, and it is tested")

    # ---------------------------------------------------------------------------------------------------------- steps

    def step(self, what: str, work: Callable[[], object]) -> Line:
        """One step: bad if it raises, or returns what is wrong."""
        try:
            hint = work() or ""
        except (Exception, Hung) as error:
            hint = self.told(error)
            self.hung = error if isinstance(error, Hung) else self.hung
        if hint:
            self.bad.add(what)
        return Line(what, "bad", str(hint)) if hint else Line(what)

    def asked(self, what: str, look: Step) -> Line:
        async def work() -> str:
            return await look()

        return self.step(what, lambda: self.session.run(work()))

    def told(self, error: BaseException) -> str:
        return fault_of(error, self.name)

    async def actors(self) -> str:
        found = [self.adapter.actor(worker) for worker in range(3)]
        for worker, actor in enumerate(found):
            if not isinstance(actor, Actor):
                return f"actor({worker}) returned {actor!r}; return an Actor"
            if self.adapter.actor(worker) is not actor:
                return f"actor({worker}) returned another one when it was asked again; keep the clients in a dict"
            actor.has("enqueue")  # a plain one is made only when it is needed
        return "" if len(set(map(id, found))) == len(found) else "two workers share one; make a client for each worker"

    def verbs(self) -> Iterator[Line]:
        """Whether there is a method for each verb, where the client does not dispatch by itself."""
        actor = self.adapter.actor(0)
        if type(actor).perform is not Actor.perform and type(actor).has is Actor.has:
            yield Line("verbs: each has its method", "note", f"{type(actor).__name__} has a `perform` of its own")
            return
        lacking = [verb for verb in sorted(self.spec.verbs) if not actor.has(verb)]
        for verb in lacking:
            self.bad.add(verb)
            hint = f"write `{verb}(self, command, now)`, or name {verb!r} in Capabilities.without"
            yield Line(f"verbs: {verb}", "bad", hint)
        if not lacking:
            yield Line("verbs: each has its method")

    async def empty(self) -> str:
        await self.adapter.reset()
        rows = await self.adapter.snapshot()
        return rows_fault(rows) or (f"it shows {len(rows)}, right after `reset`" if rows else "")

    def tried(self, trial: Trial) -> Iterator[Line]:
        missing = [f"`{verb}`" for verb in STAGES[trial.stage] if verb in self.bad]
        if trial.verb in self.bad:
            return  # told already: there is no such method
        if missing:
            self.bad.add(trial.verb)
            yield Line(trial.verb, "not tried", f"it needs {missing[0]}")
        else:
            yield self.asked(trial.verb, lambda: self.one(trial))

    async def one(self, trial: Trial) -> str:
        """One verb, where it must be served, and what a snapshot shows of it."""
        stage = await self.staged(trial.stage)
        before = await self.adapter.snapshot()
        command = trial.command(stage, self.spec)
        answer = await self.perform(command, stage.now)
        rows = await self.adapter.snapshot()
        fault = answer_fault(command, answer) or rows_fault(rows)
        if fault:
            return fault
        if isinstance(answer, (o.Rejected, o.Conflict)) and o.Accepted in trial.must:
            return f"was refused: {answer}; {_REFUSED}"
        if not isinstance(answer, trial.must):
            return f"answered {answer}; {trial.todo}"
        if isinstance(answer, o.Claimed) and not answer.handles:
            return f"claimed nothing, though there is a pending job; {trial.todo}"
        if isinstance(answer, o.Recovered) and not answer.rows:
            return f"left a job whose lease ended a second ago; {trial.todo}"
        if trial.changes and rows == before:
            return f"answered {answer}, and the snapshot shows nothing of it; {_UNSEEN}"
        if isinstance(answer, o.Claimed):
            return self.handle_fault(answer)
        if isinstance(answer, o.Enqueued) and answer.job not in rows:
            return f"said that the new job is {answer.job!r}; the snapshot calls it {next(iter(rows))!r}"
        return ""

    def handle_fault(self, claimed: o.Claimed) -> str:
        """What is wrong with the first handle that a claim by worker 1 returned."""
        handle, fence = claimed.handles[0], self.spec.fence
        if type(handle) is not c.Handle or not isinstance(handle.job, (int, str)):
            return f"its handle is {handle!r}; return c.Handle(job id, worker) with plain values"
        if handle.worker != 1:
            return f"its handle names worker {handle.worker}; give it command.worker"
        wanted = {"owner": type(None), "generation": int, "attempt_id": str}[fence]
        if type(handle.token) is not wanted:
            more = "no token" if fence == "owner" else f"the {fence} as its token, of type {wanted.__name__}"
            return (
                f"its handle carries {handle.token!r}; queue {self.spec.key} declares fence={fence!r}: give it {more}"
            )
        return ""

    async def ticks(self) -> str:
        stage = await self.staged("empty", at=7)
        await self.perform(c.Enqueue(), stage.now)
        claimed = await self.perform(c.Claim(1, *self.spec.bounds), stage.now)
        (row,) = (await self.adapter.snapshot()).values()
        if not isinstance(claimed, o.Claimed) or row.status != RUNNING:
            return f"a claim at +7 s left the job {row.status}"
        if row.owner != c.worker_name(1):
            return f"the owner is {row.owner!r}; let claims store c.worker_name(command.worker), {c.worker_name(1)!r}"
        until = stage.now + self.spec.lease_seconds
        if row.expires != until:
            told = f"a claim at +{stage.now} s for {self.spec.lease_seconds} s expires at {row.expires!r}, not {until}"
            return f"{told}; {TICKS}. The queue's lease is `lease_seconds` of its QueueSpec"
        return ""

    async def two_workers(self) -> str:
        stage = await self.staged("empty")
        for _ in range(2):
            await self.perform(c.Enqueue(), stage.now)
        claims = [await self.perform(c.Claim(worker, *self.spec.bounds), stage.now) for worker in (1, 2)]
        owners = sorted(str(row.owner) for row in (await self.adapter.snapshot()).values())
        if owners != sorted((c.worker_name(1), c.worker_name(2))):
            return f"after a claim by each the owners are {owners}; {_REFUSED}"
        if "crash" in self.spec.verbs:
            await self.perform(c.Crash(2), stage.now)
        first = claims[0]
        assert isinstance(first, o.Claimed)
        answer = await self.perform(c.Complete(first.handles[0]), stage.now)
        if not isinstance(answer, o.Accepted):
            return f"w1 could not complete once w2 had crashed: {answer}; give each actor a connection of its own"
        return ""

    async def reset(self) -> str:
        await self.staged("held")
        await self.adapter.reset()
        rows = await self.adapter.snapshot()
        if rows:
            return f"{len(rows)} jobs are left"
        await self.perform(c.Enqueue(), 0)
        claimed = await self.perform(c.Claim(1, *self.spec.bounds), 0)
        if not isinstance(claimed, o.Claimed) or len(claimed.handles) != 1:
            return f"a job that was added afterwards could not be claimed: {claimed}"
        return ""

    async def declared(self) -> str:
        await check_capabilities(self.session.driver)
        return ""

    # ---------------------------------------------------------------------------------------------------------- stages

    async def perform(self, command: c.Command, now: int) -> o.Outcome:
        return await self.adapter.actor(worker_of(command)).perform(command, now)

    async def staged(self, name: str, at: int = 0) -> Stage:
        """Bring the queue to a stage, and its own clock, if it has one, with it."""
        driver = Driver(self.adapter, self.spec)
        await driver.reset()
        if at:
            await driver.advance(0, at)
        stage = Stage(at)
        if name == "empty":
            return stage
        added = await self.perform(c.Enqueue(3), stage.now)
        stage.job = added.job if isinstance(added, o.Enqueued) else 0
        if name == PENDING:
            return stage
        claimed = await self.perform(c.Claim(1, *self.spec.bounds), stage.now)
        if not isinstance(claimed, o.Claimed) or not claimed.handles:
            raise AdapterError(f"claim answered {claimed}")
        stage.handle = claimed.handles[0]
        if name == "asked":
            await self.perform(c.RequestCancel(stage.job), stage.now)
        seconds = self.spec.lease_seconds + 1 if name == "expired" else 1
        await driver.advance(stage.now, seconds)
        stage.now += seconds
        return stage


_REFUSED = (
    "is the owner that a claim stores c.worker_name(command.worker), and is the queue's clock the `now` that every "
    "verb is given?"
)
_UNSEEN = "let the verb commit, and the snapshot read what is committed, without a transaction left open from before"


@dataclass(slots=True)
class Stage:
    """What a queue has come to: the clock, its one job, and the handle of its holder."""

    now: int
    job: c.JobId = 0
    handle: c.Handle | None = None


STAGES: dict[str, tuple[str, ...]] = {
    "empty": (),
    PENDING: ("enqueue",),
    "held": ("enqueue", "claim"),
    "asked": ("enqueue", "claim", "request_cancel"),
    "expired": ("enqueue", "claim"),
}
"""The verbs that each stage needs."""


@dataclass(frozen=True, slots=True)
class Trial:
    """A verb, the stage that it is tried in, the outcomes of which it must answer one, and whether rows must change."""

    verb: str
    stage: str
    command: Callable[[Stage, QueueSpec], c.Command]
    must: tuple[type[o.Outcome], ...]
    changes: bool = True
    todo: str = _REFUSED


def _by_handle(kind: type[c.HandleCommand]) -> Callable[[Stage, QueueSpec], c.Command]:
    return lambda stage, spec: kind(stage.handle)  # type: ignore[call-arg]


_SWEPT = "let it move running jobs whose lease has expired, whoever holds them"

TRIALS: tuple[Trial, ...] = (
    Trial("enqueue", "empty", lambda stage, spec: c.Enqueue(2), (o.Enqueued,)),
    Trial("claim", PENDING, lambda stage, spec: c.Claim(1, *spec.bounds), (o.Claimed,)),
    Trial("renew", "held", _by_handle(c.Renew), (o.Accepted,)),
    Trial("complete", "held", _by_handle(c.Complete), (o.Accepted,)),
    Trial("fail", "held", _by_handle(c.Fail), (o.Accepted,)),
    Trial("skip", "held", _by_handle(c.Skip), (o.Accepted,)),
    Trial("release", "held", _by_handle(c.Release), (o.Accepted,)),
    Trial("put_artifact", "held", _by_handle(c.PutArtifact), (o.Accepted,)),
    Trial("read_artifact", "held", lambda stage, spec: c.ReadArtifact(stage.job), (o.Artifact,), False),
    Trial("checkpoint", "held", _by_handle(c.Checkpoint), (o.Checkpointed,), False),
    Trial("request_cancel", "held", lambda stage, spec: c.RequestCancel(stage.job), (o.CancelAnswer,)),
    Trial("acknowledge", "asked", _by_handle(c.Acknowledge), (o.Accepted,)),
    Trial("recover", "expired", lambda stage, spec: c.Recover(), (o.Recovered,), todo=_SWEPT),
    Trial("tick", "expired", lambda stage, spec: c.Tick(1), (o.Recovered,), todo=_SWEPT),
    Trial("start_up", "expired", lambda stage, spec: c.StartUp(0), (o.Recovered,), todo=_SWEPT),
    Trial("probe", "empty", lambda stage, spec: c.Probe(), (o.Probed,), False),
    Trial(
        "configure", "empty", lambda stage, spec: c.Configure(spec.lease_seconds, spec.heartbeat_seconds),
        (o.Accepted,), False, "take a lease of three heartbeats or more",
    ),
    Trial("classify", "empty", lambda stage, spec: c.Classify("RENDER_TIMEOUT"), (o.Classified,), False),
    Trial("crash", "held", lambda stage, spec: c.Crash(1), (o.Done,), False),
    Trial(
        "atomically", "held", lambda stage, spec: c.Atomically((c.Complete(stage.handle),)),  # type: ignore[arg-type]
        (o.Atomic,),
    ),
    Trial(
        "plant", PENDING,
        lambda stage, spec: c.Plant(stage.job, "deadline" if spec.deadline else "lease", 5), (o.Done,),
    ),
)  # fmt: skip
"""In the order in which an adapter is best written."""
