"""Confines Spark's own Java process: it reads and writes its folders only, and connects to allowed addresses only.

A function of Spark SQL that opens files or addresses, and that no check refuses, reaches nothing. The process is
confined if project code is isolated, the system supports it, and Spark needs no address that the operator has not
named.
"""

import os
import pwd
import re
import shlex
import socket
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit
from zipfile import BadZipFile, ZipFile

from mergeplan.planner.engine.formats.tested_pairs import PACKAGES
from mergeplan.planner.engine.spark.process.installed import spark_home
from mergeplan.planner.isolation.addresses import AllowedAddress
from mergeplan.planner.isolation.gate import ConnectionGate
from mergeplan.planner.isolation.mode import ADDRESSES, SPARK, Isolation, isolation_of, spark_access_of
from mergeplan.planner.isolation.probe import cannot_confine
from mergeplan.planner.isolation.profile import PACKAGE, SYSTEM, IsolationProfile, exclude_hidden
from mergeplan.planner.isolation.scratch import remove_scratch
from mergeplan.planner.isolation.seccomp import Network

# Addresses of services in a setting's value; a path with `file:` and Derby's, which is in this process, are none.
SERVICE = re.compile(r"(?<![\w.+-])(?!file://|local://)[a-z][\w.+-]*://|\bjdbc:(?!derby:)")
STORES = re.compile(r"spark\.hadoop\.(fs\.(?!permissions|file\.|defaultFS)|google\.)|spark\.jars\.ivySettings")
REPOSITORIES = "spark.jars.repositories"
IVY = "spark.jars.ivy"
# The class of Spark that knows where jars of `spark.jars.packages` are fetched from, and the jar that holds it.
RESOLVER, RESOLVER_JAR = "org/apache/spark/util/MavenUtils$.class", "spark-common-utils_*.jar"
PROXY = re.compile(r"-Dhttps?\.proxyHost=(\S+)(?:.*?-Dhttps?\.proxyPort=(\d+))?")
# What Java, Hadoop and the programs that Hadoop calls look at.
PLACES = (
    "/bin", "/usr/bin", "/proc", "/sys/fs/cgroup", "/sys/devices/system/cpu", "/sys/kernel/mm",
    "/etc/passwd", "/etc/group", "/etc/nsswitch.conf", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/ssl", "/etc/pki",
    "/etc/ca-certificates", "/usr/share/ca-certificates", "/etc/krb5.conf", "/etc/krb5.conf.d", "/etc/mime.types",
    "/etc/os-release",
)  # fmt: skip
VARIABLES = ("KRB5_CONFIG", "KRB5CCNAME", "LD_LIBRARY_PATH", "HADOOP_HOME")  # they name paths
PATH_BREAK = re.compile(r"[,;:=\s\"']+")
WRITTEN = re.compile(r"\.dir$|warehouse$", re.IGNORECASE)  # settings whose paths Spark writes to
DERBY = re.compile(r"^jdbc:derby:.*\bdatabaseName=([^;]+)")
MOST_SAID = 100  # addresses


@dataclass(frozen=True)
class Confinement:
    """A confined Java process: how it is started, and what is to be closed when it has ended.

    Its sockets are replaced as they connect, which Netty's own `epoll` does not notice.
    """

    scratch: tempfile.TemporaryDirectory[str]
    gate: ConnectionGate
    profile: IsolationProfile

    @property
    def options(self) -> tuple[str, ...]:
        """Java's options: names are looked up in a file, temporary files go to a separate folder."""
        folder = Path(self.scratch.name)
        return (
            f"-Djdk.net.hosts.file={folder / 'hosts'}", f"-Djava.io.tmpdir={folder / 'tmp'}", "-XX:-UsePerfData",
            f"-Dderby.stream.error.file={folder / 'derby.log'}", "-Dio.netty.transport.noNative=true",
        )  # fmt: skip

    @property
    def descriptor(self) -> int:
        """The descriptor that the process has to inherit."""
        return self.gate.descriptor

    def command(self, java: Sequence[str]) -> list[str]:
        return self.profile.listening(self.gate.descriptor).launch_command(java)

    def start_gate(self, process: int) -> None:
        self.gate.process = process
        self.gate.start()

    def close(self) -> None:
        remove_scratch(self.scratch)


def open_reason(conf: Mapping[str, str], config_dir: Path | None, environ: Mapping[str, str] = os.environ) -> str:
    """Return why the Java process of a Spark with these settings is not confined; '' if it is."""
    access = spark_access_of(environ)
    if not isolation_of(environ).required:
        return "the isolation of project code is off"
    if access.off:
        return f"{SPARK}=none"
    if access.addresses is None and (need := _external_service(conf, config_dir)):
        return f"{need} may lead to a service; {ADDRESSES} does not say which addresses Spark needs"
    return cannot_confine()


def _external_service(conf: Mapping[str, str], config_dir: Path | None) -> str:
    """Return the setting that names a service for Spark to connect to; '' if none does."""
    if config_dir:
        return f"`{config_dir}`"
    if not conf.get("spark.master", "local").startswith("local"):
        return "`spark.master`"
    named = (key for key, value in conf.items() if key != REPOSITORIES and (STORES.match(key) or SERVICE.search(value)))
    return next((f"`{key}`" for key in named), "")


