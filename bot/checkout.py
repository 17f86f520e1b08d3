"""Git without a shell: a bare mirror of a repository, and the files of one commit or of a merge, for a planner to read.

The token reaches git through its environment only, never through argv or a file. Symbolic links become plain files and
a checked-out tree holds no `.git`, so that a pull request cannot point outside of it.
"""

from __future__ import annotations

import base64
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from filelock import FileLock

from bot.events import REPOSITORY, SHA

GIT_SECONDS = 600
SAFE_CONFIG = {
    "core.symlinks": "false",
    "core.hooksPath": os.devnull,
    "core.fsmonitor": "false",
    "gc.auto": "0",
    "fetch.fsckObjects": "true",
    "submodule.recurse": "false",
    "protocol.allow": "never",
    "protocol.http.allow": "always",
    "protocol.https.allow": "always",
}
IDENTITY = {
    f"GIT_{who}_{what}": value
    for who in ("AUTHOR", "COMMITTER")
    for what, value in (("NAME", "mergeplan"), ("EMAIL", "mergeplan@localhost"), ("DATE", "2000-01-01T00:00:00Z"))
}
# A change to these alone changes no model: no planner has to be asked.
PLAIN_FILES = re.compile(r"(?:[^/]+\.(?:md|rst|txt)|LICENSE[^/]*|\.gitignore|\.github/.*|docs/.*)", re.IGNORECASE)


class CheckoutFailed(Exception):
    """Git could not do it; the text holds no token."""


@dataclass(frozen=True)
class Merge:
    """What a merge of two commits gives: a commit and its tree, or the paths that conflict, or none of these.

    Nothing at all means that the two have no commit in common.
    """

    commit: str = ""
    tree: str = ""
    conflicts: tuple[str, ...] = ()


