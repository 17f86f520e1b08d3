"""The keys of a table that audits check on each write: no two rows agree in all the columns of a key.

A `grain` is not checked, and not relied on. A blocking audit is: before it passes, nothing reads the table and no
environment shows it. It checks the whole table, or one batch of a table that is loaded by time.
"""

from collections.abc import Iterator

from sqlglot import exp

from mergeplan.planner.model.checks import AuditCall
from mergeplan.planner.model.kind import Fill
from mergeplan.planner.model.model import Model
from mergeplan.planner.naming import ColumnName
from mergeplan.planner.semantics.spark.spark_sql import FAILURES, tree_of

WHOLE = (Fill.WHOLE, Fill.FILE, Fill.KEY)  # all rows of such a table are audited together
Keys = tuple[tuple[str, ...], ...]


def keys_from_audits(model: Model) -> Keys:
    """Return the keys that blocking audits enforce in a table; NULLs are equal to them, as they are to GROUP BY.

    Each batch of a table that is loaded by time is audited alone: rows that agree in the time column are in one batch.
    A view has no such keys, because its rows may change without an audit.
    """
    if model.kind.fill in WHOLE or model.kind.is_external:
        return tuple(sorted({*_unique_audit_keys(model.checks.audits), *_merge_key(model)}))
    if model.kind.is_by_time and model.by_time.time_column:
        keys = _unique_audit_keys(model.checks.audits)
        return tuple(sorted({tuple(sorted({*key, model.by_time.time_column})) for key in keys}))
    return ()


def never_null(model: Model) -> frozenset[str]:
    """Return the columns without NULLs, because a blocking audit `not_null` checks them."""
    calls = (call for call in model.checks.audits if call.name == "not_null")
    return frozenset(column for call in calls for column in _read_audit_columns(call))


def _unique_audit_keys(audits: tuple[AuditCall, ...]) -> Iterator[tuple[str, ...]]:
    for call in audits:
        if call.name == "unique_values":
            yield from ((column,) for column in _read_audit_columns(call))
        elif call.name == "unique_combination_of_columns" and (columns := _read_audit_columns(call)):
            yield tuple(sorted(columns))


def _merge_key(model: Model) -> Iterator[tuple[str, ...]]:
    """Yield the `unique_key` of a merge if audits exclude NULLs in its columns: to a merge NULL equals nothing."""
    by_key = model.by_key
    if model.kind.fill is not Fill.KEY or by_key.when_matched or by_key.merge_filter or by_key.delete_insert:
        return
    present = never_null(model)
    key = tuple(sorted({column for text in by_key.unique_key for column in parse_columns(text) or [""]}))
    if key and present.issuperset(key):
        yield key


def _read_audit_columns(call: AuditCall) -> frozenset[str]:
    """Return the columns of a built-in audit that checks all rows and blocks; none for any other call."""
    arguments = dict(call.arguments)
    if call.query or call.blocking is False or set(arguments) != {"columns"}:
        return frozenset()
    return frozenset(parse_columns(arguments["columns"]))


def parse_columns(text: str) -> list[str]:
    """Return `(a, b)`, `array(a, b)` or `a` as names of columns, or nothing if one of them is something else."""
    if (name := ColumnName.parse(text)) is not None:
        return [name]
    try:
        (value,) = tree_of(f"SELECT {text}").expressions
    except FAILURES:
        return []
    listed = value.expressions if isinstance(value, (exp.Tuple, exp.Array)) else [value.unnest()]
    plain = all(isinstance(column, exp.Column) and isinstance(column.this, exp.Identifier) for column in listed)
    if not plain or any(column.args.get("table") for column in listed):
        return []
    return [str(column.name).lower() for column in listed]
