"""A hostile pull request through the service: nothing is read, written, run or reached.

Few tests, for one service and one prod serve many attacks. `test_not_isolated.py` shows that the same attacks are real.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from mergeplan.bot.records import PullState
from mergeplan.planner.isolation.probe import cannot
from tests.bot.conftest import SHOP
from tests.planner.engine.spark.attacks import ATTACKS as DOORS
from tests.safety.attacks import ATTACKS
from tests.safety.conftest import CONFIG, Stage
from tests.safety.scene import SECRET

PLACES = 4  # a model, a macro and a signal attack as they are imported, and a function of a model's frame

pytestmark = pytest.mark.skipif(bool(cannot()), reason=f"this machine cannot isolate: {cannot()}")


def test_hostile_pull_requests_get_nothing_from_a_service(stage: Stage) -> None:
    attacked = stage.attack("attack")

    assert attacked.record.state is PullState.PLANNED, attacked.comment
    assert attacked.got == {name: [""] * PLACES for name in ATTACKS}
    assert {name: said for name, said in attacked.doors.items() if DOORS[name][1] not in said} == {}
    assert attacked.doors.keys() == DOORS.keys()
    assert attacked.paths_changed == set()
    assert SECRET not in attacked.comment
    assert_rows_do_not_leave_by_sql(stage)
    assert stage.bench.context.inbox.prods.get(SHOP).revision == 1


@pytest.mark.prove
def test_files_get_nothing_from_a_service_and_code_is_held_where_it_cannot_be_isolated(stage: Stage) -> None:
    assert_what_is_no_python_gets_nothing(stage)
    assert_code_is_held_where_landlock_is_missing(stage)
    assert stage.bench.context.inbox.prods.get(SHOP).revision == 1


def assert_what_is_no_python_gets_nothing(stage: Stage) -> None:
    key = stage.scene.key
    files = {
        "models/file.sql": f"MODEL (name shop.file, kind FULL);\nSELECT * FROM text.`{key}`\n",
        "models/jinja.sql": "MODEL (name shop.jinja, kind FULL);\nJINJA_QUERY_BEGIN;\n"
        f"SELECT '{{{{ ''.__class__.__mro__[1].__subclasses__() }}}}' AS a, '{{{{ open('{key}').read() }}}}' AS b\n"
        "JINJA_END;\n",
        "models/called.sql": "MODEL (name shop.called, kind FULL);\n"
        "SELECT java_method('java.lang.System', 'getenv', 'HOME') AS a\n",
        "models/seed.sql": f"MODEL (name shop.seed, kind SEED (path '../../../../../../{key}'), columns (a text));\n",
        "config.yaml": CONFIG + "variables: {key: \"{{ env_var('MERGEPLAN_GITHUB_PRIVATE_KEY') }}\"}\n",
        ".gitattributes": "* filter=evil diff=evil merge=evil\n",
        ".gitmodules": f'[submodule "a"]\n\tpath = a\n\turl = file://{stage.scene.folder}\n',
    }

    ended = stage.attack("no-python", files)

    assert SECRET not in ended.comment
    assert ended.paths_changed == set()


def assert_rows_do_not_leave_by_sql(stage: Stage) -> None:
    ended = stage.attack("leaks", stage.scene.leaks())

    assert stage.scene.listener.received == 0
    for path in ("models/leak.sql", "models/xsd.sql", "models/duck.sql", "models/made.sql", "models/held.sql"):
        assert path in ended.comment.replace("\\", "")
    assert ended.paths_changed == set()


def assert_code_is_held_where_landlock_is_missing(stage: Stage) -> None:
    """Such a machine is made: the planner runs where the kernel says that it knows nothing of Landlock."""
    elsewhere = {"planner_command": (sys.executable, "-P", str(Path(__file__).with_name("without_landlock.py")))}

    held = stage.attack("held", stage.scene.files(), **elsewhere)
    edit = {"models/secret.sql": "MODEL (name shop.secret, kind FULL);\n\nSELECT 8 AS id\n"}
    planned = stage.attack("sql", edit, **elsewhere)

    assert (held.record.state, held.got, held.paths_changed) == (PullState.FAILED, {}, set())
    assert "The project's code cannot be isolated here: Landlock 3 is needed" in held.comment
    assert r"MERGEPLAN\_ISOLATION=none" in held.comment
    assert planned.record.state is PullState.PLANNED
