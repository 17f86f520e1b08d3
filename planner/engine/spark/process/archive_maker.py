"""Makes the class data archive: a separate Spark does what plans do, and Java stores the classes that it loaded.

It runs in a separate process, at the lowest priority if nobody waits for it. It uses no project, no setting of one and
no jar but Spark's own: the archive holds only Spark's code.
"""

import os
import shlex
import subprocess
import tempfile
from pathlib import Path

from mergeplan.planner.engine.protocol import Connection
from mergeplan.planner.engine.spark.classic_session import ClassicSession
from mergeplan.planner.engine.spark.engine import SparkEngine
from mergeplan.planner.engine.spark.process.class_archive import OFF, VARIABLE, ClassArchive, archive_of
from mergeplan.planner.engine.spark.process.installed import find_java, spark_home
from mergeplan.planner.engine.spark.process.java import Profile
from mergeplan.planner.engine.spark.session import silence_libraries

QUIET = "-Xlog:cds=off -Xlog:cds+dynamic=off -Xlog:class+path=off"  # Java names each class that it leaves out
PATIENCE = 600.0  # seconds for Java to write it
# What plans do: analyse, read and write files, talk to the metastore.
STATEMENTS = (
    "CREATE SCHEMA a",
    "CREATE TABLE a.t (i INT COMMENT 'x', s STRING, d DATE) USING parquet PARTITIONED BY (d) TBLPROPERTIES ('k' = 'v')",
    "INSERT OVERWRITE a.t BY NAME SELECT INT(id) AS i, STRING(id) AS s, DATE'2026-01-01' + INT(id) AS d FROM RANGE(3)",
    "ALTER TABLE a.t DROP IF EXISTS PARTITION (d = DATE'2026-01-01')",
    "CREATE TABLE a.u USING parquet AS SELECT *, i / 2.0D AS f, CAST(i AS DECIMAL(10, 2)) AS c FROM a.t",
    "CREATE OR REPLACE VIEW a.v COMMENT 'x' AS SELECT t.*, u.f FROM a.t AS t LEFT JOIN a.u AS u ON t.i <=> u.i",
    "ALTER VIEW a.v AS SELECT t.*, u.c FROM a.t AS t FULL OUTER JOIN a.u AS u ON t.i = u.i WHERE t.s LIKE '1%'",
    "SELECT s, COUNT(*), MAX(c), BIT_XOR(XXHASH64(i, s)), COUNT(DISTINCT d) FROM a.v GROUP BY s ORDER BY 1 LIMIT 9",
    "SELECT * FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY s ORDER BY d DESC) AS n FROM a.t) WHERE n = 1",
    "WITH c AS (SELECT * FROM a.t UNION ALL SELECT i, s, d FROM a.v) SELECT (SELECT COLLECT_LIST(STRUCT(*)) FROM c)",
    "SELECT CAST(TIMESTAMP'2026-01-01' AS STRING), DATE_TRUNC('day', d), COALESCE(s, 'x'), IF(i > 1, 1, 2) FROM a.t",
    "EXPLAIN COST SELECT * FROM a.v",
    "SHOW TABLES IN a",
    "SHOW PARTITIONS a.t",
    "DESCRIBE TABLE EXTENDED a.t",
    "DROP VIEW a.v",
    "DROP TABLE a.u",
)  # fmt: skip


def main() -> None:
    """Make the archive of the installed Java and Spark, unless it exists or is being made."""
    java = find_java()
    archive = archive_of(java, spark_home())
    if archive is None:
        return
    os.environ[VARIABLE] = OFF  # the Spark that makes it uses none
    with archive.making() as is_ours:
        if is_ours:
            make_archive(archive)


def make_archive(archive: ClassArchive) -> None:
    """Write the archive and, for a Java that comes without one, that of Java's own classes below it."""
    options = ""
    if not archive.has_own_base:
        base = archive.draft("base")
        subprocess.run([archive.java, "-Xshare:dump", f"-XX:SharedArchiveFile={base}"], capture_output=True, check=True)
        archive.put(base, archive.base)
        options = f"-XX:SharedArchiveFile={shlex.quote(str(archive.base))} "
    draft = archive.draft("spark")
    _run_spark(f"{options}-XX:ArchiveClassesAtExit={shlex.quote(str(draft))} {QUIET}")
    archive.put(draft, archive.path)


def _run_spark(options: str) -> None:
    with tempfile.TemporaryDirectory(prefix="mergeplan-archive-") as home:
        connection = Connection((("spark.driver.extraJavaOptions", options),), "local[2]", serves=True)
        silence_libraries()
        session = ClassicSession(connection, Path(home), Profile.METADATA, lock=None)
        try:
            engine = SparkEngine(session)
            for sql in STATEMENTS:
                engine.fetch(sql)
            engine.schema("SELECT * FROM a.t")
            engine.reads("SELECT * FROM a.t")
            engine.scan_bytes("SELECT * FROM a.t")
        finally:
            session.close(PATIENCE)


if __name__ == "__main__":
    main()
