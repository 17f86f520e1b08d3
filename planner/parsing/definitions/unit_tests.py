"""Unit tests as data, from YAML: a model, input rows, expected rows."""

import csv
import io
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import date, datetime

from mergeplan.planner.errors import Place, ProjectError
from mergeplan.planner.model.model import PANDAS_NULLS
from mergeplan.planner.naming import SESSION_CATALOG
from mergeplan.planner.parsing.definitions.properties import spark_type
from mergeplan.planner.parsing.sql.dates import end_instant, parse_instant, text_of
from mergeplan.planner.parsing.sql.names import parse_name
from mergeplan.planner.parsing.sql.tokens import did_you_mean
from mergeplan.planner.parsing.sql.user_macros import Scalar
from mergeplan.planner.parsing.sql.yaml_documents import Document, Path, read_document

Row = Mapping[str, object]
Words = tuple[str, ...]

_COMMON = tuple("description inputs outputs vars gateway schema default_catalog freeze_time".split())
_KEYS = ("model", "this", "macro", "call", *_COMMON)
CALL_KEYS = ("call", "text", "query", "error")  # of a call that dbt rendered: the text, or why there is none
_RELATION = ("rows", "query", "columns", "partial", "format", "path", "csv_settings")
ReadFile = Callable[[str, str], str]  # a path as a test names it, and the test's own file -> text; ProjectError
CSV_SETTINGS = ("sep", "delimiter", "quotechar", "na_values", "skip_blank_lines")
_INTEGER = re.compile(r"[+-]?(0|[1-9]\d{0,17})")
_NUMBER = re.compile(r"[+-]?(0|[1-9]\d*)\.\d+([eE][+-]?\d+)?")


@dataclass(frozen=True)
class TestRows:
    """Rows of a table, given or from a query; `types` are the declared Spark types by column."""

    rows: tuple[Row, ...] = ()
    query: str = ""
    types: tuple[tuple[str, str], ...] = ()
    partial: bool = False
    line: int = 0


@dataclass(frozen=True)
class UnitTest:
    """One test: inputs by table, expected rows of the query (None: not compared) and of CTEs, and the time.

    `this` are the rows that the model's own table holds before the load (None: it is new), and `table` those that it
    is expected to hold afterwards (None: nothing is loaded). The test of a macro has the `call`, SQL that may be a
    query, and the `text` that it is expected to become (None: not compared); its `model` is `@` and the macro's name.
    """

    name: str
    model: str
    path: str
    line: int
    inputs: Mapping[str, TestRows]
    query: TestRows | None
    ctes: Mapping[str, TestRows]
    description: str = ""
    start: datetime | None = None
    end: datetime | None = None
    execution_time: datetime | None = None
    variables: tuple[tuple[str, Scalar], ...] = ()
    this: TestRows | None = None
    table: TestRows | None = None
    call: str = ""
    text: str | None = None
    rendered: str | None = None  # the text that dbt made of the call
    rendered_query: str = ""  # the same as Spark reads it
    error: str = ""  # why dbt made none

    @property
    def place(self) -> Place:
        return Place(self.path, self.line)

    @property
    def compares_only_text(self) -> bool:
        return bool(self.call) and self.query is None and not self.ctes


class UnknownModel(ProjectError):
    """A test of a model that does not exist."""


def _raise_error(error: ProjectError) -> None:
    raise error


@dataclass(frozen=True)
class Surroundings:
    """The objects that a test may refer to; `unknown` is called for each test whose model does not exist."""

    dialects: Mapping[str, str]
    gateways: Collection[str]
    read: ReadFile
    now: datetime
    catalog: str = SESSION_CATALOG  # of names without one
    dialect: str = "spark"  # of calls of macros
    unknown: Callable[[ProjectError], None] = _raise_error


def read_tests(document: Document, around: Surroundings) -> tuple[UnitTest, ...]:
    if document.value is None:
        return ()
    tests = []
    for name, body in _require_mapping(document, (), document.value).items():
        try:
            tests.append(_read_test(document, str(name), body, around))
        except UnknownModel as error:
            around.unknown(error)
    return tuple(tests)


def _read_test(document: Document, name: str, body: object, around: Surroundings) -> UnitTest:
    at: Path = (name,)
    fields = _require_mapping(document, at, body)
    _check_keys(document, at, fields, _KEYS)
    _check_place(document, at, fields, around)
    catalog = _test_catalog(document, at, fields, around)
    subject = _read_subject(document, at, fields, around)
    model, dialect = subject.model, subject.dialect
    inputs = {
        parse_name(str(table), document.place((*at, "inputs", str(table))), catalog): _read_relation(
            document, (*at, "inputs", str(table)), value, dialect, around.read
        )
        for table, value in _require_mapping(document, (*at, "inputs"), fields.get("inputs") or {}).items()
    }
    expected = _read_outputs(document, at, fields, dialect, around.read)
    this = _read_own_rows(document, at, fields, dialect, around.read)
    if model in inputs and (this is not None or expected.table is not None):
        message = "The rows that the model's own table holds before the load belong under `this`."
        raise document.error((*at, "inputs"), message, f"Move the rows of `{model}` there.")
    times, variables = _read_variables(document, (*at, "vars"), fields.get("vars") or {}, around.now)
    if fields.get("freeze_time") is not None:
        times.setdefault(
            "execution_time", _freeze_time(document, (*at, "freeze_time"), fields["freeze_time"], around.now)
        )
    if subject.rendered is not None and variables:
        raise document.error((*at, "vars"), "dbt renders the call, with the `vars` of the project alone.")
    return UnitTest(
        name=name,
        model=model,
        path=document.path,
        line=document.place(at).line,
        inputs=inputs,
        query=expected.query,
        ctes=expected.ctes,
        description=str(fields.get("description") or ""),
        start=times.get("start"),
        end=times.get("end"),
        execution_time=times.get("execution_time"),
        variables=variables,
        this=this,
        table=expected.table,
        text=expected.text,
        call=subject.call,
        rendered=subject.rendered,
        rendered_query=subject.query,
        error=subject.error,
    )


