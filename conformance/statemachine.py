"""A `RuleBasedStateMachine` over the same commands, for users who want to add rules of their own.

Slower than drawing scripts, and it shrinks in Hypothesis' way; what is legal, `step` says here too.
"""

from __future__ import annotations

from typing import ClassVar

from fencepost.model import commands as c
from fencepost.model import outcomes as o
from fencepost.model.world import World
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from .driver import Run
from .generate import NUMBER, Aim
from .session import Session


class ClauseBroken(AssertionError):
    """A step broke a clause; the message names it and says why."""


class QueueMachine(RuleBasedStateMachine):
    """Subclass it with `session` set to an open session; call `do` from rules of your own.

    class MyMachine(QueueMachine):
        session = session

        @rule()
        def sweep_twice(self):
            self.do(c.Recover())
            self.do(c.Recover())
    """

    session: ClassVar[Session]

    def __init__(self) -> None:
        super().__init__()
        self.ran: Run
        self._aim = Aim(self.session.spec)

    @property
    def world(self) -> World:
        """What the queue has come to; preconditions of your own may read it."""
        return self.ran.world

    @initialize()
    def empty(self) -> None:
        """Start from an empty queue."""
        self.ran = self.session.run(self.session.driver.start())

    @rule(number=NUMBER)
    def aimed(self, number: int) -> None:
        """One command that the world makes interesting."""
        self.do(self._aim.choose(self.world, number))

    def do(self, command: c.Command) -> o.Outcome:
        """Have the queue serve a bound command, and judge it.

        Raises:
            ClauseBroken: it broke a clause.
        """
        self.session.run(self.session.driver.go(self.ran, (command,)))
        violation = self.ran.violation
        if violation is not None:
            raise ClauseBroken(f"{violation.clause}: {violation.reason}: {violation.why}")
        return self.ran.done[-1][1]
