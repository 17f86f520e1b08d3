"""What a hostile model tries on Spark, and what ordinary ones do: Python with `spark`, `F` and `table` in sight.

`table` names what the model may read, with the columns id, day (date) and price (int). `shop.secret` is another's. Each
attack comes with a part of the sentence that refuses it, or with the name of one.
"""

from __future__ import annotations

TOLD = {
    "READS": "a model reads the tables that it names",
    "WRITES": "a model returns its rows, and mergeplan writes them",
    "SET": "settings are those of the gateway",
    "WORKS": "only requests that read and compute are admitted",
    "ENDS": "the state of a model on Spark ends with the model",
    "NOT_AMONG": "is not a table that this model reads",
    "NO_QUERY": "`spark.sql` accepts only a query here",
    "REACHES": "reads something other than tables and is not allowed",
    "JAVA": "runs arbitrary Java code and is not allowed",
    "XML": "opens the files and addresses that an XML text names",
    "OPTION": "it may open a file, an address or a class",
    "HIDES": "hides which table",
    "UNKNOWN": "is not a function of Spark",
    "SHARED": "A global temporary view is not allowed to project code",
    "OTHER": "speaks for a session that is not this model's",
}


def _cases(text: str) -> dict[str, str]:
    """The pieces of a text, each below its `## title`."""
    pieces = (piece.partition("\n") for piece in text.split("## ")[1:])
    return {title: code.strip("\n") for title, _, code in pieces}


def _attacks(text: str) -> dict[str, tuple[str, str]]:
    """(code, what it is refused with) by name."""
    titled = ((*title.split(" | "), code) for title, code in _cases(text).items())
    return {name: (code, TOLD.get(told, told)) for name, told, code in titled}


