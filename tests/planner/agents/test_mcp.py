"""An agent's session over `mergeplan mcp`, by the SDK's own client: the answers, and that nothing is written."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp_types import CallToolResult, TextContent

from mergeplan.planner.errors import RequestError
from mergeplan.planner.session.session import Session
from mergeplan.planner.session.use_cases.diff import check_proposal
from tests.planner.session.conftest import shop
from tests.planner.shop import write_shop

__all__ = ["shop"]
Call = Callable[..., dict[str, Any]]
DAILY = """MODEL (
  name shop.daily,
  kind INCREMENTAL_BY_TIME_RANGE (time_column day, batch_size 1),
  audits (not_null(columns := (id)))
);
SELECT id, day, price{} FROM shop.items WHERE day BETWEEN @start_date AND @end_date"""


def talk(root: Path, *calls: tuple[str, dict[str, Any]]) -> list[CallToolResult]:
    """The answers of one session with a server of its own."""

    async def session() -> list[CallToolResult]:
        environment = {**os.environ, "MERGEPLAN_HOME": str(root / ".mergeplan")}
        server = StdioServerParameters(
            command=sys.executable, args=["-m", "mergeplan", "mcp", "-p", str(root)], env=environment
        )
        async with Client(stdio_client(server)) as client:
            return [await client.call_tool(name, arguments) for name, arguments in calls]

    return anyio.run(session)


def data(result: CallToolResult) -> dict[str, Any]:
    assert not result.is_error, result.content
    assert result.structured_content is not None
    return result.structured_content


def message(result: CallToolResult) -> str:
    assert result.is_error
    (content,) = result.content
    assert isinstance(content, TextContent)
    return content.text


def digests(root: Path) -> dict[str, str]:
    """Every file of the project but the server's own log and caches."""
    files = (path for path in sorted(root.rglob("*")) if path.is_file() and ".mergeplan" not in path.parts)
    return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def test_models_are_found_described_and_followed(tmp_path: Path) -> None:
    write_shop(tmp_path)
    found, page, model, lineage, environments = map(
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

    assert [row["name"] for row in found["models"]] == ["shop.daily"]
    assert (page["total"], [row["name"] for row in page["models"]]) == (3, ["shop.total"])
    assert [column["name"] for column in model["columns"]] == ["id", "day", "price"]
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


def test_broken_rules_and_a_rollback_are_told_and_nothing_is_done(shop: Callable[..., Session], tmp_path: Path) -> None:
    session = shop(apart="")
    session.plan().apply()
    (tmp_path / "models/total.sql").write_text("MODEL (name shop.total, kind FULL);\nSELECT 1 AS total")
    session.plan().apply()
    (tmp_path / "models/total.sql").write_text("MODEL (name shop.total, kind FUL);\nSELECT 1 AS total")
    rollback, lint, past = map(data, talk(tmp_path, ("rollback", {}), ("lint", {}), ("history", {})))

    assert (rollback["possible"], rollback["rollback"]["target"]["revision"], past["total"]) == (True, 1, 2)
    assert (lint["ok"], lint["violations"][0]["path"]) == (False, "models/total.sql")


def test_every_tool_says_that_it_only_reads(tmp_path: Path) -> None:
    from mergeplan.planner.agents.server import make_server
    from mergeplan.planner.agents.tools import Tools
    from mergeplan.planner.session.settings import SessionSettings

    async def listed() -> dict[str, bool]:
        async with Client(make_server(Tools(SessionSettings(tmp_path)))) as client:
            tools = (await client.list_tools()).tools
        return {tool.name: bool(tool.annotations and tool.annotations.read_only_hint) for tool in tools}

    names = ("models", "model", "lineage", "environments", "history", "explain", "impact", "lint", "rollback")
    assert anyio.run(listed) == dict.fromkeys(names, True)


def test_without_the_package_the_verb_says_what_to_install(tmp_path: Path) -> None:
    code = (
        "import importlib.util as u, sys\nfind = u.find_spec\n"
        "u.find_spec = lambda name, *rest: None if name == 'mcp' else find(name, *rest)\n"
        "from mergeplan.planner.cli.main import VERBS, run\nsys.exit(run(VERBS, ['mcp']))"
    )
    ran = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)

    assert (ran.returncode, ran.stdout) == (1, "")
    assert "pip install 'mergeplan[mcp]'" in ran.stderr


@pytest.mark.parametrize("verb", [["--help"], ["mcp", "--help"], ["docs", "--help"]])
def test_the_sdk_is_imported_where_it_is_asked_for_only(verb: list[str]) -> None:
    from tests.planner.cli.test_start import imports_of

    assert "mcp" not in imports_of(f"from mergeplan.planner.cli.main import VERBS, run\nrun(VERBS, {verb})")


@pytest.mark.parametrize("proposal", [("models/a.sql", "SELECT '\ud800'"), ("models/\ud800.sql", "SELECT 1")])
def test_half_a_character_is_refused_with_a_sentence(proposal: tuple[str, str]) -> None:
    with pytest.raises(RequestError, match="not Unicode"):
        check_proposal(*proposal)
