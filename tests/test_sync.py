"""Adapters with plain methods: they are served like any other, on the one thread, and close what they opened."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fencepost.adapters.contract import Adapter, AdapterError, HookFailed
from fencepost.adapters.registry import adapter_class
from fencepost.adapters.sync import SyncActor, SyncAdapter, accepted, held, hook_of, owner, served
from fencepost.conformance.session import Session
from fencepost.model import commands as c
from fencepost.model import outcomes as o
from fencepost.model.queues import BACKFILL, QueueSpec
from fencepost.model.trace import trace_of

PENDING = o.Row("pending", None, None, None, None, None, 0, 3, None, None, None, None)


class Noting(SyncAdapter):
    """It notes what it is asked for, by whom, and on which thread."""

    notes: list[str]
    threads: set[int]

    def __init__(self) -> None:
        self.notes = []
        self.threads = set()

    def note(self, what: str) -> None:
        self.notes.append(what)
        self.threads.add(threading.get_ident())

    def open(self, queue: QueueSpec) -> None:
        self.note("open")

    def close(self) -> None:
        self.note("close")

    def reset(self) -> None:
        self.note("reset")

    def advance(self, seconds: int) -> None:
        self.note(f"advance {seconds}")

    def snapshot(self) -> dict[c.JobId, o.Row]:
        return {}

    def actor(self, worker: int) -> SyncActor:
        return NotingActor(self, worker)


class NotingActor(SyncActor):
    def __init__(self, adapter: Noting, worker: int) -> None:
        self.adapter, self.worker = adapter, worker
        adapter.note(f"connect {worker}")

    def close(self) -> None:
        self.adapter.note(f"drop {self.worker}")

    def claim(self, command: c.Claim, now: int) -> o.Outcome:
        self.adapter.note(f"claim at {now}")
        return o.Claimed()


@pytest.fixture
def adapter() -> Adapter:
    return served(Noting)()


@pytest.fixture
def run() -> Iterator[Any]:
    loop = asyncio.new_event_loop()
    yield loop.run_until_complete
    loop.close()


def notes(adapter: Any) -> list[str]:
    noted: list[str] = adapter.plain.notes
    return noted


def test_plain_methods_are_called_in_order_on_the_thread_that_asks(adapter: Adapter) -> None:
    with Session(adapter, BACKFILL) as session:
        session.run(session.driver.reset())
        session.run(adapter.actor(1).perform(c.Claim(1), 7))
        session.run(adapter.advance(3))
    assert notes(adapter) == ["open", "reset", "connect 1", "claim at 7", "advance 3", "drop 1", "close"]
    assert adapter.plain.threads == {threading.get_ident()}  # type: ignore[attr-defined]


def test_a_worker_keeps_its_client_until_it_crashes(adapter: Adapter, run: Any) -> None:
    run(adapter.open(BACKFILL))
    actor = adapter.actor(1)
    assert adapter.actor(1) is actor and adapter.actor(2) is not actor
    for command in (c.Claim(1), c.Claim(1), c.Crash(1), c.Claim(1)):
        run(actor.perform(command, 0))
    assert [note for note in notes(adapter) if "claim" not in note] == ["open", "connect 1", "drop 1", "connect 1"]


def test_closing_closes_once_what_was_opened_and_nothing_else(adapter: Adapter, run: Any) -> None:
    run(adapter.close())
    assert notes(adapter) == []
    run(adapter.open(BACKFILL))
    for _ in range(2):
        run(adapter.close())
    assert notes(adapter) == ["open", "close"]


class Stubborn(Noting):
    def actor(self, worker: int) -> SyncActor:
        return StubbornActor(self, worker)


class StubbornActor(NotingActor):
    def close(self) -> None:
        super().close()
        raise OSError("still in use")


def test_a_client_that_cannot_be_closed_keeps_nothing_else_open(run: Any) -> None:
    adapter = served(Stubborn)()
    run(adapter.open(BACKFILL))
    for worker in (1, 2):
        run(adapter.actor(worker).perform(c.Claim(worker), 0))
    with pytest.raises(OSError, match="still in use"):
        run(adapter.close())
    assert notes(adapter)[-3:] == ["drop 2", "drop 1", "close"]


class Folded(Noting):
    """A queue in a file, which writes no `reset` of its own."""

    reset = SyncAdapter.reset

    def open(self, queue: QueueSpec) -> None:
        super().open(queue)
        (Path(self.folder) / "jobs").write_text("jobs")


def test_a_folder_of_ones_own_is_empty_at_each_opening_and_gone_after_the_last(run: Any) -> None:
    adapter = served(Folded)()
    folders = []
    run(adapter.open(BACKFILL))
    for _ in range(2):
        folders.append(Path(adapter.plain.folder))
        assert [file.name for file in folders[-1].iterdir()] == ["jobs"]
        run(adapter.reset())
    run(adapter.close())
    assert not any(folder.exists() for folder in folders) and folders[0] != folders[1]
    assert notes(adapter) == ["open", "close", "open", "close", "open", "close"]


def test_a_verb_that_is_missing_is_named_with_how_to_write_it(adapter: Adapter, run: Any) -> None:
    run(adapter.open(BACKFILL))
    with pytest.raises(AdapterError, match=r"NotingActor has no verb 'renew'; write `def renew\(self, command, now\)`"):
        run(adapter.actor(1).perform(c.Renew(c.Handle(1, 1)), 0))


def test_a_client_has_the_verbs_that_take_a_command_and_the_clock(adapter: Adapter, run: Any) -> None:
    run(adapter.open(BACKFILL))
    actor = adapter.actor(1)
    actor.plain().recover = lambda now: None  # type: ignore[attr-defined]  # a method of the queue's own
    assert [verb for verb in ("claim", "crash", "renew", "recover") if actor.has(verb)] == ["claim", "crash"]


@pytest.mark.parametrize(
    ("hook", "raised"),
    [(None, None), (c.Hook("ok"), None), (c.Hook("raise"), HookFailed), (c.Hook("cancel"), asyncio.CancelledError)],
)
def test_a_hook_is_called_as_a_plain_function(hook: c.Hook | None, raised: type[BaseException] | None) -> None:
    call = hook_of(c.Claim(1, hook=hook))
    if raised is None:
        call((1,))
    else:
        with pytest.raises(raised):
            call((1,))


def test_a_poisoned_hook_raises_for_its_job_alone() -> None:
    call = hook_of(c.Recover(1, c.Hook("poison", 2)))
    call((1,))
    with pytest.raises(HookFailed):
        call((2,))


def test_helpers_say_who_holds_what_and_what_became_of_it() -> None:
    assert owner(c.Claim(2)) == c.worker_name(2)
    assert held(c.Complete(c.Handle("a", 1, 7))) == ("a", c.worker_name(1))
    assert accepted(True, "running") == o.Accepted("running")
    assert accepted("failed") == o.Accepted("failed")
    assert accepted(False, "running") is accepted(None) is accepted("") is o.REJECTED


def test_a_plain_class_is_an_adapter_by_its_name() -> None:
    made = adapter_class(f"{__name__}:Noting")
    assert issubclass(made, Adapter) and made.name == made.__name__ == "Noting"
    assert made.queues is Noting.queues and made.capabilities is Noting.capabilities
    with pytest.raises(AdapterError, match="lacks actor, open, snapshot"):
        adapter_class("fencepost.adapters.sync:SyncAdapter")


def test_what_a_plain_verb_raises_is_told_by_the_verb(adapter: Adapter) -> None:
    with Session(adapter, BACKFILL) as session, pytest.raises(AdapterError, match="enqueue"):
        session.play(trace_of(c.Enqueue()))
