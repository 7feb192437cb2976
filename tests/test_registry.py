"""Adapters by name: whatever is typed, the answer is a class that can be opened or a message that says what to type."""

from __future__ import annotations

import pytest
from fencepost.adapters.contract import AdapterError
from fencepost.adapters.reference.adapter import SqliteAdapter
from fencepost.adapters.registry import adapter_class, known_adapters, unknown

REFERENCE = "fencepost.adapters.reference.adapter"


def refusal(name: str) -> str:
    with pytest.raises(AdapterError) as error:
        adapter_class(name)
    return str(error.value)


def test_an_adapter_is_found_by_its_name_and_by_its_class() -> None:
    assert known_adapters() == ["memory", "pg", "sqlite"]
    assert adapter_class("sqlite") is adapter_class(f"{REFERENCE}:SqliteAdapter") is SqliteAdapter


def test_an_unknown_name_is_answered_with_the_nearest_and_all_known_ones_in_whole_sentences() -> None:
    known = "Known: memory, pg, sqlite. Or give module:Class of your own."
    assert refusal("sqlit") == f"there is no adapter 'sqlit'; did you mean 'sqlite'? {known}"
    assert refusal("oracle") == f"there is no adapter 'oracle'. {known}"
    assert unknown("fruit", "appel", ["apple", "pear"]) == (
        "there is no fruit 'appel'; did you mean 'apple'? Known: apple, pear."
    )


@pytest.mark.parametrize("name", [":", ":Queue", "mine:", ".mine:Queue", "mine..queue:Queue", "my queue:Queue"])
def test_half_a_name_is_answered_with_the_form(name: str) -> None:
    assert "package.module:MyAdapter" in refusal(name)


def test_a_class_that_is_not_there_is_answered_with_those_that_can_be_opened() -> None:
    message = refusal(f"{REFERENCE}:Oracle")
    assert message.endswith("its adapters: SqliteAdapter, PostgresAdapter")
    assert refusal("fencepost.adapters.conflicts:Oracle").endswith("its adapters: none")


@pytest.mark.parametrize("name", ["fencepost.adapters.contract:Adapter", f"{REFERENCE}:ReferenceAdapter"])
def test_a_class_that_lacks_methods_is_refused(name: str) -> None:
    assert " lacks " in refusal(name)


def test_a_thing_that_is_no_adapter_is_refused() -> None:
    assert "not a subclass" in refusal("fencepost.adapters.contract:Actor")
