"""lineage --unused-columns from outside: text, JSON, and what it refuses."""

from __future__ import annotations

from tests.planner.cli.conftest import CommandLine
from tests.planner.shop import ALONE, write_shop

BASE = "MODEL (name shop.base, kind FULL);\nSELECT 1 AS id, 2 AS a, 3 AS b"
TOP = "MODEL (name shop.top, kind FULL);\nSELECT a FROM shop.base"


def test_the_report_is_text_or_json(offline: CommandLine) -> None:
    write_shop(offline.root, **ALONE | {"total": "", "base": BASE, "top": TOP})
    text, one = offline("lineage", "--unused-columns"), offline("lineage", "--unused-columns", "shop.top", "-o", "json")

    assert text.out.splitlines()[:2] == ["2 columns that nothing needs:", "  models/base.sql:2  shop.base.id"]
    assert one.result["unused_columns"] == []
    assert offline("lineage", "--unused-columns", "-o", "html").code == 1
    assert "Did you mean `shop.base`?" in offline("lineage", "--unused-columns", "shop.bas").err


def test_while_a_model_cannot_be_opened_the_report_is_refused(offline: CommandLine) -> None:
    write_shop(offline.root)
    offline.edit("models/apart.sql", "kind FULL", "kind FUL")

    ran = offline("lineage", "--unused-columns")

    assert (ran.code, ran.out) == (1, "")
    assert "The unused columns are not known while a model cannot be opened: models/apart.sql:1" in ran.err
