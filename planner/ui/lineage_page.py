"""The lineage as a page: a drawing whose boxes are links, and the same as a list. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from mergeplan.planner.errors import RequestError
from mergeplan.planner.project.lineage import Node
from mergeplan.planner.site.drawing import Drawing
from mergeplan.planner.site.filters import COLUMN_WORDS, kind_words
from mergeplan.planner.ui.addresses import lineage_address
from mergeplan.planner.ui.catalog_pages import CatalogPages
from mergeplan.planner.ui.graph_view import DEPTH_MOST, GraphBox, GraphView, GraphWish
from mergeplan.planner.ui.layout import Layout, Size, Spot, lay_out, turn_layout
from mergeplan.planner.ui.render import Frame, name_category, render
from mergeplan.planner.wording import count_noun, shorten_name

SIZE = Size(214, 44, 56, 12, 6)
SMALL_SIZE = Size(170, 44, 12, 34, 6)  # for a small screen, which the graph leads down
TURNED_SIZE = Size(SMALL_SIZE.height, SMALL_SIZE.width, SMALL_SIZE.gap_y, SMALL_SIZE.gap_x, SMALL_SIZE.edge)
CHARACTER = 7.3  # width of a character of a label
ROWS_MOST = 300  # of the list
NEAR_MOST = 10
Word = Annotated[str, Field(max_length=500, pattern=r"^[^\x00-\x1f\x7f]*$")]
Steps = Annotated[int, Field(ge=0, le=DEPTH_MOST)]


class LineageQuery(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    focus: Word = ""
    up: Steps = 2
    down: Steps = 2
    column: Word = ""
    select: Word = ""
    fold: Literal["auto", "all", "none"] = "auto"
    open: tuple[Word, ...] = Field(default=(), max_length=200)
    plan: Word = ""

    def wish(self, categories: Mapping[str, str]) -> LineageWish:
        """Return the wish of the query; `categories` are those of the plan."""
        focus, column = self.focus.strip().lower(), self.column.strip().lower()
        graph = GraphWish(focus, self.up, self.down, self.select, self.fold, self.open)
        return LineageWish(graph, column, self.plan, categories)


@dataclass(frozen=True)
class LineageWish:
    """A reader's selection: a part of the graph, a column of the focus, the changes of a plan."""

    graph: GraphWish
    column: str = ""
    plan: str = ""
    categories: Mapping[str, str] = field(default_factory=dict)  # of the plan: model -> category
    base: str = ""  # of the addresses

    def address(self, graph: GraphWish, column: str = "") -> str:
        default = GraphWish()
        values: dict[str, object] = {
            "focus": graph.focus,
            "up": graph.up if graph.up != default.up else "",
            "down": graph.down if graph.down != default.down else "",
            "column": column,
            "select": graph.selector,
            "fold": graph.fold if graph.fold != default.fold else "",
            "open": graph.opened,
            "plan": self.plan,
        }
        return lineage_address(values, self.base)

    def focus_address(self, name: str) -> str:
        """Return the address of the same page with a model in the middle; its selector is dropped."""
        return self.address(replace(self.graph, focus=name, selector=""))


@dataclass(frozen=True)
class BoxLink:
    name: str
    x: int
    y: int
    label: str
    about: str
    spoken: str
    style: str
    address: str


@dataclass(frozen=True)
class ListRow:
    """A model of the list; `names` are its parents, or its columns that are in the lineage."""

    name: str
    kind: str
    steps_text: str
    names: tuple[str, ...]
    category: str = ""


def lineage_page(pages: CatalogPages, frame: Frame, wish: LineageWish) -> str:
    wish = replace(wish, base=frame.base)
    try:
        view, columns = _find_view(pages, wish)
    except RequestError as error:
        near = [hit.model.name for hit in pages.index.find(wish.graph.focus, 1, NEAR_MOST).hits]
        values = {"error": f"{error.message} {error.hint}".strip(), "near": near if wish.graph.focus else ()}
        return _render_page(pages, frame, wish, view=None, opened=(), **values)
    across = lay_out([box.key for box in view.boxes], view.edges, SIZE)
    down = turn_layout(lay_out([box.key for box in view.boxes], view.edges, TURNED_SIZE))
    drawn, drawn_down = (
        _draw(pages, wish, view, columns, layout, size) for layout, size in ((across, SIZE), (down, SMALL_SIZE))
    )
    rows = tuple(_make_row(pages, wish, view, columns, name) for name in view.models[:ROWS_MOST])
    opened = [
        (schema, wish.address(replace(wish.graph, opened=tuple(s for s in wish.graph.opened if s != schema))))
        for schema in wish.graph.opened
    ]
    return _render_page(
        pages, frame, wish, view=view, drawn=drawn, drawn_down=drawn_down, rows=rows, opened=opened, error=""
    )