ATTACKS = _attacks(r"""
## a file as text | READS
spark.read.text("file:///etc/passwd").collect()
## a file as parquet | READS
spark.read.parquet("/tmp").collect()
## a file by format | READS
spark.read.format("binaryFile").load("/etc/hosts").collect()
## a database | READS
spark.read.jdbc("jdbc:sqlite:/tmp/state.db", "plans").collect()
## a stream | READS
spark.readStream.table(table).isStreaming
## a stream of a rate | READS
spark.readStream.format("rate").load().isStreaming
## a table with a path | READS
spark.read.option("path", "/etc").table(table).collect()
## a file in SQL | NOT_AMONG
spark.sql("SELECT * FROM text.`/etc/passwd`").collect()
## a file as a table | NOT_AMONG
spark.table("text.`/etc/passwd`").collect()
## options in SQL | sets how a table is read
spark.sql(f"SELECT * FROM {table} WITH ('path' = '/etc')").collect()
## a function over files | REACHES
spark.sql("SELECT * FROM read_files('/etc')").collect()
## a protobuf descriptor | REACHES
spark.sql(f"SELECT from_protobuf(id, 'M', '/etc/passwd') FROM {table}").collect()
## a function over an address | REACHES
spark.range(1).selectExpr("http_request('http://x')").collect()
## where the files lie | READS
spark.table(table).inputFiles()
## another table | NOT_AMONG
spark.table("shop.secret").collect()
## another table in quotes | NOT_AMONG
spark.table("`shop`.`secret`").collect()
## another table in the catalog | NOT_AMONG
spark.table("spark_catalog.shop.secret").collect()
## another table in SQL | NOT_AMONG
spark.sql("SELECT * FROM shop.secret").collect()
## a table of the current schema | NOT_AMONG
spark.table("secret").collect()
## a subquery in a filter | NOT_AMONG
spark.table(table).where("id IN (SELECT id FROM shop.secret)").collect()
## a subquery in an expression | NOT_AMONG
spark.range(1).select(F.expr("(SELECT max(id) FROM shop.secret)")).collect()
## a subquery in parentheses | NOT_AMONG
spark.range(1).selectExpr("((FROM shop.secret SELECT max(id)))").collect()
## a join | NOT_AMONG
spark.table(table).join(spark.table("shop.secret"), "id").collect()
## a union | NOT_AMONG
spark.table(table).select("id").union(spark.table("shop.secret").select("id")).collect()
## a WITH | NOT_AMONG
spark.sql("WITH q AS (SELECT * FROM shop.secret) SELECT * FROM q").collect()
## a name out of its WITH | NOT_AMONG
spark.sql("SELECT * FROM (WITH secret AS (SELECT 1) SELECT * FROM secret) a, secret").collect()
## a comment that goes on | A comment of the query ends in a backslash
spark.sql("SELECT 1 -- \\\n' \n FROM shop.secret -- '").collect()
## comments within comments | is not closed, is nested
spark.sql("SELECT 1 /* /* */ FROM shop.secret */").collect()
## a quote that ends elsewhere | A raw string of the query ends in a backslash
spark.sql("SELECT r'a\\', (SELECT max(id) FROM shop.secret) AS b -- '").collect()
## a quote in dollars | is allowed only inside quotes
spark.sql("SELECT $$ ' $$ FROM shop.secret -- '").collect()
## a number that runs into a word | runs into the name after it
spark.sql("WITH q AS (SELECT 1) SELECT *, 1e-5FROM q, shop.secret").collect()
## such a number in an expression | runs into the name after it
spark.range(1).selectExpr("(SELECT max(id + 1e-5)FROM (SELECT 1, 1.5e-3FROM range(1) q, shop.secret))").collect()
## a subquery in a hint | NOT_AMONG
spark.sql(f"SELECT /*+ BROADCAST((SELECT max(id) FROM shop.secret)) */ * FROM {table}").collect()
## a schema of XML in a file | OPTION
spark.sql("SELECT from_xml('<a/>', 'a int', map('rowValidationXSDPath', '/etc/passwd'))").collect()
## such a schema by function | OPTION
spark.range(1).select(F.from_xml(F.lit("<a/>"), "a int", {"rowValidationXSDPath": "/etc/passwd"})).collect()
## a schema of Avro at an address | REACHES
spark.range(1).select(F.call_function("from_avro", F.lit("a"), F.lit("{}"))).collect()
## a name that is made | HIDES
spark.sql("SELECT * FROM IDENTIFIER('shop.' || 'secret')").collect()
## a name as an argument | HIDES
spark.sql("SELECT * FROM IDENTIFIER(:t)", args={"t": "shop.secret"}).collect()
## TABLE | NO_QUERY
spark.sql("TABLE shop.secret").collect()
## a table in a table function | `TABLE` in a query hides
spark.sql("SELECT * FROM f(TABLE(shop.secret))").collect()
## STREAM | `STREAM` reads an endless stream
spark.sql("WITH stream AS (SELECT 1) SELECT * FROM STREAM t").collect()
## is there another table | NOT_AMONG
spark.catalog.tableExists("shop.secret")
## what tables there are | `spark.catalog` beyond
spark.catalog.listTables("shop")
## what functions there are | `spark.catalog` beyond
spark.catalog.listFunctions()
## SHOW TABLES | NO_QUERY
spark.sql("SHOW TABLES IN shop").collect()
## DESCRIBE | NO_QUERY
spark.sql("DESCRIBE EXTENDED shop.secret").collect()
## another model's rows | NOT_AMONG
spark.table("global_temp.mergeplan_0_0").collect()
## options that are made | must be written as `map
spark.sql("SELECT from_xml('<a/>', 'a int', map(concat('rowValidation', 'XSDPath'), '/etc/passwd'))").collect()
## made options by function | must be written as `map
spark.range(1).select(
    F.call_function("from_xml", F.lit("<a/>"), F.lit("a int"), F.create_map(F.concat(F.lit("a")), F.lit("/")))
).collect()
## the schema of an XML text | OPTION
spark.range(1).select(F.schema_of_xml(F.lit("<a/>"), {"rowValidationXSDPath": "/etc/passwd"})).collect()
## a class by an option | OPTION
spark.range(1).select(F.from_csv(F.lit("1"), "a int", {"compression": "java.lang.Runtime"})).collect()
## a class by a schema | A type with a class
spark.range(1).select(F.from_json(F.lit("1"), '{"type": "udt", "class": "java.lang.Runtime"}')).collect()
## an XML text that names an address | XML
spark.sql("SELECT xpath_string('<!DOCTYPE a SYSTEM \"http://127.0.0.1/\"><a/>', '/a')").collect()
## such a text by function | XML
spark.range(1).select(F.xpath_string(F.lit("<a/>"), F.lit("/a"))).collect()
## such a text by name | XML
spark.range(1).select(F.call_function("XPath_Int", F.lit("<a/>"), F.lit("/a"))).collect()
## such a text in an expression | XML
spark.range(1).selectExpr("system . builtin . `xpath` /* */ ('<a/>', '/a')").collect()
## such a text in a hint | XML
spark.sql(f"SELECT /*+ REPARTITION(3, xpath(id, id)) */ * FROM {table}").collect()
## such a text in an order | XML
spark.table(table).orderBy(F.expr("xpath('<a/>', '/a')")).collect()
## such a text in an aggregate | XML
spark.table(table).groupBy("day").agg(F.expr("max(xpath_int('<a/>', '/a'))")).collect()
## the logs of the server | shows the logs of the server
spark.sql("SELECT * FROM python_worker_logs()").collect()
## such logs by function | The table function
spark.tvf.python_worker_logs().collect()
## a function of the catalog | UNKNOWN
spark.sql(f"SELECT shop.mask(id) FROM {table}").collect()
## such a function by name | UNKNOWN
spark.range(1).select(F.call_function("shop.mask", F.lit(1))).collect()
## a function in Python that takes a closed name | is not the name of a function
spark.udf.register("xpath", lambda x: x, "int")
## java by name | JAVA
spark.sql("SELECT reflect('java.lang.System', 'getenv')").collect()
## java by function | JAVA
spark.range(1).select(F.call_function("java_method", F.lit("a"), F.lit("b"))).collect()
## java by its whole name | JAVA
spark.range(1).select(F.call_function("system.builtin.reflect", F.lit("a"))).collect()
## java in an expression | JAVA
spark.range(1).selectExpr("`reflect`('a', 'b')").collect()
## a function in java | A function in Java is not allowed
spark.udf.registerJavaFunction("f", "java.lang.Runtime")
## a program | `USING` runs a program
spark.sql(f"SELECT TRANSFORM(id) USING 'cat /etc/passwd' AS (x) FROM {table}").collect()
## a program by MAP | `USING` runs a program
spark.sql(f"FROM {table} MAP id USING 'cat' AS (x)").collect()
## an artifact | `addArtifact` is not allowed
spark.addArtifact(__import__("os").__file__, file=True)
## a python file | `addArtifact` is not allowed
spark.addArtifact(__import__("os").__file__, pyfile=True)
## a table function | UNKNOWN
spark.sql("SELECT * FROM shop.f(1)").collect()
## a script | NO_QUERY
spark.sql("BEGIN SELECT 1; END").collect()
## EXECUTE IMMEDIATE | NO_QUERY
spark.sql("EXECUTE IMMEDIATE 'DROP TABLE shop.secret'")
## DROP | NO_QUERY
spark.sql("DROP TABLE shop.secret")
## DROP of its own table | NO_QUERY
spark.sql(f"DROP TABLE {table}")
## INSERT | NO_QUERY
spark.sql(f"INSERT INTO {table} SELECT * FROM {table}")
## INSERT below WITH | is not allowed in a query
spark.sql(f"WITH q AS (SELECT 1) INSERT INTO {table} SELECT * FROM q")
## INSERT after FROM | is not allowed in a query
spark.sql(f"FROM {table} INSERT INTO shop.secret SELECT *")
## two statements | is not allowed in a query
spark.sql(f"SELECT 1; DROP TABLE {table}")
## CREATE | NO_QUERY
spark.sql("CREATE TABLE shop.mine AS SELECT 1")
## CACHE | NO_QUERY
spark.sql(f"CACHE TABLE {table}")
## saveAsTable | WRITES
spark.range(1).write.saveAsTable("shop.mine")
## insertInto | WRITES
spark.table(table).write.insertInto("shop.secret")
## files | WRITES
spark.range(1).write.mode("overwrite").parquet("/tmp/mine")
## writeTo | WRITES
spark.range(1).writeTo("shop.mine").create()
## mergeInto | WRITES
spark.range(1).mergeInto("shop.secret", F.expr("true")).whenMatched().delete().merge()
## streams | WRITES
spark.streams.active
## createTable | `spark.catalog` beyond
spark.catalog.createTable("shop.mine", "/etc")
## a view that all see | SHARED
spark.range(1).createGlobalTempView("mine")
## a view in another's place | SHARED
spark.range(1).createOrReplaceGlobalTempView("mergeplan_0_0")
## a view's end | `spark.catalog` beyond
spark.catalog.dropGlobalTempView("mergeplan_0_0")
## a temporary view's end | ENDS
spark.catalog.dropTempView("mine")
## a checkpoint | ENDS
spark.range(1).localCheckpoint()
## a setting | SET
spark.conf.set("spark.sql.runSQLOnFiles", "true")
## a setting in SQL | NO_QUERY
spark.sql("SET spark.sql.runSQLOnFiles = true")
## a setting's default | SET
spark.conf.unset("spark.sql.runSQLOnFiles")
## the token | is not shown to project code
spark.conf.get("spark.connect.authenticate.token")
## a password | is not shown to project code
spark.conf.get("spark.hadoop.javax.jdo.option.ConnectionPassword")
## all settings | SET
spark.conf.getAll
## another schema | `spark.catalog` beyond
spark.catalog.setCurrentDatabase("shop")
## another session | OTHER
import uuid

spark.client._session_id = str(uuid.uuid4())
spark.range(1).collect()
## a session's double | A second session is not allowed
spark.cloneSession()
## resources | WORKS
from pyspark.sql.connect.proto import Command

c = Command()
c.get_resources_command.SetInParent()
spark.client.execute_command(c)
## machine learning | WORKS
from pyspark.sql.connect.proto import Command

c = Command()
c.ml_command.SetInParent()
spark.client.execute_command(c)
## a command of another system | WORKS
from pyspark.sql.connect.proto import Command

c = Command()
c.execute_external_command.runner = "x"
spark.client.execute_command(c)
## an extension | WORKS
from pyspark.sql.connect.proto import Command

c = Command()
c.extension.type_url = "x"
spark.client.execute_command(c)
## a pipeline | WRITES
from pyspark.sql.connect.proto import Command

c = Command()
c.pipeline_command.SetInParent()
spark.client.execute_command(c)
""")
ORDINARY = _cases(r"""
## a table
assert spark.table(table).count() == 3
## a table in SQL
assert len(spark.sql(f"SELECT id FROM {table}").collect()) == 3
## read.table
assert len(spark.read.table(table).collect()) == 3
## comments and quotes
spark.sql(f"SELECT 'it''s', \"x\", `id` -- a comment\n FROM {table} /* and */ ;").collect()
## a WITH
spark.sql(f"WITH q AS (SELECT id FROM {table}), r AS (SELECT * FROM q) SELECT * FROM r ORDER BY id").collect()
## an order
assert [r.id for r in spark.sql(f"SELECT id FROM {table} ORDER BY id DESC").collect()] == [3, 2, 1]
## a raw text
spark.sql(f"SELECT id FROM {table} WHERE '7' RLIKE r'\\d+'").collect()
## a hint
spark.sql(f"SELECT /*+ BROADCAST(t), REPARTITION(3) */ id FROM {table} t").collect()
## arguments by name
assert spark.sql(f"SELECT * FROM {table} WHERE id = :n", args={"n": 2}).count() == 1
## arguments by place
assert spark.sql(f"SELECT * FROM {table} WHERE id > ?", args=[1]).count() == 2
## a frame in SQL
assert spark.sql("SELECT * FROM {df} WHERE id = 1", df=spark.table(table)).count() == 1
## VALUES
spark.sql("SELECT * FROM VALUES (1, 2) AS t(a, b)").collect()
## LATERAL VIEW
spark.sql(f"SELECT y FROM {table} LATERAL VIEW explode(array(id, price)) e AS y").collect()
## range
assert spark.range(5).count() == 5
## where
spark.table(table).where(F.col("day").between("2026-01-01", "2026-01-02")).where("id > 1").collect()
## select
spark.table(table).select("*", F.col("price") * 2, F.lit(None).alias("n")).collect()
## selectExpr
spark.table(table).selectExpr("id + 1 AS a", "CASE WHEN id > 1 THEN 1 END b", "cast(id AS string) c").collect()
## a subquery in a filter
spark.table(table).where(f"id IN (SELECT max(id) FROM {table})").collect()
## join
a, b = spark.table(table).alias("a"), spark.table(table).alias("b")
a.join(b, F.col("a.id") == F.col("b.id"), "left").select("a.id", "b.price").collect()
## join by name
spark.table(table).join(F.broadcast(spark.table(table).select("id")), "id", "left_anti").collect()
## groupBy
spark.table(table).groupBy("day").agg(
    F.sum("price").alias("s"), F.countDistinct("id"), F.collect_list("id")
).collect()
## rollup and pivot
spark.table(table).rollup("day").count().collect()
spark.table(table).groupBy("id").pivot("day").sum("price").collect()
## windows
from pyspark.sql.window import Window

w = Window.partitionBy("day").orderBy(F.desc("id")).rowsBetween(-1, 0)
spark.table(table).withColumn("r", F.row_number().over(Window.partitionBy("day").orderBy("id"))).withColumn(
    "s", F.sum("price").over(w)
).collect()
## a frame of pandas
import pandas

assert spark.createDataFrame(pandas.DataFrame({"a": [1, 2]})).toPandas().a.sum() == 3
## a frame of rows
assert spark.createDataFrame([(1, "a")], "id int, name string").first().name == "a"
## a frame with a schema
from pyspark.sql.types import *

s = StructType(
    [StructField("a", ArrayType(IntegerType())), StructField("m", MapType(StringType(), DoubleType()))]
)
spark.createDataFrame([([1], {"x": 1.0})], s).collect()
## a large frame of pandas
import pandas, random

spark.createDataFrame(pandas.DataFrame({"a": [random.random() for _ in range(200_000)]})).count()
## toPandas
assert len(spark.table(table).toPandas()) == 3
## toArrow
assert spark.table(table).toArrow().num_rows == 3
## schema
assert spark.table(table).columns == ["id", "day", "price"], spark.table(table).columns
spark.table(table).printSchema()
## show
spark.table(table).show()
spark.table(table).show(1, vertical=True)
## explain
spark.table(table).explain()
## a view of its own
spark.table(table).createOrReplaceTempView("mine")
assert spark.sql("SELECT * FROM mine").count() == 3
spark.table("mine").createOrReplaceTempView("Mine")
assert spark.table("MINE").count() == 3
## withColumns
spark.table(table).withColumns({"a": F.col("id"), "b": F.upper(F.lit("x"))}).withColumnRenamed("a", "c").drop(
    "b"
).collect()
## sets
t = spark.table(table)
t.union(t).unionByName(t).distinct().intersect(t).exceptAll(t.limit(1)).collect()
## sort and limit
spark.table(table).orderBy(F.col("id").desc_nulls_last()).limit(2).offset(1).tail(1)
## nulls
t = spark.table(table)
t.fillna(0).dropna().replace(1, 2).collect()
## duplicates
spark.table(table).dropDuplicates(["day"]).collect()
## statistics
t = spark.table(table)
t.describe().collect()
t.summary("count").collect()
t.approxQuantile("price", [0.5], 0.1)
t.stat.corr("id", "price")
## sample and unpivot
t = spark.table(table)
t.sample(0.5, seed=1).collect()
t.unpivot("id", ["price"], "k", "v").collect()
## partitions
spark.table(table).repartition(2, "id").coalesce(1).sortWithinPartitions("id").hint("broadcast").collect()
## lambdas
spark.range(1).select(
    F.transform(F.array(F.lit(1)), lambda x: x + 1), F.filter(F.array(F.lit(1)), lambda x: x > 0)
).collect()
## structs and json
spark.range(1).select(F.struct(F.lit(1).alias("a")).alias("s")).select(
    "s.a", F.col("s").withField("b", F.lit(2)), F.to_json("s"), F.from_json(F.lit('{"a": 1}'), "a int")
).collect()
## xml
spark.range(1).select(
    F.from_xml(F.lit("<a><b>1</b></a>"), "b int", {"mode": "FAILFAST"}), F.to_xml(F.struct(F.lit(1).alias("b")))
).collect()
spark.sql("SELECT from_xml('<a><b>1</b></a>', 'b INT', map('rowTag', 'a')), schema_of_xml('<a/>')").collect()
## explode
spark.range(1).select(F.explode(F.array(F.lit(1)))).collect()
## to and toDF
spark.table(table).toDF("a", "b", "c").select(
    F.col("a").cast("string"), F.col("c").cast("decimal(10,2)")
).collect()
## a setting
assert spark.conf.get("spark.sql.session.timeZone") == "UTC"
spark.conf.get("spark.sql.shuffle.partitions")
spark.conf.get("spark.sql.ansi.enabled", "true")
## the version
assert spark.version
## is it there
assert spark.catalog.tableExists(table)
spark.catalog.currentDatabase()
## cache
t = spark.table(table).cache()
assert t.count() == 3
t.storageLevel
t.persist().unpersist()
## an observation
from pyspark.sql import Observation

o = Observation("o")
spark.table(table).observe(o, F.count(F.lit(1)).alias("n")).collect()
assert o.get["n"] == 3
## a tag
spark.addTag("mine")
spark.range(1).collect()
spark.interruptTag("mine")
spark.clearTags()
## exists
spark.table(table).where(spark.table(table).alias("b").where(F.col("b.id") == 1).exists()).collect()
## a deep plan
t = spark.range(1).select(F.lit(1).alias("a"))
for n in range(120):
    t = t.withColumn("a", F.col("a") + 1)
assert t.first().a == 121
## a wide list
spark.table(table).where(F.col("id").isin(list(range(3000)))).collect()
## the session's end
spark.client.release_session() if hasattr(spark.client, "release_session") else None
spark.range(1).collect()
""")
IN_PYTHON = _cases(r"""
## udf
spark.table(table).select(F.udf(lambda x: f"{x}!")("id")).collect()
## pandas_udf
import pandas as pd

f = F.pandas_udf(lambda s: s + 1, "int")
spark.table(table).select(f("id")).collect()
## mapInPandas
spark.table(table).select("id").mapInPandas(lambda parts: parts, "id int").collect()
## applyInPandas
spark.table(table).select("id").groupBy("id").applyInPandas(lambda f: f, "id int").collect()
## cogroup
t = spark.table(table).select("id").groupBy("id")
t.cogroup(spark.table(table).select("id").groupBy("id")).applyInPandas(lambda a, b: a, "id int").collect()
## udf.register
spark.udf.register("mine", lambda x: x, "int")
spark.sql(f"SELECT mine(id) FROM {table}").collect()
## udtf
from pyspark.sql.functions import udtf

@udtf(returnType="a int")
class T:
    def eval(self):
        yield (1,)

T().collect()
""")
