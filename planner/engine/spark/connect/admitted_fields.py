"""The messages of Spark Connect that project code may send, field by field, and what is said of those it may not.

What stands in no line here is refused: a field of a later Spark is closed until somebody has thought about it.
"""

from __future__ import annotations

_LINES = """
Relation: common read project filter join set_op sort limit aggregate sql local_relation sample offset deduplicate
  range subquery_alias repartition to_df with_columns_renamed show_string drop tail with_columns hint unpivot to_schema
  repartition_by_expression map_partitions collect_metrics parse group_map co_group_map html_string
  cached_local_relation common_inline_user_defined_table_function as_of_join with_relations transpose
  unresolved_table_valued_function lateral_join chunked_cached_local_relation fill_na drop_na replace summary crosstab
  describe cov corr approx_quantile freq_items sample_by catalog
RelationCommon: source_info plan_id origin
Origin: python_origin
PythonOrigin: fragment call_site
Read: named_table
Read.NamedTable: unparsed_identifier
Project: input expressions
Filter: input condition
Join: left right join_condition join_type using_columns join_data_type
Join.JoinDataType: is_left_struct is_right_struct
SetOperation: left_input right_input set_op_type is_all by_name allow_missing_columns
Sort: input order is_global
Limit: input limit
Offset: input offset
Tail: input limit
Aggregate: input group_type grouping_expressions aggregate_expressions pivot grouping_sets
Aggregate.Pivot: col values
Aggregate.GroupingSets: grouping_set
SQL: query args pos_args named_arguments pos_arguments
SQL.ArgsEntry: key value
SQL.NamedArgumentsEntry: key value
WithRelations: root references
LocalRelation: data schema
CachedLocalRelation: hash
ChunkedCachedLocalRelation: dataHashes schemaHash
Sample: input lower_bound upper_bound with_replacement seed deterministic_order
Deduplicate: input column_names all_columns_as_keys within_watermark
Range: start end step num_partitions
SubqueryAlias: input alias qualifier
Repartition: input num_partitions shuffle
RepartitionByExpression: input partition_exprs num_partitions
ToDF: input column_names
ToSchema: input schema
WithColumnsRenamed: input rename_columns_map renames
WithColumnsRenamed.RenameColumnsMapEntry: key value
WithColumnsRenamed.Rename: col_name new_col_name
WithColumns: input aliases
ShowString: input num_rows truncate vertical
HtmlString: input num_rows truncate
Drop: input columns column_names
Hint: input name parameters
Unpivot: input ids values variable_column_name value_column_name
Unpivot.Values: values
Transpose: input index_columns
CollectMetrics: input name metrics
Parse: input format schema options
Parse.OptionsEntry: key value
AsOfJoin: left right left_as_of right_as_of join_expr using_columns join_type tolerance allow_exact_matches direction
LateralJoin: left right join_condition join_type
UnresolvedTableValuedFunction: function_name arguments
NAFill: input cols values
NADrop: input cols min_non_nulls
NAReplace: input cols replacements
NAReplace.Replacement: old_value new_value
StatSummary: input statistics
StatCrosstab: input col1 col2
StatDescribe: input cols
StatCov: input col1 col2
StatCorr: input col1 col2 method
StatApproxQuantile: input cols probabilities relative_error
StatFreqItems: input cols support
StatSampleBy: input col fractions seed
StatSampleBy.Fraction: stratum fraction
Catalog: current_database current_catalog table_exists
CurrentDatabase:
CurrentCatalog:
TableExists: table_name db_name
MapPartitions: input func is_barrier
GroupMap: input grouping_expressions func sorting_expressions
CoGroupMap: input input_grouping_expressions other other_grouping_expressions func input_sorting_expressions
  other_sorting_expressions
CommonInlineUserDefinedFunction: function_name deterministic arguments python_udf is_distinct
PythonUDF: output_type eval_type command python_ver
CommonInlineUserDefinedTableFunction: function_name deterministic arguments python_udtf
PythonUDTF: return_type eval_type command python_ver
Expression: common literal unresolved_attribute unresolved_function expression_string unresolved_star alias cast
  unresolved_regex sort_order lambda_function window unresolved_extract_value update_fields
  unresolved_named_lambda_variable common_inline_user_defined_function call_function named_argument_expression
  subquery_expression direct_shuffle_partition_id
ExpressionCommon: origin
Expression.UnresolvedAttribute: unparsed_identifier plan_id is_metadata_column
Expression.UnresolvedFunction: function_name arguments is_distinct is_user_defined_function is_internal
Expression.ExpressionString: expression
Expression.UnresolvedStar: unparsed_target plan_id
Expression.UnresolvedRegex: col_name plan_id
Expression.Alias: expr name metadata
Expression.Cast: expr type type_str eval_mode
Expression.SortOrder: child direction null_ordering
Expression.LambdaFunction: function arguments
Expression.UnresolvedNamedLambdaVariable: name_parts
Expression.Window: window_function partition_spec order_spec frame_spec
Expression.Window.WindowFrame: frame_type lower upper
Expression.Window.WindowFrame.FrameBoundary: current_row unbounded value
Expression.UnresolvedExtractValue: child extraction
Expression.UpdateFields: struct_expression field_name value_expression
Expression.DirectShufflePartitionID: child
CallFunction: function_name arguments
NamedArgumentExpression: key value
SubqueryExpression: plan_id subquery_type table_arg_options in_subquery_values
SubqueryExpression.TableArgOptions: partition_spec order_spec with_single_partition
Expression.Literal: null binary boolean byte short integer long float double decimal string date timestamp
  timestamp_ntz calendar_interval year_month_interval day_time_interval array map struct specialized_array time
  data_type
Expression.Literal.Decimal: value precision scale
Expression.Literal.CalendarInterval: months days microseconds
Expression.Literal.Array: element_type elements
Expression.Literal.Map: key_type value_type keys values
Expression.Literal.Struct: struct_type elements
Expression.Literal.SpecializedArray: bools ints longs floats doubles strings
Expression.Literal.Time: nano precision
Bools: values
Ints: values
Longs: values
Floats: values
Doubles: values
Strings: values
DataType: null binary boolean byte short integer long float double decimal string char var_char date timestamp
  timestamp_ntz calendar_interval year_month_interval day_time_interval array struct map variant geometry geography
  unparsed time
DataType.NULL: type_variation_reference
DataType.Binary: type_variation_reference
DataType.Boolean: type_variation_reference
DataType.Byte: type_variation_reference
DataType.Short: type_variation_reference
DataType.Integer: type_variation_reference
DataType.Long: type_variation_reference
DataType.Float: type_variation_reference
DataType.Double: type_variation_reference
DataType.Decimal: scale precision type_variation_reference
DataType.String: type_variation_reference collation
DataType.Char: length type_variation_reference
DataType.VarChar: length type_variation_reference
DataType.Date: type_variation_reference
DataType.Timestamp: type_variation_reference
DataType.TimestampNTZ: type_variation_reference
DataType.CalendarInterval: type_variation_reference
DataType.YearMonthInterval: start_field end_field type_variation_reference
DataType.DayTimeInterval: start_field end_field type_variation_reference
DataType.Array: element_type contains_null type_variation_reference
DataType.Struct: fields type_variation_reference
DataType.StructField: name data_type nullable metadata
DataType.Map: key_type value_type value_contains_null type_variation_reference
DataType.Variant: type_variation_reference
DataType.Geometry: srid type_variation_reference
DataType.Geography: srid type_variation_reference
DataType.Unparsed: data_type_string
DataType.Time: precision type_variation_reference
Plan: root command
Command: create_dataframe_view sql_command register_function register_table_function
CreateDataFrameViewCommand: input name is_global replace
SqlCommand: input
ExecutePlanRequest: session_id client_observed_server_side_session_id user_context operation_id plan client_type
  request_options tags
ExecutePlanRequest.RequestOption: reattach_options result_chunking_options
ReattachOptions: reattachable
ResultChunkingOptions: allow_arrow_batch_chunking preferred_arrow_chunk_size
UserContext: user_id user_name
AnalyzePlanRequest: session_id client_observed_server_side_session_id user_context client_type schema explain
  tree_string is_local is_streaming spark_version ddl_parse same_semantics semantic_hash persist unpersist
  get_storage_level json_to_ddl
AnalyzePlanRequest.Schema: plan
AnalyzePlanRequest.Explain: plan explain_mode
AnalyzePlanRequest.TreeString: plan level
AnalyzePlanRequest.IsLocal: plan
AnalyzePlanRequest.IsStreaming: plan
AnalyzePlanRequest.SparkVersion:
AnalyzePlanRequest.DDLParse: ddl_string
AnalyzePlanRequest.SameSemantics: target_plan other_plan
AnalyzePlanRequest.SemanticHash: plan
AnalyzePlanRequest.Persist: relation storage_level
AnalyzePlanRequest.Unpersist: relation blocking
AnalyzePlanRequest.GetStorageLevel: relation
AnalyzePlanRequest.JsonToDDL: json_string
StorageLevel: use_disk use_memory use_off_heap deserialized replication
ConfigRequest: session_id client_observed_server_side_session_id user_context operation client_type
ConfigRequest.Operation: get get_with_default get_option is_modifiable
ConfigRequest.Get: keys
ConfigRequest.GetWithDefault: pairs
ConfigRequest.GetOption: keys
ConfigRequest.IsModifiable: keys
KeyValue: key value
InterruptRequest: session_id client_observed_server_side_session_id user_context client_type interrupt_type
  operation_tag operation_id
ReattachExecuteRequest: session_id client_observed_server_side_session_id user_context operation_id client_type
  last_response_id
ReleaseExecuteRequest: session_id client_observed_server_side_session_id user_context operation_id client_type
  release_all release_until
ReleaseExecuteRequest.ReleaseAll:
ReleaseExecuteRequest.ReleaseUntil: response_id
ReleaseSessionRequest: session_id user_context client_type allow_reconnect
FetchErrorDetailsRequest: session_id client_observed_server_side_session_id user_context error_id client_type
ArtifactStatusesRequest: session_id client_observed_server_side_session_id user_context client_type names
AddArtifactsRequest: session_id user_context client_observed_server_side_session_id client_type batch begin_chunk chunk
AddArtifactsRequest.Batch: artifacts
AddArtifactsRequest.SingleChunkArtifact: name data
AddArtifactsRequest.ArtifactChunk: data crc
AddArtifactsRequest.BeginChunkedArtifact: name total_bytes num_chunks initial_chunk
"""
PACKAGE = "spark.connect."


