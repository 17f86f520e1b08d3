"""Spark's errors in a person's words: one sentence, what kind, and where in the query; never a Java stack trace."""

import os
import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mergeplan.planner.errors import Cancelled, MergeplanError, QueryError, SparkLost, SparkUnavailable
from mergeplan.planner.wording import size_text

CANCELLED = ("OPERATION_CANCELED", "OPERATION_CANCELLED", "SPARK_JOB_CANCELLED")
WRAPPER = "SELECT * FROM (\n"  # precedes a query that must not be a command: a separate line
# How Java reports a class that is nowhere on its path: by the name of the error, or by the class's path alone.
_CLASS_LACKED = re.compile(
    r"(?:NoClassDefFoundError:|ClassNotFoundException:|details = \"|^)\s*(?:Could not initialize class )?"
    r"([a-z]\w*(?:[./]\w+)*[./][A-Z][\w$]*)(?=\s*(?:\"|$|\n|\)))"
)
LACKS = "Spark has no class"
DEPTH = 30  # causes of causes
# After these a JVM may fail anywhere: later errors are not about the query. Java's own messages, also when wrapped.
# `Unable to acquire ... bytes of memory` is not one of them: Spark refuses one task, and goes on.
EXHAUSTED = re.compile(
    r"java\.lang\.OutOfMemoryError|Out of space in CodeCache|bootstrap method initialization exception"
    r"|unable to create native thread"
)
# What Spark and its metastore say where their folder cannot be written. With a full disk, no table is found either.
READ_ONLY = "in a read-only database"
UNWRITABLE = re.compile(
    rf"{READ_ONLY}|SessionHiveMetaStoreClient|No space left|Read-only file system|Permission denied|Mkdirs failed"
    r"|unable to create one|cannot be found"
)
ROOM = 10 * 2**20  # bytes: with less the metastore cannot write its log
QUOTING = ("USER_RAISED_EXCEPTION", "PYTHON_EXCEPTION")  # the query's own words


@dataclass(frozen=True)
class SparkMessage:
    """An error of Spark: its text, its error class, and the (start, stop, fragment) of the query that it points at."""

    text: str
    condition: str | None = None
    context: tuple[int, int, str] | None = None
    raw: str = ""  # the whole text

    @property
    def is_wrapped(self) -> bool:
        return f"== SQL ==\n{WRAPPER}" in self.raw


def translate_error(error: BaseException, sql: str) -> MergeplanError:
    """Return the error to show instead of Spark's, with its line and column if they are in this query."""
    spark_message = _message_of(error)
    if spark_message.condition in CANCELLED or any(f"[{name}" in spark_message.text for name in CANCELLED):
        return Cancelled("the query was cancelled.")
    if _has_ended(error):
        return SparkLost("Spark has ended.", hint="It may have lacked memory. Earlier results are kept.")
    if spark_message.condition not in QUOTING and (
        EXHAUSTED.search(spark_message.text) or EXHAUSTED.search(spark_message.raw)
    ):
        hint = "Give it more with `spark.driver.memory`. Earlier results are kept."
        return SparkLost("Spark ran out of memory.", hint=hint)
    message, hint = split_message(spark_message.text)
    kind, code = type(error).__name__, getattr(_call_method(error, "getGrpcStatusCode"), "name", "")
    # An error of Spark itself has more than gRPC's code.
    broken = kind == "SparkConnectGrpcException" and condition(error) is None and code in ("UNKNOWN", "CANCELLED")
    if broken or code == "UNAVAILABLE" or condition(error) == "RETRIES_EXCEEDED":
        return SparkLost(message, hint=hint)
    return QueryError(
        message, hint=hint, condition=spark_message.condition, position=_query_position(spark_message, sql)
    )


def explain_unwritable(error: MergeplanError, folder: Path) -> MergeplanError:
    """Return an error that says so if Spark's own folder cannot be written, and this error may be of that."""
    text = f"{error.message} {error.hint}"
    if not UNWRITABLE.search(text):
        return error
    again, free = "start Spark again.", shutil.disk_usage(folder).free
    unwritable = [
        str(path) for path in (folder, folder / "warehouse") if path.exists() and not os.access(path, os.W_OK)
    ]
    if free < ROOM:
        message, hint = f"The disk of {folder} is full: {size_text(free)} are free.", f"Make room there, and {again}"
    elif unwritable:
        message, hint = f"{unwritable[0]} cannot be written.", "Give this user the right to write there."
    elif READ_ONLY in text:
        message, hint = f"The metastore in {folder} cannot be written: its disk was full.", f"To go on, {again}"
    else:
        return error
    return SparkUnavailable(message, hint=hint)


def is_spark(error: BaseException) -> bool:
    return _has_ended(error) or any(
        kind.__module__.split(".")[0] in ("pyspark", "py4j", "grpc") for kind in type(error).__mro__
    )


def replaces_views(error: BaseException) -> bool:
    return is_spark(error) and condition(error) is None and "Use CREATE OR REPLACE VIEW" in str(error)


def _has_ended(error: BaseException) -> bool:
    """Return True if the JVM of our own Spark is gone: the socket to it breaks, or nothing listens any more."""
    return isinstance(error, ConnectionError) or type(error).__name__ == "Py4JNetworkError"


