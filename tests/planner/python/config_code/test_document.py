"""A config.py means what the config.yaml of the same keys means; what decides it and is not known is refused."""

from __future__ import annotations

from typing import Any

import pytest

from mergeplan.planner.errors import ProjectError
from mergeplan.planner.parsing.files.config import read_config
from mergeplan.planner.parsing.files.configuration import NO_EFFECT, read_source
from mergeplan.planner.parsing.files.schema import Config
from mergeplan.planner.parsing.sql.yaml_documents import Document
from tests.planner.python.config_code.running import run_here

IMPORTS = """import os, logging
from pathlib import Path
from dotenv import load_dotenv
from sqlmesh.core.config import *
"""
NAMES = """AutoCategorizationMode BuiltInSchedulerConfig CategorizerConfig Config EnvironmentSuffixTarget GatewayConfig
ModelDefaultsConfig PlanConfig PostgresConnectionConfig SparkConnectionConfig"""
HEAD = IMPORTS.replace("*", ", ".join(NAMES.split()))
BEFORE = HEAD.count("\n")
ENVIRONMENT = {"STAGE": "blue", "TASKS": "7", "EMPTY": ""}


def read(text: str, environment: dict[str, str] | None = None) -> Document:
    environment = ENVIRONMENT if environment is None else environment
    return read_source(run_here(HEAD + text, environment), environment)


def value(expression: str, before: str = "") -> Any:
    """What an expression is where it is the value of a key."""
    return read(f"{before}\nconfig = Config(log_limit={expression})\n").value["log_limit"]


@pytest.mark.parametrize(
    ("expression", "meant"),
    [
        ("-3", -3),
        ("[1, 'a', None, True, *(2.5,)]", [1, "a", None, True, 2.5]),
        ("{'a': (1,), **{'b': {2}}} | dict(c=3)", {"a": [1], "b": [2], "c": 3}),
        ("'a' 'b' + f'{1}-{\"c\"!s}'", "ab1-c"),
        ("[1] + list((2,))", [1, 2]),
        ("str(5) + str('x')", "5x"),
        ("[int('12'), float('1.5'), bool(0)]", [12, 1.5, False]),
        ("{'a': {'b': 1}}['a'].copy()", {"b": 1}),
        ("os.environ['STAGE']", "blue"),
        ("os.getenv('EMPTY', 'd')", ""),
        ("os.environ.get('NOT_SET', default='it\\'s \"{d}\" # x')", 'it\'s "{d}" # x'),
        ("int(os.environ.get('NOT_SET', '4')) ", 4),
        ("int(os.environ['TASKS'])", 7),
        ("f\"a/{os.environ['STAGE']}/{int(os.environ['TASKS'])}\"", "a/blue/7"),
        ("str(Path(__file__).parent / 'data' / 'a.db')", "/shop/data/a.db"),
        ("Path(__file__).resolve().parent.parent / 'jars'", "/jars"),
        ("os.path.join(os.path.dirname(os.path.abspath(__file__)), 'a')", "/shop/a"),
        ("f'{Path(__file__).parent}/a'", "/shop/a"),
        ("os.path.join('s3://lake', 'a')", "s3://lake/a"),
        ("EnvironmentSuffixTarget.TABLE", "table"),
        ("AutoCategorizationMode.SEMI.value", "semi"),
        ("SparkConnectionConfig(config={'a': 1})", {"config": {"a": 1}, "type": "spark"}),
        ("PostgresConnectionConfig(**{'host': 'h'})", {"host": "h", "type": "postgres"}),
        ("BuiltInSchedulerConfig()", {"type": "builtin"}),
        ("CategorizerConfig.all_off()", dict.fromkeys(("external", "python", "sql", "seed"), "off")),
        ("PlanConfig(enable_preview=True)", {"enable_preview": True}),
    ],
)
def test_an_expression_is_read(expression: str, meant: object) -> None:
    assert value(expression) == meant


@pytest.mark.parametrize(
    "before",
    [
        "A = 1\nA = 2",
        "A: int = 2\nB: str",
        "B = 2\nA = B\nB = 3",
        "A = C = 2",
        "def f():\n    global A\n    A = 5\nA = 2",
        "A = 2\nclass T(SparkConnectionConfig):\n    A = 3\n    @property\n    def x(self): return f()",
        "load_dotenv()\nlog = logging.getLogger(__name__)\nlog.info('x')\nprint('y')\nA = 2",
        "A = 2\nif __name__ == '__main__':\n    A = 3\n    start()",
        "A = 2\ntry:\n    import x\nexcept ImportError:\n    x = None",
        "A = 2\nif os.getenv('CI'):\n    print(A)",
        "A = 2\nother = [str(each) for each in ('a',)]\nmine = lambda: A",
        "env = os.environ\nread = env.get\nA = int(read('NOT_SET', '2'))",
        "from sqlmesh.core import config as c\nA = c.PlanConfig(x=2).copy()['x'] if False else 0\nA = 2",
    ],
)
def test_what_does_not_decide_the_value_is_left_alone(before: str) -> None:
    assert value("A", before) == 2


