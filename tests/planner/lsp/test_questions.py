"""What is asked of a place in YAML, in macros, and in projects of other tools."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from mergeplan.planner.lsp.editor import Editor
from mergeplan.planner.lsp.questions import completions_at, definitions_at, hover_at, references_at
from mergeplan.planner.session.settings import SessionSettings
from tests.planner.lsp.conftest import ORDERS, TEST, ask_effects, promote, write_files
from tests.planner.session.conftest import refuse_engine

TESTS = "tests/test_totals.yaml"
MACROS = '''from sqlmesh import macro


@macro()
def doubled(evaluator, column):
    """Twice a column."""
    return f"{column} * 2"
'''
JINJA = "{# Half of a column. #}\n{% macro halved(column, digits=2) %}{{ column }} / 2{% endmacro %}\n"
WITH_MACROS = {
    "macros/doubled.py": MACROS,
    "macros/halved.sql": JINJA,
    "models/jinja.sql": "MODEL (name shop.jinja, kind VIEW);\nJINJA_QUERY_BEGIN;\n"
    "SELECT {{ halved('amount') }} AS half FROM shop.orders\nJINJA_END;\n",
    "models/python.sql": "MODEL (name shop.python, kind VIEW);\nSELECT @doubled(amount) AS twice FROM shop.orders\n",
}


def open_folder(root: Path, files: dict[str, str], *, trusted: bool = False) -> Editor:
    """An editor of a folder with these files."""
    write_files(root, files)
    editor = Editor(SessionSettings(root.resolve(), open_engine=refuse_engine), trusted=trusted)
    editor.live.load()
    return editor


def after(text: str, words: str) -> int:
    """The offset behind words of a text."""
    return text.index(words) + len(words)


def labels(editor: Editor, path: str, text: str, words: str) -> set[str]:
    """What is suggested behind words of a text."""
    return {item.label for item in completions_at(editor, path, text, after(text, words))}


def about(editor: Editor, path: str, text: str, words: str) -> str:
    """What is said of the name at the end of words."""
    answer = hover_at(editor, path, text, after(text, words) - 1)
    return answer[0] if answer else ""


def named(editor: Editor, path: str, text: str, words: str) -> list[tuple[str, str]]:
    """The file and the text of each place that names what stands at the end of words."""
    places = references_at(editor, path, text, after(text, words) - 1)
    texts = {place.path: (editor.root / place.path).read_text() for place in places}
    return [(place.path, texts[place.path][place.span.start : place.span.end]) for place in places]


@pytest.mark.parametrize(
    ("text", "words", "expected", "others"),
    [
        ("test_a:\n  mo", "  mo", {"model", "inputs", "outputs"}, {"rows"}),
        ("test_a:\n  model: shop.totals\n  ", "totals\n  ", {"inputs"}, {"model"}),
        ("test_a:\n  model: sh", ": sh", {"shop.totals", "shop.orders"}, {"inputs"}),
        ("test_a:\n  model: shop.totals\n  inputs:\n    ", "inputs:\n    ", {"shop.orders"}, {"shop.latest"}),
        ("test_a:\n  inputs:\n    shop.orders:\n    - id: 1\n      ", "1\n      ", {"amount", "day"}, {"id"}),
        ("test_a:\n  model: shop.totals\n  outputs:\n    query:\n    - ", "query:\n    - ", {"orders"}, {"id"}),
        ("test_a:\n  model: shop.totals\n  this:\n  - ", "this:\n  - ", {"orders"}, {"id"}),
        ("test_a:\n  model: shop.totals\n  outputs:\n    table:\n    - ", "table:\n    - ", {"orders"}, {"id"}),
        ("test_a:\n  outputs:\n    query:\n      partial: ", "partial: ", {"true", "false"}, {"orders"}),
    ],
)
def test_unit_tests_are_completed_by_their_schema_and_by_models(
    editor: Editor, text: str, words: str, expected: set[str], others: set[str]
) -> None:
    suggested = labels(editor, TESTS, text, words)

    assert expected <= suggested
    assert not others & suggested


def test_other_yaml_files_are_completed_by_their_schemas(editor: Editor) -> None:
    assert {"columns", "grain"} <= labels(editor, "external_models.yaml", "- name: raw.a\n  ", "a\n  ")
    assert "not_null" in labels(editor, "external_models.yaml", "- name: raw.a\n  audits:\n  - not", "- not")
    assert "shop.orders" in labels(editor, "exposures.yaml", "- name: a\n  models:\n  - sh", "- sh")
    assert {"model_defaults", "linter"} <= labels(editor, "config.yaml", "mod", "mod")
    assert "dialect" in labels(editor, "config.yaml", "model_defaults:\n  di", "  di")


def test_keys_of_yaml_are_described_and_its_models_lead_to_their_files(editor: Editor) -> None:
    assert "The model that is tested" in about(editor, TESTS, TEST, "  model")
    assert "**shop.totals**" in about(editor, TESTS, TEST, "shop.totals")

    (definition,) = definitions_at(editor, TESTS, TEST, after(TEST, "shop.tot"))
    assert definition.path == "models/totals.sql"


def test_macros_are_described_and_found_where_they_are_defined_and_called(tmp_path: Path, editor: Editor) -> None:
    write_files(tmp_path, WITH_MACROS)
    editor.live.load()
    python, jinja = WITH_MACROS["models/python.sql"], WITH_MACROS["models/jinja.sql"]

    assert about(editor, "models/python.sql", python, "@doubled").startswith("**@doubled(column)** · macro")
    assert "Half of a column." in about(editor, "models/jinja.sql", jinja, "halved")
    assert named(editor, "models/python.sql", python, "@doub") == [
        ("macros/doubled.py", "doubled"), ("models/python.sql", "@doubled")
    ]  # fmt: skip
    assert named(editor, "macros/halved.sql", JINJA, "macro halv") == [
        ("macros/halved.sql", "halved"), ("models/jinja.sql", "halved")
    ]  # fmt: skip


def test_a_variable_leads_to_its_line_of_the_configuration(tmp_path: Path, editor: Editor) -> None:
    config = (tmp_path / "config.yaml").read_text() + "variables:\n  least: 3\n"
    write_files(tmp_path, {"config.yaml": config})
    editor.live.load()
    text = ORDERS.replace("FROM priced", "FROM priced WHERE amount > @least")

    (definition,) = definitions_at(editor, "models/orders.sql", text, after(text, "@lea"))
    assert config[definition.span.start : definition.span.end] == "least"
    assert "variable of config.yaml: `3`" in about(editor, "models/orders.sql", text, "@least")
    assert "built-in macro" in about(editor, "models/orders.sql", "SELECT @EACH", "@EACH")


PIPELINE = {
    "spark-pipeline.yml": "name: shop\ndatabase: shop\nlibraries: [{glob: {include: 'transformations/**'}}]\n",
    "transformations/a.sql": "CREATE MATERIALIZED VIEW a AS SELECT 1 AS id, 2 AS amount;\n",
    "transformations/b.sql": "CREATE MATERIALIZED VIEW b AS\nSELECT id, amount AS total FROM a;\n",
}


def test_a_pipeline_has_lenses_hovers_and_definitions(tmp_path: Path) -> None:
    write_files(tmp_path, PIPELINE)
    promote(SessionSettings(tmp_path.resolve(), open_engine=refuse_engine))
    editor = open_folder(tmp_path, {}, trusted=True)
    path, text = "transformations/b.sql", PIPELINE["transformations/b.sql"]

    assert editor.judge(path, text) == ()
    assert ask_effects(editor, path) == ["As in prod"]
    assert editor.judge(path, edited := text.replace("amount AS total", "amount AS total, 1 AS one")) == ()
    assert ask_effects(editor, path)[0].startswith("Non-breaking: Only adds `one`")
    assert "**shop.a**" in about(editor, path, edited, "FROM a")
    assert [place.path for place in definitions_at(editor, path, edited, after(edited, "FROM a"))] == [
        "transformations/a.sql"
    ]
    (wrong,) = editor.judge(path, "CREATE STREAMING TABLE b AS SELECT 1 AS id")
    assert "treaming" in wrong.message


DBT = {
    "dbt_project.yml": "name: shop\nprofile: shop\nversion: '1'\n",
    "models/sources.yml": "version: 2\nsources:\n- name: raw\n  tables:\n  - name: rows\n",
    "models/stg_rows.sql": "SELECT id FROM {{ source('raw', 'rows') }}\n",
    "models/rows.sql": "SELECT id FROM {{ ref('stg_rows') }}\n",
}


def test_ref_and_source_are_followed_in_a_dbt_project_that_nobody_trusts(tmp_path: Path) -> None:
    editor = open_folder(tmp_path, DBT)
    rows, staging = DBT["models/rows.sql"], DBT["models/stg_rows.sql"]

    assert editor.view is None
    (diagnostic,) = editor.judge("models/rows.sql", rows)
    assert "does not run until the folder is trusted" in diagnostic.message
    assert [p.path for p in definitions_at(editor, "models/rows.sql", rows, after(rows, "ref('stg"))] == [
        "models/stg_rows.sql"
    ]
    (source,) = definitions_at(editor, "models/stg_rows.sql", staging, after(staging, "'ro"))
    assert (source.path, DBT["models/sources.yml"][: source.span.start].count("\n")) == ("models/sources.yml", 4)
    assert named(editor, "models/rows.sql", rows, "stg_rows")[-1] == ("models/rows.sql", "stg_rows")
    assert labels(editor, "models/rows.sql", "SELECT 1 FROM {{ ref('", "ref('") == {"rows", "stg_rows"}


MODEL = """from sqlmesh import model


@model("shop.scored", columns={"id": "bigint"}, depends_on=["shop.orders"])
def execute(context, **kwargs):
    return context.spark.sql("SELECT 1 AS id")
"""


def test_a_python_model_has_a_lens_of_what_is_saved_and_its_code_runs_then_alone(settings: SessionSettings) -> None:
    path = "models/scored.py"
    promote(settings)
    write_files(settings.root, {path: MODEL})
    editor = Editor(replace(settings), trusted=True)

    assert editor.judge(path, MODEL) == ()
    loads = editor.live.loads
    assert ask_effects(editor, path)[0].startswith("New model")
    (wrong,) = editor.judge(path, MODEL + "def (")
    assert wrong.message.startswith("This is not Python")
    assert editor.judge(path, MODEL + "\n") == ()
    assert ask_effects(editor, path)[0].startswith("As saved: New model")
    assert editor.live.loads == loads