def condition(error: BaseException) -> str | None:
    """Return the error class that Spark gave an error, without its subclass."""
    name = _call_method(error, "getCondition")
    return name.split(".")[0] if isinstance(name, str) else None


def find_occupied_location(error: BaseException) -> str:
    """Return the location at which Spark creates no table because it holds files; '' for another error."""
    parameters = _call_method(error, "getMessageParameters") if condition(error) == "LOCATION_ALREADY_EXISTS" else None
    return str(parameters["location"]).strip("'") if isinstance(parameters, dict) else ""


def split_message(text: str) -> tuple[str, str]:
    """Return Spark's message as its first sentence and the rest, without error class, state, plan and trace."""
    if lacked := _CLASS_LACKED.search(text):
        hint = (
            "A jar is missing where Spark starts, or is of another version than Spark: add it with `spark.jars` or "
            "`spark.jars.packages`, or leave out the setting that asks for it, and start Spark again."
        )
        return f"{LACKS} `{lacked[1].replace('/', '.')}` among its jars.", hint
    if unreachable := re.search(r'details = "([^"]+)"', text):  # gRPC's message for an unreachable server
        text = f"Spark does not answer: {unreachable[1]}."
    text = re.sub(r"^\s*(\([\w.$]+\)\s*)?(\[[A-Z][A-Z0-9_.]+\]\s*)?", "", text)
    text = re.sub(r"^((\w+\.)+[A-Z]\w+: )+|MetaException\(message:(?=.*\))", "", text)  # Java's names of its errors
    text = re.split(
        r"SQLSTATE: |\n[^\S\n]*== |\nJVM stacktrace|\n[^\S\n]+at |\n'?[A-Z]\w+ |;\n|\nDriver stacktrace",
        text,
        maxsplit=1,
    )[0]
    text = " ".join(text.split()).rstrip(";").replace(": missing ')'", "")  # the ')' of our wrapper
    end = re.search(r"(?<!\be\.g)(?<!\bi\.e)[.!?](?= [A-Z])", text)
    return (text[: end.end()], text[end.end() :].strip()) if end else (text, "")


def _message_of(error: BaseException) -> SparkMessage:
    if (java := getattr(error, "java_exception", None)) is not None:
        return _parse_java_error(java)
    condition = _call_method(error, "getCondition")
    text = _call_method(error, "getMessage") or str(error)
    if condition in (None, "UNKNOWN_EXCEPTION") or "stage failure" in text[:200]:
        text, condition = _innermost_error(str(error), condition)
    contexts = _call_method(error, "getQueryContext") or []
    for context in contexts:
        try:
            if not context.objectType():
                return SparkMessage(text, condition, (context.startIndex(), context.stopIndex(), context.fragment()))
        except Exception:  # noqa: S112  # a DataFrame's context has no offsets and says so by raising
            continue
    return SparkMessage(text, condition, raw=str(error))


def _call_method(error: BaseException, method: str) -> Any:
    try:
        return getattr(error, method)()
    except Exception:
        return None


def _parse_java_error(java: Any) -> SparkMessage:
    """Return the first cause that has an error class: the failure of a job wraps the actual error."""
    text = str(java.getMessage() or java.getClass().getSimpleName())
    for _ in range(DEPTH):
        condition = _call_method(java, "getCondition")
        if condition:
            contexts = [c for c in (_call_method(java, "getQueryContext") or []) if _call_method(c, "objectType") == ""]
            spot = contexts[0] if contexts else None
            context = (spot.startIndex(), spot.stopIndex(), spot.fragment()) if spot else None
            if condition not in ("TASK_WRITE_FAILED", "FAILED_EXECUTE_UDF"):
                return SparkMessage(str(java.getMessage()), condition, context)
        if (cause := java.getCause()) is None:
            break
        java = cause
    message, condition = _innermost_error(text, None)
    last = str(java.getMessage() or "").strip()  # such as that the disk is full
    if condition is None and last and last not in message:
        message = f"{message.partition(' SQLSTATE: ')[0].rstrip('. ')}: {last}"
    return SparkMessage(message, condition)


def _innermost_error(text: str, condition: str | None) -> tuple[str, str | None]:
    """Return the message and the class of the first error class in a text that quotes a chain of failures."""
    matches = [m for m in re.finditer(r"\[([A-Z][A-Z0-9_]+(?:\.[A-Z0-9_]+)*)\] ", text) if m[1] != "TASK_WRITE_FAILED"]
    return (text[matches[0].start() :], matches[0][1]) if matches else (text, condition)


def _query_position(message: SparkMessage, sql: str) -> tuple[int, int]:
    """Return the 1-based line and column in the query; (0, 0) if the fragment that Spark quotes is not of it."""
    if message.context:
        start, stop, fragment = message.context
        for shift in (0, len(WRAPPER)):
            first, last = start - shift, stop - shift
            if 0 <= first <= last < len(sql) and sql[first : last + 1] == fragment:
                return sql.count("\n", 0, first) + 1, first - sql.rfind("\n", 0, first)
        return 0, 0
    spot = re.search(r"\(line (\d+), pos (\d+)\)", message.raw)
    return (int(spot[1]) - message.is_wrapped, int(spot[2]) + 1) if spot else (0, 0)