def test_the_last_config_counts_and_others_are_ignored() -> None:
    text = (
        "config = Config(a=1)\nother_config = Config(a=2)\nconfig: Config = Config(a=3)\ntest_config = config.copy()\n"
    )

    assert read(text).value == {"a": 3}


def test_a_gateway_without_a_name_is_the_default_one() -> None:
    text = "config = Config(\n    gateways=GatewayConfig(connection=SparkConnectionConfig()),\n)\n"

    assert read(text).value == {"gateways": {"default": {"connection": {"type": "spark"}}}}
    assert read(text).place(("gateways", "default")).line == BEFORE + 2


def test_each_key_has_the_line_on_which_it_stands() -> None:
    text = (
        "SPARK = {\n    'a': 1,\n}\nconfig = Config(\n    x=[\n        1,\n        {'b': 2},\n    ],\n    y=SPARK,\n)\n"
    )

    places = {at: line - BEFORE for at, line in read(text).lines.items()}

    assert places == {
        (): 4, ("x",): 5, ("x", 0): 6, ("x", 1): 7, ("x", 1, "b"): 7, ("y",): 9, ("y", "a"): 2,
    }  # fmt: skip


def refusal(text: str, environment: dict[str, str] | None = None) -> ProjectError:
    with pytest.raises(ProjectError) as error:
        read(text, environment)
    return error.value


@pytest.mark.parametrize(
    ("expression", "meant"),
    [
        ("1 if os.getenv('CI') else 2", 2),
        ("1 if os.getenv('STAGE') else 2", 1),
        ("1 if os.getenv('EMPTY') else 2", 2),
        ("os.getenv('EMPTY') or os.environ['STAGE']", "blue"),
        ("os.getenv('STAGE') or 'dev'", "blue"),
        ("os.getenv('STAGE') is None", False),
        ("os.getenv('CI') is None", True),
        ("os.getenv('CI', 'no') == 'yes'", False),
        ("os.getenv('CI', 'no').lower() in ('no', '0')", True),
        ("os.getenv('HOSTS', 'a,b').split(',')", ["a", "b"]),
        ("int(os.getenv('N', '4')) * 2", 8),
        ("os.getenv('A', os.environ['STAGE'])", "blue"),
        ("__import__('json').loads(os.getenv('SPARK', '{\"a\": 1}'))", {"a": 1}),
        ("str(Path(os.getenv('DATA', 'data')) / 'a.db')", "data/a.db"),
        ("'{}-{}'.format(os.environ['STAGE'], ','.join([os.environ['STAGE'], 'x']))", "blue-blue,x"),
        ("os.environ['STAGE'].upper()", "BLUE"),
        ("'{}/{}'.format(os.environ['STAGE'], 1)", "blue/1"),
        ("'STAGE' in os.environ", True),
        ("[n * 2 for n in (1, 2)]", [2, 4]),
        ("{EnvironmentSuffixTarget.TABLE: 2 ** 8}", {"table": 256}),
        ("Config.parse_obj({'a': 1})", {"a": 1}),
        ("PlanConfig(a=1).model_copy(update={'b': 2})", {"a": 1, "b": 2}),
        ("PlanConfig(a=1).a", 1),
        ("[PlanConfig(a=1) is None, os.environ is None]", [False, False]),
        ("__import__('datetime').date(2024, 1, 2)", "2024-01-02"),
    ],
)
def test_what_code_decides_is_what_python_makes_of_it(expression: str, meant: object) -> None:
    assert value(expression) == meant


