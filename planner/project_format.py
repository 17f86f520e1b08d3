"""The format of a project, by a file at its root."""

from pathlib import Path

DBT_PROJECT = "dbt_project.yml"


def is_dbt_project(root: Path) -> bool:
    return (root / DBT_PROJECT).is_file()
