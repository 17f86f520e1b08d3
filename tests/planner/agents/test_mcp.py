"""An agent's session over `mergeplan mcp`, by the SDK's own client: the answers, and that nothing is written."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from mcp.client import Client

from mergeplan.planner.errors import RequestError
from mergeplan.planner.parsing.files.agent_rules import TOOLS
from mergeplan.planner.session.session import Session
from mergeplan.planner.session.settings import SessionSettings
from mergeplan.planner.session.use_cases.diff import check_proposal
from tests.planner.agents.sessions import converse_inside, data, message, talk
from tests.planner.session.conftest import shop
from tests.planner.shop import write_shop

__all__ = ["shop"]
DAILY = """MODEL (
  name shop.daily,
  kind INCREMENTAL_BY_TIME_RANGE (time_column day, batch_size 1),
  audits (not_null(columns := (id)))
);
SELECT id, day, price{} FROM shop.items WHERE day BETWEEN @start_date AND @end_date"""


def digests(root: Path) -> dict[str, str]:
    """Every file of the project but the server's own log and caches."""
    files = (path for path in sorted(root.rglob("*")) if path.is_file() and ".mergeplan" not in path.parts)
    return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def test_models_are_found_described_and_followed(tmp_path: Path) -> None:
    write_shop(tmp_path)
    listing, page, model, lineage, environments = map(
        data,
        talk(
            tmp_path,
            ("models", {"search": "daily PRICE"}),
            ("models", {"select": "shop.daily+", "limit": 1, "offset": 1}),
            ("model", {"name": "shop.daily"}),
            ("lineage", {"target": "shop.items.price", "downstream": True}),
            ("environments", {}),
        ),
    )

    assert [row["name"] for row in listing["models"]] == ["shop.daily"]
    assert (page["total"], [row["name"] for row in page["models"]]) == (3, ["shop.total"])
    assert [column["name"] for column in model["columns"]] == ["id", "price", "day"]
    assert {edge["to"]["model"] for edge in lineage["edges"]} == {"shop.daily", "shop.total", "shop.shown"}
    assert environments == {"environments": []}


def test_a_proposed_text_is_judged_and_not_written(shop: Callable[..., Session], tmp_path: Path) -> None:
    shop(apart="").plan().apply()
    before = digests(tmp_path)
    added, altered, same, explained, past = map(
        data,
        talk(
            tmp_path,
            ("impact", {"path": "models/daily.sql", "text": DAILY.format(", 1 AS one")}),
            ("impact", {"path": "models/daily.sql", "text": DAILY.replace("price{}", "price + 1 AS price")}),
            ("impact", {"path": "models/daily.sql", "text": DAILY.format("")}),
            ("explain", {}),
            ("history", {}),
        ),
    )

    assert [(c["name"], c["category"]) for c in added["changes"] if c["recomputed"]] == [("shop.daily", "non_breaking")]
    assert {c["name"] for c in altered["changes"] if c["recomputed"]} == {"shop.daily", "shop.total"}
    assert altered["changes"][0]["intervals"]
    assert (same["total"], explained["total"], past["total"]) == (0, 0, 1)
    assert digests(tmp_path) == before


def test_what_cannot_be_is_a_sentence_for_the_agent(tmp_path: Path) -> None:
    write_shop(tmp_path)
    outside = {"text": "x", "environment": "prod"}
    typo, python, above, broken, nowhere = map(
        message,
        talk(
            tmp_path,
            ("model", {"name": "shop.dayly"}),
            ("impact", {"path": "models/code.py", **outside}),
            ("impact", {"path": "models/../config.sql", **outside}),
            ("impact", {"path": "models/daily.sql", "text": "MODEL (name shop.daily, kind FUL);\nSELECT 1"}),
            ("history", {"environment": "qa"}),
        ),
    )

    assert "There is no model `shop.dayly`. Did you mean `shop.daily`?" in typo
    assert "`models/code.py` is no SQL file below `models/`." in python
    assert "is no SQL file" in above
    assert "models/daily.sql:1" in broken
    assert "There is no environment `qa`" in nowhere


@pytest.mark.prove
def test_broken_rules_and_a_rollback_are_told_and_nothing_is_done(shop: Callable[..., Session], tmp_path: Path) -> None:
    session = shop(apart="")
    session.plan().apply()
    (tmp_path / "models/total.sql").write_text("MODEL (name shop.total, kind FULL);\nSELECT 1 AS total")
    session.plan().apply()
    (tmp_path / "models/total.sql").write_text("MODEL (name shop.total, kind FUL);\nSELECT 1 AS total")
    rollback, lint, past = map(data, talk(tmp_path, ("rollback", {}), ("lint", {}), ("history", {})))

    assert (rollback["possible"], rollback["rollback"]["target"]["revision"], past["total"]) == (True, 1, 2)
    assert (lint["ok"], lint["violations"][0]["path"]) == (False, "models/total.sql")


def test_every_tool_is_described_and_says_whether_it_only_reads(tmp_path: Path) -> None:
    async def listed(client: Client) -> dict[str, bool]:
        tools = (await client.list_tools()).tools
        assert all(tool.description and "caller" not in tool.input_schema["properties"] for tool in tools)
        return {tool.name: bool(tool.annotations and tool.annotations.read_only_hint) for tool in tools}

    write_shop(tmp_path)
    tools = converse_inside(SessionSettings(tmp_path), listed)
    assert tools == {name: group == "read" for name, group in TOOLS.items()}


def test_without_the_package_the_verb_says_what_to_install(tmp_path: Path) -> None:
    code = (
        "import importlib.util as u, sys\nfind = u.find_spec\n"
        "u.find_spec = lambda name, *rest: None if name == 'mcp' else find(name, *rest)\n"
        "from mergeplan.planner.cli.main import VERBS, run\nsys.exit(run(VERBS, ['mcp']))"
    )
    ran = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)

    assert (ran.returncode, ran.stdout) == (1, "")
    assert "pip install 'mergeplan[mcp]'" in ran.stderr


def test_the_sdk_is_imported_where_it_is_asked_for_only() -> None:
    from tests.planner.cli.test_start import imports_of

    calls = [["--help"], ["mcp", "--help"], ["plan", "-p", "no"], ["apply", "x", "-p", "no"]]
    code = "\n".join(["from mergeplan.planner.cli.main import VERBS, run", *(f"run(VERBS, {call})" for call in calls)])
    assert "mcp" not in imports_of(code)


@pytest.mark.parametrize("proposal", [("models/a.sql", "SELECT '\ud800'"), ("models/\ud800.sql", "SELECT 1")])
def test_half_a_character_is_refused_with_a_sentence(proposal: tuple[str, str]) -> None:
    with pytest.raises(RequestError, match="not Unicode"):
        check_proposal(*proposal)
