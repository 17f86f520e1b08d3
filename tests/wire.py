"""Whether a line is what the published JSON Schema says, and holds no key that the contract does not know."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema_rs

from mergeplan.planner.contract.wire import line_type

SCHEMA = Path(__file__).parent.parent / "docs" / "schema" / "plan.json"


@cache
def load_schema() -> jsonschema_rs.Draft202012Validator:
    """The schema as the documents have it."""
    return jsonschema_rs.Draft202012Validator(json.loads(SCHEMA.read_text()))


def check_line(text: str) -> dict[str, Any]:
    """A line as JSON; jsonschema_rs.ValidationError or pydantic's for one that is not as published."""
    line: dict[str, Any] = json.loads(text)
    load_schema().validate(line)
    line_type().validate_json(text, strict=True, extra="forbid")
    return line
