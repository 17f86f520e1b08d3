"""Projects with models of kind CUSTOM, from outside: what they compute, what an edit of the code is, what stays."""

from __future__ import annotations

from pathlib import Path

import pytest

from mergeplan.planner.cache.store import Cache
from mergeplan.planner.engine.spark.engine import SparkEngine
from mergeplan.planner.errors import ProjectError
from mergeplan.planner.model.kind import Kind
from mergeplan.planner.parsing.definitions.formatting import Style, format_file
from mergeplan.planner.plan.category.categorize import is_edited
from mergeplan.planner.plan.change import Change
from mergeplan.planner.project.loader import LoadOptions, Project, load_project
from mergeplan.planner.state.store import StateStore
from tests.planner.building import change_of
from tests.planner.daily import Daily
from tests.planner.parsing.test_custom_kind import APPEND, FILE, MERGE, REPLACE, TIME, branch, code
from tests.planner.project.test_loader import CONFIG, NOW, project_of

GOOD = "MODEL (name shop.good, kind FULL);\nSELECT 1 AS id"
OWN = (
    "MODEL (name shop.own, kind CUSTOM (materialization 'own', materialization_properties (key = id)));\nSELECT 1 AS id"
)
READER = "MODEL (name shop.reader, kind FULL);\nSELECT id FROM shop.own"
KEYED = branch(REPLACE, MERGE.format("[model.custom_materialization_properties['key']]"))
SPANNED = "SELECT id, name, at FROM raw.items WHERE at BETWEEN @start_date AND @end_date"
FIRST = ("1, 'a', date'2026-01-01'", "2, 'b', date'2026-01-01'")
THEN = ("1, 'A', date'2026-01-02'", "3, 'c', date'2026-01-02'")
A, B, C, NEW = (1, "a", "01-01"), (2, "b", "01-01"), (3, "c", "01-02"), (1, "A", "01-02")


def open_project(root: Path, files: dict[str, str], cache: Path | None = None, *, strict: bool = False) -> Project:
    options = LoadOptions(strict=strict, cache=Cache(cache))
    return load_project(project_of(root, {"models/good.sql": GOOD, **files}), NOW, options=options)


def project(root: Path, insert: str, own: str = OWN) -> Project:
    return open_project(root, {"models/own.sql": own, "models/reader.sql": READER, FILE: code(insert)})


def changes(before: Project, after: Project) -> dict[str, Change]:
    return change_of(before.models, after.models)


@pytest.mark.parametrize(
    ("insert", "query", "then"),
    [
        pytest.param(REPLACE, "SELECT id, name, at FROM raw.items", [NEW, C], marks=pytest.mark.prove, id="replaced"),
        pytest.param(KEYED, SPANNED, [NEW, B, C], id="merged"),
        pytest.param(branch(REPLACE, APPEND), SPANNED, [NEW, A, B, C], marks=pytest.mark.prove, id="appended"),
        pytest.param(TIME.format("'at'"), SPANNED, [NEW, A, B, C], marks=pytest.mark.prove, id="by time"),
    ],
)
def test_tables_hold_what_the_materialization_would_have_written(
    insert: str, query: str, then: list[tuple[object, ...]], tmp_path: Path, engine: SparkEngine, store: StateStore
) -> None:
    shop = Daily(tmp_path, engine, store)
    project_of(tmp_path, {FILE: code(insert)})
    shop.has(*FIRST)
    shop.run("2026-01-02", OWN.replace("shop.own", "shop.t").partition("SELECT")[0] + query)
    assert shop.rows() == [A, B]
    shop.has(*THEN)

    shop.run("2026-01-03")

    assert shop.rows() == then


def test_a_materialization_that_is_not_understood_refuses_its_models_alone(tmp_path: Path) -> None:
    loaded = project(tmp_path, "self.adapter.execute('x')")

    assert sorted(loaded.models) == ["shop.good"]
    with pytest.raises(ProjectError, match=r"^models/own.sql:1: The materialization `own` is not supported: at mater"):
        loaded.refused.check_model("shop.own")
    with pytest.raises(ProjectError, match=r"reads `shop.own`, which cannot be opened"):
        loaded.refused.check_model("shop.reader")


@pytest.mark.parametrize("insert", [APPEND, KEYED])
def test_another_kind_is_an_edit_of_every_model_that_uses_it(insert: str, tmp_path: Path) -> None:
    before, after = project(tmp_path / "a", REPLACE), project(tmp_path / "b", insert)

    assert is_edited(before.models["shop.own"], after.models["shop.own"])
    assert set(changes(before, after)) >= {"shop.own"}


def test_what_is_only_said_is_no_edit(tmp_path: Path) -> None:
    before = project(tmp_path / "a", REPLACE)
    after = project(tmp_path / "b", f"# a comment\nprint('written')\n{REPLACE}")

    assert before.files != after.files
    assert changes(before, after) == {}


def test_the_same_model_of_the_kind_by_hand_is_no_edit(tmp_path: Path) -> None:
    by_hand = "MODEL (name shop.own, kind INCREMENTAL_BY_UNIQUE_KEY (unique_key id));\nSELECT 1 AS id"

    assert changes(project(tmp_path / "a", KEYED), project(tmp_path / "b", KEYED, by_hand)) == {}


