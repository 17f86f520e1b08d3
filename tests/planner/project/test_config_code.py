"""A config.py is read and never run."""

from __future__ import annotations

from pathlib import Path

import pytest

from planner.errors import ProjectError
from planner.project.loader import load_project
from tests.planner.shop import NOW


def test_a_config_that_is_code_is_not_run_and_its_keys_are_named(tmp_path: Path) -> None:
    (tmp_path / "config.py").write_text(
        f"open({str(tmp_path / 'ran')!r}, 'w')\nfrom sqlmesh.core.config import Config\n"
        "config = Config(gateways={}, default_gateway='x', model_defaults=None)\n"
    )

    with pytest.raises(ProjectError) as refused:
        load_project(tmp_path, NOW)

    assert str(refused.value).startswith("config.py:3: config.py is code, and mergeplan runs none to learn how")
    assert "with the keys that it gives: `gateways`, `default_gateway`, `model_defaults`." in str(refused.value)
    assert not (tmp_path / "ran").exists()
