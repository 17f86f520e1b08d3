"""Macros that return a value, or several columns."""

from datetime import date

from sqlglot import exp

from mergeplan.planner.parsing.macros.expander import BuiltIn, Expander, Invocation
from mergeplan.planner.parsing.macros.signature import arguments_of, bind_arguments, flag_argument, text_argument
from mergeplan.planner.parsing.sql.token_lists import Piece

NULL_KEY = "_sqlmesh_surrogate_key_null_"  # SQLMesh's constant, so that existing keys stay the same
_LENGTHS = {"SHA224": 224, "SHA256": 256, "SHA384": 384, "SHA512": 512}
_PARTS = ("day", "week", "month", "quarter", "year")
_PIVOT = (
    "column",
    "values",
    "alias",
    "agg",
    "cmp",
    "prefix",
    "suffix",
    "then_value",
    "else_value",
    "quote",
    "distinct",
)
_RATES = {"mi": "1.0", "km": "1.60934"}


def _list_values(room: Expander, call: Invocation) -> list[exp.Expr]:
    if not call.arguments or call.keywords.keys() - {"hash_function"}:
        raise room.source.error(call.at, f"`@{call.name}` takes one or more values.")
    return [room.tree(item, call) for argument in call.arguments for item in _argument_values(room, argument)]


def _argument_values(room: Expander, argument: Piece) -> list[Piece]:
    """Return the values of an argument: a macro may return several, but brackets belong to the value."""
    return room.items(argument) if argument and argument[0].text.startswith("@") else [argument]


def surrogate_key(room: Expander, call: Invocation) -> list[Piece]:
    """`@GENERATE_SURROGATE_KEY(a, b, hash_function := 'SHA256')`: one string from all values, including NULLs."""
    fields: list[exp.Expr] = []
    for value in _list_values(room, call):
        fields += [exp.Literal.string("|")] if fields else []
        fields.append(exp.func("COALESCE", exp.cast(value, "text"), exp.Literal.string(NULL_KEY)))
    whole = exp.Concat(expressions=fields, safe=False, coalesce=False)
    name = text_argument(room, call, dict(call.keywords), "hash_function", "MD5").upper()
    if name == "MD5":
        return room.pieces(call, exp.MD5(this=whole))
    if name in ("SHA", "SHA1"):
        return room.pieces(call, exp.SHA(this=whole))
    if name in _LENGTHS:
        return room.pieces(call, exp.SHA2(this=whole, length=exp.Literal.number(_LENGTHS[name])))
    hash_names = ", ".join(("MD5", "SHA1", *_LENGTHS))
    raise room.source.error(call.at, f"`hash_function := '{name}'` is not supported.", f"Known: {hash_names}.")


def safe_add(room: Expander, call: Invocation) -> list[Piece]:
    """`@SAFE_ADD(a, b)`: the sum with 0 for NULL; NULL when all are NULL."""
    return _safe_arithmetic(room, call, exp.Add)


def safe_sub(room: Expander, call: Invocation) -> list[Piece]:
    """`@SAFE_SUB(a, b)`: the difference with 0 for NULL; NULL when all are NULL."""
    return _safe_arithmetic(room, call, exp.Sub)


def _safe_arithmetic(room: Expander, call: Invocation, kind: type[exp.Binary]) -> list[Piece]:
    operands = [operand.unnest() if isinstance(operand, exp.Paren) else operand for operand in _list_values(room, call)]
    nothing = exp.and_(*(exp.Is(this=exp.paren(operand) if isinstance(operand, exp.Binary) else operand.copy(),
                                expression=exp.null()) for operand in operands))  # fmt: skip
    zeros = [exp.func("COALESCE", operand, exp.Literal.number(0)) for operand in operands]
    whole: exp.Expr = zeros[0]
    for operand in zeros[1:]:
        whole = kind(this=whole, expression=operand)
    return room.pieces(call, exp.Case().when(nothing, exp.null()).else_(whole))


def safe_div(room: Expander, call: Invocation) -> list[Piece]:
    """`@SAFE_DIV(a, b)`: NULL when b is 0."""
    above, below = arguments_of(room, call, "numerator", "denominator")
    above = exp.paren(above) if isinstance(above, exp.Binary) else above
    divided = exp.func("NULLIF", below, exp.Literal.number(0))
    dialect = room.source.dialect
    return room.pieces(call, f"{above.sql(dialect)} / {divided.sql(dialect)}")


