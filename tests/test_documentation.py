"""The documentation tells the truth: its commands run, its failures are real ones, its generated page is current."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from fencepost.conformance.commands.capabilities import capabilities_tables
from fencepost.conformance.commands.catalogue import clauses_page
from fencepost.conformance.options import OPTIONS

ROOT = Path(__file__).parent.parent
PAGES = (
    ROOT / "README.md",
    ROOT / "docs" / "reading-a-failure.md",
    ROOT / "docs" / "capabilities-and-levels.md",
    ROOT / "docs" / "pytest-and-ci.md",
    ROOT / "docs" / "writing-an-adapter.md",
)
ACTIVATE = [".", ".venv/bin/activate"]
COMMAND_LINE = "import shallow; from fencepost.conformance.cli import main; main()"
EXAMPLES = sorted((ROOT / "docs" / "examples").glob("*.py"))
ALL_PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("scenarios/*.md")])


def blocks(page: Path, language: str) -> Iterator[str]:
    yield from re.findall(rf"^```{language}\n(.*?)^```$", page.read_text(encoding="utf-8"), re.M | re.S)


def lines(page: Path) -> list[str]:
    return [line for block in blocks(page, "sh") for line in block.splitlines() if line.strip()]


def commands(page: Path) -> list[list[str]]:
    return [shlex.split(line, comments=True) for line in lines(page)]


def promised(line: str) -> int:
    """The exit code that the page promises: in so many words, or by running a queue that is wrong."""
    said = re.search(r"# exits with (\d)$", line)
    if said is not None:
        return int(said[1])
    command = shlex.split(line, comments=True)
    return int(any("mine:" in argument for argument in command) or command[0] == "pytest")


def timeless(story: str) -> str:
    """A story without the length of the script that met the fault first: that is a matter of luck."""
    return re.sub(r"reduced from \d+ commands", "reduced from n commands", story)


def of_the_project(command: list[str]) -> list[str]:
    """What make would run, told by make itself; an installation that is out of date is none of this test's business."""
    told = subprocess.run(
        ["make", "--dry-run", "--old-file=.venv/.installed", *command[1:]],
        cwd=ROOT, capture_output=True, text=True, check=True,
        env={name: value for name, value in os.environ.items() if not name.startswith("MAKE")},  # we may run below one
    )  # fmt: skip
    (line,) = told.stdout.splitlines()
    return shlex.split(line)


def run(command: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a command of a page as it stands there, but no deeper than it needs to be shown."""
    if command == ACTIVATE:  # these tests run in some environment already
        return subprocess.CompletedProcess(command, 0, "", "")
    if command[0] == "make":
        command, folder = of_the_project(command), ROOT
        if command[1:3] == ["tests", "scenarios"]:
            command = [*command, "--collect-only", "-q"]
    name, *arguments = command
    program = {"fencepost": ("-c", COMMAND_LINE), "pytest": ("-m", "pytest", "-p", "shallow")}[Path(name).name]
    if "--seed=1" in arguments:  # the page shows its story, which tells how it was found
        program = ("-m", "fencepost.conformance.cli")
    if name == "fencepost" and arguments[0] == "run":
        arguments.append("--profile=quick")
        if "--adapter=sqlite" in arguments:
            arguments.append("--queue=backfill")
    elif "conformance" in arguments:
        arguments += ["--profile=quick", "--queue=backfill", "--clause=FENCE-01"]
    elif "fencepost.conformance" in arguments:
        arguments += ["--fencepost-profile=quick", "--fencepost-queue=backfill"]
        if "-m" not in arguments:
            arguments.append("--fencepost-clause=FENCE-01")
    tests = os.pathsep.join(filter(None, [str(Path(__file__).parent), os.environ.get("PYTHONPATH")]))
    return subprocess.run(
        [sys.executable, *program, *arguments],
        cwd=folder, capture_output=True, text=True, env=os.environ | {"PYTHONPATH": tests},
    )  # fmt: skip


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_command_of_a_page_does_what_the_page_says(page: Path, tmp_path: Path) -> None:
    for example in EXAMPLES:  # pages that ask for one say that they are in its folder
        shutil.copy(example, tmp_path)
    for language in ("python", "toml", "yaml"):
        for block in blocks(page, language):
            name, _, text = block.partition("\n")
            (tmp_path / name.removeprefix("# ")).write_text(text)
    said = ""
    asked = lines(page)
    assert asked
    for line in asked:
        ran = run(shlex.split(line, comments=True), tmp_path)
        assert ran.returncode == promised(line), f"{line}\n{ran.stdout}\n{ran.stderr}"
        said += ran.stdout
    for story in blocks(page, "text"):
        assert timeless(story) in timeless(said)


@pytest.mark.parametrize(
    ("page", "example"),
    [("README.md", "shortest.py"), ("docs/writing-an-adapter.md", "plain_adapter.py")],
)
def test_an_example_that_a_page_shows_is_the_one_that_there_is(page: str, example: str) -> None:
    shown = [block for block in blocks(ROOT / page, "python") if block.startswith(f"# {example}\n")]
    (path,) = [each for each in EXAMPLES if each.name == example]
    assert shown == [f"# {example}\n" + path.read_text(encoding="utf-8")]


def test_the_shortest_adapter_is_short() -> None:
    (shortest,) = [example for example in EXAMPLES if example.name == "shortest.py"]
    assert len(shortest.read_text(encoding="utf-8").splitlines()) <= 30


def test_the_readme_says_how_to_find_a_command_before_it_uses_it() -> None:
    """The environment that make installs into, and nothing else, holds `fencepost`."""
    asked = commands(ROOT / "README.md")
    installed = next(at for at, command in enumerate(asked) if command[0] == "make")
    used = next(at for at, command in enumerate(asked) if command[0] in ("fencepost", "pytest"))
    assert installed < asked.index(ACTIVATE) < used
    assert "VENV := .venv\n" in (ROOT / "Makefile").read_text(encoding="utf-8")


def test_every_page_is_looked_at_and_no_other_holds_commands() -> None:
    assert [page for page in ALL_PAGES if page not in PAGES and commands(page)] == []


def test_every_setting_stands_on_the_page_of_settings() -> None:
    page = (ROOT / "docs" / "pytest-and-ci.md").read_text(encoding="utf-8")
    for option in OPTIONS:
        assert f"| `{option.key}` | `--{option.flag}`" in page


def test_the_page_of_clauses_is_current() -> None:
    page = ROOT / "docs" / "clauses.md"
    assert page.read_text(encoding="utf-8") == clauses_page() + "\n", (
        "run `fencepost list --markdown > docs/clauses.md`"
    )


def test_the_tables_of_capabilities_and_levels_are_current() -> None:
    page = ROOT / "docs" / "capabilities-and-levels.md"
    assert f"\n\n{capabilities_tables()}\n\n" in page.read_text(encoding="utf-8"), (
        "put what `fencepost list --capabilities-markdown` prints in the place of the page's tables"
    )


def test_every_link_leads_somewhere() -> None:
    for page in ALL_PAGES:
        for link in re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8")):
            assert (page.parent / link).exists(), f"{page.name}: {link}"
