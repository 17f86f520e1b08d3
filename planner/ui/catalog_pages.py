"""The catalog with its search, a model, and the columns that nothing needs. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

from mergeplan.planner.catalog.catalog import Catalog, UnusedColumn
from mergeplan.planner.site.calendar_strip import draw_strip
from mergeplan.planner.site.neighbourhood import draw_neighbourhood
from mergeplan.planner.ui.addresses import search_address
from mergeplan.planner.ui.column_view import ColumnGraph, column_graph
from mergeplan.planner.ui.graph_view import CatalogGraph, graph_of_catalog, schema_of
from mergeplan.planner.ui.render import Frame, render
from mergeplan.planner.ui.search import SearchIndex

PAGE_SIZE = 100


@dataclass(frozen=True)
class VersionRow:
    """A version of a model's table, and the environments that show it."""

    version: str
    table: str
    environments: tuple[str, ...]


@dataclass(frozen=True)
class PlanRow:
    """A plan in a list."""

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
class ModelActivity:
    """The facts about a model beside its file and its table."""

    versions: tuple[VersionRow, ...] = ()
    audits: tuple[AuditResultRow, ...] = ()
    plans: tuple[PlanRow, ...] = ()
    costs: str = ""


@dataclass(frozen=True)
class CatalogPages:
    """The pages of one catalog; their inputs are prepared once."""

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

    def listing(self, frame: Frame, query: str = "", number: int = 1) -> str:
        """Return the page of the models that a search matches, or of all models."""
        page = self.index.find(query, number, PAGE_SIZE)
        page_link: Callable[[int], str] = lambda other: search_address(query, other, frame.base)  # noqa: E731
        values = {"query": query, "page": page, "page_link": page_link, "schemas": self._schema_counts}
        return render("catalog.html", frame, here="Catalog", catalog=self.catalog, **values)

    def model(self, frame: Frame, name: str, activity: ModelActivity) -> str:
        model = self.catalog.models[name]
        values = {
            "model": model,
            "drawn": draw_neighbourhood(self.catalog.models, name),
            "strip": draw_strip(model, self.catalog.made_at),
            "unused": self._names_of_unused,
            "versions": activity.versions,
            "audits": activity.audits,
            "plans": activity.plans,
            "costs": activity.costs,
        }
        return render("model_page.html", frame, here="Catalog", catalog=self.catalog, **values)

    def list_unused(self, frame: Frame) -> str:
        groups: dict[str, list[UnusedColumn]] = {}
        for column in self.catalog.unused_columns or ():
            groups.setdefault(column.model, []).append(column)
        values = {"unused_by_model": sorted(groups.items())}
        return render("unused_page.html", frame, here="Catalog", catalog=self.catalog, **values)

    @cached_property
    def _schema_counts(self) -> Sequence[tuple[str, int]]:
        return sorted(Counter(map(schema_of, self.catalog.models)).items())

    @cached_property
    def _names_of_unused(self) -> frozenset[tuple[str, str]]:
        return frozenset((column.model, column.column) for column in self.catalog.unused_columns or ())
