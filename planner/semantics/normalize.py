"""Rewrite a parsed query before its names are resolved, where sqlglot would resolve them differently than Spark."""

from collections.abc import Mapping

from sqlglot import exp

from mergeplan.planner.semantics.expressions import NAMES, RANDOM_CALL, encode_case
from mergeplan.planner.semantics.query.qualified import MISREAD, put_using_first
from mergeplan.planner.semantics.query.row_order import mark_stars
from mergeplan.planner.semantics.spark.spark_functions import is_random
from mergeplan.planner.semantics.syntax import alias_columns, names_fields

NAMED = "named"  # on a query `AS t(a, b)`: the number of names, which qualification takes away
OUTPUT = "output"  # of an output's value in HAVING: the name that stood there
_COLUMNS_MAX = 20_000  # of an output
WRITTEN = "written"  # marks nodes of the original query, as against those that qualification adds


def normalize_query(tree: exp.Expr) -> exp.Expr:
    """Return the query with dates as parameters, and SEMI and ANTI joins as EXISTS and NOT EXISTS."""
    for column in list(tree.find_all(exp.Column)):  # sqlglot parses `@start_ds` as a column
        if column.name.startswith("@"):
            column.replace(exp.Parameter(this=exp.var(column.name[1:].lower())))
    # Each call of RAND() gets a number, which its copies keep: qualification copies an alias's expression to its uses.
    for number, node in enumerate(call for call in tree.walk() if is_random(call)):
        node.meta[RANDOM_CALL] = number
    for query in tree.find_all(exp.CTE, exp.Subquery):
        if (names := alias_columns(query)) and isinstance(query.this, exp.Query):
            query.meta[NAMED] = len(names)
    for pivot in tree.find_all(exp.Pivot):
        if pivot.args.get("unpivot"):
            pivot.meta[WRITTEN] = pivot.sql("spark")  # qualification would turn its names into values
    for node in tree.find_all(exp.ArraysZip, exp.Anonymous):
        if isinstance(node, exp.ArraysZip) or node.name.lower() == "arrays_zip":
            node.meta[NAMES] = tuple(
                argument.name if isinstance(argument, exp.Column) else "" for argument in node.expressions
            )
    for function in tree.find_all(exp.Lambda):
        if names_fields(function.this):
            function.meta[NAMES] = tuple(variable.name for variable in function.expressions)
    for row in tree.find_all(exp.Tuple):
        if not _is_compared(row):
            row.meta[NAMES] = tuple(map(_field_name, row.expressions))
    _mark_fields(tree)
    for type_ in tree.find_all(exp.DataType):
        if isinstance(
            collation := type_.args.get("collate"), exp.Column
        ):  # sqlglot parses the collation's name as a column
            type_.set("collate", exp.var(collation.name))
    mark_stars(tree)
    for coalesce in tree.find_all(exp.Coalesce):
        coalesce.meta[WRITTEN] = True  # qualification adds others for USING
    for select in reversed(list(tree.find_all(exp.Select))):  # inner ones first: a join's subquery is copied
        put_using_first(select)
        _without_semi_joins(select)
        _resolve_having(select)
    return tree


def join_catalogs(tree: exp.Expr) -> None:
    """Merge catalog and schema into one name, `lake.shop`, so that all tables are resolved alike."""
    catalogs = {table.catalog.lower() for table in tree.find_all(exp.Table)}
    for node in tree.find_all(exp.Table, exp.Column) if catalogs - {""} else ():
        catalog, schema = node.args.get("catalog"), node.args.get("db")
        if (
            isinstance(catalog, exp.Identifier)
            and isinstance(schema, exp.Identifier)
            and catalog.name.lower() in catalogs
        ):
            node.set("db", exp.to_identifier(f"{catalog.name}.{schema.name}", quoted=True))
            node.set("catalog", None)


