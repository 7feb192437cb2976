"""A temporary folder that lasts as long as its process, and the removal of those whose process was killed.

The process holds a lock on its folder, which the kernel releases however the process ends. It must never remove a
folder that is another user's, or that anybody might still use.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

PREFIX = "fencepost-sqlite-"
_OURS = re.compile(PREFIX + r"(?P<pid>\d{1,9})-\w+")


@contextlib.contextmanager
def own_folder() -> Iterator[Path]:
    """A fresh folder for our user alone, removed at the end; first those that killed processes left are removed.

    Raises:
        OSError: there is no place for it.
    """
    _remove_left_behind(Path(tempfile.gettempdir()))
    with tempfile.TemporaryDirectory(prefix=f"{PREFIX}{os.getpid()}-") as name, _locked(name):
        yield Path(name)


def _remove_left_behind(parent: Path) -> None:
    for folder in parent.glob(f"{PREFIX}*"):
        # A folder is made before it is locked, so the lock alone is not enough; nor is the process alone, since one of
        # another container that shares the folder cannot be seen.
        named = _OURS.fullmatch(folder.name)
        if named is None or _runs(int(named["pid"])):
            continue
        with contextlib.suppress(OSError), _locked(folder):
            if folder.lstat().st_uid == os.geteuid():
                shutil.rmtree(folder, ignore_errors=True)  # which refuses a symbolic link


def _runs(pid: int) -> bool:
    """Whether there is such a process, even if it is another one by now."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


@contextlib.contextmanager
def _locked(folder: str | Path) -> Iterator[None]:
    """Raises OSError if another process holds the lock, or if it is no folder."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(handle)
