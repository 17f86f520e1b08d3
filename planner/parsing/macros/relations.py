"""Macros over a table: its columns, and queries."""

from sqlglot import exp

from mergeplan.planner.naming import qualify_table
from mergeplan.planner.parsing.macros.expander import BuiltIn, Expander, Invocation
from mergeplan.planner.parsing.macros.signature import bind_arguments, flag_argument, text_argument
from mergeplan.planner.parsing.sql.macro_scope import ColumnTypes
from mergeplan.planner.parsing.sql.names import without_default
from mergeplan.planner.parsing.sql.token_lists import Piece, text_of
from mergeplan.planner.parsing.sql.tokens import parse_tokens

_STAR = ("relation", "alias", "exclude", "prefix", "suffix", "quote_identifiers", "except")


def expand_star(room: Expander, call: Invocation) -> list[Piece]:
    """`@STAR(relation, alias, exclude := [a], prefix := 'x_', suffix := '_y')`: the columns of a table, one by one."""
    keywords = {("except" if key == "except_" else key): argument for key, argument in call.keywords.items()}
    call = Invocation(call.name, call.at, call.last, call.arguments, keywords)
    arguments = bind_arguments(room, call, _STAR, 1)
    relation = _read_relation(room, call, arguments["relation"])
    alias = room.run(arguments["alias"]) if "alias" in arguments else []
    table = alias[0].text if alias else relation.name
    left_out = {
        column_tokens[-1].text.lower()
        for key in ("exclude", "except")
        if key in arguments
        for column_tokens in room.items(arguments[key])
    }
    prefix = text_argument(room, call, arguments, "prefix", "")
    suffix = text_argument(room, call, arguments, "suffix", "")
    quoted = flag_argument(room, call, arguments, "quote_identifiers", True)
    columns = {name: type_ for name, type_ in _relation_columns(room, call, relation).items() if name not in left_out}
    outputs = []
    for name, type_ in columns.items():
        column = exp.column(name, table=table, quoted=quoted)
        value = exp.cast(column, type_, dialect="spark") if all(columns.values()) else column
        outputs.append(exp.alias_(value, f"{prefix}{name}{suffix}", quoted=quoted))
    return room.pieces(call, *outputs)


def union_tables(room: Expander, call: Invocation) -> list[Piece]:
    """`@UNION('distinct', a, b)`: the columns that all tables have, with the same name and type, from each of them."""
    arguments = list(call.arguments)
    whole = True
    conditions = (exp.Boolean, exp.Predicate, exp.Connector, exp.Not, exp.Paren)
    if arguments and isinstance(room.tree(arguments[0], call), conditions):
        whole = bool(room.value(arguments.pop(0), call))
    kind = "ALL"
    if arguments and (tokens := room.run(arguments[0])) and len(tokens) == 1 and tokens[0].token_type.name == "STRING":
        kind = tokens[0].text.upper()
        arguments.pop(0)
    if kind not in ("ALL", "DISTINCT"):
        raise room.source.error(call.at, f"`@{call.name}` takes 'all' or 'distinct', not '{kind.lower()}'.")
    if not arguments or call.keywords:
        raise room.source.error(call.at, f"`@{call.name}` takes tables: `@{call.name}('all', a.b, c.d)`.")
    tables = [_read_relation(room, call, item) for argument in arguments for item in room.items(argument)]
    listed = [_relation_columns(room, call, table) for table in tables]
    shared = {
        name: kind for name, kind in listed[0].items() if all(columns.get(name) == kind for columns in listed[1:])
    }
    if not shared:
        raise room.source.error(call.at, f"The tables of `@{call.name}` have no column with the same name and type.")
    outputs = [
        exp.alias_(exp.cast(exp.column(name), kind, dialect="spark"), name) if kind else exp.column(name)
        for name, kind in shared.items()
    ]
    queries = [
        exp.select(*(output.copy() for output in outputs)).from_(table) for table in tables[: None if whole else 1]
    ]
    sql = room.source.dialect
    word = " UNION ALL " if kind == "ALL" else " UNION DISTINCT " if sql == "bigquery" else " UNION "
    return room.pieces(call, word.join(query.sql(sql) for query in queries))


def deduplicate_rows(room: Expander, call: Invocation) -> list[Piece]:
    """`@DEDUPLICATE(relation, [a, b], ['c DESC'])`: the first row of each group in that order."""
    arguments = bind_arguments(room, call, ("relation", "partition_by", "order_by"), 3)
    relation, sql = _read_relation(room, call, arguments["relation"]), room.source.dialect
    keys = [room.tree(key, call).sql(sql) for key in room.items(arguments["partition_by"])]
    orders = []
    for order in room.items(arguments["order_by"]):
        if len(order) != 1 or order[0].token_type.name != "STRING":
            raise room.source.error(call.at, f"`order_by` of `@{call.name}` is a list of strings: `['a DESC']`.")
        orders.append(order[0].text)
    if not orders:
        raise room.source.error(call.at, f"`@{call.name}` needs an order: `['a DESC']`.")
    over = f"PARTITION BY {', '.join(keys)} ORDER BY {', '.join(orders)}" if keys else f"ORDER BY {', '.join(orders)}"
    columns = room.scope.columns(_relation_key(room, relation)) if relation.db else None
    quoted = [exp.to_identifier(name, quoted=True).sql(sql) for name in columns or ()]
    numbered = f"SELECT *, ROW_NUMBER() OVER ({over}) AS _nth FROM {relation.sql(sql)}"
    shown = ", ".join(quoted) if quoted else "* EXCEPT (_nth)"
    spelled = sql in ("spark", "databricks", "bigquery", "") or bool(quoted)
    if not spelled:
        return room.pieces(call, f"SELECT * FROM {relation.sql(sql)} QUALIFY ROW_NUMBER() OVER ({over}) = 1")
    return room.pieces(call, f"SELECT {shown} FROM ({numbered}) AS _numbered WHERE _nth = 1")


def _read_relation(room: Expander, call: Invocation, argument: Piece) -> exp.Table:
    tokens = room.run(argument)
    name = text_of(room.source, tokens)
    if len(tokens) == 1 and tokens[0].token_type.name == "STRING":
        tokens = room.cut(tokens[0].text, call.at, call.last)
    tree = parse_tokens(room.source, tokens, f"The table of `@{call.name}`") if tokens else None
    if not isinstance(tree, (exp.Column, exp.Dot)):
        raise room.source.error(call.at, f"`{name}` is not a table, as `@{call.name}`.")
    parts = [part.copy() for part in tree.parts]
    return exp.Table(
        this=parts[-1], db=parts[-2] if len(parts) > 1 else None, catalog=parts[-3] if len(parts) > 2 else None
    )


def _relation_key(room: Expander, relation: exp.Table) -> str:
    return without_default(qualify_table(relation.catalog, relation.db, relation.name).lower(), room.source.catalog)


def _relation_columns(room: Expander, call: Invocation, relation: exp.Table) -> ColumnTypes:
    columns = room.scope.columns(_relation_key(room, relation)) if relation.db else None
    if columns:
        return columns
    name = _relation_key(room, relation) if relation.db else relation.name
    hint = "Declare it in external_models.yaml, or give its model `columns`." if relation.db else "Name schema.table."
    raise room.source.error(call.at, f"`@{call.name}` needs the columns of `{name}`, which are not known.", hint)


RELATIONS: dict[str, BuiltIn] = {"star": expand_star, "union": union_tables, "deduplicate": deduplicate_rows}
