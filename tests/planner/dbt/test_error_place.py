"""An error that ends dbt is shown at the file that dbt names, whatever package that is of."""

from __future__ import annotations

from pathlib import Path

import pytest

from mergeplan.planner.python.dbt_code.error_place import find_place

MESSAGE = (
    "Secret env vars are allowed only in profiles.yml or packages.yml. Found 'DBT_ENV_SECRET_A' referenced elsewhere."
)
MISSING = "Env var required but not provided:"


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("Compilation Error in model own (models/own.sql)\n  line 3\n  see models/b.sql", ("models/own.sql", 3)),
        ("Compilation Error in model far (models/far.sql)\n  no", ("dbt_packages/p/models/far.sql", 1)),
        ("Parsing Error\n  Error reading shop: models/s.yml - Runtime Error\n  near line 2", ("models/s.yml", 2)),
        ("Parsing Error\n  Error reading shop: s.yml - Runtime Error\n  near line 2", ("models/s.yml", 2)),
        (f"Parsing Error\n  {MESSAGE}", ("models/own.sql", 2)),
        (f"Parsing Error\n  {MISSING} 'DBT_ENV_SECRET_A'", ("models/own.sql", 2)),
        (f"Compilation Error in model b (models/b.sql)\n  {MISSING} 'TEAM'", ("models/b.sql", 1)),
        ("Compilation Error in model x (../outside.sql)\n  no", ("", 0)),
        ("Compilation Error\n  dbt found two models", ("", 0)),
    ],
)
def test_the_place_is_that_of_the_file_which_dbt_names(tmp_path: Path, text: str, place: tuple[str, int]) -> None:
    root = tmp_path / "shop"
    files = ("profiles.yml", "models/own.sql", "models/b.sql", "models/s.yml", "dbt_packages/p/models/far.sql")
    for name in (*files, "../outside.sql"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("\n{{ env_var('DBT_ENV_SECRET_A') }}" if name == "models/own.sql" else "")

    assert find_place(text, str(root)) == place
