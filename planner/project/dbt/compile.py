"""A dbt project compiled: by the dbt that is installed, in a child that sees no secret, and remembered until a file or
an answer of the warehouse changes."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from mergeplan.planner.cache.store import Cache
from mergeplan.planner.cache.version import reader_version
from mergeplan.planner.errors import Place, ProjectError, RequestError
from mergeplan.planner.fingerprint import digest
from mergeplan.planner.parsing.files.dbt.nodes import DbtProject
from mergeplan.planner.parsing.files.schema import DbtConfig
from mergeplan.planner.parsing.sql.yaml_documents import Document, read_document
from mergeplan.planner.parsing.sql.yaml_variables import replace_variables
from mergeplan.planner.project.dbt.answers import Answer, Answers, open_questions, refuse_unanswered
from mergeplan.planner.project.dbt.child import DbtChild
from mergeplan.planner.project.dbt.manifest import read_manifests
from mergeplan.planner.project.folder import Folder
from mergeplan.planner.python.isolation import Isolation

PROJECT, PROFILES = "dbt_project.yml", "profiles.yml"
PYTHON = "MERGEPLAN_DBT_PYTHON"  # the Python that has the project's dbt
VARIABLES = "MERGEPLAN_DBT_VARIABLES"  # names of the environment variables that a dbt project may read, with commas
SECRET = "DBT_ENV_SECRET"  # noqa: S105  # how dbt calls variables that nobody may see
OWN = ("DBT_PROFILES_DIR", "DBT_TARGET", "DBT_PROJECT_DIR", "DBT_TARGET_PATH", "DBT_LOG_PATH")
ROUNDS = 50  # of questions, each of which follows from the answers to the ones before
LEFT_OUT = ("target", "logs", "node_modules")  # folders that dbt writes, or does not read
TYPES = ("spark", "databricks")


@dataclass(frozen=True)
class DbtTarget:
    """Where tables lie in prod: the adapter, the schema, the catalog and the name of a target of profiles.yml.

    Templates read the name: `{% if target.name == 'production' %}`.
    """

    adapter: str
    schema: str
    catalog: str = ""
    name: str = "prod"

    def profiles(self, profile: str) -> str:
        """A profiles.yml with this target, and with nothing that is needed to reach a warehouse."""
        own: dict[str, Any] = {"type": self.adapter, "schema": self.schema, "threads": 1}
        if self.adapter == "spark":
            own |= {"method": "session", "host": "none"}
        else:
            own |= {"host": "none", "http_path": "none", "token": "none", "catalog": self.catalog or "hive_metastore"}
        return json.dumps({profile: {"target": self.name, "outputs": {self.name: own}}})


def is_dbt_project(root: Path) -> bool:
    """True for a folder with a dbt_project.yml."""
    return (root / PROJECT).is_file()


def compile_dbt(reading: Folder, config: DbtConfig, environment: Mapping[str, str], isolation: Isolation,
                cache: Cache, answers: Answers | None = None) -> DbtProject:  # fmt: skip
    """The project of a folder, compiled for the target that prod has; ProjectErrors, RequestError without a dbt.

    Of the environment dbt sees `DBT_...` and what the operator lets it see, and nothing that is named as a secret.
    What templates ask the warehouse is answered anew each time: another answer is another project.
    """
    own = read_document(PROJECT, reading.text(PROJECT))
    if config.manifest:
        return read_manifests(reading.root, config, project_files(reading.root))
    target = _target(reading, own, config, environment)
    python = find_python(environment)
    visible = visible_variables(environment)
    request = {
        "op": "compile", "vars": json.dumps(config.vars), "environment": visible,
        "profiles": target.profiles(str(own.value.get("profile") or own.value.get("name"))),
    }  # fmt: skip
    hashes = [(name, reading.hash(name)) for name in project_files(reading.root)]
    key = digest("dbt", reader_version(), _looks(python), json.dumps(request, sort_keys=True), repr(hashes))
    hashed = {str(reading.root / name) for name, _ in hashes}
    try:
        with DbtChild(reading.root, python, request, isolation, PROJECT) as child:
            return _compile_with_answers(child, key, hashed, cache, answers or Answers())
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise ProjectError(f"dbt's answer has an unknown form: {first['msg']} at {where}.", place=Place(PROJECT, 1),
                           hint="Versions of dbt that work: docs/guides/dbt.md.") from None  # fmt: skip


def project_files(root: Path) -> Iterator[str]:
    """Every file that dbt may read, by its path from the root."""
    for folder, names, files in os.walk(root):
        names[:] = sorted(name for name in names if not name.startswith((".", "__pycache__")) and name not in LEFT_OUT)
        for name in sorted(files):
            if not name.startswith(".") and (path := Path(folder, name)).is_file():
                yield path.relative_to(root).as_posix()


def visible_variables(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment variables that a project's templates may read."""
    allowed = {name.strip() for name in environment.get(VARIABLES, "").split(",")}
    return {
        name: value
        for name, value in environment.items()
        if (name in allowed or (name.startswith("DBT_") and name not in OWN)) and not name.startswith(SECRET)
    }


