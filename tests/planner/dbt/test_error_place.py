"""An error that ends dbt is shown at the file that dbt names, whatever package that is of."""

from __future__ import annotations

from pathlib import Path

import pytest
from jinja2 import Environment, UndefinedError

from mergeplan.planner.python.dbt_code import child
from mergeplan.planner.python.dbt_code.error_place import find_line, find_place

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


@pytest.mark.parametrize(("call", "line"), [("{{ none_such() }}", 4), ("{{ fails() }}", 4), ("{{ ok() }}", 1)])
def test_the_line_is_that_of_the_template_which_calls_what_fails(tmp_path: Path, call: str, line: int) -> None:
    macros = "{% macro fails() %}\n\n\n\n\n{{ none_such() }}{% endmacro %}{% macro ok() %}1{% endmacro %}"
    code = f"SELECT 1\n\n{call}"
    file = tmp_path / "orders.sql"
    file.write_text(f"{{% snapshot orders %}}\n{code}\n{{% endsnapshot %}}")
    error: Exception = ValueError("The hash of a file is another one.")
    try:
        module = Environment(autoescape=True).from_string(macros).module
        Environment(autoescape=True).from_string(code).render(fails=module.fails, ok=module.ok)  # type: ignore[attr-defined]
    except UndefinedError as undefined:
        error = undefined

    assert find_line(error, code, str(file)) == line


def test_a_file_that_is_closed_to_dbt_is_named() -> None:
    error = PermissionError(13, "Permission denied", "/opt/lake/pyspark/__init__.py")

    assert child._error_message(error, "/shop").startswith(
        "dbt cannot read `/opt/lake/pyspark/__init__.py` (Permission"
    )


def test_a_pyspark_that_is_a_link_to_a_closed_place_is_not_taken(tmp_path: Path) -> None:
    assert not child._is_readable(str(tmp_path / "gone/pyspark/__init__.py"))
    assert child._is_readable(__file__)
