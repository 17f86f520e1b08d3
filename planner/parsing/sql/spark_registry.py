"""The functions of Spark's own registry (4.0, 4.1, 4.2, 4.3), each judged: may project code call it?

A pull request's SQL runs with the rights of Spark's process, so a function must do nothing but compute a value from its
arguments. Closed are those that run classes, open files or addresses, or show what the server keeps. A name that is in
none of these lists is closed too: it may be a function of a jar or of the catalog, which the operator allows by name.
`tests/planner/parsing/test_spark_registry.py` compares the lists with the registry of the Spark that is installed.
"""

from __future__ import annotations

from collections.abc import Collection
from difflib import get_close_matches

from mergeplan.planner.model.table_format import FORMATS

# They call the Java classes of the server by name; no setting opens them.
JAVA = frozenset({"java_method", "reflect", "try_reflect"})
NAMING = frozenset({"identifier"})
XML = frozenset(
    """xpath xpath_boolean xpath_double xpath_float xpath_int xpath_long xpath_number xpath_short
    xpath_string""".split()
)
# An option or argument of theirs names a file or an address of a schema.
SCHEMAS = frozenset("from_avro to_avro schema_of_avro from_protobuf to_protobuf".split())
LOGS = frozenset({"python_worker_logs"})
# Of Databricks.
OUTSIDE = frozenset(
    """secret try_secret list_secrets read_files cloud_files read_kafka read_kinesis read_pubsub read_pulsar
    read_statestore remote_query http_request table_changes table_changes_by_path""".split()
)
CLOSED = XML | SCHEMAS | LOGS | OUTSIDE