def find_python(environment: Mapping[str, str]) -> str:
    """The Python that has a dbt: the operator's choice, our own, or that of the `dbt` on the PATH; RequestError."""
    if chosen := environment.get(PYTHON):
        return chosen
    with suppress(PackageNotFoundError):
        distribution("dbt-core")
        return sys.executable
    program = shutil.which("dbt", path=environment.get("PATH", ""))
    python = Path(program).parent / "python" if program else None
    if python is not None and python.is_file():
        return str(python)
    hint = f"Install the project's dbt-core and adapter beside mergeplan, or set {PYTHON} to the Python that has them."
    raise RequestError("This is a dbt project, and there is no dbt.", hint=hint)


def _target(reading: Folder, own: Document, config: DbtConfig, environment: Mapping[str, str]) -> DbtTarget:
    """The target that prod has: config.yaml's `dbt`, and what it leaves open as profiles.yml says."""
    if not isinstance(own.value, dict):
        raise ProjectError("This is not a dbt_project.yml.", place=Place(PROJECT, 1))
    if config.target_schema:
        return DbtTarget(config.adapter, config.target_schema, config.target_catalog, config.target or "prod")
    hint = "Set `dbt: {target_schema: ...}` in config.yaml: the schema of prod's tables."
    path, text = _profiles(reading, environment)
    if text is None:
        raise ProjectError(f"There is no {PROFILES}.", place=Place(PROJECT, 1), hint=hint)
    document = read_document(path, text)
    name = str(own.value.get("profile") or "")
    profile = document.value.get(name) if isinstance(document.value, dict) else None
    outputs = profile.get("outputs") if isinstance(profile, dict) else None
    target = config.target or (str(profile.get("target") or "default") if isinstance(profile, dict) else "")
    output = outputs.get(target) if isinstance(outputs, dict) else None
    if not isinstance(output, dict):
        raise ProjectError(
            f"{PROFILES} has no target `{target}` of the profile `{name}`.", place=Place(path, 1), hint=hint
        )
    adapter = str(output.get("type") or "")
    if adapter not in TYPES:
        message = f"The target `{target}` is of the type `{adapter}`: mergeplan runs on Spark."
        raise document.error(
            (name, "outputs", target), message, "Choose a target of type spark or databricks: `dbt: {target: ...}`."
        )

    def value(key: str) -> str:
        place = document.place((name, "outputs", target, key))
        text = str(output.get(key) or "")
        return replace_variables(path, text, lambda variable, _: variable.value(environment, place))

    if not (schema := value("schema")):
        raise document.error((name, "outputs", target), f"The target `{target}` has no `schema`.", hint)
    return DbtTarget(adapter, schema, value("catalog"), target)


def _profiles(reading: Folder, environment: Mapping[str, str]) -> tuple[str, str | None]:
    """The profiles.yml that dbt would read, as its path and its text."""
    if folder := environment.get("DBT_PROFILES_DIR"):
        file = reading.root / folder / PROFILES
        return str(file), file.read_text("utf-8") if file.is_file() else None
    if (reading.root / PROFILES).is_file():
        return PROFILES, reading.text(PROFILES)
    file = Path.home() / ".dbt" / PROFILES
    return str(file), file.read_text("utf-8") if file.is_file() else None


def _compile_with_answers(
    child: DbtChild, key: str, files: AbstractSet[str], cache: Cache, answers: Answers
) -> DbtProject:
    """The project when no template asks for more. `files` are those that the key is made of: where others were read,
    nothing is remembered, since these could change unnoticed."""
    known: dict[str, Answer] = {}
    for _ in range(ROUNDS):
        own_key = digest(key, json.dumps(known, sort_keys=True))
        remembered = cache.get([own_key]).get(own_key)
        text = child.compile(known) if remembered is None else remembered
        project = DbtProject.model_validate_json(text)
        if remembered is None and files >= set(project.files):
            cache.put({own_key: text})
        if not (questions := open_questions(project, known)):
            break
        new = answers.answer(project, questions)
        known |= new
        if all("error" in answer for answer in new.values()):
            break  # and dbt would say no more
    return refuse_unanswered(project, known)


def _looks(python: str) -> str:
    """How an interpreter and its libraries look: those of another version were written at another time."""
    folder = Path(python).parent.parent / "lib"
    places = [Path(python), *sorted(folder.glob("python*/site-packages"))]
    return repr([(str(place), place.stat().st_mtime_ns) for place in places if place.exists()])
