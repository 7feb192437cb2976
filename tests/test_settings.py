"""What a run is asked for: who outranks whom, and that nothing that means nothing is passed over."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from fencepost.conformance.cli import call
from fencepost.conformance.options import OPTIONS
from fencepost.conformance.selection import Unusable
from fencepost.conformance.settings import Settings, nearest_pyproject, read_settings
from fencepost.reports import result

pytest_plugins = ["pytester"]


@pytest.fixture(autouse=True)
def nowhere_in_particular(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for option in OPTIONS:
        monkeypatch.setenv(option.variable, "")  # so that what a run sets is undone
        monkeypatch.delenv(option.variable)


def table(text: str, folder: Path = Path()) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "pyproject.toml"
    path.write_text(f"[project]\nname = 'theirs'\n\n[tool.fencepost]\n{text}\n")
    return path


def test_every_option_is_a_setting_and_every_setting_an_option() -> None:
    assert [option.key for option in OPTIONS] == [field.alias for field in Settings.model_fields.values()]


def test_options_outrank_variables_and_variables_the_file() -> None:
    path = table('adapter = "memory"\nprofile = "nightly"\nqueues = ["backfill"]\nseed = 3')
    read = read_settings(path, {"adapter": "pg", "queues": ()}, {"FENCEPOST_ADAPTER": "sqlite", "FENCEPOST_SEED": "5"})
    assert (read.adapter, read.seed, read.profile, read.queues) == ("pg", 5, "nightly", ("backfill",))


def test_a_variable_holds_a_list_with_commas_and_an_empty_one_says_nothing() -> None:
    read = read_settings(None, {}, {"FENCEPOST_CLAUSES": "FENCE-01, REC-01", "FENCEPOST_ADAPTER": ""})
    assert (read.clauses, read.adapter) == (("FENCE-01", "REC-01"), None)


def test_an_empty_option_is_no_wish_for_the_default() -> None:
    """A variable that the shell does not know must not make a green run of somebody else's queue."""
    with pytest.raises(Unusable, match="--fencepost-adapter: give a NAME, or leave the option out"):
        read_settings(table('adapter = "memory"'), {"adapter": ""}, {}, prefix="--fencepost-")


def test_a_server_outranks_one_that_was_named_the_other_way() -> None:
    path = table('pg-image = "postgres:17"')
    read = read_settings(path, {}, {"FENCEPOST_PG_DSN": "postgresql://h/d"})
    assert read.pg_image is None and read.pg_dsn is not None
    read.use_server()
    assert (os.environ["FENCEPOST_PG_DSN"], os.environ["FENCEPOST_PG_IMAGE"]) == ("postgresql://h/d", "")


def test_paths_in_the_file_are_relative_to_it() -> None:
    path = table('json = "out/result.json"', Path("project"))
    assert read_settings(path, {}, {}).json_file == Path("project/out/result.json")
    assert read_settings(path, {"json": "mine.json"}, {}).json_file == Path("mine.json")


def test_the_nearest_pyproject_is_the_one_that_counts(tmp_path: Path) -> None:
    table("", tmp_path)
    inner = table("", tmp_path / "inner")
    (tmp_path / "inner" / "deep").mkdir()
    assert nearest_pyproject(tmp_path / "inner" / "deep") == inner


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('adaptr = "pg"', "pyproject.toml: [tool.fencepost]: there is no setting 'adaptr'; did you mean 'adapter'?"),
        ('expected_failures = "x"', "did you mean 'expected-failures'?"),
        ('seed = "7"', "pyproject.toml: [tool.fencepost] seed: must be a whole number"),
        ("seed = true", "must be a whole number"),
        ("adapter = 3", "[tool.fencepost] adapter: must be a text in quotes"),
        ('queues = "backfill"', "[tool.fencepost] queues: must be a list of names, as in queues = [\"…\"]"),
        ("queues = [1]", "must be a list of names"),
        ("json = 1", "[tool.fencepost] json: must be a text in quotes"),
        ('pg-dsn = "postgresql://h/d"\npg-image = "postgres"', "are both given; give at most one of them"),
        ("seed = ", "damaged TOML"),
        ('adapter = ""', "[tool.fencepost] adapter: "),
    ],
)  # fmt: skip
def test_what_the_file_cannot_mean_is_refused(text: str, said: str) -> None:
    with pytest.raises(Unusable) as refused:
        read_settings(table(text), {}, {})
    assert said in str(refused.value)


