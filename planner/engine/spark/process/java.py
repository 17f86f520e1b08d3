"""One quiet JVM for Spark, that ends with the process that started it."""

import os
import re
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import IO, Any

from mergeplan.planner.engine.formats.tested_pairs import PACKAGES, how_to_bring
from mergeplan.planner.engine.spark.process.class_archive import ClassArchive, archive_of
from mergeplan.planner.engine.spark.process.confinement import Confinement, confine_java, open_reason
from mergeplan.planner.engine.spark.process.installed import find_java, spark_home
from mergeplan.planner.engine.spark.process.workers import Workers, prepare_workers
from mergeplan.planner.errors import RequestError, SparkUnavailable
from mergeplan.planner.isolation.mode import isolation_of
from mergeplan.planner.isolation.probe import cannot

PROFILE_VARIABLE = "MERGEPLAN_SPARK_PROFILE"
START_TIMEOUT = 120.0
LOG_LIMIT = 5_000_000  # bytes after which a new JVM truncates the log

# What the JVM and the Python workers below it may see of our environment: nothing that could be a secret.
ENVIRONMENT = re.compile(
    r"PATH|HOME|USER|LOGNAME|LANG|LC_\w+|TZ|TMPDIR|TEMP|TMP|VIRTUAL_ENV|PYTHONPATH|PYTHONHASHSEED|LD_LIBRARY_PATH"
    r"|SPARK_CONF_DIR|SPARK_LOCAL_DIRS|SPARK_LOCAL_IP|HADOOP_HOME|HADOOP_CONF_DIR|YARN_CONF_DIR|KRB5CCNAME|KRB5_CONFIG"
)
OPENS = (
    "java.base/java.lang", "java.base/java.lang.invoke", "java.base/java.lang.reflect", "java.base/java.io",
    "java.base/java.net", "java.base/java.nio", "java.base/java.util", "java.base/java.util.concurrent",
    "java.base/java.util.concurrent.atomic", "java.base/jdk.internal.ref", "java.base/sun.nio.ch",
    "java.base/sun.nio.cs", "java.base/sun.security.action", "java.base/sun.util.calendar",
    "java.security.jgss/sun.security.krb5",
)  # fmt: skip
# With one compiler Java reserves 48 MB for compiled code. Since Java 20 that is emptied by garbage collections only, of
# which a quiet JVM makes few: Spark filled it after some thousand queries, and from then on nothing could be linked.
# This is what Java reserves with both compilers; it is used only as it fills. After an OutOfMemoryError anything may
# fail: a JVM that ends is noticed and replaced.
ROOM = ("-XX:ReservedCodeCacheSize=240m", "-XX:+ExitOnOutOfMemoryError")
# Java's second compiler waits for 20 times as many calls as by default, and 10 times as many loops. A plan over small
# tables ended before most of what it compiled was used, and took half as much processor time again. What runs for each
# of many rows is compiled at once all the same.
SECOND_COMPILER = (
    "-XX:Tier4InvocationThreshold=100000", "-XX:Tier4MinInvocationThreshold=12000",
    "-XX:Tier4CompileThreshold=300000", "-XX:Tier4BackEdgeThreshold=400000",
)  # fmt: skip
LOG4J = """\
rootLogger.level = error
rootLogger.appenderRef.stderr.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d{yy/MM/dd HH:mm:ss} %p %c{1}: %m%n%ex{short}
# The same level as the root's, otherwise Spark says that it sets a default one.
logger.gateway.name = org.apache.spark.api.python.PythonGatewayServer
logger.gateway.level = error
# It logs a stack trace for every CREATE SCHEMA IF NOT EXISTS of a schema that exists.
logger.hive.name = org.apache.hadoop.hive.metastore.RetryingHMSHandler
logger.hive.level = fatal
"""
FETCHING = 600.0  # seconds for the first start; afterwards they are in Spark's folder of fetched jars
UNRESOLVED = re.compile(r"unresolved dependency: ([\w.-]+)#([\w.-]+);([\w.-]+)")


class Profile(StrEnum):
    """The tuning of a JVM: for many small statements that start fast, or for few long ones."""

    METADATA = "metadata"
    BACKFILL = "backfill"

    @property
    def options(self) -> tuple[str, ...]:
        if self is Profile.METADATA:
            return ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", *ROOM)
        return ("-XX:+UseParallelGC", *SECOND_COMPILER, *ROOM)

    @property
    def memory(self) -> str:
        return "1g" if self is Profile.METADATA else "4g"


def profile_of(profile_name: str) -> Profile:
    name = os.environ.get(PROFILE_VARIABLE) or profile_name
    try:
        return Profile(name)
    except ValueError:
        profile_names = " or ".join(Profile)
        raise RequestError(f"there is no Spark profile '{name}'.", hint=f"Say {profile_names}.") from None