@dataclass(frozen=True)
class _Subject:
    """What is tested: a model, or a macro by its call."""

    model: str  # or `@` and the macro's name
    dialect: str
    call: str = ""
    rendered: str | None = None
    query: str = ""
    error: str = ""


def _read_subject(document: Document, test: Path, test_fields: Mapping[str, object], around: Surroundings) -> _Subject:
    macro = test_fields.get("macro")
    if macro is not None:
        if odd := next((key for key in ("model", "this") if key in test_fields), None):
            raise document.error((*test, odd), f"The test of a macro has no `{odd}`.")
        call, rendered, query, error = test_fields.get("call"), None, "", ""
        if isinstance(call, dict) and tuple(call) == CALL_KEYS:
            call, rendered, query, error = (str(call[key]) for key in CALL_KEYS)
        if not isinstance(macro, str) or not isinstance(call, str) or not call.strip():
            raise document.error(
                test, f"The test `{test[0]}` does not call its macro.", f'Add `call: "@{macro}(...)"`.'
            )
        return _Subject(f"@{macro.lower().removeprefix('@')}", around.dialect, call, rendered, query, error)
    if "call" in test_fields:
        raise document.error((*test, "call"), "`call` belongs to the test of a macro.", "Add `macro: name`.")
    if not isinstance(test_fields.get("model"), str):
        raise document.error(test, f"The test `{test[0]}` does not name its model.", "Add `model: schema.table`.")
    place = document.place((*test, "model"))
    model = parse_name(str(test_fields["model"]), place, _test_catalog(document, test, test_fields, around))
    if model not in around.dialects:
        hint = did_you_mean(model, around.dialects, most=5)
        raise UnknownModel(f"The test's model `{model}` does not exist.", place=place, hint=hint)
    return _Subject(model, around.dialects[model])


def _read_own_rows(
    document: Document, test: Path, test_fields: Mapping[str, object], dialect: str, read: ReadFile
) -> TestRows | None:
    """Return the rows under `this`; None without the key: then the table is new."""
    if "this" not in test_fields:
        return None
    if test_fields["this"] is None:
        hint = "Write `this: []` for a table without rows; leave `this` out for a table that is new."
        raise document.error((*test, "this"), "`this` lists no rows.", hint)
    return _read_relation(document, (*test, "this"), test_fields["this"], dialect, read)


def _test_catalog(document: Document, key_path: Path, test_fields: Mapping[str, object], around: Surroundings) -> str:
    catalog = test_fields.get("default_catalog")
    if catalog and str(catalog).lower() != around.catalog:
        message = f"`default_catalog` of a test is that of the project: `{around.catalog}`."
        raise document.error((*key_path, "default_catalog"), message, "Write names with their catalog.")
    return around.catalog


def _check_place(document: Document, key_path: Path, test_fields: Mapping[str, object], around: Surroundings) -> None:
    """Raise ProjectError for an unknown gateway; a known one has no effect, because a test creates no tables."""
    gateway = test_fields.get("gateway")
    if gateway is not None and gateway not in around.gateways:
        hint = did_you_mean(str(gateway), around.gateways)
        raise document.error((*key_path, "gateway"), f"There is no gateway `{gateway}`.", hint)


def _freeze_time(document: Document, key_path: Path, value: object, now: datetime) -> datetime:
    try:
        return parse_instant(text_of(value), now)
    except ValueError as error:
        raise document.error(key_path, f"`freeze_time`: {error}") from None


@dataclass(frozen=True)
class _Outputs:
    query: TestRows | None
    table: TestRows | None
    ctes: Mapping[str, TestRows]
    text: str | None


