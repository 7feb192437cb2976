"""Queues that are wrong in one way each, for the tests of the command line and of the pytest plugin."""

from __future__ import annotations

import dataclasses
import os
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from fencepost.adapters.contract import AdapterError, Capabilities
from fencepost.adapters.memory import MemoryActor, MemoryAdapter
from fencepost.adapters.reference.adapter import SqliteAdapter
from fencepost.adapters.reference.rules import CONTRACT
from fencepost.model import commands as c
from fencepost.model import outcomes as o
from fencepost.model.queues import QueueSpec


class Late(SqliteAdapter):
    """A completion does not look at the lease."""

    def __init__(self) -> None:
        super().__init__(rules=CONTRACT.without("fence.complete", "lease_valid"))


class Boasting(MemoryAdapter):
    """Every completion is reported as a success."""

    name = "boasting"
    capabilities = Capabilities()

    def actor(self, worker: int) -> MemoryActor:
        return BoastingActor(self._opened())


class BoastingActor(MemoryActor):
    async def complete(self, command: c.Complete, now: int) -> o.Outcome:
        await super().complete(command, now)
        return o.Accepted("succeeded")


class InTheWay(MemoryAdapter):
    """When it is closed, a folder stands where the result was to be written."""

    async def close(self) -> None:
        await super().close()
        Path("result.json").mkdir(exist_ok=True)


class Unreachable(MemoryAdapter):
    """It cannot be opened."""

    async def open(self, queue: QueueSpec) -> None:
        raise AdapterError("the server sleeps; wake it")


class Raising(MemoryAdapter):
    """It raises something of its own in the middle of a run."""

    async def snapshot(self) -> dict[c.JobId, o.Row]:
        raise RuntimeError("out of paper")


class Eventful(MemoryAdapter):
    """Something happens while it is at work: at this one of its resets."""

    at = 50

    def __init__(self) -> None:
        super().__init__()
        self._resets = 0

    async def reset(self) -> None:
        self._resets += 1
        if self._resets == self.at:
            self.happens()
        await super().reset()

    def happens(self) -> None:
        raise NotImplementedError


class Interrupted(Eventful, Boasting):
    """Somebody presses Ctrl-C, long after its first fault was found."""

    at = 500

    def happens(self) -> None:
        raise KeyboardInterrupt


class Announcing(Eventful):
    """It says when it is at work."""

    def happens(self) -> None:
        print("at work", flush=True)


class Signalling(Eventful):
    """Somebody at the terminal presses Ctrl-C: all processes of the group hear it."""

    def happens(self) -> None:
        os.killpg(0, signal.SIGINT)


class Hookless(MemoryAdapter):
    """It declares that it has no hooks."""

    capabilities = dataclasses.replace(MemoryAdapter.capabilities, hooks=False)


class Teams(MemoryAdapter):
    """It serves queues of its own, one by a name that no file can have."""

    queues: ClassVar[Mapping[str, QueueSpec]] = {
        key: QueueSpec(key=key, section="Teams") for key in ("team/reports", "mails")
    }


class Noted(MemoryAdapter):
    """It notes each queue that it opens, in a file that all processes share."""

    async def open(self, queue: QueueSpec) -> None:
        with Path("opened.txt").open("a") as file:
            file.write(f"{queue.key}\n")
        await super().open(queue)


class Dying(Noted):
    """The first process that opens it dies of that."""

    async def open(self, queue: QueueSpec) -> None:
        await super().open(queue)
        try:
            Path("died.txt").touch(exist_ok=False)  # of two that come at the same time, one alone is the first
        except FileExistsError:
            return
        os._exit(1)
