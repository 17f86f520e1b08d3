"""A config.py means what the config.yaml of the same keys means, and nothing of it is run."""

from __future__ import annotations

from typing import Any

import pytest

from mergeplan.planner.errors import ProjectError
from mergeplan.planner.parsing.files.config import read_config
from mergeplan.planner.parsing.files.configuration import Source, read_source
from mergeplan.planner.parsing.sql.yaml_documents import Document

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
    return read_source(Source("config.py", HEAD + text), environment, "/shop")


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


def refused(text: str, environment: dict[str, str] | None = None) -> ProjectError:
    with pytest.raises(ProjectError) as error:
        read(text, environment)
    return error.value


@pytest.mark.parametrize(
    ("expression", "said"),
    [
        ("make()", "A call of `make` may change the configuration here"),
        ("1 if os.getenv('CI') else 2", "A condition (`... if ... else ...`) decides"),
        ("os.getenv('A') or os.environ['B']", "`and` or `or` decides"),
        ("os.getenv('A') == '1'", "A comparison decides"),
        ("[x for x in (1, 2)]", "A comprehension decides"),
        ("2 * 3", "A calculation decides"),
        ("'a' * 10**9", "A calculation decides"),
        ("'%s' % 'a'", "A calculation decides"),
        ("f'{1:>5}'", "A format within a text decides"),
        ("b'a'", "`b'a'` is no value of a configuration."),
        ("os.sep", "`os.sep` decides"),
        ("f'{EnvironmentSuffixTarget.TABLE}'", "A text that is made of a list, a mapping or an enumeration"),
        ("{EnvironmentSuffixTarget.TABLE: 1}", "A key must be a plain text."),
        ("EnvironmentSuffixTarget.default", "`EnvironmentSuffixTarget.default` decides"),
        ("PlanConfig(1)", "`PlanConfig` takes keywords only"),
        ("PlanConfig(a=1, **{'a': 2})", "`a` is given twice."),
        ("SparkConnectionConfig(type='duckdb')", "The `type` of `SparkConnectionConfig` is `spark`."),
        ("os.environ['NOT_SET']", "The environment variable `NOT_SET` is not set."),
        ("os.getenv('NOT_SET')", "The environment variable `NOT_SET` is not set."),
        ("os.getenv('A', os.environ['STAGE'])", "The default of the environment variable `A` is not a plain value."),
        ("os.environ[os.environ['STAGE']]", "A call of `os.environ` decides"),
        ("int(os.environ['STAGE'])", "The environment variable `STAGE` is not a whole number."),
        ("{os.environ['STAGE']: 1}", "A key must be a plain text."),
        ("'{{ env_var(\"STAGE\") }}'", "Double braces are not supported"),
        ("'{' + '{ x'", "Double braces are not supported"),
        ("'file:' + str(Path(__file__).parent)", "The project's folder can only be the beginning of a path."),
        ("Path.home()", "A call of `pathlib.Path.home` decides"),
        ("'\\ud800'", "This text holds a character that is not Unicode."),
        ("2 ** 8", "A calculation decides"),
        ("99999999999999999999", "This number is too large."),
    ],
)
def test_what_only_running_it_would_tell_is_refused_at_its_line(expression: str, said: str) -> None:
    error = refused(f"config = Config(\n    a=1,\n    b={expression},\n)\n")

    assert said in error.message
    assert str(error.place) == f"config.py:{BEFORE + 3}"


