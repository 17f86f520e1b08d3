"""The packages of a dbt project, fetched once per lock by its own dbt, and laid where that dbt looks for them.

`dbt deps` runs as a process of its own, isolated, with none of our secrets, over a project that we write ourselves: no
file and no template of the repository is read there. What it brings is copied by us, after it has ended.
"""

import os
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import structlog

from mergeplan.bot.child import installing
from mergeplan.bot.child.dbt_requirements import CHARACTERS_MAX, COMMIT, FILES, LOCK, ROOT_NAME, DbtRequirements
from mergeplan.bot.child.packages import read_file
from mergeplan.bot.child.reader import RepositoryReader
from mergeplan.bot.fetching.origins import HUB, HUB_INSIDE, hub_origins
from mergeplan.bot.settings import Settings
from mergeplan.planner.errors import Place, ProjectError, RequestError
from mergeplan.planner.isolation.interpreter import libraries
from mergeplan.planner.isolation.profile import PACKAGE, module_program
from mergeplan.planner.isolation.scratch import remove_scratch
from mergeplan.planner.isolation.user import OWN_USER
from mergeplan.planner.project.dbt.inputs import find_python, look_of_python
from mergeplan.planner.project_format import DBT_PROJECT

log = structlog.get_logger(__name__)
PROGRAM = "mergeplan.planner.python.dbt_code.deps"
BARE = f"name: {ROOT_NAME}\nversion: '1.0'\nprofile: none\npackages-install-path: installed\n"
FILES_MAX, BYTES_MAX = 50_000, 500 << 20  # of all packages of a project
WRITTEN = 4  # times that is on the disk while dbt runs: archives, and what dbt unpacks and moves


def read_dbt_requirements(reader: RepositoryReader, project: Path) -> DbtRequirements | None:
    """Return the requirements of a dbt project and its own folders, read as dbt resolves them; raise ProjectError."""
    texts = _read_texts(project, "")
    requirements = reader.dbt_requirements(texts)
    while requirements is not None and requirements.unread and not os.path.lexists(project / requirements.install_path):
        for folder in requirements.unread:
            _check_folder(project, folder, requirements.path)
            if not (folder_texts := _read_texts(project, folder)).get(f"{folder}/{DBT_PROJECT}"):
                message = f"The folder `{folder}` of a package has no {DBT_PROJECT}."
                raise ProjectError(message, place=Place(requirements.path), hint=COMMIT)
            texts |= folder_texts
        requirements = reader.dbt_requirements(texts)
    return requirements


def _read_texts(project: Path, folder: str) -> dict[str, str]:
    texts = {}
    for name in FILES:
        path = f"{folder}/{name}" if folder else name
        if folder and (project / path).is_symlink():
            raise ProjectError("This is a link, which is not followed.", place=Place(path), hint=COMMIT)
        if (text := read_file(project / path, CHARACTERS_MAX)) is not None:
            texts[path] = text
    return texts


def _check_folder(project: Path, folder: str, path: str) -> None:
    """Raise ProjectError for a folder that a link leads to."""
    if (project / folder).resolve() != project.resolve() / folder:
        raise ProjectError(f"The folder `{folder}` is behind a link.", place=Place(path), hint=COMMIT)


def lay_dbt_packages(
    settings: Settings,
    home: Path,
    wanted: DbtRequirements | None,
    project: Path,
    environ: Mapping[str, str],
    should_stop: Callable[[], str],
) -> None:
    """Put the packages that a project requires into its folder, unless the repository contains them.

    Raise ProjectError with dbt's message, RequestError without a dbt, and Cancelled if the run is stopped.
    """
    if wanted is None or os.path.lexists(project / wanted.install_path):
        return
    if wrong := wanted.wrong:
        raise ProjectError(wrong.message, place=Place(wrong.path, wrong.line), hint=COMMIT)
    for path in (wanted.install_path, *wanted.local):
        _check_folder(project, path, wanted.path)
    try:
        python = find_python(environ)
    except RequestError as error:
        raise RequestError(
            f"{error.message.rstrip('.')} to fetch its packages.", hint=f"{error.hint} {COMMIT}"
        ) from None
    origins = hub_origins(environ, settings.packages_hosts)
    installer = installing.Installer(settings, origins, environ, should_stop, WRITTEN * FILES_MAX, WRITTEN * BYTES_MAX)
    install = _Install(installer, wanted, project, python)
    folder = home / "dbt_packages" / install.lock
    if not folder.is_dir():
        folder.parent.mkdir(parents=True, exist_ok=True)
        log.info("dbt_packages_installing", file=wanted.path, lock=install.lock)
        install.install_into(folder)
        installing.prune_folders(folder.parent)
    os.utime(folder)
    _copy_files(folder, project / wanted.install_path)


