"""Properties of Spark's functions: which are scalar, which aggregate or generate rows, which are non-deterministic.

sqlglot has types for most functions; the names below are those that it parses as anonymous (Spark 4.1). A function in
none of the lists is unknown (a user's function, or one of a later Spark), and nothing is assumed about it.
"""

import re

from sqlglot import exp

from mergeplan.planner.semantics.keywords import is_keyword

# Texts that are a time only: as a TIMESTAMP they are of the day on which they are read (`10:00`, `T10:00`, `T10`), and
# `today` and the like are as DATE, too. Spark leaves out control characters before them, which a text may have escaped.
#
# A text column may hold such texts as well. A cast of a column is nevertheless not taken for a clock: every cast of a
# text would be one, and no table with it could be kept. Days of a table with times only are those on which it was
# computed, until it is computed again: docs/explanation/edits-order.md.
_CLOCK = re.compile(
    r"(?:[\s\x00-\x20\x7f]|\\u[0-9a-f]{4}|\\.)*(now|today|yesterday|tomorrow|T?\d{1,2}:\d|T\d{1,2}\s*$)", re.IGNORECASE
)
_MOMENTS = (exp.DType.DATE, exp.DType.TIMESTAMP, exp.DType.TIMESTAMPTZ, exp.DType.TIMESTAMPLTZ, exp.DType.TIMESTAMPNTZ)
_TEXT_BUILDERS = (
    exp.Concat, exp.ConcatWs, exp.DPipe, exp.Substring, exp.Pad, exp.Replace, exp.RegexpReplace, exp.Trim, exp.Lower,
    exp.Upper, exp.Repeat, exp.Reverse,
)  # fmt: skip
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
AGGREGATES = frozenset("bitmap_and_agg every mean percentile some std try_avg try_sum".split())
GENERATORS = frozenset("json_tuple inline_outer variant_explode variant_explode_outer stack inline explode".split())

# Types that sqlglot has for functions of other systems. Spark has none of their names: there, `normalize(x)` is a
# user's function. `secret` is one of Databricks, whose value changes without an edit.
FOREIGN = frozenset(
    """AIAgg AIClassify AIEmbed AIGenerate AISimilarity AISummarizeAgg Agg ApproxPercentileAccumulate
    ApproxPercentileCombine ApproxPercentileEstimate ApproxQuantiles ApproxTopSum ApproximateSimilarity ArrayAll
    ArrayConcatAgg ArrayFirst ArrayLast ArrayRemoveAt ArrayReverse ArrayUnionAgg Base64DecodeBinary
    Base64DecodeString Base64Encode Boolnot BoolxorAgg ByteLength CastToStrType CheckJson CheckXml CityHash64
    CodePointsToBytes CodePointsToString Compress CosineDistance Coth Csch CurrentAccount CurrentAccountName
    CurrentAvailableRoles CurrentClient CurrentDatetime CurrentIpAddress CurrentOrganizationName
    CurrentOrganizationUser CurrentRegion CurrentRole CurrentRoleType CurrentSchemas CurrentSecondaryRoles
    CurrentSession CurrentStatement CurrentTimestampLTZ CurrentTransaction CurrentUserId CurrentWarehouse
    DateBin DateToDateStr Datetime DatetimeTrunc DecompressBinary DecompressString Decrypt DecryptRaw DotProduct
    Encrypt EncryptRaw EuclideanDistance FarmFingerprint Float64 FromBase GenerateTimestampArray Generator
    GetIgnoreCase HashAgg HexDecodeString Hll Host IsArray IsAscii IsInf IsNullValue JSONArrayAppend
    JSONArrayContains JSONArrayInsert JSONBContains JSONBExists JSONBExtract JSONBExtractScalar JSONBObjectAgg
    JSONBool JSONExtractArray JSONKeysAtDepth JSONRemove JSONSet JSONStripNulls JSONType JSONValueArray
    JarowinklerSimilarity JustifyDays JustifyHours JustifyInterval LaxBool LaxFloat64 LaxInt64 LaxString List
    MD5NumberLower64 MD5NumberUpper64 ManhattanDistance MapCat MapDelete MapInsert MapPick MapSize Minhash
    MinhashCombine Normal Normalize ObjectAgg ObjectId ObjectInsert ObjectTransform ParseBignumeric ParseIp
    ParseNumeric ParseTime PreviousDay RangeBucket RangeN ReadCSV RegDomain RegexpFullMatch RegexpILike RegrValx
    RegrValy RtrimmedLength SHA1Digest SafeConvertBytesToString SafeNegate Search SearchIp Sech Secret Seq1 Seq2
    Seq4 Seq8 SoundexP123 SplitToTable StDistance StPoint StandardHash StringToArray StripNullValue Strtok
    StrtokSplitToTable StrtokToArray Stuff Systimestamp TimeFromParts TimeToTimeStr TimestampLtzFromParts
    TimestampTzFromParts ToBoolean ToCodePoints ToDays ToDecfloat ToFile ToVariant TryBase64DecodeBinary
    TryBase64DecodeString TryHexDecodeBinary TryHexDecodeString TryToDecfloat TsOrDsToDateStr Week XMLGet
    YearOfWeek YearOfWeekIso Zipf""".split()
)

