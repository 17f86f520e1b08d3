"""The recording of the case table of edits is what dbt says today."""

from __future__ import annotations

from pathlib import Path

import pytest

from .edits import ask_dbt, cases, record, recorded
from .test_real_dbt import DBT

pytestmark = [
    pytest.mark.prove,
    pytest.mark.skipif(not DBT.exists(), reason="no dbt: `make .venv-dbt/.ready` installs it, as `make prove` does"),
]


def test_the_recorded_edits_are_dbts_own(tmp_path: Path) -> None:
    says = ask_dbt(tmp_path, str(DBT))

    assert record(says) == recorded()
    assert {case.name: list(case.dbt) for case in cases()} == {
        case.name: said["dbt"] for case, said in zip(cases(), says[1:], strict=True)
    }
