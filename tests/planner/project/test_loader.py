"""A folder becomes a Project, or every wrong file of it is told with its line."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest
from sqlglot.tokenizer_core import Token

from mergeplan.planner.errors import MergeplanError, ProjectError, RequestError
from mergeplan.planner.model.kind import Kind
from mergeplan.planner.model.model import Column
from mergeplan.planner.parsing.files.environments import seconds_of_promotion
from mergeplan.planner.project import remembered
from mergeplan.planner.project.loader import LoadOptions, load_project, override_variables
from mergeplan.planner.project.scaffold import Wishes, write_project
from mergeplan.planner.project.seeds import read_seed
from mergeplan.planner.semantics.reading.readable_tokens import Readable
from mergeplan.planner.semantics.spark import spark_sql

NOW = datetime(2024, 5, 6, 7, 8, tzinfo=UTC)
CONFIG = "gateways:\n  spark:\n    connection:\n      type: spark\n"
BAD = sorted((Path(__file__).parents[2] / "projects" / "bad").glob("*.txt"))


def project_of(root: Path, files: dict[str, str]) -> Path:
    """A folder with these files, and a config.yaml if there is none among them."""
    for name, text in {"config.yaml": CONFIG, **files}.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


@pytest.mark.parametrize("case", BAD, ids=lambda path: path.stem)
def test_bad_input_is_told_in_one_sentence_with_file_and_line(case: Path, tmp_path: Path) -> None:
    expected, *sections = case.read_text().split("=== ")
    files = dict(section.split("\n", 1) for section in sections)
    root = project_of(tmp_path, files)
    before = sorted(tmp_path.rglob("*"))

    with pytest.raises(MergeplanError) as error:
        load_project(root, NOW)

    assert str(error.value) == expected.removeprefix("expect:").strip()
    assert sorted(tmp_path.rglob("*")) == before


def test_the_example_is_the_quickstart(tmp_path: Path) -> None:
    write_project(tmp_path, Wishes())

    project = load_project(tmp_path, NOW)

    kinds = {name.removeprefix("sqlmesh_example."): model.kind for name, model in project.models.items()}
    assert kinds == {
        "full_model": Kind.FULL,
        "incremental_model": Kind.INCREMENTAL_BY_TIME_RANGE,
        "seed_model": Kind.SEED,
    }
    assert [test.name for test in project.tests] == ["test_example_full_model"]
    assert list(project.audits) == ["assert_positive_order_ids"]
    assert len(list(read_seed(tmp_path, project.models["sqlmesh_example.seed_model"]))) == 7


def test_an_example_is_never_written_over_a_project(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("project: mine\n")

    with pytest.raises(RequestError, match="exists already"):
        write_project(tmp_path, Wishes())

    assert [path.name for path in tmp_path.iterdir()] == ["config.yaml"]


def test_an_empty_project_loads(tmp_path: Path) -> None:
    written = write_project(tmp_path, Wishes("empty"))

    assert [path.name for path in written] == [".gitignore", "config.yaml"]
    assert not load_project(tmp_path, NOW).models


def test_a_folder_that_is_no_project_is_told_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(ProjectError, match=r"There is no config.yaml in .*mergeplan init"):
        load_project(tmp_path, NOW)


def test_in_a_subfolder_the_project_above_is_named(tmp_path: Path) -> None:
    below = project_of(tmp_path, {"models/shop/a.sql": ""}) / "models/shop"

    with pytest.raises(ProjectError) as error:
        load_project(below, NOW)

    assert error.value.hint == f"The project above is {tmp_path}: go there, or add `-p ../..`."


def test_a_file_that_is_not_utf8_is_told_with_its_line(tmp_path: Path) -> None:
    project_of(tmp_path, {"models/a.sql": ""})
    (tmp_path / "models/a.sql").write_bytes(b"MODEL (name shop.a);\nSELECT '\xe9' AS x")

    with pytest.raises(ProjectError, match=r"^models/a.sql:2: The file is not UTF-8 text. Save it as UTF-8.$"):
        load_project(tmp_path, NOW)


def test_a_seed_in_another_encoding_is_told_with_its_line(tmp_path: Path) -> None:
    project_of(tmp_path, {"models/a.sql": "MODEL (name shop.a, kind SEED (path '../seeds/a.csv'));", "seeds/a.csv": ""})
    (tmp_path / "seeds/a.csv").write_bytes(b"id\ncaf\xe9\n")

    with pytest.raises(ProjectError, match=r"^seeds/a.csv:2: The file is not encoded as utf-8."):
        load_project(tmp_path, NOW)


def test_a_seed_has_nulls_an_order_and_types_of_its_own(tmp_path: Path) -> None:
    settings = "csv_settings (delimiter = ';', na_values = ('-'))"
    sql = f"MODEL (name shop.a, kind SEED (path '$root/seeds/a.csv', {settings}));"
    project = load_project(project_of(tmp_path, {"models/a.sql": sql, "seeds/a.csv": "Id;n;t\n1;2.5;-\n2;;'x'\n"}), NOW)

    model = project.models["shop.a"]

    assert model.seed is not None
    assert model.columns == (Column("id", "bigint"), Column("n", "double"), Column("t", "string"))
    assert list(read_seed(tmp_path, model, ("t", "id"))) == [(None, "1"), ("'x'", "2")]


def test_a_seeds_digest_follows_its_content_not_its_layout(tmp_path: Path) -> None:
    sql = "MODEL (name shop.a, kind SEED (path '../seeds/a.csv'));"

    def digest(csv: str) -> str:
        model = load_project(project_of(tmp_path, {"models/a.sql": sql, "seeds/a.csv": csv}), NOW).models["shop.a"]
        assert model.seed is not None
        return model.seed.digest

    assert digest("id,n\n1,a\n") == digest('id,n\r\n"1",a\r\n\r\n')
    assert len({digest("id,n\n1,a\n"), digest("id,n\n1,b\n"), digest("id,n\n1a,\n"), digest("id\n1\n")}) == 4


def test_defaults_and_variables_reach_every_model(tmp_path: Path) -> None:
    config = f"""{CONFIG}    variables: {{shop: inner}}
