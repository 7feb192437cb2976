"""`fencepost smoke`: a line for each step of the plumbing, and for each fault what to do about it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import hostile
import pytest
from examples import FOLDER, plain_adapter, shortest
from fencepost.adapters.contract import Adapter, Capabilities
from fencepost.adapters.memory import MemoryAdapter
from fencepost.adapters.reference.adapter import SqliteAdapter
from fencepost.adapters.sync import SyncAdapter, served
from fencepost.conformance import smoke as smoking
from fencepost.conformance.cli import call
from fencepost.conformance.smoke import TRIALS, Line, smoke
from fencepost.conformance.watchdog import Limits
from fencepost.model import outcomes as o
from fencepost.model.queues import QUEUES, QueueSpec

PLAIN = served(hostile.Plain)


def steps(make: Callable[[], Adapter], queue: str = "jobs") -> list[Line]:
    return list(smoke(make, "team.queue:Adapter", queue))


def bad(make: Callable[[], Adapter], queue: str = "jobs") -> dict[str, str]:
    return {line.what: line.hint for line in steps(make, queue) if line.verdict == "bad"}


@pytest.mark.parametrize("make", [PLAIN, served(shortest.Shortest)])
def test_a_sound_adapter_is_good_in_every_step(make: type[Adapter]) -> None:
    lines = steps(make)
    assert {line.verdict for line in lines} == {"good"}
    tried = {trial.verb for trial in TRIALS} & {line.what for line in lines}
    assert tried == next(iter(make.queues.values())).verbs - make.capabilities.without


@pytest.mark.parametrize("queue", QUEUES)
@pytest.mark.parametrize("make", [SqliteAdapter, MemoryAdapter])
def test_every_verb_of_every_queue_is_tried(make: type[Adapter], queue: str) -> None:
    lines = steps(make, queue)
    assert {line.verdict for line in lines} <= {"good", "note"}
    assert QUEUES[queue].verbs <= {line.what for line in lines}


# ---------------------------------------------------------------------------------------------------------- each fault


class Needy(MemoryAdapter):
    def __init__(self, dsn: str) -> None:
        super().__init__()


class Unopenable(hostile.Plain):  # type: ignore[misc, name-defined]
    def open(self, queue: QueueSpec) -> None:
        raise OSError("no space left")


class Sharing(MemoryAdapter):
    def actor(self, worker: int) -> Any:
        return super().actor(0)


class Forgetting(MemoryAdapter):
    def actor(self, worker: int) -> Any:
        self._actors.clear()
        return super().actor(worker)


def declaring(**more: Any) -> type[Adapter]:
    return type("Declaring", (PLAIN,), more)


WRONG_KEY = {"job": plain_adapter.JOBS}
SHORT = {"jobs": QueueSpec("jobs", lease_seconds=30, heartbeat_seconds=20, cancels=False)}
UNTOLD = {"jobs": QueueSpec("jobs", lease_seconds=60, heartbeat_seconds=20, cancels=False, artifacts=True)}


@pytest.mark.parametrize(
    ("make", "step", "hint"),
    [
        (Needy, "it can be made", "give every parameter of its `__init__` a default"),
        (served(Unopenable), "open: queue jobs", "open raised OSError: no space left"),
        (declaring(queues=WRONG_KEY), "what it declares can be true", "queues['job'] has the key 'jobs'"),
        (declaring(queues=SHORT), "what it declares can be true", "let it last at least three heartbeats"),
        (declaring(queues=UNTOLD), "what it declares can be true", "declare fence='generation' or 'attempt_id'"),
        (declaring(queues={}), "what it declares can be true", "declare at least one QueueSpec"),
        (declaring(queues={"jobs": "jobs"}), "what it declares can be true", "make it a QueueSpec"),
        (declaring(capabilities="many"), "what it declares can be true", "make it a Capabilities"),
        (Sharing, "actors: each worker has a client of its own", "two workers share one"),
        (Forgetting, "actors: each worker has a client of its own", "keep the clients in a dict"),
        (hostile.with_actor(hostile.Forgetful), "verbs: renew", "write `renew(self, command, now)`, or name 'renew'"),
        (hostile.showing(lambda rows: list(rows)), "enqueue", "return a dict from job id to Row"),
        (
            hostile.answering("enqueue", lambda _: o.Enqueued("seven")),
            "enqueue",
            "the new job is 'seven'; the snapshot",
        ),
        (hostile.answering("claim", lambda _: o.Claimed()), "claim", "claimed nothing, though there is a pending job"),
        (hostile.answering("claim", lambda _: None), "claim", "claim returned None; return Claimed or HookRaised"),
        (hostile.answering("renew", lambda _: o.REJECTED), "renew", "was refused"),
        (hostile.answering("recover", lambda _: o.Recovered()), "recover", "left a job whose lease ended a second ago"),
        (hostile.answering("complete", lambda _: o.CONFLICT), "complete", "was refused: Conflict()"),
        (hostile.with_actor(hostile.Silent), "complete", "the snapshot shows nothing of it; let the verb commit"),
        (hostile.with_actor(hostile.Tokened), "claim", "declares fence='owner': give it no token"),
        (hostile.with_actor(hostile.Epochal), "time: instants are ticks", "counted as `now` counts them"),
        (hostile.showing(hostile.dated), "claim", "must be int or None; instants are whole ticks"),
        (hostile.with_actor(hostile.Nameless), "time: instants are ticks", "let claims store c.worker_name"),
        (served(hostile.Unreset), "reset: removes all jobs, and actors stay usable", "jobs are left"),
        (hostile.frozen(), "capabilities: what is declared is true", "let `advance` move the queue's clock"),
    ],
)
def test_each_fault_is_told_at_its_step_with_what_to_do(make: Any, step: str, hint: str) -> None:
    queue = next(iter(getattr(make, "queues", QUEUES)), "jobs")
    found = bad(make, queue if make not in (Needy, Sharing, Forgetting) else "backfill")
    assert step in found, found
    assert hint in found[step]


def test_a_queue_that_is_there_again_when_it_is_opened_again_is_told(tmp_path: Path) -> None:
    class Returning(hostile.Plain):  # type: ignore[misc, name-defined]
        folder = str(tmp_path)

        def close(self) -> None:
            self.view.db.execute("INSERT INTO jobs (payload, max_attempts) VALUES ('more', 1)")
            self.view.close()

    found = bad(served(Returning))
    assert (
        "opened again, it holds 1 jobs; let `open` make a new place" in found["close: closes, twice, and opens again"]
    )


def test_connections_that_stay_open_are_told() -> None:
    make, left = hostile.unclosing()
    try:
        assert "let `close` close" in bad(make)["close: leaves no file or connection open"]
    finally:
        for connection in left:
            connection.close()


def test_what_needs_a_step_that_failed_is_not_tried() -> None:
    lines = {line.what: line for line in steps(hostile.answering("claim", lambda _: None))}
    assert lines["complete"].verdict == "not tried" and lines["complete"].hint == "it needs `claim`"
    assert lines["reset: removes all jobs, and actors stay usable"].verdict == "not tried"
    assert lines["enqueue"].verdict == "good"


@pytest.mark.parametrize("where", ["open", "claim", "snapshot"])
@pytest.mark.parametrize("make", [hostile.hanging, hostile.awaiting], ids=["blocking", "awaiting"])
def test_what_hangs_ends_the_test_at_its_step(make: Any, where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(smoking, "LIMITS", Limits(example=1.0, closing=1.0, advice=""))
    made = make(where)
    found = bad(made, next(iter(made.queues)))
    assert any(f"{where} did not come to an end within 1 s; let it end\n" in hint for hint in found.values())


def test_what_is_there_and_not_declared_is_told() -> None:
    class Modest(hostile.Plain):  # type: ignore[misc, name-defined]
        capabilities = Capabilities.only("enqueue", "claim", "complete")

    notes = [line for line in steps(served(Modest)) if line.verdict == "note"]
    assert [line.what for line in notes] == ["present but unclaimed"] * 3
    assert notes[0].hint.startswith("fail: there, although `without` names it")


# ----------------------------------------------------------------------------------------------------- the command line


def test_the_command_says_what_is_next_and_exits_with_0(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(FOLDER)
    assert call(["smoke", "--adapter=plain_adapter:Plain"]) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[0] == "adapter plain_adapter:Plain · queue jobs" and said[1] == "  ✓ it can be made"
    assert said[-1].endswith("steps are good. Next: fencepost run --adapter=plain_adapter:Plain")


def test_the_command_tells_each_fault_below_its_step_and_exits_with_3(capsys: pytest.CaptureFixture[str]) -> None:
    assert call(["smoke", f"--adapter={__name__}:Lame"]) == 3
    said = capsys.readouterr().out
    assert "  ✗ complete\n      complete returned None; return Accepted or Rejected\n" in said
    assert said.splitlines()[-1] == "2 steps failed. Mend the first one, and ask again."


class LameActor(hostile.PlainActor):  # type: ignore[misc, name-defined]
    def complete(self, command: Any, now: int) -> Any:
        super().complete(command, now)


class Lame(hostile.Plain):  # type: ignore[misc, name-defined]
    def actor(self, worker: int) -> Any:
        return LameActor(self.queue(f"{self.folder}/jobs.db"))


def test_the_command_refuses_names_that_stand_for_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert call(["smoke", "--adapter=sqlit"]) == 4
    assert "did you mean 'sqlite'?" in capsys.readouterr().err
    assert call(["smoke", "--adapter=memory", "--queue=backfil"]) == 4
    assert "did you mean 'backfill'?" in capsys.readouterr().err
    assert issubclass(shortest.Shortest, SyncAdapter)
