"""The schedule as tasks: a file, its edges, its cron; what is none is refused in a sentence."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from mergeplan.airflow.graph import VERSION, ScheduleError, graph_of_document, read_graph
from mergeplan.planner.contract import base
from tests.airflow.graphs import SHOP, document, graph, model


def test_a_task_waits_for_the_tables_behind_the_views_that_it_reads() -> None:
    assert graph(*SHOP).task_parents == {
        "s.items": (),
        "s.hourly": ("s.items",),
        "s.total": ("s.items", "s.hourly"),
    }


def test_a_dag_is_due_when_any_model_is() -> None:
    assert graph(SHOP[0]).crons == ("UTC", ())
    assert graph(model("s.a", cron="@midnight"), model("s.b", cron="0 17 * * *")).crons == (
        "UTC", ("0 0 * * *", "0 17 * * *"),
    )  # fmt: skip
    # Of a model in another zone the hour is not that of the DAG.
    assert graph(*SHOP[:4], model("s.c", cron="30 5 * * 1")).crons == (
        "Europe/Berlin", ("0 * * * *", "15 * * * *", "30 * * * *"),
    )  # fmt: skip


def test_a_dag_of_many_crons_is_due_each_hour_at_their_minutes() -> None:
    models = [model(f"s.m{n}", cron=f"{n % 3 * 10} {n} * * *") for n in range(11)]
    assert graph(*models).crons == ("UTC", ("0,10,20 * * * *",))
    assert graph(*models, model("s.often", cron="*/5 * * * *")).crons == ("UTC", ("*/5,0,10,20 * * * *",))


def test_a_file_is_read_as_the_contract_writes_it(tmp_path: Path) -> None:
    path = tmp_path / "shop.json"
    path.write_text(json.dumps({**document(*SHOP), "key_of_tomorrow": 1}))
    read = read_graph(path)

    assert (read.project, read.environment, read.revision) == ("shop", "prod", 3)
    assert read.models["s.items"].audits == ("not_null",)
    assert read.models["s.items"].tags == ("heavy", "core")
    assert VERSION == base.VERSION


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{", "holds no schedule of mergeplan"),
        ("[]", "`mergeplan schedule --to FILE` writes one"),
        ('{"models": [], "environment": "prod", "version": 9}', "of version 9, and this mergeplan reads version 1"),
        ('{"models": [{}], "environment": "prod", "version": 1}', "KeyError('name')"),
    ],
)
def test_what_is_no_schedule_is_refused(text: str, says: str, tmp_path: Path) -> None:
    path = tmp_path / "shop.json"
    path.write_text(text)
    with pytest.raises(ScheduleError) as refused:
        read_graph(path)
    assert says in str(refused.value)


def test_a_missing_file_names_the_command_that_writes_it(tmp_path: Path) -> None:
    with pytest.raises(ScheduleError, match=r"Write it: mergeplan schedule --to "):
        read_graph(tmp_path / "none.json")


def test_a_thousand_models_are_read_within_a_tenth_of_a_second(tmp_path: Path) -> None:
    models = [model(f"s.m{n}", *(f"s.m{p}" for p in range(max(0, n - 3), n)), tags=("a",)) for n in range(1000)]
    path = tmp_path / "shop.json"
    path.write_text(json.dumps(document(*models)))
    took = []
    for _ in range(5):
        began = time.process_time()
        read = read_graph(path)
        parents = read.task_parents
        took.append(time.process_time() - began)

    assert (len(parents), parents["s.m9"]) == (1000, ("s.m6", "s.m7", "s.m8"))
    assert min(took) < 0.1


def test_what_a_dag_processor_imports_of_ours_is_small() -> None:
    names = ("graph", "grouping", "decisions", "place", "child")
    code = "".join(f"import mergeplan.airflow.{name}\n" for name in names) + (
        "import sys\n"
        "heavy = ('pyspark', 'sqlglot', 'pydantic', 'sqlalchemy', 'mergeplan.planner', 'airflow')\n"
        "print([name for name in heavy if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "[]\n"


def test_a_document_of_no_models_has_no_tasks() -> None:
    assert graph_of_document(document()).computed == ()
