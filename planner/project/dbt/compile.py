"""Compile a dbt project with its dbt, in a child without secrets; cache the result until a file or answer changes."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from sqlglot import exp
from sqlglot.errors import SqlglotError

from mergeplan.planner.cache.store import Cache
from mergeplan.planner.cache.version import reader_version
from mergeplan.planner.errors import MergeplanError, Place, ProjectError
from mergeplan.planner.fingerprint import digest
from mergeplan.planner.parsing.files.configuration import CONFIGS
from mergeplan.planner.parsing.files.dbt.nodes import DbtProject, DbtQuestion, read_round
from mergeplan.planner.parsing.files.dbt.spelling import quote_words, spark_words
from mergeplan.planner.parsing.files.dbt.two_forms import SPARK
from mergeplan.planner.parsing.files.dbt.unit_tests import macro_calls
from mergeplan.planner.parsing.files.schema import DbtConfig
from mergeplan.planner.parsing.macros.splicing import Splice, apply_splices
from mergeplan.planner.parsing.sql.yaml_documents import Document, read_document
from mergeplan.planner.parsing.sql.yaml_variables import Variable, replace_variables
from mergeplan.planner.project.dbt import inputs
from mergeplan.planner.project.dbt.answers import Answer, Answers, open_questions, refuse_unanswered
from mergeplan.planner.project.dbt.inputs import OWN_TESTS, PROFILES, SECRET, VARIABLES
from mergeplan.planner.project.dbt.manifest import read_manifests
from mergeplan.planner.project.folder import Folder
from mergeplan.planner.project_format import DBT_PROJECT
from mergeplan.planner.python.host import Child, ChildFailed
from mergeplan.planner.python.isolation import Isolation

_READ = re.compile(r"\b(?:FROM|JOIN)\s+(`[^`]+`|\w+)(?![\w`]|\s*[.(])", re.IGNORECASE)
_COMMON = re.compile(r"(`[^`]++`|(?<!\w)\w++)\s++AS\s*\(", re.IGNORECASE)
_COMMENT = re.compile(r"--[^\n]*|/\*.*?\*/", re.DOTALL)
ROUNDS = 200  # of questions, each of which follows from the answers to the ones before
TYPES = ("spark", "databricks")
PROD_TARGETS = ("prod", "production", "prd")
HIVE = "hive_metastore"  # the catalog of a target of Databricks that names none: Spark's own
MISSING = re.compile(r"Env var required but not provided: '(\w+)'")  # as dbt says it
SEEN = f"A name that begins with DBT_, or that {VARIABLES} has, is seen; one that begins with {SECRET} never."
PROGRAM = "mergeplan.planner.python.dbt_code.child"
SECONDS = 600.0  # that dbt may take


class DbtChild:
    """One project's dbt; use it as a context manager."""

    def __init__(self, root: Path, python: str, request: Mapping[str, Any], isolation: Isolation, path: str) -> None:
        """Create the child; `path` is the file for an error without a place."""
        self._root, self._python, self._request = root, python, request
        self._isolation, self._path = isolation, path
        self._child: Child | None = None

    def __enter__(self) -> DbtChild:
        return self

    def __exit__(self, *_: object) -> None:
        if self._child is not None:
            self._child.stop()

    def compile(self, answers: Mapping[str, Mapping[str, object]]) -> str:
        """Compile the project to JSON with these answers to its templates' questions; raise ProjectError."""
        try:
            if self._child is None:
                self._child = Child(self._root, {}, self._isolation, PROGRAM, self._python)
            home = str(self._child.scratch / "home")
            return json.dumps(self._child.ask({**self._request, "home": home, "answers": answers}, SECONDS))
        except ChildFailed as failed:
            place = Place(failed.wrong.path or self._path, failed.wrong.line or 1)
            raise ProjectError(f"{failed.wrong.message.rstrip('.')}.", place=place) from None


