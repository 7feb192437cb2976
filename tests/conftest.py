"""What all tests share."""

from __future__ import annotations

import gc

import pytest


@pytest.fixture(autouse=True, scope="module")
def what_lasts_is_no_garbage() -> None:
    """What explore has found is kept while the process lives, and a run collects garbage several times to see what an
    adapter leaves open: walking through all those states each time would take longer than the tests.
    """
    gc.collect()
    gc.freeze()
