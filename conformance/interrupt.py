"""Ctrl-C and SIGTERM that are heard between examples.

Python raises KeyboardInterrupt wherever it happens to be. Inside a callback of the garbage collector (Hypothesis has
one) or a finaliser it is printed and dropped, and a long run goes on as if nothing had been pressed. So the first
Ctrl-C is only noted, and raised where the run can keep what it found; the second one is raised at once. SIGTERM, which
is how a CI system says that the time is over, counts as one: by itself it would end Python without closing anything.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

_STDERR = 2
_HINT = b"\nstopping after this example; press Ctrl-C again to stop at once\n"
_DEFAULTS: dict[signal.Signals, Any] = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: signal.SIG_DFL}
"""The signals that end a run, and the handlers that Python starts with."""


@contextmanager
def heard() -> Iterator[Callable[[], None]]:
    """Yield a check to call between examples: it raises KeyboardInterrupt if Ctrl-C was pressed or SIGTERM was sent.

    Does nothing outside of the main thread, nor about a signal that somebody else handles.
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

    main = threading.current_thread() is threading.main_thread()
    ours = [number for number, default in _DEFAULTS.items() if main and signal.getsignal(number) is default]
    for number in ours:
        signal.signal(number, note)
    try:
        yield check
    finally:
        for number in ours:
            signal.signal(number, _DEFAULTS[number])
