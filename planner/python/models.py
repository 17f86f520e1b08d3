"""From the arguments of `@model(...)` to a Model: as the text of a MODEL block, so that one parser checks both.

Each property is in the same line of that text as in the project's file, so that errors have the right line.
"""

import ast
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from sqlglot import exp

from mergeplan.planner.errors import Place, ProjectError, ProjectErrors
from mergeplan.planner.fingerprint import digest, encode_text
from mergeplan.planner.model.kind import Fill, Kind
from mergeplan.planner.model.model import Model, PythonCode
from mergeplan.planner.naming import ColumnName
from mergeplan.planner.parsing.definitions.blueprints import MOST
from mergeplan.planner.parsing.definitions.custom_kind import check_interval
from mergeplan.planner.parsing.definitions.incremental import reading_itself
from mergeplan.planner.parsing.files.model_file import Defaults, parse_block, parse_model
from mergeplan.planner.parsing.sql.names import model_name
from mergeplan.planner.python.messages import RegisteredModel
from mergeplan.planner.python.modules import Module, read_module, says_only
from mergeplan.planner.python.reached import Reached, trace_code

BRACED = re.compile(r"@\{(\w+)\}|@(\w+)")
OURS = ("is_sql", "blueprints", "entrypoint")
NAMES = ("depends_on", "grain", "tags", "partitioned_by", "clustered_by", "references", "ignored_rules")
TEXTS = ("tags", "ignored_rules")
EXPRESSIONS = ("when_matched", "merge_filter")
PLAIN = ("name", "dialect", "storage_format", "table_format", "interval_unit")
Query = Callable[[RegisteredModel, Mapping[str, Any], str], str]
Versions = Callable[[str], str]
Queried = Callable[[str, Reached, Iterable[str]], str]


@dataclass(frozen=True)
class ModelReader:
    """The inputs of Python models: the project's texts and defaults, and functions that need its code to run.

    `query` returns the SQL of an `is_sql` model, `versions` the version of a package, `queried` is called with the code
    that a model reaches.
    """

    files: Mapping[str, str]
    defaults: Defaults
    query: Query
    versions: Versions
    queried: Queried


def python_models(registration: RegisteredModel, reader: ModelReader) -> Iterator[Model]:
    """Yield a model of the function for each blueprint; raise ProjectError(s) at the line of a wrong argument."""
    module = read_module(registration.path, reader.files[registration.path])
    lines = _argument_lines(module, registration)
    blueprints: Any = registration.arguments.get("blueprints")
    if not isinstance(blueprints, list | None) or any(not isinstance(mapping, dict) for mapping in blueprints or ()):
        place = Place(registration.path, lines.get("blueprints", registration.line))
        raise ProjectError("`blueprints` is a list of mappings.", place=place)
    mapping: dict[str, Any]
    if blueprints and len(blueprints) > MOST:
        place = Place(registration.path, lines.get("blueprints", registration.line))
        raise ProjectError(f"`blueprints` lists {len(blueprints):,} models, and a file may have {MOST:,}.", place=place)
    for mapping in blueprints or [{}]:
        blueprint = dict(mapping)
        arguments = {
            key: _fill_blueprint(value, blueprint) for key, value in registration.arguments.items() if key not in OURS
        }
        text = model_header(arguments, lines, registration.line, reader.defaults.dialect)
        try:
            model = _make_model(registration, text, reader, blueprint, lines.get("kind", registration.line))
        except ProjectError as error:
            nodes = module.defined.get(registration.name, ())
            raise _adjust_lines(
                error, registration, text.count("\n") + 1, nodes[-1].lineno if nodes else registration.line
            ) from None
        if model is not None:
            yield model


def model_header(arguments: Mapping[str, Any], lines: Mapping[str, int], first: int, default: str) -> str:
    """Return the arguments of @model as the text of a MODEL block, a line each, in their dialect or the default."""
    dialect = str(arguments.get("dialect") or default).partition(",")[0].strip()  # the rest are settings
    text = "\n" * (first - 1) + "MODEL ("
    for key, value in sorted(arguments.items(), key=lambda item: lines.get(item[0], first)):
        if value is None or (key in ("audits", "signals", "tags") and value == []):
            continue
        text += "\n" * max(lines.get(key, first) - 1 - text.count("\n"), 0)
        text += f" {key} {_format_value(key, value, dialect)},"
    return text.rstrip(",") + ");"


