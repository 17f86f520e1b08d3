"""The catalog with its search, a model, and the columns that nothing needs. Pure."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from typing import NamedTuple

from mergeplan.planner.catalog.catalog import Catalog
from mergeplan.planner.site.calendar_strip import draw_strip
from mergeplan.planner.site.neighbourhood import draw_neighbourhood
from mergeplan.planner.ui.addresses import search_address
from mergeplan.planner.ui.graph_view import CatalogGraph, ColumnGraph, column_graph, graph_of_catalog, schema_of
from mergeplan.planner.ui.render import Frame, render
from mergeplan.planner.ui.search import SearchIndex

PAGE_SIZE = 100
CHOICES_MAX = 1_000  # names that a field offers
TREE_MAX = 400  # models that the tree names


@dataclass(frozen=True)
class VersionRow:
    version: str
    table: str
    environments: tuple[str, ...]


@dataclass(frozen=True)
class PlanRow:
    id: str
    environment: str
    state: str
    at: str
    address: str


@dataclass(frozen=True)
class AuditResultRow:
    """One result of an audit; `job` is the address of the job that ran it."""

    name: str
    model: str
    ok: bool
    count: int
    at: str
    job: str = ""
    sample: object = None


@dataclass(frozen=True)
class RunRow:
    """A job that computed a model; `address` is that of the job."""

    title: str
    address: str
    state: str
    rows: int
    seconds: float
    at: str


@dataclass(frozen=True)
class ModelActivity:
    versions: tuple[VersionRow, ...] = ()
    audits: tuple[AuditResultRow, ...] = ()
    plans: tuple[PlanRow, ...] = ()
    runs: tuple[RunRow, ...] = ()


class Leaf(NamedTuple):
    """A model in the tree, by its name within the schema."""

    model: str
    label: str


@dataclass(frozen=True)
class Branch:
    """A schema in the tree; without leaves where it is only counted."""

    schema: str
    count: int
    leaves: tuple[Leaf, ...] = ()
    is_open: bool = False


@dataclass(frozen=True)
class CatalogPages:
    catalog: Catalog

    @cached_property
    def index(self) -> SearchIndex:
        return SearchIndex(self.catalog)

    @cached_property
    def graph(self) -> CatalogGraph:
        return graph_of_catalog(self.catalog)

    @cached_property
    def columns(self) -> ColumnGraph:
        return column_graph(self.catalog)

    def listing(self, frame: Frame, query: str = "", number: int = 1, *, counts_unused: bool = True) -> str:
        """Return the page of the models that a search matches, or of all models.

        Where unused columns are not counted, since that takes all queries, the page loads the link to them.
        """
        page = self.index.find(query, number, PAGE_SIZE)
        page_link: Callable[[int], str] = lambda other: search_address(query, other, frame.base)  # noqa: E731
        values = {"query": query, "page": page, "page_link": page_link, "tree": self.tree(), "current": ""}
        values |= {"model_names": self.model_names, "counts_unused": counts_unused}
        return render("catalog.html", frame, here="Catalog", catalog=self.catalog, **values)

    def model(self, frame: Frame, name: str, activity: ModelActivity) -> str:
        model = self.catalog.models[name]
        values = {
            "model": model,
            "drawn": draw_neighbourhood(self.catalog.models, name),
            "strip": draw_strip(model, self.catalog.made_at),
            "versions": activity.versions,
            "audits": activity.audits,
            "plans": activity.plans,
            "runs": activity.runs,
            "tree": self.tree(name),
            "current": name,
        }
        return render("model_page.html", frame, here="Catalog", catalog=self.catalog, **values)

    def list_unused(self, frame: Frame) -> str:
        return render("unused_page.html", frame, here="Catalog", catalog=self.catalog)

    def link_unused(self, frame: Frame) -> str:
        return render("unused_link.html", frame, catalog=self.catalog)

    def tree(self, current: str = "") -> tuple[Branch, ...]:
        """Return the models by schema; of a large catalog only those of the current model's schema are named."""
        is_small = len(self.catalog.models) <= TREE_MAX
        branches = []
        for schema, leaves in self._leaves.items():
            is_open = schema == schema_of(current) if current else is_small
            shown = leaves[:TREE_MAX] if is_small or is_open else ()
            branches.append(Branch(schema, len(leaves), shown, is_open))
        return tuple(branches)

    @cached_property
    def _leaves(self) -> Mapping[str, tuple[Leaf, ...]]:
        leaves = (Leaf(name, name.rpartition(".")[2]) for name in sorted(self.catalog.models))
        return {schema: tuple(group) for schema, group in groupby(leaves, key=lambda leaf: schema_of(leaf.model))}

    @cached_property
    def model_names(self) -> tuple[str, ...]:
        return tuple(sorted(self.catalog.models))[:CHOICES_MAX]
