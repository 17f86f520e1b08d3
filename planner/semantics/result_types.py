"""The Spark type of an operation's result, if the types of its operands decide it in every version and setting."""

from collections.abc import Callable, Iterable, Mapping

from mergeplan.planner.semantics.decimal_types import (
    average_of_decimals,
    decimal_product,
    decimal_sum,
    literal_type,
    read_decimal,
    sum_of_decimals,
    widest_decimal,
)
from mergeplan.planner.semantics.query.algebra import Part, Relation, Term

TypeOf = Callable[[Part], str | None]
WHOLE = ("tinyint", "smallint", "int", "bigint")  # from the narrowest to the widest
# Types whose equal values are identical, and which are compared without a cast.
PLAIN = frozenset(("string", "boolean", "date", *WHOLE))
_MOMENTS = frozenset(("timestamp", "timestamp_ntz"))
_FLOATS = frozenset(("float", "double"))
_NUMBERS = frozenset((*WHOLE, *_FLOATS))
# Types whose values are the same in files of a format. ORC sorts the keys of maps, and moves moments with fractions
# before 1970 by a second; Iceberg makes small numbers INT.
_ALIKE = {
    "orc": PLAIN | _FLOATS | {"binary", "timestamp_ntz"},
    "iceberg": (PLAIN - {"tinyint", "smallint"}) | _FLOATS | _MOMENTS | {"binary"},
}
_PICKS = frozenset("Max Min First Last FirstValue LastValue NthValue AnyValue ArgMax ArgMin Lag Lead".split())
_OF_STRINGS = frozenset(
    """Upper Lower Trim Substring Replace Left Right Initcap RegexpReplace Pad SplitPart Reverse Repeat Translate
    RegexpExtract SubstringIndex""".split()
)
_OF_ALL = frozenset(("Coalesce", "Greatest", "Least"))
_ARITHMETIC = frozenset(("Add", "Sub", "Mul", "Mod"))
_OF_DECIMALS = {"Add": decimal_sum, "Sub": decimal_sum, "Mul": decimal_product}
_UNCHANGED = frozenset(("Neg", "Abs"))
_ROUNDS = frozenset(("Round", "call bround"))
_UP_OR_DOWN = frozenset(("Ceil", "Floor"))
# units of intervals that contain no part of a day
_DAYS = frozenset("DAY DAYS WEEK WEEKS MONTH MONTHS YEAR YEARS".split())
_OPERATIONS = {
    "boolean": """EQ NEQ LT LTE NullSafeEQ and or not in exists Like TRUE FALSE ILike RegexpLike StartsWith EndsWith
        Contains IsNan ArrayContains""",
    "int": """int Year Month Day Length Quarter DayOfWeek DayOfYear WeekOfYear Hour Minute Second Ascii StrPosition
        Levenshtein ArraySize""",
    "bigint": "StrToUnix IntDiv UnixSeconds UnixMillis UnixMicros",
    "double": "Sqrt Pow Exp Ln Log Sign MonthsBetween Rand",
    "string": """text Hex MD5 SHA SHA2 ToBase64 TimeToStr UnixToStr JSONFormat JSONExtractScalar Chr Typeof
        CurrentUser Uuid""",
    "date": "TsOrDsToDate LastDay CurrentDate AddMonths NextDay DateFromUnixDate DateTrunc TsOrDsAdd",
    "timestamp": "CurrentTimestamp TimestampTrunc AtTimeZone FromTimeZone",
    "timestamp_ntz": "Localtimestamp",
}
_CALLS = {  # that the parser knows by their name only
    "int": "weekday hash unix_date",
    "bigint": "crc32 xxhash64 monotonically_increasing_id",
    "double": "log10 log2",
    "string": "bin conv format_number",
    "date": "make_date",
    "timestamp": "now timestamp_seconds timestamp_millis timestamp_micros",
}
_PHRASES = {"is null": "boolean", "in query": "boolean"}
FIXED: Mapping[str, str] = {
    **{name: type_ for type_, names in _OPERATIONS.items() for name in names.split()},
    **{f"call {name}": type_ for type_, names in _CALLS.items() for name in names.split()},
    **_PHRASES,
}
AGGREGATES: Mapping[str, str] = {
    **dict.fromkeys(("RowNumber", "Rank", "DenseRank", "Ntile"), "int"),
    **dict.fromkeys(("CumeDist", "PercentRank"), "double"),
    **dict.fromkeys(("Count", "CountIf", "ApproxDistinct"), "bigint"),
    **dict.fromkeys("Stddev StddevPop Variance VariancePop Corr CovarPop CovarSamp".split(), "double"),
    **dict.fromkeys(("LogicalOr", "LogicalAnd"), "boolean"),
}


def may_differ_in(form: str, type_: str | None) -> bool:
    return form in _ALIKE and type_ not in _ALIKE[form] and not (type_ or "").startswith("decimal(")


def is_of_alike(type_: str | None) -> bool:
    """Return True for a type whose equal values look alike, so that a sorted list of them is unique."""
    return type_ is not None and (type_ in PLAIN or type_ in _MOMENTS or type_.startswith("decimal"))


def is_null(value: Part) -> bool:
    return isinstance(value, Term) and value.op == "NULL"


def common_type(types: Iterable[str | None]) -> str | None:
    """Return the type that Spark uses for values of several types in one column, or None if it is uncertain.

    For other types, Spark merges more than their names, or decides by its settings.
    """
    different = set(types)
    if len(different) == 1:
        (type_,) = different
        return type_ if is_of_alike(type_) or type_ in _FLOATS else None
    return _common_number(different) if different else None


