"""Which models a selector of a scheduler means, such as `tag:heavy`. Standard library only."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from fnmatch import fnmatchcase
from typing import Protocol

FIELDS = ("tag", "owner", "kind")


class SelectorError(ValueError):
    """A selector that cannot be read."""


class SelectableModel(Protocol):
    """What of a model selectors look at."""

    @property
    def name(self) -> str:
        """The name."""

    @property
    def kind(self) -> str:
        """The kind, in capitals."""

    @property
    def owner(self) -> str:
        """The owner."""

    @property
    def tags(self) -> tuple[str, ...]:
        """The tags."""

    @property
    def parents(self) -> tuple[str, ...]:
        """The models that it reads."""


def select_models(models: Mapping[str, SelectableModel], selector: str) -> frozenset[str]:
    """Return the names of the models that a selector selects; raise SelectorError for an invalid one.

    A selector is a name or glob, `tag:x`, `owner:x` or `kind:x`. `+` before it adds what those models read, `+` after
    it what reads them. A model that a merge has removed is not selected.
    """
    text = selector.strip()
    upstream, downstream = text.startswith("+"), text.endswith("+")
    core = text.removeprefix("+").removesuffix("+")
    field, colon, value = core.partition(":")
    if not core or (colon and (field not in FIELDS or not value)):
        fields = ", ".join(f"{name}:x" for name in FIELDS)
        raise SelectorError(f"`{selector}` is no selector: write a model's name, a glob, or one of {fields}.")
    names = {model.name for model in models.values() if _matches(model, field if colon else "", value or core)}
    selected = set(names)
    if upstream:
        selected |= _reach(names, {model.name: model.parents for model in models.values()})
    if downstream:
        selected |= _reach(names, _children(models))
    return frozenset(selected)


def find_unmatched(models: Mapping[str, SelectableModel], selectors: Iterable[str]) -> tuple[str, ...]:
    """Return the selectors that select no model: misspelt ones, and those of models that a merge has removed."""
    return tuple(selector for selector in selectors if not select_models(models, selector))


def _matches(model: SelectableModel, field: str, value: str) -> bool:
    if field == "tag":
        return any(fnmatchcase(tag, value) for tag in model.tags)
    if field == "owner":
        return fnmatchcase(model.owner, value)
    if field == "kind":
        return fnmatchcase(model.kind, value.upper())
    return fnmatchcase(model.name, value)


def _children(models: Mapping[str, SelectableModel]) -> Mapping[str, Collection[str]]:
    children: dict[str, list[str]] = {name: [] for name in models}
    for model in models.values():
        for parent in model.parents:
            children.setdefault(parent, []).append(model.name)
    return children


def _reach(names: Iterable[str], edges: Mapping[str, Collection[str]]) -> set[str]:
    reached: set[str] = set()
    frontier = list(names)
    while frontier:
        for name in edges.get(frontier.pop(), ()):
            if name not in reached:
                reached.add(name)
                frontier.append(name)
    return reached
