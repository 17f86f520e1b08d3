"""What teams run Spark on, started here: a Hive metastore on PostgreSQL, a cluster, a Spark Connect server behind TLS.

`python -m tests.planner.runtimes STEP FOLDER` takes the quickstart's project one step further, in a process of its own.
"""

from __future__ import annotations

import json
import os
import selectors
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
import zipfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import mergeplan
from mergeplan.planner.apply.events import ViewSwapped
from mergeplan.planner.engine.protocol import Connection
from mergeplan.planner.engine.spark.engine import open_engine
from mergeplan.planner.engine.spark.process.installed import find_java, spark_home
from mergeplan.planner.errors import RequestError
from mergeplan.planner.project.loader import load_project
from mergeplan.planner.project.scaffold import Wishes, write_project
from mergeplan.planner.state.store import StateStore
from tests.planner.promoting import build, count_mixed, reading, time_promotion

ROOT = Path(__file__).parents[2]
HOST = "127.0.0.1"
PATIENCE = 240.0
POSTGRESQL_JAR = "org.postgresql:postgresql:42.7.7"
TOKEN = "a-token-of-the-test"  # noqa: S105 # of a server that lives as long as the test
MODEL = "models/incremental_model.sql"
VIEW = "sqlmesh_example.incremental_model"
SMALL = "spark.driver.memory: 700m, spark.sql.shuffle.partitions: 2, spark.default.parallelism: 2"


@dataclass(frozen=True)
class Runtime:
    """A Spark that runs: what the project's connection says of it, and what the environment must hold."""

    spark: str
    environ: dict[str, str] = field(default_factory=dict)


def run_in_process(folder: Path) -> Runtime:
    """The default: Spark in mergeplan's own process, with a catalog of its own."""
    return Runtime(f"config: {{{SMALL}}}")


def derby(folder: Path) -> Runtime:
    """A Hive metastore of one's own on Derby, for one process at a time."""
    return Runtime(
        f"config: {{{SMALL}, {metastore(folder, f'jdbc:derby:;databaseName={folder}/metastore;create=true')}}}"
    )


def metastore(folder: Path, url: str, **more: str) -> str:
    """The settings of a Hive metastore in a database."""
    named = {"ConnectionURL": url, **more}
    told = [f'spark.hadoop.javax.jdo.option.{key}: "{value}"' for key, value in named.items()]
    told += [f"spark.sql.warehouse.dir: {folder}/warehouse", "spark.hadoop.hive.metastore.schema.verification: false"]
    return ", ".join(told)


@contextmanager
def hive_on_postgresql(folder: Path, socket_file: Path) -> Iterator[Runtime]:
    """A Hive metastore in a PostgreSQL, which listens at a socket file: JDBC comes by TCP."""
    jar = Path(fetch_apart(folder))
    with relay(lambda: unix(socket_file)) as port:
        url = f"jdbc:postgresql://{HOST}:{port}/metastore"
        create_schema(folder, url, jar)
        driver = {"ConnectionDriverName": "org.postgresql.Driver", "ConnectionUserName": "postgres"}
        conf = metastore(folder, url, **driver, ConnectionPassword="none")  # PostgreSQL asks for none
        yield Runtime(f"config: {{{SMALL}, {conf}, spark.driver.extraClassPath: {jar}}}")


@contextmanager
def cluster(folder: Path) -> Iterator[Runtime]:
    """A standalone cluster of a master and two workers, with a Hive metastore on Derby in the driver."""
    port, page, (first, second) = free_port(), free_port(), (free_port(), free_port())
    url = f"spark://{HOST}:{port}"
    with ExitStack() as started:
        main = "org.apache.spark.deploy.master.Master"
        started.enter_context(java(folder, main, "--host", HOST, "--port", str(port), "--webui-port", str(page)))
        answers(port)
        for number, own in enumerate((first, second)):
            limits = ("--cores", "1", "--memory", "1g", "--work-dir", f"{folder}/worker{number}")
            main = "org.apache.spark.deploy.worker.Worker"
            started.enter_context(java(folder, main, "--host", HOST, *limits, "--webui-port", str(own), url))
        where = f"spark.driver.host: {HOST}, spark.driver.bindAddress: {HOST}, spark.executor.memory: 600m"
        conf = metastore(folder, f"jdbc:derby:;databaseName={folder}/metastore;create=true")
        yield Runtime(f"master: {url}\n      config: {{{SMALL}, {where}, {conf}}}")