class Checkout:
    """The mirror of one repository under `folder`."""

    def __init__(self, folder: Path, repository: str, url: str, token: Callable[[], str]) -> None:
        if not REPOSITORY.fullmatch(repository):
            raise ValueError("not a repository's name")
        self.folder = folder
        self._mirror = folder / "mirror.git"
        self._url = url
        self._token = token
        folder.mkdir(parents=True, exist_ok=True)
        self._lock = FileLock(folder / "mirror.lock")

    def fetch(self, branch: str, number: int = 0) -> None:
        """Brings the branch, and a pull request's head, up to date."""
        refs = [f"+refs/heads/{branch}:refs/heads/{branch}"]
        refs += [f"+refs/pull/{int(number)}/head:refs/pull/{int(number)}/head"] if number else []
        for ref in refs:
            self._checked_ref(ref.partition(":")[2])
        with self._lock:
            if not (self._mirror / "HEAD").exists():
                self._git("init", "--bare", "--quiet", str(self._mirror), bare=False)
            self._git("fetch", "--quiet", "--no-tags", "--force", self._url, *refs, network=True)

    def has(self, commit: str) -> bool:
        return self._ask("cat-file", "-e", f"{_sha(commit)}^{{commit}}") == 0

    def head(self, branch: str) -> str:
        """The commit of a fetched branch."""
        return self._git("rev-parse", "--verify", "--quiet", f"refs/heads/{branch}^{{commit}}").strip()

    def tree(self, commit: str) -> str:
        return self._git("rev-parse", "--verify", "--quiet", f"{_sha(commit)}^{{tree}}").strip()

    def contains(self, newer: str, older: str) -> bool:
        """True when `older` is `newer` or an ancestor of it."""
        return self._ask("merge-base", "--is-ancestor", _sha(older), _sha(newer)) == 0

    def first_parents(self, after: str, until: str) -> tuple[str, ...]:
        """The commits of a branch after one of them, oldest first, as its merges saw them."""
        listed = self._git(
            "rev-list", "--first-parent", "--reverse", "--max-count=500", f"{_sha(after)}..{_sha(until)}"
        )
        return tuple(listed.split())

    def changed(self, old: str, new: str) -> tuple[str, ...]:
        """The paths that differ between two commits."""
        return tuple(
            path
            for path in self._git("diff", "--name-only", "-z", "--no-renames", _sha(old), _sha(new)).split("\0")
            if path
        )

    def read(self, commit: str, path: str) -> str | None:
        """A file's text at a commit, None when there is none."""
        name = f"{_sha(commit)}:{path.removeprefix('./')}"
        return self._git("cat-file", "blob", name) if self._ask("cat-file", "-e", name) == 0 else None

    def merge(self, base: str, head: str) -> Merge:
        """What the head gives when it is merged into the base; always the same commit for the same two."""
        if self.contains(head, base):
            return Merge(head, self.tree(head))
        if self._ask("merge-base", _sha(base), _sha(head)) == 1:
            return Merge()
        code, out = self._run("merge-tree", "--write-tree", "--name-only", "--no-messages", _sha(base), _sha(head))
        if code not in (0, 1):
            raise CheckoutFailed("Git cannot merge the head into the base.")
        tree, *paths = out.splitlines()
        if code == 1:
            return Merge(conflicts=tuple(dict.fromkeys(paths)))
        message = f"{head} merged into {base}"
        commit = self._git("commit-tree", tree, "-p", base, "-p", head, "-m", message).strip()
        return Merge(commit, tree)

    @contextmanager
    def files(self, commit: str, name: str) -> Iterator[Path]:
        """The files of a commit in a folder of their own, which is gone afterwards."""
        place = self.folder / "trees" / re.sub(r"[^A-Za-z0-9_-]", "_", name)
        index = place.with_suffix(".index")
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True)
        try:
            more = {"GIT_INDEX_FILE": str(index), "GIT_WORK_TREE": str(place)}
            self._git("read-tree", _sha(commit), environment=more)
            self._git("checkout-index", "--all", "--force", environment=more)
            yield place
        finally:
            index.unlink(missing_ok=True)
            shutil.rmtree(place, ignore_errors=True)

    def _checked_ref(self, ref: str) -> None:
        if self._ask("check-ref-format", ref, bare=False) != 0:
            raise CheckoutFailed("That is not the name of a branch.")

    def _ask(self, *arguments: str, bare: bool = True) -> int:
        return self._run(*arguments, bare=bare)[0]

    def _git(
        self, *arguments: str, bare: bool = True, network: bool = False, environment: dict[str, str] | None = None
    ) -> str:
        code, out = self._run(*arguments, bare=bare, network=network, environment=environment)
        if code:
            raise CheckoutFailed(f"git {arguments[0]} failed ({code}).")
        return out

    def _run(
        self, *arguments: str, bare: bool = True, network: bool = False, environment: dict[str, str] | None = None
    ) -> tuple[int, str]:
        where = [f"--git-dir={self._mirror}"] if bare else []
        try:
            done = subprocess.run(
                ["git", *where, *arguments],
                env={**self._environment(network), **(environment or {})},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                timeout=GIT_SECONDS,
                check=False,
                cwd=(environment or {}).get("GIT_WORK_TREE", self.folder),
            )
        except subprocess.TimeoutExpired:
            raise CheckoutFailed(f"git {arguments[0]} took longer than {GIT_SECONDS} s.") from None
        return done.returncode, done.stdout.decode("utf-8", "replace")

    def _environment(self, network: bool) -> dict[str, str]:
        config = dict(SAFE_CONFIG)
        token = self._token() if network else ""
        if token:
            place = urlsplit(self._url)
            basic = base64.b64encode(f"x-access-token:{token}".encode()).decode()
            config[f"http.{place.scheme}://{place.netloc}/.extraHeader"] = f"Authorization: Basic {basic}"
        pairs = {"GIT_CONFIG_COUNT": str(len(config))}
        for index, (key, value) in enumerate(config.items()):
            pairs |= {f"GIT_CONFIG_KEY_{index}": key, f"GIT_CONFIG_VALUE_{index}": value}
        kept = {
            key: os.environ[key]
            for key in ("PATH", "LANG", "TMPDIR", "SSL_CERT_FILE", "SSL_CERT_DIR")
            if key in os.environ
        }
        return {
            **kept,
            **pairs,
            **IDENTITY,
            "HOME": str(self.folder),
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": os.devnull,
        }


def changes_no_model(paths: Sequence[str], root: str) -> bool:
    """True when a change of these paths cannot change a model; in doubt it can.

    >>> changes_no_model(["README.md"], "."), changes_no_model(["models/a.sql"], ".")
    (True, False)
    """
    prefix = "" if root in ("", ".") else root.strip("/") + "/"
    return all(PLAIN_FILES.fullmatch(path.removeprefix(prefix)) is not None for path in paths)


def _sha(commit: str) -> str:
    if not SHA.fullmatch(commit):
        raise CheckoutFailed("That is not a commit.")
    return commit