@pytest.mark.parametrize(
    ("insert", "kind"), [(KEYED, Kind.INCREMENTAL_BY_UNIQUE_KEY), (APPEND, Kind.INCREMENTAL_UNMANAGED)]
)
def test_an_edit_of_the_code_is_seen_although_the_model_is_remembered(insert: str, kind: Kind, tmp_path: Path) -> None:
    before = [
        open_project(tmp_path / "p", {"models/own.sql": OWN, FILE: code(REPLACE)}, tmp_path / "cache") for _ in range(2)
    ]
    after = open_project(tmp_path / "p", {FILE: code(insert)}, tmp_path / "cache")

    assert [loaded.models["shop.own"].kind for loaded in before] == [Kind.FULL, Kind.FULL]
    assert after.models["shop.own"].kind is kind
    assert after.models == open_project(tmp_path / "p", {}).models


def test_a_second_class_of_the_name_is_seen_although_the_model_is_remembered(tmp_path: Path) -> None:
    files = {"models/own.sql": OWN, FILE: code(REPLACE)}
    assert "shop.own" in open_project(tmp_path / "p", files, tmp_path / "cache").models

    again = open_project(tmp_path / "p", {"materializations/deep/er.py": code(REPLACE)}, tmp_path / "cache")

    assert "There are two materializations `own`" in str(again.refused.errors[0])


def test_a_materialization_that_a_variable_names_is_seen_too(tmp_path: Path) -> None:
    files = {
        "config.yaml": f"{CONFIG}variables:\n  which: own\n",
        "models/own.sql": OWN.replace("'own'", "@which"),
    }
    open_project(tmp_path / "p", {**files, FILE: code(REPLACE)}, tmp_path / "cache", strict=True)

    again = open_project(tmp_path / "p", {**files, FILE: code(KEYED)}, tmp_path / "cache", strict=True)

    assert again.models["shop.own"].kind is Kind.INCREMENTAL_BY_UNIQUE_KEY


def test_files_that_are_ignored_hold_no_materializations(tmp_path: Path) -> None:
    config = f"{CONFIG}ignore_patterns: ['materializations/old/*']\n"
    files = {"models/own.sql": OWN, FILE: code(REPLACE), "materializations/old/own.py": "class"}

    assert open_project(tmp_path, {"config.yaml": config, **files}, strict=True).models["shop.own"].kind is Kind.FULL


PYTHON = """from sqlmesh import model
{imports}
@model("shop.own", kind={kind}, columns={{"id": "int"}})
def execute(context, start, end, execution_time, **kwargs):
    {body}
"""
AS_DICT = 'dict(name="CUSTOM", materialization="own", materialization_properties={"key": "id"})'
AS_CLASS = 'CustomKind(materialization="own", materialization_properties={"key": "id"})'
BY_TEXT = MERGE.format("[exp.column(model.custom_materialization_properties['key'])]")


@pytest.mark.parametrize("kind", [AS_DICT, AS_CLASS])
def test_a_python_model_is_of_that_kind_too(kind: str, tmp_path: Path) -> None:
    text = PYTHON.format(imports="from sqlmesh import CustomKind\n", kind=kind, body="return [start]")

    parsed = open_project(tmp_path, {"models/own.py": text, FILE: code(BY_TEXT)}, strict=True).models["shop.own"]

    assert (parsed.kind, parsed.by_key.unique_key) == (Kind.INCREMENTAL_BY_UNIQUE_KEY, ("id",))


@pytest.mark.parametrize(
    ("body", "opens"), [("return None", True), ("return [start]", False), ("return kwargs", False)]
)
def test_a_python_model_that_is_replaced_whole_does_not_look_at_its_interval(
    body: str, opens: bool, tmp_path: Path
) -> None:
    text = PYTHON.format(imports="", kind=AS_DICT, body=body)

    loaded = open_project(tmp_path, {"models/own.py": text, FILE: code(REPLACE)})

    assert ("shop.own" in loaded.models) is opens
    assert ["replaces the table by the rows of the last" in str(error) for error in loaded.refused.errors] == [True] * (
        not opens
    )


@pytest.mark.parametrize(("flag", "kind"), [("true", Kind.INCREMENTAL_UNMANAGED), ("false", Kind.FULL)])
def test_the_default_kind_may_be_custom(flag: str, kind: Kind, tmp_path: Path) -> None:
    config = f"""{CONFIG}model_defaults:
  dialect: spark
  kind:
    name: CUSTOM
    materialization: own
    materialization_properties: {{append: {flag}}}
"""
    insert = f"if model.custom_materialization_properties['append']:\n    {APPEND}\nelse:\n    {REPLACE}"
    files = {"config.yaml": config, "models/own.sql": "MODEL (name shop.own);\nSELECT 1 AS id", FILE: code(insert)}

    loaded = open_project(tmp_path, files, strict=True)

    assert {name: parsed.kind for name, parsed in loaded.models.items()} == {"shop.good": Kind.FULL, "shop.own": kind}


def test_a_custom_kind_keeps_its_text_when_it_is_formatted(tmp_path: Path) -> None:
    text = format_file("models/own.sql", OWN, "spark", Style()).text

    assert "kind CUSTOM ( materialization 'own', materialization_properties (key = id) )" in " ".join(text.split())
    assert changes(project(tmp_path / "a", KEYED), project(tmp_path / "b", KEYED, text)) == {}
