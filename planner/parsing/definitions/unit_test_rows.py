"""Rows of a unit test from a file or from CSV: cells as values, and the settings of CSV."""

import csv
import io
import re
from collections.abc import Mapping

from mergeplan.planner.errors import ProjectError
from mergeplan.planner.model.model import PANDAS_NULLS
from mergeplan.planner.parsing.sql.yaml_documents import Document, Path, read_document

SETTINGS = ("sep", "delimiter", "quotechar", "na_values", "skip_blank_lines")
_INTEGER = re.compile(r"[+-]?(0|[1-9]\d{0,17})")
_NUMBER = re.compile(r"[+-]?(0|[1-9]\d*)\.\d+([eE][+-]?\d+)?")


def csv_rows(document: Document, key_path: Path, text: str, settings: Mapping[str, object]) -> list[dict[str, object]]:
    """Return a CSV text's rows: NULLs as pandas reads them, numbers as written; raise ProjectError at `key_path`."""
    for key in settings:
        if key not in SETTINGS:
            raise document.error((*key_path, "csv_settings", key), f"`{key}` in `csv_settings` is not supported.")
    nulls = {*PANDAS_NULLS, *_text_list(settings.get("na_values"))}
    separator = str(settings.get("sep") or settings.get("delimiter") or ",")
    quote = str(settings.get("quotechar") or '"')
    if len(separator) != 1 or len(quote) != 1:
        raise document.error((*key_path, "csv_settings"), "A separator and a quote must be one character each.")
    rows = [row for row in csv.reader(io.StringIO(text.strip("\n")), delimiter=separator, quotechar=quote) if row]
    header = [name.strip() for name in rows[0]] if rows else []
    for number, row in enumerate(rows[1:], start=1):
        if len(row) != len(header):
            raise document.error(
                key_path, f"Row {number} of the CSV has {len(row)} cells, and its header {len(header)}."
            )
    return [
        dict(zip(header, (None if cell in nulls else _cell_value(cell) for cell in row), strict=True))
        for row in rows[1:]
    ]


def yaml_rows(document: Document, key_path: Path, path: str, text: str) -> object:
    """Return the content of a YAML file of rows; report an error at the test that names the file."""
    try:
        return read_document(path, text).value
    except ProjectError as error:
        raise document.error((*key_path, "path"), f"`{path}`: {error.message}") from None


def _cell_value(cell: str) -> object:
    if _INTEGER.fullmatch(cell):
        return int(cell)
    if _NUMBER.fullmatch(cell):
        return float(cell)
    return {"true": True, "false": False}.get(cell.lower(), cell)


def _text_list(value: object) -> list[str]:
    return [str(element) for element in value] if isinstance(value, list) else [] if value is None else [str(value)]
