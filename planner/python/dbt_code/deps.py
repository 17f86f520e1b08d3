"""The packages of a dbt project, installed as `dbt deps` does, by the Python that has the project's dbt."""

import os
import sys

from mergeplan.planner.python.dbt_code.thread_locks import use_thread_locks


def main() -> None:
    """Install the packages of the project in the folder of the first argument; exit with the error if it fails."""
    use_thread_locks()
    try:
        from dbt.cli.main import dbtRunner
    except ImportError as error:
        sys.exit(f"dbt cannot be imported ({error})")
    folder, home = sys.argv[1], os.environ["HOME"]
    options = ("--project-dir", folder, "--profiles-dir", home, "--log-path", f"{home}/logs")
    result = dbtRunner().invoke(["--quiet", "--log-level", "none", "--log-level-file", "none", "deps", *options])
    if not result.success:
        sys.exit(" ".join(str(result.exception or "dbt gave no reason").split()))
