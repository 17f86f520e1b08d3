"""A release's tag, and its notes: the section of its version in CHANGELOG.md.

python release/notes.py v0.1.0            print the notes
python release/notes.py v0.1.0 --check    check that pyproject.toml and CHANGELOG.md agree with it
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TAG = re.compile(r"v(?P<version>(?P<major>\d+)\.\d+\.\d+(?P<pre>(a|b|rc)\d+)?)")  # as PyPI writes versions
HEADING = re.compile(r"^## \[(?P<version>[^\]]+)\](?P<rest>.*)$", re.MULTILINE)
DATED = re.compile(r" - \d{4}-\d\d-\d\d")


def release_notes(changelog: str, version: str) -> str:
    """The text below a version's heading, up to the next version's; ValueError when there is none."""
    headings = list(HEADING.finditer(changelog))
    for place, heading in enumerate(headings):
        if heading["version"] == version and DATED.fullmatch(heading["rest"]):
            end = headings[place + 1].start() if place + 1 < len(headings) else len(changelog)
            if notes := changelog[heading.end() : end].strip():
                return notes + "\n"
    raise ValueError(f"CHANGELOG.md has no text below `## [{version}] - YYYY-MM-DD`.")


def problems(tag: str, project: str, changelog: str) -> list[str]:
    """Why this tag cannot be released, of the texts of pyproject.toml and CHANGELOG.md; empty when it can."""
    match = TAG.fullmatch(tag)
    if match is None:
        return [f"The tag {tag} is no version: write v1.2.3, or v1.2.3rc1."]
    wrong = []
    version = tomllib.loads(project)["project"]["version"]
    if version != match["version"]:
        wrong.append(f"The tag is {tag}, and the version in pyproject.toml is {version}.")
    try:
        release_notes(changelog, match["version"])
    except ValueError as error:
        wrong.append(str(error))
    return wrong


def outputs(tag: str) -> dict[str, str]:
    """What later jobs ask: the version, the Action's tag of its major version, and whether it is a pre-release."""
    match = TAG.fullmatch(tag)
    assert match is not None
    return {"version": match["version"], "major": f"v{match['major']}", "prerelease": str(bool(match["pre"])).lower()}


def main(arguments: list[str]) -> int:
    if not 1 <= len(arguments) <= 2 or arguments[1:] not in ([], ["--check"]):
        print(__doc__, file=sys.stderr)
        return 2
    tag, changelog = arguments[0], (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    wrong = problems(tag, (ROOT / "pyproject.toml").read_text(encoding="utf-8"), changelog)
    if wrong:
        print(*wrong, sep="\n", file=sys.stderr)
        return 1
    if arguments[1:]:
        print(*(f"{name}={value}" for name, value in outputs(tag).items()), sep="\n")
    else:
        print(release_notes(changelog, tag.removeprefix("v")), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
