"""The scheduler: decides which gated actor's database statement goes next, one token at a time.

It knows lanes, gates and a strategy; never what a command means or whether an outcome is legal. Nothing is guessed
from time: before each choice every actor stands at its gate, is between commands, has finished, or was confirmed
waiting for a lock by the server itself.

The choice is made by whoever arrives last, inside that actor's own step: an actor that is chosen again goes on
without a turn of the event loop, and one is paid per change of actor.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Coroutine, Sequence
from typing import Any, Protocol, TypeAlias

from fencepost.conformance.faults import Hung

from .gate import Gate, may_wait, takes_locks
from .played import CLOCK, Diverged, Played, Ran, Statement, Stuck, Unplayable

Start: TypeAlias = Callable[[int], Coroutine[Any, Any, Any]]
"""Starts a command at this instant of the clock: makes the coroutine that runs it and returns its outcome."""
Move: TypeAlias = Callable[[], Any]
"""Moves the clock, at once."""
Blocked: TypeAlias = Callable[[Collection[str]], Awaitable[Collection[str]]]
"""Asks the server which of these actors wait for a lock that another of these actors holds; others don't count."""

GRACE_SECONDS = 0.001
"""How long a released actor may take before the server is asked; it only saves questions, it decides nothing."""
EAGER_QUESTIONS = 3
"""How often the server is asked without that delay when a lock makes waiting likely."""
PATIENCE_SECONDS = 30.0
MOST_TOKENS = 500

_READY, _GATE, _MOVING, _BLOCKED, _DONE = range(5)


class Strategy(Protocol):
    """Chooses the lane that goes next."""

    def choose(self, enabled: tuple[int, ...], previous: int | None) -> int:
        """One of `enabled` (ascending); `previous` was chosen last, None at the start.

        Raises:
            Diverged: the strategy follows a schedule, and it asks for a lane that is not enabled.
        """

    def finish(self) -> None:
        """All lanes have ended.

        Raises:
            Diverged: the strategy has tokens left.
        """


async def run_schedule(
    clock: Sequence[Move],
    lanes: Sequence[tuple[Gate, Sequence[Start]]],
    strategy: Strategy,
    *,
    now: Callable[[], int],
    blocked: Blocked | None = None,
    patience: float = PATIENCE_SECONDS,
) -> Played:
    """Run the lanes' commands at once, in the order of statements that the strategy chooses.

    `clock` is lane 0; `lanes[0]` is lane 1, and so on (at most 9). A command starts, and reads `now` (ticks), at the
    instant at which its first statement is chosen. `blocked` is None where an actor never waits for another's lock.
    `patience` in seconds bounds the wait for a server that does not answer.

    Raises:
        Diverged: the schedule that the strategy follows does not fit; every command that had started was let finish.
        Stuck: an actor waits for something that no other actor will ever release.
        Exception: whatever a command raised.
    """
    run = _Run(clock, lanes, strategy, now, blocked, patience)
    return await run.play()


