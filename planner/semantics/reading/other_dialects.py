"""Translate subscripts, slices, intervals, maps and casts of other dialects to Spark SQL that returns the same rows.

sqlglot writes some of them with other results: an index that is no literal stays unchanged although it counts from 1,
and a cast of 2.5 to INT is 3 in DuckDB and 2 in Spark. The parser's tree is marked with the dialect in which it was
written. In that dialect its meaning does not change.
"""

from collections.abc import Callable, Mapping

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.expressions import apply_index_offset
from sqlglot.generator import Generator

from mergeplan.planner.semantics.spark.spark_functions import is_volatile

_WRITTEN_IN = "written_in"
_INTEGERS = (exp.DType.TINYINT, exp.DType.SMALLINT, exp.DType.INT, exp.DType.BIGINT)
# Indexes count from 1. Out of range is NULL, and what is negative counts from the end ...
_NULL_OUTSIDE = ("duckdb", "clickhouse", "starrocks", "doris")
# ... or out of range is an error, as in Spark; maps have subscripts too
_ERROR_OUTSIDE = ("presto", "trino", "athena", "dune")
# ... or out of range is NULL, negative too, and only arrays have such subscripts
_ARRAYS_ONLY = ("postgres", "materialize", "risingwave")
# Dialects that round a number to an integer: halves go away from zero, in some those of floats to even.
_ROUNDING = ("duckdb", "postgres", "snowflake", "bigquery", "presto", "trino", "athena")
_FLOATS_TO_EVEN = ("duckdb", "postgres")
_ARRAYS = (exp.Array, exp.Split, exp.RegexpSplit, exp.RegexpExtractAll, exp.ArrayAgg, exp.Transform, exp.MapKeys,
           exp.GenerateSeries, exp.StringToArray, exp.ArrayFilter)  # fmt: skip
