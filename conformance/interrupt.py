"""Ctrl-C that is heard between examples.

Python raises KeyboardInterrupt wherever it happens to be. Inside a callback of the garbage collector (Hypothesis has
one) or a finaliser it is printed and dropped, and a long run goes on as if nothing had been pressed. So the first
Ctrl-C is only noted, and raised where the run can keep what it found; the second one is raised at once.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

_STDERR = 2
_HINT = b"\nstopping after this example; press Ctrl-C again to stop at once\n"


@contextmanager
def heard() -> Iterator[Callable[[], None]]:
    """Yield a check to call between examples: it raises KeyboardInterrupt if Ctrl-C was pressed.

    Does nothing outside of the main thread, or where somebody else handles the signal.
    """
    pressed = False

    def note(number: int, frame: FrameType | None) -> None:
        nonlocal pressed
        if pressed:
            raise KeyboardInterrupt
        pressed = True
        os.write(_STDERR, _HINT)

    def check() -> None:
        if pressed:
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