variables: {{Shop: outer, least: 3}}
model_defaults:
  {{kind: full, owner: jen, start: 1 week ago, cron: '@hourly', audits: ['number_of_rows(threshold := 1)']}}
"""
    query = "SELECT x, @shop AS s, @VAR('none', 'no') AS n, @gateway AS g FROM shop.b WHERE x > @least"
    sql = f"MODEL (name shop.a);\n{query}"
    project = load_project(project_of(tmp_path, {"config.yaml": config, "models/a.sql": sql}), NOW)
    model = project.models["shop.a"]

    assert model.sql == "SELECT x, 'inner' AS s, 'no' AS n, 'spark' AS g FROM shop.b WHERE x > 3"
    assert (model.kind, model.metadata.owner, model.cron.text) == (Kind.FULL, "jen", "@hourly")
    assert (model.schedule.start, model.schedule.start_moves) == (datetime(2024, 4, 29, tzinfo=UTC), True)
    assert model.checks.audits[0].arguments == (("threshold", "1"),)
    assert "x > 9" in override_variables(project, model, {"least": 9}).sql


def test_environment_variables_fill_values_and_never_become_yaml(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MERGEPLAN_TEST_MASTER", "local[2]\nremote: elsewhere")
    config = CONFIG + (
        "      # password: {{ env_var('NOWHERE') }}\n"
        "      master: {{ env_var('MERGEPLAN_TEST_MASTER') }}\n"
        "      concurrent_tasks: {{ env_var('NOWHERE', '7') }}\n"
    )
    connection = load_project(project_of(tmp_path, {"config.yaml": config}), NOW).config.gateways["spark"].connection

    assert connection.master == "local[2]\nremote: elsewhere"
    assert (connection.remote, connection.concurrent_tasks) == (None, 7)


def test_promotions_of_prod_alone_are_atomic_where_that_is_asked_for(tmp_path: Path) -> None:
    plain = load_project(project_of(tmp_path / "a", {}), NOW).config
    asked = CONFIG + "promotion: {atomic: true, wait_seconds: 2.5}\n"
    atomic = load_project(project_of(tmp_path / "b", {"config.yaml": asked}), NOW).config

    seconds = [seconds_of_promotion(config, name) for config in (plain, atomic) for name in ("prod", "dev")]
    assert seconds == [None, None, 2.5, None]


DATABRICKS = """
gateways:
  lake:
    connection:
      type: databricks
      server_hostname: acme.cloud.databricks.com
      access_token: "{{ env_var('DATABRICKS_TOKEN') }}"
      databricks_connect_cluster_id: 0123-456789-abcdefgh