@contextmanager
def connect_server(folder: Path) -> Iterator[Runtime]:
    """A Spark Connect server that asks for a token, behind TLS, as a team's operator runs it."""
    port = free_port()
    conf = {
        "spark.connect.grpc.binding.port": str(port),
        "spark.connect.grpc.binding.address": HOST,
        "spark.connect.authenticate.token": TOKEN,
        "spark.sql.catalogImplementation": "hive",
        "spark.hadoop.javax.jdo.option.ConnectionURL": f"jdbc:derby:;databaseName={folder}/metastore;create=true",
        "spark.sql.warehouse.dir": f"{folder}/warehouse",
        "spark.sql.filesourceTableRelationCacheSize": "0",
        "spark.driver.host": HOST,
        "spark.driver.memory": "900m",
    }
    told = [part for key, value in conf.items() for part in ("--conf", f"{key}={value}")]
    server = "org.apache.spark.sql.connect.service.SparkConnectServer"
    submit = ("org.apache.spark.deploy.SparkSubmit", "--master", "local[2]", *told, "--class", server, "spark-internal")
    certificate = self_signed(folder)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, folder / "key.pem")
    context.set_alpn_protocols(["h2"])
    with java(folder, *submit), relay(lambda: tcp(port), context) as outside:
        answers(port)
        remote = f"sc://localhost:{outside}/;use_ssl=true;token={{{{ env_var('SPARK_TOKEN') }}}}"
        environ = {"SPARK_TOKEN": TOKEN, "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH": str(certificate)}
        yield Runtime(f'remote: "{remote}"', environ)


def fetch_apart(folder: Path) -> str:
    """The path of PostgreSQL's driver, fetched by a Spark of its own; RequestError when no repository has it."""
    command = [sys.executable, "-m", "tests.planner.runtimes", "jar", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE, check=False)
    if "RequestError" in done.stderr:
        raise RequestError(done.stderr.strip().splitlines()[-1])
    assert done.returncode == 0, done.stderr
    return done.stdout.split()[-1]


def fetch_jar(folder: Path, package: str) -> Path:
    """A jar that Spark fetches; RequestError with the sentence for users when it cannot."""
    wanted = Connection(conf=(("spark.jars.packages", package), ("spark.driver.memory", "500m")), master="local[1]")
    engine = open_engine(wanted, folder / "fetching")
    jars = str(engine.fetch("SET spark.jars").rows[0][1])
    engine.close()
    name = package.split(":")[1]
    return Path(next(jar for jar in jars.split(",") if name in jar).removeprefix("file:"))


def create_schema(folder: Path, url: str, jar: Path) -> None:
    """Create Hive's tables: left to itself, Hive locks itself out of a PostgreSQL while it does."""
    jars = spark_home() / "jars"
    (described,) = jars.glob("hive-metastore-*.jar")
    with zipfile.ZipFile(described) as archive:
        archive.extract("package.jdo", folder)
    (folder / "tables.properties").write_text(
        "javax.jdo.PersistenceManagerFactoryClass=org.datanucleus.api.jdo.JDOPersistenceManagerFactory\n"
        f"javax.jdo.option.ConnectionURL={url}\njavax.jdo.option.ConnectionDriverName=org.postgresql.Driver\n"
        "javax.jdo.option.ConnectionUserName=postgres\njavax.jdo.option.ConnectionPassword=none\n"
        "datanucleus.identifierFactory=datanucleus1\n"
    )
    tool = ("org.datanucleus.store.schema.SchemaTool", "-create", "-api", "JDO", "-ignoreMetaDataForMissingClasses")
    command = [str(find_java()), "-cp", f"{jars}/*:{jar}", *tool, "-props", "tables.properties", "package.jdo"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True, timeout=PATIENCE)


@contextmanager
def java(folder: Path, *arguments: str) -> Iterator[None]:
    """A process of Spark's, started by its own script, which says what it has to say in a file."""
    environ = {**os.environ, "SPARK_LOCAL_IP": HOST, "PYSPARK_PYTHON": sys.executable, "SPARK_HOME": str(spark_home())}
    command = [str(spark_home() / "bin/spark-class"), *arguments]
    with (folder / "processes.log").open("ab") as log:
        process = subprocess.Popen(command, cwd=folder, env=environ, stdout=log, stderr=log, start_new_session=True)
    try:
        yield
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(60)


@contextmanager
def relay(target: Callable[[], socket.socket], context: ssl.SSLContext | None = None) -> Iterator[int]:
    """A port, with TLS if a context is given, whose connections lead to another socket."""
    listening = socket.create_server((HOST, 0))

    def accept() -> None:
        with suppress(OSError):  # it is closed
            while True:
                threading.Thread(target=pass_bytes, args=(listening.accept()[0],), daemon=True).start()

    def pass_bytes(plain: socket.socket) -> None:
        with suppress(OSError), plain, target() as inside:
            copy_bytes(context.wrap_socket(plain, server_side=True) if context else plain, inside)

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield int(listening.getsockname()[1])
    finally:
        listening.close()


