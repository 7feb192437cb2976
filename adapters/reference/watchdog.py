"""The process that owns an embedded PostgreSQL server: it makes the server, and unmakes it when its parent is gone.

It runs as a script in a session of its own and holds the read end of a pipe whose write end only the parent holds.
End of file there, however the parent ended, means: stop the server at once and remove its directory. It ends too when
the server has, so that the parent can tell. If it is killed itself, Linux stops the server, and the directory stays.
It must never import anything but the standard library, so that it starts in milliseconds and cannot fail with the
parent's modules.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import pwd
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from types import FrameType
from typing import Any

POLL_SECONDS = 0.005
STOP_SECONDS = 5.0
TEMPORARY_LIMIT = 60  # bytes; a socket's path may have 103, and our names below take up to 40

PR_SET_PDEATHSIG = 1
LIBC = ctypes.CDLL(None) if sys.platform == "linux" else None

INITDB = ["--username=postgres", "--auth=trust", "--encoding=UTF8", "--locale=C", "--wal-segsize=4"]
INITDB += ["--no-sync", "--no-instructions", "--no-data-checksums"]

SETTINGS = {
    "listen_addresses": "",
    "max_connections": "60",
    "shared_buffers": "16MB",
    "dynamic_shared_memory_type": "mmap",  # stays inside the directory that is removed
    "io_method": "sync",  # no worker processes for reads that are all in memory
    "fsync": "off",
    "full_page_writes": "off",
    "synchronous_commit": "on",  # off loses acknowledged commits at no gain in speed
    "autovacuum": "off",  # nothing but the actors takes locks; the database's reset vacuums instead
    "jit": "off",
    "max_parallel_workers": "0",
    "wal_level": "minimal",
    "max_wal_senders": "0",
    "max_wal_size": "256MB",
    "checkpoint_timeout": "1h",
    "log_min_messages": "fatal",
}


class SetUpFailed(Exception):
    """The server could not be started; the message says why."""


class ParentGone(Exception):
    """The pipe was closed while the server was being set up."""


class Server:
    """One server in one temporary directory, as the user that may run it."""

    def __init__(self, binaries: Path, gone: threading.Event) -> None:
        self.binaries = binaries
        self.gone = gone
        self.directory = _directory()
        self.postgres: subprocess.Popen[bytes] | None = None
        self._log = self.directory / "log"
        self._as_user: dict[str, Any] = {}

    def start(self) -> None:
        """Set up and start the server; return once it accepts connections on a socket in `directory`.

        Raises:
            SetUpFailed: a program could not be run, or gave up.
            ParentGone: nobody needs the server any more.
        """
        if os.geteuid() == 0:
            self._drop_root()
        data = self.directory / "data"
        self._run("initdb", *INITDB, "--pgdata", str(data))
        settings = SETTINGS | {"unix_socket_directories": str(self.directory)}
        options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        self.postgres = self._spawn("postgres", "-D", str(data), *options)
        while not self._ready(data / "postmaster.pid"):
            if self.postgres.poll() is not None:
                raise SetUpFailed(f"postgres gave up: {self._tail()}")
            if self.gone.wait(POLL_SECONDS):
                raise ParentGone

    def wait(self) -> None:
        """Return when nobody needs the server any more, or when it has ended by itself."""
        assert self.postgres is not None
        ended = self.postgres

        def tell() -> None:
            ended.wait()
            self.gone.set()

        threading.Thread(target=tell, daemon=True).start()
        self.gone.wait()

    def close(self) -> None:
        """Stop the server without a checkpoint and remove all that it wrote."""
        if self.postgres is not None and self.postgres.poll() is None:
            self.postgres.send_signal(signal.SIGQUIT)
            try:
                self.postgres.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                _kill(self.postgres)
        for _ in range(3):  # a killed child of initdb may still be closing files
            shutil.rmtree(self.directory, ignore_errors=True)
            if not self.directory.exists():
                return

    def _drop_root(self) -> None:
        """PostgreSQL refuses to run as root: it runs as `nobody`, from a copy if `nobody` cannot reach the wheel's."""
        try:
            user = pwd.getpwnam("nobody")
        except KeyError:
            raise SetUpFailed("PostgreSQL does not run as root and there is no user `nobody` to run it as") from None
        self._as_user = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
        os.chown(self.directory, user.pw_uid, user.pw_gid)
        try:
            self._run("initdb", "--version")
        except SetUpFailed:
            self._copy_wheel()
            for path in self.directory.rglob("*"):
                os.chown(path, user.pw_uid, user.pw_gid, follow_symlinks=False)

    def _copy_wheel(self) -> None:
        """Into our directory, with the folder of shared libraries beside it that the programs refer to."""
        installed = self.binaries.parent
        package = self.directory / "wheel" / installed.parent.name
        libraries = installed.parent.with_name(f"{package.name}.libs")
        shutil.copytree(installed, package / installed.name, symlinks=True)
        if libraries.exists():
            shutil.copytree(libraries, package.with_name(libraries.name), symlinks=True)
        self.binaries = package / installed.name / "bin"

    def _spawn(self, program: str, *arguments: str) -> subprocess.Popen[bytes]:
        with self._log.open("ab") as log:
            try:
                return subprocess.Popen(
                    [str(self.binaries / program), *arguments],
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    cwd=self.directory,
                    env={"PATH": os.defpath, "LC_ALL": "C", "TZ": "UTC"},
                    start_new_session=True,
                    preexec_fn=_end_with_parent,
                    **self._as_user,
                )
            except OSError as error:
                raise SetUpFailed(f"{program} cannot be run: {error.strerror}") from None

    def _run(self, program: str, *arguments: str) -> None:
        process = self._spawn(program, *arguments)
        while process.poll() is None:
            if self.gone.wait(POLL_SECONDS):
                _kill(process)
                raise ParentGone
        if process.returncode != 0:
            raise SetUpFailed(f"{program} failed: {self._tail()}")

    def _ready(self, file: Path) -> bool:
        """The server writes its state into the eighth line of its lock file."""
        try:
            lines = file.read_text().splitlines()
        except OSError:
            return False
        return len(lines) >= 8 and lines[7].strip() == "ready"

    def _tail(self) -> str:
        return " ".join(self._log.read_text(errors="replace").split())[-500:] or "it said nothing"


