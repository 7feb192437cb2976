"""Ctrl-C and SIGTERM are heard, also where Python would drop the exception that is raised."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator

import pytest
from fencepost.conformance.interrupt import heard


@pytest.fixture(autouse=True)
def as_in_a_terminal() -> Iterator[None]:
    """Python's own handler, whatever the shell that started the tests left in its place."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


class Finalised:
    """An object whose finaliser is interrupted: what is raised there is dropped."""

    def __del__(self) -> None:
        signal.raise_signal(signal.SIGINT)


def test_a_first_ctrl_c_is_raised_by_the_next_check_wherever_it_fell() -> None:
    with heard() as check:
        check()
        Finalised()
        with pytest.raises(KeyboardInterrupt):
            check()


def test_sigterm_is_heard_like_a_first_ctrl_c_and_left_as_it_was() -> None:
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    with heard() as check:
        signal.raise_signal(signal.SIGTERM)
        with pytest.raises(KeyboardInterrupt):
            check()
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_a_second_ctrl_c_is_raised_at_once() -> None:
    with pytest.raises(KeyboardInterrupt), heard():
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_the_first_ctrl_c_says_how_to_stop_at_once(capfd: pytest.CaptureFixture[str]) -> None:
    with heard():
        signal.raise_signal(signal.SIGINT)
    assert "press Ctrl-C again" in capfd.readouterr().err


def test_outside_of_the_main_thread_nothing_is_touched() -> None:
    seen = []

    def work() -> None:
        with heard() as check:
            check()
            seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [signal.default_int_handler]


def test_somebody_elses_handler_stays() -> None:
    def mine(number: int, frame: object) -> None: ...

    before = signal.signal(signal.SIGINT, mine)
    try:
        with heard():
            assert signal.getsignal(signal.SIGINT) is mine
            assert signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL, "each for itself"
    finally:
        signal.signal(signal.SIGINT, before)
