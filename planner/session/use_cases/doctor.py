"""doctor: what mergeplan needs on this machine, one finding each; no secret is ever in one."""

import os
import platform
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from urllib.parse import quote, quote_plus, unquote, urlsplit

from mergeplan.planner.engine.protocol import Connection
from mergeplan.planner.engine.spark.process.confinement import open_reason
from mergeplan.planner.engine.spark.process.format_settings import starting_conf
from mergeplan.planner.engine.spark.process.installed import find_java, java_version, spark_home
from mergeplan.planner.errors import MergeplanError, RequestError
from mergeplan.planner.isolation.mode import NONE, VARIABLE, isolation_of
from mergeplan.planner.isolation.probe import cannot
from mergeplan.planner.model.table_format import FORMATS
from mergeplan.planner.parsing.files.gateway_settings import conf_of
from mergeplan.planner.parsing.files.schema import ConnectionConfig
from mergeplan.planner.project.dbt.inputs import find_python
from mergeplan.planner.project_format import is_dbt_project
from mergeplan.planner.session.use_cases.drift import find_all_drift
from mergeplan.planner.session.workspace import Workspace
from mergeplan.planner.snapshot.environment import PROD
from mergeplan.planner.tested_versions import is_tested, with_tested
from mergeplan.planner.versions import first_version, pyspark_version

HIDDEN = "***"
SCHEDULERS = {"airflow": "apache-airflow", "dagster": "dagster"}  # by their names in the tested versions
FORMAT_OF = {release.stem: name for name, table in FORMATS.items() for release in table.releases}
_PACKAGE = re.compile(rf"(({'|'.join(FORMAT_OF)})[^:,]*:)([^\s,]+)")
DBT_VERSIONS = (
    "from importlib.metadata import distributions as all; print(*sorted({f'{d.name} {d.version}' for d in all() "
    "if d.name in ('dbt-core', 'dbt-spark', 'dbt-databricks')}), sep=', ')"
)


@dataclass(frozen=True)
class Finding:
    """Whether one thing is as it must be (`ok`; None: it is not needed here), and what it is."""

    what: str
    ok: bool | None
    text: str


def run_checks(work: Workspace, *, connect: bool = True) -> Iterator[Finding]:
    yield from _check_versions()
    try:
        project = work.project
    except MergeplanError as error:
        yield Finding("project", False, _format_error(error))
        yield from _check_dbt(work.settings.root)
        yield from _check_java(None)
        yield from _check_isolation()
        return
    refused = len(project.refused.refusals)
    refused_text = f"; {refused} files of models cannot be opened: `mergeplan lint`" if refused else ""
    yield Finding(
        "project", True, f"{project.root}: {len(project.models)} models, gateway `{project.gateway}`{refused_text}"
    )
    yield from _check_dbt(work.settings.root)
    connection = project.config.gateways[project.gateway].connection
    yield from _check_java(connection)
    yield _check_jars(connection)
    if connect:
        catalog = _check_with("catalog", lambda: _describe_catalog(work), work)
        yield catalog
        yield from _check_server(work) if catalog.ok and connection.remote else ()
        state = _check_with("state", lambda: f"{len(work.store.environments.all())} environments", work)
        yield state
        yield from _check_promotions(work) if state.ok else ()
        yield from _check_drift(work) if state.ok else ()
    yield from _check_isolation()
    yield from _check_confinement(connection, work.settings.folder)


def _check_versions() -> Iterator[Finding]:
    """Yield the versions of Python and of the schedulers in it; a version that no test runs is not wrong."""
    python = platform.python_version()
    text = f"{with_tested('python', python)}: {sys.executable}"
    yield Finding("python", is_tested("python", python) or None, text)
    for name, package in SCHEDULERS.items():
        with suppress(PackageNotFoundError):
            version = first_version([package])
            yield Finding(name, is_tested(name, version) or None, with_tested(name, version))


def _check_dbt(root: Path) -> Iterator[Finding]:
    if not is_dbt_project(root):
        return
    try:
        python = find_python(os.environ)
        done = subprocess.run(
            [python, "-I", "-c", DBT_VERSIONS], capture_output=True, timeout=60, check=True, text=True
        )
        versions = done.stdout.strip()
    except RequestError as error:
        yield Finding("dbt", False, _format_error(error))
    except (OSError, subprocess.SubprocessError):
        yield Finding("dbt", False, f"{python} does not run as a Python.")
    else:
        core = re.search(r"dbt-core ([^\s,]+)", versions)
        shown = versions.replace(core[1], with_tested("dbt", core[1]), 1) if core else versions or "no dbt"
        ok = (is_tested("dbt", core[1]) or None) if core else False
        yield Finding("dbt", ok, f"{shown}: {python}")


def _check_java(connection: ConnectionConfig | None) -> Iterator[Finding]:
    pyspark = with_tested("pyspark", pyspark_version())
    if connection is not None and connection.remote:
        yield Finding("java", None, "not needed: Spark runs behind Spark Connect")
        yield Finding("spark", True, f"pyspark {pyspark}, connects to {urlsplit(connection.remote).hostname}")
        return
    try:
        java = find_java()
        yield Finding("java", True, f"Java {java_version(java)}: {java}")
    except RequestError as error:
        yield Finding("java", False, _format_error(error))
    try:
        yield Finding("spark", True, f"pyspark {pyspark}: {spark_home()}")
    except RequestError as error:
        yield Finding("spark", False, _format_error(error))


