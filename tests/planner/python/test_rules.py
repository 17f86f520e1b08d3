"""Rules of the linter in Python: what they see, what they say, and what they cannot reach."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from mergeplan.planner.checks.linter import Violation, lint
from mergeplan.planner.errors import ProjectError
from mergeplan.planner.project.loader import load_project
from tests.planner.project.test_loader import CONFIG, NOW, project_of

HEAD = (
    "import os\nimport typing as t\nfrom sqlmesh.core.context import Context\nfrom sqlmesh.core.linter.rule import *\n"
)
HEAD += "from sqlmesh.core.linter.rule import Rule, RuleViolation, Range, Position\n"
HEAD += "from sqlmesh.core.model import Model, SqlModel\nfrom lib.words import WORDS\n\n"
OWNER = '''class NoMissingOwner(Rule):
    """Each model has an owner."""

    def check_model(self, model: Model) -> t.Optional[RuleViolation]:
        assert isinstance(self.context, Context)
        return self.violation() if not model.owner else None
'''
SEES = """class Sees(Rule):
    def check_model(self, model):
        if not isinstance(model, SqlModel):
            return None
        types = {name: kind.sql() for name, kind in model.columns_to_types.items()}
        parents = [self.context.get_model(each).kind.is_seed for each in model.depends_on]
        told = (model.name, model.kind.name, model.kind.is_full, model.tags, types, parents, WORDS)
        told += (model.query.selects[0].alias_or_name, model._path.name, model.audits, model.cron)
        return [self.violation(repr(told)), self.violation("at", Range(Position(2, 4), Position(2, 5)))]
"""
FILES = {
    "lib/words.py": "WORDS = 'some words'\n",
    "seeds/a.csv": "id\n1\n",
    "models/a.sql": "MODEL (name shop.a, kind SEED (path '../seeds/a.csv'), owner ann);",
    "models/b.sql": """MODEL (name shop.b, kind FULL, tags (x),
  audits (not_null(columns := id)));
SELECT id FROM shop.a""",
}


def violations(root: Path, rules: str, code: str, **more: str) -> tuple[Violation, ...]:
    """What a project's own rules find."""
    config = f"{CONFIG}linter:\n  enabled: true\n  rules: {rules}\n"
    files = {**FILES, "config.yaml": config, "linter/own.py": HEAD + code, **more}
    return lint(load_project(project_of(root, files), NOW))


def test_a_rule_says_by_its_docstring_which_model_breaks_it(tmp_path: Path) -> None:
    (told,) = violations(tmp_path, "[NoMissingOwner]", OWNER)

    assert (told.rule, told.model, told.message) == ("nomissingowner", "shop.b", "Each model has an owner.")
    assert (str(told.place), told.place.column, told.blocking) == ("models/b.sql:1", 13, True)


def test_a_rule_sees_the_models_and_may_name_a_place(tmp_path: Path) -> None:
    seen, at = violations(tmp_path, "[sees]", SEES)

    assert seen.message == repr((
        "shop.b", "FULL", True, ["x"], {"id": "BIGINT"}, [True], "some words",
        "id", "b.sql", [["not_null", {"columns": "id"}]], "@daily",
    ))  # fmt: skip
    assert (at.message, at.place.line, at.place.column) == ("at", 3, 5)


def test_all_takes_in_the_projects_own_rules_and_a_model_may_ignore_them(tmp_path: Path) -> None:
    ignoring = {"models/b.sql": FILES["models/b.sql"].replace("tags (x)", "ignored_rules [NoMissingOwner]")}

    every = {violation.rule for violation in violations(tmp_path, "ALL", OWNER)}

    assert "nomissingowner" in every
    assert "nomissingowner" not in {violation.rule for violation in violations(tmp_path, "ALL", OWNER, **ignoring)}


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ("1 / 0", "linter/own.py:11: A linter rule failed: ZeroDivisionError: division by zero."),
        ("model.owner = 'me'", "linter/own.py:11: A linter rule failed: AttributeError: a rule cannot change"),
        (
            "return model.secret",
            "linter/own.py:11: A linter rule failed: AttributeError: a model shows no `secret`",
        ),
        ("return 'bad'", "linter/own.py:9: A linter rule failed: TypeError: `Odd` returned a str: return"),
        ("os._exit(7)", "linter/own.py:9: A linter rule failed: Python ended with exit code 7"),
    ],
)
def test_a_rule_that_fails_is_told_at_its_line(body: str, told: str, tmp_path: Path) -> None:
    with pytest.raises(ProjectError) as failed:
        violations(tmp_path, "[odd]", f"class Odd(Rule):\n    def check_model(self, model):\n        {body}\n")

    assert str(failed.value).startswith(told)


def test_a_rule_may_derive_from_another_of_its_file(tmp_path: Path) -> None:
    code = f'{OWNER}\nclass Named(NoMissingOwner):\n    "Named."\n'

    assert [violation.message for violation in violations(tmp_path, "[named]", code)] == ["Named."]


def test_a_rule_sees_no_environment_of_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MERGEPLAN_STATE_URL", "postgresql://ann:s3cret@db/x")
    code = (
        "class Env(Rule):\n    def check_model(self, model):\n        return self.violation(repr(dict(os.environ)))\n"
    )

    told = violations(tmp_path, "[env]", code)

    assert told
    assert "s3cret" not in told[0].message
    assert os.environ["MERGEPLAN_STATE_URL"]