def _is_compared(row: exp.Tuple) -> bool:
    """Return True for a row whose field names do not matter: of VALUES, a comparison or a grouping set."""
    around = row.parent
    while isinstance(around, (exp.Tuple, exp.Paren)):
        around = around.parent
    return isinstance(around, (exp.In, exp.Predicate, exp.Values, exp.Group, exp.Rollup, exp.Cube, exp.GroupingSets))


def _field_name(value: exp.Expr) -> str:
    """Return the name of a field of `(a, b AS c)`, which is a struct, or '' if Spark numbers it."""
    return value.output_name if isinstance(value, (exp.Alias, exp.Column, exp.Dot)) else ""


def _mark_fields(tree: exp.Expr) -> None:
    """Preserve the case of fields of structs and keys of maps; qualification lowers the case of names."""
    for named in tree.find_all(exp.PropertyEQ, exp.ColumnDef):
        if isinstance(named.this, exp.Identifier):
            # a copy: the node may be shared with a column
            named.set("this", exp.to_identifier(encode_case(named.this.name)))
    qualified = (column for column in tree.find_all(exp.Column) if column.table)
    columns = [column for column in qualified if column.table.lower() not in _tables_in_scope(column)]
    dots = [dot for dot in tree.find_all(exp.Dot) if isinstance(dot.expression, exp.Identifier)]
    for field in (*columns, *dots):
        name = field.expression if isinstance(field, exp.Dot) else field.this
        if not isinstance(name, exp.Identifier) or encode_case(name.name) == name.name:
            continue
        if isinstance(field.parent, exp.Select) and field.arg_key == "expressions":
            aliased = exp.alias_(field.copy(), name.name, quoted=True)
            field.replace(aliased)
            field = aliased.this
            name = field.expression if isinstance(field, exp.Dot) else field.this
        name.set("this", encode_case(name.name))


def _tables_in_scope(column: exp.Expr) -> set[str]:
    names: set[str] = set()
    select = column.find_ancestor(exp.Select)
    while select is not None:
        items = [select.args["from_"].this] if select.args.get("from_") else []
        items += [join.this for join in select.args.get("joins") or ()] + list(select.args.get("laterals") or ())
        names |= {item.alias_or_name.lower() for item in items}
        names |= {pivot.alias.lower() for item in items for pivot in item.args.get("pivots") or ()}
        select = select.find_ancestor(exp.Select)
    return names


def has_misread_names(tree: exp.Expr, qualified: exp.Expr) -> bool:
    """Return True if sqlglot is known to resolve names of the query differently than Spark.

    After a RIGHT or FULL JOIN, a further USING joins by the merged column. And in a correlated subquery, an unqualified
    name in WHERE or ON never refers to one of its own outputs. `AS t(a, b)` fails over a query of three columns.
    """
    selects = tree.find_all(exp.Select)
    if qualified.meta.get(MISREAD) or any(_merges_merged(select) or _sees_itself(select) for select in selects):
        return True
    queries = qualified.find_all(exp.CTE, exp.Subquery)
    return any(query.meta[NAMED] != len(query.this.selects) for query in queries if NAMED in query.meta)


def pivots_joins(tree: exp.Expr) -> bool:
    """Return True for `FROM a JOIN b PIVOT (...)`: Spark pivots the whole join, sqlglot only the last table."""
    joins = (join for select in tree.find_all(exp.Select) for join in select.args.get("joins") or ())
    return any(join.args.get("pivots") or join.this.args.get("pivots") for join in joins)


def _merges_merged(select: exp.Select) -> bool:
    joins = select.args.get("joins") or []
    merging = any(join.args.get("using") or (join.method or "").upper() == "NATURAL" for join in joins)
    return merging and len(joins) > 1 and any((join.side or "").upper() in ("RIGHT", "FULL") for join in joins)