def confine_java(
    folder: Path, conf: Mapping[str, str], java: Path, read: Sequence[str], write: Sequence[str]
) -> Confinement:
    """Return the confinement of a Java with these settings and additional paths; `folder` is Spark's own."""
    isolation, access = isolation_of(os.environ), spark_access_of(os.environ)
    scratch = tempfile.TemporaryDirectory(prefix="mergeplan-spark-")
    Path(scratch.name, "tmp").mkdir()
    writes = (*_spark_paths(folder), scratch.name, *write, *_output_paths(conf), *map(str, access.folders))
    gate = ConnectionGate(
        access.addresses or (),
        (Path(scratch.name), *map(Path, write)),
        _Refusals(folder / "spark.log"),
        _repository_addresses(conf),
    )
    host_names = ("localhost", socket.gethostname(), socket.getfqdn())
    Path(scratch.name, "hosts").write_text(gate.stand_ins.hosts_file(dict.fromkeys(host_names)), encoding="utf-8")
    reads = _read_paths(conf, java, isolation, (*read, str(folder / "log4j2.properties"), *map(str, access.folders)))
    return Confinement(scratch, gate, IsolationProfile(reads, writes, Network.LISTED, own_user=False, limited=False))


def _read_paths(conf: Mapping[str, str], java: Path, isolation: Isolation, more: Sequence[str]) -> tuple[str, ...]:
    real = java.resolve()
    settings = Path("/etc", real.parents[1].name.removesuffix(f"-{os.uname().machine}"))
    homes = (str(real.parents[1]), str(java.parent), *map(str, Path("/etc").glob("java-*-openjdk")), str(settings))
    named = (path for name in VARIABLES for path in os.environ.get(name, "").removeprefix("FILE:").split(os.pathsep))
    paths = (
        *homes,
        *SYSTEM,
        *PLACES,
        str(PACKAGE),
        *_paths_in(conf.values()),
        *_ivy_folders(conf),
        *filter(None, named),
    )
    return exclude_hidden(dict.fromkeys((*paths, *more)), isolation.hidden)


def _spark_paths(folder: Path) -> tuple[str, ...]:
    """Return what Spark writes of its own folder: all of it before the first start, without a metastore."""
    inner = ("warehouse", "metastore", "artifacts")
    if not (folder / "metastore").exists():
        return (str(folder),)
    return tuple(str(folder / name) for name in inner)


def _output_paths(conf: Mapping[str, str]) -> Iterator[str]:
    local = (value for key, value in conf.items() if WRITTEN.search(key) and not SERVICE.search(value))
    for path in _paths_in(local):
        with suppress(OSError):  # from within it could not be made
            Path(path).mkdir(parents=True, exist_ok=True)
        yield path
    for match in filter(None, map(DERBY.match, conf.values())):
        folder = Path(match[1])
        if folder.is_absolute() and folder.parent != folder:
            yield str(folder if folder.is_dir() else folder.parent)  # Derby is to create it
    yield from filter(os.path.isabs, os.environ.get("SPARK_LOCAL_DIRS", "").split(","))
    yield from _ivy_folders(conf)


def _ivy_folders(conf: Mapping[str, str]) -> Iterator[str]:
    if conf.get(PACKAGES):
        home = _java_home()
        ivy_home = Path(conf.get(IVY) or home / ".ivy2.5.2")
        with suppress(OSError):
            ivy_home.mkdir(parents=True, exist_ok=True)
        yield from map(str, (ivy_home, home / ".ivy2", home / ".m2" / "repository"))


def _java_home() -> Path:
    """Return the home that Java sees: that of the user's entry, whatever HOME says."""
    try:
        return Path(pwd.getpwuid(os.getuid()).pw_dir)
    except KeyError:
        return Path("/nonexistent")


def _paths_in(values: Iterable[str]) -> Iterator[str]:
    for value in values:
        for word in PATH_BREAK.split(value):
            path = word.removeprefix("//").removesuffix("*")
            if os.path.isabs(path) and os.path.normpath(path) != "/":
                yield path


def _repository_addresses(conf: Mapping[str, str]) -> tuple[AllowedAddress, ...]:
    if not conf.get(PACKAGES):
        return ()
    named = (urlsplit(url.strip()) for url in conf.get(REPOSITORIES, "").split(",") if url.strip())
    hosts = [AllowedAddress(url.hostname, url.port or 0) for url in named if url.hostname]
    proxies = PROXY.findall(conf.get("spark.driver.extraJavaOptions", ""))
    hosts += [AllowedAddress(host, int(port or 0)) for host, port in proxies]
    return (*hosts, *(AllowedAddress(host, 443) for host in _default_repositories()))


def _default_repositories() -> list[str]:
    """Return the hosts from which Spark fetches jars, as its own class names them; none if that is unreadable."""
    for jar in (spark_home() / "jars").glob(RESOLVER_JAR):
        with suppress(OSError, KeyError, BadZipFile), ZipFile(jar) as classes:
            return [host.decode() for host in re.findall(rb"https://([\w.-]+)", classes.read(RESOLVER))]
    return []


class _Refusals:
    """A recorder of refused addresses: writes each one to Spark's log, once."""

    def __init__(self, log: Path) -> None:
        self._log, self._said = log, set[str]()

    def __call__(self, address: str) -> None:
        if address in self._said or len(self._said) >= MOST_SAID:
            return
        self._said.add(address)
        line = (
            f"mergeplan: Spark was refused a connection to {shlex.quote(address)}. {ADDRESSES} names what it may reach."
        )
        with suppress(OSError), self._log.open("a", encoding="utf-8", errors="replace") as file:
            file.write(f"{line}\n")
