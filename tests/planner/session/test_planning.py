"""A plan that waited for its environment is made again, and says what moved."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from mergeplan.planner.errors import PlanMoved
from mergeplan.planner.session.options import PlanOptions
from mergeplan.planner.session.settings import SessionSettings
from mergeplan.planner.session.use_cases.planning import confirm_plan, make_plan
from mergeplan.planner.session.workspace import Workspace
from tests.planner.builders import environment, snapshot
from tests.planner.session.conftest import refuse_engine
from tests.planner.shop import ALONE, NOW, write_shop
from tests.planner.state.test_state import promote


def test_what_another_promotion_moved_meanwhile_is_named(tmp_path: Path) -> None:
    write_shop(tmp_path, **ALONE, total="MODEL (name shop.total, kind FULL);\nSELECT 7 AS seven")
    options = PlanOptions(environment="prod")
    with closing(Workspace(SessionSettings(tmp_path, open_engine=refuse_engine), now=NOW)) as work:
        plan = make_plan(work, options, work.models)
        promote(work.store, environment("prod", snapshot("shop.total")))

        moved = "the models of `prod` that it replaces changed while it waited for `prod`"
        with work.lease("prod", "test") as lease, pytest.raises(PlanMoved, match=moved):
            confirm_plan(work, plan, options, lease)
