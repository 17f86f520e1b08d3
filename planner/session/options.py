"""The options of each use case; one that is left out takes the project's default."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import get_args

from mergeplan.planner.contract.base import Detail
from mergeplan.planner.errors import RequestError
from mergeplan.planner.plan.build import Category
from mergeplan.planner.snapshot.environment import PROD

DETAILS: tuple[Detail, ...] = get_args(Detail)
RESET = "reset"  # in place of a category: what a person chose is forgotten, and the rules decide
GIVEN = "Write MODEL=breaking, MODEL=non-breaking, MODEL=forward-only, or MODEL=reset to take that back."
CATEGORIES = {
    "breaking": Category.BREAKING,
    "non-breaking": Category.NON_BREAKING,
    "non_breaking": Category.NON_BREAKING,
    "forward-only": Category.FORWARD_ONLY,
    "forward_only": Category.FORWARD_ONLY,
}


@dataclass(frozen=True)
class PlanOptions:
    """The options of a plan; they are stored with it, so that it can be made again and compared.

    Dates are texts such as `2026-01-31` or `3 days ago`; a selector is a name, a glob, `tag:x`, `+up`, `down+`.
    """

    environment: str = ""  # '': the one that the project names, or prod
    start: str | None = None  # compute from this day on only
    end: str | None = None  # up to and including this day only
    categories: Mapping[str, str] = field(default_factory=dict)  # changed model -> breaking, non-breaking, forward-only
    skip_backfill: bool = False  # create tables and views, and leave new tables empty
    overrides_from: str | None = None  # environments whose categories are taken, too
    who: str = ""  # gave these categories, for the record
    execution_time: str | None = None  # plan and compute as if it were this moment
    restate: tuple[str, ...] = ()  # selectors of models to compute anew, in place of whatever the files say
    # SELECTOR[=START..END]: computed again in tables that a merge promotes; or SELECTOR=reset
    restate_copy: tuple[str, ...] = ()
    restated_at: str | None = None  # when that was asked for
    forward_only: bool = False  # keep the rows there are of every changed model
    effective_from: str | None = None  # of a forward-only plan: recompute from this day on
    enable_preview: bool | None = None  # fill previews of forward-only changes
    allow_destructive: tuple[str, ...] = ()  # selectors of models whose forward-only change may drop columns
    allow_additive: tuple[str, ...] = ()  # or add some
    select: tuple[str, ...] = ()  # selectors of models whose changes count; () for all
    others_from: str | None = None  # with `select`: the environment whose models all others are taken from
    backfill: tuple[str, ...] = ()  # selectors of models to compute; () for all
    min_intervals: int = 0  # units of each model to compute at least
    no_gaps: bool = False  # refuse a table that would lack days that are visible now
    empty_backfill: bool = False  # leave new tables empty, and count their days as computed
    include_unmodified: bool = False  # every model gets a view, changed or not
    diff_rendered: bool = False  # compare the queries as they run, not as they are written
    ignore_cron: bool = False  # compute up to now, whenever the models are due
    skip_tests: bool = False  # do not run the unit tests first
    rerun_tests: bool = False  # also those of which nothing has changed since they passed
    skip_linter: bool = False  # do not hold the models to the linter's rules first
    strict: bool = False  # a model that cannot be opened closes the project
    refresh: bool = False  # ask Spark's catalog whether the views and tables are there
    must_open: tuple[str, ...] = ()  # files whose models must open, whether prod shows them or not; `*` for all


@dataclass(frozen=True)
class RunOptions:
    """The options of a run."""

    environment: str = PROD
    start: str | None = None  # compute from this day on only
    end: str | None = None  # up to and including this day only
    select: tuple[str, ...] = ()  # selectors of models; () for all
    upstream: bool = True  # with `select`: what they read runs with them
    ignore_cron: bool = False  # compute up to now, whenever the models are due
    refresh: bool = False  # ask Spark's catalog whether the views and tables are there, also where nothing is due
    unless_updated: bool = False  # do nothing when the environment was changed while the run waited for its turn
    note: str = ""  # why, for the record
    run_id: str = ""  # under which the run and each of its models is recorded; one that is known is taken up
    restate: tuple[str, ...] = ()  # models of the run `run_id` whose intervals are cleared and computed again


@dataclass(frozen=True)
class AuditOptions:
    """Which audits run, and on which rows."""

    select: tuple[str, ...] = ()  # selectors of models; () for all
    start: str | None = None  # look at rows from this day on only
    end: str | None = None  # up to and including this day only
    samples: str | None = None  # how bad rows are shown: full, masked, none
    skip_unchanged: bool = False  # those that passed are not run while what they read was not written by a plan or run


@dataclass(frozen=True)
class TableDiffOptions:
    """What two tables are compared by."""

    on: tuple[str, ...] = ()  # the key's columns; the model's grain otherwise
    where: str = ""  # only rows for which this SQL holds
    skip: tuple[str, ...] = ()  # columns not to compare
    decimals: int = 3  # of floating point numbers that count
    rename: Mapping[str, str] = field(default_factory=dict)  # column of the first -> column of the second
    samples: int = 0  # how many rows that differ are shown, of each sort
    masked: bool = False  # their values are shown by their shape only
    select: tuple[str, ...] = ()  # selectors of models to compare; () for all that differ


@dataclass(frozen=True)
class DataDiffOptions:
    """Whose rows are compared with prod's, in what detail, and what that may cost.

    `detail` are rules in order, (selector, `off`, `counts` or `sample`); the last that fits a model counts.
    """

    detail: tuple[tuple[str, Detail], ...] = (("*", "counts"),)
    unmasked: tuple[str, ...] = ()  # columns whose values samples show as they are
    models: tuple[str, ...] = ()  # names of models; () for all that have another table
    where: str = ""  # only rows for which this holds
    seconds: float = 60.0  # for all of them together
    rows: int = 50_000_000  # of both tables of a model together
    samples: int = 5  # rows of each sort


@dataclass(frozen=True)
class TestOptions:
    """Which unit tests run; both must mean a test."""

    __test__ = False  # pytest must not collect it

    names: tuple[str, ...] = ()  # tests, models, files, FILE::TEST, also as globs; () for all
    patterns: tuple[str, ...] = ()  # what names contain or match; () for all


def parse_details(texts: Iterable[str]) -> tuple[tuple[str, Detail], ...]:
    """Parse `counts` or SELECTOR=counts as rules in order; raise RequestError for an unknown detail."""
    details_by_selector: list[tuple[str, Detail]] = []
    for text in texts:
        selector, _, word = text.rpartition("=")
        detail = next((candidate for candidate in DETAILS if candidate == word.strip().lower()), None)
        if detail is None:
            raise RequestError(f"`{text}` is no detail of a data diff.", hint="Write `counts`, or `tag:pii=off`.")
        details_by_selector.append((selector.strip() or "*", detail))
    return tuple(details_by_selector) or DataDiffOptions().detail


def categories(texts: Iterable[str]) -> dict[str, str]:
    """Parse MODEL=CATEGORY texts; raise RequestError for a category that cannot be given."""
    categories_by_model = {}
    for text in texts:
        model, equals, category = (part.strip().lower() for part in text.partition("="))
        if not equals or category not in (*CATEGORIES, RESET):
            raise RequestError(f"`{text}` gives no category.", hint=GIVEN)
        categories_by_model[model] = RESET if category == RESET else str(CATEGORIES[category])
    return categories_by_model


def category_resets(options: PlanOptions) -> frozenset[str]:
    return frozenset(model for model, category in options.categories.items() if category == RESET)
