"""A random configuration, written as YAML and as Python in many ways, means the same Config."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from random import Random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from mergeplan.planner.parsing.files.config import read_config
from mergeplan.planner.parsing.files.configuration import Source, mark_variables, read_source
from tests.planner.python.config_code.running import run_here

CLASSES = {
    (): "Config",
    ("gateways", "*"): "sqlmesh.core.config.GatewayConfig",
    ("gateways", "*", "connection"): "Spark",
    ("model_defaults",): "ModelDefaultsConfig",
    ("plan",): "c.PlanConfig",
}
HEAD = """import os, sqlmesh, sqlmesh.core.config
import sqlmesh.core.config as c
from sqlmesh.core.config import Config, ModelDefaultsConfig, SparkConnectionConfig as Spark
"""
ENVIRONMENT = {"STAGE": "b l:u'e", "TOKEN": "[1"}
TEXTS = st.text(
    st.characters(
        max_codepoint=0xFFFF, exclude_categories=["Cs", "Cc"], exclude_characters="{\ue000\ue001\ue002\ue003"
    ),
    max_size=8,
)
NAMES = st.from_regex(r"[a-z][a-z0-9_]{0,5}", fullmatch=True)
READ = {
    "{{ env_var('STAGE') }}": "os.environ['STAGE']",
    "a{{ env_var('TOKEN') }}b": "'a' + f\"{os.getenv('TOKEN')}b\"",
    "{{ env_var('NOT_SET', 'd') }}": "os.environ.get('NOT_SET', 'd')",
}
VARIABLES = st.sampled_from(sorted(READ))
SCALARS = TEXTS | VARIABLES | st.integers(-(2**40), 2**40) | st.booleans() | st.none()
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3))
SPARK = st.dictionaries(NAMES.map("spark.{}".format), TEXTS | VARIABLES | st.integers(0, 9) | st.booleans(), max_size=3)
GATEWAY = st.fixed_dictionaries(
    {"connection": st.fixed_dictionaries({"type": st.just("spark"), "config": SPARK})},
    optional={"variables": st.dictionaries(NAMES, VALUES, max_size=2)},
)
CONFIGS = st.fixed_dictionaries(
    {"gateways": st.dictionaries(NAMES, GATEWAY, min_size=1, max_size=2)},
    optional={
        "variables": st.dictionaries(NAMES, VALUES, max_size=4),
        "model_defaults": st.fixed_dictionaries({"dialect": st.just("spark"), "owner": TEXTS}),
        "plan": st.fixed_dictionaries({"enable_preview": st.booleans()}),
        "project": VARIABLES,
        "ignore_patterns": st.lists(TEXTS, max_size=3),
    },
)


@dataclass
class Writer:
    """Writes a configuration as Python: each value in one of its spellings, some as constants above."""

    random: Random
    lines: list[str] = field(default_factory=list)

    def text(self, config: dict[str, Any]) -> str:
        made = self.write(config, ())
        return HEAD + "\n".join([*self.lines, f"config = {made}", ""])

    def write(self, value: Any, at: tuple[str, ...]) -> str:
        shape = tuple("*" if at[:1] == ("gateways",) and index == 1 else part for index, part in enumerate(at))
        written = self.make(value, at, CLASSES[shape]) if shape in CLASSES else self.plain(value, at)
        if shape and self.random.random() < 0.2:
            self.lines += ["C = None", f"C_{len(self.lines)} = {written}"]
            return self.lines[-1].partition(" =")[0]
        return written

    def make(self, value: dict[str, Any], at: tuple[str, ...], name: str) -> str:
        arguments = {key: part for key, part in value.items() if (name, key) != ("Spark", "type")}
        return f"{name}({', '.join(f'{key}={self.write(part, (*at, key))}' for key, part in arguments.items())})"

    def plain(self, value: Any, at: tuple[str, ...]) -> str:
        if isinstance(value, dict):
            return self.mapping({key: self.write(child, (*at, key)) for key, child in value.items()})
        if isinstance(value, list):
            inner = "".join(f"{self.write(element, (*at, '-'))}, " for element in value)
            return self.random.choice(["[{}]", "({})", "list([{}])", "[*({})]", "[{}] + []"]).format(inner)
        return self.scalar(value) if isinstance(value, str) else repr(value)

    def mapping(self, written: dict[str, str]) -> str:
        inner = ", ".join(f"{key!r}: {code}" for key, code in written.items())
        ways = ["{{{}}}", "dict({{{}}})", "{{**{{{}}}}}", "{{}} | {{{}}}", "{{{}}}.copy()"]
        return self.random.choice(ways).format(inner)

    def scalar(self, text: str) -> str:
        if text in READ:
            return READ[text]
        ways = ["{}", "str({})", "{} + ''", "({} '')"]
        return self.random.choice([*ways, *([] if {'"', "\\"} & set(repr(text)) else ['f"{{{}}}"'])]).format(repr(text))


def as_yaml(config: dict[str, Any]) -> str:
    """Every JSON is YAML; a line for each text."""
    return json.dumps(config, indent=1)


@settings(max_examples=150, deadline=None)
@given(config=CONFIGS, random=st.randoms(use_true_random=False))
def test_python_and_yaml_mean_the_same(config: dict[str, Any], random: Random) -> None:
    code, text = run_here(Writer(random).text(config), ENVIRONMENT), Source("config.yaml", as_yaml(config))

    one, two = (read_source(source, ENVIRONMENT) for source in (code, text))

    assert one.value == two.value
    assert read_config(one) == read_config(two)


@settings(max_examples=50, deadline=None)
@given(config=CONFIGS, random=st.randoms(use_true_random=False))
def test_both_say_alike_which_variables_they_read(config: dict[str, Any], random: Random) -> None:
    code, text = run_here(Writer(random).text(config), ENVIRONMENT), Source("config.yaml", as_yaml(config))

    assert mark_variables(code).value == mark_variables(text).value
