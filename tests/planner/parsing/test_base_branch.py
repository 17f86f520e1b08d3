"""A pull request's configuration under the base branch's: the password of a gateway is no text for it."""

from __future__ import annotations

from pathlib import Path

import pytest

from mergeplan.planner.cache.store import Cache
from mergeplan.planner.errors import ProjectError, ProjectErrors
from mergeplan.planner.project.loader import LoadOptions, Project, load_project
from tests.planner.project.test_loader import CONFIG, NOW, project_of

SECRET = "hunter2"  # noqa: S105  # nobody's
BASE = CONFIG + "      config:\n        spark.hadoop.password: \"{{ env_var('PASSWORD') }}\"\n"
OPEN = "variables:\n  stage: \"{{ env_var('STAGE') }}\"\n"


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PASSWORD", SECRET)
    monkeypatch.setenv("STAGE", "blue")


CODE = """import os
from sqlmesh.core.config import Config, GatewayConfig, SparkConnectionConfig
spark = SparkConnectionConfig(config={"spark.hadoop.password": os.environ["PASSWORD"]})
config = Config(gateways={"spark": GatewayConfig(connection=spark)}, VARIABLES)
"""
OPEN_CODE = CODE.replace("VARIABLES", "variables={'stage': os.getenv('STAGE')}")


def project_under(tmp_path: Path, base: tuple[str, str], own: tuple[str, str]) -> Project:
    """The project with a configuration of its own (name and text) under the base branch's."""
    ruling = tmp_path / f"run.gateways.{base[0].rpartition('.')[2]}"
    ruling.write_text(base[1])
    root = project_of(tmp_path / "p", {own[0]: own[1]})
    if own[0] != "config.yaml":
        (root / "config.yaml").unlink()
    return load_project(root, NOW, options=LoadOptions(gateways_from=ruling))


def refusal(tmp_path: Path, own: str) -> str:
    with pytest.raises(ProjectError) as error:
        project_under(tmp_path, ("config.yaml", BASE + OPEN), ("config.yaml", own))
    return str(error.value)


@pytest.mark.parametrize(
    "own",
    [
        BASE + "variables:\n  x: \"{{ env_var('PASSWORD') }}\"\n",
        BASE + "variables:\n  x: [\"a{{ env_var('PASSWORD', 'b') }}\"]\n",
        BASE.replace("hadoop.password: ", "hadoop.password: &it ") + "variables:\n  x: *it\n",
        BASE + "project: \"{{ env_var('PASSWORD') }}\"\n",
        BASE + "\"{{ env_var('PASSWORD') }}\": 1\n",
    ],
)
def test_what_the_base_branch_keeps_for_gateways_is_closed(own: str, tmp_path: Path) -> None:
    said = refusal(tmp_path, own)

    assert "The environment variable `PASSWORD` is reserved for the gateways of the base branch." in said
    assert said.startswith("config.yaml:")
    assert SECRET not in said


@pytest.mark.parametrize(
    "own",
    [
        BASE.replace("type: spark", "type: \"{{ env_var('PASSWORD') }}\""),
        BASE + "default_gateway: \"{{ env_var('PASSWORD') }}\"\n",
    ],
)
def test_an_error_in_a_pull_requests_own_gateways_does_not_tell_it(own: str, tmp_path: Path) -> None:
    assert SECRET not in refusal(tmp_path, own)


@pytest.mark.parametrize("base", [("config.yaml", BASE + OPEN), ("config.py", OPEN_CODE)])
@pytest.mark.parametrize("own", [("config.yaml", BASE + OPEN), ("config.py", OPEN_CODE)])
def test_other_variables_stay_open_and_the_base_branchs_gateways_hold(
    base: tuple[str, str], own: tuple[str, str], tmp_path: Path
) -> None:
    project = project_under(tmp_path, base, own)

    assert project.defaults.variables == {"stage": "blue"}
    assert project.config.gateways["spark"].connection.config == {"spark.hadoop.password": SECRET}
    assert project.config_path == own[0]


