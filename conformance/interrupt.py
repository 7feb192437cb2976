"""Ctrl-C that is not lost.

Python raises KeyboardInterrupt wherever it happens to be. Inside a callback of the garbage collector or a finaliser it
is printed and dropped, and a long run goes on as if nothing had been pressed. `heard` remembers that it was.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def heard() -> Iterator[Callable[[], None]]:
    """Yield a check to call between examples: it raises KeyboardInterrupt if Ctrl-C was pressed and got lost.

    Does nothing outside of the main thread, or where somebody else handles the signal.
    """
    pressed = False

    def note(number: int, frame: FrameType | None) -> None:
        nonlocal pressed
        pressed = True
        raise KeyboardInterrupt

    def check() -> None:
        nonlocal pressed
        if pressed:
            pressed = False
            raise KeyboardInterrupt

    ours = (
        threading.current_thread() is threading.main_thread()
        and signal.getsignal(signal.SIGINT) is signal.default_int_handler
    )
    if ours:
        signal.signal(signal.SIGINT, note)
    try:
        yield check
    finally:
        if ours:
            signal.signal(signal.SIGINT, signal.default_int_handler)