def haversine_distance(room: Expander, call: Invocation) -> list[Piece]:
    """`@HAVERSINE_DISTANCE(lat1, lon1, lat2, lon2, 'mi')`: the distance of two points, in miles or 'km'."""
    arguments = bind_arguments(room, call, ("lat1", "lon1", "lat2", "lon2", "unit"), 4)
    lat1, lon1, lat2, lon2 = (
        _bracket_term(room, room.tree(arguments[name], call)) for name in ("lat1", "lon1", "lat2", "lon2")
    )
    unit = text_argument(room, call, arguments, "unit", "mi")
    if unit not in _RATES:
        raise room.source.error(call.at, f"`unit` of `@{call.name}` is 'mi' or 'km', not '{unit}'.")
    sql = (
        f"7922 * ASIN(SQRT((POWER(SIN(RADIANS(({lat2} - {lat1}) / 2)), 2)) + (COS(RADIANS({lat1})) * "
        f"COS(RADIANS({lat2})) * POWER(SIN(RADIANS(({lon2} - {lon1}) / 2)), 2)))) * {_RATES[unit]}"
    )
    return room.pieces(call, sql)


def _bracket_term(room: Expander, tree: exp.Expr) -> str:
    return str((exp.paren(tree) if isinstance(tree, exp.Binary) else tree).sql(room.source.dialect))


def pivot_values(room: Expander, call: Invocation) -> list[Piece]:
    """`@PIVOT(status, ['a', 'b'])`: a column for each value, by default how many rows have it."""
    arguments = bind_arguments(room, call, _PIVOT, 2)
    sql = room.source.dialect
    column = _bracket_term(room, room.tree(arguments["column"], call))
    agg, cmp = text_argument(room, call, arguments, "agg", "SUM"), text_argument(room, call, arguments, "cmp", "=")
    prefix = text_argument(room, call, arguments, "prefix", "")
    suffix = text_argument(room, call, arguments, "suffix", "")
    then_sql, otherwise = (
        room.tree(arguments[key], call).sql(sql) if key in arguments else default
        for key, default in (("then_value", "1"), ("else_value", "0"))
    )
    distinct = "DISTINCT " if flag_argument(room, call, arguments, "distinct", False) else ""
    quote = flag_argument(room, call, arguments, "quote", True)
    named = flag_argument(room, call, arguments, "alias", True)
    out = []
    for value in (room.tree(item, call) for item in room.items(arguments["values"])):
        case = f"{agg}({distinct}CASE WHEN {column} {cmp} {value.sql(sql)} THEN {then_sql} ELSE {otherwise} END)"
        name = exp.to_identifier(f"{prefix}{value.sql()}{suffix}", quoted=quote).sql(sql)
        out.append(f"{case} AS {name}" if named else case)
    return room.pieces(call, *out)


def date_spine(room: Expander, call: Invocation) -> list[Piece]:
    """`@DATE_SPINE('day', '2024-01-01', '2024-01-31')`: a query with a row for each day, in the column `date_day`."""
    part, start, end = arguments_of(room, call, "datepart", "start_date", "end_date")
    word = part.name.lower()
    if word not in _PARTS:
        raise room.source.error(call.at, f"`{word}` is not a part of a date for `@{call.name}`: {', '.join(_PARTS)}.")
    for day in (start, end):
        if day.is_string and not _is_day(day.name):
            raise room.source.error(call.at, f"`@{call.name}` takes dates as 'YYYY-MM-DD', not '{day.name}'.")
    if start.is_string and end.is_string and start.name > end.name:
        raise room.source.error(call.at, f"`@{call.name}` starts at '{start.name}', after its end '{end.name}'.")
    first, last = (exp.cast(day, "date") for day in (start, end))
    step = exp.Interval(this=exp.Literal.string("3" if word == "quarter" else "1"),
                        unit=exp.var("month" if word == "quarter" else word))  # fmt: skip
    dates = exp.GenerateDateArray(start=first, end=last, step=step)
    listed = exp.alias_(exp.Unnest(expressions=[dates]), "_exploded", table=[f"date_{word}"])
    return room.pieces(call, exp.select(f"date_{word}").from_(listed))


def _is_day(literal: str) -> bool:
    try:
        return bool(date.fromisoformat(literal)) and len(literal) == 10
    except ValueError:
        return False


VALUES: dict[str, BuiltIn] = {
    "generate_surrogate_key": surrogate_key,
    "safe_add": safe_add,
    "safe_sub": safe_sub,
    "safe_div": safe_div,
    "haversine_distance": haversine_distance,
    "pivot": pivot_values,
    "date_spine": date_spine,
}
