"""A catalog of some files, made without Spark."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType

import pytest

from mergeplan.planner.catalog.catalog import Catalog
from mergeplan.planner.session.session import Session
from mergeplan.planner.session.settings import SessionSettings
from tests.planner.cli.conftest import TODAY
from tests.planner.session.conftest import refuse_engine
from tests.planner.shop import write_shop


@pytest.fixture
def catalog(tmp_path: Path) -> Callable[..., Catalog]:
    """Makes the catalog of the shop with these files, by stem or by path."""

    def make_catalog(paths: Mapping[str, str] = MappingProxyType({}), **files: str) -> Catalog:
        write_shop(tmp_path, **files)
        for path, text in paths.items():
            (tmp_path / path).write_text(text)
        with Session(SessionSettings(tmp_path, open_engine=refuse_engine), TODAY) as session:
            return session.catalog()

    return make_catalog
