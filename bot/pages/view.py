"""What the pages show of a pull request, or of prod: from what is known to rows, bars and lines. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby

from mergeplan.bot.pages.drawing import Box, draw_graph
from mergeplan.bot.pages.text import Alert, split_alert
from mergeplan.bot.projects import title_of
from mergeplan.bot.readers.impact import ReaderSummary
from mergeplan.bot.records import AFTER_MERGE, Prod, PullRecord, PullState
from mergeplan.bot.report.comment import ROWS_SHOWN, facts_line
from mergeplan.bot.report.markdown import NAMES, category_of
from mergeplan.bot.report.models import Site, computation_words, severity, table_words, why_words
from mergeplan.bot.report.offers import list_offers
from mergeplan.bot.report.physical import physical_lines
from mergeplan.bot.report.rows import rows_changed
from mergeplan.bot.report.shown import Shown
from mergeplan.bot.report.states import blockers, headline, status
from mergeplan.bot.report.words import problem_line
from mergeplan.bot.results import PlannerOutcome, Problem, view_changes
from mergeplan.planner.contract.plan import ModelChange, PlanView
from mergeplan.planner.contract.tables import DataDifference
from mergeplan.planner.site.diff_lines import DiffLine, diff_lines
from mergeplan.planner.site.drawing import Drawing
from mergeplan.planner.site.progress import RunProgress, Step

MODELS_MOST = 3_000  # rows of one page
DIFF_MOST, DIFFS_ROOM = 200_000, 1_500_000  # characters of one diff, of all
RUNNING = frozenset({PullState.NEW, PullState.PLANNING, PullState.WAITING, PullState.MERGED})


@dataclass(frozen=True)
class Decision:
    at: float
    who: str
    what: str
    plan_id: str


@dataclass(frozen=True)
class ModelRow:
    """A model of the plan; the last three are sentences in Markdown."""

    model: ModelChange
    link: str
    category: str
    why: str
    computed: str
    table: str


@dataclass(frozen=True)
class ModelGroup:
    category: str
    name: str
    rows: tuple[ModelRow, ...]


@dataclass(frozen=True)
class Diff:
    row: ModelRow
    lines: tuple[DiffLine, ...]
    left_out: int


@dataclass(frozen=True)
class Changes:
    record: PullRecord

    @property
    def plan(self) -> PlanView | None:
        return self.record.outcome.plan if self.record.outcome else None

    @cached_property
    def models(self) -> tuple[ModelChange, ...]:
        return tuple(model for model in self.plan.models if model.change != "unchanged") if self.plan else ()

    @cached_property
    def groups(self) -> tuple[ModelGroup, ...]:
        """The models by category, the most severe first."""
        site = Site(_web_address(self.record.place.site), self.record.head, self.record.place.folder)
        ordered = sorted(self.models[:MODELS_MOST], key=lambda model: (severity(model), category_of(model)))
        return tuple(
            ModelGroup(category, NAMES.get(category, category), tuple(_make_row(model, site) for model in members))
            for category, members in groupby(ordered, key=category_of)
        )

    @property
    def diffs(self) -> tuple[Diff, ...]:
        room, blocks = DIFFS_ROOM, []
        for row in (row for group in self.groups for row in group.rows if row.model.diff):
            lines, omitted_count = diff_lines(row.model.diff, min(DIFF_MOST, max(0, room)))
            room -= len(row.model.diff)
            blocks.append(Diff(row, lines, omitted_count))
        return tuple(blocks)

    @property
    def drawing(self) -> Drawing[Box] | None:
        return draw_graph(self.models)

    @property
    def data_diff(self) -> tuple[DataDifference, ...]:
        """The compared models, those with the most changed rows first."""
        outcome = self.record.outcome
        if outcome is None or self.record.state not in ROWS_SHOWN:
            return ()
        return tuple(
            sorted(
                (difference for difference in outcome.data_diff if not difference.is_off),
                key=rows_changed,
                reverse=True,
            )
        )

    @property
    def physical(self) -> list[str]:
        """What the edits do to Spark's physical plans, a sentence each."""
        outcome = self.record.outcome
        return physical_lines(outcome.physical_plan) if outcome and self.record.state in ROWS_SHOWN else []

    @property
    def readers(self) -> tuple[ReaderSummary, ...]:
        return self.record.nearby.readers if self.models and self.record.state in ROWS_SHOWN else ()

    @property
    def moves(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """The views of prod that a merge would move, by what becomes of them."""
        if self.plan is None:
            return ()
        moved = view_changes(self.plan)
        groups = (
            ("re-pointed", tuple(model.name for model in moved if model.change != "added")),
            ("added", tuple(model.name for model in moved if model.change == "added")),
            ("dropped", tuple(model.name for model in self.plan.models if model.change == "removed")),
        )
        return tuple(group for group in groups if group[1])


@dataclass(frozen=True)
class PageView:
    shown: Shown
    progress: RunProgress | None = None
    decisions: tuple[Decision, ...] = ()

    @property
    def record(self) -> PullRecord:
        return self.shown.record

    @property
    def place(self) -> str:
        return title_of(self.record.repository)

    @property
    def outcome(self) -> PlannerOutcome | None:
        return self.record.outcome

    @property
    def plan(self) -> PlanView | None:
        return self.outcome.plan if self.outcome else None

    @cached_property
    def changes(self) -> Changes:
        return Changes(self.record)

    @property
    def is_prod(self) -> bool:
        return not self.record.number

    @property
    def title(self) -> str:
        """The state, as the comment's first line says it."""
        if self.is_prod:
            return f"Prod is {self.shown.prod.state.value}"
        return headline(self.shown).removeprefix("### ") if self.record.head else "Nothing is known yet"

    @property
    def facts(self) -> tuple[str, ...]:
        return tuple(facts_line(self.shown).split(" · ")) if self.record.head else ()

    @property
    def alert(self) -> Alert:
        return split_alert(status(self.shown)) if self.record.head else Alert("", ("No plan was made of it.",))

    @property
    def is_running(self) -> bool:
        """True while something runs: the page then reloads by itself, and not afterwards."""
        if self.is_prod:
            return self.shown.prod.state is Prod.BUILDING or bool(self.progress and not self.progress.ended)
        return self.record.state in RUNNING and bool(self.record.head)

    @property
    def problems(self) -> tuple[str, ...]:
        """What is wrong, each a sentence in Markdown."""
        ended = self.record.promotion.outcome if self.record.state is PullState.UNPROMOTED else self.outcome
        if ended is None or self.record.state not in (PullState.FAILED, PullState.UNPROMOTED):
            return ()
        tests = (Problem(test.message or "failed", test.path, test.line) for test in ended.tests if not test.ok)
        return tuple(problem_line(problem).removeprefix("- ") for problem in (*ended.problems, *tests))

    @property
    def blockers(self) -> tuple[str, ...]:
        return tuple(problem_line(problem).removeprefix("- ") for problem in blockers(self.record))

    @property
    def commands(self) -> Sequence[tuple[str, str]]:
        record = self.record
        return [(offer.typed, offer.does) for offer in list_offers(record, self.shown.prod)] if record.head else ()

    @property
    def github(self) -> str:
        """The pull request on GitHub; '' where that is not known."""
        site = _web_address(self.record.place.site)
        return f"{site}/pull/{self.record.number}" if site and self.record.number else site

    @property
    def current_progress(self) -> RunProgress | None:
        """The run that this pull request's state is about; none that was overtaken."""
        progress = self.progress
        if progress is None or self.is_prod:
            return progress
        if self.record.state in AFTER_MERGE:
            return progress if progress.subject == f"#{self.record.number}" else None
        return progress if progress.run_id == self.record.run.id else None


def count_steps(progress: RunProgress) -> tuple[tuple[str, int], ...]:
    """Return the number of models in each step: `done` 3, `running` 1."""
    totals = [(step.value, sum(model.step is step for model in progress.models)) for step in Step]
    return tuple(total for total in totals if total[1])


def _make_row(model: ModelChange, site: Site) -> ModelRow:
    words = why_words(model), computation_words(model), table_words(model)
    return ModelRow(model, site.link(model), category_of(model), *words)


def _web_address(address: str) -> str:
    return address if address.startswith(("https://", "http://")) else ""
