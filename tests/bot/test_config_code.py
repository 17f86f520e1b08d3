"""A repository whose configuration is a config.py: a pull request that edits it is treated as one of config.yaml."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from mergeplan.bot.records import PullState
from tests.bot.conftest import COLUMN, PROJECT, SHOP, Bench

CODE = """from sqlmesh.core.config import Config, GatewayConfig, SparkConnectionConfig
from sqlmesh.integrations.github.cicd.config import GithubCICDBotConfig

config = Config(
    gateways={"spark": GatewayConfig(connection=SparkConnectionConfig(config={"spark.jars": "own.jar"}))},
    cicd_bot=GithubCICDBotConfig(pr_environment_name="review"),
)
"""
EVIL = CODE.replace("own.jar", "evil.jar").replace('"review"', '"prod"')
EDITED = "This pull request edits the project's configuration."


@pytest.fixture(name="bench")
def _bench(copy_bench: Callable[..., Bench]) -> Bench:
    models = {name: text for name, text in PROJECT.items() if name != "config.yaml"}
    return copy_bench({**models, "config.py": CODE})


def gateways(bench: Bench, number: int) -> str:
    """The configuration that rules over that of the pull request."""
    [call] = bench.calls("plan", f"review_{number}")
    return str(call["gateways"])


def test_its_rules_hold_and_its_merge_is_promoted(bench: Bench) -> None:
    number = bench.open(COLUMN)
    bench.idle()
    assert EDITED not in bench.plan(number)
    assert gateways(bench, number) == CODE

    bench.github.merge(SHOP, number, author="ann")
    bench.idle()
    assert bench.record(number).state is PullState.PROMOTED


@pytest.mark.parametrize(
    "edit",
    [{"config.py": EVIL}, {"config.py": None, "config.yaml": "gateways: {}\n"}],
    ids=["edited", "replaced"],
)
def test_a_pull_request_does_not_change_its_own_rules_or_spark(edit: dict[str, str | None], bench: Bench) -> None:
    """Behaviours 8, 10: gateways and `cicd_bot` are those of the base branch, in whatever language."""
    number = bench.open({**COLUMN, **edit})
    bench.idle()

    assert EDITED in bench.plan(number)
    assert gateways(bench, number) == CODE
    assert bench.record(number).rules.changes_rules


@pytest.mark.parametrize(
    "edit",
    [{"config.yaml": "gateways: {}\n"}, {"config.py": "raise SystemExit\n" + EVIL}],
    ids=["beside", "unreadable"],
)
def test_a_pull_request_whose_rules_cannot_be_read_is_not_planned(edit: dict[str, str | None], bench: Bench) -> None:
    number = bench.open({**COLUMN, **edit})
    bench.idle()

    assert EDITED in bench.plan(number)
    assert bench.record(number).state is PullState.FAILED
    assert bench.record(number).rules.changes_rules
    assert bench.calls("plan", f"review_{number}") == []


@pytest.mark.prove
def test_an_edit_of_a_module_that_the_rules_are_made_of_is_an_edit_of_them(copy_bench: Callable[..., Bench]) -> None:
    """Code that gives the same rules now may give others once it is merged."""
    code = CODE.replace("\nconfig", "from rules import PREFIX\n\nconfig").replace('"review"', "PREFIX")
    models = {name: text for name, text in PROJECT.items() if name != "config.yaml"}
    bench = copy_bench({**models, "config.py": code, "rules.py": 'PREFIX = "review"\n'})
    number = bench.open({**COLUMN, "rules.py": 'PREFIX = "re" + "view"\n'})
    bench.idle()

    assert EDITED in bench.plan(number)
    assert bench.record(number).rules.changes_rules


def test_the_same_rules_in_another_language_are_no_edit_of_them(bench: Bench) -> None:
    rules = "gateways: {spark: {connection: {type: spark}}}\ncicd_bot: {pr_environment_name: review}\n"
    number = bench.open({**COLUMN, "config.py": None, "config.yaml": rules})
    bench.idle()

    assert EDITED in bench.plan(number)
    assert not bench.record(number).rules.changes_rules


def test_a_config_py_does_not_rule_over_the_config_yaml_of_the_base_branch(copy_bench: Callable[..., Bench]) -> None:
    bench = copy_bench({**PROJECT, "config.yaml": "cicd_bot: {pr_environment_name: review}\n"})
    number = bench.open({**COLUMN, "config.yaml": None, "config.py": EVIL})
    bench.idle()

    assert EDITED in bench.plan(number)
    assert gateways(bench, number) == "cicd_bot: {pr_environment_name: review}\n"


def test_two_configurations_on_the_base_branch_rule_nothing(bench: Bench) -> None:
    bench.github.commit(SHOP, "main", {"config.yaml": "gateways: {}\n"}, "Two", author="ann")
    bench.idle()
    number = bench.open(COLUMN)
    bench.idle()

    assert "There are several configurations, `config.yaml` and `config.py`" in bench.plan(number)
    assert bench.conclusions(bench.head(number))["promotion"] == "failure"


def test_a_config_py_of_something_else_is_no_project(copy_bench: Callable[..., Bench]) -> None:
    bench = copy_bench({"config.py": "DEBUG = True\n", "models/orders.py": "class Order: pass\n"})
    number = bench.open({"config.py": "DEBUG = False\n"})
    bench.idle()

    assert not bench.calls("plan")
    assert EDITED not in bench.plan(number)