@dataclass(frozen=True)
class DbtTarget:
    """The adapter, schema, catalog and name of the target of profiles.yml that prod's tables have.

    Templates read the name: `{% if target.name == 'production' %}`, and the path, by which they tell a warehouse of
    Databricks from a cluster.
    """

    adapter: str
    schema: str
    catalog: str = ""
    name: str = "prod"
    http_path: str = ""

    def profiles(self, profile: str) -> str:
        """Return a profiles.yml with this target and without anything that is needed to reach a warehouse."""
        output: dict[str, Any] = {"type": self.adapter, "schema": self.schema, "threads": 1}
        if self.adapter == "spark":
            output |= {"method": "session", "host": "none"}
        else:
            output |= {"host": "none", "http_path": self.http_path or "none", "token": "none"}
            output["catalog"] = self.catalog
        return json.dumps({profile: {"target": self.name, "outputs": {self.name: output}}})

    def spell(self, text: str) -> str:
        """Return a compiled query as Spark reads it; an unqualified table is in the connection's schema."""
        if self.adapter != "databricks":
            return name_schema(quote_words(text), "default")
        schema = f"`{self.catalog}`.`{self.schema}`" if self.catalog else f"`{self.schema}`"
        return spark_words(name_schema(quote_words(text), schema))


def compile_dbt(reading: Folder, config: DbtConfig, environment: Mapping[str, str], isolation: Isolation,
                cache: Cache, answers: Answers | None = None) -> DbtProject:  # fmt: skip
    """Compile the project of a folder for prod's target; raise ProjectErrors, or RequestError without a dbt.

    Of the environment dbt sees `DBT_...` and what the operator allows, and nothing that is named as a secret. What
    templates query in the warehouse is answered again each time: another answer is another project.
    """
    project_file = read_document(DBT_PROJECT, reading.text(DBT_PROJECT), last_wins=True)
    if not isinstance(project_file.value, dict):
        raise ProjectError("This is not a dbt_project.yml.", place=Place(DBT_PROJECT, 1))
    hashes = _hash_files(reading)
    if config.manifest:
        return read_manifests(reading.root, str(project_file.value.get("name") or ""), config, hashes)
    is_apart = bool(reading.proposed) or inputs.lies_apart(reading.root, project_file.value)
    target = _find_target(reading, project_file, config, environment)
    python = inputs.find_python(environment)
    profile = str(project_file.value.get("profile") or project_file.value.get("name"))
    calls = {call for text in own_test_texts(reading) for call in macro_calls(text)}
    request = {
        "op": "compile", "vars": json.dumps(config.vars), "environment": inputs.visible_variables(environment),
        "calls": sorted(calls), "profile": profile, "profiles": target.profiles(profile),
    }  # fmt: skip
    key = digest(
        "dbt", reader_version(), inputs.look_of_python(python), json.dumps(request, sort_keys=True), repr(hashes)
    )
    hashed_files = {str(reading.root / name) for name in hashes}
    try:
        with DbtChild(reading.root, python, request, isolation, DBT_PROJECT) as child:
            memory = _Memory(cache, key, target, lambda project: (
                not is_apart and hashed_files >= set(project.files) and _hash_files(reading) == hashes
            ))  # fmt: skip
            return _compile_with_answers(child, memory, answers or Answers())
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise ProjectError(f"dbt's answer has an unknown form: {first['msg']} at {where}.", place=Place(DBT_PROJECT, 1),
                           hint="Versions of dbt that work: docs/reference/dbt.md.") from None  # fmt: skip
    except ProjectError as error:
        raise _explain_variable(error, environment) from None


def own_test_texts(reading: Folder) -> Iterator[str]:
    """Yield the texts of the files of unit tests in our own format."""
    for name in reading.files(OWN_TESTS, (), ".yaml", ".yml"):
        with suppress(ProjectError):  # its reader names the mistake
            yield reading.text(name)


def _hash_files(reading: Folder) -> dict[str, str]:
    return {name: reading.hash(name) for name in inputs.project_files(reading.root)}


