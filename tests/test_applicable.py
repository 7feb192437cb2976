"""What applies to a queue as an adapter can drive it, what is a gap and what a declaration, and the tables of that."""

from __future__ import annotations

import re
from dataclasses import fields, replace

import pytest
from fencepost.adapters.contract import Capabilities
from fencepost.conformance.applicable import driven_cell
from fencepost.conformance.cli import call
from fencepost.conformance.commands.capabilities import capabilities_tables, meanings
from fencepost.model.applicability import NEEDS, Cell, cell
from fencepost.model.clauses import BUILT, CLAUSES, LEVELS, up_to
from fencepost.model.queues import BACKFILL, BUILD, MUTATION, SCREENSHOT, QueueSpec

ABLE = Capabilities(gate="pg", row_locks=True)
OWN = (BUILD, SCREENSHOT, BACKFILL, MUTATION)
PLAIN = replace(BACKFILL, key="jobs", cancels=False)
OPEN = replace(PLAIN, ordered=False)


def test_all_that_a_queue_declares_applies_where_everything_can_be_driven() -> None:
    for queue in OWN:
        for clause in CLAUSES:
            assert driven_cell(clause, queue, ABLE) == cell(clause, queue)


@pytest.mark.parametrize(
    ("changed", "clause", "why"),
    [
        ({"gate": "none"}, "CLAIM-06", "the adapter declares no gate: its statements cannot be scheduled"),
        ({"counts_statements": False}, "REC-06", "the adapter does not count statements"),
        ({"hooks": False}, "CLAIM-12", "backfill is driven without hooks"),
        ({"without": frozenset({"probe"})}, "CLAIM-09", "backfill is not asked to probe"),
        ({"without": frozenset({"request_cancel"})}, "CANCEL-02", "backfill is not asked to request_cancel"),
    ],
)
def test_what_merely_cannot_be_driven_is_a_gap(changed: dict[str, object], clause: str, why: str) -> None:
    assert driven_cell(clause, BACKFILL, ABLE).status == "applies"
    assert driven_cell(clause, BACKFILL, replace(ABLE, **changed)) == Cell("not applicable", why, gap=True)


@pytest.mark.parametrize(
    ("queue", "clause", "why"),
    [
        (BUILD, "CANCEL-01", "build has no cancel"),
        (BACKFILL, "CLAIM-03", "backfill declares no back-off: every pending job is due"),
        (BACKFILL, "FENCE-03", "backfill declares an owner-only fence: it cannot tell a worker's older handle"),
        (MUTATION, "INV-5", "mutation stores no artifacts"),
        (SCREENSHOT, "DEAD-01", "screenshot declares no deadline"),
        (OPEN, "CLAIM-08", "jobs declares no order of its claims"),
        (PLAIN, "CLAIM-14", "jobs declares nothing that keeps a pending job from a claim"),
    ],
)
def test_what_a_queue_declares_not_to_have_is_none(queue: QueueSpec, clause: str, why: str) -> None:
    assert driven_cell(clause, queue, ABLE) == Cell("not applicable", why, gap=False)


def test_what_the_queue_lacks_is_told_before_what_the_adapter_lacks() -> None:
    assert driven_cell("CANCEL-09", BUILD, Capabilities(gate="none")).reason == "build has no cancel"


def test_every_need_names_what_queues_declare() -> None:
    verbs = frozenset().union(*(queue.verbs for queue in OWN))
    for clause, needs in NEEDS.items():
        for need in needs:
            assert all(isinstance(getattr(BACKFILL, flag), bool) for flag in need.flags), clause
            assert verbs >= set(need.verbs), clause
            assert need.flags or need.verbs, clause
            assert need.gap == (not need.flags or need.flags == ("hooks",)), clause


def rows(title: str) -> dict[str, list[str]]:
    """The rows of one of the tables, by their first cell."""
    section = capabilities_tables().partition(f"### {title}")[2].partition("###")[0]
    lines = (line.strip("| ").split(" | ") for line in section.splitlines() if line.startswith("|"))
    return {first.strip("`"): rest for first, *rest in lines}


@pytest.mark.parametrize("declared", [QueueSpec, Capabilities])
def test_every_field_says_what_it_means_and_names_clauses_that_exist(declared: type) -> None:
    told = rows("What the queue is" if declared is QueueSpec else "What can be driven")
    for field in fields(declared):
        if field.init:
            meaning = meanings(declared)[field.name]
            assert meaning.endswith(".") and told[field.name][1] == meaning
            assert set(re.findall(r"\b[A-Z]+-\d+\b", meaning)) <= set(CLAUSES)


@pytest.mark.parametrize(
    ("field", "clauses"),
    [
        ("cancels", "CLAIM-02, CANCEL-01"),
        ("fence", "FENCE-03, FENCE-04, FENCE-07, REC-09, INV-5"),
        ("backoff_seconds", "CLAIM-03, CLAIM-14 (or `deadline`, `ordered=False`, `request_cancel`, `plant`)"),
        ("ordered", "CLAIM-08"),
        ("completion_wins", "–"),
    ],
)
def test_the_table_of_queues_names_what_needs_a_field(field: str, clauses: str) -> None:
    assert rows("What the queue is")[field][2].startswith(clauses)


def test_the_table_of_adapters_names_what_needs_a_capability() -> None:
    told = rows("What can be driven")
    assert told["hooks"][2] == "CLAIM-12, REC-08, REC-12"
    assert told["gate"][2] == "CLAIM-06, CLAIM-11, CANCEL-09, REC-07, CLAIM-14 (in part), REC-02 (in part)"
    assert told["counts_statements"][2] == "REC-06"


def has(queue: QueueSpec, other: str) -> bool:
    """Whether a queue has this field, or serves this verb, as a table writes it."""
    name = other.strip("`")
    if name.endswith("=False"):
        return not getattr(queue, name.removesuffix("=False"))
    return name in queue.verbs or bool(getattr(queue, name, False))


def test_the_table_of_verbs_is_what_becomes_inapplicable_without_one() -> None:
    told = rows("Verbs that clauses need")
    for queue in OWN:
        for verb in queue.verbs:
            left = replace(queue, without=frozenset({verb}))
            gone = [c for c in CLAUSES if cell(c, queue).status == "applies" and cell(c, left).status != "applies"]
            named = re.findall(r"([A-Z]+-\d+)(?: \(or ([^)]*)\))?", told[verb][0] if verb in told else "")
            needed = [clause for clause, others in named if not any(has(left, each) for each in others.split(", "))]
            assert gone == [clause for clause in needed if cell(clause, queue).status == "applies"], verb


def test_the_command_line_prints_the_tables(capsys: pytest.CaptureFixture[str]) -> None:
    assert call(["list", "--capabilities-markdown"]) == 0
    assert capsys.readouterr().out == capabilities_tables() + "\n"


def test_each_level_includes_those_below_it_and_each_clause_stands_at_its_own() -> None:
    told = rows("Clauses by level")
    for name, level in LEVELS.items():
        assert name == f"level-{level}"
        own = [clause.id for clause in CLAUSES.values() if clause.level == level]
        built, not_built = (set(cell.split(", ")) - {"–"} for cell in told[str(level)])
        assert built == set(own) & set(BUILT) and not_built == set(own) - set(BUILT)
        assert set(up_to(level)) >= {*own, *(c for lower in LEVELS.values() if lower < level for c in up_to(lower))}
    assert not {clause for clause in up_to(3) if CLAUSES[clause].level == "task-v2"}