def _end_with_parent() -> None:
    """Have the kernel send this process SIGQUIT, which stops PostgreSQL at once, when the thread that started it ends.

    Runs between fork and exec, after root was dropped, which would undo it. The watchdog's main thread starts all
    programs, and it ends last.
    """
    if LIBC is not None:
        LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGQUIT, 0, 0, 0)


def _kill(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _directory() -> Path:
    """A fresh directory for its owner alone, short enough for a socket's path, and in reach when root is dropped."""
    for parent in (Path(tempfile.gettempdir()), Path("/tmp")):
        short = len(os.fsencode(parent)) <= TEMPORARY_LIMIT
        in_reach = os.geteuid() != 0 or all(path.stat().st_mode & stat.S_IXOTH for path in (parent, *parent.parents))
        if short and in_reach:
            return Path(tempfile.mkdtemp(prefix="fencepost-pg-", dir=parent))
    raise SetUpFailed("neither TMPDIR nor /tmp has a short path that every user can pass")


def _wait_for_end_of_file(gone: threading.Event) -> None:
    while os.read(sys.stdin.fileno(), 1024):
        pass
    gone.set()


def main(binaries: str) -> None:
    """Serve until end of file on standard input; answer one JSON line, `{"directory"}` or `{"error"}`."""
    gone = threading.Event()

    def stop(number: int, frame: FrameType | None) -> None:
        gone.set()

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, stop)
    threading.Thread(target=_wait_for_end_of_file, args=(gone,), daemon=True).start()
    try:
        with contextlib.closing(Server(Path(binaries), gone)) as server:
            server.start()
            _answer({"directory": str(server.directory)})
            server.wait()
    except (SetUpFailed, OSError) as error:
        _answer({"error": str(error)})
    except ParentGone:
        pass


def _answer(message: dict[str, str]) -> None:
    with contextlib.suppress(BrokenPipeError):
        print(json.dumps(message), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
