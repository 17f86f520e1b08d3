"""A bare mirror of a repository, and the files of one commit or of a merge, for a planner to read. Git without a shell.

The mirror is a folder of objects and nothing else. What a branch is, the server says at each fetch and this process
remembers; what an object holds is believed when it hashes to its name. So whatever writes into the mirror gets a fetch
that is done again, and nothing of its own read as a commit of the repository. Texts are the commit's own bytes: no
attribute, filter, line ending or keyword of git changes them. A link becomes a plain file that says where it points, a
submodule an empty folder.
"""

import errno
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import combinations, count, product
from pathlib import Path

import structlog
from filelock import FileLock, Timeout

from mergeplan.bot.forge.events import REPOSITORY, SHA
from mergeplan.bot.git.call import (
    EMPTY_TREE,
    GIT_SECONDS,
    BadCommit,
    CheckoutFailed,
    GitEnd,
    ServerUnreachable,
    open_git_folder,
    remove_path,
    run_git,
)
from mergeplan.bot.git.objects import FOLDER, Entry, GitCommit, ObjectMemory, Objects, Tampered, open_objects
from mergeplan.bot.git.work_tree import Slot, claim_slot
from mergeplan.bot.projects import ROOT, inside

log = structlog.get_logger(__name__)
STEPS_MOST = 500
LONGEST_PATH = 200  # characters that are shown
# What a path of a commit can be the reason of: too long, or two of its files are one here.
UNWRITABLE = (errno.EEXIST, errno.EILSEQ, errno.EINVAL, errno.EISDIR, errno.ENAMETOOLONG, errno.ENOTDIR, errno.ELOOP)
# A partial clone: of files, which may be large and are many over a history, only those that are read are fetched.
FETCH = ("fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--filter=blob:none", "--stdin")
NO_REFERENCE = "couldn't find remote ref"
UNREACHABLE = re.compile(r"unable to access|Authentication failed|repository '.*' not found|could not read Username")
# A change to these alone changes no model: no planner has to be asked.
PLAIN_FILES = re.compile(
    r"(?!requirements\.txt$)(?:[^/]+\.(?:md|rst|txt)|LICENSE[^/]*|\.gitignore|\.github/.*|docs/.*)", re.IGNORECASE
)


@dataclass(frozen=True)
class Merge:
    """A merge of two commits: a commit and its tree, the paths that conflict, or nothing: they share no commit."""

    commit: str = ""
    tree: str = ""
    conflicts: tuple[str, ...] = ()


