"""Read seed files: rows of strings, a header checked against the declared columns, and one hash per column."""

import codecs
import csv
import hashlib
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from decimal import Decimal, InvalidOperation
from os.path import isfile
from pathlib import Path

from mergeplan.planner.errors import Located, Place, ProjectError
from mergeplan.planner.fingerprint import digest
from mergeplan.planner.model.model import Column, Model, Seed
from mergeplan.planner.parsing.sql.tokens import did_you_mean
from mergeplan.planner.wording import count_noun

Cells = tuple[str | None, ...]

_INT = re.compile(r"[+-]?[0-9]{1,18}")
_LONG_INT = re.compile(r"([+-]?)0*([0-9]{1,19})")  # which may be out of range
_INTS = range(-(2**63), 2**63)
_ANY_INT = re.compile(r"[+-]?[0-9]+")
_ZIP = b"PK\x03\x04"  # how such a file begins
_LFS_POINTER = "version https://git-lfs.github.com/"  # how such a file begins
_LONGEST_CELL = 2**31 - 1  # characters, as Spark's strings
_FLOAT = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?")
_INFERRED = (("bigint", _INT), ("double", _FLOAT), ("boolean", re.compile("true|false", re.IGNORECASE)))
CellReader = Callable[[str], str | None]
_PLAIN = re.compile(r"[+-]?[0-9]+")
_PLAIN_FRACTION = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?")
_CURRENCIES = "؋$ƒ៛¥₡₱£€¢﷼₪₩₭₮₦฿₤₫"
_EXPONENT_MAX = 400  # of a number whose digits are written out; no bigint or double is that long
_OFFSET = re.compile(r"(?P<moment>.*?\d:\d\d(:\d\d)?)(?P<fraction>\.\d+)?\s*(Z|[+-]\d\d(:?\d\d)?)?", re.IGNORECASE)


def load_seed(root: Path, model: Model) -> Model:
    """Return the model with its seed's header, hashes, and types if undeclared; raise ProjectError if it is broken."""
    assert model.seed is not None
    records = _read_records(root, model, model.locate("path", in_block=True))
    header = tuple(str(cell) for cell in next(records))
    for column in model.columns:
        if column.name not in header:
            hint = did_you_mean(column.name, header)
            message = f"The header has no column `{column.name}` that {model.place} declares."
            raise ProjectError(message, place=Place(model.seed.path, 1), hint=hint)
    fits = [{name for name, _ in _INFERRED} | {"whole"} for _ in header]
    rows = []
    for row in records:
        for fit, cell in zip(fits, row, strict=True):
            if cell is None or not fit:
                continue
            if fit == {"bigint", "double", "whole"} and _INT.fullmatch(cell):
                continue  # the usual case
            lost = {name for name, pattern in _INFERRED if name in fit and not pattern.fullmatch(cell)}
            if "bigint" in lost and (match := _LONG_INT.fullmatch(cell)) and int(match[1] + match[2]) in _INTS:
                lost.discard("bigint")
            if "whole" in fit and not _ANY_INT.fullmatch(cell):
                lost.add("whole")
            fit -= lost
        rows.append(row)
    cells = _hash_columns(header, rows)
    whole = digest(str(len(rows)), *(part for pair in cells for part in pair))
    seed = replace(model.seed, header=header, digest=whole, rows=len(rows), cells=cells)
    inferred = tuple(Column(name, _column_type(fit)) for name, fit in zip(header, fits, strict=True))
    return replace(model, seed=seed, columns=model.columns or inferred)


def _hash_columns(header: tuple[str, ...], rows: list[Cells]) -> tuple[tuple[str, str], ...]:
    """Return each column with a hash of its cells that does not depend on the order of lines in the file.

    The rows are sorted by the first column with unique values, if there is one. An edit of other cells then does not
    reorder the rows, so that only the hashes of the edited columns change.
    """
    columns = list(zip(*rows, strict=True)) or [()] * len(header)
    key = next((i for i, cells in enumerate(columns) if None not in cells and len(set(cells)) == len(rows)), None)
    ordered = sorted(rows, key=_sort_key if key is None else lambda row: str(row[key]))
    hashes = []
    for index, name in enumerate(header):
        hashed = hashlib.sha256()
        for row in ordered:
            cell = row[index]
            data = b"" if cell is None else cell.encode()
            hashed.update((2**64 - 1 if cell is None else len(data)).to_bytes(8, "big") + data)
        hashes.append((name, hashed.hexdigest()[:32]))
    return tuple(hashes)


def _sort_key(row: Cells) -> tuple[tuple[bool, str], ...]:
    return tuple((cell is not None, cell or "") for cell in row)


def read_seed(root: Path, model: Model, columns: tuple[str, ...] = ()) -> Iterator[Cells]:
    """Yield the rows, None for NULL, in the order of the header or of the given columns; errors as in `load_seed`."""
    assert model.seed is not None
    records = _read_records(root, model, Place(model.seed.path))
    header = next(records)
    order = [header.index(name) for name in columns] if columns else range(len(header))
    for row in records:
        yield tuple(row[index] for index in order)


