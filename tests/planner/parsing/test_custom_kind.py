"""A model of kind CUSTOM is the same model of the kind that does what its materialization's `insert` does, or an error.

The code of a materialization is only read: none of these could run without SQLMesh.
"""

from __future__ import annotations

import random
from dataclasses import replace
from textwrap import dedent, indent

import pytest

from mergeplan.planner.errors import ProjectError
from mergeplan.planner.model.model import Model
from mergeplan.planner.parsing.definitions.materializations.classes import Materializations
from mergeplan.planner.parsing.files.model_file import Defaults, parse_model
from tests.planner.building import NOW

FILE = "materializations/own.py"
HEAD = """from __future__ import annotations

import logging
import typing as t

from pydantic import model_validator
from sqlglot import exp
from sqlmesh import CustomKind, CustomMaterialization, Model
from sqlmesh.utils.pydantic import list_of_fields_validator

if t.TYPE_CHECKING:
    from sqlmesh import QueryOrDF

logger = logging.getLogger(__name__)
KEYS = ["id"]
"""
CLASS = '''

class Own(CustomMaterialization):
    NAME = "own"

    def insert(
        self,
        table_name: str,
        query_or_df: QueryOrDF,
        model: Model,
        is_first_insert: bool,
        render_kwargs: t.Dict[str, t.Any],
        **kwargs: t.Any,
    ) -> None:
        """Writes the rows."""
'''
QUERY = "SELECT 1 AS id, 2 AS n, DATE'2026-01-01' AS day"
ONE = "columns_to_types, source = self._get_target_and_source_columns(model, table_name, render_kwargs=render_kwargs)"
REPLACE = "self._replace_query_for_model(model, table_name, query_or_df, render_kwargs, **kwargs)"
APPEND = "self.adapter.insert_append(table_name, query_or_df)"
MERGE = "self.adapter.merge(table_name, query_or_df, target_columns_to_types=None, unique_key={})"
PARTITION = "self.adapter.insert_overwrite_by_partition(table_name, query_or_df, model.partitioned_by)"
TIME = """self.adapter.insert_overwrite_by_time_partition(
    table_name, query_or_df, time_formatter=model.convert_to_time_column, time_column={}, **kwargs
)"""
PROPERTIES = "model.custom_materialization_properties"


def code(insert: str, head: str = HEAD) -> str:
    return head + CLASS + indent(dedent(insert).strip("\n"), " " * 8) + "\n"


def model(kind: str, files: dict[str, str] | None = None, more: str = "") -> Model:
    text = f"MODEL (\n  name s.t,\n  kind {kind}{more}\n);\n{QUERY}"
    defaults = Defaults(NOW, materializations=Materializations(files or {}))
    parsed = parse_model(text, "models/t.sql", defaults)[0]
    assert parsed is not None
    return replace(parsed, source="", materialization="")


def custom(insert: str, properties: str = "", more: str = "", settings: str = "", head: str = HEAD) -> Model:
    setting = f", materialization_properties ({properties})" if properties else ""
    return model(f"CUSTOM (materialization 'own'{setting}{settings})", {FILE: code(insert, head)}, more)


def refusal(insert: str, properties: str = "", **more: str) -> str:
    with pytest.raises(ProjectError) as error:
        custom(insert, properties, **more)
    return str(error.value)


def branch(first: str, later: str) -> str:
    return f"if is_first_insert:\n{indent(first, '    ')}\nelse:\n{indent(later, '    ')}"


