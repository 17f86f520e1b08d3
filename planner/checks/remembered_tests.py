"""Unit tests that need not run again: they passed, and nothing that decides their outcome has changed.

A digest covers the outcome: the test, its model as it is rendered, the models whose columns it needs, the settings and
the versions. In doubt there is none, and the test runs.
"""

import platform
from collections.abc import Iterator
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

from sqlglot import exp

from mergeplan.planner.checks.freezing import is_clock_call
from mergeplan.planner.checks.query_of_test import own_query
from mergeplan.planner.engine.protocol import Connection
from mergeplan.planner.errors import MergeplanError
from mergeplan.planner.fingerprint import digest
from mergeplan.planner.model.model import Model
from mergeplan.planner.model.property import read_setting, setting_parts
from mergeplan.planner.parsing.definitions.unit_tests import TestRows, UnitTest
from mergeplan.planner.parsing.macros.expand import spark_tree
from mergeplan.planner.parsing.named_columns import MERGE
from mergeplan.planner.project.called_macros import expand_call, find_test_model
from mergeplan.planner.project.loader import Project
from mergeplan.planner.semantics.spark.spark_functions import depends_on_session, is_random, is_volatile
from mergeplan.planner.tables.merge.relations import parse_expression
from mergeplan.planner.tables.partitioning import TRANSFORMS
from mergeplan.planner.versions import mergeplan_version, pyspark_version

# Fields that describe a model without changing what its query returns. Any other field counts.
_BESIDE = frozenset(
    """path line source text_line cron allow_partials start start_moves start_text end description owner tags audits
    ignored_rules freshness materialization""".split()
)
_DEFAULTS = "spark-defaults.conf"
# Code that Spark loads and that no digest covers: it may change what a query returns.
_OTHER_CODE = (
    "spark.jars", "spark.driver.extraClassPath", "spark.executor.extraClassPath", "spark.submit.pyFiles",
    "spark.driver.extraJavaOptions", "spark.driver.extraLibraryPath",
)  # fmt: skip


class TestDigests:
    """The digests of a project's tests, on the Spark of a connection; nothing is run."""

    __test__ = False  # pytest must not collect it

    def __init__(self, project: Project, connection: Connection) -> None:
        self._project = project
        self._spark = spark_settings(connection)
        self._models: dict[str, str] = {}

    def compute(self, test: UnitTest) -> str | None:
        """Return the digest of what decides the test's outcome; None if that is unknown."""
        if self._spark is None:
            return None
        try:
            text = expand_call(self._project, test) if test.call else ""
            if test.compares_only_text:
                return digest(self._spark, self._project.gateway, _definition_text(test), text)
            model = _find_test_model(self._project, test)
        except MergeplanError:
            return None
        if model is None or model.written.misread:
            return None
        parts = [_definition_text(test), text, _content_text(model)]
        if test.table is not None:
            parts.append(repr(model.cron))  # a table by time is partitioned by its unit
        for name in sorted(_model_dependencies(self._project, model)):
            parts += [name, self._model_digest(name)]
        return digest(self._spark, self._project.gateway, *parts)

    def is_repeatable(self, test: UnitTest) -> bool:
        """Return True if the outcome never changes: no clock, no chance, and only functions of Spark play a part."""
        if test.compares_only_text:
            return True  # which its digest has
        try:
            model = _find_test_model(self._project, test)
            if model is None:
                return False
            needed = (self._project.models.get(name) for name in _model_dependencies(self._project, model))
            trees = [
                tree
                for source_model in (model, *needed)
                if source_model is not None
                for tree in _parse_queries(source_model)
            ]
            test_rows = (test.query, test.this, test.table, *test.ctes.values(), *test.inputs.values())
            trees += [
                spark_tree(own_query(rows.query, model.dialect, test)) for rows in test_rows if rows and rows.query
            ]
            merge_trees = list(_parse_merge(model)) if test.table is not None else []
        except MergeplanError:
            return False
        frozen = test.execution_time is not None
        opened = any(_is_open(node, frozen=frozen) for tree in trees for node in tree.walk())
        # The load runs at the time of the test, but Spark's own clock goes on.
        merge_nodes = (node for tree in merge_trees for node in tree.walk() if node.name not in TRANSFORMS)
        return not opened and not any(_is_open(node, frozen=False) for node in merge_nodes)

    def _model_digest(self, name: str) -> str:
        if name not in self._models:
            model = self._project.models.get(name)
            self._models[name] = "" if model is None else digest(_content_text(model))
        return self._models[name]


def spark_settings(connection: Connection) -> str | None:
    """Return a digest of the Spark of a connection, with its settings; None for one that may change unnoticed."""
    if connection.remote or any(key in _OTHER_CODE for key, _ in connection.conf):
        return None
    defaults = ""
    if connection.config_dir:
        try:
            defaults = (Path(connection.config_dir) / _DEFAULTS).read_text("utf-8")
        except FileNotFoundError:
            pass
        except (OSError, UnicodeDecodeError):
            return None
        if any(key in defaults for key in _OTHER_CODE):
            return None
    versions = (mergeplan_version(), pyspark_version(), version("sqlglot"))
    return digest(platform.python_version(), *versions, repr(connection), defaults)


def _find_test_model(project: Project, test: UnitTest) -> Model | None:
    """Return the test's model with the test's variables; None if it runs Python, whose reads no digest covers."""
    model = None if test.call else project.models[test.model]
    if (model and model.python) or (test.variables and project.code.files):
        return None
    return find_test_model(project, test)


def _definition_text(test: UnitTest) -> str:
    inputs = {name: _clear_line(rows) for name, rows in test.inputs.items()}
    ctes = {name: _clear_line(rows) for name, rows in test.ctes.items()}
    query, this, table = (_clear_line(rows) if rows else None for rows in (test.query, test.this, test.table))
    cleared = replace(test, inputs=inputs, ctes=ctes, query=query, this=this, table=table)
    return repr(replace(cleared, path="", line=0, description=""))


def _clear_line(rows: TestRows) -> TestRows:
    return replace(rows, line=0)


def _content_text(model: Model) -> str:
    return repr([(name, read_setting(model, name)) for name in setting_parts(Model) if name not in _BESIDE])


def _model_dependencies(project: Project, model: Model) -> set[str]:
    """Return the models that a query is made of or whose columns it needs; declared columns need no parents."""
    names: set[str] = set()
    waiting = list(model.depends_on)
    while waiting:
        name = waiting.pop()
        parent = project.models.get(name)
        if name not in names:
            names.add(name)
            waiting += parent.depends_on if parent and (parent.kind.is_embedded or not parent.columns) else ()
    return names


def _parse_queries(model: Model) -> Iterator[exp.Expr]:
    if model.sql:
        yield spark_tree(model.sql)
    yield from (spark_tree(statement.query) for statement in model.statements.pre_statements if statement.query)


def _parse_merge(model: Model) -> Iterator[exp.Expr]:
    keys = model.by_key
    if keys.when_matched:
        yield spark_tree(f"{MERGE}{keys.when_matched}")
    texts = (*keys.unique_key, *model.storage.partitioned_by, keys.merge_filter)
    yield from (parse_expression(text) for text in texts if text)


def _is_open(node: exp.Expr, *, frozen: bool) -> bool:
    """Return True for a node that may have another result the next time, or that is not known."""
    if is_clock_call(node):
        return not frozen
    if isinstance(node, exp.StrToUnix) and node.this is None:
        return True  # of now
    if isinstance(node, exp.Parameter):
        return False  # a test says what time it is
    return is_random(node) or isinstance(node, exp.TableSample) or (depends_on_session(node) and is_volatile(node))
