"""The child's main for a dbt project: dbt itself parses it here, and compiles each node by itself.

It runs in the Python that has the project's dbt, so it imports nothing but that, Python's own library and the server of
the child. No warehouse is reached: a node's query to the warehouse becomes a question to the planner. An incremental
model is compiled twice, as its table's first run and as a later one.
"""

import importlib.util
import os
import re
import sys
import tempfile
import traceback
import types
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from mergeplan.planner.parsing.files.dbt.adapter_defaults import MERGE, add_adapter_defaults
from mergeplan.planner.python.dbt_code import node_data
from mergeplan.planner.python.dbt_code.compile_error import CompileError
from mergeplan.planner.python.dbt_code.connection import refuse_settings
from mergeplan.planner.python.dbt_code.error_place import find_line, find_place
from mergeplan.planner.python.dbt_code.fixed_context import fixed_context
from mergeplan.planner.python.dbt_code.hooks import SHOWN
from mergeplan.planner.python.dbt_code.limits import limit_time, limit_yaml
from mergeplan.planner.python.dbt_code.moments import MARKED, TIMES, replace_marks
from mergeplan.planner.python.dbt_code.own_macros import ROWS, OwnMacros, refuse_unlike_snapshot
from mergeplan.planner.python.dbt_code.questions import Questions, agate_helper
from mergeplan.planner.python.dbt_code.thread_locks import use_thread_locks
from mergeplan.planner.python.dbt_code.timed_settings import refuse_timed_settings
from mergeplan.planner.python.dbt_code.unit_tests import call_node, unit_test_data
from mergeplan.planner.python.serving import serve_pipes

VERSIONS = "dbt-core 1.7 or newer, below 2, with dbt-spark or dbt-databricks"
KIND_OF_ERROR = re.compile(r"^\w+ Error( in \w+ [\w.]+ \([^)]*\))?:? ?")  # dbt's words before the error itself
EXCERPT = re.compile(r" -{10,} .* Raw Error: -{10,}")  # of a YAML file, on several lines
NO_ADAPTER = re.compile(r"Could not find adapter type (\w+)!")
EDGES = ("\ue000start\ue001", "\ue000end\ue001")  # of a batch in a compiled text: `files/dbt/kinds.py` knows them
UTC = timezone.utc  # noqa: UP017 - the Python of a dbt may be older than ours
BATCHES = (  # far apart, and equal in nothing
    (datetime(1995, 3, 4, 5, 6, 7, tzinfo=UTC), datetime(1996, 4, 6, 8, 10, 12, tzinfo=UTC)),
    (datetime(2012, 11, 22, 17, 38, 49, tzinfo=UTC), datetime(2013, 12, 24, 18, 39, 50, tzinfo=UTC)),
    (datetime(2087, 7, 13, 21, 54, 33, tzinfo=UTC), datetime(2088, 8, 15, 22, 55, 34, tzinfo=UTC)),
)
QUERIES = ("model", "snapshot", "test")
ADDRESS = re.compile(r" at 0x[0-9a-f]{6,}")  # of an object in memory
LONGEST = 2_000_000  # characters of a text that the planner takes: `files/dbt/nodes.py`
ELSEWHERE = "Its text is another one on each machine: it holds the path of a folder, or the address of an object"
PARSING, COMPILING = 300.0, 60.0  # seconds of the processor's time, of the project and of each node
# What of a node's configuration shapes its table, its rows or its tests.
SETTINGS = """materialized incremental_strategy unique_key partition_by event_time begin batch_size lookback
    on_schema_change file_format clustered_by buckets liquid_clustered_by location_root tblproperties options
    merge_update_columns merge_exclude_columns incremental_predicates predicates full_refresh grants strategy
    updated_at check_cols invalidate_hard_deletes hard_deletes dbt_valid_to_current snapshot_meta_column_names severity
    warn_if error_if fail_calc limit enabled delimiter quote_columns column_types contract zorder auto_liquid_cluster
    table_format sql_header matched_condition not_matched_condition not_matched_by_source_action
    not_matched_by_source_condition skip_matched_step skip_not_matched_step merge_with_schema_evolution
    on_configuration_change row_filter target_alias source_alias null_safe_key""".split()
PACKAGE_LISTS = ("packages.yml", "dependencies.yml")
STAND_IN = "unknown"
_SECRET_NAME = re.compile(r"\bDBT_ENV_SECRET\w*")  # dbt lets no other file of a project read one


