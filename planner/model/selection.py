"""Selectors of models: names, globs, tags and git, extended along the graph and combined as sets.

a.b   a.*   tag:x   git:main        one or several models
+x   x+   +x+                       and all that they read; and all that reads them
x & y   x | y   ^x   (...)          in both; in either; all but; first what is in brackets
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from fnmatch import fnmatchcase

from mergeplan.planner.errors import RequestError
from mergeplan.planner.model.graph import Graph

Changed = Callable[[str], frozenset[str]]  # a git ref -> the models whose files differ from it
CATALOG = r"(?<![\w.-]){catalog}\.(?=[\w*?]+\.[\w*?])"
HINT = "Name models, globs or `tag:` and a tag; `+x`, `x+`, `&`, `|`, `^` and brackets combine them."
SHOWN = 200  # characters of a selector in a sentence
DEEPEST = 50  # brackets and `^` within each other
_TOKEN = re.compile(r"\s*([()&|^]|[^()&|^\s]+)")


def select(graph: Graph, selectors: Iterable[str], changed_models: Changed | None = None) -> frozenset[str]:
    """Return the models that any selector names; raise RequestError for an invalid part, or one of no model."""
    chosen: frozenset[str] = frozenset()
    for selector in selectors:
        matches = _Selector(graph, selector, changed_models).all()
        if not matches:
            raise RequestError(f"`{selector}` selects no model.", hint=HINT)
        chosen |= matches
    return chosen


def strip_default_catalog(selector: str, catalog: str) -> str:
    """Return a selector without the default catalog in its names: `lake.shop.orders` becomes `shop.orders`."""
    return re.sub(CATALOG.format(catalog=re.escape(catalog)), "", selector, flags=re.IGNORECASE)


@dataclass
class _Selector:
    """One selector, read from left to right: `^` binds closest, then `&`, then `|`."""

    graph: Graph
    selector: str
    changed: Changed | None

    def __post_init__(self) -> None:
        self._tokens = [match[1] for match in _TOKEN.finditer(self.selector)]
        self._depth = 0

    def all(self) -> frozenset[str]:
        models = self._parse_union()
        if self._tokens:
            raise self._selector_error(f"`{self._tokens[0]}` is not expected there")
        return models

    def _parse_union(self) -> frozenset[str]:
        models = self._parse_intersection()
        while self._take_token("|"):
            models |= self._parse_intersection()
        return models

    def _parse_intersection(self) -> frozenset[str]:
        models = self._parse_operand()
        while self._take_token("&"):
            models &= self._parse_operand()
        return models

    def _parse_operand(self) -> frozenset[str]:
        self._depth += 1
        if self._depth > DEEPEST:
            raise self._selector_error(f"more than {DEEPEST} brackets or `^` are nested")
        models = self._read_one()
        self._depth -= 1
        return models

    def _read_one(self) -> frozenset[str]:
        if self._take_token("^"):
            return frozenset(self.graph.models) - self._parse_operand()
        if not self._tokens:
            raise self._selector_error("a name is missing")
        upward = self._tokens[0] == "+" and len(self._tokens) > 1 and bool(self._tokens.pop(0))
        if not self._take_token("("):
            return self._extend_selection(self._parse_word(), upward, False)
        models = self._parse_union()
        if not self._take_token(")"):
            raise self._selector_error("a bracket is not closed")
        return self._extend_selection(models, upward, self._take_token("+"))

    def _parse_word(self) -> frozenset[str]:
        word = self._tokens.pop(0)
        if word in "()&|+":
            raise self._selector_error(f"a name is missing before `{word}`" if word != "+" else "a name is missing")
        prefix, colon, argument = word.partition(":")
        # `tag:+x` is an older spelling
        up, down = word.startswith("+") or argument.startswith("+"), word.endswith("+")
        prefix = prefix.removeprefix("+").lower()
        core = (argument if colon else word).removeprefix("+").removesuffix("+")
        if colon and prefix not in ("tag", "git"):
            raise self._selector_error(f"`{prefix}:` is not known")
        if prefix == "git" and colon:
            if self.changed is None:
                raise self._selector_error("`git:` cannot be used here")
            if not core:
                raise self._selector_error("`git:` needs a branch")
            return self._extend_selection(self.changed(core) & self.graph.models.keys(), up, down)
        prefix, models = prefix if colon else "", self.graph.models
        matches = frozenset(n for n, model in models.items() if _is_match(prefix, core.lower(), n, model.metadata.tags))
        if not matches:
            tags = {tag for model in models.values() for tag in model.metadata.tags}
            # a mistyped name may lack its schema
            names = sorted(tags if prefix else models)
            by_word = {last: name for name in names for last in (name.lower().rpartition(".")[2], name.lower())}
            near = get_close_matches(core.lower(), by_word, n=1, cutoff=0.75)
            hint = f"Did you mean `{'tag:' if colon else ''}{by_word[near[0]]}`?" if near else HINT
            raise RequestError(f"`{word}` selects no model.", hint=hint)
        return self._extend_selection(matches, up, down)

    def _extend_selection(self, names: frozenset[str], up: bool, down: bool) -> frozenset[str]:
        above = self.graph.upstream(names) if up else frozenset()
        return names | above | (self.graph.downstream(names) if down else frozenset())

    def _take_token(self, token: str) -> bool:
        if self._tokens and self._tokens[0] == token:
            self._tokens.pop(0)
            return True
        return False

    def _selector_error(self, why: str) -> RequestError:
        shown = self.selector if len(self.selector) <= SHOWN else f"{self.selector[:SHOWN]}..."
        return RequestError(f"`{shown}` is not a valid selector: {why}.", hint=HINT)


def is_selected(selector: str, model_name: str, tags: tuple[str, ...]) -> bool:
    """Return True if a name, a glob or `tag:x` is this model's; for rules that are about each model by itself."""
    prefix, colon, core = selector.strip().lower().rpartition(":")
    return _is_match(prefix, core, model_name, tags) if not colon or prefix == "tag" else False


def _is_match(prefix: str, core: str, model_name: str, tags: tuple[str, ...]) -> bool:
    if prefix == "tag":
        return any(fnmatchcase(tag.lower(), core) for tag in tags)
    return fnmatchcase(model_name, core)
