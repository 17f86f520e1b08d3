"""What a merge takes from prod: tables, columns, narrower types, days and rows, and who reads them outside. Pure."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from mergeplan.bot.readers.impact import ReaderSummary, Reading
from mergeplan.bot.report.markdown import NAMES, SIGNS, code, details_block, fit_lines, format_days, format_table
from mergeplan.bot.results import WITHOUT_VIEW, PlannerOutcome
from mergeplan.planner.contract.plan import ModelChange, PlanView
from mergeplan.planner.contract.tables import DataDifference
from mergeplan.planner.semantics.decimal_types import read_decimal
from mergeplan.planner.wording import count_noun, first_names, join_names

ROOM = 3_000  # characters of the list
READERS_MAX = 4
COLUMNS_MAX = 6
READINGS_ROOM = 8_000
UPPER_BOUND = (
    "Categories follow from the columns that they read in prod. Nothing was planned there: a plan may keep more."
)
READING_HEAD = ("Reader", "Reads", "Columns that change", "Planned on top of this", "Owner")
WIDENINGS = (("tinyint", "smallint", "int", "bigint"), ("tinyint", "smallint", "float"), ("int", "double"),
             ("float", "double"), ("date", "timestamp"), ("date", "timestamp_ntz"))  # fmt: skip
WHOLE_DIGITS = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 19}
DROPPED = ("table", "view", "column")
SORTS = (*DROPPED, "type", "days", "rows")


@dataclass(frozen=True)
class Loss:
    """One thing that a merge takes from prod: its model, its sort (one of SORTS), and a clause of Markdown."""

    model: str
    sort: str
    text: str


def find_losses(outcome: PlannerOutcome | None) -> tuple[Loss, ...]:
    """Return what a merge would take from prod, whole tables first."""
    plan = outcome.plan if outcome else None
    if outcome is None or plan is None:
        return ()
    differences = {difference.model: difference for difference in outcome.data_diff}
    losses = [loss for model in plan.models for loss in _find_model_losses(model, differences.get(model.name))]
    return tuple(sorted(losses, key=lambda loss: SORTS.index(loss.sort)))


def loss_title(losses: tuple[Loss, ...], readers: Sequence[ReaderSummary] = ()) -> str:
    """Return a clause such as `Drops 1 table and 2 columns, loses rows of 1 model`; '' for no loss.

    It ends with the number of other projects that read what goes, if there are any.
    """
    number = sum(one.takes for one in readers) if losses else 0
    if number:
        verb = "reads" if number == 1 else "read"
        return f"{loss_title(losses)}, which {count_noun(number, 'other project')} {verb}"
    if len(losses) < 2:
        return "".join(f"{loss.text[0].upper()}{loss.text[1:]}" for loss in losses)
    counts = Counter(loss.sort for loss in losses)
    dropped = [count_noun(counts[sort], sort) for sort in DROPPED if counts[sort]]
    parts = [f"drops {join_names(dropped)}"] if dropped else []
    parts += [f"narrows {count_noun(counts['type'], 'column')}"] if counts["type"] else []
    parts += [f"loses {sort} of {count_noun(counts[sort], 'model')}" for sort in ("days", "rows") if counts[sort]]
    title = ", ".join(parts)
    return f"{title[0].upper()}{title[1:]}"


def loss_lines(plan: PlanView, losses: tuple[Loss, ...], readers: Sequence[ReaderSummary] = ()) -> list[str]:
    """Return a line for each loss, with its uses outside of the project; a last one if no use is known."""
    lines = fit_lines([f"- {loss.text}{_used_by(plan, loss.model)}" for loss in losses], ROOM)
    lines += [f"- ⚠️ {_project_name(one)} reads what goes: {_reader_words(one)}" for one in readers if one.takes]
    models = {loss.model for loss in losses}
    if not losses or readers or any(models & set(exposure.models) for exposure in plan.exposures):
        return lines
    return [*lines, "", f"No exposure of the project names {'this model' if len(models) == 1 else 'these models'}."]


def reader_blocks(readers: Sequence[ReaderSummary]) -> list[str]:
    if not readers:
        return []
    lines = [f"- {line}" for line in reader_lines(readers)]
    title = f"{count_noun(len(readers), 'other project')} {'reads' if len(readers) == 1 else 'read'} what changes"
    blocks = ["\n".join([f"**{title}:**", "", *fit_lines(lines, ROOM)])]
    if rows := reading_rows(readers):
        head, rule, *table = format_table(READING_HEAD, rows).split("\n")
        shown = "\n".join([head, rule, *fit_lines(table, READINGS_ROOM, "| … and {} more | | | | |")])
        blocks.append(details_block("Their models and exposures by column", f"{shown}\n\n{UPPER_BOUND}"))
    return ["\n\n".join(blocks)]


def reader_lines(readers: Sequence[ReaderSummary]) -> list[str]:
    return [f"{_project_name(one)}: {_reader_words(one)}" for one in readers]


def reading_rows(readers: Sequence[ReaderSummary]) -> list[tuple[str, ...]]:
    return [_reading_row(one.name, reading) for one in readers for reading in one.readings]


def _project_name(summary: ReaderSummary) -> str:
    return code(summary.name) if summary.name else "Another repository"


def _reader_words(summary: ReaderSummary) -> str:
    counts = ((summary.models, "model"), (summary.exposures, "exposure"))
    parts = join_names([count_noun(number, noun) for number, noun in counts if number])
    return (
        f"{parts}, owned by {first_names([code(o) for o in summary.owners], READERS_MAX)}" if summary.owners else parts
    )


def _reading_row(project: str, reading: Reading) -> tuple[str, ...]:
    names = first_names([code(name) for name in reading.columns], COLUMNS_MAX)
    reader_text = f"{code(reading.reader)}{' (exposure)' if reading.is_exposure else ''}"
    lost = "⚠️ " if reading.takes else ""
    return (
        f"{code(project)}: {reader_text}",
        code(reading.model),
        f"{lost}{names or ('none' if reading.keeps else 'any column')}",
        _category_words(reading),
        code(reading.owner) if reading.owner else "",
    )


def _category_words(reading: Reading) -> str:
    """Return the most severe category that the lineage allows; '' for an exposure, which has none."""
    if reading.is_exposure:
        return ""
    if reading.takes and reading.columns:
        return "❌ its query fails"
    category = "indirect_non_breaking" if reading.keeps else "indirect_breaking"
    return f"{SIGNS[category]} {NAMES[category]}"


def _used_by(plan: PlanView, model: str) -> str:
    exposures = [exposure for exposure in plan.exposures if model in exposure.models]
    if not exposures:
        return ""
    names = [f"{code(exposure.name)}{f' ({code(exposure.owner)})' if exposure.owner else ''}" for exposure in exposures]
    return f"; used outside the project by {first_names(names, READERS_MAX)}"


def _find_model_losses(model: ModelChange, difference: DataDifference | None) -> Iterator[Loss]:
    name = code(model.name)
    if model.change == "added" or model.kind.upper() in WITHOUT_VIEW:
        return
    if model.change == "removed":
        sort = "view" if model.kind.upper() == "VIEW" else "table"
        yield Loss(model.name, sort, f"drops {sort} {name}")
        return
    schema = difference.columns_differ if difference else None
    for column in dict.fromkeys(
        (*model.columns.removed, *(column for column, _ in (schema.removed if schema else ())))
    ):
        yield Loss(model.name, "column", f"drops column {code(column)} of {name}{_read_by(model, column)}")
    for column, old, new in schema.retyped if schema else ():
        if is_narrowed(old, new):
            yield Loss(model.name, "type", f"narrows {code(column)} of {name} from {code(old)} to {code(new)}")
    if model.lost:
        yield Loss(model.name, "days", f"loses {format_days(model.lost)} of {name}")
    if difference and (gone := _rows_gone(difference)):
        yield Loss(model.name, "rows", f"loses {count_noun(gone, 'row')} of {name}")


def _read_by(model: ModelChange, column: str) -> str:
    """Return the models of the base that read a column, in brackets; '' where the plan does not say."""
    readers = {name.lower(): names for name, names in model.columns.lost_readers}.get(column.lower())
    if readers is None:
        return ""
    names = first_names([code(name) for name in readers], READERS_MAX)
    return f" (read by {names})" if readers else " (read by no model)"


def _rows_gone(difference: DataDifference) -> int:
    """Return the number of rows that go; without a key only by how many they become fewer."""
    rows = difference.rows
    if rows is None:
        return 0
    return rows.only_first if difference.key else max(0, rows.first - rows.second)


def is_narrowed(old: str, new: str) -> bool:
    """Return False if every value of the old type fits into the new one.

    >>> is_narrowed("bigint", "int"), is_narrowed("int", "bigint"), is_narrowed("date", "string")
    (True, False, False)
    >>> is_narrowed("decimal(10,2)", "decimal(12,2)"), is_narrowed("decimal(10,2)", "decimal(10,4)")
    (False, True)
    """
    old, new = old.lower(), new.lower()
    if old == new or new == "string":
        return False
    if any(old in types and new in types and types.index(old) < types.index(new) for types in WIDENINGS):
        return False
    one = read_decimal(old) or ((WHOLE_DIGITS[old], 0) if old in WHOLE_DIGITS else None)
    other = read_decimal(new)
    return not (one and other and other[1] >= one[1] and other[0] - other[1] >= one[0] - one[1])
