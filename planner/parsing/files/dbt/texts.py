"""The text of a model for a dbt node, with the dbt tests that belong to it as audits below."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from mergeplan.planner.errors import Place, ProjectError
from mergeplan.planner.parsing.definitions.audits.freshness import is_readable
from mergeplan.planner.parsing.files.dbt.hooks import is_loaded, load_stamp, not_null_columns
from mergeplan.planner.parsing.files.dbt.kinds import dbt_kind, fill_edges, quote_name, quote_text
from mergeplan.planner.parsing.files.dbt.merges import key_texts
from mergeplan.planner.parsing.files.dbt.moments import fill_moments
from mergeplan.planner.parsing.files.dbt.nodes import DbtNode, DbtProject, DbtSource
from mergeplan.planner.parsing.files.foreign_text import find_files, find_macro, is_blank, without_end

COUNT = "count(*)"
FAILS = "!= 0"
FILES = ("parquet", "orc")
TABLES = ("delta", "iceberg")
_CONDITION = re.compile(r"\s*(=|==|!=|<>|<|<=|>|>=)\s*\d+\s*")
_WORD = re.compile(r"\W+")


def model_text(node: DbtNode, audits: Sequence[tuple[str, str]] = ()) -> str:
    """Return the text of a node's model, with audits by name below it; raise ProjectError."""
    kind = dbt_kind(node)
    if node.type != "seed" and is_blank(node.text):
        message = f"The file of `{node.table}` has no query."
        raise ProjectError(message, place=Place(node.path, 1), hint="Write one, or delete the file.")
    header = [
        f"name {_quote_table(node)}",
        f"kind {kind.kind}",
        *kind.properties,
        *_list_layout(node),
        *_list_contract(node),
    ]
    header += _list_labels(node)
    if audits:
        header.append(f"audits ({', '.join(name for name, _ in audits)})")
    filled = fill_moments(node, kind.query)
    # Spark would read any files there
    if path := find_files(filled):
        problem = f"`{node.table}` reads the files `{path[:80]}` by their path, and not a table."
        hint = "Let a table have them (`CREATE TABLE raw.items USING parquet LOCATION '...'`), and read it as a source."
        raise ProjectError(problem, place=Place(node.path, 1), hint=hint)
    _refuse_macros(node, filled)
    query = f" {fill_edges(node, filled).rstrip()}\n" if kind.query else ""  # whose lines are those of dbt's text
    below = "".join(f"\n{text}\n" for _, text in audits)
    return f"MODEL ({', '.join(header)});{query}{';' if query and below else ''}{below}"


def audit_texts(test: DbtNode, model: DbtNode | None) -> Iterator[tuple[str, str]]:
    """Yield the audits of a test, as (name, AUDIT block).

    An audit is blocking if the test is an error in dbt, and only warns if it is a warning. A test without a single
    model is a standalone audit. Raise ProjectError for a test that cannot run.
    """
    if test.error:
        raise ProjectError(f"dbt cannot compile it: {test.error.rstrip('.')}.", place=Place(test.path, test.line))
    if is_blank(test.text):
        raise ProjectError("its file has no query.", place=Place(test.path, 1))
    _refuse_macros(test, test.text)
    settings = test.settings
    is_error = str(settings.get("severity") or "error").lower() == "error"
    warn_if, error_if = (str(settings.get(key) or FAILS) for key in ("warn_if", "error_if"))
    if is_error:
        yield _audit_block(test, model, error_if, blocking=True)
    if not is_error or warn_if != error_if:
        yield _audit_block(test, model, warn_if, blocking=False)


def audit_name(test: DbtNode) -> str:
    """Return the name of a test's audit; that of one that warns beside another that blocks has `_warns` behind it."""
    return _WORD.sub("_", test.id.partition(".")[2])


