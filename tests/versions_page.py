"""The table of docs/reference/versions.md and planner/tested_versions.ini, made of what the tests install.

`python -m tests.versions_page` writes both.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from mergeplan.planner.model.table_format import FORMATS
from tests.matrix import PYTHONS, SPARKS

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "reference" / "versions.md"
LISTS = ROOT / "planner" / "tested_versions.ini"
MARKED = re.compile(r"(<!-- versions -->\n).*?(<!-- end -->)", re.DOTALL)
PINS = {  # a file of pins -> what installs it, and which of its packages the table names
    "tests/airflow/requirements.txt": ("Airflow", "apache-airflow"),
    "tests/dagster/requirements.txt": ("Dagster", "dagster"),
}


def page(text: str) -> str:
    """Return the page with the table as it must be."""
    rows = "".join(f"| {' | '.join(row)} |\n" for row in _rows())
    return MARKED.sub(lambda match: f"{match[1]}| What | Version | Run by |\n|---|---|---|\n{rows}{match[2]}", text)


def _rows() -> Iterator[tuple[str, str, str]]:
    locked = _pin("requirements.lock", "pyspark")
    yield "Python", ", ".join(PYTHONS), "`make test` in the workflow, `make test-matrix`"
    yield "pyspark", locked, "`make test`, `make prove`"
    yield "pyspark", ", ".join(f"{spark} (newest)" for spark in SPARKS), "`make test-matrix`"
    for table_format in FORMATS.values():
        for release in table_format.releases:
            artifact, version = release.package.split(":")[1:]
            yield table_format.title, f"{artifact} {version}", "`make prove-lakehouse`"
    for name in _dbt_files():
        adapter = "dbt-databricks" if "databricks" in name else "dbt-spark"
        yield "dbt", f"dbt-core {_pin(name, 'dbt-core')}, {adapter} {_pin(name, adapter)}", "`make prove`"
    for name, (title, package) in PINS.items():
        yield title, _pin(name, package), "`make prove`"


def lists() -> str:
    """Return the tested versions as `mergeplan doctor` reads them."""
    versions: dict[str, Iterable[str]] = {
        "python": PYTHONS,
        "pyspark": SPARKS,
        "dbt": dict.fromkeys(_pin(name, "dbt-core") for name in _dbt_files()),
        **{title.lower(): (_pin(name, package),) for name, (title, package) in PINS.items()},
        **{
            name: dict.fromkeys(release.version for release in table.releases)
            for name, table in FORMATS.items()
            if table.releases
        },
    }
    lines = (f"{name} = {' '.join(words)}\n" for name, words in versions.items())
    return f"# `python -m tests.versions_page` writes this of what the tests install.\n\n[versions]\n{''.join(lines)}"


def _dbt_files() -> list[str]:
    paths = sorted((ROOT / "tests/planner/dbt").glob("requirements*.txt"), key=_core_version)
    return [path.relative_to(ROOT).as_posix() for path in paths]


def _pin(name: str, package: str) -> str:
    (version,) = re.findall(rf"(?m)^{package}==(\S+)$", (ROOT / name).read_text(encoding="utf-8"))
    return str(version)


def _core_version(path: Path) -> list[int]:
    return [int(part) for part in _pin(path.relative_to(ROOT).as_posix(), "dbt-core").split(".")]


if __name__ == "__main__":
    LISTS.write_text(lists(), encoding="utf-8")
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
