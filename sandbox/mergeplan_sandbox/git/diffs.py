"""What changed between two commits, file by file, with patches as GitHub cuts them."""

from collections.abc import Iterator
from pathlib import Path

from mergeplan_sandbox.git.repos import FileChange, git_of_shas

STATUS = {"A": "added", "D": "removed", "M": "modified", "R": "renamed", "C": "copied", "T": "changed"}


def diff_files(repo: Path, old: str, new: str) -> list[FileChange]:
    """Return the files that differ between two commits in path order, with renames detected."""
    # One run gives both: NUL-ended records of the files, then the patches in the same order.
    argv = ("diff", "--raw", "-p", "-z", "-M", "--abbrev=40", "--no-color", "--no-ext-diff", old, new)
    out = git_of_shas(repo, *argv, revisions=[old, new])
    records, patches = [], []
    if out:
        raw, _, text = out.partition("\0\0")
        records = list(_parse_records(iter(raw.split("\0"))))
        patches = ("\n" + text).split("\ndiff --git ")[1:]
    return [_build_change(*record, piece) for record, piece in zip(records, patches, strict=True)]


def _parse_records(fields: Iterator[str]) -> Iterator[tuple[str, str | None, str, str | None]]:
    for meta in fields:
        sha, letter = meta.split()[3:5]
        path, previous = next(fields), None
        if letter[0] in "RC":
            path, previous = next(fields), path
        yield STATUS[letter[0]], None if set(sha) == {"0"} else sha, path, previous


def _build_change(status: str, sha: str | None, path: str, previous: str | None, piece: str) -> FileChange:
    start = piece.find("\n@@ ")
    patch = "" if start < 0 else piece[start + 1 :].removesuffix("\n")
    lines = patch.split("\n")
    added, removed = (sum(line.startswith(sign) for line in lines) for sign in "+-")
    return FileChange(path, status, sha, added, removed, patch, previous)
