"""The effects of a node's hooks on its rows.

Rows that hooks insert are part of the query. If hooks load a seed, or if a table has only the rows of its hooks, dbt
fills it. Any other effect of a hook is refused.
"""

import re
from collections.abc import Iterator
from functools import partial

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from mergeplan.planner.errors import Place, ProjectError
from mergeplan.planner.fingerprint import digest
from mergeplan.planner.naming import ColumnName
from mergeplan.planner.parsing.files.dbt.nodes import DbtNode, table_name
from mergeplan.planner.parsing.files.foreign_text import without_end
from mergeplan.planner.semantics.spark.spark_settings import is_harmless

_NAME = r"((?:`[^`]+`|\w+)(?:\.(?:`[^`]+`|\w+))*)"
HARMLESS = re.compile(  # hooks that shape no row
    r"\s*(?:OPTIMIZE|VACUUM|ANALYZE|GRANT|REVOKE|COMMENT|REFRESH|MSCK\s+REPAIR)\b"
    r"|\s*(?:CREATE|DROP)\s+BLOOMFILTER\s+INDEX\b"
    r"|\s*CREATE\s+(?:SCHEMA|DATABASE)\s+IF\s+NOT\s+EXISTS\b"
    rf"|\s*ALTER\s+(?:TABLE|VIEW)\s+{_NAME}\s+(?:SET\s+(?:TBLPROPERTIES|TAGS|OWNER\s+TO)|UNSET\s+(?:TBLPROPERTIES|TAGS)"
    r"|OWNER\s+TO|ADD\s+(?:CONSTRAINT\s+\S+\s+)?(?:PRIMARY|FOREIGN)\s+KEY|CLUSTER\s+BY"
    r"|ALTER\s+(?:COLUMN\s+)?(?:`[^`]+`|\w+)\s+COMMENT)\b",
    re.IGNORECASE,
)
_SET = re.compile(r"\s*SET\s+([\w.]+)\s*=\s*([^;]*?)\s*;?\s*", re.IGNORECASE)
_OF_PARTITIONS = re.compile(r"hive\.exec\.(?:dynamic\.partition(?:\.mode)?|max\.dynamic\.partitions(?:\.pernode)?)")
_OVERWRITES = "spark.sql.sources.partitionOverwriteMode"  # which dbt sets to `dynamic` itself where partitions replace
_NOT_NULL = re.compile(
    rf"\s*ALTER\s+TABLE\s+{_NAME}\s+(?:ALTER|CHANGE)\s+(?:COLUMN\s+)?(`[^`]+`|\w+)\s+SET\s+NOT\s+NULL\s*+;?\s*+",
    re.IGNORECASE,
)
_MADE = re.compile(rf"\s*CREATE\s+(?:EXTERNAL\s+)?TABLE\s+IF\s+NOT\s+EXISTS\s+{_NAME}", re.IGNORECASE)
_INSERTED = re.compile(r"\s*INSERT\s+INTO\s+(?:TABLE\s+)?([`\w.]+)\s+(VALUES\b.*)", re.IGNORECASE | re.DOTALL)
_LOADED = re.compile(
    r"\s*(?:TRUNCATE\s+TABLE|COPY\s+INTO|INSERT\s+INTO(?:\s+TABLE)?)\s+([`\w.]+)(?=[\s;(]|\Z)", re.IGNORECASE
)
_CALL = re.compile(r"\s*\{\{.*\}\}\s*", re.DOTALL)  # of a macro: its statements are unknown before it runs
TABLES = ("table", "incremental")
_COMMENT = re.compile(r"--[^\n]*|/\*.*?\*/", re.DOTALL)
_PARTS = re.compile(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|;", re.DOTALL)


def refuse_hooks(node: DbtNode) -> None:
    """Raise ProjectError for a hook whose effect on rows is unknown."""
    inserts = _insert_hooks(node)
    for hook in _shaping_hooks(node):
        if hook not in inserts:
            start = " ".join(hook.split())[:60]
            hint = (
                "OPTIMIZE, VACUUM, ANALYZE, GRANT and COMMENT are allowed there: they are left to dbt. For what a hook"
            )
            hint += " does to rows, change the model's query; what it does to other tables belongs in `on-run-end`."
            message = f"`{node.table}` has the hook `{start}`, which mergeplan does not run."
            raise ProjectError(message, place=Place(node.path, 1), hint=hint)


def refuse_header(node: DbtNode) -> None:
    """Raise ProjectError for a `sql_header` whose effect on the query after it is unknown."""
    text = _COMMENT.sub(" ", str(node.settings.get("sql_header") or ""))
    statements = [part for part in text.split(";") if part.strip()]  # a quoted semicolon yields parts that are no SET
    if unknown := next((part for part in statements if not _sets_no_result(part)), ""):
        raise node.refusal(f"sets `sql_header` to `{' '.join(unknown.split())[:60]}`, which mergeplan does not follow")


def with_inserted_rows(node: DbtNode) -> str:
    """Return the query of a table with the rows that its hooks insert, each value cast to its column's type."""
    inserts = _insert_hooks(node)
    if not inserts:
        return node.text
    text = without_end(node.text)
    columns = _cast_columns(text)
    if not columns:
        raise node.refusal("has hooks that insert rows, and its query does not say the types of its columns by CAST")
    values = ", ".join(f"CAST(_{number} AS {kind}) AS {name}" for number, (name, kind) in enumerate(columns, 1))
    names = ", ".join(f"_{number}" for number in range(1, len(columns) + 1))
    rows = [
        f"SELECT {values} FROM {_insert_values(node, hook, len(columns))}\nAS inserted ({names})" for hook in inserts
    ]
    return "\nUNION ALL\n".join([f"SELECT * FROM (\n{text}\n) AS built", *rows])


def is_loaded(node: DbtNode) -> bool:
    """Return True for a node whose table only dbt can fill, as packages do for dbt's data about its own runs.

    It is a seed that its hooks load, or a table whose query reads no table and whose hooks, or macros in them, fill it.
    """
    if node.error or any(map(str.strip, node.hooks)):
        return False
    inserts = _insert_hooks(node)
    statements = [hook for hook in _shaping_hooks(node) if hook not in inserts]
    if node.type == "seed":
        return bool(statements) and all(map(partial(_is_load, node), statements))
    is_filled = bool(statements) and all(_is_load(node, hook) or _CALL.fullmatch(hook) for hook in statements)
    return is_filled and node.type == "model" and node.materialized in TABLES and _is_made_of_nothing(node)


def load_stamp(node: DbtNode) -> str:
    """Return a stamp that changes if dbt would load other rows: by another statement, or into other columns."""
    types = (part for column in node.types for part in column)
    made = (node.text, node.later) if node.type == "model" else ()
    return digest(*(" ".join(text.split()) for text in (*made, *_shaping_hooks(node))), *types)[:12]


def _is_made_of_nothing(node: DbtNode) -> bool:
    """Return True for a model that reads no table, so that no edit of another model changes its rows."""
    try:
        trees = [sqlglot.parse_one(text, dialect="spark") for text in (node.text, node.later) if text.strip()]
    except SqlglotError:
        return False
    named = {cte.alias.lower() for tree in trees for cte in tree.find_all(exp.CTE)}
    tables = {table.sql("spark").lower() for tree in trees for table in tree.find_all(exp.Table)}
    return (
        bool(trees) and not node.depends_on and all(isinstance(tree, exp.Query) for tree in trees) and tables <= named
    )


def _shaping_hooks(node: DbtNode) -> Iterator[str]:
    """Yield the hooks that may shape rows; one that creates another table if it is missing does not."""
    for hook in (*node.hooks, *node.post_hooks):
        made = _MADE.match(hook)
        is_of_another = made is not None and table_name(made[1]) != node.table
        is_left = HARMLESS.match(hook) or _sets_no_result(hook) or is_of_another or _not_null_column(node, hook)
        if hook.strip() and not is_left:
            yield hook


def not_null_columns(node: DbtNode) -> Iterator[str]:
    """Yield the columns that hooks declare NOT NULL; a row without a value is then an error."""
    yield from filter(None, (_not_null_column(node, hook) for hook in node.post_hooks))


def _not_null_column(node: DbtNode, hook: str) -> str:
    """Return the node's column that a hook declares NOT NULL, or '' for other hooks and other table formats."""
    match = _NOT_NULL.fullmatch(hook) if hook in node.post_hooks else None
    is_kept = str(node.settings.get("file_format") or "").lower() in ("delta", "iceberg")
    name = ColumnName.parse(match[2]) if match and is_kept and table_name(match[1]) == node.table else None
    return name or ""


def _sets_no_result(hook: str) -> bool:
    match = _SET.fullmatch(hook)
    if match is None:
        return False
    if match[1] == _OVERWRITES:
        return match[2].strip("'\"").lower() == "dynamic"
    return is_harmless(match[1]) or bool(_OF_PARTITIONS.fullmatch(match[1]))


def _insert_hooks(node: DbtNode) -> tuple[str, ...]:
    if node.type != "model" or node.materialized != "table":
        return ()
    matches = ((hook, _INSERTED.fullmatch(hook)) for hook in node.post_hooks)
    return tuple(hook for hook, match in matches if match and table_name(match[1]) == node.table)


def _is_load(node: DbtNode, hook: str) -> bool:
    match = _LOADED.match(hook)
    is_one = ";" not in (part for part in _PARTS.findall(hook.strip().rstrip(";")))
    return match is not None and is_one and table_name(match[1]) == node.table


def _cast_columns(query: str) -> list[tuple[str, str]]:
    try:
        tree = sqlglot.parse_one(query, dialect="spark")
    except SqlglotError:
        return []
    if not isinstance(tree, exp.Select):
        return []
    casts = [(item.alias_or_name, item.unalias()) for item in tree.selects]
    if not all(name and isinstance(cast, exp.Cast) for name, cast in casts):
        return []
    return [(exp.to_identifier(name, quoted=True).sql("spark"), cast.args["to"].sql("spark")) for name, cast in casts]


def _insert_values(node: DbtNode, hook: str, width: int) -> str:
    match = _INSERTED.fullmatch(hook)
    assert match is not None
    text = match[2].strip().rstrip(";")
    try:
        tree = sqlglot.parse_one(f"SELECT * FROM {text}", dialect="spark")
    except SqlglotError:
        raise node.refusal("has a hook that inserts rows, which is not one statement of SQL") from None
    values = tree.args["from_"].this if isinstance(tree, exp.Select) and "from_" in tree.args else None
    rows = values.expressions if isinstance(values, exp.Values) and not values.alias else []
    if not rows or any(not isinstance(row, exp.Tuple) or len(row.expressions) != width for row in rows):
        raise node.refusal(f"has a hook that inserts other rows than ones of {width} values")
    if any(tree.find_all(exp.Column)) or any(part is not tree for part in tree.find_all(exp.Select)):
        raise node.refusal("has a hook that inserts what is no constant value")
    return text