class _Lane:
    """One actor: the watcher of its gate, and where it stands."""

    __slots__ = (
        "commands",
        "digit",
        "fresh",
        "gate",
        "holds",
        "last",
        "pending",
        "run",
        "state",
        "task",
        "token",
        "waiter",
    )

    def __init__(self, run: _Run, digit: int, gate: Gate, commands: Sequence[Start]) -> None:
        self.run = run
        self.digit = digit
        self.gate = gate
        self.commands = commands
        self.state = _READY if commands else _DONE
        self.fresh = False
        self.holds = False
        """Whether its open transaction may hold row locks."""
        self.token = 0
        self.pending = ("", "")
        self.last: Statement | None = None
        self.waiter: asyncio.Future[None] | None = None
        self.task: asyncio.Task[None] | None = None

    def arrive(self, kind: str, sql: str) -> asyncio.Future[None] | None:
        if self.run.over:
            return None
        if self.fresh:
            self.fresh = False
            self.follow(kind, sql)
            return None
        self.pending = (kind, sql)
        return self.rest(_GATE)

    def rest(self, state: int) -> asyncio.Future[None] | None:
        """Stand still in this state; None when the next choice fell on this lane at once, or the run is over."""
        run = self.run
        self.state = state
        run.flying.discard(self)
        run.arrivals += 1
        run.settle()
        if self.state != state or run.over:
            return None
        self.waiter = run.loop.create_future()
        return self.waiter

    def follow(self, kind: str, sql: str) -> None:
        run = self.run
        self.last = Statement(self.token, self.digit, kind, sql)
        run.statements.append(self.last)
        if run.blocked is None:
            return
        if kind == "COMMIT" or kind == "ROLLBACK":
            self.holds = False
        elif takes_locks(sql):
            self.holds = True
            if may_wait(sql) and any(lane.holds for lane in run.lanes if lane is not self):
                run.expect_wait()

    def executed(self, rowcount: int | None) -> None:
        if self.last is not None:
            self.last.rowcount = rowcount

    def raised(self, conflict: bool) -> None:
        if self.last is not None:
            self.last.failed, self.last.conflict = True, conflict

    def go(self, token: int) -> None:
        """Let the lane take one step, which is this token."""
        self.token = token
        standing, self.state = self.state, _MOVING
        self.wake()
        if standing == _GATE:
            self.follow(*self.pending)
        else:
            self.fresh = True
            if self.task is None:
                self.task = self.run.loop.create_task(self.drive())

    def wake(self) -> None:
        waiter, self.waiter = self.waiter, None
        if waiter is not None and not waiter.done():
            waiter.set_result(None)

    async def drive(self) -> None:
        """Run the lane's commands, one after another."""
        run = self.run
        try:
            for nth, command in enumerate(self.commands):
                if nth:
                    self.fresh = False
                    waiter = self.rest(_READY)
                    if waiter is not None:
                        await waiter
                    if run.over:
                        return
                now, start = run.now(), self.token
                outcome = await command(now)
                run.ran.append(Ran(self.digit, nth, start, len(run.chosen) - 1, now, outcome))
        except asyncio.CancelledError:
            run.fail(Stuck(f"lane {self.digit}: its command was cancelled from inside"))
            raise
        except (Exception, Hung) as error:
            run.fail(error)
        finally:
            self.state = _DONE
            run.flying.discard(self)
            run.arrivals += 1
            run.settle()


