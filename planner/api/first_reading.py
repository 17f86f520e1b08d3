"""The progress of the first reading of a project, for requests before there is a catalog."""

from dataclasses import dataclass
from http import HTTPStatus

from mergeplan.planner.api.problems import ApiError


@dataclass(frozen=True)
class Progress:
    """A step of the reading, and how much of it is done."""

    step: str = "The project is opened"
    done: int = 0
    total: int = 0

    @property
    def percent(self) -> int:
        """How much of the step is done."""
        return 100 * self.done // self.total if self.total else 0

    def __str__(self) -> str:
        return f"{self.step}: {self.done:,} of {self.total:,}." if self.total else f"{self.step}."


class StillReading(ApiError):
    """There is no catalog yet: the project is read for the first time."""

    def __init__(self, progress: Progress) -> None:
        message = f"The project is read for the first time. {progress}"
        super().__init__(HTTPStatus.SERVICE_UNAVAILABLE, message, hint="Ask again in a while.", retry=True)
        self.progress = progress