@dataclass(frozen=True)
class _Install:
    installer: installing.Installer
    wanted: DbtRequirements
    project: Path
    python: str

    @property
    def lock(self) -> str:
        """The name of all that decides which packages these are."""
        paths = [path for local in self.wanted.local for path in _list_regular_files(self.project / local)]
        hashes = {path.relative_to(self.project).as_posix(): sha256(path.read_bytes()).hexdigest() for path in paths}
        hub = self.installer.origins[0].outside
        parts = [
            repr(sorted(self._package_texts.items())),
            repr(sorted(hashes.items())),
            look_of_python(self.python),
            hub,
        ]
        return sha256("\0".join(parts).encode()).hexdigest()[:24]

    @property
    def _package_texts(self) -> Mapping[str, str]:
        return self.wanted.files or {}

    def install_into(self, folder: Path) -> None:
        """Install everything, and put the folder in its place when all is there."""
        scratch = tempfile.TemporaryDirectory(prefix="mergeplan-dbt-packages-")
        draft = Path(tempfile.mkdtemp(prefix=".part-", dir=folder.parent))
        try:
            installed = self._run_dbt(Path(scratch.name))
            for package in sorted(installed.iterdir()) if installed.is_dir() else ():
                if (source := self._source_of(package, installed.parent)) is not None:
                    _copy_files(source, draft / package.name, hard_links=source.is_relative_to(self.project))
            draft.chmod(0o755)
            try:
                draft.rename(folder)
            except OSError:
                if not folder.is_dir():  # else another process was faster
                    raise
        finally:
            shutil.rmtree(draft, ignore_errors=True)
            remove_scratch(scratch)

    def _source_of(self, package: Path, bare: Path) -> Path | None:
        """Return the folder of an installed package: dbt links to those of the project, which we take from there."""
        real = package.resolve()
        if not package.is_symlink():
            return real if real.is_dir() and real.parent == (bare / "installed").resolve() else None
        inside = real.relative_to(bare.resolve()).as_posix() if real.is_relative_to(bare.resolve()) else ""
        return self.project / inside if inside in self.wanted.local else None

    def _run_dbt(self, work: Path) -> Path:
        home = installing.make_home(work, "project")
        bare = home / "project"
        for path, text in {DBT_PROJECT: BARE, **self._package_texts}.items():
            (bare / path).parent.mkdir(parents=True, exist_ok=True)
            (bare / path).write_text(text, encoding="utf-8")
            if os.getuid() == 0 and path == LOCK:  # dbt writes the lock anew where it is not of these packages
                os.chown(bare / path, OWN_USER, OWN_USER)
        command = [self.python, "-I", "-c", module_program(PROGRAM), str(PACKAGE), str(bare)]
        read = (*libraries(self.python, os.environ, "-I"), *map(str, installing.ABOUT))
        variables = {HUB: HUB_INSIDE, "DBT_SEND_ANONYMOUS_USAGE_STATS": "false"}
        try:  # without isolation too: no file of a pull request is read there, and what comes from the hub is not run
            exit_code, output = self.installer.run(command, work, read, variables)
        except installing.InstallFailed as failed:
            raise self._package_error(str(failed)) from None
        if exit_code:
            reason = (output.strip().splitlines() or ["dbt failed"])[-1].replace(f"{bare}/", "")
            raise self._package_error(installing.CREDENTIALS.sub("//", reason)[:400])
        files, size = installing.measure_folder(bare / "installed", FILES_MAX)
        if files > FILES_MAX or size > BYTES_MAX:
            raise self._package_error(f"they have more than {FILES_MAX:,} files, or {BYTES_MAX >> 20} MiB")
        return bare / "installed"

    def _package_error(self, why: str) -> ProjectError:
        message = f"The project's dbt packages cannot be installed: {why.rstrip('.')}."
        return ProjectError(message, place=Place(self.wanted.path), hint=COMMIT)


def _list_regular_files(folder: Path) -> Iterator[Path]:
    for inside, names, files in os.walk(folder):
        names[:] = sorted(name for name in names if name != ".git")
        for name in sorted(files):
            if stat.S_ISREG((path := Path(inside, name)).lstat().st_mode):
                yield path


def _copy_files(source: Path, target: Path, *, hard_links: bool = True) -> None:
    """Copy the regular files of a folder, readable to all; without those that an archive made of other files."""
    target.mkdir(parents=True, exist_ok=True)
    for path in _list_regular_files(source):
        if path.lstat().st_nlink > 1 and not hard_links:
            continue
        copy = target / path.relative_to(source)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, copy, follow_symlinks=False)
        copy.chmod(0o644)
