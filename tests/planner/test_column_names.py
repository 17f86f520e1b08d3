"""A column may have any name, in every property that takes one, of every kind: its rows are those of a plain name.

All names are those of one project, and each of them is in every role. Where a property takes several columns, each of
these alone tells two rows apart: a name that is read in another way changes rows even beside names that are read well.
`make prove-lakehouse` runs this on each table format.
"""

from __future__ import annotations

import csv
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from mergeplan.planner.engine.spark.engine import SparkEngine
from mergeplan.planner.model.table_format import FORMATS
from mergeplan.planner.naming import quote_column
from mergeplan.planner.state.store import StateStore
from tests.conftest import FORMAT, empty
from tests.planner.daily import Daily

pytestmark = [pytest.mark.prove, pytest.mark.timeout(3600)]
EXAMPLES = max(int(os.environ.get("MERGEPLAN_CASES", "300")) // 500, 1)
Rows = dict[str, list[list[tuple[object, ...]]]]
# Beside columns a, b, x, y and c, which an expression would mean.
NAMES = [
    "a-b",
    "x`.y", "a.b", "x`y", "a - b", "c d", "select", "Ünï", "n" * 200, "UPPER", "it's", 'say "x"', "order",
    "current_date", "1", "f(a)", "a,b", "a/b=c%d",
]  # fmt: skip
TEXTS = st.text(
    st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"], exclude_characters="@"), min_size=1, max_size=12
)
AUDITS = ", audits (not_null(columns := ({k}, {p})), unique_combination_of_columns(columns := ({k}, at)))"
ALL_AUDITS = f"{AUDITS[:-1]}, unique_values(columns := ({{u}})), {{ranges}})"


SEVERAL = {  # names in each of the roles `kpv`, and a third of all in each of them
    "full": f"""FULL, clustered_by ({{k}}, {{v}}), partitioned_by ({{p}}), grain ({{k}}), references ({{u}}),
        column_descriptions ({{descriptions}}){ALL_AUDITS}""",
    "view": "VIEW",
    "embedded": "EMBEDDED",
    "by_key": "INCREMENTAL_BY_UNIQUE_KEY (unique_key ({k})), clustered_by ({k}, {v})" + AUDITS,
    "by_key_set": """INCREMENTAL_BY_UNIQUE_KEY (unique_key ({k}, {texts}), merge_filter {over_0},
        when_matched (WHEN MATCHED AND {old} THEN UPDATE SET {updates}))""",
    "by_key_anew": "INCREMENTAL_BY_UNIQUE_KEY (unique_key ({k}), delete_insert true)",
    "by_partition": "INCREMENTAL_BY_PARTITION, partitioned_by ({p})",
    "unmanaged": "INCREMENTAL_UNMANAGED, partitioned_by ({p})",
    "history_by_time": "SCD_TYPE_2_BY_TIME (unique_key ({k}), updated_at_name {t})" + AUDITS,
    "history_by_column": """SCD_TYPE_2_BY_COLUMN (unique_key ({k}), columns [{v}], valid_from_name {f},
        valid_to_name {e}, invalidate_hard_deletes true)""" + AUDITS,
}  # fmt: skip
ONE = {  # name in each role, as often as there are names
    "time": """INCREMENTAL_BY_TIME_RANGE (time_column {t}), partitioned_by ({p}, bucket(2, {k}), days({t})),
        audits (accepted_range(column := {u}, min_v := 1))""",
    "since": """SCD_TYPE_2_BY_TIME (unique_key {k}, updated_at_name {t}, valid_from_name {f}, valid_to_name {e}),
        partitioned_by ({v})""",
}  # fmt: skip
# Of the name with each number, in a row whose id has such a number and a digit.
VALUES: dict[str, Callable[[int, int, int, str], str]] = {
    "k": lambda n, number, digit, word: f"{digit if number == n else 0}",
    "p": lambda n, number, digit, word: f"'{digit if number == n else 0}'",
    "v": lambda n, number, digit, word: f"'{word if (number, digit) == (n, 2) else 'as before'}'",
    "u": lambda n, number, digit, word: f"{number * 10 + digit + 1}",
}
COLUMNS = "id int, at date, a int, b int, x int, y int, c int"
TYPES = {"k": "int", "p": "string", "v": "string", "u": "int"}
DAYS = (("2026-01-02", "first", (1, 2)), ("2026-01-03", "later", (2, 3)))
PLAIN = "plain"


def can_have(name: str) -> bool:
    """True for a name that the format of these tests can have."""
    return not FORMAT or FORMATS[FORMAT].can_have(name, ())


def is_free(name: str) -> bool:
    """True for a name that the format can have, and that no plain column of the models has.

    `İ` is the one letter that is two in lower case: Spark does not take the two for the one.
    """
    return can_have(name) and "İ" not in name and name.lower() not in {"a", "b", "x", "y", "c", "at", "nested"}


def literal(name: str) -> str:
    return "'" + name.replace("\\", "\\\\").replace("'", "\\'") + "'"


def model_text(model: str, kind: str, columns: dict[str, list[str]]) -> str:
    """A model of the kind with these columns by their role, beside plain ones."""
    quoted = {role: [quote_column(name) for name in names] for role, names in columns.items()}
    header = kind.format(
        **{role: ", ".join(names) for role, names in quoted.items()},
        descriptions=", ".join(f"{name} = 'text'" for name in quoted["k"]),
        ranges=", ".join(f"accepted_range(column := {name}, min_v := 1)" for name in quoted["u"]),
        texts=", ".join(f"COALESCE({name}, '')" for name in quoted["p"]),
        over_0=" AND ".join(f"source.{name} > 0" for name in quoted["u"]),
        old=" OR ".join(f"source.{name} <> 'as before'" for name in quoted["v"]),
        updates=", ".join(f"target.{name} = source.{name}" for name in quoted["v"]),
    )
    outputs = [f"{role}{number} AS {name}" for role in VALUES for number, name in enumerate(quoted[role], start=1)]
    fields = ", ".join(f"{literal(name)}, NAMED_STRUCT({literal(name)}, id)" for name in columns["k"])
    nested = f"NAMED_STRUCT({fields})" if FORMAT != "iceberg" else "id"
    where = f" WHERE id DIV 10 <= {len(columns['k'])}"
    where += " AND at BETWEEN @start_date AND @end_date" if kind.startswith("INCREMENTAL") else ""
    query = f"SELECT {', '.join(outputs)}, at AS {quoted['t'][0]}, {nested} AS nested, a, b, x, y, c, at"
    return f"MODEL (name shop.{model}, kind {header});\n{query} FROM raw.items{where}"


def several_texts(names: list[str], part: int) -> dict[str, str]:
    """Model -> its text; each third of the names is in one of the roles `kpv`, and in another one in the next part."""
    size = len(names) // 3
    turned = names[part * size :] + names[: part * size]
    columns = {role: turned[at * size : (at + 1) * size] for at, role in enumerate("kpv")}
    columns["u"] = [f"{name}u" for name in columns["k"]]
    columns |= {role: [f"{columns['k'][0]}{role}"] for role in "tfe"}
    read = ", ".join(f"{quote_column(name)} AS c{number}" for number, name in enumerate(columns["k"]))
    texts = {model: model_text(model, kind, columns) for model, kind in SEVERAL.items()}
    return texts | {"reader": f"MODEL (name shop.reader, kind FULL);\nSELECT {read} FROM shop.embedded"}


def single_texts(names: list[str], count: int) -> dict[str, str]:
    """Model -> its text, with one name in each role; so many models of each kind."""
    texts = {}
    for first in range(count):
        turned = names[first:] + names[:first]
        columns = {role: [name] for role, name in zip("tfekpvu", turned, strict=False)}
        texts |= {f"{model}_{first}": model_text(f"{model}_{first}", kind, columns) for model, kind in ONE.items()}
    return texts


def row_text(names: int, number: int, digit: int, on: str, word: str) -> str:
    """A row of `raw.items`, which has a column for each name in each role."""
    values = (VALUES[role](n, number, digit, word) for role in VALUES for n in range(1, names + 1))
    same = f"{number * 10 + digit}"
    return ", ".join((same, f"date'{on}' - INTERVAL 1 DAY", same, same, "1", "1", "1", *values))


def write_seed(folder: Path, names: list[str]) -> str:
    """Write a seed with a column for each name; return its model."""
    with (folder / "models/seed.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows((names, range(len(names)), range(1, 1 + len(names))))
    types = ", ".join(f"{quote_column(name)} int" for name in names)
    return f"MODEL (name shop.seed, kind SEED (path './seed.csv'), columns ({types}), grain ({quote_column(names[0])}))"


def rows_of(names: list[str], texts: dict[str, str], folder: Path, engine: SparkEngine) -> Rows:
    """Model -> what its table holds after the first day and after the second."""
    store, size = StateStore(f"sqlite:///{folder}/state.db"), len(names) // 3
    columns = (f"{role}{n} {TYPES[role]}" for role in VALUES for n in range(1, size + 1))
    daily = Daily(folder / "shop", engine, store, ", ".join((COLUMNS, *columns)))
    (daily.root / "models").mkdir(parents=True)
    texts = texts | {"seed": write_seed(daily.root, names)}
    held: Rows = {model: [] for model in texts if model != "embedded"}
    for on, word, digits in DAYS:
        ids = [(0, 0), *((number, digit) for number in range(1, size + 1) for digit in digits)]
        daily.has(*(row_text(size, *one, on, word) for one in ids))
        daily.run(on, *texts.values()).raise_failure()
        for model in held:
            held[model].append(daily.rows(f"shop.{model}", column_list(engine, model, texts[model])))
    store.close()
    empty(engine)
    return held


def column_list(engine: SparkEngine, model: str, text: str) -> str:
    """The columns of a table in the order of its query: in the table those that name folders are behind the others, and
    a long name or a type may keep a column from it."""
    columns = [quote_column(column.name) for column in engine.schema(f"SELECT * FROM shop.{model}")]
    places = {column: re.search(rf" AS {re.escape(column)}(?!`)", text, re.IGNORECASE) for column in columns}
    return ", ".join(sorted(columns, key=lambda column: place.start() if (place := places[column]) else len(text)))


def list_wrong(rows: Rows, plain: Rows) -> list[str]:
    """Return the models with other rows than those of the plain names."""
    return [model for model in rows if rows[model] != plain[re.sub(r"\d+$", "0", model)]]


NAMED = list(filter(can_have, NAMES))
WORDS = [f"{PLAIN}{chr(97 + number)}" for number in range(len(NAMED))]


@pytest.fixture(scope="module")
def several_rows(tmp_path_factory: pytest.TempPathFactory, shared_engine: SparkEngine) -> Iterator[Rows]:
    """The rows of models of several names that are words."""
    yield rows_of(WORDS, several_texts(WORDS, 0), tmp_path_factory.mktemp(PLAIN), shared_engine)


@pytest.fixture(scope="module")
def single_rows(tmp_path_factory: pytest.TempPathFactory, shared_engine: SparkEngine) -> Iterator[Rows]:
    """The rows of models of one name in each role, all words."""
    yield rows_of(WORDS, single_texts(WORDS, 1), tmp_path_factory.mktemp(PLAIN), shared_engine)


@pytest.mark.parametrize("part", range(3))
def test_rows_do_not_depend_on_how_several_columns_are_called(
    tmp_path: Path, engine: SparkEngine, several_rows: Rows, part: int
) -> None:
    rows = rows_of(NAMED, several_texts(NAMED, part), tmp_path, engine)

    assert list_wrong(rows, several_rows) == []


def test_rows_do_not_depend_on_how_a_column_is_called(tmp_path: Path, engine: SparkEngine, single_rows: Rows) -> None:
    rows = rows_of(NAMED, single_texts(NAMED, len(NAMED)), tmp_path, engine)

    assert list_wrong(rows, single_rows) == []


@settings(max_examples=EXAMPLES, phases=[Phase.generate])  # none is made smaller: each takes minutes
@given(st.lists(TEXTS.filter(is_free), min_size=len(NAMED), max_size=len(NAMED), unique_by=str.casefold))
def test_rows_do_not_depend_on_any_name(
    tmp_path_factory: pytest.TempPathFactory, shared_engine: SparkEngine, several_rows: Rows, names: list[str]
) -> None:
    rows = rows_of(names, several_texts(names, 0), tmp_path_factory.mktemp("any"), shared_engine)

    assert list_wrong(rows, several_rows) == []
