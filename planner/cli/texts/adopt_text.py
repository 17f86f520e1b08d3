"""Tables that are adopted, for a person."""

from collections.abc import Iterator

from mergeplan.planner.contract.adoption import AdoptedTable, AdoptionView
from mergeplan.planner.contract.base import Spans
from mergeplan.planner.wording import count_noun


def survey_text(view: AdoptionView) -> Iterator[str]:
    yield f"{count_noun(view.opened or 0, 'model')} can be opened."
    for file in view.refused or ():
        yield f"  {file.path}:{file.line}: {file.message}"
    if view.deployed:
        yield f"{count_noun(len(view.deployed), 'model')} with rows: in prod already."
    for table in view.tables:
        if table.fits:
            yield f"  --table {table.model}={table.table}"
        yield from (f"    {note}" for note in table.notes)
        yield from (f"  {table.model}: {problem}" for problem in table.problems)
    if view.without:
        yield f"No table for: {', '.join(view.without)}. A plan computes them."


def adoption_text(view: AdoptionView) -> Iterator[str]:
    for table in view.tables:
        yield from _table_lines(table)
    for name in view.replaced:
        yield f"The view {name} is replaced by the model's."


def _table_lines(adopted_table: AdoptedTable) -> Iterator[str]:
    rows = "" if adopted_table.rows is None else f", {count_noun(adopted_table.rows, 'row')}"
    method = "its rows are copied" if adopted_table.copies else "its files stay where they are"
    yield f"{adopted_table.model} <- {adopted_table.table}{rows}" + (f"; {method}" if adopted_table.fits else "")
    yield from (f"  refused: {problem}" for problem in adopted_table.problems)
    if adopted_table.holds:
        yield f"  counts as computed: {_format_spans(adopted_table.holds)}"
    if adopted_table.left:
        yield f"  the next run computes: {_format_spans(adopted_table.left)}"
    if adopted_table.moved_to:
        yield f"  {adopted_table.table} is renamed {adopted_table.moved_to}: the view of the model takes its name"
    yield from (f"  {note}" for note in adopted_table.notes)


def _format_spans(spans: Spans) -> str:
    # what is not filled by time holds all time since the epoch
    return ", ".join("all" if start == "1970-01-01" else f"[{start}, {end})" for start, end in spans)
