"""A Python worker of Spark: the process that forks workers keeps its sockets, a worker has its own folder.

It runs in the place of `python -m MODULE ...`. Its forks have fewer rights than itself: a fork answers on no socket,
writes in no other worker's folder, and reaches no other worker and not this process. A function in a model's frame runs
there.
"""

import os
import runpy
import shutil
import sys
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from mergeplan.planner.isolation import landlock, seccomp
from mergeplan.planner.isolation.profile import DEVICES, IsolationProfile, profile_from
from mergeplan.planner.isolation.seccomp import Network


@dataclass
class WorkerFork:
    """The isolation of forks: the first one is restricted, and with it everything that it starts."""

    profile: IsolationProfile
    tight: bool = False

    def restrict_fork(self) -> None:
        if self.tight:
            return
        self.tight = True
        try:
            scratch = Path(self.profile.write[0], str(os.getpid()))
            shutil.rmtree(scratch, ignore_errors=True)  # of an earlier process with our id
            scratch.mkdir(mode=0o700)
            os.environ.update(HOME=str(scratch), TMPDIR=str(scratch))
            tempfile.tempdir = None
            landlock.restrict_files(self.profile.read, (str(scratch), *DEVICES), network=False)
            seccomp.filter_calls(Network.NONE, signals_kept=landlock.version() >= 6)
        except OSError as error:
            sys.stderr.write(f"A worker cannot be isolated: {error}\n")
            os._exit(1)

    def remove_stale(self) -> None:
        if self.tight:
            return
        for folder in Path(self.profile.write[0]).glob("[0-9]*"):
            try:
                os.kill(int(folder.name), 0)
            except ProcessLookupError:
                shutil.rmtree(folder, ignore_errors=True)
            except (OSError, ValueError):
                continue


def main() -> None:
    profile, option, module, *arguments = sys.argv[1:]
    if option != "-m":
        sys.exit(f"{option}: Spark starts its workers in an unknown way.")
    worker = WorkerFork(profile_from(profile))
    os.register_at_fork(after_in_child=worker.restrict_fork, after_in_parent=worker.remove_stale)
    sys.argv = [module, *arguments]
    with suppress(KeyboardInterrupt):
        runpy.run_module(module, run_name="__main__", alter_sys=True)
