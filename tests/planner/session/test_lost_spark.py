"""A Spark that ends under a session: the call that it was in says so, and the next one starts another."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from mergeplan.planner.engine.spark.engine import SparkEngine
from mergeplan.planner.errors import SparkUnavailable
from mergeplan.planner.session.session import Session
from mergeplan.planner.session.settings import SessionSettings
from tests.planner.cli.conftest import TODAY, Lent
from tests.planner.shop import write_shop

ROOT = Path(__file__).parents[3]
SCRIPT = """
import sys
from pathlib import Path
from mergeplan.planner.engine.spark.engine import open_engine
from mergeplan.planner.errors import SparkUnavailable
from mergeplan.planner.session.session import Session
from mergeplan.planner.session.settings import SessionSettings
from tests.conftest import SMALL
from tests.planner.cli.conftest import TODAY

engines = []

def opened(_, home, profile):
    engines.append(open_engine(SMALL, home, profile))
    return engines[-1]

def kill():
    engines[-1]._shared.jvm.process.kill()
    engines[-1]._shared.jvm.process.wait()

root = Path(sys.argv[1])
with Session(SessionSettings(root, home=root / "home", open_engine=opened), TODAY) as session:
    session.plan("prod").apply()
    before = session.fetch("SELECT * FROM shop.daily").rows
    kill()
    try:
        engines[-1].fetch("SELECT 1")
    except SparkUnavailable as error:
        print(error.message)
    print(session.fetch("SELECT * FROM shop.daily").rows == before)
    kill()  # nobody has asked it since
    print(session.fetch("SELECT * FROM shop.daily").rows == before)
print(len(engines))
"""


class Lost(Lent):
    """A Spark that has ended."""

    is_lost = True

    def fetch(self, *_: object) -> object:
        """What a Spark says that is not there any more."""
        raise SparkUnavailable("Spark has ended.")


def test_the_call_after_a_loss_opens_another_spark(tmp_path: Path, engine: SparkEngine) -> None:
    write_shop(tmp_path)
    sparks = iter([Lost(engine), Lent(engine)])
    with Session(SessionSettings(tmp_path, open_engine=lambda *_: next(sparks)), TODAY) as session:
        with pytest.raises(SparkUnavailable, match="has ended"):
            session.fetch("SELECT 1")

        assert session.fetch("SELECT 1 AS x").rows == ((1,),)


@pytest.mark.prove
def test_a_session_outlives_the_death_of_its_java(tmp_path: Path) -> None:
    write_shop(tmp_path)

    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(tmp_path)],
        cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, timeout=500,
    )  # fmt: skip

    assert done.stdout.splitlines() == ["Spark has ended.", "True", "True", "3"], done.stderr
    assert done.stderr == ""