"""


def test_a_cluster_of_databricks_is_a_spark_connect_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABRICKS_TOKEN", "dapi;1=2")
    project = load_project(project_of(tmp_path, {"config.yaml": DATABRICKS}), NOW)
    connection = project.config.gateways["lake"].connection

    assert connection.remote == (
        "sc://acme.cloud.databricks.com:443/;use_ssl=true;token=dapi%3B1%3D2;x-databricks-cluster-id=0123-456789-abcdefgh"
    )
    assert connection.table_format == "delta"
    assert "dapi" not in repr(connection)


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("      server_hostname: acme.cloud.databricks.com\n", "", "`type: databricks` needs `server_hostname`."),
        ("type: databricks\n", "type: databricks\n      remote: sc://x\n", "`remote` belongs to `type: spark`."),
        ("type: databricks\n", "type: spark\n", "`server_hostname` belongs to `type: databricks`."),
    ],
)
def test_a_connection_is_of_one_type(
    old: str, new: str, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABRICKS_TOKEN", "dapi")
    with pytest.raises(ProjectError, match=re.escape(told)):
        load_project(project_of(tmp_path, {"config.yaml": DATABRICKS.replace(old, new)}), NOW)


def test_a_gateway_that_does_not_exist_is_told(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match=r"There is no gateway `sparc`. Did you mean `spark`\?"):
        load_project(project_of(tmp_path, {}), NOW, "sparc")


def test_external_models_have_types_and_a_text_of_their_own(tmp_path: Path) -> None:
    text = "- name: raw.orders\n  columns:\n    id: long\n    price: decimal(10, 2)\n- name: raw.items\n"
    models = load_project(project_of(tmp_path, {"external_models.yaml": text}), NOW).models

    assert models["raw.orders"].columns == (Column("id", "bigint"), Column("price", "decimal(10,2)"))
    assert (models["raw.items"].kind, models["raw.items"].source) == (Kind.EXTERNAL, "- name: raw.items")


def test_ignored_hidden_and_disabled_models_are_left_out(tmp_path: Path) -> None:
    files = {
        "config.yaml": CONFIG + "ignore_patterns: ['models/old/*']\n",
        "models/a.sql": "MODEL (name shop.a, enabled false);\nSELECT 1 AS x",
        "models/old/b.sql": "not SQL at all",
        "models/.cache/c.sql": "not SQL at all",
    }

    assert not load_project(project_of(tmp_path, files), NOW).models


def test_the_files_hash_follows_every_file(tmp_path: Path) -> None:
    def files(seed: str, test: str) -> str:
        sql = "MODEL (name shop.a, kind SEED (path '../seeds/a.csv'));"
        return load_project(
            project_of(tmp_path, {"models/a.sql": sql, "seeds/a.csv": seed, "tests/t.yml": test}), NOW
        ).files

    assert files("id\n1", "") == files("id\n1", "")
    assert len({files("id\n1", ""), files("id\n2", ""), files("id\n1", "# a comment")}) == 3


def test_a_model_costs_the_same_to_load_however_many_there_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parsed: list[str] = []
    parse = spark_sql.readable

    def count_parse(tokens: Sequence[Token]) -> Readable:
        parsed.append(" ".join(token.text for token in tokens))
        return parse(tokens)

    monkeypatch.setattr(spark_sql, "readable", count_parse)
    monkeypatch.setattr(remembered, "count_processors", lambda: 1)  # else forks parse, and their calls are not counted
    sql = "MODEL (name shop.{0}{1}, kind FULL, cron '@daily');\nSELECT a, COUNT(b) AS n FROM shop.{0}{2} GROUP BY a"
    costs = []
    for prefix, count in (("few", 20), ("many", 200)):
        files = {f"models/{i}.sql": sql.format(prefix, i, i + 1) for i in range(count)}
        parsed.clear()
        assert len(load_project(project_of(tmp_path / prefix, files), NOW).models) == count
        costs.append(len(parsed) / count)

    assert 0 < costs[1] <= costs[0] <= 5  # how often a query is parsed


def test_gateways_of_another_file_rule_over_the_folders_own(tmp_path: Path) -> None:
    own = CONFIG + "      config:\n        spark.jars: mine.jar\n"
    (tmp_path / "ruling.yaml").write_text(CONFIG)

    project = load_project(
        project_of(tmp_path / "p", {"config.yaml": own}),
        NOW,
        options=LoadOptions(gateways_from=tmp_path / "ruling.yaml"),
    )

    assert project.config.gateways["spark"].connection.config == {}


def test_an_edited_audit_is_an_edit_of_the_models_that_ask_it(tmp_path: Path) -> None:
    model = "MODEL (name shop.a, kind FULL, audits (good));\nSELECT 1 AS x"
    audit = "AUDIT (name good);\nSELECT * FROM @this_model WHERE x > {}"
    one = load_project(project_of(tmp_path / "1", {"models/a.sql": model, "audits/g.sql": audit.format(1)}), NOW)
    two = load_project(project_of(tmp_path / "2", {"models/a.sql": model, "audits/g.sql": audit.format(2)}), NOW)

    assert one.models["shop.a"].checks.audits != two.models["shop.a"].checks.audits


def test_an_external_model_may_say_when_it_begins_and_where_it_is(tmp_path: Path) -> None:
    yaml = """
