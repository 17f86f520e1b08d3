"""The schema of config.yaml: every key described, what opens is accepted, what is refused is marked."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
import yaml

from mergeplan.bot.rules import WITHOUT_EFFECT, BotConfig
from mergeplan.planner.contract.config_schema import config_schema

ROOT = Path(__file__).parents[3]
SCHEMA = config_schema(BotConfig, WITHOUT_EFFECT)
CONFIGS = sorted(
    {*ROOT.glob("tests/projects/everything/config.y*ml"), *ROOT.glob("planner/project/example/**/config.y*ml")}
)
SPARK: dict[str, Any] = {"gateways": {"spark": {"connection": {"type": "spark"}}}}


def accepts(config: dict[str, Any]) -> bool:
    return jsonschema_rs.Draft202012Validator(SCHEMA).is_valid({**SPARK, **config})


def test_the_published_schema_is_that_of_the_keys() -> None:
    published = json.loads((ROOT / "docs" / "schema" / "config.json").read_text())

    assert published == SCHEMA, "mergeplan schema config > docs/schema/config.json"


def test_every_key_is_described_in_a_sentence() -> None:
    shapes = [SCHEMA, *SCHEMA["$defs"].values()]
    told = {key: setting.get("description", "") for shape in shapes for key, setting in shape["properties"].items()}

    assert len(told) > 100
    assert [key for key, text in told.items() if not text.endswith(".")] == []


@pytest.mark.parametrize("file", CONFIGS, ids=lambda file: file.parent.name)
def test_the_files_that_open_are_accepted(file: Path) -> None:
    text = file.read_text()
    assert jsonschema_rs.Draft202012Validator(SCHEMA).is_valid(
        json.loads(json.dumps(yaml.safe_load(text), default=str))
    )


@pytest.mark.parametrize(
    "config",
    [{"plann": {}}, {"plan": {"no_dif": True}}, {"plan": {"no_diff": "yes"}}, {"cicd_bot": {"typ": "github"}},
     {"cicd_bot": {"permissions": {"plan": "boss"}}}, {"gateways": {}}, {"gateways": {"a": {}}}],
)  # fmt: skip
def test_what_is_refused_is_marked(config: dict[str, Any]) -> None:
    assert not accepts(config)


@pytest.mark.parametrize(
    "config",
    [{}, {"plan": {"no_diff": True}}, {"plan": {"no_diff": "{{ env_var('QUIET') }}"}}, {"cicd_bot": None},
     {"cicd_bot": {"merge_method": "squash", "permissions": {"plan": "read"}}}],
)  # fmt: skip
def test_what_is_read_is_accepted_also_from_the_environment(config: dict[str, Any]) -> None:
    assert accepts(config)


def test_without_the_bot_its_section_is_open() -> None:
    alone = jsonschema_rs.Draft202012Validator(config_schema())

    assert alone.is_valid({**SPARK, "cicd_bot": {"anything": 1}})
