"""Where PostgreSQL comes from: what a wrong source is told, and that an embedded server outlives nobody."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from fencepost.adapters.contract import AdapterError
from fencepost.adapters.reference.postgres import PostgresDatabase
from fencepost.adapters.reference.server import DSN_VARIABLE, IMAGE_VARIABLE, PostgresSource, acquire
from sqlalchemy import MetaData, text
from sqlalchemy.engine import make_url
from sqlalchemy.ext.asyncio import create_async_engine

EMBEDDED = PostgresSource()


def open_with(dsn: str) -> str:
    """The message of the fault that opening a database by this DSN ends with."""
    with pytest.raises(AdapterError) as error:
        asyncio.run(PostgresDatabase(PostgresSource(dsn=dsn)).open(MetaData()))
    return str(error.value)


@pytest.mark.parametrize(
    ("dsn", "advice"),
    [
        ("postgresql://me:hush@localhost:1/db", "check host and port"),
        ("postgresql://me:hush@host.invalid/db", "check host and port"),
        ("postgresql://me:hush@localhost:54x2/db", "cannot be read"),
        ("not a dsn with hush in it", "cannot be read"),
        ("mysql://me:hush@localhost/db", "needs postgresql"),
        ("postgresql://me:hush@localhost/db?colour=hush", "colour"),
        ("postgresql://me:hush@localhost/db?port=abc", "correct the DSN"),
        ("postgresql://me:hush@/db?host=a&host=b", "correct the DSN"),
        (f"postgresql://me:hush@{'a' * 70}/db", "correct the DSN"),
        ("postgresql://me:hush@localhost/db?sslmode=perhaps", "correct the DSN"),
    ],
)
def test_a_wrong_dsn_is_a_fault_that_says_what_to_do_and_not_the_password(dsn: str, advice: str) -> None:
    message = open_with(dsn)
    assert advice in message
    assert "hush" not in message


def test_a_server_without_encryption_is_told_apart_from_one_that_is_not_there() -> None:
    def refuse(server: socket.socket) -> None:
        client, _ = server.accept()
        with client:
            client.recv(8)
            client.sendall(b"N")

    with socket.create_server(("localhost", 0)) as server:
        thread = threading.Thread(target=refuse, args=(server,))
        thread.start()
        message = open_with(f"postgresql://me:hush@localhost:{server.getsockname()[1]}/db?sslmode=require")
        thread.join()
    assert "rejected SSL upgrade" in message
    assert "hush" not in message


def test_a_server_that_refuses_says_what_to_do() -> None:
    async def make_roles() -> None:
        engine = create_async_engine(acquire(EMBEDDED), isolation_level="AUTOCOMMIT")
        async with engine.connect() as connection:
            await connection.execute(text("CREATE ROLE powerless LOGIN PASSWORD 'hush'"))
        await engine.dispose()

    asyncio.run(make_roles())
    url = make_url(acquire(EMBEDDED)).set(username="powerless", password="hush")
    messages = [
        open_with(changed.render_as_string(hide_password=False))
        for changed in (url, url.set(database="nowhere"), url.set(username="nobody_known"))
    ]
    for message, advice in zip(
        messages, ("GRANT CREATE", "create it or correct", "check user and password"), strict=True
    ):
        assert advice in message
        assert "hush" not in message


def test_the_environment_names_the_source() -> None:
    assert PostgresSource.from_environment({}) == EMBEDDED
    assert PostgresSource.from_environment({DSN_VARIABLE: ""}) == EMBEDDED
    assert PostgresSource.from_environment({DSN_VARIABLE: "postgresql://h/d"}) == PostgresSource(dsn="postgresql://h/d")
    assert PostgresSource.from_environment({IMAGE_VARIABLE: "postgres:17"}) == PostgresSource(image="postgres:17")
    with pytest.raises(AdapterError, match="at most one"):
        acquire(PostgresSource(dsn="postgresql://h/d", image="postgres:17"))


def test_an_image_without_a_docker_daemon_is_a_fault_that_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere/docker.sock")
    with pytest.raises(AdapterError, match="Docker daemon is running") as error:
        acquire(PostgresSource(image="postgres:17"))
    assert DSN_VARIABLE in str(error.value)


CHILD = """
import json, sys
from fencepost.adapters.reference.server import PostgresSource, acquire
if sys.argv[1] == "early":
    print("{}", flush=True)