class Checkout:
    """The mirror of a repository under `folder`, shared by projects and processes, and the project's place in it."""

    def __init__(self, folder: Path, repository: str, url: str, token: Callable[[], str], project: str = ROOT) -> None:
        if not REPOSITORY.fullmatch(repository):
            raise ValueError("not a repository's name")
        self.folder = folder
        self.project = project
        self._mirror = folder / "mirror.git"
        self._url = url
        self._token = token
        self._heads: dict[str, str] = {}  # as the server lists them, by reference
        self._slots: list[Slot] = []  # folders for work trees that are not in use
        self._commits: dict[str, GitCommit] = {}  # each was read under its own hash, and so stays what it is
        self._memory = ObjectMemory()
        folder.mkdir(parents=True, exist_ok=True)
        self._lock = FileLock(folder / "mirror.lock", timeout=GIT_SECONDS)

    # --- what the server has ---

    def fetch(self, branch: str, number: int = 0) -> None:
        refs = [f"refs/heads/{branch}", *([f"refs/pull/{int(number)}/head"] if number else [])]
        with self._lock_mirror():
            for ref in refs:
                if ref not in self._heads and self._run_git("check-ref-format", ref).code != 0:
                    raise CheckoutFailed("That is not the name of a branch.")
            # by numbers: a branch may have a longer name than a file
            targets = [f"{ref}:refs/fetched/{number}" for number, ref in enumerate(refs)]
            heads = dict(zip(refs, self._fetch_objects(targets), strict=True))
            self._fetch_objects(self._find_missing(heads))
            self._heads |= heads
            note = self._mirror / "tips.json"
            remove_path(note)
            with suppress(OSError), note.open("x") as file:
                json.dump(self._heads, file)

    def head(self, branch: str) -> str:
        try:
            return self._heads[f"refs/heads/{branch}"]
        except KeyError:
            raise CheckoutFailed("That branch was not fetched.") from None

    # --- what a commit is ---

    def has(self, commit: str) -> bool:
        with self._open_objects() as objects:
            return self._find_commit(objects, _check_sha(commit)) is not None

    def tree(self, commit: str) -> str:
        with self._open_objects() as objects:
            return self._require_commit(objects, commit).tree

    def contains(self, newer: str, older: str) -> bool:
        """Return True when `older` is `newer` or an ancestor of it."""
        with self._open_objects() as objects:
            return _check_sha(older) in self._list_ancestors(objects, _check_sha(newer))

    def first_parents(self, after: str, until: str) -> tuple[str, ...]:
        """Return the commits of a branch after one of them, oldest first, as its merges saw them."""
        with self._open_objects() as objects:
            ancestors, commits, at = self._list_ancestors(objects, _check_sha(after)), list[str](), _check_sha(until)
            while at and at not in ancestors:
                commits.append(at)
                at = next(iter(self._require_commit(objects, at).parents), "")
        return tuple(reversed(commits[:STEPS_MOST]))

    def diff_paths(self, old: str, new: str) -> tuple[str, ...]:
        with self._open_objects() as objects:
            trees = [self._require_commit(objects, commit).tree for commit in (old, new)]
            return tuple(dict.fromkeys(path for path, _ in objects.differing(*trees)))

    def read(self, commit: str, path: str) -> str | None:
        """Return a file's text at a commit, None when there is none."""
        with self._open_objects() as objects:
            entry = self._find_entry(objects, commit, path)
            if entry is None or not entry.is_text:
                return None
            return objects.text(entry.oid).decode("utf-8", "replace")

    def merge(self, base: str, head: str) -> Merge:
        """Merge the head into the base; the same two always give the same commit."""
        with self._open_objects(remember=False) as objects:
            trees = {commit: self._require_commit(objects, commit).tree for commit in (base, head)}
            base_commits, head_commits = (self._list_ancestors(objects, commit) for commit in (base, head))
            if base in head_commits:
                return Merge(head, trees[head])
            if not base_commits & head_commits:
                return Merge()
            objects.prove(base_commits | head_commits, "commit")  # git finds the merge bases by what lies in the mirror
            self._look_through(objects, base, head)
        merged = self._merge_trees(base, head)
        if merged.code not in (0, 1):
            raise CheckoutFailed("Git cannot merge the head into the base.")
        tree, *paths = merged.out.splitlines()
        if merged.code == 1:
            return Merge(conflicts=tuple(dict.fromkeys(paths)))
        message = f"{head} merged into {base}"
        commit = self._git_output("commit-tree", tree, "-p", base, "-p", head, "-m", message).strip()
        return Merge(commit, tree)

    @contextmanager
    def files(self, commit: str, path: str = ".") -> Iterator[Path]:
        """Write a commit's files below a path into a folder of this run alone; see `WorkTree` on what is trusted."""
        slot = self._take_slot()
        try:
            self._fill_slot(slot, commit, path)
            yield slot.tree.place
        finally:
            self._slots.append(slot)

    def _fill_slot(self, slot: Slot, commit: str, path: str) -> None:
        try:
            with self._open_objects() as objects:
                entry = self._find_entry(objects, commit, path)
                slot.tree.bring(objects, entry.oid if entry and entry.is_folder else EMPTY_TREE)
        except OSError as error:
            path = _path_below(error.filename, slot.tree.place)
            reason = (error.strerror or type(error).__name__).lower()
            if error.errno in UNWRITABLE:
                raise BadCommit(f"A file of the commit cannot be written: {reason}.", path) from None
            raise CheckoutFailed(f"The files of the commit cannot be written: {reason}.") from None
        except ValueError:
            raise BadCommit("The commit has a folder that git cannot have written.") from None

    def _take_slot(self) -> Slot:
        trees = self.folder / "trees"
        if trees.is_symlink():
            trees.unlink()
        trees.mkdir(exist_ok=True)
        with suppress(IndexError):
            return self._slots.pop()
        return next(slot for number in count() if (slot := claim_slot(trees / f"work-{number}")))

    # --- commits ---

    def _find_entry(self, objects: Objects, commit: str, path: str) -> Entry | None:
        entry: Entry | None = Entry(FOLDER, self._require_commit(objects, commit).tree)
        for name in (part for part in path.split("/") if part not in ("", ".")):
            entry = objects.tree(entry.oid).get(name) if entry and entry.is_folder else None
        return entry

    def _find_commit(self, objects: Objects, commit: str) -> GitCommit | None:
        if commit not in self._commits and (git_commit := objects.commit(commit)):
            self._commits[commit] = git_commit
        return self._commits.get(commit)

    def _require_commit(self, objects: Objects, commit: str) -> GitCommit:
        """Return a commit, fetched by its name where it is missing: a branch may have been rewritten."""
        if self._find_commit(objects, _check_sha(commit)) is None:
            with self._lock_mirror():
                self._fetch_objects([commit])
        git_commit = self._find_commit(objects, commit)
        if git_commit is None:
            raise CheckoutFailed("There is no such commit.")
        return git_commit

    def _list_ancestors(self, objects: Objects, commit: str) -> set[str]:
        commits, pending_commits = set[str](), [commit] if self._find_commit(objects, commit) else []
        while pending_commits:
            at = pending_commits.pop()
            if at not in commits:
                commits.add(at)
                pending_commits += self._require_commit(objects, at).parents
        return commits

    def _look_through(self, objects: Objects, base: str, head: str) -> None:
        """Read, and so prove, all that a merge of the two looks at; several merge bases are themselves merged first."""
        oids, checked_pairs, pending_pairs = dict[str, None](), set[frozenset[str]](), [frozenset((base, head))]
        while pending_pairs:
            pair = pending_pairs.pop()
            if pair in checked_pairs:
                continue
            checked_pairs.add(pair)
            olds = self._git_output("merge-base", "--all", *sorted(pair)).split()
            pending_pairs += (frozenset(commits) for commits in combinations(olds, 2))
            for old, new in product(olds, sorted(pair)):
                trees = [self._require_commit(objects, commit).tree for commit in (old, new)]
                oids |= {entry.oid: None for _, entry in objects.differing(*trees) if entry.is_text}
        objects.need(oids)
        objects.prove(oids, "blob")

    def _merge_trees(self, base: str, head: str) -> GitEnd:
        """Run git's merge; repeat it with every file of both histories where git lacks one."""
        merge = ("merge-tree", "--write-tree", "--name-only", "--no-messages", base, head)
        end = self._run_git(*merge)
        if end.code not in (0, 1):
            with self._lock_mirror():
                self._git_output(*FETCH, "--no-filter", self._url, network=True, input_lines=(base, head))
            return self._run_git(*merge)
        return end

    # --- the mirror ---

    @property
    def _objects_folder(self) -> Path:
        """Return the folder of objects; remove anything else at its path."""
        for path in (self._mirror, self._mirror / "objects"):
            if os.path.lexists(path) and (path.is_symlink() or not path.is_dir()):
                remove_path(path)
        folder = self._mirror / "objects"
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    @contextmanager
    def _lock_mirror(self) -> Iterator[None]:
        """Lock the mirror while this process writes into it; raise CheckoutFailed."""
        if self.folder.is_symlink() or self.folder.parent.is_symlink():
            raise CheckoutFailed("The repository's folder below MERGEPLAN_HOME is a link; it must be a folder.")
        try:
            with self._lock:
                yield
        except (Timeout, OSError):
            raise CheckoutFailed("The mirror cannot be locked or written to.") from None

    @contextmanager
    def _open_objects(self, *, remember: bool = True) -> Iterator[Objects]:
        """Open a reader of the mirror; an object that does not match its name is thrown away.

        It is fetched when it is next needed. Where git itself reads the mirror afterwards, nothing is taken from
        memory: `remember` is false.
        """
        try:
            with open_objects(
                self._objects_folder, self._memory if remember else ObjectMemory(), self._bring_texts
            ) as objects:
                yield objects
        except Tampered as error:
            log.error("mirror_thrown_away", folder=str(self._mirror), why=str(error))
            with self._lock_mirror():
                remove_path(self._mirror)
            self._heads.clear()
            raise

    def _find_missing(self, heads: Mapping[str, str]) -> list[str]:
        """Return the commits that are missing here, whatever git takes for them."""
        with self._open_objects() as objects:
            return [oid for oid in heads.values() if objects.commit(oid) is None]

    def _bring_texts(self, oids: Sequence[str]) -> None:
        with self._lock_mirror():
            self._fetch_objects(oids, ())

    def _fetch_objects(self, wants: Sequence[str], tips: Iterable[str] | None = None) -> tuple[str, ...]:
        """Fetch references, commits or files by name, commits without their files; return the values of references.

        git asks for these alone: a server that lists all references sends megabytes for each fetch. Where the mirror is
        in the way, a new one takes its place. A client that says that it has `tips` gets no file of theirs.
        """
        if not wants:
            return ()
        end, values = self._run_fetch(self._objects_folder, wants, self._read_tips() if tips is None else tips)
        if end.code == 0:
            return values
        if NO_REFERENCE in end.errors:
            raise CheckoutFailed("The server has no such branch.")
        if UNREACHABLE.search(end.errors):
            raise ServerUnreachable(f"`git fetch` failed ({end.code}).")
        fresh = self.folder / "mirror.new"
        remove_path(fresh)
        (fresh / "objects").mkdir(parents=True)
        every = tuple(dict.fromkeys([*wants, *self._heads.values()]))
        try:
            end, values = self._run_fetch(fresh / "objects", every)
            _check_end(end, "fetch", network=True)
            remove_path(self._mirror)
            fresh.rename(self._mirror)
        finally:
            remove_path(fresh)
        return values

    def _run_fetch(
        self, objects: Path, wants: Sequence[str], tips: Iterable[str] = ()
    ) -> tuple[GitEnd, tuple[str, ...]]:
        """Run one fetch into a folder of objects; return its end, and the values of the references among the wants."""
        with open_git_folder(objects, tips, self._url, self._token()) as call:
            end = run_git(call, *FETCH, self._url, input_lines=wants)
            names = [want.partition(":")[2] for want in wants if ":" in want] if end.code == 0 else []
            return end, tuple((call.folder / name).read_text().strip() for name in names)

    def _read_tips(self) -> tuple[str, ...]:
        """Return the commits of an earlier fetch: they spare a download and prove nothing, so each is read first."""
        noted: object = {}
        with suppress(OSError, ValueError):
            noted = json.loads((self._mirror / "tips.json").read_text())
        values = noted.values() if isinstance(noted, Mapping) else ()
        tips = [tip for tip in values if isinstance(tip, str) and SHA.fullmatch(tip)]
        with self._open_objects() as objects:
            return tuple(tip for tip in tips if self._find_commit(objects, tip) and objects.commit(tip))

    # --- git ---

    def _git_output(self, *arguments: str, network: bool = False, input_lines: Sequence[str] = ()) -> str:
        end = self._run_git(*arguments, network=network, input_lines=input_lines)
        _check_end(end, arguments[0], network=network)
        return end.out

    def _run_git(self, *arguments: str, network: bool = False, input_lines: Sequence[str] = ()) -> GitEnd:
        token = self._token() if network else ""
        with open_git_folder(self._objects_folder, url=self._url, token=token) as call:
            return run_git(call, *arguments, input_lines=input_lines)


