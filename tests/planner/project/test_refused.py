"""What a project still opens when some of its models cannot be opened."""

from __future__ import annotations

from pathlib import Path

import pytest

from mergeplan.planner.errors import ProjectError, ProjectErrors
from mergeplan.planner.project.loader import LoadOptions, Project, load_project
from mergeplan.planner.project.refused import find_model_names, refuse_old_versions
from tests.planner.building import model, project
from tests.planner.project.test_loader import NOW, project_of

GOOD = "MODEL (name shop.good, kind FULL);\nSELECT 1 AS x"
READER = "MODEL (name shop.{}, kind FULL);\nSELECT x FROM shop.{}"
OLD = "MODEL (name shop.old, kind FULL);\n{}"
CUSTOM = "MODEL (name shop.own, kind CUSTOM (materialization 'm'));\nSELECT 1 AS x"


def open_project(root: Path, files: dict[str, str]) -> Project:
    return load_project(project_of(root, {"models/good.sql": GOOD, **files}), NOW, options=LoadOptions(strict=False))


def test_a_model_is_refused_by_itself_with_all_that_reads_it(tmp_path: Path) -> None:
    files = {
        "own": CUSTOM,
        "a": READER.format("a", "own"),
        "b": READER.format("b", "a"),
        "c": READER.format("c", "good"),
    }

    project = open_project(tmp_path, {f"models/{name}.sql": text for name, text in files.items()})

    assert sorted(project.models) == ["shop.c", "shop.good"]
    with pytest.raises(ProjectError, match=r"^models/own.sql:1: There is no materialization `m`"):
        project.refused.check_model("shop.own")
    with pytest.raises(ProjectError, match=r"^models/b.sql:2: `shop.b` reads `shop.a`, which cannot be opened.$"):
        project.refused.check_model("shop.b")
    assert [(error.place.path, error.place.line) for error in project.refused.errors] == [("models/own.sql", 1)]
    assert [(reader.model, reader.reads, str(reader.place)) for reader in project.refused.left_out] == [
        ("shop.a", "shop.own", "models/a.sql:2"),
        ("shop.b", "shop.a", "models/b.sql:2"),
    ]


def test_a_project_of_which_nothing_opens_is_closed(tmp_path: Path) -> None:
    with pytest.raises(ProjectErrors, match="materialization"):
        open_project(tmp_path, {"models/good.sql": CUSTOM})