def _common_number(types: set[str | None]) -> str | None:
    """Return the type of numbers of several types; a float beside other types depends on a setting."""
    if types <= {*WHOLE}:
        return max((type_ for type_ in types if type_), key=WHOLE.index)
    if "double" in types:
        return "double" if all(type_ in WHOLE or type_ == "double" or read_decimal(type_) for type_ in types) else None
    return widest_decimal(types)


def result_type(term: Term, type_of: TypeOf) -> str | None:
    if term.op == "case":
        return _merge_value_types([*term.parts[1:-1:2], term.parts[-1]], type_of)
    if term.op in ("aggregate", "window function") and term.parts:
        return _function_type(str(term.parts[0]), named_arguments(term.parts[1:]), type_of)
    if term.op in ("window", "filter", "IgnoreNulls", "RespectNulls"):
        return type_of(next(part for part in term.parts if not isinstance(part, str)))
    if term.op == "scalar":
        (relation,) = term.parts
        columns = [*relation.columns.values()] if isinstance(relation, Relation) else []
        return type_of(columns[0]) if len(columns) == 1 else None
    if term.op in ("DateDiff", "TimestampDiff"):
        return "bigint" if "unit" in term.parts else "int"
    if term.op == "number":
        return literal_type(str(term.parts[0]))
    return _operation_type(term, [part for part in term.parts if not isinstance(part, str)], type_of)


def _operation_type(term: Term, values: list[Part], type_of: TypeOf) -> str | None:
    types = [type_of(value) for value in values]
    if term.op in _OF_ALL:
        return _merge_value_types(values, type_of)
    if term.op == "Div":
        # double, unless a decimal is divided by a decimal or a whole number
        is_double = set(types) <= _NUMBERS or ("double" in types and common_type(types) == "double")
        return "double" if types and is_double else None
    if term.op in _ARITHMETIC:
        return _arithmetic_type(term.op, values, types)
    if term.op in _UNCHANGED and len(types) == 1:
        return types[0] if types[0] in _NUMBERS or read_decimal(types[0]) else None
    if term.op in _ROUNDS or term.op in _UP_OR_DOWN:
        # for a decimal it depends on its digits
        named = named_arguments(term.parts)
        numbers = named.get("this") or named.get("expressions") or [""]
        type_ = type_of(numbers[0])
        if type_ not in _NUMBERS:
            return None
        return type_ if term.op in _ROUNDS else "bigint" if "decimals" not in named else None
    if term.op == "TimestampAdd":
        moved = type_of((named_arguments(term.parts).get("this") or [""])[0])
        return moved if moved in _MOMENTS else None
    if term.op in _OF_STRINGS:  # of other types than a string without a collation they return another one
        this = named_arguments(term.parts).get("this") or [""]
        operands = [type_of(part) for part in term.parts if not isinstance(part, str)]
        is_plain = all(type_ in _FLOATS or is_of_alike(type_) for type_ in operands)
        return "string" if type_of(this[0]) == "string" and is_plain else None
    return None


def _arithmetic_type(operator: str, values: list[Part], types: list[str | None]) -> str | None:
    common = common_type(types) if values else None
    if common in _NUMBERS:
        return common
    if len(values) != 2:
        return None
    # beside a decimal, a literal 3 is a decimal of one digit, or of ten by a setting
    has_literal = any(isinstance(value, Term) and value.op == "int" for value in values)
    if read_decimal(common):
        return _OF_DECIMALS[operator](types) if operator in _OF_DECIMALS and not has_literal else None
    if operator not in ("Add", "Sub"):
        return None
    (type_, by), amount = types, values[1]
    unit = named_arguments(amount.parts).get("unit") if isinstance(amount, Term) and amount.op == "Interval" else None
    if unit and isinstance(unit[0], str):
        return type_ if type_ in _MOMENTS or (type_ == "date" and unit[0] in _DAYS) else None
    return "date" if type_ == "date" and by in ("tinyint", "smallint", "int") else None


def named_arguments(parts: Iterable[Part]) -> Mapping[str, list[Part]]:
    named: dict[str, list[Part]] = {}
    name = ""
    for part in parts:
        if name:
            named[name] += [part] if part != "end" else []
            name = name if part != "end" else ""
        elif isinstance(part, str):
            name = part
            named[name] = []
        else:
            break  # the arguments end here
    return named


def _function_type(name: str, named: Mapping[str, list[Part]], type_of: TypeOf) -> str | None:
    if name in AGGREGATES:
        return AGGREGATES[name]
    picked = named.get("this") or [""]
    type_ = type_of(picked[0])
    if name in _PICKS:
        is_plain = type_ in _FLOATS or is_of_alike(type_)
        return type_ if is_plain and not named.keys() & {"default", "expressions"} else None
    if name == "Avg" and set(named) == {"this"}:
        return "double" if type_ in _NUMBERS else average_of_decimals(type_)
    if name == "Sum" and set(named) == {"this"}:
        whole = "bigint" if type_ in WHOLE else "double" if type_ in _FLOATS else None
        return whole or sum_of_decimals(type_)
    return None


def _merge_value_types(values: Iterable[Part], type_of: TypeOf) -> str | None:
    return common_type({type_of(value) for value in values if not is_null(value)})
