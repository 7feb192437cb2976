"""CLAIM-13: what a claim returned is plain, or at least stays readable whatever its session does afterwards.

Reads handles and remembers what they said; it never asks what they are good for.
"""

from __future__ import annotations

from fencepost.model import commands as c
from fencepost.model import outcomes as o
from fencepost.model.world import Check, Violation

LASTING = Check("CLAIM-13", "claim: handles are plain and lasting", True)

Lent = list[tuple[c.Handle, c.Handle]]
"""Handles that are no plain values, each with a plain copy of what it said when the claim returned it."""


def plain(handle: c.Handle) -> c.Handle:
    """The handle as a plain value; raises whatever a handle that cannot be read raises."""
    return handle if type(handle) is c.Handle else c.Handle(handle.job, handle.worker, handle.token)


def lend(claimed: o.Claimed, lent: Lent) -> o.Claimed | Violation:
    """What a claim has just returned, with plain handles; notes in `lent` those that may go bad later.

    Returns what is wrong with one of them already.
    """
    copies = []
    for handle in claimed.handles:
        try:
            copy = plain(handle)
        except Exception as error:  # whatever a dead row raises when it is read
            return _broken(f"the handle that the claim returned cannot be read: {_said(error)}")
        for part in (copy.job, copy.token):
            if part is not None and not isinstance(part, (int, str)):
                return _broken(f"the handle carries {part!r}; return a plain int or string")
        if copy is not handle:
            lent.append((handle, copy))
        copies.append(copy)
    return o.Claimed(tuple(copies), claimed.hooked) if lent else claimed


def spoilt(lent: Lent) -> Violation | None:
    """What is wrong with a lent handle by now."""
    for handle, copy in lent:
        which = f"w{copy.worker}'s handle"
        try:
            now = plain(handle)
        except Exception as error:  # as above
            return _broken(f"{which} cannot be read any more: {_said(error)}")
        if now != copy:
            return _broken(f"{which} has become {now}")
    return None


def _broken(why: str) -> Violation:
    return Violation(LASTING.clause, LASTING.reason, why)


def _said(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"