def _check_jars(connection: ConnectionConfig) -> Finding:
    """Check the jars that `spark.jars` names on this machine; Spark fetches packages when it starts."""
    named = [jar.strip() for jar in str(connection.config.get("spark.jars", "")).split(",") if jar.strip()]
    packages = str(connection.config.get("spark.jars.packages", ""))
    packages = _PACKAGE.sub(lambda package: package[1] + with_tested(FORMAT_OF[package[2]], package[3]), packages)
    local = [jar.removeprefix("file:") for jar in named if ":" not in jar.removeprefix("file:")]
    if missing := [jar for jar in local if not Path(jar).is_file()]:
        return Finding("jars", False, f"`spark.jars` names files that are not there: {', '.join(missing)}")
    parts = [f"{len(named)} of `spark.jars`"] * bool(named) + [f"packages {packages}"] * bool(packages)
    return Finding("jars", True if parts else None, "; ".join(parts) or "none beside Spark's own")


def _describe_catalog(work: Workspace) -> str:
    row = work.engine.fetch("SELECT current_catalog(), version()").rows[0]
    schemas = work.engine.fetch("SHOW SCHEMAS").rows
    return f"`{row[0]}` with {len(schemas)} schemas, Spark {str(row[1]).split()[0]}"


def _check_server(work: Workspace) -> Iterator[Finding]:
    """Yield each setting without which a table format works on a Spark Connect server, but takes minutes."""
    connection = work.connection
    formats = dict.fromkeys((*connection.formats, *connection.apart))
    for limit in (limit for name in formats for limit in FORMATS[name].server_limits):
        try:
            present = str(work.engine.fetch(f"SET {limit.setting}").rows[0][1])
        except MergeplanError as error:
            yield Finding("server", False, _without_secrets(_format_error(error), work))
            return
        if not present.isdigit() or int(present) > limit.most:
            slow = f"`{limit.setting}` is {present}: {limit.slow}, which takes minutes on a small server"
            yield Finding("server", False, f"{slow}; start the server with `--conf {limit.setting}={limit.value}`")


def _check_promotions(work: Workspace) -> Iterator[Finding]:
    """Yield each environment that is half promoted; it is wrong unless a process is promoting it."""
    for promotion in work.store.promotions.pending():
        name = promotion.environment
        holder = work.store.leases.holder(name)
        by = f"is being promoted by {holder.holder}" if holder else "was interrupted: `mergeplan plan` finishes it"
        yield Finding("promotion", None if holder else False, f"`{name}` to revision {promotion.new.revision} {by}")


def _check_drift(work: Workspace) -> Iterator[Finding]:
    try:
        prod, environments = work.store.environments.get(PROD), work.store.environments.all()
        drifts = [drift for environment in environments for drift in find_all_drift(work, environment, prod)]
    except MergeplanError as error:
        yield Finding("drift", False, _without_secrets(_format_error(error), work))
        return
    for drift in drifts:
        yield Finding("drift", False, drift.sentence)
    if not drifts:
        yield Finding("drift", True, "all views and tables of the environments exist")


def _check_with(what: str, ask: Callable[[], str], work: Workspace) -> Finding:
    try:
        return Finding(what, True, _without_secrets(ask(), work))
    except MergeplanError as error:
        return Finding(what, False, _without_secrets(_format_error(error), work))


def _check_isolation() -> Iterator[Finding]:
    mode, obstacle = os.environ.get(VARIABLE, "") or NONE, cannot()
    able = f"this machine cannot isolate it: {obstacle}" if obstacle else "this machine can isolate it"
    try:
        needed = isolation_of(os.environ).required
    except RequestError as error:
        yield Finding("isolation", False, _format_error(error))
        return
    yield Finding(
        "isolation", (not obstacle if needed else None), f"project code runs with the isolation `{mode}`; {able}"
    )


def _check_confinement(config: ConnectionConfig, home: Path) -> Iterator[Finding]:
    """Yield whether the Java of a local Spark is confined; wrong if project code is isolated and this is not."""
    conf = tuple(conf_of(config).items())
    connection = Connection(conf, config.master, config.remote, config.catalog, config.config_dir)
    folder = Path(config.config_dir) if config.config_dir else None
    try:
        if config.remote or not isolation_of(os.environ).required:
            return
        reason = open_reason(starting_conf(connection, home), folder)
    except RequestError as error:
        yield Finding("confined", False, _format_error(error))
        return
    yield Finding("confined", not reason, f"Spark's Java: {f'no: {reason}' if reason else 'yes'}")


def _format_error(error: MergeplanError) -> str:
    return " ".join(str(error).split())


def _without_secrets(text: str, work: Workspace) -> str:
    states = [gateway.state_connection for gateway in work.project.config.gateways.values()]
    urls = [work.settings.state_url, *(state_url.url or "" for state_url in states if state_url)]
    secrets = [state_url.password or "" for state_url in states if state_url] + [_find_password(url) for url in urls]
    remotes = (gateway.connection.remote or "" for gateway in work.project.config.gateways.values())
    secrets += [part.partition("=")[2] for url in remotes for part in url.split(";") if part.startswith("token=")]
    spellings = {spelling for secret in secrets for spelling in (secret, quote(secret, safe=""), quote_plus(secret))}
    for secret in sorted(filter(None, spellings), key=len, reverse=True):
        text = text.replace(secret, HIDDEN)
    return text


def _find_password(url: str) -> str:
    try:
        return unquote(urlsplit(url).password or "")
    except ValueError:
        return ""
