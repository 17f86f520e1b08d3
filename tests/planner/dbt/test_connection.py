"""Settings that follow from the connection or the time of a run are refused before dbt renders them by another one."""

from __future__ import annotations

from pathlib import Path

import pytest

from mergeplan.planner.python.dbt_code.compile_error import CompileError
from mergeplan.planner.python.dbt_code.connection import refuse_settings

PLAIN = "name: shop\nmodels:\n  shop:\n    +materialized: \"{{ 'table' if WHAT else 'view' }}\"\n"


@pytest.mark.parametrize(
    "what", ["target.threads > 4", "target['host'] == 'x'", "(target.get('port') or 0) > 1", "run_started_at.hour"]
)
@pytest.mark.parametrize("folder", ["", "dbt_packages/evil"])
def test_a_setting_that_reads_the_connection_or_the_time_is_refused_at_its_line(
    tmp_path: Path, what: str, folder: str
) -> None:
    (tmp_path / folder).mkdir(parents=True, exist_ok=True)
    (tmp_path / folder / "dbt_project.yml").write_text(PLAIN.replace("WHAT", what))

    with pytest.raises(CompileError, match=r"which mergeplan does not know|by the time of the run") as error:
        refuse_settings(tmp_path, ())
    assert error.value.place == (f"{folder}/dbt_project.yml".strip("/"), 4)


@pytest.mark.parametrize(
    "text",
    [
        PLAIN.replace("WHAT", "target.name == 'prod'"),
        PLAIN.replace("WHAT", "target.http_path == '/x'"),
        PLAIN.replace("+materialized", "+post-hook").replace("WHAT", "target.user"),
        'on-run-end: "{{ log(target.host) }}"\n',
        "models: [",
    ],
)
def test_what_is_known_or_is_rendered_later_is_not_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "dbt_project.yml").write_text(text)

    refuse_settings(tmp_path, ("http_path",))
