"""The packages of a dbt project, fetched once per lock by its own dbt, and laid where that dbt looks for them.

`dbt deps` runs as a process of its own, isolated, with none of our secrets, over a project that has nothing but the
files that name packages: no template of the repository is run. What it brings is copied by us, after it has ended.
"""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import structlog

from mergeplan.bot.child.dbt_requirements import ASKING, COMMIT, DbtRequirements
from mergeplan.bot.child.installing import (
    ABOUT,
    CREDENTIALS,
    NAMES,
    NETWORK,
    TookTooLong,
    make_home,
    plain_environment,
    prune,
    run_installer,
)
from mergeplan.bot.settings import Settings
from mergeplan.planner.errors import Place, ProjectError, Refused, RequestError
from mergeplan.planner.isolation.interpreter import libraries
from mergeplan.planner.isolation.mode import NONE
from mergeplan.planner.isolation.probe import cannot
from mergeplan.planner.isolation.profile import PACKAGE, IsolationProfile, starting
from mergeplan.planner.isolation.scratch import remove_scratch
from mergeplan.planner.isolation.seccomp import Network
from mergeplan.planner.isolation.user import OWN_USER
from mergeplan.planner.project.dbt.inputs import PROJECT, find_python, look_of_python

log = structlog.get_logger(__name__)
HUB = "DBT_PACKAGE_HUB_URL"  # the operator's own hub; dbt's else
PROGRAM = "mergeplan.planner.python.dbt_code.deps"
BARE = "name: packages\nversion: '1.0'\nprofile: none\npackages-install-path: installed\n"
MOST_FILES, MOST_BYTES = 50_000, 500 << 20  # of all packages of a project


def lay_dbt_packages(
    settings: Settings,
    home: Path,
    wanted: DbtRequirements | None,
    project: Path,
    environ: Mapping[str, str],
    should_stop: Callable[[], str],
) -> None:
    """Put the packages that a project asks for into its folder, unless the repository holds them.

    ProjectError with what dbt said; RequestError without a dbt; Refused where nothing can be isolated; Cancelled.
    """
    if wanted is None or os.path.lexists(project / wanted.install_path):
        return
    if wrong := wanted.wrong:
        raise ProjectError(wrong.message, place=Place(wrong.path, wrong.line), hint=COMMIT)
    for path in (wanted.install_path, *wanted.local):
        if (project / path).resolve() != project.resolve() / path:
            raise ProjectError(f"The folder `{path}` lies behind a link.", place=Place(wanted.path), hint=COMMIT)
    try:
        python = find_python(environ)
    except RequestError as error:
        raise RequestError(
            f"{error.message.rstrip('.')} to fetch its packages.", hint=f"{error.hint} {COMMIT}"
        ) from None
    install = _Install(settings, wanted, project, python, environ, should_stop)
    folder = home / "dbt_packages" / install.lock
    if not folder.is_dir():
        folder.parent.mkdir(parents=True, exist_ok=True)
        log.info("dbt_packages_installing", file=wanted.path, lock=install.lock)
        install.install_into(folder)
        prune(folder.parent)
    os.utime(folder)
    _copy(folder, project / wanted.install_path)


