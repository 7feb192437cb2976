"""Where PostgreSQL comes from: what a wrong source is told, and that an embedded server outlives nobody."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from fencepost.adapters.contract import AdapterError
from fencepost.adapters.reference.database import PostgresDatabase
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
    ],
)
def test_a_wrong_dsn_is_a_fault_that_says_what_to_do_and_not_the_password(dsn: str, advice: str) -> None:
    message = open_with(dsn)
    assert advice in message
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
if sys.argv[1] != "exit":
    sys.stdin.read()
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
        os._exit(0 if acquire(EMBEDDED) != url else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert acquire(EMBEDDED) == url

    async def ask() -> int | None:
        engine = create_async_engine(url)
        async with engine.connect() as connection:
            answer = await connection.scalar(text("SELECT 1"))
        await engine.dispose()
        return answer

    assert asyncio.run(ask()) == 1
