"""The messages of Spark Connect that project code may send, field by field, and the refusals of all others.

`admitted_fields.ini` lists them. A field that it does not list is refused, and so is a field of a later Spark until it
has been reviewed.
"""

from mergeplan.planner.name_lists import read_lists

PACKAGE = "spark.connect."

FIELDS = {
    message: frozenset(fields) for message, fields in read_lists(__package__, "admitted_fields.ini")["messages"].items()
}
READS = "a model reads the tables that it names in `depends_on` or `context.table(...)`, and no other source"
WRITES = "a model returns its rows, and mergeplan writes them"
SET = "settings are those of the gateway in `config.yaml`"
ENDS = "the state of a model on Spark ends with the model"
WORKS = "only requests that read and compute are admitted"
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


def refusal_text(message: str, field: str) -> str:
    action, reason = WHY.get(f"{message}.{field}") or (
        CATALOG if message == "Catalog" else (f"`{message}.{field}`", WORKS)
    )
    return f"{action[0].upper()}{action[1:]} is not allowed to project code: {reason}."
