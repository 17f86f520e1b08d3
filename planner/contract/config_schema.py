"""The JSON Schema of config.yaml, by which an editor completes and checks it."""

from typing import Any

from pydantic import BaseModel

from mergeplan.planner.contract.base import DIALECT
from mergeplan.planner.parsing.files.schema import Config

# `port: "{{ env_var('PORT') }}"` is text in the file and a number when it is read.
FROM_ENVIRONMENT = {"type": "string", "pattern": r"^\s*\{\{.*\}\}\s*$"}
NUMBERS = ("integer", "number", "boolean")


def config_schema(bot: type[BaseModel] | None = None, without_effect: frozenset[str] = frozenset()) -> dict[str, Any]:
    """Return the schema with the bot's `cicd_bot`, or an open one; keys `without_effect` are described as such."""
    json_schema = Config.model_json_schema()
    if bot is not None:
        bot_schema = bot.model_json_schema()
        json_schema["$defs"] |= bot_schema.pop("$defs", {})
        bot_schema["properties"] |= {
            key: {"description": "Accepted, no effect here."} for key in sorted(without_effect)
        }
        json_schema["$defs"][bot_schema["title"]] = bot_schema
        described = json_schema["properties"]["cicd_bot"]["description"]
        json_schema["properties"]["cicd_bot"] = {
            "anyOf": [{"$ref": f"#/$defs/{bot_schema['title']}"}, {"type": "null"}]
        }
        json_schema["properties"]["cicd_bot"]["description"] = described
    schema: dict[str, Any] = _or_from_environment(json_schema)
    return {"$schema": DIALECT, **schema, "title": "config.yaml of a mergeplan project"}


def _or_from_environment(node: Any) -> Any:
    """Return the schema in which every number and boolean may also be text in double braces."""
    if isinstance(node, list):
        return [_or_from_environment(child) for child in node]
    if not isinstance(node, dict):
        return node
    if node.get("type") in NUMBERS and "const" not in node:
        shape = {key: value for key, value in node.items() if key not in ("title", "description", "default")}
        about = {key: value for key, value in node.items() if key not in shape}
        return {**about, "anyOf": [shape, FROM_ENVIRONMENT]}
    return {key: _or_from_environment(child) for key, child in node.items()}
