"""A planner that is ready: a process that has imported everything and seen no project, waiting for its one call.

Imports are most of what a planner's start takes. This process has a session of its own and the short environment of
every planner child; what it is to do, the folder, and the variables of the run come as one line on its standard input,
and the secrets after it, as for any planner. It runs once. When the service ends, so does its standard input, and so
does a process that still waits.
"""

import importlib
import json
import os
import sys
import time

from mergeplan.planner.isolation.system import hide_process

MODULES = (
    "mergeplan.planner.cli.main",
    "mergeplan.planner.cli.verbs.apply",
    "mergeplan.planner.cli.json_lines",
    "mergeplan.planner.cli.verbs.plan",
    "mergeplan.planner.cli.verbs.environments",
    "mergeplan.planner.engine.spark.engine",
    "sqlglot.dialects.spark",
    "pandas",
    "pyspark.sql.connect.session",
)


def main() -> None:
    """Wait for a call, become that process, and exit as it exits."""
    hide_process()
    for name in MODULES:
        importlib.import_module(name)
    line = sys.stdin.readline()
    if not line:
        return
    call = json.loads(line)
    os.chdir(call["folder"])
    log = os.open(call["log"], os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o666)
    os.dup2(log, 2)
    os.close(log)
    os.environ.clear()
    os.environ.update(call["environment"])
    time.tzset()
    sys.argv = ["mergeplan", *call["arguments"]]
    importlib.import_module("mergeplan.planner.cli.main").main()


if __name__ == "__main__":
    main()