def test_a_setting_that_is_no_table_is_refused() -> None:
    path = Path("pyproject.toml")
    path.write_text("[tool]\nfencepost = 1\n")
    with pytest.raises(Unusable, match="must be a table of settings"):
        read_settings(path, {}, {})


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("FENCEPOST_ADAPTR", "pg", "there is no variable 'FENCEPOST_ADAPTR'; did you mean 'FENCEPOST_ADAPTER'?"),
        ("FENCEPOST_SEED", "many", "FENCEPOST_SEED: must be a whole number"),
    ],
)
def test_what_a_variable_cannot_mean_is_refused(name: str, text: str, said: str) -> None:
    with pytest.raises(Unusable) as refused:
        read_settings(None, {}, {name: text})
    assert said in str(refused.value)


@pytest.mark.parametrize("text", ['pg-dsn = "postgresql://me:hunter2@h/d"', 'pg-dsn = ["postgresql://me:hunter2@h/d"]'])
def test_a_password_is_never_shown(text: str) -> None:
    try:
        shown = repr(read_settings(table(text), {}, {}))
    except Unusable as error:
        shown = str(error)
    assert "pg" in shown and "hunter2" not in shown


# ------------------------------------------------------------------------------------------------------- command line


@pytest.fixture
def ask(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    def asked(*arguments: str) -> tuple[int, str, str]:
        code = call(arguments)
        said = capsys.readouterr()
        return code, said.out, said.err

    return asked


def test_the_command_line_reads_the_settings(
    ask: Callable[..., tuple[int, str, str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table('adapter = "memory"\nqueues = ["mutation"]\nclauses = ["CLAIM-01"]\nprofile = "nightly"\njson = "r.json"')
    (tmp_path / "src").mkdir()
    monkeypatch.chdir(tmp_path / "src")
    monkeypatch.setenv("FENCEPOST_SEED", "8")
    code, out, _ = ask("run", "--profile=quick")
    assert code == 0
    assert "SELF-CHECK  adapter memory · profile quick · seed 8 · 1 of 1 pair passed" in out
    assert result.read(tmp_path / "r.json").queues == ("mutation",)


NOT_REQUIRED = "[tool.fencepost] require: level-1 not required of this run, which {} narrows to other clauses"


def test_what_the_file_requires_does_not_forbid_a_narrower_run(
    ask: Callable[..., tuple[int, str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    table(
        'adapter = "memory"\nqueues = ["mutation"]\nprofile = "quick"\njson = "r.json"\n'
        'require = ["level-1", "CLAIM-01"]'
    )
    code, out, _ = ask("run", "--clause=CLAIM-01")
    assert code == 0
    assert NOT_REQUIRED.format("--clause") in out
    assert result.read(Path("r.json")).required == ("CLAIM-01",)
    monkeypatch.setenv("FENCEPOST_CLAUSES", "CLAIM-01")
    assert NOT_REQUIRED.format("FENCEPOST_CLAUSES") in ask("run")[1]


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ('clauses = ["CLAIM-01"]', ["--require=level-1"]),
        ('clauses = ["CLAIM-01"]\nrequire = ["level-1"]', []),
        ("", ["--clause=CLAIM-01", "--require=level-1"]),
    ],
    ids=["the option outranks", "both in the file", "both by options"],
)
def test_what_is_required_where_the_run_is_narrowed_or_above_is_refused(
    text: str, options: list[str], ask: Callable[..., tuple[int, str, str]]
) -> None:
    table(f'adapter = "memory"\n{text}')
    code, out, err = ask("run", *options)
    assert (code, out) == (4, "")
    assert "level-1 is required, but the run is narrowed to other clauses" in err


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('adapter = "sqlit"', "[tool.fencepost] adapter: there is no adapter 'sqlit'; did you mean 'sqlite'?"),
        (
            'require = ["levl-1"]',
            "[tool.fencepost] require: there is no clause or level 'levl-1'; did you mean level-1?",
        ),
        ('queues = ["backfil"]', "[tool.fencepost] queues: there is no queue 'backfil'; did you mean 'backfill'?"),
        ('clauses = ["FENCE-99"]', "[tool.fencepost] clauses: there is no clause 'FENCE-99'; did you mean FENCE-"),
        ('profile = "quik"', "[tool.fencepost] profile: there is no profile 'quik'; did you mean 'quick'?"),
        ('junit = "pyproject.toml/x.xml"', "[tool.fencepost] junit pyproject.toml/x.xml: "),
        ('colour = "red"', "there is no setting 'colour'"),
    ],
)
def test_the_command_line_says_where_a_wrong_name_stands(
    text: str, said: str, ask: Callable[..., tuple[int, str, str]]
) -> None:
    table(text)
    code, out, err = ask("run")
    assert (code, out) == (4, "")
    assert said in err


def test_a_file_that_names_no_adapter_is_replayed_on_the_one_of_the_settings(
    ask: Callable[..., tuple[int, str, str]],
) -> None:
    table('adapter = "memory"')
    Path("REL-01-mine.yaml").write_text(
        "fencepost: 1\nid: REL-01-mine\nclause: REL-01\nqueue: backfill\ntitle: a release\n"
        "steps:\n  - {do: enqueue}\n  - {do: claim, worker: 1}\n  - {do: release, handle: 2}\n"
    )
    assert "holds on memory" in ask("replay", "REL-01-mine.yaml")[1]
    assert "holds on sqlite" in ask("replay", "REL-01-mine.yaml", "--adapter=sqlite")[1]


def test_commands_that_run_nothing_need_no_settings(ask: Callable[..., tuple[int, str, str]]) -> None:
    table('adaptr = "pg"')
    assert ask("list")[0] == 0
    assert ask("mutants")[0] == 4


# ------------------------------------------------------------------------------------------------------- pytest

CONTRACT = "-p", "shallow", "--pyargs", "fencepost.conformance"


@pytest.fixture(autouse=True)
def beside_the_plugin_of_the_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent))


def test_pytest_reads_the_settings_of_its_rootdir(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    table('adapter = "memory"\nclauses = ["CLAIM-01"]\nprofile = "quick"\njunit = "out/j.xml"', pytester.path)
    monkeypatch.setenv("FENCEPOST_QUEUES", "mutation")
    ran = pytester.runpytest_subprocess(*CONTRACT, "--fencepost-seed=4")
    assert ran.ret == 0
    assert "SELF-CHECK  adapter memory · profile quick · seed 4 · 1 of 1 pair passed" in ran.stdout.str()
    assert "memory.CLAIM" in (pytester.path / "out" / "j.xml").read_text()


@pytest.mark.parametrize("workers", ["-n0", "-n2"])
def test_pytest_too_sets_aside_what_a_narrower_run_leaves_out(workers: str, pytester: pytest.Pytester) -> None:
    table('adapter = "memory"\nqueues = ["mutation"]\nrequire = ["level-1"]\nprofile = "quick"', pytester.path)
    ran = pytester.runpytest_subprocess(*CONTRACT, "--fencepost-clause=CLAIM-01", workers)
    assert (ran.ret, ran.parseoutcomes()["passed"]) == (0, 1)
    assert ran.stdout.str().count(NOT_REQUIRED.format("--fencepost-clause")) == 1


@pytest.mark.parametrize("workers", ["-n0", "-n2"])
@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('adaptr = "pg"', "there is no setting 'adaptr'; did you mean 'adapter'?"),
        ('adapter = "sqlit"', "[tool.fencepost] adapter: there is no adapter 'sqlit'; did you mean 'sqlite'?"),
        ('clauses = ["FENCE-99"]', "[tool.fencepost] clauses: there is no clause 'FENCE-99'; did you mean FENCE-"),
    ],
)
def test_pytest_refuses_what_means_nothing(text: str, said: str, workers: str, pytester: pytest.Pytester) -> None:
    table(text, pytester.path)
    ran = pytester.runpytest_subprocess(*CONTRACT, workers)
    assert ran.ret == 4
    assert said in ran.stdout.str() + ran.stderr.str()
    assert "Traceback" not in ran.stdout.str() + ran.stderr.str()


