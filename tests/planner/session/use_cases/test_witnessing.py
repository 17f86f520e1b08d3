"""No table is kept on the word of the rules alone: Spark's analyzer sees what prod would hold otherwise."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from mergeplan.planner.session.events import Event
from mergeplan.planner.session.session import Session
from tests.planner.shop import ALONE

NONE = ALONE | {"total": ""}
TABLE = "MODEL (name shop.t, kind FULL{});\nSELECT * FROM VALUES (1, 10, 5), (1, 20, 6), (2, 30, 7) AS v(id, a, b)"


def write_models(folder: Path, **texts: str) -> None:
    for name, text in texts.items():
        (folder / "models" / f"{name}.sql").write_text(text)


def full(name: str, query: str, more: str = "") -> str:
    return f"MODEL (name shop.{name}, kind FULL{more});\n{query}"


CUBE = "SELECT id, a, count(1) AS n FROM shop.t GROUP BY id, a{} GROUPING SETS ((id), (a))"


def test_a_query_that_our_parser_takes_for_the_same_is_computed_anew(
    shop: Callable[..., Session], tmp_path: Path
) -> None:
    session, events = shop(**NONE, t=TABLE.format(""), cube=full("cube", CUBE.format(","))), list[Event]()
    session.plan().apply()
    before = session.fetch("SELECT count(1) FROM shop.cube").rows

    write_models(tmp_path, cube=full("cube", CUBE.format("")))
    outcome = session.plan().apply(on_event=events.append)

    assert (before, session.fetch("SELECT count(1) FROM shop.cube").rows) == (((6,),), ((5,),))
    assert outcome.plan is not None
