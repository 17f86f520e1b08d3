"""The meaning of a model's query and the columns that it reads of each parent: its `Shape`, analysed or remembered."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import chain

from sqlglot import exp
from sqlglot.errors import SqlglotError

from mergeplan.planner.fingerprint import encode_text
from mergeplan.planner.intervals import UNITS
from mergeplan.planner.model.model import Model
from mergeplan.planner.model.table_order import order_columns
from mergeplan.planner.semantics.dependencies import depends_on, source_columns
from mergeplan.planner.semantics.digests import Digests
from mergeplan.planner.semantics.keywords import is_keyword, mistakes_keywords
from mergeplan.planner.semantics.normalize import (
    expands_aliases,
    has_captured_alias,
    has_misread_names,
    hides_names,
    join_catalogs,
    normalize_query,
    pivots_joins,
)
from mergeplan.planner.semantics.open_columns import MORE, add_open_columns
from mergeplan.planner.semantics.parent import Parent, narrow_parents
from mergeplan.planner.semantics.query import time_locality
from mergeplan.planner.semantics.query.algebra import Opaque, Relation
from mergeplan.planner.semantics.query.clauses import clause_digests
from mergeplan.planner.semantics.query.qualified import qualify_query
from mergeplan.planner.semantics.query.queries import Query
from mergeplan.planner.semantics.query.row_order import order_of
from mergeplan.planner.semantics.query.sources import TableSource
from mergeplan.planner.semantics.query.time_locality import TimeDependence
from mergeplan.planner.semantics.query.unique import Keys, keys_of
from mergeplan.planner.semantics.shape import Reads, Shape, Source, close_over_itself, expand_own_columns
from mergeplan.planner.semantics.shape_memory import NO_MEMORY, ShapeMemory
from mergeplan.planner.semantics.spark.spark_functions import is_volatile, multiplies_rows
from mergeplan.planner.semantics.spark.spark_settings import TIME_ZONE
from mergeplan.planner.semantics.spark.spark_sql import FAILURES, tree_of
from mergeplan.planner.semantics.traits import takes_rows_by_order, traits_of
from mergeplan.planner.semantics.two_forms import FORMS
from mergeplan.planner.semantics.types import certain_types, explicit_type, reader_type

# Settings that change results, but under which the rules of equivalence still hold.
RULED = frozenset((TIME_ZONE,))


def shape_of(sql: str, parents: Mapping[str, Parent], time_column: str = "", memory: ShapeMemory = NO_MEMORY) -> Shape:
    """Return the shape of a Spark query over these parents; a parent that is not given has unknown columns.

    With a time column, the query loads a table by time interval.
    """
    traits = traits_of(sql, memory)
    narrowed = not traits.unnamed
    narrowed_parents = narrow_parents(sql, parents) if narrowed else parents
    above = tuple(sorted(narrowed_parents.items(), key=lambda parent: parent[0]))
    source = Source(sql, above, time_column, narrowed, memory, lambda: _analyze_query(sql, above, time_column).relation)
    key = memory.key("shape", *source.key_parts)
    shape = memory.recall(Shape, key)
    if shape is None:
        analysis = _analyze_query(sql, source.parents, time_column)
        shape = analysis.shape
        if analysis.certain:
            memory.remember(key, shape)
            if analysis.relation is not None:
                source.remember_relation(analysis.relation)
    return replace(shape, source=source, named=traits.columns)


def code_shape(code: str, columns: Iterable[str], parents: Iterable[str]) -> Shape:
    """Return the shape of a Python model whose code is known only by a digest: everything that it reads counts."""
    reads = {name: Reads(every=True) for name in parents}
    return Shape(False, f"code {code}", tuple(columns), volatile_rows=True, reads=reads)


@dataclass(frozen=True)
class _Analysis:
    """A shape with its relation; not `certain` if it depends on the depth of the stack."""

    shape: Shape
    relation: Relation | None = None
    certain: bool = True


@lru_cache(maxsize=8192)
def _analyze_query(sql: str, parent_pairs: tuple[tuple[str, Parent], ...], time_column: str) -> _Analysis:
    try:
        return _read(sql, parent_pairs, time_column)
    except FAILURES as failure:  # sqlglot cannot analyse it, so only its text counts
        shape = Shape(False, sql, None, reads={name: Reads(every=True) for name, _ in parent_pairs})
        return _Analysis(shape, certain=not isinstance(failure, RecursionError))


def _read(sql: str, parent_pairs: tuple[tuple[str, Parent], ...], time_column: str) -> _Analysis:
    tree = tree_of(sql)
    join_catalogs(tree)
    names = tables_of(tree)
    parents = {name: Parent(None) for name in names} | {name: parent for name, parent in parent_pairs if name in names}
    opened = add_open_columns(tree, parents)
    if opened is None:
        return _Analysis(_unknown_shape(sql, tree, names))
    parents, is_open = opened, opened != parents
    schemas = {name: parent.columns for name, parent in parents.items()}
    # Before qualification, which would resolve these names without a warning.
    doubtful = mistakes_keywords(tree, schemas)
    tree = normalize_query(tree)
    unknown = any(columns is None for columns in schemas.values()) or hides_names(tree)
    if unknown or has_captured_alias(tree, schemas) or pivots_joins(tree) or expands_aliases(tree):
        return _Analysis(_unknown_shape(sql, tree, names))
    try:
        qualified = qualify_query(tree, schemas)
    except SqlglotError:
        unresolved = None if is_open else _find_unresolved_column(tree, schemas)
        return _Analysis(_unknown_shape(sql, tree, names, unresolved))
    return _build_analysis(tree, qualified, parents, time_column, doubtful or has_misread_names(tree, qualified))


def model_shape(model: Model, parents: Mapping[str, Parent], memory: ShapeMemory = NO_MEMORY) -> Shape:
    """Return the shape of a model's query over its parents.

    Columns cannot be followed if statements that may change results run before the query, or if the parser misreads it.
    Those of a model that reads itself are followed through all of its batches. Under such statements, and under some
    Spark settings, two spellings that are equivalent by mergeplan's rules may differ. Then only the written query
    counts.
    """
    own_parent = _build_own_parent(model, parents, memory) if model.reads_itself else {}
    time_column = model.by_time.time_column
    shape = shape_of(model.sql, {**parents, **own_parent}, time_column, memory)
    if own_parent and own_parent[model.name].columns is None and (first := _first_branch(model.sql, model.name)):
        shape = replace(shape, unresolved=shape_of(first, parents, memory=memory).unresolved)
    if (shape.whole_days and UNITS[model.cron.unit] < UNITS["day"]) or _has_times_as_text(model, shape):
        shape = replace(shape, by_batch=True, volatile_rows=shape.volatile_rows or bool(time_column), day=None)
    if model.kind.is_embedded:
        shape = _add_spelling(shape, model.sql, parents)
    by_rules = not model.statements.shaping and all(key in RULED for key, _ in model.settings)
    if by_rules and not model.written.misread and (not own_parent or shape.own is not None):
        return follow_itself(shape, model.name) if own_parent else shape
    text, statements_text = shape.text, encode_text(model.statements.shaping)
    text = text if by_rules else Digests().hash_texts("as written", statements_text, _as_written(model.sql))
    text = Digests().hash_texts("as written", model.written.misread, text) if model.written.misread else text
    every = {name: Reads(every=True) for name in parents}
    unresolved = shape.unresolved if by_rules else None
    obstacle = shape.obstacle if by_rules and not model.written.misread else ""
    text_shape = Shape(shape.known, text, shape.columns, reads=every, unresolved=unresolved)
    text_shape = replace(text_shape, named=shape.named, obstacle=obstacle)
    if own_parent or model.written.misread or model.statements.shaping:  # which may take columns by their place
        return text_shape
    return replace(text_shape, reads_batch=shape.reads_batch, by_batch=shape.by_batch, source=shape.source)


def _has_times_as_text(model: Model, shape: Shape) -> bool:
    """Return True if a query filters a time column of texts that are no days: `@end_ds` is before times of its day."""
    written = model.by_time.time_format not in ("", "yyyy-MM-dd")
    return written and shape.reads_batch and dict(shape.types).get(model.by_time.time_column) == "string"


def _add_spelling(shape: Shape, sql: str, parents: Mapping[str, Parent]) -> Shape:
    """Return the shape of an embedded query, whose readers see the case of its names."""
    # The names that its star returns are those of another embedded query.
    spelled = _as_written(sql) if _has_star(sql) and any(parent.is_spelled for parent in parents.values()) else ""
    names = [*sorted(names_with_capitals(sql).values()), *([spelled] if spelled else [])]
    text = Digests().hash_texts("spelled", shape.text, *names) if names else shape.text
    return replace(shape, text=text, spelled=spelled)


@lru_cache(maxsize=1024)
def _has_star(sql: str) -> bool:
    try:
        tree = tree_of(sql)
    except FAILURES:
        return True
    return isinstance(tree, exp.Query) and tree.is_star


@lru_cache(maxsize=1024)
def names_with_capitals(sql: str) -> Mapping[str, str]:
    """Return the outputs with capitals by their lower-case name; a star may return any name of the text."""
    try:
        tree = tree_of(sql)
    except FAILURES:
        return {}  # only its text counts then
    if not isinstance(tree, exp.Query):
        return {}
    # all but those of tables and their aliases
    column_names = {
        identifier.name
        for identifier in tree.find_all(exp.Identifier)
        if identifier.arg_key not in ("table", "db", "catalog")
        and not isinstance(identifier.parent, exp.Table)
        and not (isinstance(identifier.parent, exp.TableAlias) and identifier.arg_key == "this")
    }
    names = sorted(column_names) if tree.is_star else tree.named_selects
    written: dict[str, str] = {}
    for name in names:
        if name != name.lower():
            written[name.lower()] = written.get(name.lower(), "") + name
    return written


@lru_cache(maxsize=8192)
def _as_written(sql: str) -> str:
    return _tree_text(tree_of(sql))


def _build_own_parent(model: Model, parents: Mapping[str, Parent], memory: ShapeMemory) -> dict[str, Parent]:
    types = {column.name: column.type for column in model.columns}
    query = None if types else shape_of(model.sql, parents, memory=memory)
    if query and query.columns is None and (first := _first_branch(model.sql, model.name)):
        query = shape_of(first, parents, memory=memory)
    if query and query.columns is None:  # a `*` that does not take the model's own columns needs none of their names
        named = Parent((*sorted(query.named), MORE))
        query = shape_of(model.sql, {**parents, model.name: named}, memory=memory)
    names = tuple(types) or (query.columns if query else None)
    column_types = types or (certain_types(query.types) if query else {})
    return {model.name: Parent(names and order_columns(model, names, column_types))}


def _first_branch(sql: str, own: str) -> str:
    """Return the first query of a UNION, which names the columns, without its WHERE; '' if it reads the own table."""
    tree = tree_of(sql)
    first = tree
    while isinstance(first, exp.SetOperation) and not first.args.get("with_"):
        first = first.this
    if first is tree or not isinstance(first, exp.Select):
        return ""
    first = first.copy()
    first.set("where", None)
    return "" if own in tables_of(first) else first.sql("spark")


def follow_itself(shape: Shape, name: str) -> Shape:
    """Return the shape of a model that reads its own table, with the sources of each column over all batches.

    Its rows depend on the order of its batches: no key and no day of the rows of one batch is valid for the table.
    """
    own_reads = shape.reads.get(name, Reads())
    rows = expand_own_columns(own_reads, own_reads.rows)
    reads = {parent: _expand_reads(read, own_reads, rows) for parent, read in shape.reads.items() if parent != name}
    closed_digest = close_over_itself(shape.own, own_reads) if shape.own else None
    closed = replace(shape, itself=own_reads, own=closed_digest, reads=reads, volatile_rows=True)
    return replace(closed, bounded={}, day=None, keys=(), way=(), has_order=False)


def _expand_reads(read: Reads, own: Reads, rows: frozenset[str]) -> Reads:
    def join_reads(columns: Iterable[str]) -> frozenset[str]:
        return frozenset[str]().union(*(read.outputs.get(column, frozenset()) for column in columns))

    names = read.outputs.keys() | own.outputs.keys()
    outputs = {name: join_reads(expand_own_columns(own, frozenset((name,)))) for name in sorted(names)}
    return Reads(read.rows | join_reads(rows), {name: columns for name, columns in outputs.items() if columns})


def tables_of(tree: exp.Expr) -> frozenset[str]:
    """Return the tables (`schema.table`, lower case) that a query names, without its own CTEs."""
    return frozenset(
        f"{table.db}.{table.name}".lower() for table in tree.find_all(exp.Table) if table.db and table.name
    )


def _build_analysis(
    written: exp.Expr, tree: exp.Expr, parents: Mapping[str, Parent], time_column: str, is_misread: bool
) -> _Analysis:
    outputs = tree.selects if isinstance(tree, exp.Query) and not tree.is_star else []
    columns = tuple(name for output in outputs for name in _output_names(output))
    is_odd = len(set(columns)) < len(columns) or MORE in columns
    if not columns or is_odd or any(map(_is_named_by_spark, outputs)):
        return _Analysis(_unknown_shape(_tree_text(written), tree, frozenset(parents)))
    tables = {
        name: TableSource(
            name, parent.volatile, parent.volatile_rows, parent.types, parent.keys, parent.audited, parent.stated
        )
        for name, parent in parents.items()
    }
    # The fields of STRUCT(*) are named as written; without capitals, qualification cannot have changed them.
    lower = all(identifier.name == identifier.name.lower() for identifier in written.find_all(exp.Identifier))
    lower = lower and not any(parent.is_spelled for parent in parents.values())
    schema = {name: parent.columns or () for name, parent in parents.items()}
    query = Query(tables, schema, lower)
    is_dated = any(parameter.name.startswith(("start_", "end_")) for parameter in tree.find_all(exp.Parameter))
    by_day = not time_column or not is_dated
    try:
        if is_misread:
            raise Opaque("names that Spark resolves in another way")
        relation = query.relation(tree)
        reads = _read_parents(relation, columns, parents)
        relation_digest = Digests().relation(relation)
    except Opaque as opaque:
        shape = _opaque_shape(written, columns, parents, _place_obstacle(tree, query, opaque.obstacle), by_day=by_day)
        return _Analysis(replace(shape, reads_batch=is_dated, by_batch=is_dated))
    except RecursionError:
        deep = "expressions nested that deep"
        return _Analysis(_opaque_shape(written, columns, parents, deep, by_day=by_day), certain=False)
    way, has_order = order_of(tree)
    further = time_locality.time_dependence(relation, time_column, short=False) if time_column else TimeDependence()
    shape = Shape(
        known=True,
        text=Digests().hash_texts(relation_digest.rows, *chain.from_iterable(relation_digest.columns.items())),
        columns=columns,
        own=relation_digest,
        stated=tuple(
            (name, kind) for name, value in relation.columns.items() if (kind := explicit_type(value)) is not None
        ),
        way=tuple(map(str, way.parts)),
        has_order=has_order,
        frame=clause_digests(relation),
        volatile=further.outputs | {name for name, value in relation.columns.items() if value.volatile},
        volatile_rows=further.rows or relation.block.volatile,
        reads=reads,
        bounded=time_locality.interval_filters(relation) if time_column else {},
        day=further.day,
        reads_batch=is_dated,
        whole_days=time_locality.needs_whole_days(relation, time_column),
        # dates that decide nothing, as in `d <= @end_ds OR TRUE`: each batch reads all rows
        by_batch=time_locality.depends_on_batch(relation, time_column, short=False)
        or (is_dated and not (time_column or time_locality.has_dates(relation))),
        types=tuple((name, kind) for name, value in relation.columns.items() if (kind := reader_type(value))),
        keys=keys_of(relation),
        relies=_find_relied_keys(tree, parents),
    )
    return _Analysis(shape, relation)


def _read_parents(relation: Relation, columns: tuple[str, ...], parents: Mapping[str, Parent]) -> dict[str, Reads]:
    """Return what the query reads of each parent; raise Opaque where names or columns cannot be trusted."""
    if tuple(relation.columns) != columns:
        raise Opaque("columns that Spark names in another way")
    rows = depends_on(relation.block)
    outputs = {name: source_columns(value) for name, value in relation.columns.items()}
    reads = {
        parent: Reads(
            frozenset(column for table, column in rows if table == parent),
            {
                name: of_it
                for name, read in outputs.items()
                if (of_it := frozenset(column for table, column in read if table == parent))
            },
        )
        for parent in parents
    }
    if any(MORE in read.rows.union(*read.outputs.values()) for read in reads.values()):
        raise Opaque("a `*` over a table of which not all columns are declared")
    return reads


def _place_obstacle(tree: exp.Expr, query: Query, obstacle: str) -> str:
    """Return the construct that cannot be followed, with the form of an incremental dbt model that has it."""
    for part in tree.find_all(exp.Subquery) if isinstance(tree, exp.Union) else ():
        try:
            if part.alias in FORMS:
                query.relation(part.this)
        except Opaque as opaque:
            return f"{opaque.obstacle}, in the query of {FORMS[part.alias]}"
    return obstacle


def _find_relied_keys(tree: exp.Expr, parents: Mapping[str, Parent]) -> tuple[tuple[str, Keys], ...]:
    """Return the keys of the parents if the query takes rows by an order, in which keys may exclude ties."""
    if not takes_rows_by_order(tree):
        return ()
    keys = ((name, tuple(sorted({*parent.keys, *parent.audited}))) for name, parent in sorted(parents.items()))
    return tuple((name, parent_keys) for name, parent_keys in keys if parent_keys)


def _opaque_shape(
    tree: exp.Expr, columns: tuple[str, ...], parents: Mapping[str, Parent], obstacle: str, *, by_day: bool
) -> Shape:
    """Return the shape of an untranslatable query: all that it reads counts for every output."""
    reads = {name: Reads(every=True) for name in parents}
    unsure = any(map(is_volatile, tree.walk())) or bool(tree.find(exp.Limit, exp.Offset, exp.Fetch))
    own_volatile = unsure or not by_day or any(parent.volatile or parent.volatile_rows for parent in parents.values())
    return Shape(True, _tree_text(tree), columns, volatile_rows=own_volatile, reads=reads, obstacle=obstacle)


def _tree_text(tree: exp.Expr) -> str:
    """Return the tree as text, without comments: two trees have one text only if they are equal.

    Not as SQL: sqlglot would move WITH clauses, and two of one name would clash. Not as `repr`: its indentation makes
    the text of a union of n queries grow by the square of n.
    """
    parts, pending = [], list[tuple[str, object]]([("", tree)])
    while pending:
        key, value = pending.pop()
        if isinstance(value, exp.Expr):
            args = [
                (name, argument) for name, argument in value.args.items() if argument is not None and argument != []
            ]
            if value.type is not None and not value.is_data_type:
                args.append(("type", value.type))
            parts.append(f"{key}={type(value).__name__}({len(args)})")
            pending += reversed(args)
        elif isinstance(value, list):
            parts.append(f"{key}=[{len(value)}]")
            pending += [("", element) for element in reversed(value)]
        else:
            parts.append(f"{key}={value!r}")
    return "\n".join(parts)


def _output_names(output: exp.Expr) -> list[str]:
    if isinstance(output, exp.Aliases):  # the columns of a generator
        return [alias.name.lower() for alias in output.expressions]
    return [output.alias_or_name]


def _is_named_by_spark(output: exp.Expr) -> bool:
    """Return True for a generator without an alias: Spark names its columns, and there may be several."""
    return multiplies_rows(output.unalias()) and output.alias.startswith("_col_")


def _unknown_shape(sql: str, tree: exp.Expr, names: frozenset[str], unresolved: str | None = None) -> Shape:
    columns = None
    if isinstance(tree, exp.Query) and not tree.is_star:
        selects = tree.selects
        if all(e.alias_or_name for e in selects) and not any(map(multiplies_rows, (e.unalias() for e in selects))):
            names_of_all = tuple(e.alias_or_name.lower() for e in selects)
            columns = None if MORE in names_of_all else names_of_all
    reads = {name: Reads(every=True) for name in names}
    return Shape(False, sql, columns, reads=reads, unresolved=unresolved)


def _find_unresolved_column(tree: exp.Expr, schemas: Mapping[str, tuple[str, ...] | None]) -> str | None:
    """Return a column that certainly does not exist, or None: no parent has it, and the query cannot define it."""
    if any(multiplies_rows(node) or isinstance(node, (exp.Lateral, exp.Lambda, exp.Pivot)) for node in tree.walk()):
        return None
    have = {name for columns in schemas.values() for name in columns or ()} | {"_metadata"}
    have |= {e.alias.lower() for e in tree.find_all(exp.Alias, exp.TableAlias) if e.alias}
    have |= {c.name.lower() for alias in tree.find_all(exp.TableAlias) for c in alias.columns}
    for column in tree.find_all(exp.Column):
        if is_keyword(column):
            continue
        if (
            isinstance(column.this, exp.Identifier)
            and column.name.lower() not in have
            and not _may_be_field(column, have)
        ):
            return str(column.name)
    return None


def _may_be_field(column: exp.Column, columns: set[str]) -> bool:
    """Return True if `a.b` may be the field `b` of a struct column `a`, also if a table is called `a`."""
    table = column.table.lower()
    source_names = {table.alias_or_name.lower() for table in column.root().find_all(exp.Table, exp.Subquery, exp.CTE)}
    return bool(table) and (table in columns or table not in source_names)