def test_pytest_refuses_a_variable_that_means_nothing(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FENCEPOST_PROFIL", "quick")
    ran = pytester.runpytest_subprocess(*CONTRACT)
    assert ran.ret == 4
    assert "did you mean 'FENCEPOST_PROFILE'?" in ran.stderr.str()


def test_other_tests_of_a_project_with_settings_import_no_queue(pytester: pytest.Pytester) -> None:
    """Its adapter is imported when its items are collected, and not before; nor is any folder made."""
    table('adapter = "nowhere:Queue"\njson = "out/result.json"', pytester.path)
    pytester.makepyfile("def test_nothing(): pass")
    assert pytester.runpytest_subprocess().ret == 0
    assert not (pytester.path / "out").exists()


def test_scenarios_are_replayed_on_the_adapter_of_the_settings(pytester: pytest.Pytester) -> None:
    table('adapter = "memory"', pytester.path)
    place = pytester.path / "scenarios" / "REL-01-mine.yaml"
    place.parent.mkdir()
    place.write_text(
        "fencepost: 1\nid: REL-01-mine\nclause: REL-01\nqueue: backfill\ntitle: a release\n"
        "steps:\n  - {do: enqueue}\n  - {do: claim, worker: 1}\n  - {do: release, handle: 2}\n"
    )
    assert pytester.runpytest_subprocess("scenarios").parseoutcomes() == {"passed": 1}
    table('adapter = "memry"', pytester.path)
    ran = pytester.runpytest_subprocess("scenarios")
    assert ran.ret == 4
    assert "did you mean 'memory'?" in ran.stdout.str()