class DbtWork:
    def __init__(self) -> None:
        self.root = ""
        self._compiling: Compiling | None = None

    def answer(self, request: Mapping[str, Any]) -> Any:
        if request["op"] == "open":
            self.root = request["root"]
            return None
        return self.compile_project(request)

    def locate(self, error: BaseException) -> tuple[str, int]:
        return error.place if isinstance(error, CompileError) else find_place(str(error), self.root)

    def interrupt(self) -> None:
        """Do nothing: nothing continues after this process."""

    def compile_project(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Return every node of the project as data, with its compiled text or the reason for its absence.

        `answers` are those to earlier questions. A repeated call compiles only nodes that have a new answer, and
        returns only these `nodes`: the rest is unchanged.
        """
        answers = request.get("answers", {})
        if self._compiling is not None:
            return {"nodes": self._compiling.nodes(answers)}
        self._compiling = Compiling(self._parse_project(request))
        return self._compiling.project(answers, request.get("calls", []))

    def _parse_project(self, request: Mapping[str, Any]) -> Any:
        use_thread_locks()
        _need_no_pyspark()
        try:
            from dbt.cli.main import dbtRunner
        except ImportError as error:
            raise CompileError(f"dbt cannot be imported ({error}). Install {VERSIONS}") from None
        has_path = '"http_path": "none"' not in request["profiles"]
        refuse_settings(Path(self.root), ("http_path",) if has_path else ())
        home = Path(request["home"])
        (home / "profiles.yml").write_text(request["profiles"], encoding="utf-8")
        tempfile.tempdir = str(home)  # no variable names it any more
        os.environ.clear()  # of templates, which read only what the operator lets them
        fixed_variables = {
            "HOME": "/nonexistent",
            "DBT_SEND_ANONYMOUS_USAGE_STATS": "false",
            **stand_ins(Path(self.root)),
        }
        os.environ.update({**fixed_variables, **request["environment"]})
        options = {
            "project-dir": self.root, "profiles-dir": str(home), "target-path": str(home / "target"),
            "log-path": str(home / "logs"), "vars": request["vars"],
            "profile": request["profile"],  # which packages name none of
        }  # fmt: skip
        arguments = ["--quiet", "--log-level", "none", "--no-write-json", "parse", "--no-partial-parse"]
        arguments += [part for name in options for part in (f"--{name}", options[name])]
        limit_yaml()
        reasons: list[str] = []  # of an error that does not name them

        def note_reason(event: Any) -> None:
            if event.info.name == "SemanticValidationFailure":
                reasons.append(str(event.data.msg).rstrip("."))

        with limit_time(PARSING):
            result = dbtRunner(callbacks=[note_reason]).invoke(arguments)
        if not result.success:
            if not result.exception:
                raise CompileError("dbt cannot parse the project")
            place = find_place(str(result.exception), self.root)
            if missing := NO_ADAPTER.search(str(result.exception)):
                raise CompileError(f"{sys.executable} has dbt without dbt-{missing[1]}. Install it there, or let "
                                   "MERGEPLAN_DBT_PYTHON be the Python that has it")  # fmt: skip
            message = _error_message(result.exception, self.root).rstrip(".")
            raise CompileError(": ".join(filter(None, (message, "; ".join(reasons)))), place)
        return result.result


class Compiling:
    def __init__(self, manifest: Any) -> None:
        from dbt.adapters.factory import FACTORY
        from dbt.compilation import Compiler

        self.manifest = manifest
        self.adapter = next(iter(FACTORY.adapters.values()))
        self.config = self.adapter.config
        self.compiler = Compiler(self.config)
        refuse_timed_settings(self.compiler)
        if hasattr(manifest, "build_flat_graph"):
            manifest.build_flat_graph()
        named = [*manifest.nodes.values(), *manifest.sources.values()]
        tables = {self.relation(node).replace("`", "").lower(): node.unique_id for node in named}
        self.questions = Questions(self.adapter, tables)
        self._macros = OwnMacros(manifest, self.adapter)
        self._asked: dict[str, list[dict[str, str]]] = {}  # by node: the questions of its templates

    def project(self, answers: Mapping[str, Any], calls: list[str]) -> dict[str, Any]:
        from dbt.version import __version__

        tests = getattr(self.manifest, "unit_tests", {}).values()
        unit_tests = [{**unit_test_data(test, self.manifest, self.relation), "path": self.path(test)} for test in tests]
        return {
            "dbt": __version__,
            "nodes": self.nodes(answers),
            "sources": [self.source(source) for source in self.manifest.sources.values()],
            "unit_tests": sorted(unit_tests, key=lambda test: test["id"]),
            "exposures": [node_data.exposure_data(exposure) for exposure in self.manifest.exposures.values()],
            "hooks": [node.raw_code for node in self.manifest.nodes.values() if node.resource_type == "operation"],
            "files": sorted(self.files()),
            "calls": [self.call(text) for text in calls],
        }

    def call(self, text: str) -> dict[str, str]:
        """Return the call of a macro in a unit test as data: its text, or the reason for its absence."""
        try:
            with limit_time(COMPILING), call_node(text, self.config, self.manifest) as node:
                self.questions.asked = []
                compiled = self.compile(node, incremental=False)
            if MARKED.search(compiled) or len(compiled) > LONGEST:
                raise CompileError("Its text follows from the time of the run, or is too long")
            return {"call": text, "text": compiled, "error": ""}
        except Exception as error:  # of the project's own templates: anything
            return {"call": text, "text": "", "error": _error_message(error, str(self.config.project_root))}

    def nodes(self, answers: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Return the nodes as data: at first all of them, then those whose questions have a new answer."""
        former_answers, self.questions.answers = self.questions.answers, answers
        compiled = []
        for node in self.manifest.nodes.values():
            is_left_out = node.resource_type == "analysis" or getattr(node.config, "enabled", True) is False
            node_questions = self._asked.get(node.unique_id)
            if not is_left_out and (
                node_questions is None or self.questions.has_new_answer(node_questions, former_answers)
            ):
                compiled.append(self.node(node))
                self._asked[node.unique_id] = compiled[-1]["asks"] + compiled[-1]["hook_asks"]
        return compiled

    def node(self, node: Any) -> dict[str, Any]:
        kind = str(getattr(node.resource_type, "value", node.resource_type))
        config = node.config.to_dict() if hasattr(node.config, "to_dict") else dict(node.config)
        merge = getattr(self.manifest.macros.get(MERGE), "macro_sql", "")
        config = add_adapter_defaults(self.adapter.type(), config, merge)
        data = {
            "id": node.unique_id, "type": kind, "name": node.name, "path": self.path(node),
            "package": node.package_name, "relation": self.relation(node), "language": getattr(node, "language", "sql"),
            "settings": {
                name: node_data.plain_value(config[name]) for name in SETTINGS if config.get(name) not in (None, {}, [])
            },
            "columns": [node_data.column_data(column) for column in (getattr(node, "columns", {}) or {}).values()],
            "description": node.description or "", "tags": sorted(node.tags),
            "owner": node_data.owner_name(node, self.manifest),
            "depends_on": sorted(getattr(getattr(node, "depends_on", None), "nodes", ())),
            "attached": getattr(node, "attached_node", None) or "",
            "hooks": [], "post_hooks": [], "text": "", "later": "", "error": "", "types": [],
            "asks": [], "hook_asks": [],
        }  # fmt: skip
        if constraints := [*node_data.constraint_data(node)]:
            data["settings"]["constraints"] = constraints
        try:
            with limit_time(COMPILING):
                self.questions.asked = data["hook_asks"]
                data["hooks"] = [self.hook(node, hook.sql) for hook in getattr(node.config, "pre_hook", ())]
                self.questions.asked = data["asks"]
                data |= self.texts(node, kind, config)
                self.questions.asked = data["hook_asks"]
                for hook in getattr(node.config, "post_hook", ()):
                    data["post_hooks"] += self.post_hook(node, hook.sql, data["types"])
        except Exception as error:  # of the project's own templates: anything
            root = str(self.config.project_root)
            data |= {
                "error": _error_message(error, root),
                "line": find_line(error, getattr(node, "raw_code", ""), os.path.join(root, data["path"])),
            }
        return data

    def hook(self, node: Any, text: str) -> str:
        """Return a hook's statement: rendered, unless its first word already shows what it does."""
        from dbt.clients.jinja import get_rendered

        if not text.lstrip().upper().startswith(("{", "ALTER", "SET")):
            return text
        with suppress(Exception), self.questions.answering(node, is_later=None):  # it is refused unrendered
            context = self.compiler._create_node_context(node, self.manifest, fixed_context(self.config))
            return str(get_rendered(text, context, node))
        return text

    def post_hook(self, node: Any, text: str, types: list[list[str]]) -> list[str]:
        """Return the statements of a hook that runs after the table is made: those of its macros, and its own text.

        `types` are those of a seed.
        """
        from dbt.clients.jinja import get_rendered

        if not text.lstrip().upper().startswith(("{", "INSERT", "ALTER", "SET")):
            return [text]
        with suppress(Exception), self.questions.recording(node, [(name, kind) for name, kind in types]) as sent:
            context = self.compiler._create_node_context(node, self.manifest, fixed_context(self.config))
            rendered = str(get_rendered(text, context, node)).strip()
            if not any(SHOWN in statement or MARKED.search(statement) for statement in (*sent, rendered)):
                return [*sent, *([rendered] if rendered else [])]
        return [text]  # which is refused unrendered

    def texts(self, node: Any, kind: str, config: Mapping[str, Any]) -> dict[str, Any]:
        if kind in ROWS:
            self._macros.refuse(node, kind)
        if kind == "seed":
            return {"types": self.seed_types(node)}
        if kind not in QUERIES or getattr(node, "language", "sql") != "sql":
            return {}
        if kind == "snapshot":
            refuse_unlike_snapshot(node, self.adapter)
        is_incremental = config.get("materialized") == "incremental"
        in_batches = is_incremental and config.get("incremental_strategy") == "microbatch"
        compile_node = self.compile_batch if in_batches else self.compile
        forms = [
            compile_node(node, incremental=is_later) for is_later in ((False, True) if is_incremental else (False,))
        ]
        if any(len(form) > LONGEST for form in forms):
            raise CompileError(f"Its text has more than {LONGEST:,} characters. Keep rows as a seed or a table")
        return {"text": forms[0], "later": forms[-1] if is_incremental else ""}

    def files(self) -> Iterator[str]:
        """Yield every file that was read of the project and its packages, without those of dbt itself."""
        for file in self.manifest.files.values():
            path = self.full_path(file)
            if not path.startswith(sys.prefix + os.sep):
                yield path

    def full_path(self, file: Any) -> str:
        return str(os.path.abspath(os.path.join(self.config.project_root, file.path.full_path)))

    def path(self, node: Any) -> str:
        """Return a node's path from the project's root: dbt gives that of a package's node from the package's root."""
        file = self.manifest.files.get(node.file_id)
        if file is None or node.package_name == self.config.project_name:
            return str(node.original_file_path)
        return str(os.path.relpath(self.full_path(file), self.config.project_root))

    def relation(self, node: Any) -> str:
        """Return the name of a node's table as dbt writes it; that of an ephemeral model too."""
        named = hasattr(node, "alias") or hasattr(node, "source_name")
        return str(self.adapter.Relation.create_from(self.config, node)) if named else ""

    def source(self, source: Any) -> dict[str, Any]:
        return {
            "id": source.unique_id, "relation": self.relation(source),
            "path": self.path(source), "description": source.description or "",
            "columns": [node_data.column_data(column) for column in source.columns.values()],
            "tags": sorted(source.tags), "freshness": node_data.freshness_data(source),
        }  # fmt: skip

    def compile(self, node: Any, *, incremental: bool) -> str:
        """Return a node's text with a mark for the run's time; raise CompileError if other text follows from it."""
        text = self.render(node, incremental, None)
        if MARKED.search(text):
            for time in (*TIMES, datetime.now(UTC)):
                if self.render(node, incremental, time) != replace_marks(text, time):
                    raise CompileError("Its text is another one each time: it follows from the time of the run")
        return text

    def render(self, node: Any, incremental: bool, time: datetime | None) -> str:
        """Return the text of a node, with relations of ephemeral models for dbt's common table expressions."""
        is_incremental = getattr(node.config, "materialized", "") == "incremental"
        is_later = incremental if is_incremental else None
        with self.questions.answering(node, is_later=is_later), node_data.keep_constraints(node):
            context = {"is_incremental": lambda: incremental, **fixed_context(self.config, time)}
            text = self.compiler._compile_code(node, self.manifest, context)
        compiled, node.compiled = str(text.compiled_code), False
        for parent in node.depends_on.nodes:
            ephemeral = self.manifest.nodes.get(parent)
            if ephemeral is not None and getattr(ephemeral.config, "materialized", "") == "ephemeral":
                name = re.escape(self.adapter.Relation.add_ephemeral_prefix(ephemeral.identifier))
                relation = self.relation(ephemeral).replace("\\", r"\\")
                compiled = re.sub(rf"(?<![\w`]){name}(?!\w)", relation, compiled)
        folders = (str(self.config.project_root), tempfile.gettempdir())
        if ADDRESS.search(compiled) or any(folder in compiled and folder not in node.raw_code for folder in folders):
            raise CompileError(ELSEWHERE)
        return compiled

    def compile_batch(self, node: Any, *, incremental: bool) -> str:
        """Return the text of a node that is filled by batches, with names for a batch's start and end.

        The node is compiled for several batches: if these texts differ in anything else, names would not suffice.
        """
        from dbt.contracts.graph.nodes import BatchContext

        texts = set()
        for start, end in BATCHES:
            node.batch = BatchContext(id=str(start.year), event_time_start=start, event_time_end=end)
            text = self.compile(node, incremental=incremental)
            texts.add(text.replace(f"'{start}'", f"'{EDGES[0]}'").replace(f"'{end}'", f"'{EDGES[1]}'"))
        node.batch = None
        if len(texts) > 1:
            raise CompileError("It reads its batch otherwise than as '{{ model.batch.event_time_start }}' and its end")
        return texts.pop()

    def seed_types(self, node: Any) -> list[list[str]]:
        types = {name.lower(): kind for name, kind in (node.config.column_types or {}).items()}
        path = os.path.join(node.root_path or self.config.project_root, node.original_file_path)
        delimiter = getattr(node.config, "delimiter", ",") or ","
        try:
            table = agate_helper().from_csv(path, text_columns=node.config.column_types or {}, delimiter=delimiter)
        except StopIteration:
            raise CompileError("Its file is empty: the first line of a seed names its columns") from None
        is_plain = getattr(node.config, "quote_columns", None) is False  # so that a space around a name is none of it
        return [
            [name.strip() if is_plain else name, types.get(name.lower()) or self.adapter.convert_type(table, index)]
            for index, name in enumerate(table.column_names)
        ]


def _need_no_pyspark() -> None:
    """Let dbt-spark find a pyspark if none can be read: it looks for one, and opens no session here."""
    spec = importlib.util.find_spec("pyspark") if "pyspark" not in sys.modules else None
    if "pyspark" not in sys.modules and not (spec and spec.origin and _is_readable(spec.origin)):
        sys.modules["pyspark"] = types.ModuleType("pyspark")


def _is_readable(file: str) -> bool:
    """Return False for a file that this process is closed to, as for one to which a link leads elsewhere."""
    try:
        with open(file, "rb"):
            return True
    except OSError:
        return False


def _error_message(error: BaseException, root: str) -> str:
    if lacks_memory(error):
        return "Its template takes more memory than project code may have"
    if isinstance(error, OSError) and error.filename:
        file = str(error.filename).replace(f"{root}/", "")
        return f"dbt cannot read `{file}` ({error.strerror}): only the project and dbt's own environment are open to it"
    text = EXCERPT.sub(":", " ".join(str(error).replace(f"{root}/", "").split()))
    text = KIND_OF_ERROR.sub("", text) or type(error).__name__
    return text if text != "None" else "".join(traceback.format_exception_only(type(error), error)).strip()


def lacks_memory(error: BaseException | None) -> bool:
    """Return True for an error that follows from a MemoryError, for which dbt has no message."""
    while error is not None and not isinstance(error, MemoryError):
        error = error.__cause__ or error.__context__
    return error is not None


def main() -> None:
    serve_pipes(DbtWork())


def stand_ins(root: Path) -> dict[str, str]:
    """Return a value for each secret that the lists of packages name: dbt fails on one that is not set."""
    return {name: STAND_IN for text in _read_package_lists(root) for name in _SECRET_NAME.findall(text)}


def _read_package_lists(root: Path) -> Iterator[str]:
    for folder in (root, *root.glob("dbt_packages/*"), *root.glob("dbt_modules/*")):
        for name in PACKAGE_LISTS:
            if (path := folder / name).is_file():
                yield path.read_text(encoding="utf-8", errors="replace")


if __name__ == "__main__":
    main()
