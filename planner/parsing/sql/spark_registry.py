"""Judge the functions of Spark's own registry (4.0, 4.1, 4.2, 4.3): which of them may project code call.

A pull request's SQL runs with the rights of Spark's process, so a function must do nothing but compute a value from its
arguments. `spark_registry.ini` lists them all. Closed are those that run classes, open files or addresses, or show data
that the server stores. A name that is in none of the lists is closed too: it may be a function of a jar or of the
catalog, which the operator allows by name.

`tests/planner/parsing/test_spark_registry.py` compares the lists with the registry of the Spark that is installed.
"""

from collections.abc import Collection
from difflib import get_close_matches

from mergeplan.planner.model.table_format import FORMATS
from mergeplan.planner.name_lists import read_lists

_LISTS = read_lists(__package__, "spark_registry.ini")
_OPEN = {group: frozenset(names) for group, names in _LISTS["open"].items()}
_CLOSED = {group: frozenset(names) for group, names in _LISTS["closed"].items()}
JAVA, NAMING, XML, LOGS = (_CLOSED[group] for group in ("java", "naming", "xml", "logs"))
CLOSED = XML | LOGS | _CLOSED["schemas"] | _CLOSED["outside"]
PLAIN, SHOWING, OPERATORS = (_OPEN[group] for group in ("plain", "showing", "operators"))
OPEN = frozenset().union(*_OPEN.values())
# `catalog.system.bucket(8, id)`: functions that the catalogs of a table format have.
OF_CATALOGS = frozenset(name for form in FORMATS.values() for name in form.functions)
# The position of the options of the functions that have any, and which options those may be.
OPTIONS = {
    "from_xml": 2, "schema_of_xml": 1, "to_xml": 1, "from_csv": 2, "schema_of_csv": 1, "to_csv": 1,
}  # fmt: skip
OPTION_NAMES = frozenset(_LISTS["options"]["names"])
# of DuckDB
OF_FILES = frozenset(
    """read_csv read_csv_auto read_parquet parquet_scan read_json read_json_auto read_ndjson read_ndjson_auto read_text
    read_blob read_xlsx delta_scan iceberg_scan sqlite_scan glob""".split()
)
FILES_HINT = (
    "Load a CSV as a seed, or let a table have the files (`CREATE TABLE raw.items USING parquet LOCATION '...'`)."
)
OPERATOR = "the operator can allow it in `functions` of the gateway's `connection`"
STREAM_HINT = "Write the table's name alone. Rows of streaming tables are read as those of other tables, as a source."


def function_refusal(name: str, allowed_names: Collection[str] = ()) -> tuple[str, str] | None:
    """Return why a function may not be called and a hint, or None if it may.

    `name` is in lower case, with its schema if it has one. `allowed_names` are the names, and the beginnings of names
    with a `*`, that the operator adds. A beginning opens nothing that is closed.
    """
    bare_name = spark_name(name)
    if bare_name in JAVA:
        return f"`{bare_name}` runs arbitrary Java code and is not allowed.", ""
    if bare_name in NAMING:
        return "`IDENTIFIER(...)` hides which table or column is read.", "Write the name itself."
    if name in allowed_names or bare_name in allowed_names:
        return None
    if bare_name in OF_FILES:
        return f"`{bare_name}` reads files, and a model of mergeplan reads tables.", FILES_HINT
    if bare_name in CLOSED:
        return _refuse_closed(bare_name)
    if bare_name == "stream":
        return "`STREAM` reads a table as a stream, and a model of mergeplan reads tables as a whole.", STREAM_HINT
    schema, _, last = name.rpartition(".")
    if bare_name in OPEN or (last in OF_CATALOGS and schema.rpartition(".")[2] == "system"):
        return None
    if any(name.startswith(beginning[:-1]) for beginning in allowed_names if beginning.endswith("*")):
        return None
    near = [] if schema else get_close_matches(name, PLAIN | SHOWING, n=1, cutoff=0.8)
    hint = "".join(f"Did you mean `{candidate}`? " for candidate in near)
    hint += f"If it is a function of a jar or of the catalog, {OPERATOR}: `functions: [{name}]`."
    return f"`{name}` is not a function of Spark.", hint


def spark_name(name: str) -> str:
    """Return the name of one of Spark's own functions, or '' for one in a schema of the catalog."""
    schema, _, last = name.rpartition(".")
    return last if schema in ("", "builtin", "system.builtin") else ""


def is_closed(name: str) -> bool:
    """Return True for a closed function of Spark, by its bare name in lower case."""
    return name in CLOSED | JAVA | NAMING


def option_refusal(function: str, option: str | None) -> str:
    """Return why a function may not have an option, or ''; None is an option whose name cannot be read."""
    if option is None:
        return f"The options of `{function}` must be written as `map('name', 'value')`: some of them open files."
    if option.lower() in OPTION_NAMES:
        return ""
    return f"The option `{option[:40]}` of `{function}` is not allowed: it may open a file, an address or a class."


def _refuse_closed(name: str) -> tuple[str, str]:
    if name in XML:
        hint = f"Read the text with `from_xml(text, 'a STRING, b INT')`, which opens nothing; or {OPERATOR}."
        return f"`{name}` opens the files and addresses that an XML text names, and is not allowed.", hint
    if name in LOGS:
        return f"`{name}` shows the logs of the server and is not allowed.", "Remove it."
    return f"`{name}` reads something other than tables and is not allowed.", f"Read a table; or {OPERATOR}."