def _read(lines: str) -> dict[str, frozenset[str]]:
    joined = lines.replace("\n  ", " ").strip().splitlines()
    pairs = (line.partition(":") for line in joined)
    return {name: frozenset(fields.split()) for name, _, fields in pairs}


FIELDS = _read(_LINES)
READS = "a model reads the tables that it names in `depends_on` or `context.table(...)`, and no other source"
WRITES = "a model returns its rows, and mergeplan writes them"
SET = "settings are those of the gateway in `config.yaml`"
ENDS = "what a model keeps on Spark ends with it"
WORKS = "only what a model needs to read and to reckon is let through"
WHY = {
    "Read.data_source": ("`spark.read` of files, addresses and formats", READS),
    "Read.is_streaming": ("`spark.readStream`", READS),
    "Read.NamedTable.options": ("an option of a table that is read", READS),
    "Relation.common_inline_user_defined_data_source": ("a data source in Python", READS),
    "Relation.cached_remote_relation": ("a checkpoint", ENDS),
    "Relation.with_watermark": ("a stream", READS),
    "Relation.apply_in_pandas_with_state": ("a stream", READS),
    "Relation.ml_relation": ("machine learning inside Spark", WORKS),
    "Relation.extension": ("an extension of Spark Connect", WORKS),
    "Expression.extension": ("an extension of Spark Connect", WORKS),
    "Command.extension": ("an extension of Spark Connect", WORKS),
    "Expression.typed_aggregate_expression": ("a function in Scala", WORKS),
    "Expression.merge_action": ("MERGE", WRITES),
    "CommonInlineUserDefinedFunction.java_udf": ("a function in Java", WORKS),
    "CommonInlineUserDefinedFunction.scalar_scala_udf": ("a function in Scala", WORKS),
    "PythonUDF.additional_includes": ("a function with files of its own", WORKS),
    "DataType.udt": ("a type with a class of its own", WORKS),
    "Command.write_operation": ("`DataFrame.write`", WRITES),
    "Command.write_operation_v2": ("`DataFrame.writeTo`", WRITES),
    "Command.merge_into_table_command": ("`DataFrame.mergeInto`", WRITES),
    "Command.write_stream_operation_start": ("`DataFrame.writeStream`", WRITES),
    "Command.streaming_query_command": ("a stream", WRITES),
    "Command.streaming_query_manager_command": ("a stream", WRITES),
    "Command.streaming_query_listener_bus_command": ("a stream", WRITES),
    "Command.register_data_source": ("a data source in Python", READS),
    "Command.get_resources_command": ("`spark.resources`", WORKS),
    "Command.create_resource_profile_command": ("a resource profile", SET),
    "MapPartitions.profile_id": ("a resource profile", SET),
    "Command.checkpoint_command": ("a checkpoint", ENDS),
    "Command.remove_cached_remote_relation_command": ("a checkpoint", ENDS),
    "Command.ml_command": ("machine learning inside Spark", WORKS),
    "Command.execute_external_command": ("a command of another system", WORKS),
    "Command.pipeline_command": ("a pipeline", WRITES),
    "SqlCommand.sql": ("a command of an older pyspark", WORKS),
    "Plan.compressed_operation": ("a compressed plan", WORKS),
    "UserContext.extensions": ("an extension of Spark Connect", WORKS),
    "AnalyzePlanRequest.input_files": ("`DataFrame.inputFiles`", READS),
    "Catalog.drop_temp_view": ("`spark.catalog.dropTempView`", ENDS),
    "ConfigRequest.Operation.set": ("`spark.conf.set`", SET),
    "ConfigRequest.Operation.unset": ("`spark.conf.unset`", SET),
    "ConfigRequest.Operation.get_all": ("`spark.conf.getAll`", SET),
}
CATALOG = ("`spark.catalog` beyond `tableExists`, `currentDatabase` and `currentCatalog`", READS)


def sentence(message: str, field: str) -> str:
    """What is said of a field that is closed."""
    what, why = WHY.get(f"{message}.{field}") or (CATALOG if message == "Catalog" else (f"`{message}.{field}`", WORKS))
    return f"{what[0].upper()}{what[1:]} is not allowed to project code: {why}."
