"""Answer what templates of dbt query in the warehouse while they are compiled.

Columns of the project's own models are those of their queries in this very folder. Sources and rows are those of prod:
its Spark answers each time, by queries that only read the tables of the project, and the rows come in one order.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from functools import partial

from sqlglot import exp
from sqlglot.errors import SqlglotError

from mergeplan.planner.engine.protocol import Engine, Rows
from mergeplan.planner.engine.spark.quoting import quote_name
from mergeplan.planner.errors import Cancelled, MergeplanError, ProjectError, QueryError
from mergeplan.planner.model.model import Column
from mergeplan.planner.parsing.files.dbt.nodes import DbtNode, DbtProject, DbtQuestion
from mergeplan.planner.parsing.files.dbt.two_forms import SPARK
from mergeplan.planner.parsing.macros.splicing import Splice, apply_splices
from mergeplan.planner.parsing.sql.names import without_default
from mergeplan.planner.parsing.sql.ordered_query import order_query
from mergeplan.planner.parsing.sql.queried_tables import FIRST, NotAdmitted, Queried, parse_query
from mergeplan.planner.project.dbt.node_columns import NodeColumns, find_ancestors
from mergeplan.planner.project.dbt.own_rows import OwnRows

MOST_ROWS = 10_000
LONGEST = 1_000_000  # characters of an answer
INSTEAD = "A manifest made in CI has the answer (`dbt: {manifest: ...}` in config.yaml), or write it out"
OWN = "It asks its own table while it is compiled, which holds something else after each run"
OF_A_FORK = "It asks for rows while it is compiled, and templates of a fork get none: they could show them to anybody"
NOT_BUILT = "It asks for rows of {} while it is compiled, which Spark does not have yet"
PLAN_AGAIN = "Apply the plan of the other models, which builds that, and plan again"
COMMENTS = re.compile(r"\A(?:\s++|--[^\n]*+|/\*.*?\*/)++", re.DOTALL)  # that a query begins with
TABLE = "table:"  # before the name of one that no node or source is
_PLAIN = re.compile(r"[\w-]+(\.[\w-]+){1,2}", re.ASCII)
NOT_THERE = ("TABLE_OR_VIEW_NOT_FOUND", "SCHEMA_NOT_FOUND")
Answer = Mapping[str, object]
NOTHING: Mapping[str, Answer] = {}
OpenEngine = Callable[[frozenset[str]], Engine]  # the Spark of prod, which knows these table formats


class _Refusal(Exception):
    """The message says why a question has no answer."""


@dataclass
class Answers:
    """The answers to a dbt project's questions: from Spark with `open_engine`, with rows if it `gives_rows`."""

    open_engine: OpenEngine | None = None
    gives_rows: bool = True
    functions: frozenset[str] = frozenset()  # that the operator adds to Spark's own
    default_catalog: str = ""  # what the project calls Spark's default catalog, where Spark calls it otherwise
    own_rows: OwnRows | None = None  # of nodes that prod does not show as they are in the folder
    _engine: Engine | None = None
    _sources: dict[str, tuple[Column, ...]] = field(default_factory=dict)  # by id
    _rows: dict[str, Rows] = field(default_factory=dict)  # by query

    def __post_init__(self) -> None:
        self._node_columns = NodeColumns(self._source_columns, self.functions)

    def answer(
        self, project: DbtProject, questions: Sequence[DbtQuestion], remembered: Mapping[str, Answer] = NOTHING
    ) -> dict[str, Answer]:
        """Return answers by key, some an error, reusing `remembered`; leave out questions that wait, unless all do."""
        open_ones = set(questions)
        waiting = {node.id for node in project.nodes if not open_ones.isdisjoint(node.asks)}
        ready = [
            question for question in questions if not (waiting - {question.by}) & self._source_nodes(project, question)
        ]
        if not ready:
            message = "It asks for columns or rows of a model that waits for its own"
            return {question.key: _refusal_answer(message) for question in questions}
        return {question.key: remembered.get(question.key) or self._try_answer(project, question) for question in ready}

    def follows_from_files(self, project: DbtProject, question: DbtQuestion, answer: Answer) -> bool:
        """Return True for the columns of a node that were found without Spark; they change only with the files."""
        is_of_node = question.kind == "columns" and question.subject in project.by_id
        return is_of_node and "error" not in answer and not self._sources

    def refuse_rest(self, project: DbtProject, questions: Sequence[DbtQuestion]) -> dict[str, Answer]:
        """Return an error for each question that stays open: its subject waits for an answer that does not exist."""

        def why(question: DbtQuestion) -> str:
            node = project.by_id.get(question.subject)
            about = f"the columns of `{node.table}`, which reads" if node else "something of"
            return f"It asks for {about} what cannot be compiled"

        return {question.key: _refusal_answer(why(question)) for question in questions}

    def _source_nodes(self, project: DbtProject, question: DbtQuestion) -> set[str]:
        """Return the nodes from which an answer follows: those whose columns or rows are in question, and all above."""
        subjects = {question.subject}
        if question.kind == "query":
            with suppress(NotAdmitted):
                tables = {table.lower() for table in parse_query(question.subject, self.functions).tables}
                subjects = {node.id for node in project.nodes if node.table in tables}
        return set().union(*(find_ancestors(project, id) for id in subjects if id in project.by_id))

    def _try_answer(self, project: DbtProject, question: DbtQuestion) -> Answer:
        try:
            readers = {"columns": self._answer_columns, "exists": self._answer_existence, "query": self._answer_query}
            return readers[question.kind](project, question)
        except Cancelled:
            raise
        except _Refusal as refusal:
            return _refusal_answer(str(refusal))
        except NotAdmitted as error:
            return _refusal_answer(f"Its query is not run: {error}")
        except MergeplanError as error:
            message = error.message if isinstance(error, ProjectError) else str(error).partition("\n")[0]
            return _refusal_answer(f"It asks the warehouse while it is compiled: {message}")

    def _answer_columns(self, project: DbtProject, question: DbtQuestion) -> Answer:
        source = project.source_by_id.get(question.subject)
        if source is not None:
            return {"columns": [(column.name, column.type) for column in self._source_columns(project, source.id)]}
        node = project.by_id[question.subject]
        columns = self._node_columns.find(project, node)
        if not columns:
            return _refusal_answer(
                f"It asks for the columns of `{node.table}`, which are not known before that is built"
            )
        return {"columns": [*columns.items()]}

    def _source_columns(self, project: DbtProject, id: str) -> tuple[Column, ...]:
        if id not in self._sources:
            self._sources[id] = self._table_columns(project, project.source_by_id[id].table)
        return self._sources[id]

    def _table_columns(self, project: DbtProject, name: str) -> tuple[Column, ...]:
        name = without_default(name, self.default_catalog) if self.default_catalog else name
        return self._spark_engine(project).schema(f"SELECT * FROM {quote_name(name)}")

    def _answer_existence(self, project: DbtProject, question: DbtQuestion) -> Answer:
        name = question.subject.removeprefix(TABLE)
        is_listed = name == question.subject
        tables = (*(node.table for node in project.nodes), *(source.table for source in project.sources))
        schemas = (table.rpartition(".")[0] for table in tables)
        if not is_listed and not (_PLAIN.fullmatch(name) and name.rpartition(".")[0] in schemas):
            message = (
                f"It asks for `{name[:80]}` while it is compiled, which is no model, seed, snapshot or source of the"
            )
            return _refusal_answer(f"{message} project, and in no schema of these")
        return {"exists": self._is_there(project, project.source_by_id[name].table if is_listed else name)}

    def _answer_query(self, project: DbtProject, question: DbtQuestion) -> Answer:
        word = (COMMENTS.sub("", question.subject).split() or [""])[0].upper()
        if word.partition("(")[0] not in FIRST - {"("} | {""}:
            return _refusal_answer(f"It runs `{word[:40]}` while it is compiled, and mergeplan answers only queries")
        if not self.gives_rows:
            return _refusal_answer(OF_A_FORK)
        queried = parse_query(question.subject, self.functions)
        self._check_tables(project, question, queried)
        complete = queried
        if self.own_rows is not None:
            is_there = partial(self._is_there, project)
            text = self.own_rows.replace_tables(project, queried.text, queried.tables, is_there)
            complete = parse_query(text, self.functions)
            self._check_tables(project, question, complete)
        try:
            sql = drop_catalog(complete.text.strip(), self.default_catalog)
            if sql not in self._rows:
                engine = self._spark_engine(project)
                self._rows[sql] = engine.fetch(order_query(sql, len(engine.schema(sql))), MOST_ROWS + 1)
            return _rows_answer(self._rows[sql])
        except QueryError as error:
            node_tables = {node.table for node in project.nodes}
            built = sorted(table for table in queried.tables if table.lower() in node_tables)
            if error.condition not in NOT_THERE or not built:
                raise
            return {"error": f"{NOT_BUILT.format(', '.join(f'`{table}`' for table in built))}. {PLAN_AGAIN}"}

    def _check_tables(self, project: DbtProject, question: DbtQuestion, queried: Queried) -> None:
        """Raise _Refusal if a query reads a table that is not of the project, or that of the node that asks."""
        named = {node.table: node.id for node in project.nodes}
        named |= {source.table: source.id for source in project.sources}
        for table in sorted(queried.tables):
            if table.lower() not in named:
                raise _Refusal(f"Its query reads `{table}`, which is no model, seed, snapshot or source of the project")
            if named[table.lower()] == question.by:
                raise _Refusal(OWN)

    def _is_there(self, project: DbtProject, table: str) -> bool:
        try:
            self._table_columns(project, table)
        except QueryError as error:
            if error.condition not in NOT_THERE:
                raise
            return False
        return True

    def _spark_engine(self, project: DbtProject) -> Engine:
        if self._engine is None:
            if self.open_engine is None:
                raise ProjectError("no Spark is available to answer.")
            formats = (str(node.settings.get("file_format") or "").lower() for node in project.nodes)
            self._engine = self.open_engine(frozenset(formats))
        return self._engine


