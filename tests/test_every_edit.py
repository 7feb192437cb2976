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


def terms_stand_at() -> Iterator[str]:
    """The places of conditions and of assignments, those inside of cases too."""
    for place in PLACES:
        for term in CONTRACT.at(place):
            if not isinstance(term, Case):
                yield place
                break
            yield from (f"{place}.{term.name}", f"{place}.{term.name}.when")


def edits(place: str) -> Iterator[Edit]:
    """Each edit of this place, on each queue on which it comes to other statements than on the queues before."""
    for term in CONTRACT.at(place):
        for kind in (drop, shift):
            known: set[tuple[str, ...]] = set()
            for queue in QUEUES:
                edit = Edit(f"{kind.__name__} {place} {term.name}", queue, kind(place, term.name))
                others = changed(edit)
                if others and others not in known:
                    known.add(others)
                    yield edit


def changed(edit: Edit) -> tuple[str, ...]:
    """The queue's statements that the edit makes others, whatever their table is called; none if it cannot be made."""
    try:
        sent = statements(edit.change, edit.queue, "sqlite")
    except LookupError:  # an assignment has no bound to shift, nor has every condition
        return ()
    others = set(sent) ^ set(statements(None, edit.queue, "sqlite"))
    return tuple(sorted(one.replace(edit.queue, "") for one in others))


@cache
def planted(queue: str) -> frozenset[tuple[str, ...]]:
    """What the catalogue's changes of statements alone come to on this queue, whichever they are planted on."""
    changes = [mutant.change for mutant in (*MUTANTS, *(mutant for mutant, _ in EQUIVALENT))]
    return frozenset(statements(each, queue, "sqlite") for each in changes if decisions(each) == decisions(None))


def accounted_for(edit: Edit) -> bool:
    if any(re.fullmatch(pattern, edit.name) for pattern in REVIEWED):
        return True
    if statements(edit.change, edit.queue, "sqlite") in planted(edit.queue):
        return True
    spec = QUEUES[edit.queue]
    with Session(SqliteAdapter(rules=edit.change(CONTRACT)), spec) as session:
        if any(session.play(trace).violation for trace in first_witnesses(spec).values()):
            return True
        return any(Examination(session, PROFILES["quick"], seed=1).violations())


STANDING = tuple(terms_stand_at())


def test_every_reason_is_needed() -> None:
    names = {
        f"{kind} {place} {term.name}" for place in STANDING for term in CONTRACT.at(place) for kind in ("drop", "shift")
    }
    assert len(names) > 250
    for pattern in REVIEWED:
        assert any(re.fullmatch(pattern, name) for name in names), pattern


@pytest.mark.parametrize("place", STANDING)
def test_an_edit_is_planted_reviewed_or_found(place: str) -> None:
    """One after another, since to look at what an edit comes to costs more than to collect a test should."""
    assert [str(edit) for edit in edits(place) if not accounted_for(edit)] == [], "nobody minds"
