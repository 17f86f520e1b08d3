"""The case book: edits of small projects as data files, each with the verdict that is right over any rows.

A file of `cases/` holds a theme: `readers`, named sets of models that no edit touches, and `cases`; what these have in
common is said once as `usual`. A case gives the models `before` and `after` (a bare query stands for `m.base`), as what
they are edited (`category`), and what must be `recomputed`: the smallest set that is sound. Whatever a model of `after`
does not name stays as it was.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from mergeplan.planner.model.checks import AuditCall
from mergeplan.planner.model.kind import Kind
from mergeplan.planner.model.model import Column, Model
from mergeplan.planner.plan.change import Category, Change
from tests.planner.building import model
from tests.planner.sample import SOURCES

FOLDER = Path(__file__).parent / "cases"
EDITED = "m.base"  # the model that a case edits unless it says otherwise
START = datetime(2026, 1, 1, tzinfo=UTC)
FILE_KEYS = {"about", "usual", "readers", "cases"}
CASE_KEYS = {
    "name", "before", "after", "readers", "category", "recomputed", "added", "altered", "removed", "volatile",
    "data_equal", "not_yet",
}  # fmt: skip
MODEL_KEYS = {
    "sql", "kind", "time_column", "owner", "description", "tags", "lookback", "stamp", "columns", "audits", "grain",
}  # fmt: skip
Models = dict[str, Model]


@dataclass(frozen=True)
class Case:
    """One edit, and what is right to make of it.

    `columns` are (added, altered, removed) of the edited model, None where a case does not say. `volatile` models may
    come out otherwise each time, or Spark cannot run them, and they are not run; `data_equal` ones differ over other
    rows than the sample's, or by how they are filled. `not_yet` says why we recompute too much here.
    """

    name: str
    theme: str
    before: Models
    after: Models
    category: Mapping[str, Category]
    recomputed: frozenset[str]
    columns: tuple[frozenset[str], frozenset[str], frozenset[str]] | None
    volatile: frozenset[str]
    data_equal: Mapping[str, str]
    not_yet: str

    @property
    def edited_names(self) -> frozenset[str]:
        """The models whose text differs, and those that came or went."""
        both = self.before.keys() | self.after.keys()
        return frozenset(name for name in both if self.after.get(name) != self.before.get(name))


@cache
def cases() -> tuple[Case, ...]:
    """Every case of every file; ValueError where a file is not as it must be."""
    book = tuple(case for path in sorted(FOLDER.glob("*.yaml")) for case in read(path))
    names = [case.name for case in book]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise ValueError(f"two cases have one name: {twice}")
    return book


def external_models() -> Models:
    """The tables that every case reads, with the types that their sample rows have."""
    return {
        name: Model(
            name, Kind.EXTERNAL, "external_models.yaml", 1, "", columns=tuple(Column(*c) for c in source.columns)
        )
        for name, source in SOURCES.items()
    }


def tables_recomputed(changes: Mapping[str, Change]) -> frozenset[str]:
    """The models whose tables a plan computes anew."""
    return frozenset(name for name, change in changes.items() if change.recomputed)


def downstream(case: Case) -> frozenset[str]:
    """What a tool recomputes that compares texts: the edited models and everything that reads them."""
    reached = set(case.edited_names)
    while more := {n for n, m in case.after.items() if n not in reached and reached.intersection(m.depends_on)}:
        reached |= more
    return frozenset(name for name in reached & case.after.keys() if case.after[name].kind.is_stored)


class _NoKeyTwice(yaml.SafeLoader):
    """YAML in which a key that stands twice in one mapping is an error and not the last one's."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        keys = [key.value for key, _ in node.value]
        if twice := sorted({key for key in keys if keys.count(key) > 1}):
            raise ValueError(f"{twice} twice{node.start_mark}")
        return super().construct_mapping(node, deep)