def changes_no_model(paths: Sequence[str], root: str) -> bool:
    """Return True when a change of these paths cannot change a model of the project in `root`; in doubt False.

    What is outside of that folder is never read: see `Checkout.files`.

    >>> changes_no_model(["README.md"], "."), changes_no_model(["models/a.sql"], ".")
    (True, False)
    >>> changes_no_model(["dbt/requirements.txt"], "dbt"), changes_no_model(["app/main.py"], "dbt")
    (False, True)
    """
    return all(PLAIN_FILES.fullmatch(path) is not None for path in inside(paths, root))


def _path_below(file: object, folder: Path) -> str:
    """Return a file's path from a folder, shortened: its length may be what is wrong. '' for none."""
    with suppress(ValueError, TypeError):
        path = Path(os.fsdecode(file)).relative_to(folder).as_posix()  # type: ignore[arg-type]
        return path if len(path) <= LONGEST_PATH else f"{path[:LONGEST_PATH]}..."
    return ""


def _check_end(end: GitEnd, command: str, *, network: bool) -> None:
    if "fsck error" in end.errors:  # by `fetch.fsckObjects`, for what an object contains
        raise BadCommit("Git refuses the commit: something in it is not what git writes, or is there to attack it.")
    if end.code:
        failure = ServerUnreachable if network else CheckoutFailed
        raise failure(f"`git {command}` failed ({end.code}).")


def _check_sha(commit: str) -> str:
    if not SHA.fullmatch(commit):
        raise CheckoutFailed("That is not a commit.")
    return commit