def copy_bytes(one: socket.socket, other: socket.socket) -> None:
    """Copy between two sockets until one of them ends."""
    with selectors.DefaultSelector() as ready, one, other:
        ready.register(one, selectors.EVENT_READ, other)
        ready.register(other, selectors.EVENT_READ, one)
        while True:
            for key, _ in ready.select():
                source, sink = key.fileobj, key.data
                assert isinstance(source, socket.socket)
                data = source.recv(65536)
                while isinstance(source, ssl.SSLSocket) and source.pending():
                    data += source.recv(65536)
                if not data:
                    return
                sink.sendall(data)


def self_signed(folder: Path) -> Path:
    """The certificate of `localhost`, with its key beside it."""
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "key.pem", "-out", "cert.pem"]
    command += ["-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True, timeout=60)
    return folder / "cert.pem"


def unix(path: Path) -> socket.socket:
    made = socket.socket(socket.AF_UNIX)
    made.connect(str(path))
    return made


def tcp(port: int) -> socket.socket:
    return socket.create_connection((HOST, port))


def free_port() -> int:
    with socket.create_server((HOST, 0)) as probe:
        return int(probe.getsockname()[1])


def answers(port: int) -> None:
    """Wait until something listens there."""
    until = time.monotonic() + PATIENCE
    while True:
        try:
            return tcp(port).close()
        except OSError:
            assert time.monotonic() < until, f"nothing listens at port {port}"
            time.sleep(0.2)


def write_shop(folder: Path, runtime: Runtime) -> None:
    """The quickstart's project on this Spark; its promotions are atomic."""
    write_project(folder, Wishes(spark=runtime.spark))
    with (folder / "config.yaml").open("a") as file:
        file.write("\npromotion: {atomic: true, wait_seconds: 1}\n")


def edit(folder: Path, old: str, new: str) -> None:
    text = (folder / MODEL).read_text()
    assert old in text
    (folder / MODEL).write_text(text.replace(old, new))


def step(name: str, folder: Path) -> None:
    """`quickstart`: build, try an edit in dev, promote it, roll back. `kill`: die while another edit is promoted.
    `after`: the next plan. Each prints what prod shows."""
    with mergeplan.open(folder, execution_time="2026-01-03 05:00:00") as session:

        def show(what: str, **more: object) -> None:
            rows = session.fetch(f"SELECT * FROM {VIEW} ORDER BY id").rows
            told = [len(rows), len(rows[0]), [environment.name for environment in session.environments()]]
            sys.stdout.write(json.dumps([what, *told, more]) + "\n")

        if name == "quickstart":
            session.plan("prod").apply()
            show("built")
            edit(folder, "  item_id,\n", "  item_id,\n  'z' AS new_column,\n")
            session.plan("dev").apply()
            show("tried")
            done = session.plan("prod").apply()
            show("promoted", batches=done.filled.batches, jobs=done.promotion_jobs)
            show("rolled back", jobs=session.rollback("prod").spark_jobs)
        elif name == "kill":
            edit(folder, "'z' AS new_column", "'z' AS new_column, 'y' AS newer_column")
            session.plan("prod").apply(on_event=_die)
        else:
            session.plan("prod").apply()
            show("after the kill")


def window(folder: Path) -> None:
    """Promotions of twenty views, one by one and atomic: what a reader in the same Spark saw, and what they took."""
    connection = load_project(folder, datetime.now(UTC)).config.gateways["spark"].connection
    conf = tuple((key, str(value)) for key, value in connection.config.items())
    engine = open_engine(Connection(conf, connection.master, connection.remote), folder / ".window")
    store = StateStore(f"sqlite:///{folder}/window.db", "")
    maps = [build(store, engine, number, 20) for number in (1, 2)]
    time_promotion(store, engine, maps[0], None)
    for wait in (None, 2.0):
        with reading(engine) as reads:
            took = [time_promotion(store, engine, maps[(number + 1) % 2], wait) for number in range(2)]
        told = ["atomic" if wait else "one by one", count_mixed(reads), len(reads), round(sum(took) / 2, 1)]
        sys.stdout.write(json.dumps(told) + "\n")
    store.close()
    engine.close()


def _die(event: object) -> None:
    if isinstance(event, ViewSwapped):
        os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    what, where = sys.argv[1], Path(sys.argv[2])
    if what == "jar":
        sys.stdout.write(f"{fetch_jar(where, POSTGRESQL_JAR)}\n")
    else:
        (window if what == "window" else partial(step, what))(where)