def target_catalog(reading: Folder, environment: Mapping[str, str], config: DbtConfig) -> str:
    """Return the catalog of prod by a target of profiles.yml; '' if it names none or cannot be read."""
    with suppress(MergeplanError, OSError, UnicodeDecodeError):
        project_file = read_document(DBT_PROJECT, reading.text(DBT_PROJECT), last_wins=True)
        if isinstance(project_file.value, dict):
            return _find_target(reading, project_file, config, environment).catalog
        return ""
    return ""


def describe_target(reading: Folder, config: DbtConfig, environment: Mapping[str, str]) -> str:
    """Return the sentence that names the schema of prod's tables, where a target of another name than prod's has it."""
    if config.manifest or config.target_schema:
        return ""
    target = _find_target(
        reading, read_document(DBT_PROJECT, reading.text(DBT_PROJECT), last_wins=True), config, environment
    )
    if target.name in PROD_TARGETS:
        return ""
    hint = "`dbt: {target: ...}` in config.yaml chooses another target."
    return f"prod is what dbt's target `{target.name}` names: its tables are in `{target.schema}`. {hint}"


def _find_target(reading: Folder, own: Document, config: DbtConfig, environment: Mapping[str, str]) -> DbtTarget:
    if config.target_schema:
        name, path = config.target or "prod", config.target_http_path
        catalog = config.target_catalog or _own_catalog(config.adapter)
        return DbtTarget(config.adapter, config.target_schema, catalog, name, path)
    hint = "Set `dbt: {target_schema: ...}` in config.yaml: the schema of prod's tables."
    if not any((reading.root / name).is_file() for name in CONFIGS):
        hint = "Write a config.yaml with `gateways: {spark: {connection: {type: spark}}}` and `dbt: {adapter: ..., "
        hint += "target_schema: ...}`: spark or databricks, and the schema of prod's tables."
    file = inputs.profiles_path(reading.root, environment)
    if not file.is_file():
        raise ProjectError(f"There is no {PROFILES}.", place=Place(DBT_PROJECT, 1), hint=hint)
    is_own = file == reading.root / PROFILES
    path, text = (PROFILES, reading.text(PROFILES)) if is_own else (str(file), file.read_text("utf-8"))
    is_of_project = file.resolve().is_relative_to(reading.root) or is_own
    readable = inputs.visible_variables(environment) if is_of_project else inputs.without_secrets(environment)
    document = read_document(path, text, last_wins=True)
    name = str(own.value.get("profile") or "")
    if not name:
        raise ProjectError(f"{DBT_PROJECT} names no `profile`.", place=Place(DBT_PROJECT, 1), hint=hint)
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
        return replace_variables(
            path, text, lambda variable, _: _profile_variable(variable, readable, environment, place)
        )

    if not (schema := value("schema")):
        raise document.error((name, "outputs", target), f"The target `{target}` has no `schema`.", hint)
    http_path = config.target_http_path
    with suppress(ProjectError):  # it may be a variable that is set where dbt runs: few templates need it
        http_path = http_path or value("http_path")
    return DbtTarget(adapter, schema, value("catalog") or _own_catalog(adapter), target, http_path)


def _own_catalog(adapter: str) -> str:
    return HIVE if adapter == "databricks" else ""


def _profile_variable(
    variable: Variable, readable: Mapping[str, str], environment: Mapping[str, str], place: Place
) -> str:
    """Return the value of a variable that profiles.yml reads; raise ProjectError if it is not visible there."""
    if variable.name in environment and variable.name not in readable:
        message = f"{PROFILES} reads the environment variable `{variable.name}`, which a dbt project does not see."
        raise ProjectError(message, place=place, hint=SEEN)
    return variable.value(readable, place)


