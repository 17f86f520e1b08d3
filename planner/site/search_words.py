"""What the search looks through besides what a row of the index shows: the columns of each model."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from mergeplan.planner.catalog.catalog import CatalogModel


def search_words(models: Iterable[CatalogModel]) -> Mapping[str, object]:
    """Every column's name and description once, and for each model the numbers of its own."""
    numbers: dict[tuple[str, str], int] = {}
    rows = [
        [numbers.setdefault((column.name, column.description.lower()), len(numbers)) for column in model.columns or ()]
        for model in models
    ]
    return {"columns": [[name, text] if text else [name] for name, text in numbers], "models": rows}
