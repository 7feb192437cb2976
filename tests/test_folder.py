"""The folder of a SQLite file: gone with its process, also when that is killed; nobody else's is ever removed."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from fencepost.adapters.reference.folder import PREFIX, own_folder

CHILD = """
import sys
from fencepost.adapters.reference.folder import own_folder
with own_folder() as folder:
    print(folder, flush=True)
    sys.stdin.read()
"""


def start_child(temporary: Path) -> subprocess.Popen[str]:
    """A process with a folder of its own in this one."""
    environment = os.environ | {"TMPDIR": str(temporary)}
    pipe = subprocess.PIPE
    return subprocess.Popen([sys.executable, "-c", CHILD], stdin=pipe, stdout=pipe, text=True, env=environment)


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that temporary files go to."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


@pytest.fixture
def ended() -> int:
    """The id of a process that has ended."""
    with subprocess.Popen([sys.executable, "-c", ""]) as child:
        return child.pid


def left_behind(temporary: Path, pid: int) -> Path:
    """A folder that looks as if a process of this id had left it, with a file in it."""
    folder = temporary / f"{PREFIX}{pid}-abcdefgh"
    folder.mkdir()
    (folder / "queue.db").touch()
    return folder


def test_a_killed_process_s_folder_is_removed_by_the_next_one_and_a_running_one_s_is_not(temporary: Path) -> None:
    with start_child(temporary) as killed, start_child(temporary) as running:
        assert killed.stdout is not None and running.stdout is not None
        left, used = Path(killed.stdout.readline().strip()), Path(running.stdout.readline().strip())
        killed.send_signal(signal.SIGKILL)
        killed.wait()
        with own_folder() as own:
            assert not left.exists()
            assert set(temporary.iterdir()) == {used, own}
        running.communicate()
    assert list(temporary.iterdir()) == []


def test_a_folder_that_somebody_holds_stays_although_no_such_process_can_be_seen(temporary: Path, ended: int) -> None:
    folder = left_behind(temporary, ended)
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        with own_folder():
            assert (folder / "queue.db").exists()
    finally:
        os.close(handle)
    with own_folder():
        assert not folder.exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_another_user_s_folder_stays(temporary: Path, ended: int) -> None:
    folder = left_behind(temporary, ended)
    os.chown(folder, 65534, 65534)
    with own_folder():
        assert (folder / "queue.db").exists()


def test_what_only_looks_like_a_folder_of_ours_stays(temporary: Path, ended: int) -> None:
    kept = temporary / f"{PREFIX}notes"
    kept.mkdir()
    elsewhere = left_behind(temporary, ended).rename(temporary / "elsewhere")
    (temporary / f"{PREFIX}{ended}-abcdefgh").symlink_to(elsewhere)
    (temporary / f"{PREFIX}{ended}-plainfile").touch()
    os.mkfifo(temporary / f"{PREFIX}{ended}-pipe")
    before = set(temporary.rglob("*"))
    with own_folder():
        assert before <= set(temporary.rglob("*"))


def test_a_folder_of_a_running_process_stays_before_it_is_locked(temporary: Path) -> None:
    folder = left_behind(temporary, os.getpid())
    with own_folder():
        assert folder.exists()


def test_a_folder_in_use_is_locked_for_those_who_cannot_see_its_process(temporary: Path) -> None:
    with own_folder() as folder:
        handle = os.open(folder, os.O_RDONLY)
        try:
            with pytest.raises(BlockingIOError):
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        finally:
            os.close(handle)
