"""The time that a table holds as a calendar: a column a week and a row a day, or a column a year and a row a month."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import groupby

from mergeplan.planner.catalog.catalog import CatalogModel
from mergeplan.planner.intervals import Interval, Timeline, intersect_intervals

CELL, WEEKS, YEARS = 13, 53, 12
LEFT, TOP = 30, 16
DAY = timedelta(days=1)
HELD, PART, MISSING, NONE = "held", "part", "missing", ""


@dataclass(frozen=True)
class Block:
    """Cells of one state that lie side by side."""

    state: str
    x: int
    y: int
    width: int
    height: int


@dataclass(frozen=True)
class Label:
    x: int
    y: int
    text: str


@dataclass(frozen=True)
class Strip:
    """The calendar; `grid` are the lines between its cells, `shows` what one cell stands for."""

    blocks: tuple[Block, ...]
    labels: tuple[Label, ...]
    grid: str
    width: int
    height: int
    shows: str
    states: tuple[str, ...]


def draw_strip(model: CatalogModel, now: datetime) -> Strip | None:
    """Draw the calendar of a model whose table is filled by intervals; None for any other."""
    deployed = model.deployed
    if deployed is None or not model.declared.kind.is_incremental or not model.declared.kind.is_stored:
        return None
    if not deployed.held and not deployed.missing:
        return None
    if model.declared.cron.unit in ("month", "year"):
        columns, labels, shows = _year_columns(deployed.held, deployed.missing, now)
    else:
        columns, labels, shows = _week_columns(deployed.held, deployed.missing, now)
    rows = len(columns[0])
    width, height = LEFT + CELL * len(columns), TOP + CELL * rows
    lines = [f"M{LEFT + CELL * n} {TOP}V{height}" for n in range(len(columns) + 1)]
    lines += [f"M{LEFT} {TOP + CELL * n}H{width}" for n in range(rows + 1)]
    blocks = tuple(_merge_cells(columns))
    states = tuple(state for state in (HELD, PART, MISSING) if any(block.state == state for block in blocks))
    return Strip(blocks, tuple(labels), "".join(lines), width, height, shows, states)


def _week_columns(held: Timeline, missing: Timeline, now: datetime) -> tuple[list[list[str]], list[Label], str]:
    today = datetime(now.year, now.month, now.day, tzinfo=UTC)
    first = today - timedelta(days=today.weekday(), weeks=WEEKS - 1)
    cells = [first + number * DAY for number in range(WEEKS * 7)]
    states = _cell_states([Interval(day, day + DAY) for day in cells], held, missing)
    mondays = cells[::7]
    labels = [Label(0, TOP + CELL * row + 10, name) for row, name in ((0, "Mon"), (2, "Wed"), (4, "Fri"))]
    months = [number for number, day in enumerate(mondays) if number == 0 or day.month != mondays[number - 1].month]
    months = [n for n, next_month in zip(months, [*months[1:], WEEKS + 3], strict=True) if next_month - n >= 3]
    labels += [Label(LEFT + CELL * number, 10, f"{mondays[number]:%b}") for number in months]
    return [states[number : number + 7] for number in range(0, len(states), 7)], labels, "one day"


def _year_columns(held: Timeline, missing: Timeline, now: datetime) -> tuple[list[list[str]], list[Label], str]:
    began = min(interval.start.year for interval in (*held, *missing))
    years = list(range(max(began, now.year - YEARS + 1), now.year + 1))
    edges = [datetime(year, month, 1, tzinfo=UTC) for year in years for month in range(1, 13)]
    ends = [*edges[1:], datetime(years[-1] + 1, 1, 1, tzinfo=UTC)]
    states = _cell_states([Interval(*pair) for pair in zip(edges, ends, strict=True)], held, missing)
    labels = [Label(0, TOP + CELL * row + 10, f"{edges[row]:%b}") for row in (0, 3, 6, 9)]
    labels += [Label(LEFT + CELL * n, 10, str(year)) for n, year in enumerate(years) if n % 3 == 0]
    return [states[number : number + 12] for number in range(0, len(states), 12)], labels, "one month"


def _cell_states(cells: Sequence[Interval], held: Timeline, missing: Timeline) -> list[str]:
    whole = Interval(cells[0].start, cells[-1].end)
    held, missing = intersect_intervals([whole], held), intersect_intervals([whole], missing)
    return [_cell_state(cell, held, missing) for cell in cells]


def _cell_state(cell: Interval, held: Timeline, missing: Timeline) -> str:
    is_held, is_missing = _has_overlap(cell, held), _has_overlap(cell, missing)
    if is_held and is_missing:
        return PART
    if is_missing:
        return MISSING
    if not is_held:
        return NONE
    return HELD if any(one.start <= cell.start and cell.end <= one.end for one in held) else PART


def _has_overlap(cell: Interval, timeline: Timeline) -> bool:
    return any(interval.start < cell.end and cell.start < interval.end for interval in timeline)


def _merge_cells(columns: Sequence[Sequence[str]]) -> Iterator[Block]:
    """Cells of one state as few rectangles: equal columns side by side, and equal cells of one column."""
    number = 0
    for column, equal in groupby(columns):
        count, row = len(list(equal)), 0
        for state, run in groupby(column):
            height = len(list(run))
            if state:
                yield Block(state, LEFT + CELL * number, TOP + CELL * row, CELL * count, CELL * height)
            row += height
        number += count
