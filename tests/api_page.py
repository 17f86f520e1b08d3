"""The endpoints of docs/reference/api.md, from the OpenAPI document: `python -m tests.api_page` writes them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mergeplan.planner.api.app import make_api
from tests.doc_links import in_folder
from tests.json_page import SHOWN
from tests.json_page import TITLES as JSON_TITLES

PAGE = Path(__file__).parent.parent / "docs" / "reference" / "api.md"
MARKED = re.compile(r"(<!-- (endpoints|answers) -->\n).*?(<!-- end -->)", re.DOTALL)
TITLES = {"project": "The project", "models": "Models", "lineage": "Lineage", "environments": "Environments",
          "plans": "Plans", "jobs": "Jobs", "checks": "Audits and unit tests", "files": "Files"}  # fmt: skip
SHARED = {"401", "403", "409", "421", "422"}  # which any endpoint may answer


def page(text: str) -> str:
    """The page with the parts that are made from the document as they must be."""
    document = make_api().openapi()
    parts = {"endpoints": "\n".join(_endpoints(document)), "answers": "\n".join(_types(document))}
    return MARKED.sub(lambda match: f"{match[1]}{in_folder(parts[match[2]], 'reference')}\n{match[3]}", text)


def _endpoints(document: dict[str, Any]) -> Iterator[str]:
    for tag, title in TITLES.items():
        yield f"\n## {title}\n"
        for path, operations in document["paths"].items():
            for method, operation in operations.items():
                if operation["tags"] == [tag]:
                    yield from _operation(document, f"{method.upper()} {path.removeprefix('/api/v1')}", operation)


def _operation(document: dict[str, Any], name: str, operation: dict[str, Any]) -> Iterator[str]:
    yield f"### {operation['summary']}\n\n`{name}`\n\n{' '.join(operation['description'].split())}\n"
    rows = [_row(document, one["name"], one["schema"], one) for one in operation.get("parameters", ())
            if one["in"] == "query"]  # fmt: skip
    if body := operation.get("requestBody"):
        kind = body["content"]["application/json"]["schema"]["$ref"].rpartition("/")[2]
        fields = document["components"]["schemas"][kind]
        rows += [_row(document, key, value, value) for key, value in fields.get("properties", {}).items()]
    if rows:
        yield "\n".join([f"| {'Key of the body' if body else 'Parameter'} | Meaning |\n|---|---|", *rows, ""])
    answers = "; ".join(_answers(operation["responses"]))
    yield f"Answers: {answers}.\n"


def _row(document: dict[str, Any], name: str, schema: dict[str, Any], described: dict[str, Any]) -> str:
    text = described.get("description", "")
    default = schema.get("default")
    shown = "" if default in (None, "", [], {}, False) else f" ({default})"
    choices = _choices(document, schema)
    values = f": {', '.join(f'`{choice}`' for choice in choices)}" if choices else ""
    return f"| `{name}` | {text}{values}{shown} |".replace("||", "\\|\\|")


def _choices(document: dict[str, Any], schema: dict[str, Any]) -> list[str]:
    for one in (schema, *schema.get("anyOf", ())):
        target = document["components"]["schemas"][one["$ref"].rpartition("/")[2]] if "$ref" in one else one
        if "enum" in target:
            return [str(value) for value in target["enum"]]
    return []


def _answers(responses: dict[str, Any]) -> Iterator[str]:
    for status, response in responses.items():
        if status in SHARED:
            continue
        (kind, content), *_ = [*response.get("content", {}).items(), ("", {})]
        schema = content.get("schema", {}).get("$ref", "").rpartition("/")[2]
        what = _named(schema) if schema and schema != "Problem" else kind and f"`{kind}`"
        yield f"{status} {what}".strip() if what and schema != "Problem" else f"{status}"


def _named(schema: str) -> str:
    """A type with a link to where it is described: those of the contract are on the page of JSON lines."""
    page_name = "json.md" if schema in SHOWN else ""
    return f"[{schema}]({page_name}#{JSON_TITLES.get(schema, schema.lower())})"


def _types(document: dict[str, Any]) -> Iterator[str]:
    """The types that are the API's own; those of the contract stand on the page of JSON lines."""
    schemas = document["components"]["schemas"]
    for name in sorted(_own_answers(document)):
        fields = schemas[name].get("properties", {})
        yield f"\n### {name}\n\n{' '.join(schemas[name].get('description', '').split())}\n"
        rows = [
            f"| `{key}` | {value.get('description', '')}{_link(value, document)} |" for key, value in fields.items()
        ]
        yield "\n".join(["| Key | Meaning |\n|---|---|", *rows])


def _link(schema: dict[str, Any], document: dict[str, Any]) -> str:
    names = re.findall(r"#/components/schemas/(\w+)", repr(schema))
    own = [name for name in names if name in _own_answers(document)]
    return f": [{own[0]}](#{own[0].lower()})" if own else ""


def _own_answers(document: dict[str, Any]) -> set[str]:
    """The schemas of answers, and of what is in them, that the API declares itself."""
    schemas, seen = document["components"]["schemas"], set[str]()
    waiting = re.findall(r"#/components/schemas/(\w+)", repr([
        operation["responses"] for operations in document["paths"].values() for operation in operations.values()
    ]))  # fmt: skip
    while waiting:
        name = waiting.pop()
        if name not in seen and name not in SHOWN:
            seen.add(name)
            waiting += re.findall(r"#/components/schemas/(\w+)", repr(schemas[name]))
    return {name for name in seen if "properties" in schemas[name]}


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