def _audit_block(test: DbtNode, model: DbtNode | None, condition: str, *, blocking: bool) -> tuple[str, str]:
    if not _CONDITION.fullmatch(condition):
        message = f"it fails at `{condition}`, which is no comparison with a number."
        raise ProjectError(message, place=Place(test.path, 1))
    query = without_end(fill_moments(test, test.text))
    if model is not None:
        query = replace_relation(query, model.relation, "@this_model")
        if model.relation in query:
            message = f"it names columns by the whole name `{model.relation}`."
            raise ProjectError(message, place=Place(test.path, 1))
    counted = str(test.settings.get("fail_calc") or COUNT)
    if counted != COUNT or condition != FAILS:
        query = f"SELECT failures FROM (SELECT {counted} AS failures FROM (\n{query}\n) AS failed) AS counted"
        query += f" WHERE failures {condition}"
    ending = "" if blocking else "_warns"
    name = f"{audit_name(test)}{ending}"
    property_text = f"blocking {str(blocking).lower()}" if model else "standalone true"
    return name, f"AUDIT (name {name}, {property_text});\n{query}\n;"  # which may end with a comment


def replace_relation(text: str, relation: str, replacement: str) -> str:
    return re.sub(rf"(?<![\w`.]){re.escape(relation)}(?![\w`.])", lambda _: replacement, text)


def tests_by_model(project: DbtProject) -> tuple[Mapping[str, list[DbtNode]], list[DbtNode]]:
    """Return tests by node id, each at the last built node of those it reads, and the tests of no single node."""
    by_model: dict[str, list[DbtNode]] = {}
    apart: list[DbtNode] = []
    for test in project.nodes:
        if test.type == "test":
            # A test runs at the node that is built from all others that it reads.
            reads = [name for name in test.depends_on if name in project.by_id]
            owner = next((name for name in reads if not set(reads) - {name} - _list_ancestors(project, name)), None)
            (apart if owner is None else by_model.setdefault(owner, [])).append(test)
    return by_model, apart


def _list_ancestors(project: DbtProject, name: str) -> set[str]:
    above: set[str] = set()
    waiting = [name]
    while waiting:
        node = project.by_id.get(waiting.pop())
        new_names = set(node.depends_on) - above if node else set()
        above |= new_names
        waiting += new_names
    return above


def constraint_texts(node: DbtNode) -> Iterator[tuple[str, str]]:
    """Yield the audits of the constraints of hooks and of a contract, which fail a write on Delta."""
    name = f"{_WORD.sub('_', node.id.partition('.')[2])}_constraint"
    for column in dict.fromkeys(not_null_columns(node)):
        yield _constraint_audit(node, f"{name}_not_null_{_WORD.sub('_', column)}", f"{quote_name(column)} IS NULL")
    if not _is_enforced(node) or str(node.settings.get("file_format") or "").lower() != "delta":
        return
    for number, (kind, column, expression) in enumerate(node.settings.get("constraints") or (), start=1):
        if kind == "not_null" and column:
            condition = f"{quote_name(column)} IS NULL"
        elif kind == "check" and not column:
            condition = f"NOT coalesce(({expression}), false)"
        else:
            continue  # dbt ignores it on Spark
        yield _constraint_audit(node, f"{name}_{number}", condition)


def _constraint_audit(node: DbtNode, name: str, condition: str) -> tuple[str, str]:
    _refuse_macros(node, condition)
    return name, f"AUDIT (name {name}, blocking true);\nSELECT * FROM @this_model WHERE {condition};"


def _is_enforced(node: DbtNode) -> bool:
    contract = node.settings.get("contract")
    is_enforced = isinstance(contract, dict) and contract.get("enforced") is True
    return is_enforced and node.type == "model" and node.materialized != "ephemeral"


def _list_contract(node: DbtNode) -> Iterator[str]:
    if not _is_enforced(node):
        return
    if untyped := [column.name for column in node.columns if not column.type]:
        message = f"`{node.table}` has a contract that states no `data_type` of `{untyped[0]}`."
        raise ProjectError(message, place=Place(node.path, 1))
    if not node.columns:
        raise ProjectError(f"`{node.table}` has a contract without columns.", place=Place(node.path, 1))
    yield f"columns ({', '.join(f'{quote_name(column.name)} {column.type}' for column in node.columns)})"
    yield "contract true"


