"""What the planner answers to a dbt template that asks the warehouse, and what it refuses."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from mergeplan.planner.engine.spark.engine import SparkEngine
from mergeplan.planner.model.model import Model
from mergeplan.planner.parsing.definitions.project_defaults import Defaults
from mergeplan.planner.parsing.files.dbt.nodes import DbtColumn, DbtNode, DbtProject, DbtQuestion, DbtSource, read_round
from mergeplan.planner.parsing.files.model_file import parse_model
from mergeplan.planner.project.dbt import node_columns
from mergeplan.planner.project.dbt.answers import Answers, open_questions, refuse_unanswered
from mergeplan.planner.project.dbt.own_rows import OwnRows
from tests.planner.shop import NOW


def node(name: str, text: str, *depends_on: str, asks: tuple[DbtQuestion, ...] = (), **more: Any) -> DbtNode:
    settings = more.pop("settings", {"materialized": "table"})
    return DbtNode(
        id=f"model.shop.{name}", type="model", name=name, path=f"models/{name}.sql", package="shop",
        relation=f"shop.{name}", language="sql", settings=settings, columns=(), description="", tags=(), owner="",
        depends_on=depends_on, attached="", hooks=(), text=text, later=more.get("later", ""), error="", types=(),
        asks=asks,
    )  # fmt: skip


def project(*nodes: DbtNode) -> DbtProject:
    source = DbtSource(id="source.shop.raw.items", relation="raw.items", path="models/schema.yml", description="",
                       columns=(), tags=())  # fmt: skip
    return DbtProject(dbt="1.11.16", nodes=nodes, sources=(source,), unit_tests=(), exposures=(), hooks=(), files=())


ITEMS = "source.shop.raw.items"
STAGED = node("staged", "select id, id * 2 as twice, cast('1' as string) as said from raw.items", ITEMS)


def columns(subject: str) -> DbtQuestion:
    return DbtQuestion(kind="columns", subject=subject, by="")


def query(text: str, by: str = "model.shop.asks") -> DbtQuestion:
    return DbtQuestion(kind="query", subject=text, by=by)


def ask(engine: SparkEngine | None, question: DbtQuestion, *nodes: DbtNode) -> Any:
    """The answer to one question."""
    answers = Answers((lambda _formats: engine) if engine else None)
    return answers.answer(project(*nodes), [question])[question.key]


@pytest.fixture
def items(engine: SparkEngine) -> SparkEngine:
    engine.fetch("CREATE DATABASE raw")
    engine.fetch("CREATE TABLE raw.items (id INT, code STRING, price DECIMAL(5,2), day DATE) USING parquet")
    engine.fetch("INSERT INTO raw.items VALUES (1, 'b', 1.5, DATE'2026-01-01'), (2, 'a', 2, DATE'2026-01-02')")
    return engine


def test_rows_of_a_model_that_is_not_built_yet_come_with_its_plan(items: SparkEngine) -> None:
    reader = node("asks", "select 1", STAGED.id)

    assert ask(items, query("select distinct said from shop.staged"), STAGED, reader) == {
        "error": "It asks for rows of `shop.staged` while it is compiled, which Spark does not have yet. "
        "Apply the plan of the other models, which builds that, and plan again"
    }
    gone = ask(items, query("select distinct said from raw.gone"), STAGED, reader)
    assert gone["error"].startswith("Its query reads `raw.gone`, which is no model")


def test_columns_of_a_model_are_those_of_its_query_in_this_folder(items: SparkEngine) -> None:
    reader = node("reader", "select * from shop.staged", STAGED.id)

    answer = ask(items, columns(reader.id), STAGED, reader)
    assert [*map(tuple, answer["columns"])] == [("id", "int"), ("twice", ""), ("said", "string")]


def test_columns_are_known_of_a_source_that_dbt_did_not_see_when_it_parsed() -> None:
    typed = project(STAGED).sources[0].model_copy(update={"columns": (DbtColumn(name="ID", type="bigint"),)})
    unseen = node("chosen", "select * from raw.items")
    question, both = columns(unseen.id), project(unseen).model_copy(update={"sources": (typed,)})

    assert Answers().answer(both, [question])[question.key]["columns"] == [("id", "bigint")]


def test_columns_of_a_model_that_calls_a_function_of_the_operators_are_known() -> None:
    odd, question = node("odd", "select odd_parts(1) as a"), columns("model.shop.odd")

    (refused,) = Answers().answer(project(odd), [question]).values()
    (answer,) = Answers(functions=frozenset({"odd_parts"})).answer(project(odd), [question]).values()

    assert "`odd_parts` is not a function of Spark" in str(refused["error"])
    assert answer["columns"] == [("a", "")]


def test_columns_of_an_incremental_model_are_those_of_its_first_run() -> None:
    more = {"settings": {"materialized": "incremental"}, "later": "select 1 as a from shop.daily"}

    assert ask(None, columns("model.shop.daily"), node("daily", "select 1 as a", **more))["columns"][0][0] == "a"


def test_columns_of_a_model_need_no_spark_where_the_types_of_its_sources_are_said() -> None:
    typed = project(STAGED).sources[0].model_copy(update={"columns": (DbtColumn(name="ID", type="bigint"),)})
    question, typed_project = columns(STAGED.id), project(STAGED).model_copy(update={"sources": (typed,)})

    answer = Answers().answer(typed_project, [question])[question.key]
    assert answer["columns"] == [("id", "bigint"), ("twice", ""), ("said", "string")]


SAID = {"id": "int", "code": "string", "other": "string collate unicode_ci"}


@pytest.mark.parametrize(
    ("value", "type_"),
    [
        ("case when id is null then 'a' when id = 1 then null else 'b' end", "string"),
        ("case when id = 1 then true end", "boolean"),
        ("nullif('a', code)", "string"),
        ("row_number() over (order by id)", "int"),
        ("dense_rank() over (partition by code order by id)", "int"),
        ("ntile(3) over (order by id)", "int"),
        ("count(*) over (partition by code)", "bigint"),
        ("sum(id) over (partition by code)", ""),
        ("lag(id) over (order by id)", ""),
        ("case when id = 1 then 'a' else 2 end", ""),
        ("concat(code, '|', id)", "string"),
        ("cast(id as string) || id", "string"),
        ("concat(code, code)", ""),
        ("concat('a', other)", ""),  # which may have a collation
        ("case when id = 1 then id else 2 end", ""),  # what YAML says of a source may be wrong
        ("case when id = 1 then null end", ""),
        ("case when id = 1 then cast(id as array<int>) else cast(id as array<int>) end", ""),
    ],
)
def test_a_value_that_is_made_of_written_types_has_one(value: str, type_: str) -> None:
    said = tuple(DbtColumn(name=name, type=type_) for name, type_ in SAID.items())
    typed = project(STAGED).sources[0].model_copy(update={"columns": said})
    chosen = node("chosen", f"select x from (select {value} as x from raw.items) as inside", ITEMS)
    question = columns(chosen.id)

    answer = Answers().answer(project(chosen).model_copy(update={"sources": (typed,)}), [question])
    assert answer[question.key]["columns"] == [("x", type_)]


def test_what_a_model_or_a_seed_gives_a_type_has_it_also_in_what_is_made_of_it() -> None:
    seed = node("codes", "").model_copy(update={"type": "seed", "types": (("code", "string"),)})
    cast = node("cast_items", "select cast(id as int) as id, code from raw.items", ITEMS)
    text = "select coalesce(b.code, 'x') as code, a.id + 1 as next, coalesce(a.code, 'x') as said"
    top = node("top", f"{text} from shop.cast_items a cross join shop.codes b", cast.id, seed.id)
    said = tuple(DbtColumn(name=name, type=type_) for name, type_ in SAID.items())
    typed = project(STAGED).sources[0].model_copy(update={"columns": said})
    question = columns(top.id)

    answer = Answers().answer(project(seed, cast, top).model_copy(update={"sources": (typed,)}), [question])
    assert answer[question.key]["columns"] == [("code", "string"), ("next", "int"), ("said", "")]  # YAML may be wrong


def test_a_model_is_read_once_for_all_questions_about_what_is_made_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    read = list[str]()
    parse = node_columns.parse_model
    monkeypatch.setattr(node_columns, "parse_model", lambda *args: (read.append(args[1]), parse(*args))[1])
    chain = [node("m0", "select 1 as a")]
    for number in range(1, 20):
        chain.append(node(f"m{number}", f"select a from shop.m{number - 1}", chain[-1].id))
    answers, questions = Answers(), [columns(model.id) for model in chain]

    known = answers.answer(project(*chain), questions)
    assert answers.answer(project(*chain), questions) == known
    assert len(known) == len(read) == 20


def test_a_further_round_of_dbt_is_the_nodes_that_it_changed() -> None:
    before = project(node("a", "", asks=(columns(ITEMS),)), STAGED)
    assert before.by_id["model.shop.a"].text == ""
    new = node("a", "select id from raw.items", asks=(columns(ITEMS),))

    after = read_round(json.dumps({"nodes": [new.model_dump(mode="json")]}), before)
    assert [*after.nodes] == [new, STAGED]
    assert after.by_id[new.id].text == new.text
    assert read_round(project(new).model_dump_json(), before) == project(new)


def test_columns_and_existence_of_a_source_are_those_of_its_table(items: SparkEngine) -> None:
    exists = DbtQuestion(kind="exists", subject=ITEMS, by="")

    assert [name for name, _ in ask(items, columns(ITEMS))["columns"]] == ["id", "code", "price", "day"]
    assert ask(items, exists) == {"exists": True}
    items.fetch("DROP TABLE raw.items")
    assert ask(items, exists) == {"exists": False}


def test_names_of_the_default_catalog_are_asked_as_spark_calls_it(items: SparkEngine) -> None:
    shop = project()
    (source,) = shop.sources
    shop = shop.model_copy(update={"sources": (source.model_copy(update={"relation": "`Main`.`raw`.`items`"}),)})
    answers = Answers(lambda _formats: items, default_catalog="main")
    text = "select max(i.id) as most from `main`.`raw`.items i join main.raw.items o on i.id = o.id where 'main.' > ''"
    asked = [columns(ITEMS), query(text), DbtQuestion(kind="exists", subject="table:main.raw.other", by="")]

    known = answers.answer(shop, asked)
    assert [name for name, _ in known[asked[0].key]["columns"]] == ["id", "code", "price", "day"]  # type: ignore[attr-defined]
    assert known[asked[1].key] == {"names": ["most"], "rows": [[2]]}
    assert known[asked[2].key] == {"exists": False}


def test_a_table_that_is_not_listed_is_looked_up_in_the_schemas_of_those_that_are(items: SparkEngine) -> None:
    def exists(name: str) -> object:
        return ask(items, DbtQuestion(kind="exists", subject=f"table:{name}", by=""))

    assert exists("raw.other") == {"exists": False}
    items.fetch("CREATE TABLE raw.other (id INT) USING parquet")
    assert exists("raw.other") == {"exists": True}
    for name in ("hr.pay", "parquet./etc/passwd", "raw.it ems", "other"):
        assert "no model, seed, snapshot or source of the project" in str(exists(name))


def test_rows_come_in_one_order_and_with_their_types(items: SparkEngine) -> None:
    answer = ask(items, query("-- of\n/* a */ select code, price, day, id = 1 as is_one from raw.items -- all;"))

    assert answer == {
        "names": ["code", "price", "day", "is_one"],
        "rows": [
            ["a", {"decimal": "2.00"}, {"date": str(date(2026, 1, 2))}, False],
            ["b", {"decimal": "1.50"}, {"date": str(date(2026, 1, 1))}, True],
        ],
    }


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("show tables", "It runs `SHOW` while it is compiled"),
        ("drop table raw.items", "It runs `DROP` while it is compiled"),
        ("-- select 1", "Its query is not run"),
        ("/* select */ drop table raw.items", "It runs `DROP` while it is compiled"),
        ("select 1; drop table raw.items", "Its query is not run"),
        ("select * from other.people", "reads `other.people`, which is no model, seed, snapshot or source"),
        ("select * from parquet.`/etc/x`", "reads `parquet./etc/x`, which is no model"),
        ("select java_method('java.lang.System', 'exit', 0)", "Its query is not run"),
        ("select max(a) from shop.asks", "It asks its own table while it is compiled"),
    ],
)
def test_a_question_that_may_not_be_asked_reaches_no_spark(text: str, why: str) -> None:
    asks = node("asks", "")

    error = ask(None, query(text), asks)["error"]
    assert why in error
    assert error.endswith(
        "A manifest made in CI has the answer (`dbt: {manifest: ...}` in config.yaml), or write it out"
    )


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("select * from raw.nothing_here", "no model, seed, snapshot or source"),
        ("select id from range(10001)", "returns more than 10,000 rows"),
        ("select array(1) as a", "returns values of type list"),
        ("select repeat('x', 1000001) as a", "returns more than 1,000,000 characters"),
        ("select nothing from raw.items", "asks the warehouse while it is compiled: "),
    ],
)
def test_an_answer_that_no_template_can_use_refuses_it(items: SparkEngine, text: str, why: str) -> None:
    assert why in ask(items, query(text))["error"]


def test_without_a_spark_a_question_of_rows_is_refused_and_says_so() -> None:
    assert "no Spark is available to answer" in ask(None, query("select 1"))["error"]


def test_templates_of_a_fork_get_columns_and_no_rows(items: SparkEngine) -> None:
    questions = [query("select max(code) from raw.items"), columns(ITEMS)]

    rows, names = Answers(lambda _formats: items, gives_rows=False).answer(project(), questions).values()

    assert "templates of a fork get none" in str(rows["error"])
    assert "columns" in names


def test_columns_of_a_model_that_asks_itself_wait_for_its_text() -> None:
    first, second = columns("model.shop.b"), columns("model.shop.c")
    a, b = node("a", "", "model.shop.b", asks=(first,)), node("b", "", "model.shop.c", asks=(second,))
    c = node("c", "select 1 as one")
    asked = open_questions(project(a, b, c), ())

    answers = Answers()
    known = answers.answer(project(a, b, c), asked)
    assert [*known] == [second.key]
    later = project(a, b.model_copy(update={"text": "select 2 as two"}), c)
    assert answers.answer(later, open_questions(later, known))[first.key]["columns"] == [("two", "int")]


def test_models_that_ask_each_other_are_refused() -> None:
    first, second = columns("model.shop.b"), columns("model.shop.a")
    nodes = node("a", "", "model.shop.b", asks=(first,)), node("b", "", "model.shop.a", asks=(second,))

    known = Answers().answer(project(*nodes), [first, second])
    assert all("waits for its own" in str(answer["error"]) for answer in known.values())


def test_columns_of_a_model_above_which_one_cannot_be_compiled_are_refused_by_its_name() -> None:
    broken, reader = node("broken", ""), node("reader", "select a from shop.broken", "model.shop.broken")
    broken = broken.model_copy(update={"error": "'x' is undefined"})

    assert "and `shop.broken` cannot be compiled" in ask(None, columns(reader.id), broken, reader)["error"]


def test_a_question_of_a_hook_that_has_no_answer_leaves_the_text_of_its_model() -> None:
    question = query("select max(a) from shop.asks")
    nodes = project(node("asks", "select 1 as a").model_copy(update={"hook_asks": (question,)}))
    assert open_questions(nodes, ()) == [question]

    known = Answers().answer(nodes, [question])
    assert "It asks its own table" in str(known[question.key]["error"])
    assert refuse_unanswered(nodes, known).nodes[0].error == ""


def test_what_stays_open_at_the_end_has_a_reason() -> None:
    question = columns("model.shop.b")
    nodes = project(node("a", "", "model.shop.b", asks=(question,)), node("b", ""))

    (answer,) = Answers().refuse_rest(nodes, [question]).values()
    assert "It asks for the columns of `shop.b`, which reads what cannot be compiled" in str(answer["error"])


def ask_own(engine: SparkEngine, sql: str, deployed: dict[str, Model], *nodes: DbtNode, root: Path = Path()) -> Any:
    """The answer to a query, where prod has these models."""
    answers = Answers(lambda _formats: engine, own_rows=OwnRows(root, lambda: deployed, frozenset()))
    question = query(sql)
    answer = answers.answer(project(*nodes, node("asks", "select 1")), [question])[question.key]
    return answer.get("rows", answer.get("error"))


def deployed_as(text: str) -> dict[str, Model]:
    model, _ = parse_model(f"MODEL (name shop.staged, kind FULL); {text}", "staged.sql", Defaults(NOW))
    assert model is not None
    return {"shop.staged": model}


def test_rows_of_an_edited_model_are_those_of_its_query(items: SparkEngine) -> None:
    items.fetch("CREATE DATABASE shop")
    items.fetch("CREATE TABLE shop.staged AS SELECT 7 AS id, 'old' AS said")
    passed = node("passed", "select said from shop.staged", STAGED.id, settings={"materialized": "ephemeral"})
    shown = node("shown", "select said from shop.passed", passed.id, settings={"materialized": "view"})
    past, same = deployed_as("select 7 as id, 'old' as said"), deployed_as(STAGED.text)

    assert ask_own(items, "select said from shop.staged", same, STAGED) == [["old"]]
    assert ask_own(items, "select distinct said from shop.staged", past, STAGED) == [["1"]]
    assert ask_own(items, "select count(*) from shop.shown where shown.said = '1'", past, STAGED, passed, shown) == [
        [2]
    ]


def test_rows_of_an_edited_seed_are_those_of_its_file(items: SparkEngine, tmp_path: Path) -> None:
    (tmp_path / "seeds").mkdir()
    (tmp_path / "seeds/codes.csv").write_text("code,rate\n'a',1\nNULL,\n")
    more = {"type": "seed", "path": "seeds/codes.csv", "types": (("code", "string"), ("rate", "bigint"))}
    seed = node("codes", "").model_copy(update={**more, "settings": {"materialized": "seed"}})

    rows = ask_own(items, "select code, rate + 1 from shop.codes", {}, seed, root=tmp_path)

    assert sorted(rows, key=str) == [["'a'", 2], [None, None]]


def test_rows_of_a_model_that_is_not_built_yet_are_those_of_its_query(items: SparkEngine) -> None:
    staged = STAGED.model_copy(update={"settings": {"materialized": "ephemeral"}})
    daily = node("daily", "select id from shop.staged", STAGED.id, settings={"materialized": "incremental"})
    past = node("past", "select id from shop.daily", daily.id).model_copy(update={"type": "snapshot"})

    assert ask_own(items, "select max(id) from shop.daily", {}, staged, daily) == [[2]]
    assert "which Spark does not have yet" in ask_own(items, "select id from shop.past", {}, staged, daily, past)


def test_rows_of_an_incremental_model_and_of_tables_of_dbt_are_those_that_are_there(items: SparkEngine) -> None:
    items.fetch("CREATE DATABASE shop")
    items.fetch("CREATE TABLE shop.staged AS SELECT 7 AS id")
    kept = STAGED.model_copy(update={"settings": {"materialized": "incremental"}})

    assert ask_own(items, "select id from shop.staged", deployed_as("select 1 as id"), kept) == [[7]]
    assert ask_own(items, "select id from shop.staged", {}, STAGED) == [[7]]


def test_the_query_of_an_edited_model_is_admitted_as_that_of_a_template_is(items: SparkEngine) -> None:
    reads = node("staged", "select id from other.secrets")
    calls = node("staged", "select reflect('java.lang.System', 'getenv') as id")

    assert "which is no model" in ask_own(items, "select id from shop.staged", {}, reads)
    assert "does not have yet" in ask_own(items, "select id from shop.staged", {}, calls)


def test_rows_of_what_waits_for_an_answer_are_asked_after_it(items: SparkEngine) -> None:
    first, second = query("select max(id) from raw.items", "model.shop.waits"), query("select id from shop.reader")
    waits = node("waits", "", ITEMS, asks=(first,))
    reader = node("reader", "select id from shop.waits", waits.id)
    asking = node("asks", "", reader.id, asks=(second,))
    answers = Answers(lambda _formats: items, own_rows=OwnRows(Path(), dict, frozenset()))

    assert answers.answer(project(waits, reader, asking), [first, second]).keys() == {first.key}
    compiled = waits.model_copy(update={"text": "select 2 as id"})
    later = answers.answer(project(compiled, reader, asking), [second])
    assert later[second.key]["rows"] == [[2]]


def test_rows_of_a_seed_that_hooks_load_are_not_those_of_its_file(items: SparkEngine, tmp_path: Path) -> None:
    (tmp_path / "codes.csv").write_text("code\na\n")
    more = {"type": "seed", "path": "codes.csv", "types": (("code", "string"),)}
    loads = {"post_hooks": ("copy into shop.codes from 's3://codes'",), "settings": {"materialized": "seed"}}
    seed = node("codes", "").model_copy(update={**more, **loads})

    assert "does not have yet" in ask_own(items, "select code from shop.codes", {}, seed, root=tmp_path)
