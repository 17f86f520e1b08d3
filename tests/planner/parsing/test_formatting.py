"""The layout of SQL files: what it looks like, that it means the same, and what is left as it is."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from mergeplan.planner.errors import MergeplanError, ProjectError
from mergeplan.planner.model.model import Model
from mergeplan.planner.model.property import replace_settings
from mergeplan.planner.parsing.definitions.formatting import Style, format_file
from mergeplan.planner.parsing.files.model_file import Defaults, parse_model
from tests.planner.building import NOW

UGLY = """-- the orders
model(name   shop.orders, -- its name
  -- by day
  kind INCREMENTAL_BY_TIME_RANGE(time_column (ds,'yyyy-MM-dd'), batch_size 3 /* three */)
  ,audits (not_null(columns := (id,ds)), accepted_values(column := status, is_in := ('a','b','c','d'))),
  columns (id INT, m map<string,int>) , tags [a,b],
);
select id, cast(price as double) as p, -- the price
 nvl(a,b) x, MyUdf(1) u, date'2026-01-01' d, @VAR('x',  3) as y from shop.raw_@{kind}
where ds between @start_ds and @end_ds and price::int>2 qualify row_number() over (order by id) = 1;
-- the end
"""
NEAT = """-- the orders
MODEL (
  name shop.orders, -- its name
  -- by day
  kind INCREMENTAL_BY_TIME_RANGE (
    time_column (ds, 'yyyy-MM-dd'),
    batch_size 3 /* three */
  ),
  audits (
    not_null(columns := (id, ds)),
    accepted_values(column := status, is_in := ('a', 'b', 'c', 'd'))
  ),
  columns (
    id INT,
    m map<string, int>
  ),
  tags [a, b]
);

SELECT
  id,
  price::DOUBLE AS p, -- the price
  COALESCE(a, b) AS x,
  MyUdf(1) AS u,
  DATE '2026-01-01' AS d,
  @VAR('x',  3) AS y
FROM shop.raw_@{kind}
WHERE
  ds BETWEEN @start_ds AND @end_ds AND price::INT > 2
QUALIFY
  ROW_NUMBER() OVER (ORDER BY id) = 1;

-- the end
"""
HEAD = "MODEL (\n  name shop.x,\n  kind FULL\n);\n\n"
DEFAULTS = Defaults(NOW)
EXAMPLE = Path(__file__).parents[3] / "planner/project/example"


PROJECTS = Path(__file__).parents[2] / "projects"
OWN_FILES = [*EXAMPLE.rglob("*.sql"), *(PROJECTS / "everything").rglob("*.sql")]


def neat(sql: str, **style: Any) -> str:
    """A query's layout, below a block that is in order."""
    now = format_file("models/x.sql", HEAD + sql, "spark", Style(**{"append_newline": False, **style}))
    assert now.left == ""
    head, _, rest = now.text.partition(";\n\n")
    assert head.replace("    ", "  ") + ";\n\n" == HEAD
    return rest


def test_blocks_queries_comments_and_macros_come_out_in_one_layout() -> None:
    assert format_file("models/x.sql", UGLY, "spark", Style()).text == NEAT
    assert format_file("models/x.sql", NEAT, "spark", Style()).text == NEAT


@pytest.mark.parametrize(
    ("style", "sql", "text"),
    [
        ({"no_rewrite_casts": True}, "SELECT a::int AS a", "SELECT\n  CAST(a AS INT) AS a"),
        ({"leading_comma": True}, "SELECT a, b", "SELECT\n  a\n  , b"),
        (
            {"indent": 4, "pad": 4},
            "SELECT a FROM (SELECT 1 AS a)",
            "SELECT\n    a\nFROM (\n    SELECT\n        1 AS a\n)",
        ),
        ({"normalize_functions": "lower"}, "SELECT COUNT(A) AS n", "SELECT\n  count(A) AS n"),
        ({"normalize": True}, "SELECT A.B", "SELECT\n  a.b"),
        ({"append_newline": True}, "SELECT a", "SELECT\n  a\n"),
        ({"max_text_width": 9}, "SELECT F(aaaaaaa, bbb)", "SELECT\n  F(\n    aaaaaaa,\n    bbb\n  )"),
    ],
)
def test_the_style_of_the_project_is_heeded(style: dict[str, Any], sql: str, text: str) -> None:
    assert neat(sql, **style) == text


