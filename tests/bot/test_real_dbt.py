"""A repository with a dbt project: planned, built and promoted by the planner itself, compiled by dbt in isolation."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from mergeplan.bot.fetching.origins import HUB
from mergeplan.planner.isolation.probe import cannot
from mergeplan.planner.project.dbt.inputs import PYTHON
from tests.bot.child.dbt_hub import serve_hub
from tests.bot.child.listener import Answer, serve_answers
from tests.bot.conftest import SHOP, Bench
from tests.bot.test_real_planner import assert_merged_for_nothing, rows
from tests.planner.dbt.admission import admit_project_code

DBT = Path(__file__).parents[2] / ".venv-dbt/bin/python"
pytestmark = [
    pytest.mark.prove,
    pytest.mark.skipif(not DBT.exists(), reason="no dbt: `make .venv-dbt/.ready` installs it, as `make prove` does"),
]
FILES = {
    "config.yaml": "gateways: {local: {connection: {type: spark}}}\nmodel_defaults: {dialect: spark}\n",
    "dbt_project.yml": "name: shop\nversion: '1.0'\nprofile: shop\nmodels: {shop: {+materialized: table}}\n",
    "profiles.yml": "shop: {target: prod, outputs: {prod: {type: spark, method: session, host: x, schema: shop}}}\n",
    "seeds/items.csv": "id,price\n1,10\n2,20\n",
    "macros/cents.sql": "{% macro cents(column) %}{{ column }} * 100{% endmacro %}\n",
    "models/priced.sql": "select id, {{ cents('price') }} as cents from {{ ref('items') }}\n",
    "models/total.sql": "select sum(cents) as cents from {{ ref('priced') }}\n",
    "models/semantic.yml": """
semantic_models:
  - {name: priced, model: ref('priced'), defaults: {agg_time_dimension: sold_on}, entities: [{name: id, type: primary}],
     dimensions: [{name: sold_on, type: time, expr: "date'2026-01-01'", type_params: {time_granularity: day}}],
     measures: [{name: cents, agg: sum}]}
