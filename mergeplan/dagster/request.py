"""Make the arguments of mergeplan's command line for one run of Dagster. The module needs no Dagster."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

RESTATING = "mergeplan/restating"  # a tag of a run: the plan whose intervals count as missing, or DONE
DONE = "done"
BY_AUTOMATION = "dagster/from_automation_condition"
BRANCH = "DAGSTER_CLOUD_IS_BRANCH_DEPLOYMENT"
PULL_REQUEST = "DAGSTER_CLOUD_PULL_REQUEST_ID"


class Mode(StrEnum):
    """What is done about the models that somebody materializes."""

    AUTO = "auto"  # partitions are computed again, anything else as far as it is due
    RUN = "run"  # what is missing is computed
    RESTATE = "restate"  # it is computed again, and so is what reads it


@dataclass(frozen=True)
class Request:
    """A run of an environment, or a restatement of models in it; () for all that is due."""

    environment: str
    models: tuple[str, ...] = ()
    window: tuple[datetime, datetime] | None = None
    restates: bool = False
    days: tuple[str, str] = ("", "")  # the first and the last one, where no window is asked for

    @property
    def arguments(self) -> tuple[str, ...]:
        if self.restates:
            selectors = [part for name in self.models for part in ("--restate-model", name)]
            flags = ("--auto-apply", "--no-diff", "--skip-tests", "--skip-linter")
            return ("plan", self.environment, *selectors, *self._times, *flags, "--output", "json")
        selectors = [part for name in self.models for part in ("--select-model", name)]
        alone = ("--no-auto-upstream",) if self.models else ()
        return ("run", self.environment, *selectors, *alone, *self._times, "--output", "json")

    @property
    def _times(self) -> tuple[str, ...]:
        start, end = (at.strftime("%Y-%m-%d %H:%M:%S") for at in self.window) if self.window else self.days
        return (*(("--start", start) if start else ()), *(("--end", end) if end else ()))


@dataclass(frozen=True)
class Verb:
    """A verb of mergeplan that computes no model, such as `janitor`."""

    arguments: tuple[str, ...]


def decide_request(
    environment: str,
    models: tuple[str, ...],
    window: tuple[datetime, datetime] | None,
    mode: Mode,
    tags: Mapping[str, str],
    days: tuple[str, str] = ("", ""),
) -> Request:
    """Return the request for models that a run with these tags materializes, or restates from one day to another.

    A materialized partition is computed again, with everything downstream. A restatement that was interrupted is not
    begun again: the intervals that it left missing are run.
    """
    if mode is Mode.AUTO:
        mode = Mode.RESTATE if window and tags.get(BY_AUTOMATION) != "true" else Mode.RUN
    if mode is Mode.RUN:
        return Request(environment, models, window)
    if tags.get(RESTATING, DONE) != DONE:
        return Request(environment)
    return Request(environment, models, window, restates=True, days=days)


def environment_of(environ: Mapping[str, str], default: str, pattern: str = "pr_{number}") -> str:
    """Return the environment of the pull request in a branch deployment, and `default` elsewhere."""
    number = environ.get(PULL_REQUEST, "")
    is_branch = environ.get(BRANCH, "").strip().lower() in ("1", "true")
    return pattern.format(number=number) if is_branch and number else default
