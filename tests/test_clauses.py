"""The registry holds the whole contract, and the applicability table answers for every clause and queue."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from fencepost.model.applicability import TABLE, applies, cell, pairs
from fencepost.model.clauses import BUILT, CLAUSES, lookup
from fencepost.model.queues import ALL_QUEUES, BACKFILL, MUTATION, QueueSpec


def numbered(family: str, last: int, width: int = 2) -> set[str]:
    return {f"{family}-{n:0{width}d}" for n in range(1, last + 1)}


FAMILY_SIZES = {
    "CLAIM": 15, "LEASE": 7, "FENCE": 7, "REL": 1, "TERM": 4, "CANCEL": 9, "REC": 13, "DEAD": 1, "ATT": 2, "ERR": 3,
    "IMG": 3, "BATCH": 4, "RENDER": 6, "RUN": 3, "TX": 3, "RETRY": 5, "PROF": 1, "GATE": 3, "BENCH": 1,
}  # fmt: skip
TASK_V2_SIZES = {
    "TASK": 4, "ACC": 7, "DEL": 4, "WATCH": 3, "CXL": 2, "PRIV": 2, "EVT": 2, "UI": 3, "MIG": 1, "FAULT": 9,
    "DOCTOR": 1,
}  # fmt: skip
JOB_CLAUSES = set().union(*(numbered(f, n) for f, n in FAMILY_SIZES.items()), numbered("INV", 7, width=1))
TASK_CLAUSES = set().union(*(numbered(f, n) for f, n in TASK_V2_SIZES.items()))

BUILT_BY_ENGINE = {
    "sequential": {
        "CLAIM-01", "CLAIM-02", "CLAIM-03", "CLAIM-04", "CLAIM-05", "CLAIM-07", "CLAIM-08", "CLAIM-09", "CLAIM-12",
        "CLAIM-14", "CLAIM-15", "LEASE-02", "LEASE-03", "LEASE-04", "LEASE-07", "FENCE-01", "FENCE-02", "FENCE-03",
        "FENCE-04", "FENCE-05", "FENCE-06", "FENCE-07", "REL-01",
        "TERM-01", "TERM-02", "TERM-03", "TERM-04",
        "CANCEL-01", "CANCEL-02", "CANCEL-03", "CANCEL-04", "CANCEL-05", "CANCEL-06",
        "REC-01", "REC-02", "REC-03", "REC-04", "REC-05", "REC-06", "REC-08", "REC-09", "REC-10", "REC-12",
        "DEAD-01", "ATT-01", "ATT-02", "ERR-02", "ERR-03", "INV-5", "INV-6", "INV-7",
    },
    "interleaved": {"CLAIM-06", "CLAIM-11", "CANCEL-09", "REC-07"},
    "table": {"LEASE-01", "ERR-01"},
    "direct": {"CLAIM-13"},
}  # fmt: skip


def test_the_registry_holds_every_clause_of_the_contract() -> None:
    assert set(CLAUSES) == JOB_CLAUSES | TASK_CLAUSES
    assert len(CLAUSES) == 136
    assert all(clause.id == key for key, clause in CLAUSES.items())


def test_no_two_clauses_say_the_same() -> None:
    assert len({clause.title for clause in CLAUSES.values()}) == len(CLAUSES)
    assert all(clause.title.strip() and "\n" not in clause.title for clause in CLAUSES.values())


def test_every_clause_names_its_source() -> None:
    source = re.compile(r"(R§\d+(\.\d)?|T§\d+(\.\d)?|P§\d(\.\d)?|P CP\d)")
    unsourced = {c.id for c in CLAUSES.values() if not all(source.fullmatch(part) for part in c.section.split(", "))}
    assert unsourced == {c.id for c in CLAUSES.values() if c.section == "ours"} == {"REL-01", "REC-12", "RETRY-04"}


def test_levels() -> None:
    by_level = Counter(clause.level for clause in CLAUSES.values())
    assert by_level == {1: 13, 2: 27, 3: 58, "task-v2": 38}
    assert {c.id for c in CLAUSES.values() if c.level == "task-v2"} == TASK_CLAUSES
    assert {c.id for c in CLAUSES.values() if c.level == 1} == {
        "CLAIM-01", "CLAIM-02", "CLAIM-05", "CLAIM-06", "CLAIM-07", "CLAIM-09", "CLAIM-11", "CLAIM-12", "CLAIM-13",
        "TERM-01", "TERM-02", "INV-6", "INV-7",
    }  # fmt: skip
    assert {c.id for c in CLAUSES.values() if c.level == 2} == (
        (numbered("LEASE", 7) - {"LEASE-05"})
        | (numbered("FENCE", 3) | {"FENCE-06"})
        | (numbered("CANCEL", 6) | {"CANCEL-09"})
        | numbered("REC", 8)
        | {"ATT-01", "TERM-03"}
    )


def test_only_recommendations_are_no_musts() -> None:
    assert {clause.id for clause in CLAUSES.values() if not clause.must} == {"ACC-05", "WATCH-03"}


def test_what_this_version_builds_and_with_which_engine() -> None:
    assert set(BUILT) == set().union(*BUILT_BY_ENGINE.values())
    for engine, ids in BUILT_BY_ENGINE.items():
        assert {clause.id for clause in CLAUSES.values() if clause.engine == engine} == ids
    assert {clause.id for clause in CLAUSES.values() if clause.also_interleaved} == {"CLAIM-14", "REC-02"}


def test_lookup_finds_a_clause() -> None:
    assert lookup("FENCE-02") is CLAUSES["FENCE-02"]


@pytest.mark.parametrize(
    ("asked", "nearest"), [("FENCE-2", "FENCE-02"), ("claim-06", "CLAIM-06"), ("CANCLE-04", "CANCEL-04")]
)
def test_lookup_names_the_nearest_clause(asked: str, nearest: str) -> None:
    with pytest.raises(ValueError, match=f"{re.escape(repr(asked))}.*{nearest}"):
        lookup(asked)


def test_lookup_of_anything_else_still_explains_itself() -> None:
    with pytest.raises(ValueError, match="no clause ''"):
        lookup("")


def test_the_table_is_complete_and_every_empty_cell_has_a_reason() -> None:
    assert list(TABLE) == [(clause, queue) for clause in CLAUSES for queue in ALL_QUEUES]
    assert all(bool(each.reason) == (each.status != "applies") for each in TABLE.values())


def test_the_number_of_cells_is_pinned() -> None:
    assert Counter(each.status for each in TABLE.values()) == {"applies": 194, "not applicable": 38, "not built": 1264}


NO_CANCEL = "CLAIM-02", *(f"CANCEL-{n:02d}" for n in (1, 2, 3, 4, 5, 6, 9)), "INV-6"
OF_BUILDS = "CLAIM-04", "CLAIM-15", "FENCE-04", "FENCE-05", "FENCE-07", "DEAD-01", "INV-5"
SPARED = {
    "build": {"CLAIM-03", "REC-09", *NO_CANCEL},
    "screenshot": {"CLAIM-03", "FENCE-03", "REC-09", *OF_BUILDS},
    "backfill": {"CLAIM-03", "FENCE-03", "REC-09", *OF_BUILDS},
    "mutation": {*OF_BUILDS},
}
REASONS = {
    **dict.fromkeys(NO_CANCEL, "has no cancel"),
    "CLAIM-03": "declares no back-off: every pending job is due",
    "CLAIM-04": "declares no deadline",
    "CLAIM-15": "has no queue predicate of its own and no claim of one job",
    "FENCE-03": "declares an owner-only fence: it cannot tell a worker's older handle",
    "FENCE-04": "stores no artifacts",
    "FENCE-05": "has no idempotent completion: TERM-02 judges a repeated one",
    "FENCE-07": "stores no artifacts",
    "REC-09": "counts no generations: whose row any other value was computed from nobody can tell",
    "DEAD-01": "declares no deadline",
    "INV-5": "stores no artifacts",
}


def test_what_a_queue_is_spared_it_declares_not_to_have() -> None:
    spared = {key: found for key, found in TABLE.items() if found.status == "not applicable"}
    assert set(spared) == {(clause, queue) for queue, clauses in SPARED.items() for clause in clauses}
    for (clause, queue), found in spared.items():
        assert found.reason == f"{queue} {REASONS[clause]}"
        assert not found.gap, "the queue lacks it, whoever drives it"


def applying(spec: QueueSpec) -> set[str]:
    return {clause for clause in CLAUSES if cell(clause, spec).status == "applies"}


@pytest.mark.parametrize(
    ("changes", "gained", "lost"),
    [
        ({"deadline": True}, {"CLAIM-04", "DEAD-01"}, set()),
        ({"claims_by_id": True}, {"CLAIM-15"}, set()),
        ({"repeats_complete": True}, {"FENCE-05"}, set()),
        ({"backoff_seconds": 5}, {"CLAIM-03"}, set()),
        ({"fence": "attempt_id"}, {"FENCE-03"}, set()),
        ({"fence": "generation"}, {"FENCE-03", "REC-09"}, set()),
        ({"fence": "attempt_id", "artifacts": True}, {"FENCE-03", "FENCE-04", "FENCE-07", "INV-5"}, set()),
        ({"artifacts": True}, set(), set()),
        ({"cancels": False}, set(), {*NO_CANCEL, "CLAIM-14"}),
        ({"cancels": False, "claims_by_id": True}, {"CLAIM-15"}, {*NO_CANCEL}),
        ({"ordered": False}, set(), {"CLAIM-08"}),
        ({"ordered": False, "cancels": False}, set(), {*NO_CANCEL, "CLAIM-08"}),
        ({"monotonic_ids": False}, set(), set()),
        ({"hooks": False}, set(), {"CLAIM-12", "REC-08", "REC-12"}),
        ({"completion_wins": True, "stores_code": False, "exact_clock": False}, set(), set()),
        ({"terminal": BACKFILL.terminal | {"skipped"}}, set(), set()),
    ],
    ids=lambda each: ", ".join(map(str, sorted(each) if isinstance(each, (set, frozenset)) else each)),
)
def test_what_a_queue_of_ones_own_declares_decides_what_applies(
    changes: dict[str, Any], gained: set[str], lost: set[str]
) -> None:
    declared = replace(BACKFILL, key="own", **changes)
    assert applying(declared) - applying(BACKFILL) == gained
    assert applying(BACKFILL) - applying(declared) == lost
    gaps = {clause for clause in CLAUSES if cell(clause, declared).gap}
    assert gaps == ({"CLAIM-12", "REC-08", "REC-12"} if not declared.hooks else set())


def test_whose_artifact_one_is_an_owner_alone_cannot_tell() -> None:
    declared = replace(BACKFILL, key="own", artifacts=True)
    why = "own declares an owner-only fence: it cannot tell which attempt has made an artifact"
    assert {cell(clause, declared).reason for clause in ("FENCE-04", "FENCE-07", "INV-5")} == {why}


def test_exactly_the_unbuilt_clauses_and_queues_are_not_built() -> None:
    built = set().union(*BUILT_BY_ENGINE.values())
    not_built = {key for key, found in TABLE.items() if found.status == "not built"}
    assert not_built == {(clause, queue) for clause, queue in TABLE if clause not in built or queue not in SPARED}
    assert {TABLE[key].reason for key in not_built} == {"not built"}


def test_pairs_walk_the_asked_queues_clause_by_clause() -> None:
    walked = list(pairs((BACKFILL, MUTATION)))
    assert [(clause, queue.key) for clause, queue, _ in walked[:3]] == [
        ("CLAIM-01", "backfill"),
        ("CLAIM-01", "mutation"),
        ("CLAIM-02", "backfill"),
    ]
    assert len(walked) == 2 * len(CLAUSES)
    assert all(found == applies(clause, queue.key) for clause, queue, found in walked)


def test_an_unknown_pair_is_refused() -> None:
    with pytest.raises(KeyError):
        applies("CLAIM-01", "backfil")
    with pytest.raises(KeyError):
        cell("CLAIM-99", BACKFILL)