@pytest.mark.parametrize(
    "statement",
    [
        "A['x'] = 2",
        "A.update(x=2)",
        "A |= {'x': 2}",
        "setup(A)",
        "B = A\nB.update({'x': 2})",
        "B = [A]\nB[0]['x'] = 2",
        "B = [A.update(x=2)]",
        "T = 'a'\nfor T in [A]:\n    T.update(x=2)",
        "T = 'a'\nB = [T.update(x=2) for T in [A]]",
        "T = 'a'\nB = sorted([A], key=lambda T: T.update(x=2))",
        "def f(x): x.clear()\nB = sorted([A], key=f)",
        "def f(x): x.clear()\nf(A)",
        "def f(x): x.clear()\n@f\nclass T: pass",
        "class T:\n    def __init_subclass__(cls): A.clear()\nclass U(T): pass",
        "class T:\n    def __class_getitem__(cls, x): A.clear()\nT[1]",
        "class T:\n    A['x'] = 2",
        "class T:\n    global A\n    A = 3",
        "def f(x=(A := 3)): pass",
        "exec('A = 3')",
        "globals()['A'] = 3",
        "del A['x']",
        "del A",
        "if os.getenv('CI'):\n    A = {}",
        "for A in []: pass",
        "try:\n    x = 1\nexcept KeyError as A:\n    pass",
        "with open('x') as A: pass",
        "A, B = {}, 1",
        "print(A := 3)",
        "match 1:\n    case A: pass",
        "from settings import *",
        "if os.getenv('CI'):\n    from settings import Config",
        "from settings import Config\nif os.getenv('CI'):\n    from sqlmesh.core.config import Config",
        "if os.getenv('CI'):\n    from settings import str\nA = str(A)",
        "from settings import A",
        "import settings as A",
        "def A(): pass",
        "os.environ['STAGE'] = 'green'",
        "os.environ.update(STAGE='green')",
        "os.environ.setdefault('STAGE', 'green')",
        "assert os.getenv('CI')",
        "if not A:\n    raise SystemExit(1)",
        "import sys\nsys.exit()",
    ],
)
def test_a_value_that_may_have_changed_is_not_believed(statement: str) -> None:
    refused(f"A = {{'x': 1}}\n{statement}\nconfig = Config(variables=A, project=os.environ['STAGE'])\n")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "config.py defines no `config`."),
        ("config = {'gateways': {}}\n", "`config` is not made by SQLMesh's `Config(...)`"),
        ("from settings import config\n", "`config` is imported from `settings`"),
        ("if 1:\n    config = Config()\n", "`config` is set within `if`"),
        ("class Config(Config): pass\nconfig = Config()\n", "`Config`, a class of this file, decides"),
        ("config = Config.parse_obj({})\n", "A call of `sqlmesh.core.config.Config.parse_obj` decides"),
        ("from sqlmesh.dbt.loader import sqlmesh_config as c\nconfig = c('.')\n", "the configuration of a dbt project"),
        ("config = (\n", "This is not Python: '(' was never closed."),
        ("config = Config(a=1)\x00\n", "This is not Python"),
    ],
)
def test_a_config_that_is_none_is_refused(text: str, said: str) -> None:
    assert said in refused(text).message


def test_the_hint_names_the_keys_to_write() -> None:
    error = refused("config = Config(\n    gateways=gateways(),\n    default_gateway='x',\n)\n")

    assert error.hint.startswith(
        "Write a config.yaml in its place with the keys that it gives: `gateways`, `default_ga"
    )


@pytest.mark.parametrize(
    "text",
    [
        "config = Config(a=" + "[" * 150 + "]" * 150 + ")\n",
        "config = Config(a=" + "(" * 5000 + "1" + ")" * 5000 + ")\n",
        "config = Config(a=" + "+".join(["'a'"] * 20_000) + ")\n",
        "config = Config(a=x" + ".y" * 30_000 + ")\n",
        "config = Config(a=x" + "()" * 30_000 + ")\n",
        "config = Config(a=" + "-" * 60_000 + "1)\n",
        "config = Config(a=f'" + '{f"' * 30 + "')\n",
        "a = 'ab'\n" + "a = a + a\n" * 60 + "config = Config(a=a)\n",
        "a = [1]\n" + "a = [a, a]\n" * 50 + "config = Config(a=a)\n",
        "a = {'a': 1}\n" + "a = {'b': a}\n" * 500 + "config = Config(a=a)\n",
        "a = [" + "1," * 4_000 + "]\n" + "a = a + []\n" * 5_000 + "config = Config(a=a)\n",
        "x = 1\n" * 60_000,
    ],
)
def test_no_text_is_too_much_for_the_reader(text: str) -> None:
    refused(text)


def test_keys_that_config_yaml_refuses_are_refused_at_their_line() -> None:
    document = read(
        "config = Config(\n    gateways={'s': GatewayConfig(connection=SparkConnectionConfig())},\n    pln=1)\n"
    )

    with pytest.raises(ProjectError) as error:
        read_config(document)

    assert str(error.value).startswith(f"config.py:{BEFORE + 3}: `pln` is not a known key.")