@pytest.mark.parametrize(
    ("expression", "said"),
    [
        ("make()", "NameError: name 'make' is not defined."),
        ("os.getenv('STAGE') == 'blue'", "The value of the environment variable `STAGE` decides"),
        ("f\"{os.environ['STAGE']}!\" == 'blue!'", "The value of the environment variable `STAGE` decides"),
        ("{'blue': 1}.get(os.environ['STAGE'])", "The value of the environment variable `STAGE` decides"),
        ("{os.environ['STAGE']: 1}", "The value of the environment variable `STAGE` decides"),
        ("os.environ[os.environ['STAGE']]", "The value of the environment variable `STAGE` decides"),
        ("int(os.environ['TASKS']) + 1", "The value of the environment variable `TASKS` decides"),
        ("os.environ['STAGE'][:2]", "The value of the environment variable `STAGE` decides"),
        ("os.path.join('/lake', os.environ['STAGE'])", "The value of the environment variable `STAGE` decides"),
        ("[*os.environ['STAGE']]", "The value of the environment variable `STAGE` decides"),
        ("__import__('re').match('bl', os.environ['STAGE']) is None", "The value of the environment variable `STAGE`"),
        ("Path(os.environ['STAGE']).exists() or 1", "The value of the environment variable `STAGE` decides"),
        ("'blue'.startswith(os.environ['STAGE']) or 1", "The value of the environment variable `STAGE` decides"),
        ("os.environ['STAGE'] in 'blue, green'", "The value of the environment variable `STAGE` decides"),
        (
            "__import__('urllib.parse').parse.quote(os.environ['STAGE'])",
            "The value of the environment variable `STAGE`",
        ),
        ("f'{os.environ[\"STAGE\"]!r}'", "A text that is made of what is not known here"),
        ("f'{Config}'", "A text that is made of what is not known here"),
        ("{**os.environ}", "All environment variables at once decide the configuration here"),
        ("os.path.expandvars('$STAGE')", "`os.path.expandvars` decides the configuration here"),
        ("lambda: 1", "A value of Python's type `function` decides the configuration here."),
        ("Config", "The class `Config` decides the configuration here."),
        ("b'a'", "A value of Python's type `bytes` decides the configuration here."),
        ("f'{EnvironmentSuffixTarget.TABLE}'", "A text that is made of an enumeration of SQLMesh is not known here."),
        ("EnvironmentSuffixTarget.default", "AttributeError: type object 'EnvironmentSuffixTarget' has no attribute"),
        ("PlanConfig(1)", "`PlanConfig` takes keywords only"),
        ("PlanConfig(a=1, **{'a': 2})", "got multiple values for keyword argument 'a'."),
        ("PlanConfig().use_finalized_state", "`use_finalized_state` of `PlanConfig` is set nowhere, and decides here."),
        ("SparkConnectionConfig(type='duckdb')", "The `type` of `SparkConnectionConfig` is `spark`."),
        ("os.environ['NOT_SET']", "The environment variable `NOT_SET` is not set."),
        ("os.environ['NOT_SET'] == 'a'", "The environment variable `NOT_SET` is not set."),
        ("os.getenv('NOT_SET')", "The environment variable `NOT_SET` is not set."),
        ("int(os.environ['STAGE'])", "The environment variable `STAGE` is not a whole number."),
        ("'{{ env_var(\"STAGE\") }}'", "Double braces are not supported"),
        ("'{' + '{ x'", "Double braces are not supported"),
        ("Path.home()", "The home folder decides the configuration here"),
        ("'\\ud800'", "This text holds a character that is not Unicode."),
        ("99999999999999999999", "This number is too large."),
        ("__import__('not_installed').secret('x')", "`not_installed`, which is not installed, decides"),
        ("[x for x in __import__('not_installed').all]", "`not_installed`, which is not installed, decides"),
        ("__import__('sqlmesh.utils').utils.random_id()", "A call of `sqlmesh.utils.random_id` decides"),
    ],
)
def test_what_is_not_known_here_is_refused_at_its_line(expression: str, said: str) -> None:
    error = refusal(f"config = Config(\n    a=1,\n    b={expression},\n)\n")

    assert said in error.message
    assert str(error.place) == f"config.py:{BEFORE + 3}"


@pytest.mark.parametrize("catch", ["except Exception", "except BaseException", "except"])
def test_what_is_not_known_is_refused_where_the_file_catches_it_too(catch: str) -> None:
    text = f"try:\n    a = 1 if os.getenv('STAGE') == 'x' else 2\n{catch}:\n    a = 3\nconfig = Config(a=a)\n"

    assert "The value of the environment variable `STAGE` decides" in refusal(text).message


def test_a_value_that_the_operator_lets_it_see_decides() -> None:
    text = "config = Config(a=1 if os.environ['STAGE'] == 'blue' else 2, b=os.environ['STAGE'])\n"

    assert read(text, {**ENVIRONMENT, "MERGEPLAN_CONFIG_VARIABLES": "CI, STAGE"}).value == {"a": 1, "b": "blue"}


def test_a_variable_that_is_not_set_raises_where_that_is_caught() -> None:
    text = "try:\n    a = os.environ['NOT_SET']\nexcept KeyError:\n    a = 'none'\nconfig = Config(a=a)\n"

    assert read(text).value == {"a": "none"}