def _read_records(root: Path, model: Model, named_at: Located) -> Iterator[Cells]:
    """Yield the header in lower case, then each row with NULLs; blank lines are rows in a seed of dbt only."""
    assert model.seed is not None
    seed = model.seed
    path = root / seed.path
    if not path.is_file():
        raise ProjectError(f"The seed file `{seed.path}` does not exist.", place=named_at)
    readers: list[CellReader] = []
    try:
        encoding = "utf-8-sig" if codecs.lookup(seed.encoding).name == "utf-8" else seed.encoding
        csv.field_size_limit(_LONGEST_CELL)
        with path.open(encoding=encoding, newline="") as file:
            reader = csv.reader(file, delimiter=seed.delimiter, quotechar=seed.quotechar, strict=True)
            try:
                for row in reader:
                    if not row and not (seed.is_dbt and readers):
                        continue
                    if not readers:
                        header = _read_header(row, path, Place(seed.path, reader.line_num))
                        types = {column.name: column.type for column in model.columns}
                        readers = [cell_reader(seed, types.get(name, "")) for name in header]
                        yield header
                        continue
                    if len(row) > len(readers):
                        message = f"This row has {count_noun(len(row), 'cell')}, the header has {len(readers)}."
                        raise ProjectError(message, place=Place(seed.path, reader.line_num))
                    cells = (read(cell) for read, cell in zip(readers, row, strict=False))
                    yield (*cells, *[None] * (len(readers) - len(row)))
            except csv.Error as error:
                message = f"This is not CSV: {error}."
                raise ProjectError(message, place=Place(seed.path, reader.line_num)) from None
    except UnicodeDecodeError:
        place = Place(seed.path, _undecodable_line(path, seed.encoding))
        message = f"The file is not encoded as {seed.encoding}."
        hint = "Set the encoding with `csv_settings (encoding = '...')`."
        if path.read_bytes()[:4] == _ZIP:
            message, hint = "The file is not CSV, but one of a spreadsheet or a zip file.", "Save it as CSV."
        raise ProjectError(message, place=place, hint=hint) from None
    except LookupError:
        raise ProjectError(f"`{seed.encoding}` is not an encoding.", place=named_at) from None
    if not readers:
        raise ProjectError("The seed file is empty.", place=Place(seed.path, 1))


def _read_header(row: list[str], path: Path, place: Place) -> tuple[str, ...]:
    header = tuple(cell.removeprefix("\ufeff").strip().lower() for cell in row)
    # in the bot's checkout a link is a file that holds its target, and nothing else
    if len(row) == 1 and path.stat().st_size == len(row[0].encode()) and isfile(path.parent / row[0]):
        message = f"The file is a symbolic link to `{row[0]}`, which the bot does not follow."
        raise ProjectError(message, place=place, hint="Set the model's `path` to that file.")
    if header[0].startswith(_LFS_POINTER):
        hint = "Run `git lfs pull`. The bot does not read Git LFS: commit the CSV file itself."
        raise ProjectError("The file is a pointer of Git LFS, not the CSV file.", place=place, hint=hint)
    if separators := [mark for mark in (";", "\t") if len(header) == 1 and mark in header[0]]:
        shown = separators[0].replace("\t", "\\t")
        hint = f"Set the delimiter with `csv_settings (delimiter = '{shown}')`."
        raise ProjectError(f"The header is one column with `{shown}` in its name.", place=place, hint=hint)
    for name in header:
        if "\0" in name:
            hint = "If it is UTF-16, set `csv_settings (encoding = 'utf-16-le')`."
            raise ProjectError("The header has a NUL character.", place=place, hint=hint)
        if not name:
            raise ProjectError("A column of the header has no name.", place=place)
        if header.count(name) > 1:
            raise ProjectError(f"The column `{name}` occurs twice in the header.", place=place)
    return header


def _column_type(fit: set[str]) -> str:
    """Return the type of a column whose cells fit these types; an integer out of range is text, not a double."""
    if "whole" in fit and "bigint" not in fit:
        return "string"
    return next((kind for kind, _ in _INFERRED if kind in fit), "string")


def _undecodable_line(path: Path, encoding: str) -> int:
    for number, line in enumerate(path.read_bytes().split(b"\n"), start=1):
        try:
            line.decode(encoding)
        except UnicodeDecodeError:
            return number
    return 1


def cell_reader(seed: Seed, type_: str) -> CellReader:
    """Return the function that reads the cells of a column of this type, '' for one of which it is not known."""
    nulls = frozenset(seed.na_values)
    if not seed.is_dbt:
        return lambda cell: None if cell in nulls else cell
    read = _DBT_READERS.get(type_.lower(), str)
    return lambda cell: None if cell.strip().lower() in nulls else read(cell)


def _read_decimal(cell: str) -> str:
    """Return a number as agate reads it: without a percent sign, currencies, and commas between thousands."""
    text = cell.strip().strip("%")
    sign, text = ("-", text[1:]) if text.startswith("-") else ("", text)
    try:
        number = Decimal(sign + text.strip(_CURRENCIES).replace(",", ""))
    except InvalidOperation:
        return cell
    if not number.is_finite() or abs(number.adjusted()) > _EXPONENT_MAX:
        return cell
    return f"{number:f}" if number % 1 else str(int(number))


def _read_moment(cell: str) -> str:
    """Return a moment as dbt-spark sends it: without its offset from UTC, in milliseconds."""
    match = _OFFSET.fullmatch(cell.strip())
    return cell if match is None else match["moment"] + (match["fraction"] or "")[:4]


_DBT_READERS: dict[str, Callable[[str], str]] = {
    "bigint": lambda cell: cell if _PLAIN.fullmatch(cell) else _read_decimal(cell),
    "double": lambda cell: cell if _PLAIN_FRACTION.fullmatch(cell) else _read_decimal(cell),
    "boolean": lambda cell: cell.replace(",", "").strip(),
    "timestamp": _read_moment,
}
