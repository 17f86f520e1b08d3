"""doctor: each thing in one line, what is wrong told without a secret."""

from __future__ import annotations

import sys
from contextlib import closing
from pathlib import Path
from typing import cast

import pytest

from mergeplan.planner.engine.protocol import Engine, Rows
from mergeplan.planner.errors import SparkUnavailable
from mergeplan.planner.session.settings import SessionSettings
from mergeplan.planner.session.use_cases.doctor import Finding, run_checks
from mergeplan.planner.session.workspace import Workspace
from tests.planner.project.test_loader import CONFIG, project_of

NOWHERE = "postgresql+psycopg://ann:open%20sesame@127.0.0.1:1/state?connect_timeout=1"


def away(*_: object) -> Engine:
    raise SparkUnavailable("Spark did not start with the password open sesame, nor with open%20sesame or open+sesame.")


def findings(root: Path, config: str, **files: str) -> dict[str, Finding]:
    project_of(root, {"config.yaml": config, **files})
    work = Workspace(SessionSettings(root, state_url=NOWHERE, open_engine=away))
    with closing(work):
        return {check.what: check for check in run_checks(work)}


def test_what_is_wrong_is_told_without_secrets(tmp_path: Path) -> None:
    seen = findings(tmp_path, CONFIG + "      config:\n        spark.jars: /nowhere/udf.jar\n")

    assert [what for what, check in seen.items() if check.ok is False] == ["jars", "catalog", "state"]
    assert "/nowhere/udf.jar" in seen["jars"].text
    assert "***" in seen["catalog"].text
    assert not any("sesame" in check.text or "\n" in check.text for check in seen.values())


def test_java_is_not_needed_behind_spark_connect(tmp_path: Path) -> None:
    seen = findings(tmp_path, CONFIG + "      remote: sc://spark.internal:15002/;token=sesame\n")

    assert (seen["java"].ok, seen["spark"].ok) == (None, True)
    assert seen["spark"].text.endswith("connects to spark.internal")


def test_a_project_that_does_not_open_is_one_finding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MERGEPLAN_ISOLATION", "sometimes")

    seen = findings(tmp_path, "gateways: {}\n")

    assert [what for what, check in seen.items() if check.ok is False] == ["project", "isolation"]


@pytest.mark.parametrize(
    ("python", "text"),
    [
        (sys.executable, "no dbt: "),
        ("/nowhere/python", "MERGEPLAN_DBT_PYTHON is `/nowhere/python`, which is no program."),
    ],
)
def test_a_python_without_a_dbt_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, python: str, text: str
) -> None:
    monkeypatch.setenv("MERGEPLAN_DBT_PYTHON", python)

    dbt = findings(tmp_path, CONFIG, **{"dbt_project.yml": "name: shop\nprofile: shop\n"})["dbt"]

    assert dbt.ok is False
    assert dbt.text.startswith(text)


def test_what_was_tested_is_told_with_each_version(tmp_path: Path) -> None:
    packages = "io.delta:delta-spark_4.1_2.13:4.4.0,org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:2.0.0"
    seen = findings(tmp_path, CONFIG + f"      config:\n        spark.jars.packages: {packages}\n")

    assert "(tested: 3.11, 3.12, 3.13, 3.14)" in seen["python"].text
    assert "(tested: 4.1, 4.2, 4.3)" in seen["spark"].text
    assert "delta-spark_4.1_2.13:4.4.0 (tested: 4.4.0)" in seen["jars"].text
    assert "iceberg-spark-runtime-4.1_2.13:2.0.0 (no test runs it; tested: 1.12.0)" in seen["jars"].text


class Server:
    """An engine that knows the settings of a server, and nothing else."""

    def __init__(self, **settings: str) -> None:
        self._settings = settings

    def fetch(self, sql: str) -> Rows:
        if sql.startswith("SET "):
            name = sql.removeprefix("SET ")
            return Rows(("key", "value"), ((name, self._settings.get(name.rpartition(".")[2], "<undefined>")),))
        return Rows(("catalog", "version"), (("spark_catalog", "4.1.0 abc"),))

    def close(self) -> None:
        """Nothing was opened."""


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"parallelism": "10000"}, ["snapshotPartitions` is <undefined>", "parallelism` is 10000"]),
        ({"snapshotPartitions": "4", "parallelism": "10000"}, ["parallelism` is 10000"]),
        ({"snapshotPartitions": "4", "parallelism": "64"}, []),
    ],
)
def test_a_server_on_which_delta_takes_minutes_is_named(
    tmp_path: Path, settings: dict[str, str], named: list[str]
) -> None:
    remote = "      remote: sc://spark.internal:15002\n      table_format: delta\n"
    project_of(tmp_path, {"config.yaml": CONFIG + remote})
    state = f"sqlite:///{tmp_path / 'state.db'}"
    work = Workspace(
        SessionSettings(tmp_path, state_url=state, open_engine=lambda *_: cast(Engine, Server(**settings)))
    )

    with closing(work):
        said = [check.text for check in run_checks(work) if check.what == "server"]

    assert [text.partition(":")[0].rpartition(".")[2] for text in said] == named
    assert all("start the server with `--conf spark." in text for text in said)