def test_a_file_that_comes_after_the_limit_of_the_project_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A thousand files, each just within its own limit, held a worker for a day."""
    monkeypatch.setattr("mergeplan.planner.project.folder.PROJECT_SECONDS", -1.0)
    with pytest.raises(ProjectError, match=r"^config.yaml: The file was not read: those before it took"):
        open_project(tmp_path, {})


def test_what_belongs_to_no_model_closes_the_project(tmp_path: Path) -> None:
    files = {
        "models/own.sql": CUSTOM,
        "models/twice.sql": GOOD,
        "audits/a.sql": "AUDIT (name a, standalone true);\nSELEC",
    }

    with pytest.raises(ProjectErrors) as error:
        open_project(tmp_path, files)

    assert [problem.place.path for problem in error.value.errors if problem.place] == [
        "audits/a.sql",
        "models/twice.sql",
    ]


def test_an_audit_that_cannot_be_read_refuses_who_calls_it(tmp_path: Path) -> None:
    calls = "MODEL (name shop.audited, kind FULL, audits (positive));\nSELECT 1 AS x"

    project = open_project(tmp_path, {"audits/a.sql": "AUDIT (name positive);\nSELEC FROM", "models/a.sql": calls})

    assert list(project.models) == ["shop.good"]
    assert [refusal.path for refusal in project.refused.refusals] == ["audits/a.sql", "models/a.sql"]


def test_one_blueprint_that_is_wrong_leaves_the_others(tmp_path: Path) -> None:
    names = "blueprints ((n := p, rule := unknown), (n := q, rule := noselectstar))"
    text = f"MODEL (name shop.@n, kind FULL, ignored_rules (@rule), {names});\nSELECT 1 AS x"

    project = open_project(tmp_path, {"models/many.sql": text})

    assert sorted(project.models) == ["shop.good", "shop.q"]
    assert [refusal.models for refusal in project.refused.refusals] == [("shop.p",)]


def test_a_macro_does_not_go_on_without_the_columns_of_a_refused_model(tmp_path: Path) -> None:
    star = "MODEL (name shop.star, kind FULL);\nSELECT @STAR(shop.own) FROM shop.other"

    project = open_project(tmp_path, {"models/own.sql": CUSTOM, "models/star.sql": star})

    assert [refusal.models for refusal in project.refused.refusals] == [("shop.own",), ("shop.star",)]


def test_tests_of_refused_models_are_left_out(tmp_path: Path) -> None:
    test = "test_{}:\n  model: shop.{}\n  outputs:\n    query:\n    - x: 1\n"
    files = {"models/own.sql": CUSTOM, "tests/test_own.yaml": test.format("own", "own") + test.format("good", "good")}

    assert [test.name for test in open_project(tmp_path, files).tests] == ["test_good"]


@pytest.mark.parametrize(
    ("path", "text", "names", "clear"),
    [
        ("models/a.sql", "-- name x.y,\nMODEL (kind FULL, name `Shop`.A,);", ("shop.a",), True),
        ("models/a.sql", "MODEL (columns (name STRING), name a.b", (), False),
        ("models/a.sql", "MODEL (name spark_catalog.a.b)", ("a.b",), True),
        ("models/a.sql", "MODEL (name @x.b, kind FULL)", (), False),
        ("models/a.sql", "SELECT 1", (), False),
        ("models/a.py", "@model('a.b', kind='FULL')\ndef x", ("a.b",), True),
        ("models/a.py", "@sqlmesh.model(name=NAME)\ndef x", (), False),
        ("models/helpers.py", "def shared(): ...", (), True),
        ("audits/a.sql", "AUDIT (name a)", (), True),
    ],
)
def test_a_file_that_cannot_be_opened_still_says_its_name(
    path: str, text: str, names: tuple[str, ...], clear: bool
) -> None:
    assert find_model_names(path, text) == (names, clear)


def test_a_test_of_no_model_is_refused_by_itself_and_the_others_of_its_file_are_read(tmp_path: Path) -> None:
    tests = "gone:\n  model: shop.gone\ngood:\n  model: shop.good\n  outputs:\n    query:\n      rows: [{x: 1}]\n"

    project = open_project(tmp_path, {"tests/test_a.yaml": tests})

    assert [test.name for test in project.tests] == ["good"]
    assert sorted(project.models) == ["shop.good"]
    assert [str(error).partition(" Did you mean")[0] for error in project.refused.errors] == [
        "tests/test_a.yaml:2: The test's model `shop.gone` does not exist."
    ]
    with pytest.raises(ProjectError, match=r"^tests/test_a.yaml:2: The test's model `shop.gone` does not exist"):
        load_project(tmp_path, NOW)


def test_an_earlier_version_is_refused_however_it_is_written() -> None:
    models = project(
        model("s.a"), model("s.b", "select x from s.a version as\n of 1"), model("s.c", "SELECT 1 AS offset")
    )

    with pytest.raises(ProjectError, match=r"reads an earlier version of the model `s\.a`"):
        refuse_old_versions(models["s.b"], models)
    refuse_old_versions(models["s.c"], models)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT x FROM shop.good VERSION AS OF 1",
        "SELECT i.x FROM shop.good TIMESTAMP AS OF '2026-01-01' AS i",
        "WITH c AS (SELECT x FROM shop.good FOR VERSION AS OF 1) SELECT * FROM c",
    ],
)
def test_a_query_of_an_earlier_version_of_a_model_is_refused(tmp_path: Path, query: str) -> None:
    """Kept where only the layout of the model changes, it would read another history."""
    project = open_project(tmp_path, {"models/old.sql": OLD.format(query)})
    assert "reads an earlier version of the model `shop.good`" in str(project.refused.errors[0])

    outside = open_project(tmp_path, {"models/old.sql": OLD.format(query.replace("shop.good", "raw.good"))})
    assert "shop.old" in outside.models
