"""Seed files: CSV as rows of text, its header checked against the declared columns, its content as one hash."""

from __future__ import annotations

import csv
import hashlib
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from planner.errors import Place, ProjectError
from planner.model import Column, Model, Seed
from planner.reading.parse import line_of
from planner.reading.sqltext import did_you_mean

Cells = tuple[str | None, ...]

_INT = re.compile(r"[+-]?\d{1,18}")
_FLOAT = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_INFERRED = (("bigint", _INT), ("double", _FLOAT), ("boolean", re.compile("true|false", re.IGNORECASE)))


def with_seed(root: Path, model: Model) -> Model:
    """The model with its seed's header and hash, and with column types by the content where none are declared.

    ProjectError: the file is missing, ragged, badly encoded, or lacks a declared column.
    """
    assert model.seed is not None
    hashed = hashlib.sha256()
    header: tuple[str, ...] = ()
    fits: list[set[str]] = []
    for row in _records(root, model.seed, line_of(model, "path", header=True)):
        if not header:
            header = tuple(str(cell) for cell in row)
            fits = [{name for name, _ in _INFERRED} for _ in header]
            _check_header(model, header)
        else:
            _narrow(fits, row)
        for cell in (str(len(row)), *row):
            data = b"" if cell is None else cell.encode()
            hashed.update((2**64 - 1 if cell is None else len(data)).to_bytes(8, "big") + data)
    seed = replace(model.seed, header=header, digest=hashed.hexdigest())
    inferred = tuple(
        Column(name, next((kind for kind, _ in _INFERRED if kind in fit), "string"))
        for name, fit in zip(header, fits, strict=True)
    )
    return replace(model, seed=seed, columns=model.columns or inferred)


def read_seed(root: Path, seed: Seed, columns: tuple[str, ...] = ()) -> Iterator[Cells]:
    """The rows, None for NULL, in the order of the header or of the given columns; ProjectError as in `with_seed`."""
    records = _records(root, seed, Place(seed.path))
    header = next(records)
    order = [header.index(name) for name in columns] if columns else range(len(header))
    for row in records:
        yield tuple(row[index] for index in order)


def _records(root: Path, seed: Seed, named_at: Place) -> Iterator[Cells]:
    """The header in lower case, then each row with NULLs; blank lines are left out."""
    path = root / seed.path
    if not path.is_file():
        raise ProjectError(f"The seed file `{seed.path}` does not exist.", place=named_at)
    encoding = "utf-8-sig" if seed.encoding.lower().replace("_", "-") in ("utf-8", "utf8") else seed.encoding
    width = 0
    try:
        with path.open(encoding=encoding, newline="") as file:
            reader = csv.reader(file, delimiter=seed.delimiter, quotechar=seed.quotechar, strict=True)
            try:
                for row in reader:
                    if not row:
                        continue
                    if not width:
                        width = len(row)
                        yield _header(row, Place(seed.path, reader.line_num))
                        continue
                    if len(row) != width:
                        message = f"This row has {_counted(len(row), 'cell')}, the header has {width}."
                        raise ProjectError(message, place=Place(seed.path, reader.line_num))
                    yield tuple(None if cell in seed.na_values else cell for cell in row)
            except csv.Error as error:
                message = f"This is not CSV: {error}."
                raise ProjectError(message, place=Place(seed.path, reader.line_num)) from None
    except UnicodeDecodeError:
        place = Place(seed.path, _undecodable_line(path, seed.encoding))
        hint = "Say which one with `csv_settings (encoding = '...')`."
        raise ProjectError(f"The file is not encoded as {seed.encoding}.", place=place, hint=hint) from None
    except LookupError:
        raise ProjectError(f"`{seed.encoding}` is not an encoding.", place=named_at) from None
    if not width:
        raise ProjectError("The seed file is empty.", place=Place(seed.path, 1))


def _header(row: list[str], place: Place) -> Cells:
    header = tuple(cell.strip().lower() for cell in row)
    for name in header:
        if not name:
            raise ProjectError("A column of the header has no name.", place=place)
        if header.count(name) > 1:
            raise ProjectError(f"The column `{name}` stands twice in the header.", place=place)
    return header


def _check_header(model: Model, header: tuple[str, ...]) -> None:
    assert model.seed is not None
    for column in model.columns:
        if column.name not in header:
            hint = did_you_mean(column.name, header)
            message = f"The header lacks the column `{column.name}` that {model.place} declares."
            raise ProjectError(message, place=Place(model.seed.path, 1), hint=hint)


def _narrow(fits: list[set[str]], row: Cells) -> None:
    """Drop the types that a cell of the row cannot have."""
    for fit, cell in zip(fits, row, strict=True):
        if cell is not None and fit:
            fit -= {name for name, pattern in _INFERRED if name in fit and not pattern.fullmatch(cell)}


def _undecodable_line(path: Path, encoding: str) -> int:
    for number, line in enumerate(path.read_bytes().split(b"\n"), start=1):
        try:
            line.decode(encoding)
        except UnicodeDecodeError:
            return number
    return 1


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}" + ("" if count == 1 else "s")
