"""The environment variables that the files of a project mention."""

from __future__ import annotations

from pathlib import Path

from mergeplan.planner.python.config_code.reading import mentioned_names


def test_files_of_others_in_the_folder_mention_nothing(tmp_path: Path) -> None:
    files = {
        "config.py": "A",
        "more/names.py": "B",
        "venv/pyvenv.cfg": "",
        "venv/lib/site.py": "C",
        ".git/hook.py": "D",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)

    assert mentioned_names(tmp_path, dict.fromkeys("ABCD", "x")) == {"A", "B"}