def open_questions(project: DbtProject, answers: Iterable[str]) -> list[DbtQuestion]:
    """Return the questions of a project that have no answer among these keys, each once."""
    questions = dict.fromkeys(question for node in project.nodes for question in (*node.asks, *node.hook_asks))
    answered_keys = set(answers)
    return [question for question in questions if question.key not in answered_keys]


def refuse_unanswered(project: DbtProject, answers: Mapping[str, Answer]) -> DbtProject:
    """Return the project with the error of each unanswered question as the error of the nodes that ask it."""
    errors = {key: str(answer["error"]) for key, answer in answers.items() if "error" in answer}

    def refuse(node: DbtNode) -> DbtNode:
        error = next((errors[question.key] for question in node.asks if question.key in errors), "")
        return node.model_copy(update={"error": error}) if error else node

    return project.with_nodes(map(refuse, project.nodes)) if errors else project


def _rows_answer(rows: Rows) -> Answer:
    if len(rows.rows) > MOST_ROWS:
        return _refusal_answer(f"Its query returns more than {MOST_ROWS:,} rows while it is compiled")
    try:
        answer = {"names": list(rows.columns), "rows": [[_encode_cell(value) for value in row] for row in rows.rows]}
    except TypeError as error:
        return _refusal_answer(f"Its query returns {error} while it is compiled")
    if len(json.dumps(answer)) > LONGEST:
        return _refusal_answer(f"Its query returns more than {LONGEST:,} characters while it is compiled")
    return answer


def _encode_cell(value: object) -> object:
    """Return a value as JSON represents it; raise TypeError for one that no template can read."""
    match value:
        case None | bool() | int() | float() | str():
            return value
        case Decimal():
            return {"decimal": str(value)}
        case datetime():
            return {"time": value.replace(tzinfo=None).isoformat()}
        case date():
            return {"date": value.isoformat()}
    raise TypeError(f"values of type {type(value).__name__}")


def _refusal_answer(message: str) -> Answer:
    return {"error": f"{message.rstrip('.')}. {INSTEAD}"}


def drop_catalog(text: str, catalog: str) -> str:
    """Return a query whose tables are named without this catalog; return an unreadable query unchanged."""
    if not catalog or catalog.lower() not in text.lower():
        return text
    try:
        trees = [tree for tree in SPARK.parse(text) if tree is not None]
    except (SqlglotError, RecursionError):
        return text
    named = [table.parts for tree in trees for table in tree.find_all(exp.Table) if table.catalog.lower() == catalog]
    placed = [parts for parts in named if all("start" in part.meta for part in parts[:2])]
    starts = [(int(parts[0].meta["start"]), int(parts[1].meta["start"])) for parts in placed]
    return apply_splices(text, [Splice(start, end, "") for start, end in starts])
