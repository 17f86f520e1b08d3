"""The search of the catalog: words over names, columns, descriptions, owners, kinds and tags."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from mergeplan.planner.catalog.catalog import Catalog, CatalogModel

FIELDS = ("owner", "tag", "kind", "schema", "column")  # `owner:ann` looks at the owner alone
NAME, START, PART, COLUMN, TEXT = range(5)  # how well a word fits, best first


@dataclass(frozen=True)
class Hit:
    model: CatalogModel
    columns: tuple[str, ...] = ()


@dataclass(frozen=True)
class HitPage:
    hits: tuple[Hit, ...]
    total: int
    number: int  # of the page, from 1
    size: int

    @property
    def pages(self) -> int:
        return max(1, -(-self.total // self.size))

    @property
    def first(self) -> int:
        return (self.number - 1) * self.size + 1

    @property
    def last(self) -> int:
        return self.first + len(self.hits) - 1


@dataclass(frozen=True)
class _Entry:
    """The searched texts of a model, in lower case."""

    model: CatalogModel
    name: str
    fields: Mapping[str, str]

    @cached_property
    def columns(self) -> tuple[tuple[str, str, str], ...]:
        """The name of each column, its name in lower case, and its description."""
        return tuple((c.name, c.name.lower(), c.description.lower()) for c in self.model.columns or ())

    @cached_property
    def text(self) -> str:
        return " ".join((*self.fields.values(), self.model.declared.metadata.description.lower()))

    @cached_property
    def column_text(self) -> str:
        return " ".join(f"{low} {about}" for _, low, about in self.columns)


@dataclass(frozen=True)
class SearchIndex:
    """The searchable texts of every model of a catalog; built once and searched often."""

    catalog: Catalog

    @cached_property
    def _search_entries(self) -> tuple[_Entry, ...]:
        return tuple(_make_entry(model) for model in sorted(self.catalog.models.values(), key=lambda model: model.name))

    def find(self, query: str, number: int, size: int) -> HitPage:
        """Return the models that the whole query fits, the best first; a page past the end is the last one."""
        hits = self._rank_hits(query)
        number = max(1, min(number, -(-len(hits) // size)))
        return HitPage(tuple(hits[(number - 1) * size : number * size]), len(hits), number, size)

    def _rank_hits(self, query: str) -> Sequence[Hit]:
        words = query.lower().split()
        if not words:
            return [Hit(entry.model) for entry in self._search_entries]
        ranked: list[tuple[int, str, Hit]] = []
        tests = [_make_test(word) for word in words]
        for entry in self._search_entries:
            ranks = [test(entry) for test in tests]
            fits = [rank for rank in ranks if rank is not None]
            if len(fits) == len(ranks):
                ranked.append((sum(fits), entry.name, Hit(entry.model, _matching_columns(entry, words))))
        return [hit for _, _, hit in sorted(ranked, key=lambda row: row[:2])]


def _make_entry(model: CatalogModel) -> _Entry:
    declared = model.declared
    fields = {
        "owner": declared.metadata.owner.lower(),
        "tag": " ".join(declared.metadata.tags).lower(),
        "kind": f"{model.kind} {model.kind.replace('_', ' ')} {declared.materialization}".lower(),
        "schema": model.name.rpartition(".")[0],
    }
    return _Entry(model, model.name.lower(), fields)


def _make_test(word: str) -> Callable[[_Entry], int | None]:
    """Return a function that ranks how well a word fits a model; it returns None if it does not."""
    field, colon, value = word.partition(":")
    if colon and value and field in FIELDS:
        if field == "column":
            return lambda entry: COLUMN if any(value in low for _, low, _ in entry.columns) else None
        return lambda entry: TEXT if value in entry.fields[field] else None
    return lambda entry: _rank_entry(entry, word)


def _rank_entry(entry: _Entry, word: str) -> int | None:
    if word in entry.name:
        last = entry.name.rpartition(".")[2]
        return NAME if word in (entry.name, last) else START if last.startswith(word) else PART
    if word in entry.column_text:
        return COLUMN
    return TEXT if word in entry.text else None


def _matching_columns(entry: _Entry, words: Iterable[str]) -> tuple[str, ...]:
    column_words = [word.removeprefix("column:") for word in words]
    return tuple(
        name for name, low, about in entry.columns if any(word in low or word in about for word in column_words)
    )
