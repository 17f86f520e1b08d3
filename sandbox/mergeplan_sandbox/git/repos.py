"""The git side of a repository: one bare repository on disk, read and changed through git's own commands."""

import os
import re
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path

GIT_TIMEOUT = 60.0
ZERO_SHA = "0" * 40
SETTINGS = """\
[uploadpack]
\tallowAnySHA1InWant = true
\tallowFilter = true
[http]
\treceivepack = true
[receive]
\thideRefs = refs/pull
[gc]
\tauto = 0
"""
SHAS = re.compile(r"\^?[0-9a-f]{40}(?:\.\.[0-9a-f]{40}|\^\{commit\})?")
FIELD, RECORD = "\x1f", "\x1e"  # cannot stand in names or messages that git accepts from us


class GitError(Exception):
    """An error of git, with its message."""


@dataclass(frozen=True)
class Person:
    name: str
    email: str


@dataclass(frozen=True)
class Commit:
    sha: str
    tree: str
    parents: tuple[str, ...]
    author: Person
    author_date: datetime
    committer: Person
    committer_date: datetime
    message: str


@dataclass(frozen=True)
class FileChange:
    filename: str
    status: str
    sha: str | None
    additions: int
    deletions: int
    patch: str
    previous_filename: str | None = None


def git(repo: Path, *argv: str, stdin: bytes | None = None, env: Mapping[str, str] | None = None) -> str:
    """Run one git command in the repository and return its output."""
    return run_bytes(repo, *argv, stdin=stdin, env=env).decode("utf-8", "replace")


def run_bytes(repo: Path, *argv: str, stdin: bytes | None = None, env: Mapping[str, str] | None = None) -> bytes:
    """Run git as `git` does, and return output that need not be text."""
    done = subprocess.run(
        ["git", "-C", str(repo), *argv],
        input=stdin if stdin is not None else b"",
        env=git_environment() | dict(env or {}),
        capture_output=True,
        timeout=GIT_TIMEOUT,
        check=False,
    )
    if done.returncode != 0:
        raise GitError((done.stderr or done.stdout).decode("utf-8", "replace").strip())
    return done.stdout


def git_of_shas(repo: Path, *argv: str, revisions: Sequence[str]) -> str:
    """Run git as `git` does for a query about revisions; cache the answer if all of them are full SHAs."""
    stays = revisions and all(SHAS.fullmatch(revision) for revision in revisions)
    return (_git_once if stays else git)(repo, *argv)


_git_once = lru_cache(maxsize=500)(git)  # a refusal is not kept: the commit may come


def git_environment() -> dict[str, str]:
    """Return an environment in which git reads no configuration of this machine and never prompts."""
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": tempfile.gettempdir(),
        "LC_ALL": "C.UTF-8",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_TERMINAL_PROMPT": "0",
    }


def create_repository(repo: Path, default_branch: str) -> None:
    """Create an empty bare repository that serves fetches by SHA and whose pull-request refs are GitHub's own."""
    repo.mkdir(parents=True)
    git(repo, "init", "--quiet", "--bare", "--template=", f"--initial-branch={default_branch}", ".")
    with (repo / "config").open("a") as config:
        config.write(SETTINGS)


def clone_repository(source: Path, target: Path, default_branch: str) -> None:
    create_repository(target, default_branch)
    git(target, "fetch", "--quiet", str(source), "+refs/heads/*:refs/heads/*")


def find_tip(repo: Path, ref: str) -> str | None:
    """Return the commit that a ref, branch name or SHA points to, or None."""
    if ref.startswith("-"):
        return None
    if not SHAS.fullmatch(ref) and (branch := list_refs(repo).get(f"refs/heads/{ref}")):
        return branch
    for name in (ref, f"refs/heads/{ref}"):
        try:
            revision = f"{name}^{{commit}}"
            argv = ("rev-parse", "--verify", "--quiet", "--end-of-options", revision)
            return git_of_shas(repo, *argv, revisions=[revision]).strip()
        except GitError:
            continue
    return None


def list_refs(repo: Path, prefix: str = "refs/heads/") -> dict[str, str]:
    """Return the refs under a prefix and their objects.

    They are read from files because they are read too often to start git.
    """
    names: dict[str, str] = {}
    with suppress(FileNotFoundError):
        lines = (repo / "packed-refs").read_text().splitlines()
        names |= {name: sha for sha, _, name in (line.partition(" ") for line in lines if line[0] not in "#^")}
    for folder, _, files in os.walk(repo / "refs"):
        for path in (Path(folder, file) for file in files if not file.endswith(".lock")):
            with suppress(FileNotFoundError):  # deleted meanwhile
                names[path.relative_to(repo).as_posix()] = path.read_text().strip()
    return {name: names[name] for name in sorted(names) if name.startswith(prefix)}


def set_ref(repo: Path, ref: str, sha: str | None) -> None:
    """Point a ref at a commit, or delete it if `sha` is None."""
    if sha is None:
        git(repo, "update-ref", "-d", ref)
    else:
        git(repo, "update-ref", ref, sha)


