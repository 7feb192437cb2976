"""`fencepost init-adapter`: a skeleton that runs at once, and says of each method that is not written what to write."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from fencepost.adapters import skeleton
from fencepost.adapters.contract import Adapter
from fencepost.adapters.registry import adapter_class
from fencepost.adapters.sync import served
from fencepost.conformance.cli import call
from fencepost.conformance.commands.init_adapter import adapter_text
from fencepost.conformance.smoke import smoke
from fencepost.model import commands as c

Written = tuple[int, str, str]


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    before = set(sys.modules)
    yield
    for name in set(sys.modules) - before:
        if getattr(sys.modules[name], "__file__", "") == str(tmp_path / f"{name}.py"):
            del sys.modules[name]


@pytest.mark.parametrize("flags", [[], ["--async"]], ids=["plain", "async"])
def test_a_skeleton_runs_at_once_and_fails_honestly(flags: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert call(["init-adapter", "my_queue", *flags]) == 0
    said = capsys.readouterr().out
    assert "my_queue.py is written" in said and "fencepost smoke --adapter=my_queue:MyQueue" in said
    assert call(["smoke", "--adapter=my_queue:MyQueue"]) == 3
    told = capsys.readouterr().out
    assert "  ✗ open: queue jobs\n      write `open`: make an empty queue in a place of its own" in told
    assert call(["run", "--adapter=my_queue:MyQueue", "--profile=quick"]) == 3
    error = capsys.readouterr().err
    assert error.startswith("Error: fencepost could not go on: write `open`: ")
    assert "Traceback" not in error and "File" not in error


OPENED = """
from {name} import {made} as Skeleton, {made}Actor

class Opened(Skeleton):
    {asynchronous}def open(self, queue): pass
    {asynchronous}def reset(self): pass
    {asynchronous}def snapshot(self): return {{}}
"""


@pytest.mark.parametrize("asynchronous", [False, True], ids=["plain", "async"])
def test_each_verb_that_is_not_written_says_what_it_must_return(asynchronous: bool) -> None:
    Path("mine.py").write_text(adapter_text("mine", "Mine", asynchronous))
    text = OPENED.format(name="mine", made="Mine", asynchronous="async " if asynchronous else "")
    Path("opened.py").write_text(text)
    make = adapter_class("opened:Opened")
    lines = {line.what: line for line in smoke(make, "opened:Opened", "jobs")}
    assert lines["enqueue"].hint == (
        "write `enqueue`: add a pending job with command.max_attempts; return o.Enqueued(its id)"
    )
    assert lines["claim"].verdict == "not tried"
    verbs = make.serves("jobs").verbs - make.capabilities.without - {"crash"}
    told = re.findall(r'"write `(\w+)`: .*?\)$', Path("mine.py").read_text(), re.M | re.S)
    assert verbs == set(told) - {"open", "reset", "snapshot"}
    for verb in verbs:
        (todo,) = re.findall(rf'AdapterError\(\s*"write `{verb}`.*?\)\n\n', Path("mine.py").read_text(), re.S)
        assert "return" in todo and "o." in todo, verb


@pytest.mark.parametrize("asynchronous", [False, True], ids=["plain", "async"])
def test_the_adapter_is_named_after_the_module_and_nothing_is_left_of_the_skeleton(asynchronous: bool) -> None:
    text = adapter_text("night_jobs", "NightJobs", asynchronous)
    assert "keleton" not in text
    tree = ast.parse(text)
    classes = {each.name: each for each in tree.body if isinstance(each, ast.ClassDef)}
    assert set(classes) == {"NightJobs", "NightJobsActor"}
    methods = [each for made in classes.values() for each in made.body if isinstance(each, ast.AsyncFunctionDef)]
    assert bool(methods) == asynchronous
    assert "--adapter=night_jobs:NightJobs" in text


def test_an_async_skeleton_has_the_methods_of_the_contract_as_the_contract_has_them(tmp_path: Path) -> None:
    Path("mine.py").write_text(adapter_text("mine", "Mine", True))
    make = adapter_class("mine:Mine")
    assert issubclass(make, Adapter) and not hasattr(make, "kind")
    adapter = make()
    assert adapter.actor(1) is adapter.actor(1) is not adapter.actor(2)
    assert adapter.actor(1).has("claim")


def test_the_skeleton_in_the_package_is_a_plain_adapter_itself() -> None:
    made = served(skeleton.Skeleton)
    assert made.capabilities.without <= {kind.verb for kind in c.COMMANDS}


# ------------------------------------------------------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("my-queue", "give a name of letters, digits and underscores, such as 'my_queue'"),
        ("my queue", "such as 'my_queue'"),
        ("2nd", "give a name of letters, digits and underscores"),
        ("class", "cannot be imported as a module"),
        ("", "cannot be imported as a module"),
        ("here/mine", "names a folder; give the bare name of a module"),
        ("mine.py", "give the name without '.py', as in `fencepost init-adapter mine`"),
        ("queue", "there is a module 'queue' already, which a file of that name would hide"),
        ("pytest", "give another name, such as 'pytest_adapter'"),
    ],
)
def test_a_name_that_cannot_be_used_is_refused_with_advice(
    name: str, said: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert call(["init-adapter", name]) == 4
    assert said in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_there_stays_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    Path("mine.py").write_text("mine")
    assert call(["init-adapter", "mine"]) == 4
    assert "mine.py is there already, and stays as it is; give another name" in capsys.readouterr().err
    assert Path("mine.py").read_text() == "mine"


def test_a_folder_of_that_name_is_no_place(capsys: pytest.CaptureFixture[str]) -> None:
    Path("mine.py").mkdir()
    assert call(["init-adapter", "mine"]) == 4
    assert "is there already" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "made"),
    [
        ("my_queue", "MyQueue"),
        ("q2", "Q2"),
        ("sync", "SyncQueue"),
        ("_", "Queue"),
        ("capabilities", "CapabilitiesQueue"),
    ],
)
def test_no_class_is_called_like_something_that_the_skeleton_uses(name: str, made: str) -> None:
    assert call(["init-adapter", name]) == 0
    assert adapter_class(f"{name}:{made}").__name__ == made
