"""The environments of `make test-matrix`, and the places that name the Pythons which it runs."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import yaml

from tests import matrix

ROOT = Path(__file__).parents[1]


def page() -> str:
    return matrix.PAGE.read_text(encoding="utf-8")


def test_each_recorded_environment_has_passed() -> None:
    results = matrix.read_results(page())

    assert results
    assert {name for name, result in results.items() if not result.endswith("| passed | passed")} == set()
    assert results.keys() <= {cell.name for cell in matrix.cells(matrix.PYTHONS)}


def test_a_result_replaces_the_one_before() -> None:
    changed = matrix.record(page(), matrix.Cell("3.12", matrix.LOCKED), ["4.1.9", "passed", "failed"])

    assert matrix.read_results(changed) == {**matrix.read_results(page()), "3.12-locked": "4.1.9 | passed | failed"}


def test_the_same_pythons_are_named_everywhere() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    minors = (ROOT / ".ci/newest_python").read_text()
    jobs = {
        name: yaml.safe_load((ROOT / f".github/workflows/{name}.yml").read_text())["jobs"] for name in ("ci", "nightly")
    }

    classified = [text.rpartition(" ")[2] for text in project["classifiers"] if re.search(r":: 3\.\d+$", text)]
    assert tuple(classified) == matrix.PYTHONS
    assert tuple(jobs["ci"]["test"]["strategy"]["matrix"]["python"]) == matrix.PYTHONS
    assert tuple(jobs["nightly"]["matrix"]["strategy"]["matrix"]["python"]) == matrix.PYTHONS
    assert f"for minor in {' '.join(version[2:] for version in reversed(matrix.PYTHONS))};" in minors
    assert f"# Python {matrix.PYTHONS[0]} to {matrix.PYTHONS[-1]}; Java" in (ROOT / "README.md").read_text()


def test_each_upper_bound_has_its_reason_beside_it() -> None:
    bounded = re.findall(r'(?m)^.*"[\w\[\]-]+[^"#]*<\d[^"]*".*$', (ROOT / "pyproject.toml").read_text())

    assert len(bounded) > 3
    assert [line for line in bounded if "# " not in line] == []
