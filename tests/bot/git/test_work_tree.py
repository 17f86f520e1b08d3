"""A folder that is used for one commit after the other holds exactly the last one, whatever was done to it between."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from mergeplan.bot.git.call import CheckoutFailed
from mergeplan.bot.git.objects import ObjectMemory, open_objects
from mergeplan.bot.git.work_tree import WorkTree, claim_slot

FIRST = {"a.sql": "one", "models/b.sql": "two", "models/deep/c.sql": "three", "run.sh": "#!/bin/sh\n", "d": "a file"}
SECOND = {"a.sql": "one", "models/b.sql": "another", "models/e.sql": "five", "d/f.sql": "in a folder", "run.sh": "x"}


@pytest.fixture(name="repository")
def _repository(tmp_path: Path) -> Path:
    made = tmp_path / "repository"
    made.mkdir()
    git(made, "init", "--quiet")
    return made


@pytest.fixture(name="tree")
def _tree(tmp_path: Path) -> WorkTree:
    return WorkTree(tmp_path / "work")


def git(folder: Path, *arguments: str) -> str:
    names = {f"GIT_{who}_{what}": "a@b" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    env = {**os.environ, **names, "GIT_CONFIG_GLOBAL": os.devnull}
    return subprocess.run(["git", *arguments], cwd=folder, env=env, check=True, capture_output=True, text=True).stdout


def write_tree(repository: Path, files: dict[str, str]) -> str:
    """The name of a tree with these files; `.sh` are programs."""
    for name in git(repository, "ls-files").splitlines():
        git(repository, "rm", "-rfq", "--ignore-unmatch", name)
    for name, text in files.items():
        file = repository / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        file.chmod(0o755 if name.endswith(".sh") else 0o644)
    git(repository, "add", "--all")
    return git(repository, "write-tree").strip()


def bring(tree: WorkTree, repository: Path, oid: str) -> dict[str, tuple[str, bool]]:
    """Brings a tree; what the folder holds then: each file's text, and whether it is a program."""
    with open_objects(repository / ".git" / "objects", ObjectMemory()) as objects:
        tree.bring(objects, oid)
    return {
        path.relative_to(tree.place).as_posix(): (path.read_text(), os.access(path, os.X_OK))
        for path in tree.place.rglob("*")
        if not path.is_dir() or path.is_symlink()
    }


def files_of_tree(files: dict[str, str]) -> dict[str, tuple[str, bool]]:
    return {name: (text, name.endswith(".sh")) for name, text in files.items()}


def test_from_one_commit_to_the_next_only_what_differs_is_written(tree: WorkTree, repository: Path) -> None:
    """A file that became a folder, a folder that became a file, new, changed and gone ones; the rest stays as it is."""
    first, second = write_tree(repository, FIRST), write_tree(repository, SECOND)
    for oid, files in ((first, FIRST), (second, SECOND), (first, FIRST), (second, SECOND)):
        before = (tree.place / "a.sql").stat().st_ino if tree.tree else 0
        assert bring(tree, repository, oid) == files_of_tree(files)
        assert before in (0, (tree.place / "a.sql").stat().st_ino)
    assert not (tree.place / "models/deep").exists()


def overwrite(place: Path) -> None:
    """As long as before, with the times that it had."""
    times = (place / "models/b.sql").stat()
    (place / "models/b.sql").write_text("TWO")
    os.utime(place / "models/b.sql", ns=(times.st_atime_ns, times.st_mtime_ns))


def replace_file(place: Path) -> None:
    """By another file of that length, with the times of the first."""
    shutil.copy2(place / "a.sql", place / "other")
    (place / "other").write_text("ONE")
    shutil.copystat(place / "a.sql", place / "other")
    (place / "other").rename(place / "a.sql")


def link_folder(place: Path) -> None:
    """A folder in whose stead a link leads out."""
    elsewhere = place.parent / "elsewhere"
    shutil.move(place / "models", elsewhere)
    (place / "models").symlink_to(elsewhere)