@dataclass(frozen=True)
class _Install:
    """One set of packages on its way into a folder."""

    settings: Settings
    wanted: DbtRequirements
    project: Path
    python: str
    environ: Mapping[str, str]
    should_stop: Callable[[], str]

    @property
    def lock(self) -> str:
        """The name of all that decides which packages these are."""
        files = [*self._asking(), *(path for local in self.wanted.local for path in _files(self.project / local))]
        hashes = {path.relative_to(self.project).as_posix(): sha256(path.read_bytes()).hexdigest() for path in files}
        parts = [repr(sorted(hashes.items())), look_of_python(self.python), self.environ.get(HUB, "")]
        return sha256("\0".join(parts).encode()).hexdigest()[:24]

    def _asking(self) -> list[Path]:
        """The files that name packages."""
        paths = (self.project / name for name in ASKING)
        return [path for path in paths if path.is_file() and not path.is_symlink()]

    def install_into(self, folder: Path) -> None:
        """Install everything, and put the folder in its place when all is there."""
        scratch = tempfile.TemporaryDirectory(prefix="mergeplan-dbt-packages-")
        draft = Path(tempfile.mkdtemp(prefix=".part-", dir=folder.parent))
        try:
            installed = self._run_dbt(Path(scratch.name))
            for package in sorted(installed.iterdir()) if installed.is_dir() else ():
                if (real := package.resolve()).is_relative_to(installed.parent.resolve()) and real.is_dir():
                    _copy(real, draft / package.name)
            sizes = [path.stat().st_size for path in _files(draft)]
            if len(sizes) > MOST_FILES or sum(sizes) > MOST_BYTES:
                raise self._wrong(f"they have more than {MOST_FILES:,} files, or {MOST_BYTES >> 20} MiB")
            draft.chmod(0o755)
            try:
                draft.rename(folder)
            except OSError:
                if not folder.is_dir():  # else another process was faster
                    raise
        finally:
            shutil.rmtree(draft, ignore_errors=True)
            remove_scratch(scratch)

    def _run_dbt(self, work: Path) -> Path:
        """The folder in which dbt has put the packages."""
        home = make_home(work, "project")
        bare = home / "project"
        (bare / PROJECT).write_text(BARE, encoding="utf-8")
        for path in self._asking():
            shutil.copyfile(path, bare / path.name)
            if os.getuid() == 0:  # dbt writes the lock anew where it is not of these packages
                os.chown(bare / path.name, OWN_USER, OWN_USER)
        for local in self.wanted.local:
            _copy(self.project / local, bare / local)
        command = [self.python, "-I", "-c", starting(PROGRAM), str(PACKAGE), str(bare)]
        why = cannot() if self.settings.isolation != NONE else ""
        if why and self.wanted.local:
            raise Refused(f"The packages of {self.wanted.path} cannot be read apart here: {why}.", hint=COMMIT)
        if self.settings.isolation != NONE and not why:  # what comes from the hub is not run
            command = self._profile(home).launch_command(command)
        kept = {name: self.environ[name] for name in (*NETWORK, HUB) if self.environ.get(name)}
        environment = {**plain_environment(home), **kept, "DBT_SEND_ANONYMOUS_USAGE_STATS": "false"}
        seconds = self.settings.packages_seconds
        try:
            exit_code, output = run_installer(command, work, environment, seconds, self.should_stop)
        except TookTooLong:
            raise self._wrong(f"it took longer than {seconds:.0f} seconds") from None
        if exit_code:
            raise self._wrong(CREDENTIALS.sub("//", (output.strip().splitlines() or ["dbt failed"])[-1])[:400])
        return bare / "installed"

    def _profile(self, home: Path) -> IsolationProfile:
        read = (*libraries(self.python, os.environ, "-I"), *map(str, ABOUT), *NAMES)
        memory, seconds = self.settings.isolation_memory, int(self.settings.packages_seconds)
        return IsolationProfile(read, (str(home),), Network.ALL, memory, seconds, modes=True)

    def _wrong(self, why: str) -> ProjectError:
        message = f"The project's dbt packages cannot be installed: {why.rstrip('.')}."
        return ProjectError(message, place=Place(self.wanted.path), hint=COMMIT)


def _files(folder: Path) -> Iterator[Path]:
    """The regular files below a folder; no link is followed."""
    for inside, names, files in os.walk(folder):
        names[:] = sorted(name for name in names if name != ".git")
        for name in sorted(files):
            if stat.S_ISREG((path := Path(inside, name)).lstat().st_mode):
                yield path


def _copy(source: Path, target: Path) -> None:
    """Copy the regular files of a folder, readable to all."""
    target.mkdir(parents=True, exist_ok=True)
    for path in _files(source):
        copy = target / path.relative_to(source)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, copy, follow_symlinks=False)
        copy.chmod(0o644)
