"""The colours of the pages are those of Primer, as its own package has them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from mergeplan.planner.site.pages import TEMPLATES, read_colours
from tests.npm import fetch_package

USED = re.compile(r"var\(--((?:bgColor|fgColor|borderColor|control|prettylights|shadow)-[\w-]+)\)")
SHEETS = ("planner/site/templates", "planner/ui/assets", "bot/pages/templates")
ROOT = Path(__file__).parents[3]


def test_every_colour_that_a_style_names_is_there() -> None:
    sheets = [path.read_text(encoding="utf-8") for folder in SHEETS for path in (ROOT / folder).glob("*.css")]
    used = {name for sheet in sheets for name in USED.findall(sheet)}

    assert len(used) > 20
    assert used <= set(re.findall(r"--([\w-]+):", read_colours()))


@pytest.mark.prove
def test_each_colour_is_the_one_of_primers_package(tmp_path: Path) -> None:
    version = re.search(r"@primer/primitives ([\d.]+)", read_colours())
    assert version
    package = fetch_package(f"@primer/primitives@{version[1]}", tmp_path)
    parts = read_colours().partition("@media")

    for part, theme in ((parts[0], "light"), (parts[2], "dark")):
        sheet = (package / "dist/css/functional/themes" / f"{theme}.css").read_text(encoding="utf-8")
        published = dict(reversed(re.findall(r"--([\w-]+):\s*([^;]+);", sheet)))
        assert dict(re.findall(r"--([\w-]+): ([^;]+);", part)).items() <= published.items()
    assert (TEMPLATES / "primer.LICENSE").read_bytes() == (package / "LICENSE").read_bytes()