_GENERATOR_TYPES = (exp.UDTF, exp.Explode, exp.Posexplode, exp.Inline, exp.Stack, exp.GenerateSeries)
# Non-deterministic: their results may differ when the same query runs again over the same rows. Random numbers, the
# clock, the session, and everything that depends on the order in which Spark happens to deliver rows (ties included).
_VOLATILE_TYPES = (
    exp.Rand, exp.Randn, exp.Uuid, exp.CurrentDate, exp.CurrentTimestamp, exp.CurrentTime, exp.CurrentUser,
    exp.SessionUser, exp.Localtimestamp, exp.CurrentTimezone, exp.CurrentCatalog, exp.CurrentDatabase,
    exp.CurrentSchema, exp.Shuffle, exp.Randstr, exp.Uniform, exp.TableSample,
    exp.First, exp.Last, exp.FirstValue, exp.LastValue, exp.NthValue, exp.AnyValue, exp.ArrayAgg, exp.ArrayUniqueAgg,
    exp.GroupConcat, exp.ArgMax, exp.ArgMin, exp.RowNumber, exp.Ntile, exp.Lag, exp.Lead, exp.Mode,
    exp.ApproxQuantile, exp.ApproxTopK,
)  # fmt: skip

_RANDOM_TYPES = (exp.Rand, exp.Randn, exp.Uuid, exp.Shuffle, exp.Randstr, exp.Uniform)

# The clock, the user and the session: their results do not depend on the order of rows.
_SESSION_TYPES = (
    exp.CurrentDate, exp.CurrentTimestamp, exp.CurrentTime, exp.CurrentUser, exp.SessionUser, exp.Localtimestamp,
    exp.CurrentTimezone, exp.CurrentCatalog, exp.CurrentDatabase, exp.CurrentSchema, exp.Literal, exp.Parameter,
    exp.Cast,
)  # fmt: skip
# Aggregates whose result does not depend on the order of rows; floating point sums do, by rounding.
_ORDERLESS_TYPES = (
    exp.Count, exp.CountIf, exp.Min, exp.Max, exp.LogicalAnd, exp.LogicalOr, exp.BitwiseAndAgg, exp.BitwiseOrAgg,
    exp.BitwiseXorAgg, exp.ApproxDistinct, exp.Rank, exp.DenseRank, exp.PercentRank, exp.CumeDist,
)  # fmt: skip


def multiplies_rows(node: exp.Expr) -> bool:
    """Return True for a function that returns several rows for one (explode, inline, stack, json_tuple...)."""
    return isinstance(node, _GENERATOR_TYPES) or (isinstance(node, exp.Anonymous) and node.name.lower() in GENERATORS)


def folds_rows(node: exp.Expr) -> bool:
    """Return True for an aggregate: without GROUP BY it turns all rows into one."""
    if isinstance(node, exp.Any):  # `any(x)` the aggregate, not `= ANY (...)`
        return not isinstance(node.this, exp.Query)
    return isinstance(node, exp.AggFunc) or (isinstance(node, exp.Anonymous) and node.name.lower() in AGGREGATES)


def is_unknown(node: exp.Expr) -> bool:
    if isinstance(node, exp.Anonymous):
        return node.name.lower() not in SCALARS | AGGREGATES | GENERATORS
    if type(node).__name__ in FOREIGN:
        return True
    return isinstance(node, (exp.AnonymousAggFunc, exp.CombinedAggFunc, exp.ParameterizedAgg, exp.UserDefinedFunction))


def is_volatile(node: exp.Expr) -> bool:
    """Return True for a non-deterministic node, an unknown function, and the time of the run (`@execution_ds`)."""
    if isinstance(node, exp.Literal):  # `DATE 'today'`, or any other string that a cast turns into a date
        return bool(node.is_string) and _CLOCK.match(node.name) is not None
    if isinstance(node, exp.Cast):
        # a moment that is read from a text of constant parts: `CAST('10' || ':00' AS TIMESTAMP)`
        value = node.this.unnest()
        is_built = node.to.this in _MOMENTS and isinstance(value, _TEXT_BUILDERS)
        return is_built and value.find(exp.Column, exp.Parameter) is None
    if isinstance(node, exp.Parameter):
        return node.name.lower().startswith("execution")
    if isinstance(
        node, exp.WindowSpec
    ):  # ROWS cuts between rows of equal rank, in any order; RANGE includes all of them
        whole = node.args.get("start") == node.args.get("end") == "UNBOUNDED"
        return node.args.get("kind") == "ROWS" and not whole
    return isinstance(node, _VOLATILE_TYPES) or is_unknown(node) or is_keyword(node)


def depends_on_session(node: exp.Expr) -> bool:
    return isinstance(node, _SESSION_TYPES) or is_keyword(node)


def is_orderless(node: exp.Expr) -> bool:
    return isinstance(node, _ORDERLESS_TYPES)


def is_random(node: exp.Expr) -> bool:
    """Return True if two identical calls may return different values in the same row."""
    return isinstance(node, _RANDOM_TYPES) or is_unknown(node)
