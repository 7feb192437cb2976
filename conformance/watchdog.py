"""Ends what an adapter does not end by itself: a verb, an opening or a closing that never comes back.

An alarm raises `Hung` in the main thread wherever that is: in a wait of the event loop as in a plain call that blocks
it. A call into a C library that no signal interrupts cannot be ended so. A thread then tells what was found, and the
process has to go. It knows limits and stacks, and nothing of commands or clauses.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType

from fencepost.reports.result import Exit

from .faults import Frames, Hung, own_frames, verb_of


@dataclass(frozen=True, slots=True)
class Limits:
    """How long an adapter may take, in seconds; None is for ever."""

    example: float | None = 60.0
    """One script or schedule, or one opening or closing of the queue."""
    run: float | None = None
    """All of a run."""
    closing: float = 10.0
    """Closing what has hung before."""
    grace: float = 5.0
    """From the alarm until the main thread is given up."""
    advice: str = ", or allow for more by --example-timeout"
    """What else than ending it can be done about what hangs."""


USUAL = Limits()


@contextmanager
def watching(limits: Limits, last_words: Callable[[Hung], None] | None = None) -> Iterator[Callable[[], None]]:
    """Watch whatever `at_work` is called for inside; yields a check to call between examples, which raises `Hung` once
    the run's limit is over.

    `last_words` is called in another thread if the main one cannot be got back; it must end the process. Outside of
    the main thread, and where somebody else handles SIGALRM, there is no alarm, and it is called at once.
    """
    global _watch
    before, _watch = _watch, _Watch(limits, last_words)
    try:
        with _watch.installed():
            yield _watch.check
    finally:
        _watch = before


@contextmanager
def at_work(*, closing: bool = False) -> Iterator[None]:
    """The adapter is at work: an example's time runs. `closing`: it has hung before, and gets only so long to close.

    Raises:
        Hung: it takes too long, or the run's limit is over already.
    """
    if _watch is None:
        yield
        return
    _watch.begin(_watch.limits.closing if closing else _watch.limits.example, closing)
    try:
        yield
    except BaseException:
        _watch.end()
        raise
    _watch.end()
    _watch.check_heard()


def begin_example() -> None:
    """An example begins, whose time runs from now; for whoever plays many of them in one go."""
    if _watch is not None and _watch.deadline is not None:
        _watch.begin(_watch.limits.example)


def allow(seconds: float) -> None:
    """The example may take so much longer, since its clock is the real one."""
    if _watch is not None and _watch.deadline is not None and _watch.limits.example is not None:
        _watch.begin(_watch.deadline - time.monotonic() + seconds)


BLOCKED = "it blocks its thread where no signal interrupts it, so that what it had opened could not be closed"
"""What is said besides where last words are needed."""


def leave(code: int) -> None:
    """End the process at once with this exit code, whatever its threads are at."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


_REPEAT_SECONDS = 1.0
"""An exception that is raised in a finaliser, or that somebody swallows, is lost: the alarm goes on."""


