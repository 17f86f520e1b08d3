"""schema: a JSON Schema on standard output, from any folder."""

from __future__ import annotations

import json

import pytest

from mergeplan.planner.contract.wire import lines_schema
from tests.planner.cli.conftest import CommandLine


def test_the_schema_of_plans_is_printed(offline: CommandLine) -> None:
    ran = offline("schema", "plan")

    assert (ran.code, ran.err) == (0, "")
    assert json.loads(ran.out) == lines_schema()


def test_the_schema_of_the_configuration_is_printed(offline: CommandLine) -> None:
    assert "gateways" in json.loads(offline("schema", "config").out)["properties"]


@pytest.mark.parametrize("of", [(), ("plans",)])
def test_there_is_no_other_schema(of: tuple[str, ...], offline: CommandLine) -> None:
    assert offline("schema", *of).code == 2