print(json.dumps({"url": acquire(PostgresSource())}), flush=True)
while sys.stdin.readline():
    print(json.dumps({"url": acquire(PostgresSource())}), flush=True)
"""


def start_child(how: str, temporary: Path) -> subprocess.Popen[str]:
    """A process that starts an embedded server of its own in this folder."""
    return subprocess.Popen(
        [sys.executable, "-c", CHILD, how],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"TMPDIR": str(temporary)},
    )


@pytest.fixture
def temporary() -> Iterator[Path]:
    """An empty folder that any user can reach, which pytest's own are not."""
    with tempfile.TemporaryDirectory(prefix="fencepost-test-") as name:
        folder = Path(name)
        folder.chmod(0o711)
        yield folder


def servers_of(process: psutil.Process) -> list[psutil.Process]:
    """The watchdog, the server, and all that the server started."""
    found = process.children(recursive=True)
    assert any(child.name() == "postgres" for child in found)
    return found


@pytest.mark.parametrize("ending", [signal.SIGKILL, signal.SIGTERM, None], ids=["killed", "terminated", "exits"])
def test_a_process_leaves_no_server_and_no_directory_however_it_ends(
    ending: signal.Signals | None, temporary: Path
) -> None:
    with start_child("stay", temporary) as child:
        assert child.stdout is not None
        url = make_url(json.loads(child.stdout.readline())["url"])
        directory = Path(str(url.query["host"]))
        servers = servers_of(psutil.Process(child.pid))
        assert directory.is_dir()
        if ending is None:
            child.communicate()
        else:
            child.send_signal(ending)
        _, alive = psutil.wait_procs(servers, timeout=30)
        assert alive == []
        assert not directory.exists()


def test_a_server_that_died_is_replaced(temporary: Path) -> None:
    with start_child("stay", temporary) as child:
        assert child.stdin is not None and child.stdout is not None
        first = json.loads(child.stdout.readline())["url"]
        (watchdog,) = psutil.Process(child.pid).children()
        (server,) = watchdog.children()
        server.kill()
        second, deadline = first, time.monotonic() + 30
        while second == first and time.monotonic() < deadline:  # the watchdog removes the directory first
            print(file=child.stdin, flush=True)
            second = json.loads(child.stdout.readline())["url"]
        assert second != first
        assert list(temporary.iterdir()) == [Path(str(make_url(second).query["host"]))]
        child.communicate()
    assert list(temporary.iterdir()) == []


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a process that its parent has ended")
def test_a_server_ends_even_when_its_process_and_its_watchdog_are_killed_together(temporary: Path) -> None:
    with start_child("stay", temporary) as child:
        assert child.stdout is not None
        child.stdout.readline()
        servers = servers_of(psutil.Process(child.pid))
        (watchdog,) = psutil.Process(child.pid).children()
        watchdog.kill()
        child.kill()
        _, alive = psutil.wait_procs(servers, timeout=30)
        for process in alive:
            process.kill()
        assert alive == []


def test_a_process_killed_while_its_server_starts_leaves_nothing(temporary: Path) -> None:
    with start_child("early", temporary) as child:
        assert child.stdout is not None
        child.stdout.readline()
        process = psutil.Process(child.pid)
        while not (started := process.children(recursive=True)):
            assert child.poll() is None
        child.kill()
        _, alive = psutil.wait_procs(started, timeout=30)
        assert alive == []
    assert list(temporary.iterdir()) == []


def test_servers_of_several_processes_are_apart(temporary: Path) -> None:
    with start_child("stay", temporary) as first, start_child("stay", temporary) as second:
        urls = set()
        for child in (first, second):
            assert child.stdout is not None
            urls.add(json.loads(child.stdout.readline())["url"])
        assert len(urls | {acquire(EMBEDDED)}) == 3
        first.communicate()
        second.communicate()
    assert list(temporary.iterdir()) == []


def test_a_forked_child_neither_ends_its_parents_server_nor_keeps_it() -> None:
    url = acquire(EMBEDDED)
    child = os.fork()
    if child == 0:
        status = 1
        try:
            status = 0 if acquire(EMBEDDED) != url else 1
        finally:
            os._exit(status)  # whatever happens, the tests go on in the parent alone
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert acquire(EMBEDDED) == url

    async def ask() -> int | None:
        engine = create_async_engine(url)
        async with engine.connect() as connection:
            answer = await connection.scalar(text("SELECT 1"))
        await engine.dispose()
        return answer

    assert asyncio.run(ask()) == 1
