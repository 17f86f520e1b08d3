"""What is tried in a Spark of mergeplan's own: attacks through its Java process, and the ordinary work of a plan."""

import json
import sys
from pathlib import Path

from mergeplan.planner.engine.protocol import Connection
from mergeplan.planner.engine.spark.engine import open_engine

targets, home = json.loads(sys.argv[1]), Path(sys.argv[2])
conf = (("spark.driver.memory", "700m"), ("spark.ui.enabled", "false"))
engine = open_engine(Connection(conf=conf, master="local[2]", serves=True), home, "metadata")
session = engine._sessions.current
spark, java = session.spark, session.spark._jvm.java
PORT, SECRET = int(targets["port"]), targets["secret"]


def read():
    return java.nio.file.Files.readString(java.io.File(SECRET).toPath())


def read_url():
    return spark._jvm.scala.io.Source.fromURL(f"file://{SECRET}", "UTF-8").mkString()


def read_dtd():
    """What is in the file comes back as the value of an entity."""
    text = f'<!DOCTYPE a SYSTEM "file://{targets["dtd"]}"><a>&x;</a>'
    return spark.sql(f"SELECT xpath_string('{text}', '/a')").first()[0]


def read_by_program():
    process = java.lang.Runtime.getRuntime().exec(f"cat {SECRET}")
    return spark._jvm.scala.io.Source.fromInputStream(process.getInputStream(), "UTF-8").mkString()


def read_environment():
    java.io.FileInputStream(f"/proc/{targets['parent']}/environ").read()
    return "read"


def list_folder():
    return " ".join(java.io.File(targets["home"]).list() or [])


def write():
    java.io.FileWriter(f"{targets['home']}/.bashrc").close()
    return "wrote"


def connect():
    java.net.Socket("127.0.0.1", PORT).close()
    return "connected"


def fetch_url():
    java.net.URL(f"http://127.0.0.1:{PORT}/leak").openStream().close()
    return "fetched"


def fetch_dtd():
    text = f'<!DOCTYPE a SYSTEM "http://127.0.0.1:{PORT}/leak"><a>1</a>'
    return spark.sql(f"SELECT xpath_string('{text}', '/a')").first()[0]


def send_packet():
    java.net.DatagramSocket().close()
    return "may send"


def look_up_name():
    return java.net.InetAddress.getByName("example.com").getHostAddress()


def connect_locally():
    address = java.net.UnixDomainSocketAddress.of(targets["socket"])
    java.nio.channels.SocketChannel.open(address).close()
    return "connected"


def work():
    from pyspark.sql import functions as F

    rows = "SELECT id, DATE'2026-01-01' + INT(id % 2) AS day FROM RANGE(3)"
    spark.sql("CREATE SCHEMA shop")
    spark.sql(f"CREATE TABLE shop.t USING parquet PARTITIONED BY (day) AS {rows}")
    spark.sql(f"INSERT OVERWRITE shop.t {rows}")
    yield "table", spark.table("shop.t").count()
    yield "partitions", spark.sql("SHOW PARTITIONS shop.t").count()
    yield "collected", len(spark.sql("SELECT REPEAT(UUID(), 4) FROM RANGE(40000)").collect())
    plus = F.udf(lambda number: number + 1, "int")
    yield "function", sorted(row[0] for row in spark.range(3).select(plus("id")).collect())
    import pandas as pd

    yield "frame", [*spark.createDataFrame(pd.DataFrame({"a": [7, 8]})).toPandas()["a"]]
    total = spark.sparkContext.accumulator(0)
    spark.sparkContext.parallelize(range(10)).foreach(total.add)
    yield "accumulated", total.value
    folder = java.lang.System.getProperty("java.io.tmpdir")
    spark.range(1).coalesce(1).write.mode("overwrite").csv(f"{folder}/own")
    yield "own file", spark.read.csv(f"{folder}/own").count()
    yield "reason", session.jvm.open_reason


ATTACKS = [
    read, read_url, read_dtd, read_by_program, read_environment, list_folder, write, connect, fetch_url, fetch_dtd,
    send_packet, look_up_name, connect_locally,
]  # fmt: skip

for attack in ATTACKS:
    try:
        got = str(attack()) or ""
    except Exception:  # an attacker goes on
        got = ""
    sys.stdout.write(f"GOT {json.dumps([attack.__name__, got[:100]])}\n")
for name, value in work():
    sys.stdout.write(f"GOT {json.dumps([name, str(value)])}\n")
engine.close()