DERIVED = {
    "replace": ("self.adapter.replace_query(table_name, query_or_df)", "", "FULL"),
    "replace with the model's layout": (
        "self.adapter.replace_query(table_name, query_or_df, table_format=model.table_format,"
        " partitioned_by=model.partitioned_by, table_properties=kwargs.get('physical_properties'),"
        " target_columns_to_types=self.adapter.columns(table_name))",
        "",
        "FULL",
    ),
    "replace for the model": ("self._replace_query_for_model(model, table_name, query_or_df)", "", "FULL"),
    "what is only said": (
        f"print(f'{{table_name}}', len(kwargs))\nlogger.info('%s', {PROPERTIES}.get('x'))\nassert model\n{REPLACE}",
        "",
        "FULL",
    ),
    "the same twice": (branch(REPLACE, "self.adapter.replace_query(table_name, query_or_df)"), "", "FULL"),
    "returned": (f"if model.annotated:\n    print('typed')\nreturn {REPLACE}", "", "FULL"),
    "append": (APPEND, "", "INCREMENTAL_UNMANAGED"),
    "append with columns": (
        f"{ONE}\nadapter = self.adapter\nadapter.insert_append(table_name, query_or_df,"
        " target_columns_to_types=columns_to_types, source_columns=source)",
        "",
        "INCREMENTAL_UNMANAGED",
    ),
    "replace, then append": (branch(REPLACE, APPEND), "", "INCREMENTAL_UNMANAGED"),
    "replace and return, then append": (
        f"if is_first_insert:\n    {REPLACE}\n    return\n{APPEND}", "", "INCREMENTAL_UNMANAGED",
    ),
    "not the first": (
        f"if not is_first_insert:\n    {APPEND}\nelse:\n    {REPLACE}", "", "INCREMENTAL_UNMANAGED",
    ),
    "a time column": (TIME.format("'day'"), "", "INCREMENTAL_BY_TIME_RANGE (time_column day)"),
    "a time column of the properties": (
        f"column = {PROPERTIES}['time']\n{TIME.format('exp.column(column)')}",
        "'time' = 'Day'",
        "INCREMENTAL_BY_TIME_RANGE (time_column day)",
    ),
    "a time column that is one": (
        TIME.format("model.kind.materialization_properties['time']"),
        "time = day",
        "INCREMENTAL_BY_TIME_RANGE (time_column day)",
    ),
    "start and end by name": (
        "start = kwargs['start']\nself.adapter.insert_overwrite_by_time_partition(table_name, query_or_df, start=start,"
        " end=kwargs['end'], time_formatter=model.convert_to_time_column, time_column='day')",
        "",
        "INCREMENTAL_BY_TIME_RANGE (time_column day)",
    ),
    "a key": (MERGE.format("[exp.column('id')]"), "", "INCREMENTAL_BY_UNIQUE_KEY (unique_key id)"),
    "keys in one text": (
        f"keys = [exp.column(each.strip()) for each in {PROPERTIES}['key'].split(',')]\n{MERGE.format('keys')}",
        "'key' = 'id, N'",
        "INCREMENTAL_BY_UNIQUE_KEY (unique_key (id, n))",
    ),
    "keys in a list": (
        branch(REPLACE, MERGE.format(f"{PROPERTIES}.get('key').expressions")),
        "key = (id, n)",
        "INCREMENTAL_BY_UNIQUE_KEY (unique_key (id, n))",
    ),
    "keys of the file": (
        MERGE.format(f"[exp.to_column(each) for each in {PROPERTIES}.get('key') or KEYS]"),
        "",
        "INCREMENTAL_BY_UNIQUE_KEY (unique_key id)",
    ),
    "a key, as SQLMesh's own merge": (
        f"{ONE}\nself.adapter.merge(table_name, query_or_df, target_columns_to_types=columns_to_types,"
        f" unique_key=[exp.column('id')], when_matched=model.when_matched, source_columns=source,"
        f" merge_filter=model.render_merge_filter(start=kwargs.get('start')),"
        f" physical_properties=kwargs.get('physical_properties', model.physical_properties))",
        "",
        "INCREMENTAL_BY_UNIQUE_KEY (unique_key id)",
    ),
    "a property decides": (
        f"if {PROPERTIES}.get('mode', 'full') == 'append':\n    {APPEND}\nelse:\n    {REPLACE}",
        "'mode' = 'append'",
        "INCREMENTAL_UNMANAGED",
    ),
    "a guard": (
        f"key = {PROPERTIES}.get('key')\nif not key:\n    raise ValueError('')\n{MERGE.format('[exp.column(key)]')}",
        "'key' = 'id'",
        "INCREMENTAL_BY_UNIQUE_KEY (unique_key id)",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", DERIVED)
def test_a_custom_kind_is_the_kind_that_does_the_same(case: str) -> None:
    insert, properties, kind = DERIVED[case]

    assert custom(insert, properties) == model(kind)


@pytest.mark.parametrize(
    ("key", "columns"),
    [
        ("id", "id"),
        ("(id)", "id"),
        ("[id, n]", "(id, n)"),
        ("lower(id)", ""),
        ("coalesce(id, n)", ""),
        ("s.id", ""),
        ("()", ""),
    ],
)
def test_a_property_is_a_key_if_it_names_columns(key: str, columns: str) -> None:
    insert = MERGE.format(f"list_of_fields_validator({PROPERTIES}['key'], {{}})")

    if columns:
        assert custom(insert, f"key = {key}") == model(f"INCREMENTAL_BY_UNIQUE_KEY (unique_key {columns})")
    else:
        assert "is not a list of columns" in refusal(insert, f"key = {key}")


def test_partitions_are_those_of_the_model() -> None:
    by_hand = model("INCREMENTAL_BY_PARTITION", more=",\n  partitioned_by (n)")

    assert custom(PARTITION, more=",\n  partitioned_by (n)") == by_hand
    assert custom(branch(REPLACE, PARTITION), more=",\n  partitioned_by (n)") == by_hand
    assert "INCREMENTAL_BY_PARTITION needs `partitioned_by`" in refusal(PARTITION)


def test_settings_are_those_of_the_kind_that_it_comes_to() -> None:
    settings = ", batch_size 3, lookback 2, forward_only true, auto_restatement_cron '@weekly'"
    by_hand = f"INCREMENTAL_BY_UNIQUE_KEY (unique_key id{settings})"

    assert custom(MERGE.format("[exp.column('id')]"), settings=settings) == model(by_hand)
    assert "`batch_size` is not a key of the kind FULL, to which the materialization `own` comes." in refusal(
        REPLACE, settings=", batch_size 3"
    )
    assert "`unique_key` is not a key of the kind CUSTOM." in refusal(REPLACE, settings=", unique_key id")
    assert "`batch_concurrency` of INCREMENTAL_BY_UNIQUE_KEY can only be 1" in refusal(
        MERGE.format("[exp.column('id')]"), settings=", batch_concurrency 2"
    )


REFUSED = {
    "another call": ("self.adapter.execute('x')", "`self.adapter.execute('x')` is none of the writes that mergeplan"),
    "a view": ("self.adapter.create_view(table_name, query_or_df)", "is none of the writes that mergeplan knows"),
    "two writes": (f"{REPLACE}\n{APPEND}", "`self.adapter.insert_append` is a second write"),
    "no write": ("print(table_name)", "`insert` writes nothing of the first batch"),
    "no later write": (f"if is_first_insert:\n    {REPLACE}", "`insert` writes nothing of the batches after the first"),
    "never a second": (f"assert is_first_insert\n{REPLACE}", "the assertion `is_first_insert` fails"),
    "another first write": (branch(APPEND, REPLACE), "the first batch is written as INCREMENTAL_UNMANAGED, and the"),
    "a first batch of all times": (branch(REPLACE, TIME.format("'day'")), "the first batch is written as FULL"),
    "other rows": (
        "self.adapter.replace_query(table_name, query_or_df.limit(1))", "`query_or_df.limit(1)` is no value",
    ),
    "rows changed before": (f"query_or_df = query_or_df.limit(1)\n{REPLACE}", "`query_or_df` is assigned"),
    "another table": ("self.adapter.replace_query('x.y', query_or_df)", "`table_name='x.y'` of"),
    "another table of a variable": (
        "name = table_name + '_x'\nself.adapter.replace_query(name, query_or_df)", "`table_name=name` of `self.ad",
    ),
    "an unknown argument": (
        "self.adapter.replace_query(table_name, query_or_df, supports_replace_table_override=True)",
        "`supports_replace_table_override=True` of `self.adapter.replace_query` is no argument that mergeplan reads",
    ),
    "another partitioning": (
        "self.adapter.insert_overwrite_by_partition(table_name, query_or_df, [exp.column('n')])", "`partitioned_by=[",
    ),
    "when_matched": (
        "self.adapter.merge(table_name, query_or_df, None, [exp.column('id')], when_matched=kwargs['x'])",
        "`when_matched=kwargs['x']` of `self.adapter.merge` is no argument",
    ),
    "a key that is none": (MERGE.format("model.unique_key"), "`model.unique_key` is empty for a model of kind CUSTOM"),
    "a key that is an expression": (MERGE.format("[exp.func('lower', 'id')]"), "is no value that mergeplan reads"),
    "no key": ("self.adapter.merge(table_name, query_or_df, None)", "is called without `unique_key`"),
    "a test that another value decides": (
        f"size = len(kwargs)\nif size:\n    {REPLACE}\nelse:\n    {APPEND}", "`size` is not known before the model",
    ),
    "a property that is not given": (
        MERGE.format(f"[exp.column({PROPERTIES}['key'])]"), "is not among the model's `materialization_properties`",
    ),
    "no time column": (TIME.format("model.time_column"), "`model.time_column` is empty for a model of kind CUSTOM"),
    "no interval": (
        "self.adapter.insert_overwrite_by_time_partition(table_name, query_or_df, time_column='day',"
        " time_formatter=model.convert_to_time_column)",
        "is called without `end`",
    ),
    "a formatter": (
        TIME.format("'day'").replace("model.convert", "self.convert"), "`time_formatter=self.convert_to_time_column`",
    ),
    "a loop": (f"for each in [1, 2]:\n    {REPLACE}", "`for each in [1, 2]:` is no statement that mergeplan reads"),
    "what the batch decides": (branch(REPLACE, APPEND).replace("is_first_insert", "kwargs['batch_index']"), "is not"),
    "a write in what is said": (f"print(self.adapter.execute('x'))\n{REPLACE}", "('x'))` is none of the writes"),
    "a write in an assertion": (f"assert self.adapter.execute('x')\n{REPLACE}", "is no value that mergeplan reads"),
    "a name of Python's": (f"print = self.adapter.execute\n{REPLACE}", "`print` is assigned, which mergeplan does not"),
    "a property changed": (f"{PROPERTIES}['key'] = 'n'\n{REPLACE}", "is assigned, which mergeplan does not follow"),
    "an assertion that fails": (f"assert {PROPERTIES}.get('key')\n{REPLACE}", "the assertion"),
    "a guard that holds": (f"if not {PROPERTIES}:\n    raise ValueError\n{REPLACE}", "`raise ValueError` is"),
    "super": ("super().insert(table_name, query_or_df)", "`super().insert(table_name, query_or_df)` is none of the"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_what_no_kind_does_is_refused_by_its_statement(case: str) -> None:
    insert, why = REFUSED[case]

    message = refusal(insert)

    assert message.startswith("models/t.sql:3: The materialization `own` is not supported: at materializations/own.py:")
    assert why in message
    assert message.endswith("moving.md says what it reads of a materialization, and which kind to use instead.")


def test_a_refusal_names_the_line_of_the_statement() -> None:
    insert = "print(1)\nself.adapter.execute('x')"
    line = next(number for number, text in enumerate(code(insert).splitlines(), 1) if "execute" in text)

    assert f"materializations/own.py:{line}, `self.adapter.execute('x')` is none of the writes" in refusal(insert)


@pytest.mark.parametrize("date", ["@start_ds", "@end_date"])
def test_all_rows_are_not_replaced_by_those_of_one_interval(date: str) -> None:
    text = f"MODEL (name s.t, kind CUSTOM (materialization own));\nSELECT {date} AS day"
    defaults = Defaults(NOW, materializations=Materializations({FILE: code(REPLACE)}))

    with pytest.raises(ProjectError, match="replaces the table by the rows of the last interval"):
        parse_model(text, "models/t.sql", defaults)
    assert parse_model(text.replace(date, "@execution_ds"), "models/t.sql", defaults)[0]


@pytest.mark.parametrize("seed", range(40))
def test_however_it_is_written_a_write_is_the_same_kind(seed: int) -> None:
    dice = random.Random(seed)  # noqa: S311  # reproducible
    insert, properties, kind = dice.choice(list(DERIVED.values()))
    said = ["print(table_name)", "logger.debug('x')", "pass", "'''text'''", "count = len(kwargs)", "assert model",
            "if model.annotated:\n    print(1)"]  # fmt: skip
    before = dice.sample(said, dice.randint(0, 4))
    wrapped = f"if {dice.choice(['True', '1 == 1', 'not None'])}:\n{indent(insert, '    ')}"

    parsed = custom("\n".join([*before, dice.choice([insert, wrapped])]), properties)

    assert parsed == model(kind)
