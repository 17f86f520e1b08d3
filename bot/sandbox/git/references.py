"""The list of references for a git client, by version 2 of git's protocol: read from files, without a process."""

from collections.abc import Iterator
from pathlib import Path

from mergeplan.bot.sandbox.git import repos

DELIMITER, FLUSH = b"0001", b"0000"
# A tag may be an object of its own, which git has to look into.
OF_COMMITS = ("HEAD", "refs/heads/", "refs/pull/")


def list_references(repo: Path, body: bytes) -> bytes | None:
    """Return the answer to a command `ls-refs`; None if git has to answer."""
    lines = list(_read_lines(body))
    if not lines or lines[0] != "command=ls-refs":
        return None
    prefixes = tuple(line.removeprefix("ref-prefix ") for line in lines if line.startswith("ref-prefix "))
    every = repos.list_refs(repo, "refs/")
    at = (repo / "HEAD").read_text().strip().removeprefix("ref: ")
    if at in every:
        every = {"HEAD": every[at], **every}
    names = {name: sha for name, sha in every.items() if name.startswith(prefixes or "")}
    if at not in every or not all(name.startswith(OF_COMMITS) for name in names):
        return None
    targets = {"HEAD": f" symref-target:{at}"} if "symrefs" in lines else {}
    answer = (f"{sha} {name}{targets.get(name, '')}\n" for name, sha in names.items())
    return b"".join(f"{len(line.encode()) + 4:04x}{line}".encode() for line in answer) + FLUSH


def _read_lines(body: bytes) -> Iterator[str]:
    """Yield the lines of a request up to its end; stop at data that is not in such lines."""
    at = 0
    while (size := body[at : at + 4]) and size != FLUSH:
        if size == DELIMITER:
            at += 4
            continue
        try:
            length = int(size, 16)
        except ValueError:
            return
        if length < 5:
            return
        yield body[at + 4 : at + length].decode("utf-8", "replace").removesuffix("\n")
        at += length