metrics: [{name: cents, label: Cents, type: simple, type_params: {measure: cents}}]
models: [{name: days, time_spine: {standard_granularity_column: day}, columns: [{name: day, granularity: day}]}]
""",
    "models/days.sql": "select date'2026-01-01' as day\n",
    "models/schema.yml": "models: [{name: priced, columns: [{name: id, data_tests: [unique, not_null]}]}]\n",
}
SECRETS = ("MERGEPLAN_WEBHOOK_SECRET", "GITHUB_TOKEN", "AWS_SECRET_ACCESS_KEY", "DBT_ENV_SECRET_TOKEN")
READ = "{% for name in " + str([*SECRETS[:3]]) + " %}{{ env_var(name, 'none') }} {% endfor %}"
THEFT = {  # a package, and a macro of the project's own, that read whatever a template can name
    "dbt_packages/evil/dbt_project.yml": json.dumps(
        {"name": "evil", "version": "1.0", "on-run-start": "select '{{ evil.steal() }}'"}
    ),
    "dbt_packages/evil/macros/steal.sql": "{% macro steal() %}" + READ + "{% endmacro %}\n",
    "dbt_packages/evil/models/loot.sql": "{{ config(materialized='table') }} select '{{ evil.steal() }}' as a\n",
    "dbt_packages/evil/models/refused.sql": "{{ exceptions.raise_compiler_error('refused: ' ~ evil.steal()) }}\n",
    "macros/cents.sql": "{% macro cents(column) %}" + READ + "{{ column }} * 100{% endmacro %}\n",
    "models/priced.sql": "{{ config(post_hook=\"select '{{ evil.steal() }}'\") }} "
    "select 1 as id, '{{ cents('a') }}' as cents\n",
}


def test_a_pull_request_of_a_dbt_project_is_planned_merged_and_promoted(
    make_bench: Callable[..., Bench], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv(PYTHON, str(DBT))
    admit_project_code(tmp_path)
    bench = make_bench(project=FILES, planner_command=(), warm=True, patience=900.0)
    assert bench.context.inbox.prods.get(SHOP).revision == 1

    same = bench.open(
        {"macros/cents.sql": FILES["macros/cents.sql"].replace("{{ column", "{#- x -#} {{- column")}, "same"
    )
    bench.idle()
    assert bench.checks(bench.head(same))["plan"].title == "Nothing to do"
    added = bench.open(
        {"models/priced.sql": FILES["models/priced.sql"].replace("select id,", "select id, price,")}, "more"
    )
    bench.idle()
    assert "1 non-breaking, 1 indirect non-breaking" in bench.plan(added)
    assert_merged_for_nothing(bench, added, revision=2)
    assert rows(bench.home, "SELECT max(price) FROM shop.priced") == [[20]]

    bench.say(added, "/rollback", author="ann")
    assert rows(bench.home, "SELECT * FROM shop.total") == [[3000]]
    broken = bench.open({"models/total.sql": "select {{ nothing() }} from {{ ref('priced') }}\n"}, "broken")
    bench.idle()
    assert "'nothing' is undefined" in bench.plan(broken)


def test_a_pull_requests_package_macro_and_env_var_read_no_secret_of_the_service(
    make_bench: Callable[..., Bench], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv(PYTHON, str(DBT))
    for name in SECRETS:
        monkeypatch.setenv(name, "hidden-7")
    admit_project_code(tmp_path)
    bench = make_bench(project=FILES, planner_command=(), warm=True, patience=900.0)
    token = {"models/token.sql": "select '{{ env_var('DBT_ENV_SECRET_TOKEN') }}' as a\n"}
    numbers = [bench.open(THEFT, "theft"), bench.open(token, "token")]
    bench.idle()
    checks = [check for number in numbers for check in bench.checks(bench.head(number)).values()]
    shown = "".join([*map(bench.plan, numbers), *(f"{check.title}{check.summary}{check.text}" for check in checks)])

    assert "`dbt_packages/evil/models/refused.sql:1`: refused: none none none" in shown
    assert "`models/token.sql:1`: Secret env vars are allowed only in" in shown
    assert "hidden-7" not in shown
    assert not [path for path in bench.folder.rglob("*") if path.is_file() and b"hidden-7" in path.read_bytes()]


def test_a_pull_request_brings_a_package_of_the_hub_and_chooses_no_other_address(
    make_bench: Callable[..., Bench], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv(PYTHON, str(DBT))
    admit_project_code(tmp_path)
    rate = {version: {"macros/r.sql": f"{{% macro rate() %}}{n}{{% endmacro %}}"} for n, version in enumerate("12", 7)}
    uses = {"models/priced.sql": "select id, price * {{ rates.rate() }} as cents from {{ ref('items') }}\n"}
    with serve_hub({"acme/rates": {f"{version}.0.0": files for version, files in rate.items()}}) as hub:
        monkeypatch.setenv(HUB, hub)
        asks = "packages: [{package: acme/rates, version: 1.0.0}]\n"
        bench = make_bench(
            project={**FILES, **uses, "packages.yml": asks}, planner_command=(), warm=True, patience=900.0
        )
        assert bench.context.inbox.prods.get(SHOP).revision == 1
        newer = bench.open({"packages.yml": asks.replace("1.0.0", "2.0.0")}, "newer")
        other = bench.open({"packages.yml": "packages: [{tarball: 'http://10.0.0.1/x', name: x}]\n"}, "other")
        bench.idle()
        assert "`packages.yml:1`: A package by `tarball` is not fetched here" in bench.plan(other)
        assert_merged_for_nothing(bench, newer, revision=2)

    assert rows(bench.home, "SELECT max(cents) FROM shop.priced") == [[160]]


PASSWORDS = ("proxy-password-31", "hub-token-42", "proxy-password_at_")
FILTER = "{% filter replace('x', env_var('NAME')|replace('@','_at_')|replace('31@','_at_')) %}x{% endfilter %}"
SUB = {"packages.yml": "packages: [{local: sub}]\n", "sub/dbt_project.yml": "name: sub\nversion: '1.0'\n"}
HUB_PACKAGE = "packages:\n- package: acme/rates\n  version: "
TEMPLATE = "A template in the entry of a package is not followed here"


@pytest.mark.skipif(bool(cannot()), reason="this machine cannot isolate")
def test_a_pull_requests_packages_read_no_password_of_the_operator_and_reach_the_hub_alone(
    make_bench: Callable[..., Bench],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv(PYTHON, str(DBT))
    admit_project_code(tmp_path)
    with serve_answers(lambda path: Answer(b"x")) as other, serve_hub({"acme/rates": {"1.0.0": {}}}) as hub:
        proxy = f"http://ann:{PASSWORDS[0]}@127.0.0.1:{other.port}"
        environ = {"HTTPS_PROXY": proxy, "HTTP_PROXY": proxy, HUB: hub.replace("//", f"//bot:{PASSWORDS[1]}@")}
        for name, value in {**environ, "NO_PROXY": "127.0.0.1", "PIP_INDEX_URL": f"{other.url}/simple"}.items():
            monkeypatch.setenv(name, value)
        names = ("HTTPS_PROXY", HUB)
        pulls: list[tuple[dict[str, str], str]] = [
            *(({"packages.yml": f'{HUB_PACKAGE}"{FILTER.replace("NAME", name)}"\n'}, TEMPLATE) for name in names),
            ({"packages.yml": f'{HUB_PACKAGE}1.0.0\n  name: "{FILTER.replace("NAME", HUB)}"\n'}, TEMPLATE),
            ({**SUB, "sub/packages.yml": f"{HUB_PACKAGE}\"{{{{ env_var('HTTPS_PROXY') }}}}\"\n"}, TEMPLATE),
            ({**SUB, "sub/dependencies.yml": f"{HUB_PACKAGE}\"{{{{ env_var('{HUB}') }}}}\"\n"}, TEMPLATE),
            (
                {**SUB, "sub/packages.yml": f"packages: [{{tarball: '{other.url}/{{{{ 1 }}}}', name: x}}]\n"},
                TEMPLATE,
            ),
            ({**SUB, "sub/packages.yml": f"packages: [{{tarball: '{other.url}/x.tgz', name: x}}]\n"}, "by `tarball`"),
            ({**SUB, "sub/packages.yml": f"packages: [{{git: '{other.url}/x.git'}}]\n"}, "by `git`"),
        ]
        bench = make_bench(project=FILES, planner_command=(), warm=False, patience=900.0)
        numbers = [bench.open(files, f"theft-{at}") for at, (files, _) in enumerate(pulls)]
        honest = bench.open({"packages.yml": f"{HUB_PACKAGE}1.0.0\n"}, "honest")
        bench.idle()

    for number, (_, said) in zip(numbers, pulls, strict=True):
        assert said in bench.plan(number), bench.plan(number)
    assert "cannot be installed" not in bench.plan(honest)
    checks = [check for number in numbers for check in bench.checks(bench.head(number)).values()]
    printed = "".join(capfd.readouterr())
    shown = "".join([printed, *map(bench.plan, numbers), *(f"{c.title}{c.summary}{c.text}" for c in checks)])
    assert other.requests == []
    assert not [password for password in PASSWORDS if password in shown]
    files = [path for path in bench.folder.rglob("*") if path.is_file()]
    assert not [path for path in files for password in PASSWORDS if password.encode() in path.read_bytes()]
