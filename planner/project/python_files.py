"""The Python of a project's folder: macros, signals, models, materializations, rules of the linter."""

import re
from collections.abc import Sequence
from dataclasses import replace

from mergeplan.planner.errors import Place, ProjectError
from mergeplan.planner.model.model import Model
from mergeplan.planner.parsing.definitions.materializations.classes import Materializations
from mergeplan.planner.parsing.files.lint_config import OwnRule, own_rules, query_rule
from mergeplan.planner.parsing.files.model_file import Defaults
from mergeplan.planner.parsing.files.schema import Config
from mergeplan.planner.parsing.sql.tokens import did_you_mean
from mergeplan.planner.project.folder import Folder
from mergeplan.planner.project.refused import Refusing
from mergeplan.planner.project_format import DBT_PROJECT, is_dbt_project
from mergeplan.planner.python.files.code_files import list_code_files
from mergeplan.planner.python.isolation import Isolation
from mergeplan.planner.python.project import ProjectCode

CONFIG_CODE = "config.py"
_MODEL_FUNCTION = re.compile(r"^def execute\(\s*context", re.MULTILINE)


NOT_TRUSTED = "This is Python, which does not run until the folder is trusted."


def check_configuration_is_data(reading: Folder) -> None:
    """Raise ProjectError if the configuration or all models of a folder are made by running its code."""
    if (reading.root / CONFIG_CODE).is_file():
        raise ProjectError(NOT_TRUSTED, place=Place(CONFIG_CODE, 1), hint="Trust the folder to open the project.")
    if is_dbt_project(reading.root):
        message = "A dbt project is compiled by running its code, which does not run until the folder is trusted."
        raise ProjectError(message, place=Place(DBT_PROJECT, 1), hint="Trust the folder to open the project.")


def read_code(
    reading: Folder, refusing: Refusing, config: Config, defaults: Defaults, isolation: Isolation, *, runs: bool = True
) -> ProjectCode:
    """Load the project's Python and what it registers; start nothing if there is none, or unless it `runs`.

    A file of models that fails is refused. One of macros or signals makes the project fail: without its macro, a
    built-in one of the same name would be called.
    """
    code = ProjectCode(reading.root, {}, defaults.variables, defaults.gateway, isolation, catalog=defaults.catalog)
    paths = [
        name
        for folder in ("macros", "signals", "models")
        for name in reading.files(folder, config.ignore_patterns, ".py")
        if not name.endswith("/__init__.py") or reading.text(name).strip()
    ]

    def load(code: ProjectCode, paths: Sequence[str]) -> None:
        for path, error in code.load(paths):
            if path.startswith("models/"):
                refusing.file(path, error)
            else:
                reading.errors.append(error)

    if not runs:
        for path in paths:
            refusing.file(path, ProjectError(NOT_TRUSTED, place=Place(path, 1)))
        return code
    if paths:
        code = replace(code, files=read_python_texts(reading))
        reading.each([paths], lambda paths: load(code, paths))
        for path in (name for name in paths if name.startswith("models/")):
            text = reading.text(path)
            if (function := _MODEL_FUNCTION.search(text)) and "model(" not in text:
                place = Place(path, text.count("\n", 0, function.start()) + 1)
                hint = 'Write `@model("schema.table", columns={...})` above it.'
                refusing.file(path, ProjectError("`execute` is no model without a decorator.", place=place, hint=hint))
    return code


def read_materializations(reading: Folder, config: Config) -> Materializations:
    """Return the texts of the project's custom materializations, which are never run."""
    texts: dict[str, str] = {}

    def read(name: str) -> None:
        texts[name] = reading.text(name)

    reading.each(reading.files("materializations", config.ignore_patterns, ".py"), read)
    return Materializations(texts)


def read_own_rules(reading: Folder, config: Config) -> dict[str, OwnRule]:
    """Return the linter's rules that the project defines in linter/, by name; they are not run here."""
    rules: dict[str, OwnRule] = {}
    if config.linter.enabled:
        for name in reading.files("linter", config.ignore_patterns, ".py"):
            rules |= {rule.name: rule for rule in own_rules(name, reading.text(name))}
        for name in reading.files("linter", config.ignore_patterns, ".sql"):
            rule = query_rule(name, reading.text(name))
            if rule.name in rules:
                message = f"There is a rule `{rule.name}` in `{rules[rule.name].place.path}` too."
                raise ProjectError(message, place=rule.place, hint="Rename one of them.")
            rules[rule.name] = rule
    return rules


def check_signals(model: Model, code: ProjectCode) -> None:
    for call in model.schedule.signals:
        if call.name not in code.signals:
            hint = did_you_mean(call.name, code.signals) or "Write it in signals/."
            place = model.locate(call.name, in_block=True)
            raise ProjectError(f"There is no signal `{call.name}`.", place=place, hint=hint)


def read_python_texts(reading: Folder) -> dict[str, str]:
    names = (reading.name(path) for path in list_code_files(reading.root))
    return {name: reading.text(name) for name in names}