DEEDS: dict[str, Callable[[Path], object]] = {
    "overwritten": overwrite,
    "replaced": replace_file,
    "linked folder": link_folder,
    "a file more": lambda place: (place / "models/evil.py").write_text("evil"),
    "a folder more": lambda place: (place / "__pycache__/x").mkdir(parents=True),
    "a link more": lambda place: (place / "evil.sql").symlink_to("/etc/passwd"),
    "a file less": lambda place: (place / "models/deep/c.sql").unlink(),
    "a folder less": lambda place: shutil.rmtree(place / "models"),
    "a folder for a file": lambda place: ((place / "a.sql").unlink(), (place / "a.sql").mkdir()),
    "a file for a folder": lambda place: (shutil.rmtree(place / "models"), (place / "models").write_text("x")),
    "a hard link": lambda place: os.link(place / "a.sql", place.parent / "mine"),
    "another mode": lambda place: (place / "a.sql").chmod(0o777),
    "all gone": shutil.rmtree,
    "a link for all": lambda place: (place.rename(place.parent / "moved"), place.symlink_to(place.parent / "moved")),
}


@pytest.mark.parametrize("deed", DEEDS)
def test_what_a_run_did_to_the_folder_is_undone(tree: WorkTree, repository: Path, deed: str) -> None:
    """Before the next commit, and before the same one again."""
    first, second = write_tree(repository, FIRST), write_tree(repository, SECOND)
    bring(tree, repository, first)
    for oid, files in ((first, FIRST), (second, SECOND), (first, FIRST)):
        with suppress(FileNotFoundError):  # the second has no folder of that name
            DEEDS[deed](tree.place)
        for left in ("mine", "moved", "elsewhere"):
            (tree.place.parent / left).unlink() if (tree.place.parent / left).is_file() else None

        assert bring(tree, repository, oid) == files_of_tree(files)
        assert not tree.place.is_symlink()
        shutil.rmtree(tree.place.parent / "moved", ignore_errors=True)
        shutil.rmtree(tree.place.parent / "elsewhere", ignore_errors=True)


def test_a_hard_link_that_somebody_kept_leads_to_no_file_of_the_next_run(tree: WorkTree, repository: Path) -> None:
    """He could write into it when it is trusted again."""
    first = write_tree(repository, FIRST)
    bring(tree, repository, first)
    os.link(tree.place / "a.sql", tree.place.parent / "mine")
    bring(tree, repository, first)
    (tree.place.parent / "mine").write_text("evil")

    assert (tree.place / "a.sql").read_text() == "one"


def test_random_commits_and_random_deeds_leave_what_a_new_folder_would_hold(tree: WorkTree, repository: Path) -> None:
    choose = random.Random(7)  # noqa: S311 - reproducible
    names = [*FIRST, *SECOND, "models/x/y/z.sql", "models/x/y", "seeds/s.csv"]
    for _ in range(25):
        picked = choose.sample(names, 5)
        files = {n: choose.choice("abc") for n in picked if not any(o.startswith(f"{n}/") for o in picked)}
        with suppress(OSError):
            DEEDS[choose.choice(list(DEEDS))](tree.place)

        shutil.rmtree(repository / ".git" / "index", ignore_errors=True)
        assert bring(tree, repository, write_tree(repository, files)) == files_of_tree(files)
        for left in ("mine", "moved", "elsewhere"):
            shutil.rmtree(tree.place.parent / left, ignore_errors=True)
            (tree.place.parent / left).unlink(missing_ok=True)


def test_a_folder_that_could_not_be_brought_is_begun_anew(tree: WorkTree, repository: Path) -> None:
    first = write_tree(repository, FIRST)
    bring(tree, repository, first)
    with pytest.raises(CheckoutFailed), open_objects(repository / ".git" / "objects", ObjectMemory()) as objects:
        tree.bring(objects, "f" * 40)

    assert tree.tree is None
    assert bring(tree, repository, first) == files_of_tree(FIRST)


@pytest.fixture(name="other")
def _other(tmp_path: Path) -> Iterator[Path]:
    slot = claim_slot(tmp_path / "work-0")
    assert slot is not None
    yield tmp_path / "work-0"
    slot.lock.release()


def test_a_folder_is_one_process_s_for_as_long_as_it_lives(other: Path) -> None:
    assert claim_slot(other) is None