# They show Spark's version, its user, its catalog, and where the files of a table lie that the query reads anyway.
SHOWING = frozenset(
    """current_catalog current_database current_path current_schema current_user input_file_block_length
    input_file_block_start input_file_name session_user user version""".split()
)
PLAIN = frozenset(
    """
    abs acos acosh add_months aes_decrypt aes_encrypt aggregate and any any_value approx_count_distinct
    approx_percentile approx_top_k approx_top_k_accumulate approx_top_k_combine approx_top_k_estimate array
    array_agg array_append array_compact array_contains array_distinct array_except array_insert array_intersect
    array_join array_max array_min array_position array_prepend array_remove array_repeat array_size array_sort
    array_union arrays_overlap arrays_zip ascii asin asinh assert_true atan atan2 atanh avg base64 between
    bigint bin binary bit_and bit_count bit_get bit_length bit_or bit_xor bitmap_and_agg bitmap_bit_position
    bitmap_bucket_number bitmap_construct_agg bitmap_count bitmap_or_agg bool_and bool_or boolean bround btrim
    cardinality case cast cbrt ceil ceiling char char_length character_length chr coalesce collate collation
    collations collect_list collect_set collect_union concat concat_ws contains conv convert_timezone corr cos
    cosh cot count count_if count_min_sketch counter_diff covar_pop covar_samp crc32 csc cume_dist curdate
    current_date current_time current_timestamp current_timezone date date_add date_diff date_format
    date_from_unix_date date_part date_sub date_trunc dateadd datediff datepart day dayname dayofmonth dayofweek
    dayofyear decimal decode degrees dense_rank div double e element_at elt encode endswith equal_null every
    exists exp explode explode_outer expm1 extract factorial filter find_in_set first first_value flatten float
    floor forall format_number format_string from_base32 from_csv from_json from_unixtime from_utc_timestamp
    from_xml get get_json_object getbit greatest grouping grouping_id hash hex histogram_numeric hll_sketch_agg
    hll_sketch_estimate hll_union hll_union_agg hmac hour hypot if ifnull ilike in initcap inline inline_outer
    instr int is_valid_utf8 is_valid_variant is_variant_null isnan isnotnull isnull jaro_winkler_similarity
    json_array_length json_object_keys json_tuple kll_merge_agg_bigint kll_merge_agg_double kll_merge_agg_float
    kll_sketch_agg_bigint kll_sketch_agg_double kll_sketch_agg_float kll_sketch_get_n_bigint
    kll_sketch_get_n_double kll_sketch_get_n_float kll_sketch_get_quantile_bigint kll_sketch_get_quantile_double
    kll_sketch_get_quantile_float kll_sketch_get_rank_bigint kll_sketch_get_rank_double
    kll_sketch_get_rank_float kll_sketch_merge_bigint kll_sketch_merge_double kll_sketch_merge_float
    kll_sketch_to_string_bigint kll_sketch_to_string_double kll_sketch_to_string_float kurtosis lag last
    last_day last_value lcase lead least left len length levenshtein like listagg ln localtime localtimestamp
    locate log log10 log1p log2 lower lpad ltrim luhn_check make_date make_dt_interval make_interval make_time
    make_timestamp make_timestamp_ltz make_timestamp_ntz make_valid_utf8 make_ym_interval map map_concat
    map_contains_key map_entries map_filter map_from_arrays map_from_entries map_keys map_values map_zip_with
    mask max max_by md5 mean measure median min min_by minute mod mode monotonically_increasing_id month
    monthname months_between named_struct nanvl negative next_day not now nth_value ntile nullif nullifzero nvl
    nvl2 octet_length or overlay parse_json parse_url percent_rank percentile percentile_approx percentile_cont
    percentile_disc pi pmod posexplode posexplode_outer position positive pow power printf quarter quote radians
    raise_error rand randn random randstr range rank reduce regexp regexp_count regexp_extract
    regexp_extract_all regexp_instr regexp_like regexp_replace regexp_substr regr_avgx regr_avgy regr_count
    regr_intercept regr_r2 regr_slope regr_sxx regr_sxy regr_syy repeat replace reverse right rint rlike round
    row_number rpad rtrim schema_of_csv schema_of_json schema_of_variant schema_of_variant_agg schema_of_xml sec
    second sentences sequence session_window sha sha1 sha2 shiftleft shiftright shiftrightunsigned shuffle sign
    signum sin sinh size skewness slice smallint some sort_array soundex space spark_partition_id split
    split_part sql_keywords sqrt st_asbinary st_geogfromwkb st_geomfromwkb st_setsrid st_srid stack startswith
    std stddev stddev_pop stddev_samp str_to_map string string_agg struct substr substring substring_index sum
    tan tanh theta_difference theta_intersection theta_intersection_agg theta_sketch_agg theta_sketch_estimate
    theta_union theta_union_agg time time_bucket time_diff time_from_micros time_from_millis time_from_seconds
    time_to_micros time_to_millis time_to_seconds time_trunc timestamp timestamp_micros timestamp_millis
    timestamp_nanos timestamp_seconds tinyint to_base32 to_binary to_char to_csv to_date to_json to_number
    to_time to_timestamp to_timestamp_ltz to_timestamp_ntz to_unix_timestamp to_utc_timestamp to_varchar
    to_variant_object to_xml transform transform_keys transform_values translate trim trunc try_add
    try_aes_decrypt try_avg try_divide try_element_at try_make_interval try_make_timestamp
    try_make_timestamp_ltz try_make_timestamp_ntz try_mod try_multiply try_parse_json try_parse_url try_subtract
    try_sum try_to_binary try_to_date try_to_number try_to_time try_to_timestamp try_url_decode
    try_validate_utf8 try_variant_array_append try_variant_get try_variant_insert try_variant_set
    tuple_difference_double tuple_difference_integer tuple_difference_theta_double
    tuple_difference_theta_integer tuple_intersection_agg_double tuple_intersection_agg_integer
    tuple_intersection_double tuple_intersection_integer tuple_intersection_theta_double
    tuple_intersection_theta_integer tuple_sketch_agg_double tuple_sketch_agg_integer
    tuple_sketch_estimate_double tuple_sketch_estimate_integer tuple_sketch_summary_double
    tuple_sketch_summary_integer tuple_sketch_theta_double tuple_sketch_theta_integer tuple_union_agg_double
    tuple_union_agg_integer tuple_union_double tuple_union_integer tuple_union_theta_double
    tuple_union_theta_integer typeof ucase unbase64 unhex uniform unix_date unix_micros unix_millis unix_nanos
    unix_seconds unix_timestamp upper url_decode url_encode uuid validate_utf8 var_pop var_samp variance
    variant_array_append variant_delete variant_explode variant_explode_outer variant_get variant_insert
    variant_set variant_strip_nulls vector_avg vector_cosine_similarity vector_inner_product vector_l2_distance
    vector_norm vector_normalize vector_sum weekday weekofyear when width_bucket window window_time xxhash64
    year zeroifnull zip_with
    """.split()
)
OPERATORS = frozenset("! != % & * + - / < << <= <=> <> = == > >= >> >>> ^ | || ~".split())
# In the grammar, not in the registry.
GRAMMAR = frozenset("cube rollup timestampadd timestampdiff try_cast".split())
# Registered for Spark's own libraries: pyspark calls them by name, and `partitioned_by` of tables does.
INTERNAL = frozenset(
    """aggregate_metrics array_binary_search array_to_vector bloom_filter_agg bucket collect_top_k days distributed_id
    distributed_sequence_id ewm hours months null_index pandas_covar pandas_kurt pandas_mode pandas_product pandas_skew
    pandas_stddev pandas_var product timestamp_ntz_to_long truncate unwrap_udt vector_to_array years""".split()
)
OPEN = PLAIN | SHOWING | OPERATORS | GRAMMAR | INTERNAL
# `catalog.system.bucket(8, id)`: functions that the catalogs of a table format have.
OF_CATALOGS = frozenset(name for form in FORMATS.values() for name in form.functions)
# The position of the options of the functions that have any, and which options those may be: `rowValidationXSDPath`
# is the path or address of a schema, and `compression` is the name of a class.
OPTIONS = {
    "from_xml": 2, "schema_of_xml": 1, "to_xml": 1, "from_csv": 2, "schema_of_csv": 1, "to_csv": 1,
}  # fmt: skip
OPTION_NAMES = frozenset(
    """arrayelementname attributeprefix charset chartoescapequoteescaping columnnameofcorruptrecord comment dateformat
    declaration delimiter emptyvalue enabledatetimeparsingfallback encoding enforceschema escape escapequotes
    excludeattribute extension header ignoreleadingwhitespace ignorenamespace ignoresurroundingspaces
    ignoretrailingwhitespace indent inferschema lineseparator linesep locale maxcharspercolumn maxcolumns mode multiline
    nanvalue negativeinf nullvalue positiveinf prefersdate preferdate quote quoteall roottag rowtag samplingratio sep
    singlevariantcolumn timestampformat timestampntzformat timezone unescapedquotehandling validatename valuetag
    wildcardcolname""".split()
)
OPERATOR = "the operator can allow it in `functions` of the gateway's `connection`"