def _explain_variable(error: ProjectError, environment: Mapping[str, str]) -> ProjectError:
    """Return the error of a template that reads an environment variable, with a hint; any other error unchanged."""
    match = MISSING.search(error.message)
    if match is None:
        return error
    name, is_set = match[1], match[1] in environment
    reason = "which a dbt project does not see" if is_set else "which is not set"
    message = f"A template reads the environment variable `{name}`, {reason}."
    steps = ([] if is_set else [f"{name}=..."]) + ([] if name.startswith("DBT_") else [f"{VARIABLES}={name}"])
    hint = SEEN if name.startswith(SECRET) or not steps else f"`export {' '.join(steps)}`. {SEEN}"
    return ProjectError(message, place=error.located, hint=hint)


class _Memory:
    """The cache of dbt's answers for these very files, one for each round; `may_keep` decides whether to store them."""

    def __init__(self, cache: Cache, key: str, target: DbtTarget, may_keep: Callable[[DbtProject], bool]) -> None:
        self._cache, self._key, self._target, self._may_keep = cache, key, target, may_keep
        self._new: dict[str, str] = {}

    def compile(self, child: DbtChild, known: Mapping[str, Answer], before: DbtProject | None) -> DbtProject:
        """Return the project by these answers, from the cache or the child; `before` is that of the last round."""
        key = digest(self._key, json.dumps(known, sort_keys=True))
        remembered = self._cache.get([key]).get(key)
        if remembered is not None and before is None:
            return DbtProject.model_validate_json(remembered)  # in Spark's spelling
        text = child.compile(known) if remembered is None else remembered
        project = read_round(text, before, self._target.spell)
        if remembered is None:
            self._new[key] = text if before else project.model_dump_json()
        return project

    def answer(
        self, answers: Answers, project: DbtProject, known: Mapping[str, Answer], questions: list[DbtQuestion]
    ) -> dict[str, Answer]:
        """Return the answers of a round and cache the columns that follow from the files alone."""
        key = digest("columns", self._key, json.dumps(known, sort_keys=True))
        text = self._cache.get([key]).get(key)
        new = answers.answer(project, questions, json.loads(text) if text else {})
        by_key = {question.key: question for question in questions}
        still = {
            name: answer for name, answer in new.items() if answers.follows_from_files(project, by_key[name], answer)
        }
        if still and text is None:
            self._new[key] = json.dumps(still)
        return new

    def keep(self, project: DbtProject) -> None:
        if self._new and self._may_keep(project):
            self._cache.put(self._new)


def _compile_with_answers(child: DbtChild, memory: _Memory, answers: Answers) -> DbtProject:
    collected_answers: dict[str, Answer] = {}
    project: DbtProject | None = None
    for _ in range(ROUNDS):
        project = memory.compile(child, collected_answers, project)
        if not (questions := open_questions(project, collected_answers)):
            break
        new = memory.answer(answers, project, collected_answers, questions)
        collected_answers |= new
        if all("error" in answer for answer in new.values()):
            break  # and dbt would say no more
    assert project is not None
    memory.keep(project)
    return refuse_unanswered(
        project, collected_answers | answers.refuse_rest(project, open_questions(project, collected_answers))
    )


def name_schema(text: str, schema: str) -> str:
    """Return a query with the schema before each unqualified table; return an unreadable query unchanged."""
    bare = _COMMENT.sub(" ", text)
    read_names, common_names = ({name.strip("`").lower() for name in words.findall(bare)} for words in (_READ, _COMMON))
    if not read_names - common_names:
        return text
    try:
        trees = [tree for tree in SPARK.parse(text) if tree is not None]
    except (SqlglotError, RecursionError):
        return text
    common = {table.alias_or_name.lower() for tree in trees for table in tree.find_all(exp.CTE)}
    starts = [
        int(table.this.meta["start"])
        for tree in trees
        for table in tree.find_all(exp.Table)
        if not table.db and isinstance(table.this, exp.Identifier) and "start" in table.this.meta
        if table.name.lower() not in common and not table.find_ancestor(exp.Lateral, exp.Unnest)
    ]
    return apply_splices(text, [Splice(start, start, f"{schema}.") for start in starts])
