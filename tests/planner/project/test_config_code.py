"""A project whose configuration is a config.py opens as it is."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from mergeplan.planner.errors import ProjectError, RequestError
from mergeplan.planner.project.loader import load_project
from mergeplan.planner.project.scaffold import Wishes, write_project
from tests.planner.project.test_loader import CONFIG, NOW

CODE = """from sqlmesh.core.config import Config, GatewayConfig, ModelDefaultsConfig, SparkConnectionConfig

config = Config(
    gateways={"lake": GatewayConfig(connection=SparkConnectionConfig(config={"spark.ui.enabled": False}))},
    model_defaults=ModelDefaultsConfig(dialect="spark"),
    variables={"n": 1},
)
"""
MODEL = "MODEL (name shop.orders, kind FULL);\nSELECT @n AS n"


def folder(root: Path, **files: str) -> Path:
    for name, text in {"config__py": CODE, "models/orders__sql": MODEL, **files}.items():
        file = root / name.replace("__", ".")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return root


def refusal(root: Path) -> str:
    with pytest.raises(ProjectError) as error:
        load_project(root, NOW)
    return str(error.value)


def test_a_config_py_is_the_projects_configuration(tmp_path: Path) -> None:
    project = load_project(folder(tmp_path), NOW)

    assert project.models["shop.orders"].sql == "SELECT 1 AS n"
    assert project.config.gateways["lake"].connection.config == {"spark.ui.enabled": False}
    assert project.config_path == "config.py"


def test_it_runs_in_a_child_without_the_values_of_environment_variables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOKEN", "hunter2")
    code = CODE.replace(
        '"n": 1', '"n": __import__("os").getpid(), "seen": "hunter2" in open("/proc/self/environ").read()'
    )

    project = load_project(folder(tmp_path, config__py=code), NOW)

    assert project.config.variables["n"] != os.getpid()
    assert project.config.variables["seen"] is False


def test_it_imports_modules_of_the_project(tmp_path: Path) -> None:
    code = CODE.replace("\nconfig", "from settings.numbers import count\n\nconfig").replace('"n": 1', '"n": count()')
    numbers = "import os\n\ndef count():\n    return int(os.environ['COUNT'])\n"
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("COUNT", "7")
        project = load_project(folder(tmp_path, config__py=code, **{"settings/numbers__py": numbers}), NOW)
    wrong = folder(tmp_path, config__py=code, **{"settings/numbers__py": numbers.replace("int(", "1 + int(")})

    assert project.config.variables == {"n": 7}
    assert refusal(wrong).startswith("settings/numbers.py:4: The environment variable `COUNT` is not set.")


def test_a_package_that_reads_a_variable_of_which_only_the_planner_knows_the_value_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "lib" / "acme_settings.py"
    package.parent.mkdir()
    package.write_text("import os\n\nSTAGE = os.environ.get('STAGE', 'dev')\n")
    monkeypatch.setenv("PYTHONPATH", str(package.parent))
    code = f"from acme_settings import STAGE\n{CODE}".replace('"n": 1', '"n": STAGE')
    root = folder(tmp_path / "p", config__py=code)

    assert load_project(root, NOW).config.variables == {"n": "dev"}
    monkeypatch.setenv("STAGE", "live")
    assert "The value of the environment variable `STAGE` decides the configuration here" in refusal(root)
    monkeypatch.setenv("MERGEPLAN_CONFIG_VARIABLES", "STAGE")
    assert load_project(root, NOW).config.variables == {"n": "live"}


def test_a_wrong_key_is_told_at_its_line_of_config_py(tmp_path: Path) -> None:
    typo = CODE.replace("variables=", "variable=")
    engine = CODE.replace("SparkConnectionConfig", "DuckDBConnectionConfig").replace(
        'config={"spark.ui.enabled": False}', ""
    )
    setting = CODE.replace("spark.ui.enabled", "spark.sql.ansi.doubleQuotedIdentifiers").replace("False", "True")

    assert refusal(folder(tmp_path, config__py=typo)).startswith("config.py:6: `variable` is not a known key.")
    assert refusal(folder(tmp_path, config__py=engine)).startswith(
        "config.py:4: mergeplan runs on Spark, not on `duckdb`"
    )
    assert refusal(folder(tmp_path, config__py=setting)).startswith(
        "config.py:4: `spark.sql.ansi.doubleQuotedIdentifiers:"
    )


@pytest.mark.parametrize("other", ["config__yaml", "config__yml"])
def test_two_configurations_are_refused_as_in_sqlmesh(other: str, tmp_path: Path) -> None:
    said = refusal(folder(tmp_path, **{other: CONFIG}))

    assert said.startswith(f"config.py: There are several configurations, `{other.replace('__', '.')}` and `config.py`")


def test_a_config_py_of_something_else_is_no_configuration(tmp_path: Path) -> None:
    code = "# of https://github.com/TobikoData/sqlmesh\nDEBUG = True\n"
    project = load_project(folder(tmp_path / "both", config__py=code, config__yaml=CONFIG + "variables: {n: 2}\n"), NOW)

    assert project.models["shop.orders"].sql == "SELECT 2 AS n"
    assert refusal(folder(tmp_path / "alone", config__py=code)).startswith("There is no config.yaml in ")


def test_the_project_above_is_named(tmp_path: Path) -> None:
    (folder(tmp_path) / "models" / "deep").mkdir()

    assert f"The project above is {tmp_path}: go there, or add `-p ../..`." in refusal(tmp_path / "models" / "deep")


def test_init_does_not_write_a_second_configuration(tmp_path: Path) -> None:
    (tmp_path / "config.py").write_text(CODE)

    with pytest.raises(RequestError, match=r"config\.py` exists already: nothing was written"):
        write_project(tmp_path, Wishes())
    assert [path.name for path in tmp_path.iterdir()] == ["config.py"]