def _make_model(
    registration: RegisteredModel, text: str, reader: ModelReader, blueprint: Mapping[str, Any], kind_line: int
) -> Model | None:
    files, defaults = reader.files, reader.defaults
    if registration.arguments.get("is_sql"):
        dialect = str(registration.arguments.get("dialect") or defaults.dialect)
        model, _ = parse_model(f"{text}\n{reader.query(registration, blueprint, dialect)}", registration.path, defaults)
        return replace(model, source=files[registration.path]) if model else None
    usual = defaults.kind if defaults.kind.is_stored else Kind.FULL
    model = parse_block(text, registration.path, replace(defaults, kind=usual))
    if model is None:
        return None
    if not model.kind.is_stored or model.kind.is_seed:
        place = Place(registration.path, kind_line)
        raise ProjectError(f"A Python model cannot be {_add_article(model.kind)}: its rows are stored.", place=place)
    if not model.columns:
        hint = 'Write `columns={"id": "int"}` in @model.'
        raise ProjectError("A Python model must declare its columns.", place=model.place, hint=hint)
    check_interval(model, _reads_interval(registration, files))
    code = trace_code(files, registration.path, registration.name, reader.versions)
    tables = _find_tables(registration, model, code, defaults.catalog)
    model = _reading_itself(model) if model.name in tables else model
    variables = _find_variables(code, files, {**defaults.variables, **blueprint})
    values = tuple(sorted((name, json.dumps(value, default=str)) for name, value in variables.items()))
    gateway = (model.gateway or defaults.gateway) if any("gateway" in files[path] for path in code.files) else ""
    read = reader.queried(model.name, code, [str(value) for value in variables.values()])
    parts = (code.digest, encode_text(values), gateway)
    whole = digest(*parts, *([read] if read else []))[:32]
    any_file = next((str(access) for access in code.reads.unknown), "")
    python = PythonCode(registration.path, registration.name, whole, values, digest(*parts)[:32], any_file)
    # The table has these columns besides those that the code returns.
    history_names = {column.name for column in model.history_columns}
    columns = tuple(column for column in model.columns if column.name not in history_names)
    return replace(
        model,
        source=files[registration.path],
        columns=columns,
        depends_on=tuple(sorted(tables - {model.name})),
        python=python,
    )


def _reads_interval(registration: RegisteredModel, files: Mapping[str, str]) -> bool:
    """Return True if a function reads its batch's start or end, or all its arguments; also in doubt."""
    nodes = read_module(registration.path, files[registration.path]).defined.get(registration.name, ())
    for node in nodes:
        if not isinstance(node, ast.FunctionDef):
            return True
        parameter_names = {"start", "end", *([node.args.kwarg.arg] if node.args.kwarg else [])}
        if any(
            isinstance(child, ast.Name) and child.id in parameter_names
            for part in node.body
            for child in ast.walk(part)
        ):
            return True
    return not nodes


def _reading_itself(model: Model) -> Model:
    """Return a model whose code reads its own table as it was before the batch.

    Raise ProjectError for a merge into that table and for an overwrite, which have their rows only when the code has
    run.
    """
    if model.kind.fill not in (Fill.TIME, Fill.APPEND) or model.batches.insert_overwrite:
        kind = f"{model.kind} with `insert_overwrite`" if model.batches.insert_overwrite else model.kind
        message = f"`{model.name}` reads itself: that is not supported for a Python model of kind {kind}."
        hint = f"Python models that can: {Kind.INCREMENTAL_BY_TIME_RANGE} and {Kind.INCREMENTAL_UNMANAGED}."
        raise ProjectError(message, place=model.place, hint=hint)
    return reading_itself(model, model.place)


def _find_tables(registration: RegisteredModel, model: Model, code: Reached, catalog: str) -> set[str]:
    if code.unclear and "depends_on" not in registration.arguments:
        hint = 'Write its name as a literal, `context.table("schema.table")`, or set `depends_on` in @model.'
        message = f"The table that `{model.name}` reads here cannot be determined before it runs."
        raise ProjectError(message, place=code.unclear[0], hint=hint)
    named = {model_name(name, model.place, catalog) for name in code.tables}
    return named | set(model.depends_on)


def _find_variables(code: Reached, files: Mapping[str, str], variables: Mapping[str, Any]) -> dict[str, Any]:
    """Return the variables whose names occur in the code: it cannot read any other."""
    words = {word.lower() for path in code.files for word in re.findall(r"\w+", files[path])}
    return {name.lower(): value for name, value in variables.items() if name.lower() in words}


def _argument_lines(module: Module, registration: RegisteredModel) -> dict[str, int]:
    lines: dict[str, int] = {}
    for node in module.defined.get(registration.name, ()):
        for decorator in getattr(node, "decorator_list", ()):
            if isinstance(decorator, ast.Call) and says_only(decorator, module.imports, ("model",)):
                lines = {keyword.arg: keyword.value.lineno for keyword in decorator.keywords if keyword.arg}
                lines |= {"name": decorator.args[0].lineno} if decorator.args else {}
    return lines


def _adjust_lines(error: ProjectError, registration: RegisteredModel, last: int, function: int) -> ProjectError:
    """Return the error without columns, which are not the file's; an error in the query is reported at the function."""
    if isinstance(error, ProjectErrors):
        return ProjectErrors(
            tuple(_adjust_lines(single_error, registration, last, function) for single_error in error.errors)
        )
    at = error.place
    if at is not None and at.path == registration.path and at.column:  # without one it is of the code, not of our text
        error.located = Place(registration.path, at.line if at.line <= last else function)
    return error


