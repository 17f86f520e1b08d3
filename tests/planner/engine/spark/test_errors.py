"""What Spark reports is one sentence with its reason."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mergeplan.planner.engine.spark import errors
from mergeplan.planner.engine.spark.engine import SparkEngine
from mergeplan.planner.engine.spark.errors import explain_unwritable, split_message, translate_error
from mergeplan.planner.errors import QueryError, SparkLost


class Raised(Exception):
    """As py4j raises what came from Java."""

    def __init__(self, java: Any) -> None:
        super().__init__("An error occurred while calling o1.save")
        self.java_exception = java


def test_a_write_that_failed_tells_why(engine: SparkEngine) -> None:
    jvm: Any = engine._sessions.current.spark._jvm
    full = jvm.java.lang.RuntimeException("Unable to close", jvm.java.io.IOException("No space left on device"))
    text = "[TASK_WRITE_FAILED] Task failed while writing rows to file:/w/t. SQLSTATE: 58030"

    error = translate_error(Raised(jvm.java.lang.RuntimeException(text, full)), "SELECT 1")

    assert error.message == "Task failed while writing rows to file:/w/t: No space left on device"


def test_the_class_and_the_trace_are_left_out() -> None:
    text = "[DIVIDE_BY_ZERO] Division by zero. Use `try_divide`. SQLSTATE: 22012\n\tat org.apache.spark.Errors"

    assert split_message(text) == ("Division by zero.", "Use `try_divide`.")


@pytest.mark.parametrize(
    "text",
    [
        "Job aborted: java.lang.OutOfMemoryError: Java heap space",
        "java.lang.VirtualMachineError: Out of space in CodeCache for adapters",
        "java.lang.BootstrapMethodError: bootstrap method initialization exception",
    ],
)
def test_a_java_that_ran_out_of_memory_is_no_fault_of_the_query(engine: SparkEngine, text: str) -> None:
    jvm: Any = engine._sessions.current.spark._jvm

    error = translate_error(Raised(jvm.java.lang.RuntimeException(text)), "SELECT 1")

    assert isinstance(error, SparkLost)
    assert (error.message, error.retry) == ("Spark ran out of memory.", True)


def test_a_query_that_only_quotes_such_an_error_is_at_fault_itself(engine: SparkEngine) -> None:
    with pytest.raises(QueryError, match=r"^no$"):
        engine.fetch("SELECT raise_error('java.lang.OutOfMemoryError: no') FROM range(1)")

    assert not engine.is_lost


@pytest.mark.parametrize(
    "text",
    [
        "com/jolbox/bonecp/BoneCPConfig",
        "java.lang.NoClassDefFoundError: com/jolbox/bonecp/BoneCPConfig",
        "(java.lang.ClassNotFoundException) java.lang.ClassNotFoundException: com.jolbox.bonecp.BoneCPConfig",
        'status = StatusCode.INTERNAL\n details = "com/jolbox/bonecp/BoneCPConfig"\n debug = 1',
    ],
)
def test_a_class_that_spark_lacks_is_named_with_what_to_do(text: str) -> None:
    message, hint = split_message(text)

    assert message == "Spark has no class `com.jolbox.bonecp.BoneCPConfig` among its jars."
    assert hint.startswith("A jar is missing where Spark starts")


@pytest.mark.parametrize(
    "text", ['details = "failed to connect to all addresses"', "Table or view `shop.orders` is not there", "a/b/c.sql"]
)
def test_what_names_no_class_is_no_missing_class(text: str) -> None:
    assert "no class" not in split_message(text)[0]


@pytest.mark.parametrize(
    ("text", "free", "said"),
    [
        ("Unable to instantiate org.apache.hadoop.hive.ql.metadata.SessionHiveMetaStoreClient", 9, "is full: 9 B"),
        ("The table or view `a`.`t` cannot be found.", 0, "is full: 0 B are free. Make room there, and start Spark"),
        (
            "No table t. A user in a read-only database is not permitted to",
            2**30,
            "cannot be written: its disk was full. To go on",
        ),
        ("The table or view `a`.`t` cannot be found.", 2**30, "The table or view `a`.`t` cannot be found."),
        ("Division by zero.", 0, "Division by zero."),
    ],
)
def test_a_full_disk_is_named_in_place_of_what_follows_from_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, text: str, free: int, said: str
) -> None:
    monkeypatch.setattr(errors.shutil, "disk_usage", lambda _: SimpleNamespace(free=free))

    message, hint = split_message(text)

    assert said in str(explain_unwritable(QueryError(message, hint=hint), tmp_path))