def refusal(name: str, allowed: Collection[str] = ()) -> tuple[str, str] | None:
    """Why a function may not be called, and what to do instead; None for one that may.

    `name` is in lower case, with its schema if it has one; `allowed` are the names, and the beginnings of names with a
    `*`, that the operator adds. A beginning opens nothing that is closed.
    """
    own = spark_name(name)
    if own in JAVA:
        return f"`{own}` runs arbitrary Java code and is not allowed.", ""
    if own in NAMING:
        return "`IDENTIFIER(...)` hides which table or column is read.", "Write the name itself."
    if name in allowed or own in allowed:
        return None
    if own in CLOSED:
        return _refuse_closed(own)
    schema, _, last = name.rpartition(".")
    if own in OPEN or (last in OF_CATALOGS and schema.rpartition(".")[2] == "system"):
        return None
    if any(name.startswith(beginning[:-1]) for beginning in allowed if beginning.endswith("*")):
        return None
    near = [] if schema else get_close_matches(name, PLAIN | SHOWING, n=1, cutoff=0.8)
    hint = "".join(f"Did you mean `{other}`? " for other in near)
    hint += f"If it is a function of a jar or of the catalog, {OPERATOR}: `functions: [{name}]`."
    return f"`{name}` is not a function of Spark.", hint


def spark_name(name: str) -> str:
    """The name of one of Spark's own functions, '' for one in a schema of the catalog."""
    schema, _, last = name.rpartition(".")
    return last if schema in ("", "builtin", "system.builtin") else ""


def is_closed(name: str) -> bool:
    """True for a function of Spark that is closed, by its name alone in lower case."""
    return name in CLOSED | JAVA | NAMING


def option_refusal(function: str, option: str | None) -> str:
    """Why a function may not have an option; '' if it may. None is an option whose name cannot be read."""
    if option is None:
        return f"The options of `{function}` must be written as `map('name', 'value')`: some of them open files."
    if option.lower() in OPTION_NAMES:
        return ""
    return f"The option `{option[:40]}` of `{function}` is not allowed: it may open a file, an address or a class."


def _refuse_closed(name: str) -> tuple[str, str]:
    """The refusal of a function that is closed."""
    if name in XML:
        hint = f"Read the text with `from_xml(text, 'a STRING, b INT')`, which opens nothing; or {OPERATOR}."
        return f"`{name}` opens the files and addresses that an XML text names, and is not allowed.", hint
    if name in LOGS:
        return f"`{name}` shows the logs of the server and is not allowed.", "Remove it."
    return f"`{name}` reads something other than tables and is not allowed.", f"Read a table; or {OPERATOR}."