def _render_page(pages: CatalogPages, frame: Frame, wish: LineageWish, **values: object) -> str:
    options = {"wish": wish.graph, "column": wish.column, "plan": wish.plan, "focus_link": wish.focus_address}
    focus = pages.catalog.models.get(wish.graph.focus)
    column_names = tuple(one.name for one in (focus.columns or ())) if focus else ()
    names = {"model_names": pages.model_names, "column_names": column_names}
    values = options | values | names | {"catalog": pages.catalog}
    return render("lineage.html", frame, here="Lineage", **values)


def _find_view(pages: CatalogPages, wish: LineageWish) -> tuple[GraphView, Mapping[str, tuple[str, ...]]]:
    graph = wish.graph
    if wish.column:
        if not graph.focus:
            raise RequestError("A column needs its model.", hint="Name the model, too.")
        view = pages.columns.view(pages.graph, Node(graph.focus, wish.column), graph.up, graph.down)
        return view.graph, view.columns
    return pages.graph.view(graph, wish.categories if wish.plan else None), {}


def _draw(
    pages: CatalogPages,
    wish: LineageWish,
    view: GraphView,
    columns: Mapping[str, tuple[str, ...]],
    layout: Layout,
    size: Size,
) -> Drawing[BoxLink]:
    boxes = (_make_box(pages, wish, box, columns, layout.spots[box.key]) for box in view.boxes)
    label_max = int((size.width - 22) / CHARACTER)
    shown = tuple(replace(box, label=shorten_name(box.name, label_max)) for box in boxes)
    curves = tuple(layout.paths[edge] for edge in view.edges)
    return Drawing(shown, curves, layout.width, layout.height, size.width, size.height)


def _make_box(
    pages: CatalogPages, wish: LineageWish, box: GraphBox, columns: Mapping[str, tuple[str, ...]], spot: Spot
) -> BoxLink:
    label, x, y = box.name, spot.x, spot.y
    if box.is_folded:
        about = count_noun(len(box.members), "model")
        address = wish.address(replace(wish.graph, opened=(*wish.graph.opened, box.name)))
        return BoxLink(box.name, x, y, label, about, f"Schema {box.name}, {about}: open", "folded", address)
    kind = _model_kind(pages, box.name)
    about = _columns_text(columns[box.name]) if box.name in columns else kind_words(kind)
    style = kind.replace(" ", "-")
    if category := wish.categories.get(box.name):
        style, about = category, name_category(category)
    if box.name == wish.graph.focus:
        style = "focus"
    return BoxLink(box.name, x, y, label, about, f"{box.name}, {about}", style, wish.focus_address(box.name))


def _make_row(
    pages: CatalogPages, wish: LineageWish, view: GraphView, columns: Mapping[str, tuple[str, ...]], name: str
) -> ListRow:
    steps = next((box.steps for box in view.boxes if name in box.members), 0)
    names = tuple(COLUMN_WORDS.get(c, c) for c in columns.get(name, ())) if wish.column else pages.graph.parents[name]
    steps_text = "focus" if not steps else f"{count_noun(abs(steps), 'step')} {'up' if steps < 0 else 'down'}"
    return ListRow(name, _model_kind(pages, name), steps_text, names, wish.categories.get(name, ""))


def _columns_text(columns: tuple[str, ...]) -> str:
    text = ", ".join(COLUMN_WORDS.get(column, column) for column in columns)
    return text if len(text) <= 30 else f"{text[:29]}…"


def _model_kind(pages: CatalogPages, name: str) -> str:
    model = pages.catalog.models.get(name)
    return model.kind if model else "no model"