def _fill_blueprint(value: Any, blueprint: Mapping[str, Any]) -> Any:
    """Return the value with `@{name}` and `@name` of the blueprint replaced in its texts."""
    if isinstance(value, str) and blueprint:
        elements = {name.lower(): element for name, element in blueprint.items()}
        return BRACED.sub(lambda match: str(elements.get((match[1] or match[2]).lower(), match[0])), value)
    if isinstance(value, list):
        return [_fill_blueprint(element, blueprint) for element in value]
    if isinstance(value, dict):
        return {key: _fill_blueprint(element, blueprint) for key, element in value.items()}
    return value


def _format_value(key: str, value: Any, dialect: str) -> str:
    if isinstance(value, dict) and set(value) == {"$sql"}:
        return str(value["$sql"])
    if key == "kind":
        return _format_kind(value, dialect)
    if key == "columns" and isinstance(value, dict):
        return _join_items(f"{_column_name(name, dialect)} {_raw_text(kind)}" for name, kind in value.items())
    if key in ("audits", "signals") and isinstance(value, list):
        return _join_items(_format_call(call, dialect) for call in value)
    if key in NAMES:
        items = value if isinstance(value, list) else [value]
        return _join_items(_format_text(item, dialect) if key in TEXTS else _raw_text(item) for item in items)
    if key == "grains" and isinstance(value, list):
        return _join_items(_join_items(map(_raw_text, g)) if isinstance(g, list) else _raw_text(g) for g in value)
    if isinstance(value, dict):
        named = _column_name if key == "column_descriptions" else _property_key
        return _join_items(f"{named(name, dialect)} = {_format_literal(item, dialect)}" for name, item in value.items())
    return _raw_text(value) if key in PLAIN else _format_literal(value, dialect)


def _format_kind(value: Any, dialect: str) -> str:
    if not isinstance(value, dict):
        return _raw_text(value)
    settings = {key: setting for key, setting in value.items() if key != "name" and setting is not None}
    shown = ", ".join(f"{key} {_format_setting(key, setting, dialect)}" for key, setting in settings.items())
    return f"{value.get('name', '')}" + (f" ({shown})" if shown else "")


def _format_setting(key: str, value: Any, dialect: str) -> str:
    if key == "materialization_properties" and isinstance(value, dict):
        return _format_value(key, value, dialect)
    if isinstance(value, dict) and "column" in value:  # a time column
        form = f", {_format_text(value['format'], dialect)}" if value.get("format") else ""
        return f"({_raw_text(value['column'])}{form})"
    if isinstance(value, list):
        return _join_items(map(_raw_text, value))
    if key in EXPRESSIONS:
        return f"({_raw_text(value)})"
    if isinstance(value, str) and re.fullmatch(r"[\w.]+", value):
        return value
    return _format_literal(value, dialect)


def _format_call(value: Any, dialect: str) -> str:
    if isinstance(value, str):
        return value
    name, arguments = value if isinstance(value, list) and len(value) == 2 else (value, {})
    if not isinstance(arguments, dict):
        return _raw_text(name)
    shown = (f"{key} := {_format_argument(key, argument, dialect)}" for key, argument in arguments.items())
    return f"{name}({', '.join(shown)})" if arguments else str(name)


def _format_argument(key: str, value: Any, dialect: str) -> str:
    """Return an argument of an audit; texts for columns are names."""
    if isinstance(value, list):
        items = ", ".join(_format_argument(key, element, dialect) for element in value)
        return f"({items}{',' if len(value) == 1 else ''})"
    return _raw_text(value) if key in ("column", "columns") else _format_literal(value, dialect)


def _join_items(items: Iterable[str]) -> str:
    return f"({', '.join(items)})"


def _raw_text(value: Any) -> str:
    return str(value["$sql"]) if isinstance(value, dict) and "$sql" in value else str(value)


def _format_literal(value: Any, dialect: str) -> str:
    if isinstance(value, dict) and "$sql" in value:
        return str(value["$sql"])
    if isinstance(value, bool) or value is None:
        return str(value).lower() if value is not None else "NULL"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, list):
        return _join_items(_format_literal(element, dialect) for element in value)
    return _format_text(value, dialect)


def _column_name(name: Any, dialect: str) -> str:
    """Return a column's name as MODEL writes it: in quotes unless it is a plain word."""
    text = str(name)
    if re.fullmatch(r"[A-Za-z_]\w*", text, re.ASCII):
        return text
    return exp.to_identifier(ColumnName.parse(text) or text.strip('"'), quoted=True).sql(dialect=dialect)


def _property_key(name: Any, dialect: str) -> str:
    text = str(name)
    if re.fullmatch(r"[A-Za-z_][\w.]*", text, re.ASCII):
        return text
    return exp.to_identifier(text.strip('`"'), quoted=True).sql(dialect=dialect)


def _format_text(value: Any, dialect: str) -> str:
    return exp.Literal.string(str(value)).sql(dialect=dialect)


def _add_article(kind: Kind) -> str:
    return f"{'an' if str(kind)[0] in 'AEIO' else 'a'} {kind}"