def read(path: Path) -> list[Case]:
    """The cases of one file; ValueError where it is not as it must be."""
    content = yaml.load(path.read_text(encoding="utf-8"), _NoKeyTwice)  # noqa: S506 # a SafeLoader
    _only(content, FILE_KEYS, path.name)
    readers, usual = content.get("readers", {}), content.get("usual", {})
    return [_case(path.stem, {**usual, **raw}, readers) for raw in content["cases"]]


def _case(theme: str, raw: dict[str, Any], readers: dict[str, Any]) -> Case:
    name = raw["name"]
    _only(raw, CASE_KEYS, name)
    chosen = raw.get("readers", "default" if "default" in readers else {})
    texts = dict(readers[chosen] if isinstance(chosen, str) else chosen)
    if None in texts.values():
        raise ValueError(f"{name}: a reader has no query; a comma in braces needs quotes around it")
    before = texts | _names_to_values(raw["before"])
    after = {
        model_name: text for model_name, text in (before | _names_to_values(raw["after"])).items() if text is not None
    }
    sources = external_models()
    case = Case(
        name=name,
        theme=theme,
        before=sources
        | {model_name: _model(model_name, text) for model_name, text in before.items() if text is not None},
        after=sources | {model_name: _model(model_name, text) for model_name, text in after.items()},
        category={model_name: Category(said) for model_name, said in _names_to_values(raw["category"]).items()},
        recomputed=_names(raw["recomputed"]),
        columns=_columns(raw),
        volatile=_names(raw.get("volatile", "")),
        data_equal=raw.get("data_equal", {}),
        not_yet=raw.get("not_yet", ""),
    )
    _check(case)
    return case


def _check(case: Case) -> None:
    known = case.after.keys() - SOURCES.keys()
    said = case.recomputed | case.volatile | case.category.keys() | case.data_equal.keys()
    if not said <= known:
        raise ValueError(f"{case.name}: there is no {sorted(said - known)}")
    if not case.edited_names:
        raise ValueError(f"{case.name}: nothing is edited")
    if odd := [name for name in case.recomputed if not case.after[name].kind.is_stored]:
        raise ValueError(f"{case.name}: {odd} hold no rows and are never recomputed")


def _only(content: Mapping[str, Any], keys: set[str], where: str) -> None:
    if unknown := content.keys() - keys:
        raise ValueError(f"{where}: unknown {sorted(unknown)}")


def _names_to_values(value: Any) -> dict[str, Any]:
    return {EDITED: value} if isinstance(value, str) else value


def _names(text: str) -> frozenset[str]:
    return frozenset(name if "." in name else f"m.{name}" for name in text.split())


def _columns(raw: Mapping[str, Any]) -> tuple[frozenset[str], frozenset[str], frozenset[str]] | None:
    verbs = ("added", "altered", "removed")
    if not any(verb in raw for verb in verbs):
        return None
    added, altered, removed = (frozenset(raw.get(verb, "").split()) for verb in verbs)
    return added, altered, removed


def _audit(text: str) -> AuditCall:
    """`unique_values(id, d)`, a call of a built-in audit over columns."""
    name, _, columns = text.strip().partition("(")
    return AuditCall(name, (("columns", f"({columns}"),))


def _model(name: str, text: str | dict[str, Any]) -> Model:
    fields: dict[str, Any] = {"sql": text} if isinstance(text, str) else dict(text)
    _only(fields, MODEL_KEYS, name)
    kind = Kind(fields.pop("kind", "FULL"))
    if kind is Kind.INCREMENTAL_BY_TIME_RANGE:
        fields["start"] = START
    for listed in ("tags", "grain"):
        if listed in fields:
            fields[listed] = tuple(fields[listed].split())
    if "audits" in fields:
        fields["audits"] = tuple(map(_audit, fields["audits"].split(";")))
    declared = (column.strip().split(" ", 1) for column in fields.pop("columns", "").split(";") if column)
    columns = tuple(Column(column, type_) for column, type_ in declared)
    return replace(model(name, fields.pop("sql").strip(), kind, **fields), columns=columns)
