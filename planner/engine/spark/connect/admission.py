"""The check of what project code sends to Spark: a Spark Connect request is admitted, or refused with a sentence.

Nothing here opens a connection. An admitted request holds only fields that `admitted_fields` lists. The names and texts
in it have been checked, and each text is written back as it was parsed.
"""

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from mergeplan.planner.engine.spark.connect.admitted_fields import FIELDS, PACKAGE, refusal_text
from mergeplan.planner.naming import SESSION_CATALOG
from mergeplan.planner.parsing.sql.names import without_default
from mergeplan.planner.parsing.sql.queried_tables import (
    TABLE_FUNCTIONS,
    NotAdmitted,
    Queried,
    check_function,
    parse_expression,
    parse_query,
    table_name,
)
from mergeplan.planner.parsing.sql.spark_registry import OPTIONS, is_closed, option_refusal

Message = Any  # of protobuf, whose classes are made when they are imported
DEEPEST = 1_000  # messages within each other; Spark reads 1,024
LARGEST = 1 << 30  # bytes of one block of a frame's rows
READABLE = re.compile(
    r"spark\.sql\.(ansi\.enabled|caseSensitive|timestampType|autoBroadcastJoinThreshold|storeAssignmentPolicy"
    r"|shuffle\.partitions|crossJoin\.enabled|parquet\.\w+|adaptive\.[\w.]+|execution\.[\w.]+|pyspark\.[\w.]+"
    r"|session\.[\w.]+|repl\.eagerEval\.\w+|legacy\.[\w.]+|sources\.partitionOverwriteMode"
    r"|sources\.partitionColumnTypeInference\.enabled)"
    r"|spark\.python\.sql\.dataFrameDebugging\.enabled|spark\.version|spark\.app\.name",
    re.ASCII,
)
BLOCK = re.compile(r"cache/([0-9a-f]{64})")
VIEW = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
OF_A_FRAME = re.compile(r"_pyspark_connect_temp_view_[0-9a-f]{32}")  # `spark.sql("... {df}", df=df)`
FUNCTION = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*){0,2}|[^\w\s`.]{1,3}", re.ASCII)  # a name or an operator
JSON = 2  # of the formats of a Parse
OF_A_SCHEMA = frozenset({"from_json", "from_csv", "from_xml"})  # an argument of theirs may be a schema as JSON
RESERVED = frozenset({"stream", "values", "lateral", "table", "identifier", "global_temp"})
PYTHON = (
    "A function in Python runs in Spark's workers, which are not known to be isolated: use Spark's own functions, or"
    " work on `toPandas()`. The operator admits such functions with MERGEPLAN_ISOLATION_UDF=allow; see"
    " docs/explanation/isolation.md."
)


@dataclass(frozen=True)
class ReadScope:
    """The current rights of project code on Spark, in one session with this default catalog.

    `tables` and `views` are the names (without quotes) that it may read. `prefix` is that of the global views for its
    rows ('' for none). `python` admits functions in Python.
    """

    session: str = ""
    tables: frozenset[str] = frozenset()
    views: frozenset[str] = frozenset()
    prefix: str = ""
    python: bool = False
    catalog: str = SESSION_CATALOG
    functions: frozenset[str] = frozenset()  # beside Spark's own: those of the operator, and of the session

    def reads(self, identifier: str) -> bool:
        """Return True for the name of a table or view that may be read.

        Beyond Spark's own catalog, case may tell tables apart: there a name must be written exactly.
        """
        parts = identifier.split(".")
        outer = parts[0] if len(parts) == 3 else self.catalog
        folds = len(parts) == 1 or outer.lower() == SESSION_CATALOG
        name = without_default(identifier.lower() if folds else identifier, self.catalog)
        return name in self.tables or name in self.views


@dataclass(frozen=True)
class TemporaryView:
    name: str
    is_global: bool


def admit_request(request: Message, scope: ReadScope) -> None:
    """Raise NotAdmitted unless each field, name and text of the request is admitted; write its SQL as parsed."""
    if request.session_id != scope.session:
        raise NotAdmitted("The request speaks for a session that is not this model's.")
    waiting: list[tuple[Message, int]] = [(request, 0)]
    while waiting:
        message, depth = waiting.pop()
        if depth > DEEPEST:
            raise NotAdmitted("The plan is nested too deeply.")
        name = message.DESCRIPTOR.full_name.removeprefix(PACKAGE)
        allowed = FIELDS.get(name, frozenset())
        field_values = message.ListFields()
        for field, _ in field_values:
            if field.name not in allowed:
                raise NotAdmitted(refusal_text(name, field.name))
        if check := CHECKS.get(name):
            check(message, scope)
        waiting.extend((inner, depth + 1) for field, value in field_values for inner in _inner_messages(field, value))


def function_of(request: Message) -> str:
    """Return the name of the Python function that an ExecutePlan registers, in lower case; '' if there is none."""
    command = request.plan.command
    kind = command.WhichOneof("command_type")
    if kind not in ("register_function", "register_table_function"):
        return ""
    name: str = getattr(command, kind).function_name
    return name.lower()


def view_of(request: Message) -> TemporaryView | None:
    if request.plan.command.WhichOneof("command_type") != "create_dataframe_view":
        return None
    view_command = request.plan.command.create_dataframe_view
    return TemporaryView(view_command.name, view_command.is_global)


class Blocks:
    """The blocks of a frame's rows that are being sent; one whose content does not match its name is not admitted."""

    def __init__(self) -> None:
        self._name = ""
        self._left = 0
        self._bytes = 0
        self._digest = hashlib.sha256()

    def admit(self, request: Message) -> None:
        """Raise NotAdmitted if this part belongs to no block, or ends one that does not match its name."""
        kind = request.WhichOneof("payload")
        if self._left and kind != "chunk":
            raise NotAdmitted("A block of rows was not sent to its end.")
        if kind == "batch":
            for artifact in request.batch.artifacts:
                self._begin_block(artifact.name, 1)
                self._add_part(artifact.data.data)
        elif kind == "begin_chunk":
            self._begin_block(request.begin_chunk.name, request.begin_chunk.num_chunks)
            self._add_part(request.begin_chunk.initial_chunk.data)
        elif kind == "chunk" and self._left:
            self._add_part(request.chunk.data)
        else:
            raise NotAdmitted("The data for Spark is not a block of rows.")

    def _begin_block(self, name: str, chunks: int) -> None:
        if not BLOCK.fullmatch(name):
            raise NotAdmitted(f"`{name[:80]}`: `addArtifact` is not allowed to project code.")
        self._name, self._left, self._bytes, self._digest = name, chunks, 0, hashlib.sha256()

    def _add_part(self, data: bytes) -> None:
        self._left -= 1
        self._bytes += len(data)
        self._digest.update(data)
        if self._bytes > LARGEST:
            raise NotAdmitted(f"A block of rows has more than {LARGEST:,} bytes.")
        if self._left <= 0 and self._name != f"cache/{self._digest.hexdigest()}":
            raise NotAdmitted("A block of rows is not what its name says.")


def _inner_messages(field: Any, value: Any) -> Iterator[Message]:
    if field.message_type is None:
        return
    if field.message_type.GetOptions().map_entry:
        if field.message_type.fields_by_name["value"].message_type is not None:
            yield from value.values()
    elif field.is_repeated:
        yield from value
    else:
        yield value


def _check_tables(names: frozenset[str], scope: ReadScope) -> None:
    for name in sorted(names):
        if not scope.reads(name) and not OF_A_FRAME.fullmatch(name):
            raise NotAdmitted(
                f"`{name[:120]}` is not a table that this model reads: name it in `depends_on`, and read"
                ' `context.table("...")`.'
            )


def _check_table_name(message: Message, scope: ReadScope) -> None:
    _check_tables(frozenset({table_name(message.unparsed_identifier)}), scope)


def _table_exists(message: Message, scope: ReadScope) -> None:
    names = [message.db_name] if message.db_name else []
    _check_tables(frozenset({table_name(".".join([*names, message.table_name]))}), scope)


def _check_sql(message: Message, scope: ReadScope) -> None:
    read = parse_query(message.query, scope.functions)
    _check_tables(read.tables, scope)
    message.query = f"({read.text}\n)"  # in parentheses Spark takes a query and nothing else


def _check_expression(message: Message, scope: ReadScope) -> None:
    read: Queried = parse_expression(message.expression, scope.functions)
    _check_tables(read.tables, scope)
    message.expression = read.text


def _check_call(message: Message, scope: ReadScope) -> None:
    if not FUNCTION.fullmatch(message.function_name):
        raise NotAdmitted(f"`{message.function_name[:80]}` is not the name of a function of Spark.")
    name = message.function_name.lower()
    check_function(name, scope.functions)
    if name in OPTIONS and name not in scope.functions:
        for argument in message.arguments[OPTIONS[name] :]:
            _check_options(name, argument)
    if name in OF_A_SCHEMA:
        for argument in message.arguments:
            _schema_text(argument.literal.string)


def _check_options(name: str, argument: Message) -> None:
    """Raise NotAdmitted for options of a function that are no map of plain texts, or that may open a file."""
    inner = argument.unresolved_function
    plain = inner.function_name in ("map", "create_map") and len(inner.arguments) % 2 == 0
    for option in inner.arguments[::2] if plain else [argument]:
        text = option.literal.string if option.literal.WhichOneof("literal_type") == "string" else None
        if message := option_refusal(name, text):
            raise NotAdmitted(message)


def _table_function(message: Message, scope: ReadScope) -> None:
    if message.function_name.lower() not in TABLE_FUNCTIONS:
        raise NotAdmitted(f"The table function `{message.function_name[:80]}` is not allowed to project code.")


def _check_python(message: Message, scope: ReadScope) -> None:
    if not scope.python:
        raise NotAdmitted(PYTHON)


def _check_registration(message: Message, scope: ReadScope) -> None:
    """Raise NotAdmitted if a command registers a Python function under a name that is not allowed."""
    kind = message.WhichOneof("command_type")
    if kind in ("register_function", "register_table_function"):
        name = getattr(message, kind).function_name
        if not VIEW.fullmatch(name) or name.lower() in RESERVED or is_closed(name.lower()):
            raise NotAdmitted(f"`{name[:80]}` is not the name of a function of Python: choose another one.")


def _check_view(message: Message, scope: ReadScope) -> None:
    if not message.is_global:
        if not VIEW.fullmatch(message.name) or message.name.lower() in RESERVED or OF_A_FRAME.fullmatch(message.name):
            raise NotAdmitted(f"`{message.name[:80]}` is not the name of a temporary view.")
    elif message.replace or not scope.prefix or not re.fullmatch(rf"{scope.prefix}_\d{{1,4}}", message.name, re.ASCII):
        raise NotAdmitted("A global temporary view is not allowed to project code: others would see it.")


def _sql_command(message: Message, scope: ReadScope) -> None:
    root = message.input
    if root.WhichOneof("rel_type") == "with_relations":
        root = root.with_relations.root
    if root.WhichOneof("rel_type") != "sql":
        raise NotAdmitted("A command in SQL is a query here and nothing else.")


def _check_parse(message: Message, scope: ReadScope) -> None:
    """Raise NotAdmitted for a CSV or XML option, of texts that are read as rows, that may name a class or a file."""
    for option in message.options if message.format != JSON else ():
        if refused := option_refusal("spark.read", option):
            raise NotAdmitted(refused)


def _check_deduplicate(message: Message, scope: ReadScope) -> None:
    if message.within_watermark:
        raise NotAdmitted(refusal_text("Relation", "with_watermark"))


def _check_settings(message: Message, scope: ReadScope) -> None:
    for key in [*getattr(message, "keys", ()), *(pair.key for pair in getattr(message, "pairs", ()))]:
        if not READABLE.fullmatch(key):
            raise NotAdmitted(f"The setting `{key[:120]}` is not shown to project code.")


def _check_blocks(message: Message, scope: ReadScope) -> None:
    for name in message.names:
        if not BLOCK.fullmatch(name):
            raise NotAdmitted(f"`{name[:80]}`: artifacts are not allowed to project code.")


def _schema_text(text: str) -> None:
    """Raise NotAdmitted for a schema as JSON that names a class."""
    if "{" not in text:
        return
    try:
        waiting = [json.loads(text)]
    except (ValueError, RecursionError):
        raise NotAdmitted("The schema of a frame cannot be read.") from None
    while waiting:
        part = waiting.pop()
        if isinstance(part, Mapping):
            if "class" in part or part.get("type") == "udt":
                raise NotAdmitted(refusal_text("DataType", "udt"))
            waiting.extend(value for key, value in part.items() if key != "metadata")
        elif isinstance(part, list):
            waiting.extend(part)


CHECKS: Mapping[str, Callable[[Message, ReadScope], None]] = {
    "Read.NamedTable": _check_table_name,
    "TableExists": _table_exists,
    "SQL": _check_sql,
    "SqlCommand": _sql_command,
    "Expression.ExpressionString": _check_expression,
    "Expression.UnresolvedFunction": _check_call,
    "CallFunction": _check_call,
    "UnresolvedTableValuedFunction": _table_function,
    "Parse": _check_parse,
    "Deduplicate": _check_deduplicate,
    "PythonUDF": _check_python,
    "PythonUDTF": _check_python,
    "Command": _check_registration,
    "CreateDataFrameViewCommand": _check_view,
    "ConfigRequest.Get": _check_settings,
    "ConfigRequest.GetOption": _check_settings,
    "ConfigRequest.GetWithDefault": _check_settings,
    "ConfigRequest.IsModifiable": _check_settings,
    "ArtifactStatusesRequest": _check_blocks,
    "LocalRelation": lambda message, scope: _schema_text(message.schema),
    "DataType.Unparsed": lambda message, scope: _schema_text(message.data_type_string),
    "AnalyzePlanRequest.JsonToDDL": lambda message, scope: _schema_text(message.json_string),
    "Expression.Cast": lambda message, scope: _schema_text(message.type_str),
}