_Writer = Callable[[Generator, exp.Expr], str]
_number = exp.Literal.number
_UNITS = ("YEAR", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND")  # as `MAKE_INTERVAL` takes them
_WHOLE = (exp.Floor, exp.Ceil, exp.IntDiv, exp.Length, exp.DateDiff, exp.StrPosition, exp.Count, exp.CountIf,
          exp.RowNumber, exp.Predicate, exp.Connector, exp.Not)  # fmt: skip


def mark_dialect(tree: exp.Expr, dialect: str) -> exp.Expr:
    for node in tree.find_all(*_TRANSLATIONS):
        node.meta[_WRITTEN_IN] = dialect
    return tree


def add_translations(dispatch: Mapping[type[exp.Expr], _Writer]) -> dict[type[exp.Expr], _Writer]:
    """Return the table of a generator for Spark SQL that writes marked nodes by the rules below."""
    return {**dispatch, **{kind: _build_writer(dispatch[kind], kind) for kind in _TRANSLATIONS}}


def _build_writer(own: _Writer, kind: type[exp.Expr]) -> _Writer:
    translate = _TRANSLATIONS[kind]

    def write(generator: Generator, node: exp.Expr) -> str:
        dialect = str(node.meta.get(_WRITTEN_IN, ""))
        if not dialect:
            return own(generator, node)
        try:
            translated = translate(node, dialect)
        except _Untranslatable as error:
            generator.unsupported(str(error))
            return "NULL"
        return own(generator, node) if translated is None else generator.sql(translated)

    return write


class _Untranslatable(Exception):
    """A construct without a counterpart in Spark, which the message names."""


def _translate_subscript(node: exp.Expr, dialect: str) -> exp.Expr | None:
    """Return the translation of `x[...]`, or None if Spark reads it the same."""
    if len(node.expressions) != 1:
        return None
    (key,) = node.expressions
    if isinstance(key, exp.Slice):
        return _translate_slice(dialect, node.this, key.this, key.args.get("expression"), key.args.get("step"))
    if node.args.get("offset") is not None and dialect != "bigquery":
        return None  # `ELEMENT_AT`
    if node.args.get("offset") is not None:
        index = _minus_one(key) if node.args["offset"] == 1 else key
        return _build_call("GET", node.this, index) if node.args.get("safe") else _build_bracket(node.this, index)
    if key.is_string or node.this.is_type(exp.DType.MAP):
        return None  # the key of a map, or the field of a struct
    if dialect not in (*_NULL_OUTSIDE, *_ERROR_OUTSIDE, *_ARRAYS_ONLY):
        return None
    offset = Dialect.get_or_raise(dialect).INDEX_OFFSET  # which the parser has subtracted from a number
    (index,) = apply_index_offset(node.this, node.expressions, offset, dialect=dialect)
    is_array = node.this.is_type(exp.DType.ARRAY) or isinstance(node.this, _ARRAYS)
    if dialect in _ARRAYS_ONLY:
        return _build_call("GET", node.this, _minus_one(index))
    return (_or_null if dialect in _NULL_OUTSIDE else _or_error)(node.this, index, is_array=is_array)


def _or_error(container: exp.Expr, index: exp.Expr, *, is_array: bool) -> exp.Expr:
    """Return an element of an array, or a value of a map, for which an index out of range is an error."""
    if index.is_int:
        return _build_call("ELEMENT_AT", container, index)
    shifted = _minus_one(index)
    return _build_bracket(container, shifted if is_array else _key_or(container, shifted, index))


def _or_null(container: exp.Expr, index: exp.Expr, *, is_array: bool) -> exp.Expr:
    """Return an element of an array, or a value of a map, for which an index out of range is NULL."""
    if index.is_int and index.to_py() == 0:
        null = exp.cast(exp.null(), "int")
        return _build_call(
            "TRY_ELEMENT_AT", container, null if is_array else _build_call("IF", _is_array(container), null, index)
        )
    if index.is_int:
        return _build_call("TRY_ELEMENT_AT", container, index)
    if any(map(is_volatile, index.walk())):  # it may occur only once here
        return _build_call("TRY_ELEMENT_AT", container, _as_int(index))
    if is_array:
        return _build_call("TRY_ELEMENT_AT", container, _as_int(_build_call("NULLIF", index, exp.Literal.number(0))))
    size, first = _build_call("SIZE", container), exp.Literal.number(1)
    forward = exp.Between(this=_enclose_operand(index), low=first, high=size)
    backward = exp.Between(this=_enclose_operand(index), low=exp.Neg(this=size.copy()), high=_number(-1))
    from_end = exp.Add(this=size.copy(), expression=_enclose_operand(index))
    shifted = exp.Case(ifs=[exp.If(this=forward, true=_minus_one(index)), exp.If(this=backward, true=from_end)])
    return _build_bracket(container, _key_or(container, shifted, index))


def _key_or(container: exp.Expr, shifted: exp.Expr, index: exp.Expr) -> exp.Expr:
    """Return the shifted index for an array, and the key itself for a map.

    A text works with keys of every type: beside a number it becomes a number, and a key that is a text stays one.
    """
    return _build_call("IF", _is_array(container), _build_call("STRING", shifted), index)


def _is_array(container: exp.Expr) -> exp.Expr:
    return exp.Like(this=_build_call("TYPEOF", container), expression=exp.Literal.string("array<%"))


def _array_slice(node: exp.Expr, dialect: str) -> exp.Expr | None:
    """Return the translation of `ARRAY_SLICE(x, a, b)`, or None if it takes a start and a length, as in Spark."""
    start, end = node.args.get("start"), node.args.get("end")
    if dialect == "duckdb":
        return _translate_slice(dialect, node.this, start, end, node.args.get("step"))
    if dialect not in ("snowflake", "bigquery"):
        return None
    low, high = _slice_bound(start), _slice_bound(end)  # from 0
    if low is None or high is None or min(low, high) < 0:
        raise _Untranslatable("the bounds of ARRAY_SLICE must be numbers that are not negative; Spark has SLICE")
    length = high - low + (dialect == "bigquery")  # in BigQuery the end is included
    return _build_call("SLICE", node.this, _number(low + 1), _number(max(length, 0)))


def _translate_slice(
    dialect: str, array: exp.Expr, start: exp.Expr | None, end: exp.Expr | None, step: exp.Expr | None
) -> exp.Expr:
    """Return the translation of `x[2:3]`, both ends included; SLICE takes a length and a start within the array."""
    low = 1 if start is None else _slice_bound(start)
    high = -1 if end is None else _slice_bound(end)
    from_end = (low is not None and low < 0) or (end is not None and high is not None and high < 0)
    if low is None or high is None or step or dialect not in ("duckdb", *_ARRAYS_ONLY):
        raise _Untranslatable("the bounds of a slice `x[a:b]` must be numbers; Spark has SLICE(x, start, length)")
    if from_end and dialect != "duckdb":
        raise _Untranslatable("a slice `x[a:b]` must not begin or end before the first element")
    if low >= 0 and high >= 0:
        return _build_call("SLICE", array, _number(max(low, 1)), _number(max(high - max(low, 1) + 1, 0)))
    size = _build_call("SIZE", array)
    first = _number(max(low, 1)) if low >= 0 else _build_call("GREATEST", _add_number(size, low + 1), _number(1))
    last = _build_call("LEAST", size, _number(high)) if high >= 0 else _add_number(size, high + 1)
    length = exp.Add(this=exp.Sub(this=last, expression=first.copy()), expression=_number(1))
    return _build_call("SLICE", array, first, _build_call("GREATEST", length, _number(0)))


def _translate_interval(node: exp.Expr, dialect: str) -> exp.Expr | None:
    unit = str(node.args.get("unit")).upper().removesuffix("S")
    if unit not in _UNITS or isinstance(node.this, (exp.Literal, exp.Neg)):
        return None  # Spark reads a literal
    larger_units = [_number(0)] * _UNITS.index(unit)
    return _build_call("MAKE_INTERVAL", *larger_units, node.this)


def _translate_map(node: exp.Expr, dialect: str) -> exp.Expr | None:
    """Return the translation of `MAP {'a': 1}`, and of `MAP {'a': 1}['a']`, parsed as `MAP ({'a': 1}['a'])`."""
    if isinstance(node.this, exp.Bracket) and (literal := _translate_map(exp.ToMap(this=node.this.this), dialect)):
        return exp.Bracket(this=literal, expressions=[key.copy() for key in node.this.expressions])
    if not isinstance(node.this, exp.Struct):
        return None
    return _build_call("MAP", *(part for entry in node.this.expressions for part in (entry.this, entry.expression)))


def _translate_cast(node: exp.Expr, dialect: str) -> exp.Expr | None:
    to = node.args["to"]
    if dialect not in _ROUNDING or not to.is_type(*_INTEGERS) or _is_whole(node.this):
        return None
    rounded = _cast_like_node(node, _cast_like_node(node, node.this, "decimal(38, 0)"), to)
    if dialect not in _FLOATS_TO_EVEN or isinstance(node.this, exp.Literal):
        return rounded
    floats = [exp.Literal.string("float"), exp.Literal.string("double")]
    is_float = exp.In(this=_build_call("TYPEOF", node.this), expressions=floats)
    to_even = _cast_like_node(node, _build_call("RINT", _cast_like_node(node, node.this, "double")), to)
    return exp.Case(ifs=[exp.If(this=is_float, true=to_even)], default=rounded)


def _cast_like_node(node: exp.Expr, value: exp.Expr, to: str | exp.DataType) -> exp.Expr:
    kind = exp.TryCast if isinstance(node, exp.TryCast) else exp.Cast
    return kind(this=value.copy(), to=exp.DataType.build(to, dialect="spark"), safe=node.args.get("safe"))


def _is_whole(value: exp.Expr) -> bool:
    """Return True for a value without a fraction: an integer, a truth value, `ROUND(x)`."""
    while isinstance(value, (exp.Paren, exp.Neg, exp.Window, exp.Filter)):
        value = value.this
    if isinstance(value, exp.Literal):
        return str(value.this).strip().removeprefix("-").isdigit()
    rounded = isinstance(value, exp.Round) and not value.args.get("decimals")
    return rounded or isinstance(value, _WHOLE) or value.is_type(*exp.DataType.INTEGER_TYPES, exp.DType.BOOLEAN)


def _build_call(name: str, *arguments: exp.Expr) -> exp.Expr:
    return exp.Anonymous(this=name, expressions=[argument.copy() for argument in arguments])


def _build_bracket(container: exp.Expr, index: exp.Expr) -> exp.Expr:
    return exp.Bracket(this=container.copy(), expressions=[index.copy()])


def _as_int(value: exp.Expr) -> exp.Expr:
    return exp.TryCast(this=value.copy(), to=exp.DataType.build("int"), safe=True)


def _minus_one(index: exp.Expr) -> exp.Expr:
    if index.is_int:
        return _number(int(index.to_py()) - 1)
    return exp.Sub(this=_enclose_operand(index), expression=exp.Literal.number(1))


def _enclose_operand(node: exp.Expr) -> exp.Expr:
    """Return the expression, in brackets if an operator beside it could bind more tightly."""
    return node.copy() if isinstance(node, (exp.Column, exp.Literal, exp.Paren)) else exp.Paren(this=node.copy())


def _add_number(size: exp.Expr, amount: int) -> exp.Expr:
    kind = exp.Add if amount > 0 else exp.Sub
    return kind(this=size.copy(), expression=_number(abs(amount))) if amount else size.copy()


def _slice_bound(node: exp.Expr | None) -> int | None:
    return int(node.to_py()) if node is not None and node.is_int else None


_TRANSLATIONS: Mapping[type[exp.Expr], Callable[[exp.Expr, str], exp.Expr | None]] = {
    exp.Bracket: _translate_subscript,
    exp.ArraySlice: _array_slice,
    exp.Interval: _translate_interval,
    exp.ToMap: _translate_map,
    exp.Cast: _translate_cast,
    exp.TryCast: _translate_cast,
}
