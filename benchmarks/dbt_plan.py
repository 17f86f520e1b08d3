"""`mergeplan plan` of a dbt project with nothing edited, beside that of the same models in mergeplan's own format.

Prints CPU seconds (medians) of warm plans, of a repeated command and their ratios, and what the first plan takes, in
which dbt compiles. The Python that has dbt is named by MERGEPLAN_DBT_PYTHON.

    python -m benchmarks.dbt_plan [500]
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.plan_command import median
from benchmarks.projects import COLUMNS, MEASURES, SOURCES, write_project

SIZE = 500
LIMIT = 1.5  # times our own format's
EACH = "@EACH(@countries, c -> SUM(CASE WHEN country = c THEN gross ELSE 0 END) AS revenue_@c)"
LOOP = """{% for c in var('countries') %}SUM(CASE WHEN country = '{{ c }}' THEN gross ELSE 0 END) AS revenue_{{ c }}
  {%- if not loop.last %},{% endif %}{% endfor %}"""
PROJECT = """name: bench
version: "1.0"
config-version: 2
profile: bench
vars: {minimum: 10, countries: [DE, FR, IT]}
"""
PROFILES = "bench: {target: prod, outputs: {prod: {type: spark, method: session, host: none, schema: bench}}}\n"


def write_own(root: Path, size: int) -> list[Path]:
    """The project of `benchmarks.projects` without models by time, which dbt writes in another way."""
    paths = [*write_project(root, size).values()]
    for path in paths:
        text = re.sub(r"INCREMENTAL_BY_TIME_RANGE \(.*?\)", "FULL", path.read_text())
        text = re.sub(r",\n  audits \(.*\)", ",\n  audits (not_null(columns := (id)), not_null(columns := (ds)))", text)
        path.write_text(text.replace("ds BETWEEN @start_ds AND @end_ds", "amount > 0"))
    return paths


def write_dbt(root: Path, paths: list[Path]) -> None:
    """The same models as a dbt project."""
    (root / "models").mkdir(parents=True)
    (root / "dbt_project.yml").write_text(PROJECT)
    (root / "profiles.yml").write_text(PROFILES)
    tested: list[str] = []
    for path in paths:
        header, _, query = path.read_text().partition(");\n")
        kind = "view" if "kind VIEW" in header else "table"
        query = re.sub(r"\b(?:staging|intermediate)\.(m\d+)", r"{{ ref('\1') }}", query)
        query = re.sub(r"\braw\.(source_\d+)", r"{{ source('raw', '\1') }}", query)
        query = query.replace(EACH, LOOP).replace("@minimum", "{{ var('minimum') }}")
        (root / f"models/{path.name}").write_text(f"{{{{ config(materialized='{kind}') }}}}\n{query}")
        tested += [path.stem] if "audits" in header else []
    columns = [*COLUMNS, *((name, "double") for name in MEASURES)]
    typed = ", ".join(f"{{name: {name}, data_type: '{kind}'}}" for name, kind in columns)
    sources = "".join(f"      - {{name: source_{number}, columns: [{typed}]}}\n" for number in range(SOURCES))
    checks = "columns: [{name: id, data_tests: [not_null]}, {name: ds, data_tests: [not_null]}]"
    models = "".join(f"  - {{name: {name}, {checks}}}\n" for name in tested)
    schema = f"version: 2\nsources:\n  - name: raw\n    tables:\n{sources}models:\n{models}"
    (root / "models/schema.yml").write_text(schema)


def main() -> None:
    """Print the table; exit code 1 above the limit."""
    size = int(sys.argv[1]) if len(sys.argv) > 1 else SIZE
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    with tempfile.TemporaryDirectory() as name:
        own, dbt = Path(name, "own"), Path(name, "dbt")
        own.mkdir()
        write_dbt(dbt, write_own(own, size))
        results = {}
        for root in (own, dbt):
            os.environ["MERGEPLAN_CACHE"] = str(root.with_suffix(".cache"))
            subprocess.run([sys.executable, "-m", "benchmarks.promoted", str(root)], check=True)
            results[root.name, "warm"] = median(root)[0]
            os.environ["MERGEPLAN_CACHE"] = str(root.with_suffix(".cold"))
            results[root.name, "first"] = median(root, 1)[0]
    print(f"{size} models, nothing edited: CPU seconds of `mergeplan plan`")
    for what in ("first", "warm"):
        ours, theirs = results["own", what], results["dbt", what]
        print(f"{what:<6} own {ours:6.2f}   dbt {theirs:6.2f}   {theirs / ours:.2f} times")
    if (ratio := results["dbt", "warm"] / results["own", "warm"]) > LIMIT:
        raise SystemExit(f"The dbt project takes {ratio:.2f} times our own format's: more than {LIMIT}.")


if __name__ == "__main__":
    main()
