"""lineage and dag from outside: what they print in each form, what they refuse, and that neither starts Spark."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest

from tests.planner.cli.conftest import CommandLine
from tests.planner.cli.test_start import imports_of
from tests.planner.parsing.test_custom_kind import FILE, REPLACE, code
from tests.planner.shop import write_shop

ODD = "MODEL (name shop.odd, kind FULL);\nSELECT id, n FROM raw.stuff"
SPENT = """
shop.total.total
├── made from shop.daily.price
│   └── made from shop.items.price (SEED)
└── its rows
    └── decided by the rows of shop.daily
        ├── decided by shop.items.day (SEED)
        └── decided by the rows of shop.items (SEED)
"""
REACHED = """
shop.items.day (SEED)
├── goes into shop.daily.day
└── decides the rows of shop.daily
    └── decides the rows of shop.total
        └── decides the rows of shop.shown
"""
MERMAID = """
flowchart LR
  subgraph m0["shop.daily"]
    n0["day"]
    n1("its rows")
  end
  subgraph m1["shop.items"]
    n2["day"]
    n3("its rows")
  end
  n2 --> n0
  n2 -.-> n1
  n3 -.-> n1
"""


@pytest.fixture
def shop(offline: CommandLine) -> CommandLine:
    """`mergeplan` in the shop, where no Spark may be started."""
    write_shop(offline.root)
    return offline


def test_a_columns_lineage_is_a_tree_down_to_the_seed(shop: CommandLine) -> None:
    ran = shop("lineage", "shop.total.total")

    assert (ran.code, ran.err, ran.out) == (0, "", SPENT.lstrip())


def test_a_models_lineage_has_a_branch_for_each_column_and_one_for_its_rows(shop: CommandLine) -> None:
    lines = shop("lineage", "SHOP.daily").out.splitlines()

    assert lines[0] == "shop.daily (INCREMENTAL_BY_TIME_RANGE)"
    assert [line[4:] for line in lines if line[:3] in ("├──", "└──")] == ["id", "price", "day", "its rows"]


def test_downstream_is_a_tree_of_what_is_reached(shop: CommandLine) -> None:
    ran = shop("lineage", "shop.items.day", "--downstream")

    assert (ran.code, ran.err, ran.out) == (0, "", REACHED.lstrip())


def test_a_branch_that_comes_again_is_not_told_again(shop: CommandLine) -> None:
    out = shop("lineage", "shop.items", "--downstream").out

    assert out.count("decides the rows of shop.total") == 1
    assert "    └── decides the rows of shop.daily (as above)\n" in out


def test_the_ends_of_lineage_say_that_they_are_ends(shop: CommandLine) -> None:
    assert shop("lineage", "shop.shown.total", "--downstream").out.endswith("\nNothing is made from it.\n")
    assert shop("lineage", "shop.items.id").out.endswith("\nIt is made from nothing else.\n")


def test_a_query_that_is_not_followed_is_told_under_the_tree(shop: CommandLine) -> None:
    shop.write("models/odd.sql", ODD)

    assert shop("lineage", "shop.odd.n").out == (
        "shop.odd.n\n└── perhaps from every column of raw.stuff (no model)\n"
        "`shop.odd` is not followed column by column: the columns of `raw.stuff` are not known.\n"
        "`mergeplan create_external_models` asks Spark for the columns of tables that no file defines.\n"
    )
    assert "perhaps goes into every column of shop.odd" in shop("lineage", "raw.stuff", "--downstream").out


def test_lineage_as_json_is_one_object(shop: CommandLine) -> None:
    (result,) = shop("lineage", "shop.total.total", "--output", "json").lines

    assert {key: result[key] for key in ("event", "ok", "model", "column", "direction", "unfollowed")} == {
        "event": "result", "ok": True, "model": "shop.total", "column": "total", "direction": "upstream",
        "unfollowed": [],
    }  # fmt: skip
    assert {"model": "shop.items", "column": "price", "kind": "SEED"} in result["nodes"]
    made = {"from": {"model": "shop.daily", "column": "price"}, "to": {"model": "shop.total", "column": "total"}}
    rows = {"from": {"model": "shop.daily", "column": None}, "to": {"model": "shop.total", "column": None}}
    assert result["edges"][:2] == [{**made, "how": "made_from"}, {**rows, "how": "decides_rows"}]


def test_lineage_as_json_says_what_is_not_followed(shop: CommandLine) -> None:
    shop.write("models/odd.sql", ODD)

    result = shop("lineage", "shop.odd", "-o", "json").result

    every = {"from": {"model": "raw.stuff", "column": "*"}, "to": {"model": "shop.odd", "column": "*"}}
    assert result["edges"] == [{**every, "how": "every_column"}]
    assert result["nodes"][1] == {"model": "raw.stuff", "column": "*", "kind": None}
    assert result["unfollowed"] == [{"model": "shop.odd", "reason": "the columns of `raw.stuff` are not known"}]


def test_lineage_as_mermaid_frames_each_model(shop: CommandLine) -> None:
    assert shop("lineage", "shop.daily.day", "-o", "mermaid").out == MERMAID.lstrip()


def test_mermaid_is_given_no_sign_that_it_reads_itself(shop: CommandLine) -> None:
    shop.write("models/odd.sql", 'MODEL (name shop.odd, kind FULL);\nSELECT 1 AS `a"]<b>#&`')

    assert 'n0["a#34;]#60;b#62;#35;#38;"]' in shop("lineage", "shop.odd", "-o", "mermaid").out


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ("shop.totl", "There is no model `shop.totl`. Did you mean `shop.total`?"),
        ("shop.total.totl", "`shop.total` has no column `totl`. Did you mean `total`?"),
        ("total", "There is no model `total`. Did you mean `shop.total`?"),
        ("shop.total.", "`shop.total.` ends where a column is expected."),
    ],
)
def test_a_wrong_name_is_refused_with_the_nearest(asked: str, told: str, shop: CommandLine) -> None:
    ran = shop("lineage", asked)

    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith(f"Error: {told}")
    assert shop("lineage", asked, "-o", "json").result["ok"] is False


def test_lineage_without_a_model_is_wrong_usage(shop: CommandLine) -> None:
    ran = shop("lineage")

    assert (ran.code, ran.out) == (2, "")
    assert "Missing argument 'MODEL[.COLUMN]'." in ran.err


def test_dag_takes_its_selection_as_arguments_too(shop: CommandLine) -> None:
    listed = shop("dag", "+shop.daily", "shop.apart").out

    assert listed == "shop.apart (FULL)\nshop.items (SEED)\nshop.daily (INCREMENTAL_BY_TIME_RANGE)  <- shop.items\n"
    assert shop("dag", "--select", "+shop.daily", "--select", "shop.apart").out == listed
    assert shop("dag", "nothing").code == 1


def test_dag_says_of_which_materialization_a_kind_is(shop: CommandLine) -> None:
    shop.edit("models/apart.sql", "kind FULL", "kind CUSTOM (materialization OWN)")
    (shop.root / FILE).parent.mkdir()
    (shop.root / FILE).write_text(code(REPLACE))

    assert "shop.apart (FULL by own)\n" in shop("dag").out


def test_dag_as_json_tells_parents_and_kinds(shop: CommandLine) -> None:
    result = shop("dag", "shop.daily+", "-o", "json").result

    assert [model["name"] for model in result["models"]] == ["shop.daily", "shop.total", "shop.shown"]
    assert result["models"][1]["parents"] == ["shop.daily"]
    assert result["kinds"]["shop.shown"] == "VIEW"


def test_dag_as_mermaid_shows_sources_as_cylinders(shop: CommandLine) -> None:
    assert shop("dag", "+shop.daily", "-o", "mermaid").out == (
        'graph LR\n  m0[("shop.items")]\n  m1["shop.daily"]\n  m0 --> m1\n'
    )


def test_dag_as_html_is_a_page_that_needs_nothing_from_elsewhere(shop: CommandLine) -> None:
    page = shop("dag", "-o", "html").out

    drawing = ElementTree.fromstring(page[page.index("<svg") : page.index("</svg>") + len("</svg>")])  # noqa: S314
    boxes = [group.findall("text")[0].text for group in drawing.findall("g")]
    assert page.startswith("<!doctype html>")
    assert sorted(map(str, boxes)) == ["shop.apart", "shop.daily", "shop.items", "shop.shown", "shop.total"]
    assert len(drawing.findall("path")) == 3
    assert not re.search(r"https?:|//|<script|<link|@import|url\(", page)


def test_dags_boxes_stand_right_of_what_they_read_and_never_on_each_other(shop: CommandLine) -> None:
    shop.write("models/wide.sql", "MODEL (name shop.wide, kind VIEW);\nSELECT i.id FROM shop.items i, shop.total t")
    page = shop("dag", "-o", "html").out

    drawn = re.findall(r'<rect x="(\d+)" y="(\d+)" width="(\d+)".*?<text[^>]*>([^<]+)<', page)
    corner = {name: (int(x), int(y), int(x) + int(wide)) for x, y, wide, name in drawn}
    assert corner["shop.items"][2] < corner["shop.daily"][0] < corner["shop.total"][0] < corner["shop.wide"][0]
    assert len({(x, y) for x, y, _ in corner.values()}) == len(corner) == 6


def test_dag_escapes_what_a_description_says(shop: CommandLine) -> None:
    shop.edit("models/apart.sql", "kind FULL", "kind FULL, description '<script>x</script>'")

    page = shop("dag", "-o", "html").out

    assert "<title>&lt;script&gt;x&lt;/script&gt;</title>" in page


@pytest.mark.parametrize("output", ["text", "json", "mermaid", "html"])
def test_dag_writes_to_a_file_what_it_would_print(output: str, shop: CommandLine) -> None:
    ran = shop("dag", "-o", output, "--to", "graph")

    assert (ran.code, ran.out, ran.err) == (0, "", "")
    assert (shop.root / "graph").read_text(encoding="utf-8") == shop("dag", "-o", output).out


def test_dag_says_when_the_file_cannot_be_written(shop: CommandLine) -> None:
    ran = shop("dag", "--to", "nowhere/graph.html")

    assert (ran.code, ran.out) == (1, "")
    assert ran.err == "Error: `nowhere/graph.html` cannot be used: No such file or directory.\n"


def test_a_project_without_models_has_an_empty_graph(shop: CommandLine) -> None:
    for path in (shop.root / "models").iterdir():
        path.unlink()

    assert shop("dag").out == ""
    assert "0 models." in shop("dag", "-o", "html").out
    assert shop("dag", "-o", "json").result["models"] == []


@pytest.mark.parametrize("arguments", [["lineage", "shop.total"], ["dag", "-o", "html"]])
def test_neither_imports_spark(arguments: list[str], shop: CommandLine) -> None:
    code = f"from mergeplan.planner.cli.main import VERBS, run\nrun(VERBS, {[*arguments, '-p', str(shop.root)]})"

    assert "pyspark" not in imports_of(code)
    assert shop.opened == []


def test_a_lineage_is_drawn_as_a_page_that_needs_nothing_else(shop: CommandLine) -> None:
    ran = shop("lineage", "shop.total.total", "-o", "html", "--to", "lineage.html")

    page = (shop.root / "lineage.html").read_text()
    drawing = ElementTree.fromstring(page[page.index("<svg") : page.index("</svg>") + 6])  # noqa: S314  # our own page
    texts = [element.text for element in drawing.iter("text")]
    assert (ran.code, ran.out) == (0, "")
    assert {"shop.items", "SEED", "price", "its rows"} <= set(texts)
    assert len(list(drawing.iter("path"))) == len(shop("lineage", "shop.total.total", "-o", "json").result["edges"])
    assert "src=" not in page
    assert "http" not in page


def test_a_tree_is_written_to_a_file_too(shop: CommandLine) -> None:
    ran = shop("lineage", "shop.total.total", "--to", "lineage.txt")

    assert (ran.code, ran.out) == (0, "")
    assert (shop.root / "lineage.txt").read_text() == SPENT.lstrip()
