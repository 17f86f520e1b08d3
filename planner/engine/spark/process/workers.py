"""The Python workers of a Spark that we start: isolated, so that a function in a model's frame reaches nothing.

Spark starts them as `python -m pyspark.daemon` and talks to them over a Unix socket. A script takes the place of that
python. It starts python with only its libraries, a folder of its own, and sockets to answer on.
"""

import os
import shlex
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from shutil import which

from mergeplan.planner.isolation.interpreter import libraries
from mergeplan.planner.isolation.mode import Isolation
from mergeplan.planner.isolation.profile import PACKAGE, IsolationProfile, exclude_hidden, module_program
from mergeplan.planner.isolation.scratch import remove_scratch
from mergeplan.planner.isolation.seccomp import Network
from mergeplan.planner.isolation.user import OWN_USER

START = module_program("mergeplan.planner.isolation.worker")


@dataclass(frozen=True)
class Workers:
    """The python for Spark to use, and the settings that go with it; `close` it when Spark has ended."""

    folder: tempfile.TemporaryDirectory[str]
    libraries: tuple[str, ...] = ()

    @property
    def read(self) -> tuple[str, ...]:
        """The paths that the process which starts them must be able to read."""
        return (*self.libraries, self.folder.name)

    @property
    def write(self) -> tuple[str, ...]:
        """The folder with their sockets."""
        return (str(Path(self.folder.name, "home")),)

    @property
    def python(self) -> str:
        """The script that takes the place of python."""
        return str(Path(self.folder.name, "python"))

    @property
    def conf(self) -> Mapping[str, str]:
        """Spark's settings: talk over Unix sockets, and reuse no worker that ran a project's function."""
        return {
            "spark.python.unix.domain.socket.enabled": "true",
            "spark.python.unix.domain.socket.dir": str(Path(self.folder.name, "home")),
            "spark.python.worker.reuse": "false",
        }

    def close(self) -> None:
        remove_scratch(self.folder)  # a worker may be about to end


def prepare_workers(python: str, spark_home: Path, isolation: Isolation) -> Workers:
    """Return what takes the place of that python; raise RequestError if it does not run."""
    python = which(python) or python
    read = (*libraries(python, os.environ), str(spark_home), str(spark_home / "python"))
    read = exclude_hidden(read, isolation.hidden)
    workers = Workers(tempfile.TemporaryDirectory(prefix="mergeplan-python-"), read)
    folder, home = Path(workers.folder.name), Path(workers.folder.name, "home")
    home.mkdir()
    if os.getuid() == 0:
        os.chown(home, OWN_USER, OWN_USER)
        folder.chmod(0o711)
    profile = IsolationProfile(read, (str(home),), Network.ANSWER, isolation.memory)
    start = [os.path.abspath(python), "-P", "-s", "-c", START, str(PACKAGE), profile.text]
    folders = f"HOME={shlex.quote(str(home))} TMPDIR={shlex.quote(str(home))}; export HOME TMPDIR"
    script = Path(workers.python)
    script.write_text(f'#!/bin/sh\n{folders}\nexec {shlex.join(profile.launch_command(start))} "$@"\n')
    script.chmod(0o755)
    return workers
