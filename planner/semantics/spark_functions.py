"""What is known of Spark's functions: which keep rows as they are, which fold or multiply them, which may answer anew.

sqlglot knows most functions as types; the names below are those that it reads as anonymous (Spark 4.1). A function that
stands in no list is a stranger (a user's function, a later Spark's) and nothing is assumed of it.
"""

from __future__ import annotations

import re

from sqlglot import exp

_CLOCK = re.compile(r"\s*(now|today|yesterday|tomorrow|\d{1,2}:\d)", re.IGNORECASE)
SCALARS = frozenset(
    """log10 log2 array_size unix_date get_json_object to_date date_format
    isnotnull isnull regexp bin bround conv e expm1 hypot log1p pmod positive try_mod shiftrightunsigned date_part
    datepart make_date make_dt_interval make_time make_timestamp_ltz make_timestamp_ntz make_ym_interval
    timestamp_micros timestamp_millis timestamp_seconds to_time to_timestamp_ltz to_timestamp_ntz try_make_interval
    try_make_timestamp try_make_timestamp_ltz try_make_timestamp_ntz try_to_date try_to_time try_to_timestamp weekday
    forall map_filter map_zip_with transform_keys transform_values zip_with array_repeat array_union arrays_overlap get
    btrim find_in_set format_number is_valid_utf8 luhn_check make_valid_utf8 mask octet_length printf quote sentences
    to_varchar try_to_binary try_to_number try_validate_utf8 validate_utf8 nullifzero zeroifnull bigint binary decimal
    smallint tinyint cardinality crc32 hash xxhash64 from_csv schema_of_csv to_csv json_array_length schema_of_json
    is_variant_null schema_of_variant to_variant_object try_parse_json try_variant_get variant_get map_concat
    map_entries map_values try_parse_url try_url_decode url_decode url_encode""".split()
)
AGGREGATES = frozenset("bitmap_and_agg every mean some std try_avg try_sum".split())
GENERATORS = frozenset("json_tuple inline_outer variant_explode variant_explode_outer stack inline explode".split())

_GENERATOR_TYPES = (exp.UDTF, exp.Explode, exp.Posexplode, exp.Inline, exp.Stack, exp.GenerateSeries)
# Answers that may differ when the same query runs again over the same rows: chance, the clock, the session, and
# everything that depends on the order in which rows happen to come (ties included).
_VOLATILE_TYPES = (
    exp.Rand, exp.Randn, exp.Uuid, exp.CurrentDate, exp.CurrentTimestamp, exp.CurrentTime, exp.CurrentUser,
    exp.SessionUser, exp.Localtimestamp, exp.CurrentTimezone, exp.CurrentCatalog, exp.CurrentDatabase,
    exp.CurrentSchema, exp.Shuffle, exp.Randstr, exp.Uniform, exp.TableSample,
    exp.First, exp.Last, exp.FirstValue, exp.LastValue, exp.NthValue, exp.AnyValue, exp.ArrayAgg, exp.ArrayUniqueAgg,
    exp.GroupConcat, exp.ArgMax, exp.ArgMin, exp.RowNumber, exp.Ntile, exp.Lag, exp.Lead, exp.Mode,
    exp.ApproxQuantile, exp.ApproxTopK,
)  # fmt: skip

_CHANCE_TYPES = (exp.Rand, exp.Randn, exp.Uuid, exp.Shuffle, exp.Randstr, exp.Uniform)

# The clock, the user and the session: what they answer has nothing to do with the order of rows.
_MOMENT_TYPES = (
    exp.CurrentDate, exp.CurrentTimestamp, exp.CurrentTime, exp.CurrentUser, exp.SessionUser, exp.Localtimestamp,
    exp.CurrentTimezone, exp.CurrentCatalog, exp.CurrentDatabase, exp.CurrentSchema, exp.Literal, exp.Parameter,
)  # fmt: skip
# Aggregates that answer alike over rows in any order; sums of floating point round by it.
_ORDERLESS_TYPES = (
    exp.Count, exp.CountIf, exp.Min, exp.Max, exp.LogicalAnd, exp.LogicalOr, exp.BitwiseAndAgg, exp.BitwiseOrAgg,
    exp.BitwiseXorAgg, exp.ApproxDistinct, exp.Rank, exp.DenseRank, exp.PercentRank, exp.CumeDist,
)  # fmt: skip


def multiplies_rows(node: exp.Expr) -> bool:
    """True for a function that returns several rows for one (explode, inline, stack, json_tuple...)."""
    return isinstance(node, _GENERATOR_TYPES) or (isinstance(node, exp.Anonymous) and node.name.lower() in GENERATORS)


def folds_rows(node: exp.Expr) -> bool:
    """True for an aggregate: without GROUP BY it turns all rows into one."""
    if isinstance(node, exp.Any):  # `any(x)` the aggregate, not `= ANY (...)`
        return not isinstance(node.this, exp.Query)
    return isinstance(node, exp.AggFunc) or (isinstance(node, exp.Anonymous) and node.name.lower() in AGGREGATES)


def is_stranger(node: exp.Expr) -> bool:
    """True for a function of which nothing is known."""
    if isinstance(node, exp.Anonymous):
        return node.name.lower() not in SCALARS | AGGREGATES | GENERATORS
    return isinstance(node, (exp.AnonymousAggFunc, exp.CombinedAggFunc, exp.ParameterizedAgg, exp.UserDefinedFunction))


def is_volatile(node: exp.Expr) -> bool:
    """True when running the node again over the same rows may answer differently; strangers count as such, and so does
    the moment of the run (`@execution_ds`)."""
    if isinstance(node, exp.Literal):  # `DATE 'today'`, and wherever else a text becomes a date
        return bool(node.is_string) and _CLOCK.match(node.name) is not None
    if isinstance(node, exp.Parameter):
        return node.name.lower().startswith("execution")
    if isinstance(node, exp.WindowSpec):  # among rows of equal rank, which come first? (RANGE takes all of them)
        whole = node.args.get("start") == node.args.get("end") == "UNBOUNDED"
        return node.args.get("kind") == "ROWS" and not whole
    return isinstance(node, _VOLATILE_TYPES) or is_stranger(node)


def is_of_the_moment(node: exp.Expr) -> bool:
    """True for what the clock, the user or the session answers, whatever rows there are."""
    return isinstance(node, _MOMENT_TYPES)


def is_orderless(node: exp.Expr) -> bool:
    """True for an aggregate or a window's function that never looks at the order in which rows happen to come."""
    return isinstance(node, _ORDERLESS_TYPES)


def is_chancy(node: exp.Expr) -> bool:
    """True when two calls that are written alike may answer differently in one row."""
    return isinstance(node, _CHANCE_TYPES) or is_stranger(node)
