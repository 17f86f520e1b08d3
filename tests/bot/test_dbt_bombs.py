"""Hostile dbt projects at once, beside an ordinary one: each ends at its file, and nobody waits for all of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from textwrap import indent

import pytest

from mergeplan.bot.records import PullState
from mergeplan.planner.isolation.probe import cannot
from mergeplan.planner.project.dbt.inputs import PYTHON
from tests.bot.conftest import Bench
from tests.bot.test_real_dbt import DBT, FILES
from tests.bot.test_ten_bombs import DOUBLING, assert_ended, resident
from tests.planner.dbt.admission import admit_project_code

pytestmark = [
    pytest.mark.prove,
    pytest.mark.skipif(not DBT.exists(), reason="no dbt: `make .venv-dbt/.ready` installs it, as `make prove` does"),
    pytest.mark.skipif(bool(cannot()), reason="this machine cannot isolate"),
]
MODEL, YAML, PROJECT, PACKAGES = "models/bomb.sql", "models/bomb.yml", "dbt_project.yml", "packages.yml"
LAUGHS = "\n".join(
    ["l0: &l0 [x, x]", *(f"l{at}: &l{at} [{', '.join([f'*l{at - 1}'] * 10)}]" for at in range(1, 10)), ""]
)
MEMORY, VALUES = (
    "takes more memory than project code may have",
    "more than 1000000 values when its aliases are expanded",
)
BOMBS: dict[str, tuple[dict[str, str], str]] = {  # what is pushed, and what is said of it
    "one call of a template": ({MODEL: "select {{ 'a'.center(3000000000)|length }} as a\n"}, MEMORY),
    "a text of a template": ({MODEL: "select '{{ 'a'.center(3000000000) }}' as a\n"}, MEMORY),
    "one call of a setting": ({MODEL: "{{ config(alias='a'.center(3000000000)) }} select 1 as a\n"}, MEMORY),
    "memory of a template": ({MODEL: f"{DOUBLING} select 1 as a\n"}, MEMORY),
    "a list of a template": ({MODEL: "{% set a = range(1000000000)|list %} select 1 as a\n"}, "Range too big"),
    "aliases of YAML": ({YAML: f"version: 2\n{LAUGHS}models: [{{name: priced, meta: {{a: *l9}}}}]\n"}, VALUES),
    "aliases of the project": ({PROJECT: f"{FILES[PROJECT]}vars:\n{indent(LAUGHS, '  ')}"}, VALUES),
    "aliases of packages": ({PACKAGES: f"{LAUGHS}packages: *l9\n"}, VALUES),
    "nested YAML": ({YAML: f"version: 2\na: {'[' * 100_000}\n"}, "maximum nesting depth"),
}


def test_bombs_of_dbt_projects_end_at_their_files_and_an_ordinary_one_is_planned(
    make_bench: Callable[..., Bench], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv(PYTHON, str(DBT))
    admit_project_code(tmp_path)
    bench = make_bench(project=FILES, planner_command=(), warm=True, patience=1800.0, isolation_memory=2)
    before = resident()
    numbers = {name: bench.open(files, f"bomb-{at}") for at, (name, (files, _)) in enumerate(BOMBS.items())}
    added = FILES["models/priced.sql"].replace("select id,", "select id, price,")
    ordinary = bench.open({"models/priced.sql": added}, "ordinary")
    bench.idle()

    assert bench.record(ordinary).state is PullState.PLANNED
    for name, number in numbers.items():
        files, said = BOMBS[name]
        assert_ended(bench, number, next(iter(files)), said)
    assert resident() - before < 300 << 20