def valid_branch(name: str) -> bool:
    """Return True if git accepts the name for a branch: its own rules for refs, and no leading dash."""
    if not name or name in ("@", "HEAD") or name.startswith(("-", "/")) or name.endswith(("/", ".")):
        return False
    if any(part.startswith(".") or part.endswith(".lock") or not part for part in name.split("/")):
        return False
    return not re.search(r"[\x00-\x20\x7f~^:?*\[\\]|\.\.|@\{", name)


def commit_files(
    repo: Path, branch: str, files: Mapping[str, str | bytes | None], message: str, author: Person, parent: str | None
) -> str:
    """Add one commit of those files (None deletes) on top of `parent` and point the branch at it."""
    name = "".join(char for char in author.name if char not in "<>\n")
    stamp = f"{name} <{author.email}> {int(datetime.now(UTC).timestamp())} +0000"
    text = message.encode()
    stream = [
        f"commit refs/heads/{branch}\nauthor {stamp}\ncommitter {stamp}\ndata {len(text)}\n".encode(),
        text,
        b"\n",
    ]
    if parent:
        stream.append(f"from {parent}\n".encode())
    stream += [_file_line(path, content) for path, content in files.items()]
    git(repo, "fast-import", "--quiet", "--force", stdin=b"".join(stream))
    return list_refs(repo)[f"refs/heads/{branch}"]


def _file_line(path: str, content: str | bytes | None) -> bytes:
    quoted = '"' + path.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'
    if content is None:
        return f"D {quoted}\n".encode()
    data = content.encode() if isinstance(content, str) else content
    return f"M 100644 inline {quoted}\ndata {len(data)}\n".encode() + data + b"\n"


def _identity_variables(person: Person) -> dict[str, str]:
    parts = {"NAME": person.name, "EMAIL": person.email}
    return {f"GIT_{who}_{part}": value for who in ("AUTHOR", "COMMITTER") for part, value in parts.items()}


def commit_tree(repo: Path, tree: str, parents: tuple[str, ...], message: str, author: Person) -> str:
    """Create a commit of a tree without moving any ref."""
    flags = [flag for parent in parents for flag in ("-p", parent)]
    return git(repo, "commit-tree", tree, *flags, stdin=message.encode(), env=_identity_variables(author)).strip()


def merge_trees(repo: Path, base: str, head: str) -> str | None:
    try:
        return git(repo, "merge-tree", "--write-tree", base, head).splitlines()[0]
    except GitError:
        return None


def rebase_commits(repo: Path, base: str, head: str, committer: Person) -> str:
    """Put the head's commits one by one on top of the base; git needs a work tree for it."""
    with tempfile.TemporaryDirectory(prefix="rebase-") as folder:
        work = Path(folder) / "work"
        git(repo, "worktree", "add", "--quiet", "--detach", str(work), head)
        try:
            git(work, "rebase", "--quiet", base, env=_identity_variables(committer))
            return git(work, "rev-parse", "HEAD").strip()
        finally:
            git(repo, "worktree", "remove", "--force", str(work))


def fetch_commit(repo: Path, source: Path, sha: str, ref: str) -> None:
    git(repo, "fetch", "--quiet", "--no-tags", str(source), f"+{sha}:{ref}")


def merge_base(repo: Path, one: str, other: str) -> str | None:
    try:
        return git_of_shas(repo, "merge-base", one, other, revisions=[one, other]).strip()
    except GitError:
        return None


def is_ancestor(repo: Path, ancestor: str, sha: str) -> bool:
    try:
        git(repo, "merge-base", "--is-ancestor", ancestor, sha)
    except GitError:
        return False
    return True


def read_commit(repo: Path, sha: str) -> Commit:
    return list_commits(repo, "-1", sha)[0]


def list_commits(repo: Path, *revisions: str) -> list[Commit]:
    """Read commits, newest first, as `git log` selects them."""
    fields = FIELD.join(["%H", "%T", "%P", "%an", "%ae", "%aI", "%cn", "%ce", "%cI", "%B"])
    shas = [revision for revision in revisions if not revision.startswith("-")]
    out = git_of_shas(repo, "log", f"--format={fields}{RECORD}", *revisions, "--", revisions=shas)
    return [_parse_commit(record.lstrip("\n")) for record in out.split(RECORD) if record.strip()]


def _parse_commit(record: str) -> Commit:
    sha, tree, parents, name, email, date, by_name, by_email, by_date, message = record.split(FIELD)
    return Commit(
        sha,
        tree,
        tuple(parents.split()),
        Person(name, email),
        datetime.fromisoformat(date),
        Person(by_name, by_email),
        datetime.fromisoformat(by_date),
        message.rstrip("\n"),
    )


def read_blob(repo: Path, ref: str, path: str) -> tuple[str, bytes] | None:
    """Return a file's blob SHA and content at a commit, or None."""
    entry = git(repo, "ls-tree", ref, "--", path).strip()
    if not entry or " blob " not in entry:
        return None
    sha = entry.split()[2]
    return sha, run_bytes(repo, "cat-file", "blob", sha)


def list_files(repo: Path, ref: str) -> list[str]:
    return git(repo, "ls-tree", "-r", "-z", "--name-only", ref).split("\0")[:-1]