@pytest.mark.parametrize(
    ("statement", "variables"),
    [
        ("A['x'] = 2", {"x": 2}),
        ("A.update(x=2)", {"x": 2}),
        ("B = A\nB.update({'y': 2})", {"x": 1, "y": 2}),
        ("B = [T.update(x=2) for T in [A]]", {"x": 2}),
        ("def f(x): x.clear()\nf(A)", {}),
        ("class T:\n    def __init_subclass__(cls): A.clear()\nclass U(T): pass", {}),
        ("exec('A = 3')", 3),
        ("if os.getenv('CI'):\n    A = {}", {"x": 1}),
        ("if not os.getenv('CI'):\n    A = {}", {}),
        ("try:\n    import not_installed as A\nexcept ImportError:\n    A = 4", 4),
        ("import not_installed", {"x": 1}),
        ("from not_installed import Base\nclass T(Base): pass", {"x": 1}),
        ("os.environ['OTHER'] = 'green'\nA = os.environ['OTHER']", "green"),
        ("os.environ.setdefault('STAGE', 'green')\nA = os.environ['STAGE']", "blue"),
        ("os.environ.setdefault('OTHER', 'green')\nA = os.getenv('OTHER')", "green"),
        ("from not_installed import users\nA = PlanConfig(x=1)\nA.x = 2", {"x": 2}),
    ],
)
def test_what_statements_change_is_changed(statement: str, variables: object) -> None:
    assert read(f"A = {{'x': 1}}\n{statement}\nconfig = Config(variables=A)\n").value == {"variables": variables}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "config.py defines no `config`."),
        ("config = {'gateways': {}}\n", "`config` is not made by SQLMesh's `Config(...)`"),
        ("from settings import config\n", "`config` is not made by SQLMesh's `Config(...)`"),
        ("class Config(Config): pass\nconfig = Config()\n", "`Config`, a class of this project, decides"),
        ("class S(SparkConnectionConfig): pass\nconfig = Config(a=S())\n", "`S`, a class of this project, decides"),
        ("from sqlmesh.dbt.loader import sqlmesh_config as c\nconfig = c('.')\n", "the configuration of a dbt project"),
        ("config = (\n", "This is not Python: '(' was never closed."),
        ("config = Config(a=1)\x00\n", "source code string cannot contain null bytes."),
        ("raise SystemExit(1)\n", "It exited Python: SystemExit: 1."),
        ("from settings import *\n", "No module named 'settings'"),
        ("os.environ['PYSPARK_SUBMIT_ARGS'] = '--jars x'\n", "does not reach Spark"),
        ("config = Config(variables={'root': str(Path(__file__).parent)})", "A variable cannot hold the proj"),
    ],
)
def test_a_config_that_is_none_is_refused(text: str, said: str) -> None:
    assert said in refusal(text).message


def test_the_keys_without_effect_are_those_of_the_schema() -> None:
    described = {
        name for name, field in Config.model_fields.items() if field.description == "Accepted, no effect here."
    }

    assert described == NO_EFFECT


def test_what_has_no_effect_may_be_anything() -> None:
    text = "class Mine(SparkConnectionConfig): pass\nconfig = Config(notification_targets=[Mine()], a=1)\n"

    assert read(text).value == {"a": 1}


def test_the_hint_names_the_keys_to_write() -> None:
    error = refusal("config = Config(\n    gateways=gateways(),\n    default_gateway='x',\n)\n")

    assert error.hint.startswith(
        "Write a config.yaml in its place with the keys that it gives: `gateways`, `default_ga"
    )


@pytest.mark.parametrize(
    "text",
    [
        "config = Config(a='a' * 10**7)\n",
        "config = Config(a=" + "[" * 90 + "]" * 90 + ")\n",
        "a = [1]\n" + "a = [a, a]\n" * 50 + "config = Config(a=a)\n",
        "a = {'a': 1}\n" + "a = {'b': a}\n" * 500 + "config = Config(a=a)\n",
        "a = []\na.append(a)\nconfig = Config(a=a)\n",
        "config = Config(a=list(range(100_000)))\n",
    ],
)
def test_a_value_that_is_too_much_is_refused(text: str) -> None:
    assert refusal(text).message == "This value is too large, or nested too deeply."


def test_keys_that_config_yaml_refuses_are_refused_at_their_line() -> None:
    document = read(
        "config = Config(\n    gateways={'s': GatewayConfig(connection=SparkConnectionConfig())},\n    pln=1)\n"
    )

    with pytest.raises(ProjectError) as error:
        read_config(document)

    assert str(error.value).startswith(f"config.py:{BEFORE + 3}: `pln` is not a known key.")
