"""The table of docs/reference/versions.md, made of what the tests install by `python -m tests.versions_page`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from mergeplan.planner.model.table_format import FORMATS
from tests.matrix import PYTHONS, SPARKS

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "reference" / "versions.md"
MARKED = re.compile(r"(<!-- versions -->\n).*?(<!-- end -->)", re.DOTALL)
PINS = {  # a file of pins -> what installs it, and which of its packages the table names
    "tests/airflow/requirements.txt": ("Airflow", "apache-airflow"),
    "tests/dagster/requirements.txt": ("Dagster", "dagster"),
}


def page(text: str) -> str:
    """Return the page with the table as it must be."""
    rows = "".join(f"| {' | '.join(row)} |\n" for row in _rows())
    return MARKED.sub(lambda found: f"{found[1]}| What | Version | Run by |\n|---|---|---|\n{rows}{found[2]}", text)


def _rows() -> Iterator[tuple[str, str, str]]:
    locked = _pin("requirements.lock", "pyspark")
    yield "Python", ", ".join(PYTHONS), "`make test` in the workflow, `make test-matrix`"
    yield "pyspark", locked, "`make test`, `make prove`"
    yield "pyspark", ", ".join(f"{spark} (newest)" for spark in SPARKS), "`make test-matrix`"
    for table_format in FORMATS.values():
        for release in table_format.releases:
            artifact, version = release.package.split(":")[1:]
            yield table_format.title, f"{artifact} {version}", "`make prove-lakehouse`"
    for path in sorted((ROOT / "tests/planner/dbt").glob("requirements*.txt"), key=_core_version):
        name = path.relative_to(ROOT).as_posix()
        adapter = "dbt-databricks" if "databricks" in name else "dbt-spark"
        yield "dbt", f"dbt-core {_pin(name, 'dbt-core')}, {adapter} {_pin(name, adapter)}", "`make prove`"
    for name, (title, package) in PINS.items():
        yield title, _pin(name, package), "`make prove`"


def _pin(name: str, package: str) -> str:
    (version,) = re.findall(rf"(?m)^{package}==(\S+)$", (ROOT / name).read_text(encoding="utf-8"))
    return str(version)


def _core_version(path: Path) -> list[int]:
    return [int(part) for part in _pin(path.relative_to(ROOT).as_posix(), "dbt-core").split(".")]


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
