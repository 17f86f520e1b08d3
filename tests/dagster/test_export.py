"""The deployment: an environment from the state alone, with the time that tables hold and the lineage of columns."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from mergeplan.dagster.deployment import Deployment, read_deployment
from mergeplan.planner.contract.schedule import Schedule, ScheduledModel
from mergeplan.planner.errors import ProjectError
from tests.planner.cli.conftest import CommandLine
from tests.planner.session.scheduling.test_schedule import promoted

__all__ = ["promoted"]  # the fixture: a shop in prod whose files of models are gone


def export(shop: CommandLine, *options: str) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-P", "-m", "mergeplan.dagster.export", *options, "--project", str(shop.root)]
    environ = {name: text for name, text in os.environ.items() if not name.startswith("MERGEPLAN_STATE")}
    return subprocess.run(argv, env=environ, capture_output=True, text=True, check=False)


def test_an_environment_is_read_without_its_files_with_lineage_and_what_decides_rows(
    promoted: CommandLine, tmp_path: Path
) -> None:
    ran = export(promoted, "--lineage", "--to", str(tmp_path / "deployment.json"))
    assert ran.returncode == 0, ran.stderr
    deployment = read_deployment(tmp_path / "deployment.json")

    assert [*deployment.models][:2] == ["shop.apart", "shop.items"]
    assert deployment.held["shop.daily"] == ()
    total = deployment.lineage["shop.total"]
    assert [(end.model, end.column) for end in total.columns["total"]] == [("shop.daily", "price")]
    daily = deployment.lineage["shop.daily"]
    assert [(end.model, end.column) for end in daily.row_deciders] == [("shop.items", "day"), ("shop.items", None)]


def test_an_environment_that_is_not_there_is_one_sentence(promoted: CommandLine) -> None:
    ran = export(promoted, "dev")

    assert ran.returncode == 1
    assert ran.stderr.startswith("There is no environment `dev`.") and "Traceback" not in ran.stderr


def test_a_file_that_is_no_deployment_names_how_to_write_one(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text('{"schedule": {}}')

    for name in ("x.json", "none.json"):
        with pytest.raises(ProjectError) as raised:
            read_deployment(tmp_path / name)
        assert "mergeplan.dagster.export" in raised.value.hint


def test_a_deployment_of_another_version_names_both(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text('{"schedule": {"version": 9, "project": "p", "environment": "prod", "models": []}}')
    with pytest.raises(ProjectError, match="this is version 9, and version 1 is read") as raised:
        read_deployment(path)
    assert raised.value.hint.startswith("Install the same mergeplan on both sides")


def model(name: str, kind: str, *parents: str, external: tuple[str, ...] = ()) -> ScheduledModel:
    return ScheduledModel(
        name=name, kind=kind, computed=True, parents=parents, external=external, fingerprint="f", table_version="v"
    )


def test_what_reads_an_embedded_model_reads_what_that_reads() -> None:
    models = (
        model("s.inner", "EMBEDDED", external=("raw.a", "raw.b")),
        model("s.outer", "EMBEDDED", "s.inner"),
        model("s.out", "FULL", "s.outer", external=("raw.a", "s.out")),
    )
    deployment = Deployment(schedule=Schedule(project="p", environment="prod", models=models))

    assert deployment.parents["s.out"] == ("raw.a", "raw.b")
    assert deployment.outside == ("raw.a", "raw.b")


def test_names_of_the_package_say_what_they_need_where_dagster_is_not_installed() -> None:
    import mergeplan.dagster

    assert mergeplan.dagster.read_deployment is read_deployment
    with pytest.raises(ImportError, match=r"pip install 'mergeplan\[dagster\]'"):
        mergeplan.dagster.MergeplanTranslator  # noqa: B018
