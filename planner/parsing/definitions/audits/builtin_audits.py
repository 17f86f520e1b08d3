"""SQLMesh's built-in audits: arguments and the query of failing rows; NULLs pass all but audits about NULLs."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from sqlglot import exp

from mergeplan.planner.parsing.macros.expand import spark_tree

Arguments = Mapping[str, exp.Expr]
UUID = "^[0-9a-f]{8}-[0-9a-f]{4}-[1-5][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$"
URL = r"^(https?|ftp)://[^\\s/$.?#].[^\\s]*$"
EMAIL = "^[a-zA-Z0-9_.+-]+@[a-zA-Z0-9-]+[.][a-zA-Z0-9-.]+$"
METHODS = "'GET', 'POST', 'PUT', 'DELETE', 'PATCH', 'HEAD', 'OPTIONS', 'TRACE', 'CONNECT'"
RANGE = ("min_v", "max_v", "inclusive")


@dataclass(frozen=True)
class BuiltIn:
    """Arguments, the query of failing rows, and its columns that are aggregates, which reveal no single row."""

    required: tuple[str, ...]
    query: Callable[[Arguments], str]
    extra: tuple[str, ...] = ()
    figures: tuple[str, ...] = ()

    @property
    def optional(self) -> tuple[str, ...]:
        """The arguments that may be left out; every audit takes a `condition`."""
        return (*self.extra, "condition")


def _list_items(argument: exp.Expr) -> list[str]:
    """Return the items of `(a, b)`, `array(a, b)` or `a` as strings."""
    if isinstance(argument, exp.Tuple | exp.Array):
        return [expression.sql("spark") for expression in argument.expressions]
    return [(argument.this if isinstance(argument, exp.Paren) else argument).sql("spark")]


def _read_columns(arguments: Arguments, name: str = "columns") -> list[str]:
    columns = _list_items(arguments[name])
    if not columns or not all(isinstance(spark_tree(column), exp.Column) for column in columns):
        raise ValueError(f"`{name}` must be a column or columns, like `(id, name)`.")
    return columns


def _read_column(arguments: Arguments, name: str = "column") -> str:
    columns = _list_items(arguments[name])
    if len(columns) != 1 or isinstance(spark_tree(columns[0]), exp.Literal):
        raise ValueError(f"`{name}` must be one column, like `id`.")
    return columns[0] if isinstance(spark_tree(columns[0]), exp.Column) else f"({columns[0]})"


def _read_number(arguments: Arguments, name: str) -> str:
    text = arguments[name].sql("spark")
    if not isinstance(arguments[name], exp.Literal | exp.Neg) or arguments[name].is_string:
        raise ValueError(f"`{name}` must be a number, not `{text}`.")
    return text


def _read_boolean(arguments: Arguments, name: str, otherwise: bool) -> bool:
    text = arguments[name].sql("spark").lower() if name in arguments else str(otherwise).lower()
    if text not in ("true", "false"):
        raise ValueError(f"`{name}` must be true or false, not `{text}`.")
    return text == "true"


def _only_if(arguments: Arguments) -> str:
    return f" WHERE {arguments['condition'].sql('spark')}" if "condition" in arguments else ""


def _select_rows(condition: str, arguments: Arguments) -> str:
    only = f"({arguments['condition'].sql('spark')}) AND " if "condition" in arguments else ""
    return f"SELECT * FROM @this_model WHERE {only}({condition})"


def _range_breach(value: str, arguments: Arguments) -> str:
    strict = not _read_boolean(arguments, "inclusive", True)
    low, high = ("<=", ">=") if strict else ("<", ">")
    signs = {name: sign for name, sign in (("min_v", low), ("max_v", high)) if name in arguments}
    limits = [f"{value} {sign} {arguments[name].sql('spark')}" for name, sign in signs.items()]
    if not limits:
        raise ValueError("`min_v` or `max_v` is needed.")
    return " OR ".join(limits)


def _not_null(arguments: Arguments) -> str:
    return _select_rows(" OR ".join(f"{column} IS NULL" for column in _read_columns(arguments)), arguments)


def _duplicates_query(columns: list[str], arguments: Arguments) -> str:
    """Return the query of the combinations of values that occur more than once; NULLs count as equal."""
    listed, only = ", ".join(columns), _only_if(arguments)
    return f"SELECT {listed}, COUNT(*) AS num_rows FROM @this_model{only} GROUP BY {listed} HAVING COUNT(*) > 1"


def _unique_values(arguments: Arguments) -> str:
    columns = _read_columns(arguments)
    if len(columns) == 1:
        return _duplicates_query(columns, arguments)
    parts = (
        f"SELECT {_string_literal(column)} AS column_name, CAST({column} AS STRING) AS text, num_rows FROM ({repeated})"
        for column in columns
        if (repeated := _duplicates_query([column], arguments))
    )
    return " UNION ALL ".join(parts)


def _string_literal(value: str) -> str:
    return exp.Literal.string(value).sql("spark")


def _forall_query(arguments: Arguments) -> str:
    return _select_rows(
        " OR ".join(f"NOT ({criterion})" for criterion in _list_items(arguments["criteria"])), arguments
    )


def _number_of_rows(arguments: Arguments) -> str:
    threshold = _read_number(arguments, "threshold")
    return f"SELECT COUNT(*) AS num_rows FROM @this_model{_only_if(arguments)} HAVING COUNT(*) <= {threshold}"


def _is_in(arguments: Arguments) -> str:
    return f"{_read_column(arguments)} IN ({', '.join(_list_items(arguments['is_in']))})"


def _require_at_least_one(arguments: Arguments) -> str:
    """Return the query that fails if all values are NULL; an empty table passes."""
    column = _read_column(arguments)
    counted = f"SELECT COUNT(*) AS num_rows, COUNT({column}) AS num_values FROM @this_model{_only_if(arguments)}"
    return f"{counted} HAVING COUNT({column}) = 0 AND COUNT(*) > 0"


def _not_constant(arguments: Arguments) -> str:
    column = _read_column(arguments)
    counted = f"SELECT COUNT(DISTINCT {column}) AS num_values FROM @this_model{_only_if(arguments)}"
    return f"{counted} HAVING COUNT(DISTINCT {column}) <= 1"


def _not_null_proportion(arguments: Arguments) -> str:
    column, threshold = _read_column(arguments), _read_number(arguments, "threshold")
    counted = f"SELECT COUNT(*) AS num_rows, COUNT({column}) AS num_values FROM @this_model{_only_if(arguments)}"
    return f"{counted} HAVING COUNT({column}) <= COUNT(*) * {threshold}"


def _sequential_values(arguments: Arguments) -> str:
    column = _read_column(arguments)
    step = arguments["interval"].sql("spark") if "interval" in arguments else "1"
    lag_query = f"SELECT {column} AS value, LAG({column}) OVER (ORDER BY {column}) AS previous FROM @this_model"
    return f"SELECT * FROM ({lag_query}{_only_if(arguments)}) WHERE NOT (value = previous + {step})"


def _mutually_exclusive_ranges(arguments: Arguments) -> str:
    low, high = _read_column(arguments, "lower_bound_column"), _read_column(arguments, "upper_bound_column")
    partition_clause = arguments.get("partition_clause")
    parts = ""
    if partition_clause is not None and partition_clause.sql().lower() not in ("false", "null"):
        parts = ", ".join(_list_items(partition_clause))
    within = f"PARTITION BY {parts} " if parts else ""
    shown = f"{parts}, " if parts else ""
    ranges = (
        f"SELECT {shown}{low} AS lower_bound, {high} AS upper_bound,"
        f" LEAD({low}) OVER ({within}ORDER BY {low}, {high}) AS next_lower_bound FROM @this_model{_only_if(arguments)}"
    )
    bad = "NOT COALESCE(lower_bound <= upper_bound, FALSE) OR upper_bound > next_lower_bound"
    return f"SELECT * FROM ({ranges}) WHERE {bad}"


def _regex_audit(pattern: str, lower: bool = False) -> Callable[[Arguments], str]:
    def query(arguments: Arguments) -> str:
        column = f"LOWER({_read_column(arguments)})" if lower else _read_column(arguments)
        return _select_rows(f"NOT {column} RLIKE '{pattern}'", arguments)

    return query


def _pattern_audit(operator: str, *, requires_match: bool) -> Callable[[Arguments], str]:
    def query(arguments: Arguments) -> str:
        column = _read_column(arguments)
        patterns = _list_items(arguments["patterns"])
        if not patterns or not all(spark_tree(pattern).is_string for pattern in patterns):
            raise ValueError("`patterns` must be strings, like `('a%', 'b%')`.")
        match_condition = " OR ".join(f"{column} {operator} {pattern}" for pattern in patterns)
        return _select_rows(f"NOT ({match_condition})" if requires_match else match_condition, arguments)

    return query


def _statistic_audit(function: str, name: str) -> Callable[[Arguments], str]:
    def query(arguments: Arguments) -> str:
        value = f"{function}({_read_column(arguments)})"
        outside = _range_breach(value, arguments)
        return f"SELECT {value} AS {name} FROM @this_model{_only_if(arguments)} HAVING {outside}"

    return query


def _z_score(arguments: Arguments) -> str:
    column, threshold, only = _read_column(arguments), _read_number(arguments, "threshold"), _only_if(arguments)
    mean = f"(SELECT AVG({column}) FROM @this_model{only})"
    deviation = f"(SELECT STDDEV({column}) FROM @this_model{only})"
    return _select_rows(f"ABS(({column} - {mean}) / NULLIF({deviation}, 0)) > {threshold}", arguments)


def _kl_divergence(arguments: Arguments) -> str:
    """Return the query of the sum of (p - q) * ln(p / q), infinite for a value of only one of the columns."""
    if ("column" in arguments) == ("source_column" in arguments):
        raise ValueError("`column` is needed.")
    source = _read_column(arguments, "column" if "column" in arguments else "source_column")
    threshold = _read_number(arguments, "threshold")
    sides = enumerate((source, _read_column(arguments, "target_column")), start=1)
    pair = f"ARRAY({', '.join(f'STRUCT({side} AS side, {column} AS value)' for side, column in sides)})"
    values = f"SELECT each.side, each.value FROM (SELECT EXPLODE({pair}) AS each FROM @this_model{_only_if(arguments)})"
    counts = (
        "SELECT COUNT_IF(side = 1) / SUM(COUNT_IF(side = 1)) OVER () AS p,"
        " COUNT_IF(side = 2) / SUM(COUNT_IF(side = 2)) OVER () AS q"
        f" FROM ({values}) WHERE NOT value IS NULL GROUP BY value"
    )
    term = "CASE WHEN p = 0 OR q = 0 THEN CAST('Infinity' AS DOUBLE) ELSE (p - q) * LN(p / q) END"
    return f"SELECT SUM({term}) AS kl_divergence FROM ({counts}) HAVING SUM({term}) > {threshold}"


def _chi_square(arguments: Arguments) -> str:
    """Return the query that compares chi-square with its critical value, which it must exceed if `dependent`.

    `dependent` is true by default with `column_a`, and false with `column`.
    """
    documented = "column" in arguments or "target_column" in arguments
    names = ("column", "target_column") if documented else ("column_a", "column_b")
    if any(name not in arguments for name in names) or (documented and {"column_a", "column_b"} & set(arguments)):
        raise ValueError(f"`{names[0]}` and `{names[1]}` are needed.")
    first_column, second_column = (_read_column(arguments, name) for name in names)
    critical = _read_number(arguments, "critical_value")
    wrong = "<=" if _read_boolean(arguments, "dependent", not documented) else ">"
    pairs = f"SELECT {first_column} AS one, {second_column} AS other FROM @this_model{_only_if(arguments)}"
    cells = (
        "SELECT one, other, COUNT(*) AS observed, SUM(COUNT(*)) OVER (PARTITION BY one) AS ones,"
        " SUM(COUNT(*)) OVER (PARTITION BY other) AS others, SUM(COUNT(*)) OVER () AS total"
        f" FROM ({pairs}) WHERE NOT one IS NULL AND NOT other IS NULL GROUP BY one, other"
    )
    square = "MAX(total) * (SUM(CAST(observed AS DOUBLE) * observed / ones / others) - 1)"
    freedom = "(COUNT(DISTINCT one) - 1) * (COUNT(DISTINCT other) - 1) AS degrees_of_freedom"
    return f"SELECT {freedom}, {square} AS chi_square FROM ({cells}) HAVING {square} {wrong} {critical}"


def _length_between(arguments: Arguments) -> str:
    return _select_rows(_range_breach(f"LENGTH({_read_column(arguments)})", arguments), arguments)


def _length_equal(arguments: Arguments) -> str:
    return _select_rows(f"LENGTH({_read_column(arguments)}) <> {_read_number(arguments, 'v')}", arguments)


_COLUMN, _COLUMNS = ("column",), ("columns",)
_PATTERNS = ("column", "patterns")
_COUNTS = ("num_rows", "num_values")

BUILT_IN: dict[str, BuiltIn] = {
    "forall": BuiltIn(("criteria",), _forall_query),
    "number_of_rows": BuiltIn(("threshold",), _number_of_rows, figures=_COUNTS),
    "not_null": BuiltIn(_COLUMNS, _not_null),
    "at_least_one": BuiltIn(_COLUMN, _require_at_least_one, figures=_COUNTS),
    "not_null_proportion": BuiltIn(("column", "threshold"), _not_null_proportion, figures=_COUNTS),
    "not_constant": BuiltIn(_COLUMN, _not_constant, figures=_COUNTS),
    "unique_values": BuiltIn(_COLUMNS, _unique_values, figures=("num_rows", "column_name")),
    "unique_combination_of_columns": BuiltIn(
        _COLUMNS, lambda arguments: _duplicates_query(_read_columns(arguments), arguments), figures=("num_rows",)
    ),
    "accepted_values": BuiltIn(
        ("column", "is_in"), lambda arguments: _select_rows(f"NOT ({_is_in(arguments)})", arguments)
    ),
    "not_accepted_values": BuiltIn(("column", "is_in"), lambda arguments: _select_rows(_is_in(arguments), arguments)),
    "sequential_values": BuiltIn(_COLUMN, _sequential_values, ("interval",)),
    "accepted_range": BuiltIn(
        _COLUMN, lambda arguments: _select_rows(_range_breach(_read_column(arguments), arguments), arguments), RANGE
    ),
    "mutually_exclusive_ranges": BuiltIn(
        ("lower_bound_column", "upper_bound_column"), _mutually_exclusive_ranges, ("partition_clause",)
    ),
    "not_empty_string": BuiltIn(_COLUMN, lambda arguments: _select_rows(f"{_read_column(arguments)} = ''", arguments)),
    "string_length_equal": BuiltIn(("column", "v"), _length_equal),
    "string_length_between": BuiltIn(_COLUMN, _length_between, RANGE),
    "valid_uuid": BuiltIn(_COLUMN, _regex_audit(UUID, lower=True)),
    "valid_email": BuiltIn(_COLUMN, _regex_audit(EMAIL)),
    "valid_url": BuiltIn(_COLUMN, _regex_audit(URL)),
    "valid_http_method": BuiltIn(
        _COLUMN, lambda arguments: _select_rows(f"NOT {_read_column(arguments)} IN ({METHODS})", arguments)
    ),
    "match_regex_pattern_list": BuiltIn(_PATTERNS, _pattern_audit("RLIKE", requires_match=True)),
    "not_match_regex_pattern_list": BuiltIn(_PATTERNS, _pattern_audit("RLIKE", requires_match=False)),
    "match_like_pattern_list": BuiltIn(_PATTERNS, _pattern_audit("LIKE", requires_match=True)),
    "not_match_like_pattern_list": BuiltIn(_PATTERNS, _pattern_audit("LIKE", requires_match=False)),
    "mean_in_range": BuiltIn(_COLUMN, _statistic_audit("AVG", "mean"), RANGE, ("mean",)),
    "stddev_in_range": BuiltIn(_COLUMN, _statistic_audit("STDDEV", "stddev"), RANGE, ("stddev",)),
    "z_score": BuiltIn(("column", "threshold"), _z_score),
    "kl_divergence": BuiltIn(
        ("target_column", "threshold"), _kl_divergence, ("column", "source_column"), ("kl_divergence",)
    ),
    "chi_square": BuiltIn(
        ("critical_value",),
        _chi_square,
        ("column", "target_column", "column_a", "column_b", "dependent"),
        ("degrees_of_freedom", "chi_square"),
    ),
}
ALIASES = {f"{name}_audit": name for name in ("string_length_equal", "string_length_between")}