- name: raw.orders
  dialect: duckdb
  start: 2024-02-03
  columns: {id: int, note: text}
  column_descriptions: {ID: the key}
  grains: [id AS order_id, '(day, shop)']
  references: [shop_id]
- name: raw.elsewhere
  gateway: another
"""

    config = CONFIG + "  another: {connection: {type: spark}}\n"
    project = load_project(project_of(tmp_path, {"config.yaml": config, "external_models.yaml": yaml}), NOW)

    orders = project.models["raw.orders"]
    assert project.models.keys() == {"raw.orders"}
    assert [column.type for column in orders.columns] == ["int", "string"]
    assert (orders.schedule.start, orders.metadata.column_descriptions) == (
        datetime(2024, 2, 3, tzinfo=UTC),
        (("id", "the key"),),
    )
    assert orders.metadata.grain == ("id", "day", "shop")


EXTERNAL = """
- name: raw.orders
  columns: {id: int}
- name: Raw.Orders
  gateway: spark
  start: 2024-01-01
  columns: {id: bigint, day: date}
  column_descriptions: {ID: the key}
  grains: ["(id, day)"]
  references: [id]
  audits:
  - not_null(columns := id)
  - name: accepted_values
    column: id
    is_in: [1, 2]
- name: raw.orders
  gateway: other
  columns: {x: int}
- name: raw.elsewhere
  gateway: other
"""


def test_an_external_model_is_the_one_of_the_projects_gateway(tmp_path: Path) -> None:
    config = CONFIG + "  other: {connection: {type: spark}}\n"
    project = load_project(project_of(tmp_path, {"config.yaml": config, "external_models.yaml": EXTERNAL}), NOW)
    other = load_project(tmp_path, NOW, "other")
    model = project.models["raw.orders"]

    assert list(project.models) == ["raw.orders"]
    assert model.columns == (Column("id", "bigint"), Column("day", "date"))
    assert (model.schedule.start, model.metadata.grain, model.line) == (
        datetime(2024, 1, 1, tzinfo=UTC),
        ("id", "day"),
        4,
    )
    assert model.metadata.column_descriptions == (("id", "the key"),)
    assert [(call.name, call.arguments) for call in model.checks.audits] == [
        ("not_null", (("columns", "id"),)),
        ("accepted_values", (("column", "id"), ("is_in", "(1, 2)"))),
    ]
    assert {name: parsed.columns for name, parsed in other.models.items()} == {
        "raw.orders": (Column("x", "int"),),
        "raw.elsewhere": (),
    }


def test_a_project_that_uses_everything_is_read_whole() -> None:
    project = load_project(Path(__file__).parents[2] / "projects" / "everything", NOW)

    kinds = {model.kind for model in project.models.values()}
    assert kinds == {*Kind}
    assert {"shop.sales_bern", "shop.sales_rome", "shop.forecast", "raw.orders"} <= project.models.keys()
