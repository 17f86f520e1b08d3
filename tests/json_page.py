"""The tables of docs/reference/json.md, made from the contract: `python -m tests.json_page` writes them anew."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

from mergeplan.planner.contract import adoption, base, catalog, history, lines, physical, plan, result, schedule, tables
from mergeplan.planner.contract.base import Data
from mergeplan.planner.contract.wire import LINES
from tests.doc_links import in_folder

PAGE = Path(__file__).parent.parent / "docs" / "reference" / "json.md"
MARKED = re.compile(r"(<!-- keys: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)
TITLES = {"PlanView": "plan", "ModelChange": "model", "RestatementView": "restatement", "TableDifference": "tables",
          "CatalogView": "catalog", "CatalogModelRow": "a-model-of-the-catalog",
          "Schedule": "schedule", "ScheduledModel": "a-model-of-a-schedule"}  # fmt: skip
SHOWN: dict[str, type[Data]] = {
    kind.__name__: kind
    for module in (adoption, base, catalog, history, lines, physical, plan, result, schedule, tables)
    for kind in vars(module).values()
    if isinstance(kind, type) and issubclass(kind, Data) and kind is not Data
}


def page(text: str) -> str:
    """The page with the tables as they must be."""
    return MARKED.sub(lambda match: f"{match[1]}{in_folder(_table(match[2]), 'reference')}\n{match[3]}", text)


def _table(name: str) -> str:
    if name == "Others":
        return "\n".join(f"\n### {kind}\n\n{_doc_sentence(SHOWN[kind])}\n\n{_table(kind)}" for kind in _others())
    if name == "lines":
        head, rows = "| `event` | Keys | When |\n|---|---|---|", [_line(kind) for kind in LINES[:-1]]
    else:
        head, rows = "| Key | Meaning |\n|---|---|", [f"| `{key}` | {told} |" for key, told in _keys(SHOWN[name])]
    return "\n".join([head, *rows])


def _line(kind: type[Data]) -> str:
    keys = [
        f"`{key}`" if kind.__name__ == "TableDiffLine" else f"`{key}`: {told}"
        for key, told in _keys(kind)
        if key != "event"
    ]
    return f"| `{kind.model_fields['event'].default}` | {'<br>'.join(keys)} | {_doc_sentence(kind)} |"


def _doc_sentence(kind: type[Data]) -> str:
    return " ".join((kind.__doc__ or "").split())


def _others() -> list[str]:
    """The objects without a place of their own on the page."""
    return sorted(kind for kind in SHOWN if not kind.endswith("Line") and kind not in TITLES)


def _keys(kind: type[Data]) -> Iterator[tuple[str, str]]:
    """Each key of an object and what it means, with a link to what it holds."""
    for name, field in kind.model_fields.items():
        if name == "event":
            continue
        told = ("true: " if field.annotation is bool and name != "ok" else "") + (field.description or "")
        held = [part.__name__ for part in _parts(field.annotation) if isinstance(part, type) and issubclass(part, Data)]
        told += "".join(f" ([{kind}](#{TITLES.get(kind, kind.lower())}))" for kind in held if "(#plan)" not in told)
        yield field.serialization_alias or name, told


def _parts(annotation: object) -> Iterator[object]:
    yield annotation
    for arg in get_args(annotation):
        yield from _parts(arg)


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text()))
