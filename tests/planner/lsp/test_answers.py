"""What an editor shows at a place: completion, hover, actions, outline; and text counted as editors count."""

from __future__ import annotations

import pytest

from mergeplan.planner.lsp.actions import actions_at
from mergeplan.planner.lsp.completion import complete_sql, signature_at
from mergeplan.planner.lsp.editor import Editor
from mergeplan.planner.lsp.navigation import target_at
from mergeplan.planner.lsp.outline import list_folds, list_symbols, type_hints
from mergeplan.planner.lsp.questions import hover_text
from mergeplan.planner.lsp.texts import Lines, Span, apply_edits
from tests.planner.lsp.conftest import ORDERS, TOTALS, ask_effects, write_files

PATH = "models/totals.sql"


def labels(editor: Editor, text: str, path: str = PATH) -> list[str]:
    """What is suggested where `|` stands in a text."""
    assert editor.view is not None
    offset = text.index("|")
    return [item.label for item in complete_sql(editor.view, path, text.replace("|", ""), offset)]


def hover(editor: Editor, path: str, text: str, word: str) -> str:
    """What is shown of a word."""
    assert editor.view is not None
    place = target_at(editor.view, path, text, text.index(word) + 1)
    assert place is not None
    return hover_text(editor.view, place[0], editor.state) or ""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("MODEL (name a.b); SELECT o.| FROM shop.orders AS o", {"id", "day", "amount", "twice"}),
        ("MODEL (name a.b); SELECT o.am|, 1 AS x FROM shop.orders AS o WHERE o.id >", {"amount"}),
        ("MODEL (name a.b); WITH c AS (SELECT twice AS two, * FROM shop.orders) SELECT | FROM c", {"two", "day", "c"}),
        ("MODEL (name a.b); SELECT 1 FROM sh|", {"shop.orders", "shop.totals"}),
        ("MODEL (name a.b, |);\nSELECT 1", {"kind", "cron", "audits"}),
        ("MODEL (name a.b, kind |);\nSELECT 1", {"FULL", "VIEW", "SCD_TYPE_2_BY_TIME"}),
        ("MODEL (name a.b, cron '|');\nSELECT 1", {"@daily"}),
        ("MODEL (name a.b); SELECT @|", {"@start_ds", "@EACH"}),
        ("MODEL (name a.b); SELECT coa| FROM shop.orders", {"coalesce", "amount"}),
    ],
)
def test_completion_knows_what_may_stand_there(editor: Editor, text: str, expected: set[str]) -> None:
    assert expected <= set(labels(editor, text))


def test_completion_offers_columns_of_the_alias_alone(editor: Editor) -> None:
    text = "MODEL (name a.b); SELECT t.| FROM shop.orders AS o JOIN shop.totals AS t USING (day)"

    assert labels(editor, text) == ["day", "amount", "orders"]


def test_a_signature_says_which_argument_is_written() -> None:
    assert signature_at("SELECT substring(a, ", 20) == ("substring(expr, ...)", 1)
    assert signature_at("SELECT a, ", 10) is None


def test_hover_tells_a_columns_type_what_it_is_made_from_and_who_reads_it(editor: Editor) -> None:
    text = hover(editor, "models/orders.sql", ORDERS, "twice")

    assert text.startswith("**shop.orders.twice**")
    assert "made from `shop.daily.price`" in text
    assert "read by `shop.latest.twice`" in text


def test_hover_tells_where_a_model_stands_in_prod(editor: Editor) -> None:
    ask_effects(editor, "models/orders.sql")
    text = hover(editor, PATH, TOTALS, "shop.orders")

    assert "**shop.orders** · FULL" in text
    assert "in prod: version `" in text
    assert "| `amount` |" in text


def test_a_star_is_expanded(editor: Editor) -> None:
    assert editor.view is not None
    text = "MODEL (name shop.star, kind VIEW);\nSELECT * FROM shop.totals"
    at = text.index("*")
    editor.judge("models/star.sql", text)
    (action,) = actions_at(editor.view, "models/star.sql", text, Span(at, at), ())

    assert apply_edits(text, list(action.edits)).endswith("SELECT day, amount, orders FROM shop.totals")


def test_a_grain_gets_audits(editor: Editor) -> None:
    assert editor.view is not None
    action = next(a for a in actions_at(editor.view, "models/orders.sql", ORDERS, Span(0, 0), ()))
    text = apply_edits(ORDERS, list(action.edits))

    assert "audits (unique_values(columns := (id)), not_null(columns := (id)))" in text
    assert editor.judge("models/orders.sql", text) == ()


def test_an_unknown_table_can_be_declared_or_corrected(editor: Editor) -> None:
    text = TOTALS.replace("shop.orders", "shop.order")
    diagnostics = editor.judge(PATH, text)
    assert editor.view is not None
    actions = actions_at(editor.view, PATH, text, diagnostics[0].span, diagnostics)

    assert {"Change to `shop.orders`", "Declare `shop.order` in external_models.yaml"} <= {a.title for a in actions}


def test_a_rule_of_the_linter_has_a_fix(editor: Editor) -> None:
    config = (editor.root / "config.yaml").read_text() + "linter: {enabled: true, warn_rules: [nomissingowner]}\n"
    write_files(editor.root, {"config.yaml": config})
    editor.live.load()
    diagnostics = editor.judge("models/orders.sql", ORDERS)
    assert editor.view is not None
    actions = actions_at(editor.view, "models/orders.sql", ORDERS, diagnostics[0].span, diagnostics)
    fix = next(action for action in actions if action.title == "Add an owner")

    assert [diagnostic.rule for diagnostic in diagnostics] == ["nomissingowner"]
    assert "owner ''" in apply_edits(ORDERS, list(fix.edits))


def test_a_file_in_outline(editor: Editor) -> None:
    assert editor.view is not None
    names = [symbol.name for symbol in list_symbols(editor.view, "models/orders.sql", ORDERS)]
    hints = [hint.text for hint in type_hints(editor.view, PATH, TOTALS)]

    assert names == ["shop.orders", "priced", "id", "day", "amount", "twice"]
    assert "bigint" in hints
    assert list(list_folds(editor.view.file("models/orders.sql", ORDERS)))


def test_columns_are_counted_in_utf_16() -> None:
    lines = Lines("SELECT '😀' AS a,\n b")

    assert lines.position(lines.text.index("AS")) == (0, 12)
    assert lines.offset(0, 12) == lines.text.index("AS")
    assert lines.offset(9, 0) == len(lines.text)