def _read_outputs(
    document: Document, test: Path, test_fields: Mapping[str, object], dialect: str, read: ReadFile
) -> _Outputs:
    at = (*test, "outputs")
    outputs = _require_mapping(document, at, test_fields.get("outputs") or {})
    _check_keys(document, at, outputs, ("query", "text" if "macro" in test_fields else "table", "ctes", "partial"))
    partial = outputs.get("partial") is True
    ctes = {
        str(name).lower(): _read_relation(document, (*at, "ctes", str(name)), value, dialect, read, partial)
        for name, value in _require_mapping(document, (*at, "ctes"), outputs.get("ctes") or {}).items()
    }
    query, table = (
        None if value is None else _read_relation(document, (*at, key), value, dialect, read, partial)
        for key, value in ((key, outputs.get(key)) for key in ("query", "table"))
    )
    text = outputs.get("text")
    if text is not None and not isinstance(text, str):
        raise document.error((*at, "text"), "`text` is the SQL that the call becomes, in quotes.")
    if query is None and table is None and text is None and not ctes:
        raise document.error(at, f"The test `{test[0]}` has no outputs.", "Add `outputs: {query: {rows: [...]}}`.")
    return _Outputs(query, table, ctes, text)


def _read_relation(
    document: Document, key_path: Path, value: object, dialect: str, read: ReadFile, partial: bool = False
) -> TestRows:
    """Return `[rows]` or `{rows | query | path, columns, partial, format, csv_settings}` as rows."""
    line = document.place(key_path).line
    if value is None or isinstance(value, list):
        return TestRows(_normalize_rows(document, key_path, value or []), partial=partial, line=line)
    fields = _require_mapping(document, key_path, value)
    _check_keys(document, key_path, fields, _RELATION)
    if sum(key in fields for key in ("rows", "query", "path")) != 1:
        raise document.error(key_path, "One of `rows`, `query` and `path` is required here.")
    types = tuple(
        (str(column).lower(), spark_type(str(text), dialect, document.place((*key_path, "columns", str(column)))))
        for column, text in _require_mapping(document, (*key_path, "columns"), fields.get("columns") or {}).items()
    )
    return TestRows(
        rows=_normalize_rows(document, (*key_path, "rows"), _read_rows(document, key_path, fields, read)),
        query=str(fields.get("query") or ""),
        types=types,
        partial=partial or fields.get("partial") is True,
        line=line,
    )


def _read_rows(document: Document, key_path: Path, fields: Mapping[str, object], read: ReadFile) -> object:
    path, form = fields.get("path"), str(fields.get("format") or "yaml").lower()
    if form not in ("yaml", "csv"):
        raise document.error((*key_path, "format"), f"`{form}` is not a format of rows.", "Known: csv, yaml.")
    if path is None and form == "yaml":
        return fields.get("rows") or []
    if path is None:
        text = str(fields.get("rows") or "")
    else:
        try:
            text = read(str(path), document.path)
        except ProjectError as error:
            raise document.error((*key_path, "path"), error.message, error.hint) from None
    if form == "csv":
        settings = _require_mapping(document, (*key_path, "csv_settings"), fields.get("csv_settings") or {})
        return csv_rows(document, key_path, text, {str(key): value for key, value in settings.items()})
    rows = yaml_rows(document, key_path, str(path), text)
    return rows.get("rows") if isinstance(rows, dict) else rows


def _normalize_rows(document: Document, key_path: Path, value: object) -> tuple[Row, ...]:
    if not isinstance(value, list):
        raise document.error(key_path, "Expected a list of rows here, each with `column: value`.")
    rows = (_require_mapping(document, (*key_path, index), row) for index, row in enumerate(value))
    return tuple({str(column).lower(): cell for column, cell in row.items()} for row in rows)


def _read_variables(
    document: Document, key_path: Path, value: object, now: datetime
) -> tuple[dict[str, datetime], tuple[tuple[str, Scalar], ...]]:
    """Return `start`, `end` (exclusive) and `execution_time` as moments, and all others as variables."""
    times: dict[str, datetime] = {}
    variables: list[tuple[str, Scalar]] = []
    for key, variable in _require_mapping(document, key_path, value).items():
        name = str(key).lower()
        if name in ("start", "end", "execution_time"):
            try:
                times[name] = (end_instant if name == "end" else parse_instant)(text_of(variable), now)
            except ValueError as error:
                raise document.error((*key_path, str(key)), f"`{key}`: {error}") from None
        elif variable is None or isinstance(variable, str | int | float | bool | date):
            variables.append((name, variable))
        else:
            raise document.error(
                (*key_path, str(key)), f"`{key}`: lists and mappings as variables are not supported yet."
            )
    if "start" in times and "end" in times and times["start"] >= times["end"]:
        raise document.error((*key_path, "end"), "The test's `end` is before its `start`.")
    return times, tuple(variables)


def _require_mapping(document: Document, key_path: Path, value: object) -> Mapping[str, object]:
    if not isinstance(value, dict):
        raise document.error(key_path, "Expected a mapping of `key: value` lines here.")
    return value


def _check_keys(document: Document, key_path: Path, fields: Mapping[str, object], known_keys: Words) -> None:
    for key in fields:
        if key not in known_keys:
            hint = did_you_mean(str(key), known_keys)
            raise document.error((*key_path, str(key)), f"`{key}` is not a key of a unit test.", hint)


def csv_rows(document: Document, key_path: Path, text: str, settings: Mapping[str, object]) -> list[dict[str, object]]:
    """Return a CSV text's rows: NULLs as pandas reads them, numbers as written; raise ProjectError at `key_path`."""
    for key in settings:
        if key not in CSV_SETTINGS:
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
