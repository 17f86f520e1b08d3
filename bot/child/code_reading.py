"""The child that reads `cicd_bot` of a config.py, which runs in a child of its own, without environment variables."""

import os
from dataclasses import asdict
from pathlib import Path

from mergeplan.bot.child.reading import answer_one
from mergeplan.bot.cicd_section import NAME, CicdSection, section_of
from mergeplan.planner.errors import ProjectError, Refused
from mergeplan.planner.isolation.mode import NO_ISOLATION, Isolation, isolation_of
from mergeplan.planner.parsing.files.configuration import START
from mergeplan.planner.python.config_code.reading import run_config


def read_code_section(path: str, text: str, folder: Path, isolation: Isolation = NO_ISOLATION) -> CicdSection:
    """Return the `cicd_bot` section of a config.py, run in its folder; raise ProjectError if it fails or is no data."""
    try:
        code = run_config(folder, text, {}, isolation, path)
    except Refused as error:
        raise ProjectError(error.message, place=error.place, hint=error.hint) from None
    return section_of(code.document(lambda _variable, _place: START, NAME), code.files)


def _load_section(path: str, text: str, folder: str) -> object:
    return asdict(read_code_section(path, text, Path(folder), isolation_of(os.environ)))


if __name__ == "__main__":
    answer_one({"section": _load_section})
