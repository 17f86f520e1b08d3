"""`git:REF` in a selector: the models whose files differ from a branch, a tag or a commit."""

import os
import subprocess
from collections.abc import Iterable
from pathlib import Path

from mergeplan.planner.errors import RequestError
from mergeplan.planner.model.graph import Graph, graph_of
from mergeplan.planner.model.selection import Changed, select, strip_default_catalog
from mergeplan.planner.project.loader import Project

SECONDS = 30.0


def git_change_finder(project: Project) -> Changed:
    """Return a function for `git:REF` that finds the models whose file, or whose seed's file, has changed.

    The base is the last common commit of HEAD and REF; untracked files count as changed. Raise RequestError if git
    fails.
    """

    def find_changes(ref: str) -> frozenset[str]:
        _check_discovery(project.root)
        base = _run_git(project.root, "merge-base", "--end-of-options", ref, "HEAD").strip()
        files = {
            *_run_git(project.root, "diff", "--name-only", "--relative", "-z", base, "--").split("\0"),
            *_run_git(project.root, "ls-files", "--others", "--exclude-standard", "-z").split("\0"),
        }
        return frozenset(
            name
            for name, model in project.models.items()
            if model.path in files or (model.seed and model.seed.path in files)
        )

    return find_changes


def select_by_request(project: Project, selectors: Iterable[str], graph: Graph | None = None) -> frozenset[str]:
    """Return the models of a graph (None: of the project) that selectors choose, as a person writes them."""
    named = [strip_default_catalog(selector, project.catalogs.default) for selector in selectors]
    return select(graph or graph_of(project.models), named, git_change_finder(project))


def _check_discovery(root: Path) -> None:
    """Raise RequestError if git takes the project's folder for a repository: its configuration may name programs.

    Git itself looks for a `.git` first, in each folder from here up; none of these can be in a commit.
    """
    for folder in (root, *root.parents):
        if os.path.lexists(folder / ".git"):
            return
        if (folder / "HEAD").exists() and any((folder / name).exists() for name in ("objects", "commondir")):
            raise RequestError(
                f"`{folder}` holds what git takes for a repository of its own.", hint="Select without `git:`."
            )


def _run_git(root: Path, *arguments: str) -> str:
    environment = {**os.environ, "GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"}
    try:
        ran = subprocess.run(
            ["git", "-c", "core.fsmonitor=false", "-c", "safe.bareRepository=explicit", "-C", str(root), *arguments],
            capture_output=True, text=True, timeout=SECONDS, check=False, env=environment,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        raise RequestError(f"git does not answer: {error}.", hint="Select without `git:`.") from None
    if ran.returncode:
        message = (ran.stderr.strip().splitlines() or ["it finds no common commit"])[0].removeprefix("fatal: ")
        raise RequestError(f"git cannot tell what changed: {message}.", hint="Name a branch, a tag or a commit.")
    return ran.stdout