def _quote_table(node: DbtNode) -> str:
    parts = node.table.split(".")
    return ".".join(map(quote_name, parts))


def _list_labels(node: DbtNode) -> Iterator[str]:
    if text := " ".join(node.description.split()):
        yield f"description {quote_text(text)}"
    if node.owner:
        yield f"owner {quote_text(node.owner)}"
    if node.tags:
        yield f"tags ({', '.join(map(quote_text, node.tags))})"
    texts = [(column.name, " ".join(column.description.split())) for column in node.columns if column.description]
    if texts and node.type != "seed":
        yield f"column_descriptions ({', '.join(f'{quote_name(name)} = {quote_text(text)}' for name, text in texts)})"


def _list_layout(node: DbtNode) -> Iterator[str]:
    if node.type == "seed" or node.materialized in ("view", "ephemeral"):
        return
    file_format = str(node.settings.get("file_format") or "").lower()
    if file_format in FILES:
        yield f"storage_format {file_format}"
    elif file_format in TABLES:
        yield f"table_format {file_format}"
    elif file_format:
        message = f"`{node.table}` has the file format `{file_format}`."
        raise ProjectError(message, place=Place(node.path, 1), hint=f"Use one of {', '.join((*FILES, *TABLES))}.")
    if columns := key_texts(node, "partition_by"):
        yield f"partitioned_by ({', '.join(columns)})"


def _refuse_macros(node: DbtNode, text: str) -> None:
    if at := find_macro(text):
        raise ProjectError(f"`{node.name}` has `{at}` in its query, which mergeplan would take for a macro.",
                           place=Place(node.path, 1))  # fmt: skip


def external_texts(project: DbtProject) -> Iterable[dict[str, object]]:
    """Yield sources with typed columns, perhaps not all, or freshness as external models, and tables that dbt fills."""
    for node in filter(is_loaded, project.nodes):
        yield {"name": _quote_table(node), "columns": dict(node.types), "stamp": load_stamp(node)}
    built = {node.table for node in project.nodes if node.type != "test"}
    tables: dict[str, list[DbtSource]] = {}
    for source in project.sources:
        if source.table not in built and (_is_typed(source) or is_readable(source.freshness_settings)):
            tables.setdefault(source.relation.replace("`", "").lower(), []).append(source)
    for table, sources in tables.items():
        description = next((source.description for source in sources if source.description), "")
        settings = (source.freshness_settings for source in sources)
        freshness = next(filter(is_readable, settings), {})
        typed = [*filter(_is_typed, sources)]
        yield {
            "name": ".".join(map(quote_name, table.split("."))),
            **({"columns": _merge_columns(typed), "partial_columns": True} if typed else {}),
            **({"description": description} if description else {}),
            **({"freshness": freshness} if freshness else {}),
        }


def _is_typed(source: DbtSource) -> bool:
    return bool(source.columns) and all(column.type for column in source.columns)


def _merge_columns(sources: Sequence[DbtSource]) -> dict[str, str]:
    """Return the columns of a table that sources describe, without those of which they say different types."""
    types: dict[str, set[str]] = {}
    for column in (column for source in sources for column in source.columns):
        types.setdefault(column.name.lower(), set()).add(column.type)
    return {name: next(iter(kinds)) for name, kinds in types.items() if len(kinds) == 1}


def exposure_texts(project: DbtProject) -> Iterable[dict[str, object]]:
    for exposure in project.exposures:
        nodes = [project.by_id[name] for name in exposure.depends_on if name in project.by_id]
        words = {"name": exposure.name, "type": exposure.type, "owner": exposure.owner}
        url = {"url": exposure.url} if exposure.url.startswith(("https://", "http://")) else {}
        if nodes:
            yield {**words, **url, "models": [_quote_table(node) for node in nodes]}
