"""Functions that return one type for any arguments, in Spark 3.4 to 4.1 and under every setting."""

from collections.abc import Mapping

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
