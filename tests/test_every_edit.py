"""Every single condition or assignment of the contract, left out or moved by an instant, is accounted for: a mutant or
an equivalent stands for it, it is reviewed here, or a quick look finds it on every queue that it makes a difference to.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from types import SimpleNamespace

import pytest
from fencepost.adapters.mutants.catalogue import EQUIVALENT, MUTANTS
from fencepost.adapters.mutants.mutant import Change, drop, shift
from fencepost.adapters.reference.adapter import SqliteAdapter
from fencepost.adapters.reference.rules import CONTRACT, Rules, Verb, Write
from fencepost.adapters.reference.terms import Args, Case, Pred
from fencepost.conformance.examine import Examination
from fencepost.conformance.profiles import PROFILES
from fencepost.conformance.reduce import first_witnesses
from fencepost.conformance.session import Session
from fencepost.model.queues import BUILD, QUEUES
from rules_sent import statements
from sqlalchemy import column

PLACES = (
    "claim_where", "claim_again", "claim_named", "claim_set", "repeated", "kept_if", "cancel_where", "expired",
    "expired_again", "left_behind", "left_behind_again", "called_off", "called_off_again", "lapsed", "lapsed_again",
    "recover", "call_off", "lapse", *(f"fence.{verb}" for verb in Verb), *(f"writes.{write}" for write in Write),
)  # fmt: skip

REVIEWED = {
    r"(drop|shift) fence\.checkpoint \w+":
        "a checkpoint changes nothing, and the contract says only what the current holder is told (CANCEL-04)",
    r"drop (recover|call_off|lapse|writes\.\w+)\.(cancelled|overdue|failed|succeeded|skipped|pending) worker_id":
        "the owner of an ended row is unspecified (TERM-03)",
    r"drop (call_off\.cancelled|writes\.cancel\.pending) lease_expires_at":
        "a pending row has no lease",
    r"drop claim_named (pending|begins_in_time|unleased)|shift claim_named begins_in_time":
        "the update of the one candidate that there may be looks at the same once more",
    r"drop writes\.(cancel_by_parent\.marked cancel_requested_at|promote\.promoted artifact_key)":
        "an update that sets nothing is no statement, and the database refuses it",
    r"drop claim_set attempt_id":
        "a claim that names no attempt is told as a fault of the adapter, before any clause is judged",
}  # fmt: skip
"""Edits that nobody could see, or that no run gets past, by their names."""

OF_NO_QUEUE = {
    "drop claim_named no_cancel", "drop claim_named due", "shift claim_named due",
    "drop recover.overdue error_code", "drop recover.overdue lease_generation", "drop lapse.failed error_code",
    "drop fence.skip same_generation", "drop fence.skip same_attempt", "drop fence.skip in_time",
    "shift fence.skip in_time", "drop fence.acknowledge same_attempt", "drop fence.acknowledge in_time",
    "shift fence.acknowledge in_time", "drop fence.put_artifact same_generation",
}  # fmt: skip
"""Edits that no queue of this version sends anything else under: none has both of what they are about."""


@dataclass(frozen=True)
class Edit:
    """One term left out, or its bound moved."""

    name: str
    change: Change

    def __str__(self) -> str:
        return self.name


def edits() -> Iterator[Edit]:
    for place in terms_stand_at():
        for term in CONTRACT.at(place):
            yield Edit(f"drop {place} {term.name}", drop(place, term.name))
            if isinstance(term, Pred) and has_bound(term):
                yield Edit(f"shift {place} {term.name}", shift(place, term.name))


def terms_stand_at() -> Iterator[str]:
    """The places of conditions and of assignments, those inside of cases too."""
    for place in PLACES:
        for term in CONTRACT.at(place):
            if not isinstance(term, Case):
                yield place
                break
            yield from (f"{place}.{term.name}", f"{place}.{term.name}.when")


class AnyColumns(SimpleNamespace):
    def __getattr__(self, name: str) -> object:
        return column(name)


def has_bound(condition: Pred) -> bool:
    try:
        condition.shifted().sql(AnyColumns(), Args(BUILD))  # type: ignore[arg-type]
    except LookupError:
        return False
    return True


@cache
def looked_at() -> tuple[str, ...]:
    """The queues, less those all of whose statements another one sends too, but for the name of the table."""
    sent = {queue: {one.replace(queue, "") for one in statements(None, queue, "sqlite")} for queue in QUEUES}
    return tuple(queue for queue in QUEUES if not any(sent[queue] < others for others in sent.values()))


def differs(edit: Edit, queue: str) -> bool:
    """Whether the queue's statements are others under this edit."""
    return statements(edit.change, queue, "sqlite") != statements(None, queue, "sqlite")


@cache
def planted(queue: str) -> list[Rules]:
    """The rules of the catalogue, less what is a matter of PostgreSQL alone. A mutant counts whatever it is planted on;
    an equivalent of another queue counts only where no attempts are named and no jobs have deadlines.
    """
    alike = {queue} if queue == "build" else {queue, "backfill"}
    equivalents = [mutant for mutant, _ in EQUIVALENT if mutant.queue in alike]
    return [on_sqlite(mutant.change(CONTRACT)) for mutant in (*MUTANTS, *equivalents)]


def on_sqlite(rules: Rules) -> Rules:
    return replace(rules, claim_shape={"sqlite": rules.claim_shape["sqlite"]})


EDITS = tuple(edits())


def test_every_place_of_the_rules_is_looked_at_and_every_reason_is_needed() -> None:
    assert len(EDITS) > 200
    for pattern in REVIEWED:
        assert any(re.fullmatch(pattern, edit.name) for edit in EDITS), pattern
    assert looked_at() == ("build", "screenshot", "mutation")


@pytest.mark.parametrize("edit", EDITS, ids=str)
def test_an_edit_is_planted_reviewed_or_found(edit: Edit) -> None:
    rules = edit.change(CONTRACT)
    if any(re.fullmatch(pattern, edit.name) for pattern in REVIEWED):
        return
    queues = [queue for queue in looked_at() if differs(edit, queue)]
    assert bool(queues) != (edit.name in OF_NO_QUEUE)
    for queue in queues:
        if on_sqlite(rules) in planted(queue):
            continue
        with Session(SqliteAdapter(rules=rules), QUEUES[queue]) as session:
            if not any(session.play(trace).violation for trace in first_witnesses(session.spec).values()):
                assert any(Examination(session, PROFILES["quick"], seed=1).violations()), f"nobody minds on {queue}"
