"""Tables that are adopted, for a person."""

from collections.abc import Iterator

from mergeplan.planner.contract.adoption import AdoptionView
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
        rows = "" if table.rows is None else f", {count_noun(table.rows, 'row')}"
        method = "its rows are copied" if table.copies else "its files stay where they are"
        yield f"{table.model} <- {table.table}{rows}" + (f"; {method}" if table.fits else "")
        yield from (f"  refused: {problem}" for problem in table.problems)
        if table.holds:
            yield f"  counts as computed: {_format_spans(table.holds)}"
        if table.left:
            yield f"  the next run computes: {_format_spans(table.left)}"
        if table.moved_to:
            yield f"  {table.table} is renamed {table.moved_to}: the view of the model takes its name"
        yield from (f"  {note}" for note in table.notes)
    for name in view.replaced:
        yield f"The view {name} is replaced by the model's."


def _format_spans(spans: Spans) -> str:
    # what is not filled by time holds all time since the epoch
    return ", ".join("all" if start == "1970-01-01" else f"[{start}, {end})" for start, end in spans)
