"""Pictures of other programs' pages for the guides, which the proofs take where MERGEPLAN_PICTURES is set."""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path

FOLDER = Path(__file__).parent.parent / "docs" / "pictures" / "orchestrators"


def take_screenshot(url: str, name: str, size: tuple[int, int] = (1300, 620)) -> None:
    """A page as a PNG of the guides, once its scripts have drawn it; nothing where no pictures are to be taken."""
    if not os.environ.get("MERGEPLAN_PICTURES"):
        return
    FOLDER.mkdir(exist_ok=True)
    browser = os.environ.get("CHROMIUM", "chromium")
    options = ("--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--force-color-profile=srgb")
    with tempfile.TemporaryDirectory() as profile:
        command = [
            browser, *options, f"--user-data-dir={profile}", f"--window-size={size[0]},{size[1]}",
            "--virtual-time-budget=40000", f"--screenshot={FOLDER / name}", url,
        ]  # fmt: skip
        subprocess.run(command, capture_output=True, check=True, timeout=300)
