"""Every single condition or assignment of the contract, left out or moved by an instant, is accounted for: a mutant or
an equivalent stands for it, it is reviewed here, or a quick look finds it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import pytest
from fencepost.adapters.mutants.catalogue import EQUIVALENT, MUTANTS
from fencepost.adapters.mutants.mutant import Change, drop, shift
from fencepost.adapters.reference.adapter import SqliteAdapter
from fencepost.adapters.reference.rules import CONTRACT, Verb, Write
from fencepost.adapters.reference.terms import Case
from fencepost.conformance.examine import Examination
from fencepost.conformance.profiles import PROFILES
from fencepost.conformance.reduce import first_witnesses
from fencepost.conformance.session import Session
from fencepost.model.queues import QUEUES
from rules_sent import decisions, statements

PLACES = (
    "claim_where", "claim_again", "claim_named", "claim_set", "repeated", "kept_if", "cancel_where", "expired",
    "expired_again", "left_behind", "left_behind_again", "called_off", "called_off_again", "lapsed", "lapsed_again",
    "recover", "call_off", "lapse", *(f"fence.{verb}" for verb in Verb), *(f"writes.{write}" for write in Write),
)  # fmt: skip

REVIEWED = {
    r"(drop|shift) fence\.checkpoint \w+":
        "a checkpoint changes nothing, and the contract says only what the current holder is told (CANCEL-04)",
    r"drop (recover|call_off|writes\.\w+)\.(cancelled|failed|succeeded|pending) worker_id":
        "the owner of an ended row is unspecified (TERM-03)",
    r"drop (call_off\.cancelled|writes\.cancel\.pending) lease_expires_at":
        "a pending row has no lease",
    r"drop writes\.cancel_by_parent\.marked cancel_requested_at":
        "an update that sets nothing is no statement, and the database refuses it",
}  # fmt: skip
"""Edits that nobody could see, by their names."""


@dataclass(frozen=True)
class Edit:
    """One term left out, or its bound moved, on a queue that this makes a difference to."""

    name: str
    queue: str
    change: Change

    def __str__(self) -> str:
        return f"{self.name} ({self.queue})"


def edits() -> Iterator[Edit]:
    for place in terms_stand_at():
        for term in CONTRACT.at(place):
            for kind in (drop, shift):
                for queue in QUEUES:
                    edit = Edit(f"{kind.__name__} {place} {term.name}", queue, kind(place, term.name))
                    if differs(edit):
                        yield edit


def terms_stand_at() -> Iterator[str]:
    """The places of conditions and of assignments, those inside of cases too."""
    for place in PLACES:
        for term in CONTRACT.at(place):
            if not isinstance(term, Case):
                yield place
                break
            yield from (f"{place}.{term.name}", f"{place}.{term.name}.when")


def differs(edit: Edit) -> bool:
    """Whether the edit can be made, and the queue's statements are others then."""
    try:
        return statements(edit.change, edit.queue, "sqlite") != statements(None, edit.queue, "sqlite")
    except LookupError:  # an assignment has no bound to shift, nor has every condition
        return False


@cache
def planted(queue: str) -> frozenset[tuple[str, ...]]:
    """What the catalogue's changes of statements alone come to on this queue, whichever they are planted on."""
    changes = [mutant.change for mutant in (*MUTANTS, *(mutant for mutant, _ in EQUIVALENT))]
    return frozenset(statements(each, queue, "sqlite") for each in changes if decisions(each) == decisions(None))


EDITS = tuple(edits())


def test_every_place_of_the_rules_is_looked_at_and_every_reason_is_needed() -> None:
    assert len(EDITS) > 250
    for pattern in REVIEWED:
        assert any(re.fullmatch(pattern, edit.name) for edit in EDITS), pattern


@pytest.mark.parametrize("edit", EDITS, ids=str)
def test_an_edit_is_planted_reviewed_or_found(edit: Edit) -> None:
    if statements(edit.change, edit.queue, "sqlite") in planted(edit.queue):
        return
    if any(re.fullmatch(pattern, edit.name) for pattern in REVIEWED):
        return
    spec = QUEUES[edit.queue]
    with Session(SqliteAdapter(rules=edit.change(CONTRACT)), spec) as session:
        if not any(session.play(trace).violation for trace in first_witnesses(spec).values()):
            assert any(Examination(session, PROFILES["quick"], seed=1).violations()), "nobody minds"
