"""The failures of a forge, and the state of its owners."""

from dataclasses import dataclass
from typing import Literal

State = Literal["working", "paused", "suspended", "not_installed", "failing"]


class ForgePaused(Exception):
    """The forge asked for a pause of so many seconds; the caller comes back then."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"GitHub asked to wait for {seconds:.0f} s")
        self.seconds = seconds


class ForgeFailed(Exception):
    """The forge did not do it: refused (`status` is HTTP's), or out of reach after several tries (0)."""

    def __init__(self, message: str, status: int = 0) -> None:
        super().__init__(message)
        self.status = status

    @property
    def is_passing(self) -> bool:
        """True for a failure that may end by itself: no answer, or the server's own fault."""
        return self.status == 0 or self.status >= 500


class NameReused(ForgeFailed):
    """The name of a repository belongs to another one by now."""


class OwnerUnavailable(ForgeFailed):
    """Nothing can be done for an owner for now: the App is suspended there, or not installed."""

    def __init__(self, owner: str, state: State, message: str, status: int) -> None:
        super().__init__(message, status)
        self.owner = owner
        self.state = state


@dataclass(frozen=True)
class OwnerState:
    """The state of an owner's installation; `seconds` is the rest of a pause."""

    owner: str
    installation: int
    state: State = "working"
    since: str = ""
    why: str = ""
    seconds: float = 0.0
    granted: tuple[tuple[str, str], ...] = ()  # the permissions that the App has there