class SparkEnded(SparkUnavailable):
    """Java ended before Spark was ready."""


@dataclass(frozen=True)
class Jvm:
    """A running JVM that listens for a Python driver; it ends when its standard input closes, so never outlives us."""

    process: subprocess.Popen[bytes]
    port: int
    secret: str
    python: str  # that runs the functions in frames
    workers: Workers | None = None
    archive: ClassArchive | None = None  # the one that it has, or would have
    confinement: Confinement | None = None
    open_reason: str = ""  # why it is not confined

    def stop(self, timeout: float = 20.0) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        try:
            self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(timeout)
        if self.workers is not None:
            self.workers.close()
        if self.confinement is not None:
            self.confinement.close()


def start_jvm(
    folder: Path,
    conf: Mapping[str, str],
    profile: Profile,
    *,
    config_dir: Path | None = None,
    keep_open: Sequence[int] = (),
) -> Jvm:
    """Start a JVM with Spark in it; its output goes to `spark.log` in the folder, never to the terminal.

    It is started without Spark's shell scripts: that saves a second JVM, and lets a Java without the incubator modules
    serve. `keep_open` are file descriptors that it holds as long as it lives.
    """
    java = find_java()
    folder.mkdir(parents=True, exist_ok=True)
    workers = _make_workers(conf)
    python = workers.python if workers else _python_path()
    conf = {**conf, **(workers.conf if workers else {})}
    archive = None if config_dir or conf.get("spark.driver.extraClassPath") else archive_of(java, spark_home())
    with tempfile.TemporaryDirectory(prefix="mergeplan-") as scratch, _open_log(folder) as log:
        began = log.tell()
        answer = Path(scratch) / "gateway"
        properties = Path(scratch) / "spark.properties"
        properties.touch(mode=0o600)  # confs may hold passwords; an argument would show them to the whole machine
        properties.write_text(
            "".join(f"{key}={escape_property(value)}\n" for key, value in conf.items()), encoding="ascii"
        )
        options = _java_options(folder, conf, profile, config_dir)
        environment = _process_environment(java, answer, conf, config_dir, python)
        reason = open_reason(conf, config_dir)
        archived = (str(archive.path.parent),) if archive else ()
        read = (str(spark_home()), *archived, *(workers.read if workers else ()))
        write = (scratch, *(workers.write if workers else ()))
        confined: list[Confinement | None] = []

        def launch(first: Sequence[str]) -> tuple[subprocess.Popen[bytes], int, str]:
            limits = None if reason else confine_java(folder, conf, java, read, write)
            main = ["org.apache.spark.deploy.SparkSubmit", "--properties-file", str(properties), "pyspark-shell"]
            process = _start_process(
                [str(java), *first, *options, *main], limits, stdin=subprocess.PIPE, stdout=log, stderr=log,
                env=environment, pass_fds=tuple(keep_open), process_group=0,
            )  # fmt: skip
            confined[:] = [limits]
            return process, *_await_gateway(process, answer, Path(log.name), began, conf)

        process, port, secret = _launch_with_archive(archive, launch)
        if confined[0] is not None:
            confined[0].gate.close_start()
        return Jvm(process, port, secret, python, workers, archive, confined[0], reason)


def _start_process(command: list[str], limits: Confinement | None, **how: Any) -> subprocess.Popen[bytes]:
    """Start Java in its own process group: Ctrl-C is for us, and we end Java in good order."""
    if limits is None:
        return subprocess.Popen(command, **how)
    try:
        how["pass_fds"] += (limits.descriptor,)
        java, *arguments = command
        process = subprocess.Popen(limits.command([java, *limits.options, *arguments]), **how)
        limits.start_gate(process.pid)
    except BaseException:
        limits.close()
        raise
    return process


def _launch_with_archive(
    archive: ClassArchive | None, launch: Callable[[Sequence[str]], tuple[subprocess.Popen[bytes], int, str]]
) -> tuple[subprocess.Popen[bytes], int, str]:
    """Start Java with the archive; if it ends at once, start it without, and remove the faulty archive."""
    using = archive.options if archive else ()
    if archive is None or not using:
        return launch(())
    try:
        launch_result = launch(using)
    except SparkEnded:
        launch_result = launch(())
        archive.discard()
    else:
        archive.used()
    return launch_result


def _python_path() -> str:
    return os.environ.get("PYSPARK_PYTHON", sys.executable)


def _make_workers(conf: Mapping[str, str]) -> Workers | None:
    """Return isolated Python workers if required and possible; those of a cluster are its operator's to isolate."""
    isolation = isolation_of(os.environ)
    if not isolation.required or not conf.get("spark.master", "local").startswith("local") or cannot():
        return None  # where it cannot, no project with Python is run at all
    return prepare_workers(_python_path(), spark_home(), isolation)


