"""The class data archive of Spark's JVM (AppCDS): with it Java starts with Spark's classes parsed and verified.

It is made once for a Java and a Spark, by a process of its own in the background, and shared by all projects of a user.
An archive is code. It is made of Spark's own jars alone, in a Spark that no project has touched, and one that anybody
else could have written is not used. Isolated project code can neither read nor write its folder.

`-XX:+AutoCreateSharedArchive` is no substitute: Java would write the archive from a Spark that a project has used, in
twice the processor time of the verb that ends, and the bundled Java writes none, since it has no archive of its own
classes to build on.
"""

import fcntl
import os
import re
import stat
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from mergeplan.planner.fingerprint import digest
from mergeplan.planner.versions import pyspark_version

VARIABLE = "MERGEPLAN_SPARK_ARCHIVE"  # `off`, or the folder of the archives
OFF = "off"
FORMAT = "1"  # of the archives: another one when they are made in another way
OURS = re.compile(r"[0-9a-f]{32}")  # the name of an archive of ours
KEPT = 3  # archives, of other versions of Java and Spark too; one takes about 200 MB
AGAIN = 24 * 3600.0  # seconds until an archive is tried again that could not be made
OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
MAKER = "mergeplan.planner.engine.spark.process.archive_maker"


@dataclass(frozen=True)
class ClassArchive:
    """The archive of one Java and one Spark, whether it exists or not."""

    path: Path
    java: Path

    @property
    def base(self) -> Path:
        """The archive of Java's own classes below it, for a Java that comes without one."""
        return self.path.with_suffix(".base")

    @property
    def has_own_base(self) -> bool:
        """True when this Java comes with an archive of its own classes."""
        return (self.java.resolve().parents[1] / "lib" / "server" / "classes.jsa").exists()

    @property
    def options(self) -> tuple[str, ...]:
        """The JVM options that use it; none when it is not there, or was not written by this user alone.

        Java ignores an archive that does not fit, and checks the sums of one that does: a damaged one is ignored, too.
        """
        files = (self.path,) if self.has_own_base else (self.base, self.path)
        if not all(_is_ours(path) for path in (self.path.parent, *files)):
            return ()
        return (f"-XX:SharedArchiveFile={os.pathsep.join(map(str, files))}", "-XX:+VerifySharedSpaces", "-Xshare:auto")

    def used(self) -> None:
        """Record that the archive was used: the archives that were used last are kept."""
        with suppress(OSError):
            os.utime(self.path)

    def discard(self) -> None:
        with suppress(OSError):
            self._attempt_marker.touch()
            for path in (self.path, self.base):
                path.unlink(missing_ok=True)

    def is_missing(self) -> bool:
        """Return True if the archive is missing and no process tried to make it in the last day."""
        return not self.path.exists() and time.time() - _modification_time(self._attempt_marker) > AGAIN

    @property
    def _attempt_marker(self) -> Path:
        return self.path.with_suffix(".tried")

    def make_later(self, environment: Mapping[str, str]) -> None:
        """Let another process make the archive and end by itself; do not wait for it, and never fail here."""
        child_environment = {**environment, VARIABLE: str(self.path.parent), "JAVA_HOME": str(self.java.parent.parent)}
        with suppress(OSError):
            self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            subprocess.run(  # a shell that ends immediately, so that its caller has no child to wait for
                ["/bin/sh", "-c", 'nice -n 19 "$@" &', "sh", sys.executable, "-P", "-s", "-m", MAKER],
                env=child_environment, cwd=self.path.parent, start_new_session=True, check=False,
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            )  # fmt: skip

    @contextmanager
    def making(self) -> Iterator[bool]:
        """Yield True with the right to make the archive; False if it exists or another process makes it."""
        with (self.path.parent / "lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                yield False
                return
            if not self.is_missing():
                yield False
                return
            self._attempt_marker.touch()
            for draft in self.path.parent.glob(".*.draft"):  # of a process that was killed
                draft.unlink(missing_ok=True)
            yield True

    def draft(self, kind: str) -> Path:
        return self.path.parent / f".{self.path.stem}-{kind}.draft"

    def put(self, draft: Path, place: Path) -> None:
        draft.chmod(0o600)
        draft.replace(place)
        if place == self.path:
            self._attempt_marker.unlink()
        named = (
            candidate for candidate in self.path.parent.glob("*.jsa") if OURS.fullmatch(candidate.stem)
        )  # others may be here too
        archives = sorted(named, key=_modification_time, reverse=True)
        for old in archives[KEPT:]:
            for path in (old, old.with_suffix(".base"), old.with_suffix(".tried")):
                path.unlink(missing_ok=True)


def archive_of(java: Path, spark: Path, environ: Mapping[str, str] = os.environ) -> ClassArchive | None:
    """Return the archive of this Java and this Spark; None if archives are turned off or have no folder."""
    folder = archive_folder(environ)
    if folder is None:
        return None
    java_version, jars = _java_says(java, _modification_time(java)), spark / "jars"
    listed = (f"{jar.name} {jar.stat().st_size} {jar.stat().st_mtime_ns}" for jar in sorted(jars.glob("*.jar")))
    key = digest(FORMAT, java_version, str(java.resolve()), pyspark_version(), str(jars), *listed)
    return ClassArchive(folder / f"{key[:32]}.jsa", java)


def archive_folder(environ: Mapping[str, str]) -> Path | None:
    """Return the folder of this user's archives, one for all projects; None if there is none."""
    if setting := environ.get(VARIABLE):
        return None if setting.lower() == OFF else Path(setting).absolute()
    if cache_home := environ.get("XDG_CACHE_HOME"):
        return Path(cache_home).absolute() / "mergeplan" / "spark"
    home = environ.get("HOME")
    return Path(home).absolute() / ".cache" / "mergeplan" / "spark" if home and _is_ours(Path(home)) else None


@cache
def _java_says(java: Path, _mtime: float) -> str:
    done = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=30, check=False)
    return done.stderr + done.stdout


def _is_ours(path: Path) -> bool:
    """Return True if a path belongs to this user and no other user can write it."""
    try:
        status = path.lstat()
    except OSError:
        return False
    return not stat.S_ISLNK(status.st_mode) and status.st_uid == os.getuid() and not status.st_mode & OTHERS_WRITE


def _modification_time(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0