class _Run:
    """The state of one run."""

    def __init__(
        self,
        clock: Sequence[Move],
        lanes: Sequence[tuple[Gate, Sequence[Start]]],
        strategy: Strategy,
        now: Callable[[], int],
        blocked: Blocked | None,
        patience: float,
    ) -> None:
        self.loop = asyncio.get_running_loop()
        self.clock = clock
        self.moved = 0
        self.lanes = [_Lane(self, digit, gate, commands) for digit, (gate, commands) in enumerate(lanes, 1)]
        self.strategy = strategy
        self.now = now
        self.blocked = blocked
        self.patience = patience
        self.names = tuple(lane.gate.actor for lane in self.lanes)
        self.chosen: list[int] = []
        self.enabled: list[tuple[int, ...]] = []
        self.statements: list[Statement] = []
        self.ran: list[Ran] = []
        self.flying: set[_Lane] = set()
        """Released and neither back at a gate nor ended: moving, or waiting for a lock."""
        self.arrivals = 0
        self.over = False
        self.end: asyncio.Future[None] = self.loop.create_future()
        self.eager = 0
        self.timer: asyncio.TimerHandle | None = None
        self.question: asyncio.Task[None] | None = None

    async def play(self) -> Played:
        for lane in self.lanes:
            lane.gate.arm(lane)
        watch = self.loop.call_later(self.patience, self._lose_patience)
        try:
            self.settle()
            await self.end
        except Unplayable as error:
            error.schedule = self._schedule()
            raise
        finally:
            watch.cancel()
            self._cancel_timer()
            await self._wind_up()
            for lane in self.lanes:
                lane.gate.disarm()
        # Lanes that were freed in one token may have gone on in either order; a record must not depend on that.
        self.statements.sort(key=lambda statement: statement.token)
        self.ran.sort(key=lambda ran: (ran.lane, ran.nth))
        return Played(self._schedule(), tuple(self.enabled), tuple(self.statements), tuple(self.ran))

    def _schedule(self) -> str:
        return "".join(map(str, self.chosen))

    def settle(self) -> None:
        """Make the next choice if every lane has come to rest."""
        if self.flying or self.end.done():
            return
        self._cancel_timer()
        try:
            self._choose()
        except Exception as error:
            self.fail(error)

    def fail(self, error: BaseException) -> None:
        """End the run with this error; commands that have started run on ungated."""
        if not self.end.done():
            self.over = True
            self.end.set_exception(error)
            for lane in self.lanes:
                lane.wake()

    def _choose(self) -> None:
        while True:
            resting = [lane.digit for lane in self.lanes if lane.state == _READY or lane.state == _GATE]
            enabled = (CLOCK, *resting) if self.moved < len(self.clock) else tuple(resting)
            if not enabled:
                self._finish()
                return
            previous = self.chosen[-1] if self.chosen else None
            choice = self.strategy.choose(enabled, previous)
            token = len(self.chosen)
            if choice not in enabled:
                raise Diverged(f"token {token}: lane {choice} cannot go, only {', '.join(map(str, enabled))}")
            if token == MOST_TOKENS:
                raise Stuck(f"no end after {MOST_TOKENS} tokens: {''.join(map(str, self.chosen[-20:]))} repeats")
            self.chosen.append(choice)
            self.enabled.append(enabled)
            if choice != CLOCK:
                break
            now = self.now()
            self.ran.append(Ran(CLOCK, self.moved, token, token, now, self.clock[self.moved]()))
            self.moved += 1
        lane = self.lanes[choice - 1]
        self.flying = {other for other in self.lanes if other.state == _BLOCKED}
        self.flying.add(lane)
        self.eager = 0
        if self.blocked is not None:
            self.timer = self.loop.call_later(GRACE_SECONDS, self._ask)
        lane.go(token)

    def _finish(self) -> None:
        waiting = [lane for lane in self.lanes if lane.state == _BLOCKED]
        if waiting:
            raise Stuck(f"{_told(waiting)}: the lock is held by an actor that has finished")
        self.strategy.finish()
        self.over = True
        self.end.set_result(None)

    def expect_wait(self) -> None:
        """The statement that goes now is likely to wait: ask for it as soon as it has been sent."""
        self.eager = EAGER_QUESTIONS
        self._ask()

    def _ask(self) -> None:
        self._cancel_timer()
        if self.question is None and not self.over:
            self.question = self.loop.create_task(self._question())

    async def _question(self) -> None:
        """Ask who is blocked; the answer counts only if nobody arrived meanwhile and it explains every flying lane."""
        try:
            arrivals = self.arrivals
            settled = await self._all_wait()
            if settled and len(self.flying) > 1:
                # The server may end a deadlock between two answers; its victim goes on, and does not wait again.
                settled = not await self._deadlocked() and await self._all_wait()
            if self.over:
                return
            if settled and arrivals == self.arrivals:
                for lane in self.flying:
                    lane.state = _BLOCKED
                    if lane.last is not None:
                        lane.last.waited = True
                self.flying = set()
                self.settle()
        except Exception as error:
            self.fail(error)
        finally:
            self.question = None
            if self.flying and self.timer is None and not self.over:
                if self.eager:
                    self.eager -= 1
                    self._ask()
                else:
                    self.timer = self.loop.call_later(GRACE_SECONDS, self._ask)

    async def _all_wait(self) -> bool:
        """Whether every flying lane waits for another's lock."""
        assert self.blocked is not None
        waiting = await self.blocked(self.names)
        return all(lane.gate.actor in waiting for lane in self.flying)

    async def _deadlocked(self) -> bool:
        """Whether some flying lanes wait only for each other; the server ends that, so it is no state to choose in."""
        assert self.blocked is not None
        names = {lane.gate.actor for lane in self.flying}
        while names:
            waiting = names.intersection(await self.blocked(names))
            if waiting == names:
                return True
            names = waiting
        return False

    def _cancel_timer(self) -> None:
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None

    def _lose_patience(self) -> None:
        self.fail(Stuck(f"{_told(self.flying)}: no answer within {self.patience:g} s"))

    async def _wind_up(self) -> None:
        """Leave no task behind: let what has started finish ungated, and cancel what cannot finish."""
        self.over = True
        tasks = [lane.task for lane in self.lanes if lane.task is not None and not lane.task.done()]
        hopeless = self.end.cancelled() or isinstance(self.end.exception(), (Stuck, Hung))
        for lane in self.lanes:
            lane.wake()
        if self.question is not None:
            tasks.append(self.question)
        if not tasks:
            return
        if not hopeless:
            await asyncio.wait(tasks, timeout=self.patience)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _told(lanes: Collection[_Lane]) -> str:
    """The lanes and the statements they are in, for a message."""
    said = [f"lane {lane.digit} in {lane.last.kind if lane.last else 'its command'}" for lane in lanes]
    return " and ".join(said) or "no lane moves"