@pytest.mark.parametrize("path", OWN_FILES, ids=lambda path: path.name)
def test_our_own_files_are_formatted_once_and_the_example_not_at_all(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    first = format_file(f"models/{path.name}", text, "spark", Style())
    second = format_file(f"models/{path.name}", first.text, "spark", Style())

    assert second == first or first.left
    assert first.text == text or not path.is_relative_to(EXAMPLE)


def test_a_division_is_laid_out_as_it_is() -> None:
    assert format_file("models/x.sql", HEAD + "SELECT id / 0 FROM range(3)", "spark", Style()).text.endswith(
        "SELECT\n  id / 0\nFROM range(3)\n"
    )


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (HEAD + "SELECT {{ x }} AS x", "it holds Jinja"),
        (HEAD + "JINJA_QUERY_BEGIN; SELECT 1; JINJA_END;", "it holds Jinja"),
        ("MODEL (name shop.x, formatting false);\nSELECT   1 AS x", "it has `formatting false`"),
        (HEAD + "SELECT 1 AS x @IF(true, LIMIT 3)", "it has a macro where SQL allows no expression"),
        (HEAD + "SELECT x FROM shop.a @JOINED", "it has a macro where SQL allows no expression"),
        (HEAD + "SELECT @EACH([a, b], x -> x /* each */)", "it has a comment inside a macro"),
    ],
)
def test_what_cannot_be_laid_out_safely_is_left_as_it_is(text: str, reason: str) -> None:
    now = format_file("models/x.sql", text, "spark", Style())

    assert (now.text, now.left) == (text, reason)


def test_a_query_that_cannot_be_read_is_an_error_at_its_line() -> None:
    with pytest.raises(ProjectError, match=r"models/x.sql:6: The query is not valid Spark SQL near"):
        format_file("models/x.sql", HEAD + "SELECT 1 WHERE (x", "spark", Style())


def test_other_statements_and_audits_below_the_query_stay(tmp_path: Path) -> None:
    text = f"{HEAD}SET  x = 1;\n\n@DEF(a,  1);\n\nSELECT\n  1 AS a;\n\nAUDIT (\n  name no_a\n);\n\nSELECT\n  1 AS b\n"

    assert format_file("models/x.sql", text, "spark", Style()).text == text


def queries() -> Iterator[str]:
    """Every query of the case book."""

    def walk(value: object) -> Iterator[str]:
        if isinstance(value, str) and value.lstrip().upper().startswith(("SELECT", "WITH")):
            yield value
        elif isinstance(value, dict | list):
            for element in value.values() if isinstance(value, dict) else value:
                yield from walk(element)

    for path in sorted((Path(__file__).parents[1] / "cases").glob("*.yaml")):
        yield from walk(yaml.safe_load(path.read_text()))


def without_layout(model: Model) -> Model:
    return replace_settings(model, {"source": "", "line": 0, "text": "", "text_line": 0})


def test_queries_of_the_case_book_are_the_same_models_in_their_new_layout() -> None:
    left = 0
    for sql in sorted(set(queries()))[::6]:
        text = f"MODEL (name shop.x, kind FULL);\n{sql}"
        try:
            model, _ = parse_model(text, "models/x.sql", DEFAULTS)
        except MergeplanError:
            continue
        now = format_file("models/x.sql", text, "spark", Style())
        again, _ = parse_model(now.text, "models/x.sql", DEFAULTS)
        left += bool(now.left)
        assert model is not None
        assert again is not None
        assert without_layout(again) == without_layout(model), sql

    assert left < 10


GAPS = st.sampled_from([" ", "\n", "  \n\t", " -- note\n", " /* note */ ", "\n-- a\n-- b\n"])


@settings(max_examples=60, deadline=None)
@given(st.lists(GAPS, min_size=12, max_size=12))
def test_whatever_blanks_and_comments_there_are_nothing_is_lost_and_the_layout_rests(gaps: list[str]) -> None:
    words = ("MODEL (", "name shop.x,", "kind FULL,", "tags (a, b)", ");", "SELECT", "a.id,", "b.n", "AS n",
             "FROM shop.a", "JOIN shop.b", "ON a.id = b.id")  # fmt: skip
    text = "".join(word + gap for word, gap in zip(words, gaps, strict=True))

    now = format_file("models/x.sql", text, "spark", Style())
    again = format_file("models/x.sql", now.text, "spark", Style())

    before, _ = parse_model(text, "models/x.sql", DEFAULTS)
    after, _ = parse_model(now.text, "models/x.sql", DEFAULTS)
    assert before is not None
    assert after is not None
    assert without_layout(after) == without_layout(before)
    assert again.text == now.text
    assert now.text.count("note") == text.count("note")


def test_a_line_comment_stays_one_and_ends_its_line() -> None:
    written = "-- above\nSELECT\n  a, -- first\n  -- of c\n  count(c) AS c /* last */\nFROM t -- the table"
    text = "-- above\nSELECT\n  a, -- first\n  COUNT(c) -- of c\n  AS c /* last */\nFROM t -- the table"

    assert (neat(written), neat(text)) == (text, text)


@pytest.mark.parametrize("path", sorted(EXAMPLE.rglob("*.sql")), ids=lambda path: path.stem)
def test_the_project_that_init_makes_is_in_order(path: Path) -> None:
    assert format_file(path.name, path.read_text(), "spark", Style()).text == path.read_text()