def _sees_itself(select: exp.Select) -> bool:
    outside = select.find_ancestor(exp.Exists, exp.In, exp.Lateral, exp.Subquery)
    if outside is None or (isinstance(outside, exp.Subquery) and isinstance(outside.parent, (exp.From, exp.Join))):
        return False
    renamed = {
        output.alias.lower()
        for output in select.selects
        if isinstance(output, exp.Alias)
        and not (isinstance(output.this, exp.Column) and output.this.name == output.alias)
    }
    clauses = [select.args.get("where"), *(join.args.get("on") for join in select.args.get("joins") or ())]
    return any(renamed & _bare_names(clause) for clause in clauses if clause is not None)


def _resolve_having(select: exp.Select) -> None:
    """Resolve an unqualified name in HAVING that is also an output.

    Inside an aggregate it is the table's column. Outside it is the output, unless it is a GROUP BY key (measured on
    Spark 4.1). This is done only for one table, which can qualify the name.
    """
    having, clause = select.args.get("having"), select.args.get("from_")
    if having is None or clause is None or select.args.get("joins") or select.args.get("laterals"):
        return
    source = clause.this.alias_or_name
    outputs = {output.alias.lower(): output.this for output in select.selects if isinstance(output, exp.Alias)}
    grouped = _bare_names(select.args["group"]) if select.args.get("group") else set()
    if not source or (select.args.get("group") and select.args["group"].args.get("all")):
        return
    for column in list(having.find_all(exp.Column)):
        name = column.name.lower()
        if column.table or name not in outputs or column.find_ancestor(exp.Select) is not select:
            continue
        if column.find_ancestor(exp.AggFunc, exp.Having).__class__ is not exp.Having:
            column.set("table", exp.to_identifier(source))
        elif name not in grouped:
            output = exp.Paren(this=_qualify_names(outputs[name].copy(), source))
            output.meta[OUTPUT] = name
            column.replace(output)


def _qualify_names(value: exp.Expr, source: str) -> exp.Expr:
    whole = exp.Paren(this=value)
    for column in list(whole.find_all(exp.Column)):
        if not column.table and not column.name.startswith("@"):
            column.set("table", exp.to_identifier(source))
    inner: exp.Expr = whole.this
    return inner


def _without_semi_joins(select: exp.Select) -> None:
    joins = select.args.get("joins") or []
    semi = [join for join in joins if (join.kind or "").upper() in ("SEMI", "ANTI")]
    other_joins = [join for join in joins if (join.kind or "").upper() not in ("SEMI", "ANTI")]
    clause = select.args.get("from_")
    if not semi or not clause or any((join.side or "").upper() in ("RIGHT", "FULL") for join in other_joins):
        return  # these joins add rows, which a filter in WHERE would remove again
    conditions = [_semi_condition(join, clause.this if len(joins) == 1 else None) for join in semi]
    if any(condition is None for condition in conditions):
        return
    for join, condition in zip(semi, conditions, strict=True):
        exists = exp.Exists(this=exp.select("1").from_(join.this.copy()).where(condition))
        select.where(exp.Not(this=exists) if (join.kind or "").upper() == "ANTI" else exists, copy=False)
    select.set("joins", other_joins)


def _semi_condition(join: exp.Join, left: exp.Expr | None) -> exp.Expr | None:
    if join.args.get("on"):
        on: exp.Expr = join.args["on"]
        return on.copy() if all(column.table for column in on.find_all(exp.Column)) else None
    using, right = join.args.get("using"), join.this.alias_or_name
    if not using or left is None or not right or not left.alias_or_name:
        return None
    pairs = [exp.column(name.name, table=left.alias_or_name).eq(exp.column(name.name, table=right)) for name in using]
    return exp.and_(*pairs)