def _await_gateway(
    process: subprocess.Popen[bytes], answer: Path, log: Path, began: int, conf: Mapping[str, str]
) -> tuple[int, str]:
    """Return the port and the secret of the JVM, once it listens; its part of the log begins at `began`."""
    deadline = time.monotonic() + start_timeout(conf, START_TIMEOUT)
    while not answer.exists():  # it is moved into place when it is whole
        ended = process.poll() is not None
        if ended or time.monotonic() > deadline:
            process.kill()
            process.wait(10)
            assert process.stdin is not None
            process.stdin.close()
            if error := resolution_error(conf, log, began):
                raise error
            away = SparkEnded if ended else SparkUnavailable
            raise away("Spark did not start.", hint=f"The output of Java is in {log}.")
        time.sleep(0.02)
    content = answer.read_bytes()
    return int.from_bytes(content[:4], "big"), content[8:].decode()


def _open_log(folder: Path) -> IO[bytes]:
    path = folder / "spark.log"
    full = path.exists() and path.stat().st_size > LOG_LIMIT
    return path.open("wb" if full else "ab")


def _java_options(folder: Path, conf: Mapping[str, str], profile: Profile, config_dir: Path | None) -> list[str]:
    log4j = folder / "log4j2.properties"
    log4j.write_text(LOG4J, encoding="utf-8")
    classpath = [conf.get("spark.driver.extraClassPath", ""), str(config_dir or ""), f"{spark_home() / 'jars'}/*"]
    return [
        "-cp", os.pathsep.join(filter(None, classpath)),
        f"-Xmx{conf.get('spark.driver.memory', profile.memory)}",
        *profile.options,
        "-XX:+IgnoreUnrecognizedVMOptions", "--enable-native-access=ALL-UNNAMED",
        *(f"--add-opens={package}=ALL-UNNAMED" for package in OPENS),
        "-Djdk.reflect.useDirectMethodHandle=false", "-Dio.netty.tryReflectionSetAccessible=true",
        "-Duser.timezone=UTC", "-Dfile.encoding=UTF-8",
        f"-Dderby.system.home={folder}", f"-Dlog4j2.configurationFile={log4j.as_uri()}",
        *shlex.split(conf.get("spark.driver.extraJavaOptions", "")),
    ]  # fmt: skip


def java_environment() -> dict[str, str]:
    """Return the part of our environment that Java may see."""
    return {name: value for name, value in os.environ.items() if ENVIRONMENT.fullmatch(name)}


def _process_environment(
    java: Path, answer: Path, conf: Mapping[str, str], config_dir: Path | None, python: str
) -> dict[str, str]:
    environment = java_environment()
    if config_dir:
        environment["SPARK_CONF_DIR"] = str(config_dir)
    if not environment.keys() & {"LANG", "LC_ALL", "LC_CTYPE"}:
        environment["LC_ALL"] = "C.UTF-8"  # otherwise Java cannot name files outside of ASCII
    if host := conf.get("spark.driver.host"):
        environment.setdefault("SPARK_LOCAL_IP", host)
    return {
        **environment,
        "PATH": os.pathsep.join(filter(None, (environment.get("PATH"), os.defpath))),  # Hadoop calls `chmod`
        # Spark starts its Python workers in the folder of a project: no module of it, or below HOME, is one of theirs.
        "PYTHONNOUSERSITE": "1",
        "PYTHONSAFEPATH": "1",
        "JAVA_HOME": str(java.parent.parent),
        "SPARK_HOME": str(spark_home()),
        "PYSPARK_PYTHON": python,
        "PYSPARK_DRIVER_PYTHON": python,
        "_PYSPARK_DRIVER_CONN_INFO_PATH": str(answer),
    }


def escape_property(value: str) -> str:
    text = value.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r")
    wide = text.encode("utf-16-be")
    units = (int.from_bytes(wide[i : i + 2], "big") for i in range(0, len(wide), 2))
    return "".join(chr(unit) if 32 <= unit < 127 else f"\\u{unit:04x}" for unit in units)


def start_timeout(conf: Mapping[str, str], usual: float) -> float:
    return FETCHING if conf.get(PACKAGES) else usual


def resolution_error(conf: Mapping[str, str], log: Path, began: int) -> RequestError | None:
    """Return the error of jars that could not be fetched, from Spark's log since `began`; None for another cause."""
    if not conf.get(PACKAGES):
        return None
    with log.open("rb") as file:
        file.seek(began)
        text = file.read().decode("utf-8", "replace")
    missing = sorted({":".join(match) for match in UNRESOLVED.findall(text)})
    if not missing:
        return None
    return RequestError(f"Spark cannot fetch {', '.join(missing)}.", hint=how_to_bring(conf[PACKAGES]))