class _Watch:
    """One set of limits in force."""

    def __init__(self, limits: Limits, last_words: Callable[[Hung], None] | None) -> None:
        self.limits = limits
        self.deadline: float | None = None
        """When the alarm rings, while the adapter is at work."""
        self._ends = None if limits.run is None else time.monotonic() + limits.run
        self._last_words = last_words
        self._watched = threading.get_ident()
        self._alarmed = False
        self._hung: Hung | None = None

    @contextmanager
    def installed(self) -> Iterator[None]:
        main = threading.current_thread() is threading.main_thread() and hasattr(signal, "setitimer")
        self._alarmed = main and signal.getsignal(signal.SIGALRM) in (signal.SIG_DFL, _ring)
        before = signal.signal(signal.SIGALRM, _ring) if self._alarmed else None
        over = threading.Event()
        if self._last_words is not None:
            threading.Thread(target=self._stand_by, args=(over,), name="fencepost watchdog", daemon=True).start()
        try:
            yield
        finally:
            over.set()
            if self._alarmed:
                signal.setitimer(signal.ITIMER_REAL, 0)
                signal.signal(signal.SIGALRM, before)

    def begin(self, seconds: float | None, closing: bool = False) -> None:
        if not closing:
            self.check_heard()
        now = time.monotonic()
        deadlines = [] if seconds is None else [now + seconds]
        if self._ends is not None and not closing:
            deadlines.append(self._ends)
        self._hung = None
        self.deadline = min(deadlines, default=None)
        if self._alarmed and self.deadline is not None:
            signal.setitimer(signal.ITIMER_REAL, max(self.deadline - now, 1e-6), _REPEAT_SECONDS)

    def end(self) -> None:
        self.deadline = None
        if self._alarmed:
            signal.setitimer(signal.ITIMER_REAL, 0)

    def check_heard(self) -> None:
        """Raise the alarm once more that somebody has swallowed, and gone on as if nothing had been."""
        if self._hung is not None:
            raise self._hung

    def check(self) -> None:
        """Raise `Hung` if the run's limit is over."""
        if self._ends is not None and time.monotonic() >= self._ends:
            raise Hung(_OF_RUN.format(self.limits.run))

    def ring(self, frame: FrameType | None) -> None:
        """Raise `Hung` if time is up; the same one again if the first was lost."""
        if self.deadline is not None and time.monotonic() >= self.deadline:
            global _rung
            _rung = True
            if self._hung is None or not self._hung.stack:
                self._hung = self._told([_stack(frame), *_tasks()])
            raise self._hung

    def _told(self, stacks: list[Frames]) -> Hung:
        """What hangs: the first of the stacks that ends in the adapter."""
        own = next((frames for frames in map(own_frames, stacks) if frames), [])
        verb = verb_of(own) if own else "an example"
        if self._ends is not None and time.monotonic() >= self._ends:
            said = f"{_OF_RUN.format(self.limits.run)}, with {verb} under way"
        else:
            assert self.limits.example is not None
            said = f"{verb} did not come to an end within {self.limits.example:g} s; let it end{self.limits.advice}"
        return Hung(said, "".join(traceback.StackSummary.extract(iter(own)).format()))

    def _stand_by(self, over: threading.Event) -> None:
        """Wait for a deadline that the main thread lets go by."""
        grace = self.limits.grace if self._alarmed else 0
        while not over.wait(min(_REPEAT_SECONDS, self.limits.grace)):
            deadline = self.deadline
            if deadline is not None and time.monotonic() >= deadline + grace:
                assert self._last_words is not None
                frame = sys._current_frames().get(self._watched)
                try:
                    self._last_words(self._hung or self._told([_stack(frame)]))
                except BaseException:  # nobody else is left who could tell, or end the process
                    traceback.print_exc()
                leave(Exit.HARNESS)


_watch: _Watch | None = None
_rung = False


def has_rung() -> bool:
    """Whether anything has hung in this process."""
    return _rung


_OF_RUN = "the run's limit of {:g} s is over"


def _ring(number: int, frame: FrameType | None) -> None:
    if _watch is not None:
        _watch.ring(frame)


def _stack(frame: FrameType | None) -> Frames:
    """The frames from the outermost to this one."""
    return list(traceback.walk_stack(frame))[::-1] if frame is not None else []


def _tasks() -> Iterator[Frames]:
    """The frames of each task of the loop that is running, as deep as its coroutines can be followed."""
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        return
    for task in asyncio.all_tasks(loop):
        frames: Frames = []
        awaited: object = task.get_coro()
        while awaited is not None:
            frame = getattr(awaited, "cr_frame", None) or getattr(awaited, "gi_frame", None)
            if frame is not None:
                frames.append((frame, frame.f_lineno))
            awaited = getattr(awaited, "cr_await", None) or getattr(awaited, "gi_yieldfrom", None)
        yield frames
