"""A target of notices: the port that a chat, a mailbox or a console implements; `targets` registers each."""

from __future__ import annotations

from typing import Protocol

from mergeplan.bot.report.notices import Notice


class Target(Protocol):
    """Where notices are delivered."""

    def deliver(self, notice: Notice) -> None:
        """Deliver a notice, in the target's own thread; NotDelivered where another try may help."""


class NotDelivered(Exception):
    """A target did not take a notice. Its text is logged, so it holds no secret."""