def has_captured_alias(tree: exp.Expr, schemas: Mapping[str, tuple[str, ...] | None]) -> bool:
    """Return True if an alias is also a column's name, and HAVING or QUALIFY uses it unqualified.

    Also if a schema's name is a column's, which may be a struct: `shop.t.a` is then a field of it.

    Spark and sqlglot resolve such a name differently, so the query is not analysed. In HAVING Spark 4.1 takes the alias
    and casts it as if it were the column: a text is compared as a number if the column is one.
    """
    derived = (
        name.lower()
        for query in tree.find_all(exp.Query)
        if query is not tree
        for name in (query.named_selects if isinstance(query, (exp.Select, exp.SetOperation)) else ())
    )
    source_columns = {name for columns in schemas.values() for name in columns or ()} | set(derived)
    schema_names = (column.args["db"].name.lower() for column in tree.find_all(exp.Column) if column.args.get("db"))
    if not source_columns.isdisjoint(schema_names):
        return True
    for select in tree.find_all(exp.Select):
        renamed = {
            e.alias.lower()
            for e in select.selects
            if isinstance(e, exp.Alias)
            and not (isinstance(e.this, exp.Column) and e.this.name.lower() == e.alias.lower())
        }
        risky = renamed & source_columns
        filters = [select.args[clause] for clause in ("having", "qualify") if select.args.get(clause)]
        outputs = {node.meta.get(OUTPUT) for clause in filters for node in clause.find_all(exp.Paren)}
        if risky and (risky & outputs or any(risky & _bare_names(clause) for clause in filters)):
            return True
    return False


def expands_aliases(tree: exp.Expr) -> bool:
    """Return True if aliases that use aliases of the same SELECT expand to very many columns, as qualification does."""
    for select in tree.find_all(exp.Select):
        sizes = dict[str, int]()
        for output in select.selects:
            columns = [column.name.lower() for column in output.find_all(exp.Column) if not column.table]
            size = 1 + sum(sizes.get(name, 1) for name in columns)
            if size > _COLUMNS_MAX:
                return True
            sizes[output.alias_or_name.lower()] = size
    return False


def hides_names(tree: exp.Expr) -> bool:
    """Return True if sqlglot does not know the names of the columns that a star, or a join by name, stands for."""
    # `* EXCEPT (a.b)` takes a field out of a struct where `a` is no table
    excepted_names = (name for star in tree.find_all(exp.Star) for name in star.args.get("except_") or ())
    excepts_fields = any(name.find(exp.Dot) or getattr(name, "table", "") for name in excepted_names)
    return excepts_fields or _takes_names_from_text(tree)


def _takes_names_from_text(tree: exp.Expr) -> bool:
    """Return True if Spark names a column of a subquery after its text, as `m[k]`, and a star may return that name."""
    joins = tree.find_all(exp.Join, exp.SetOperation)
    spreads = any(not isinstance(star.parent, exp.Count) for star in tree.find_all(exp.Star))
    spreads = spreads or any(join.args.get("by_name") or join.args.get("method") for join in joins)
    if spreads and any(not alias_columns(values) for values in tree.find_all(exp.Values)):
        return True
    outputs = [output for select in tree.find_all(exp.Select) if _names_columns(select) for output in select.selects]
    return any(not _has_name(output) and (spreads or output.output_name) for output in outputs)


def _names_columns(select: exp.Expr) -> bool:
    """Return True for a subquery in FROM or a CTE whose columns have the names of this SELECT."""
    node, around = select, select.parent
    while isinstance(around, (exp.Subquery, exp.SetOperation)):
        if alias_columns(around) or (around.args.get("expression") is node and not around.args.get("by_name")):
            return False
        node, around = around, around.parent
    return isinstance(around, (exp.CTE, exp.From, exp.Join, exp.Lateral)) and not alias_columns(around)


def _has_name(output: exp.Expr) -> bool:
    value = output.unnest()
    if isinstance(value, exp.Cast):
        value = value.this
        if not isinstance(value, exp.Column) or (value.table and value.table.lower() not in _tables_in_scope(value)):
            return False
    return isinstance(value, (exp.Alias, exp.Aliases, exp.Column, exp.Dot)) or value.is_star


def _bare_names(clause: exp.Expr) -> set[str]:
    return {column.name.lower() for column in clause.find_all(exp.Column) if not column.table}