@pytest.mark.parametrize("base", [("config.yaml", BASE + OPEN), ("config.py", OPEN_CODE)])
@pytest.mark.parametrize(
    "more",
    [
        "variables={'x': os.environ['PASSWORD']}",
        "variables={'x': [f'a{os.environ.get(\"PASSWORD\", \"b\")}']}",
        "variables=spark_config",
        "project=str(os.getenv('PASSWORD'))",
        "log_limit=int(os.environ['PASSWORD'])",
    ],
)
def test_a_config_py_does_not_open_what_is_closed(base: tuple[str, str], more: str, tmp_path: Path) -> None:
    own = CODE.replace("spark = ", "spark_config = {'p': os.environ['PASSWORD']}\nspark = ").replace("VARIABLES", more)

    with pytest.raises(ProjectError, match="`PASSWORD` is reserved for the gateways of the base branch") as error:
        project_under(tmp_path, base, ("config.py", own))

    assert SECRET not in str(error.value)
    assert error.value.place
    assert error.value.place.path == "config.py"


@pytest.mark.parametrize("more", ["or os.getenv('STAGE')", "if os.getenv('STAGE') else 'x'", "[:1]", "== 'a'"])
def test_no_condition_makes_a_closed_variable_a_text(more: str, tmp_path: Path) -> None:
    own = CODE.replace("VARIABLES", f"variables={{'x': os.environ['PASSWORD'] {more}}}")

    with pytest.raises(ProjectError, match=r"variable `PASSWORD` (is reserved|decides)") as error:
        project_under(tmp_path, ("config.py", OPEN_CODE), ("config.py", own))

    assert SECRET not in str(error.value)


def test_a_variable_of_a_branch_that_was_not_taken_is_closed_too(tmp_path: Path) -> None:
    base = OPEN_CODE.replace("config = Config", "if os.getenv('CI'):\n    spark = os.environ['OTHER']\nconfig = Config")
    own = CODE.replace("VARIABLES", "variables={'x': os.environ['OTHER']}")

    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("OTHER", "another secret")
        with pytest.raises(ProjectError, match="variable `OTHER` is reserved for the gateways of the base branch"):
            project_under(tmp_path, ("config.py", base), ("config.py", own))


def test_the_modules_that_the_base_branch_imports_are_its_own(tmp_path: Path) -> None:
    code = "from sqlmesh.core.config import Config\nfrom jars import SPARK\nconfig = Config(gateways=SPARK)\n"
    jars = "from sqlmesh.core.config import GatewayConfig, SparkConnectionConfig\n"
    spark = "SPARK = GatewayConfig(connection=SparkConnectionConfig(config={'spark.jars': 'NAME.jar'}))\n"
    (tmp_path / "jars.py").write_text(jars + spark.replace("NAME", "base"))
    (tmp_path / "p").mkdir()
    (tmp_path / "p" / "jars.py").write_text(jars + spark.replace("NAME", "evil"))

    project = project_under(tmp_path, ("config.py", code), ("config.py", code))

    assert project.config.gateways["default"].connection.config == {"spark.jars": "base.jar"}


def test_a_pull_requests_config_py_does_not_choose_its_spark(tmp_path: Path) -> None:
    own = OPEN_CODE.replace('"spark.hadoop.password": os.environ["PASSWORD"]', '"spark.jars": "evil.jar"')

    project = project_under(tmp_path, ("config.py", OPEN_CODE), ("config.py", own))

    assert project.config.gateways["spark"].connection.config == {"spark.hadoop.password": SECRET}


def test_the_functions_that_sql_may_call_are_those_of_the_base_branch(tmp_path: Path) -> None:
    """Also where the file was read before under other ones."""
    with_mask, model = CONFIG + "      functions: [shop.mask]\n", "MODEL (name shop.a);\nSELECT shop.mask(1) AS x\n"
    root = project_of(tmp_path / "p", {"config.yaml": with_mask, "models/a.sql": model})
    ruling, cache = tmp_path / "run.gateways.yaml", Cache(tmp_path / "cache")
    ruling.write_text(CONFIG)

    assert "shop.a" in load_project(root, NOW, options=LoadOptions(cache=cache)).models
    with pytest.raises(ProjectErrors, match=r"`shop\.mask` is not a function of Spark"):
        load_project(root, NOW, options=LoadOptions(gateways_from=ruling, cache=cache))


@pytest.mark.parametrize("name", ["'*'", "f*g", "a b", "reflect('x')"])
def test_a_function_is_allowed_by_its_name_or_its_beginning(tmp_path: Path, name: str) -> None:
    with pytest.raises(
        ProjectError, match=r"`functions`: .* is neither the name of a function nor the beginning of one"
    ):
        load_project(project_of(tmp_path, {"config.yaml": f"{CONFIG}      functions: [{name}]\n"}), NOW)
