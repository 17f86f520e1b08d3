"""When the Java of a Spark of our own is confined, and the reason when it is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from mergeplan.planner.engine.protocol import Connection
from mergeplan.planner.engine.spark.process.confinement import _default_repositories, _output_paths, open_reason
from mergeplan.planner.engine.spark.process.format_settings import starting_conf
from mergeplan.planner.errors import RequestError
from mergeplan.planner.isolation.probe import cannot_confine

REQUIRED = {"MERGEPLAN_ISOLATION": "required"}
ADDRESSES = "MERGEPLAN_ISOLATION_SPARK_ADDRESSES"
NEEDS = {
    "spark.hadoop.hive.metastore.uris": "thrift://metastore.internal:9083",
    "spark.hadoop.javax.jdo.option.ConnectionURL": "jdbc:postgresql://db/hive",
    "spark.sql.warehouse.dir": "s3a://lake/warehouse",
    "spark.hadoop.fs.s3a.endpoint": "minio:9000",
    "spark.sql.catalog.lake.uri": "https://rest.internal",
    "spark.sql.catalog.ora.url": "jdbc:oracle:thin:@db:1521/x",
    "spark.jars.ivySettings": "/etc/ivy.xml",
    "spark.master": "spark://cluster:7077",
}


def reason(home: Path, environ: dict[str, str], config_dir: Path | None = None, **conf: str) -> str:
    return open_reason(starting_conf(Connection(tuple(conf.items())), home), config_dir, environ)


def test_a_plain_users_spark_is_not_confined(tmp_path: Path) -> None:
    assert reason(tmp_path, {}) == "the isolation of project code is off"
    assert reason(tmp_path, {ADDRESSES: "db:1"}) == "the isolation of project code is off"


def test_the_embedded_spark_is_confined_where_project_code_is_isolated(tmp_path: Path) -> None:
    local = {"spark.sql.warehouse.dir": "file:///data/warehouse", "spark.jars.packages": "io.delta:delta-spark:1"}

    assert reason(tmp_path, REQUIRED) == cannot_confine()
    assert reason(tmp_path, REQUIRED, **local) == cannot_confine()
    assert reason(tmp_path, {**REQUIRED, "MERGEPLAN_ISOLATION_SPARK": "none"}) == "MERGEPLAN_ISOLATION_SPARK=none"


@pytest.mark.parametrize("key", NEEDS)
def test_a_spark_that_needs_a_service_is_confined_once_its_addresses_are_named(key: str, tmp_path: Path) -> None:
    conf = {key: NEEDS[key]}

    assert reason(tmp_path, REQUIRED, **conf) == (
        f"`{key}` may lead to a service; {ADDRESSES} does not say which addresses Spark needs"
    )
    assert reason(tmp_path, {**REQUIRED, ADDRESSES: ""}, **conf) == cannot_confine()


def test_a_folder_of_settings_may_name_a_service(tmp_path: Path) -> None:
    assert f"`{tmp_path}` may lead to a service" in reason(tmp_path, REQUIRED, tmp_path)


@pytest.mark.parametrize(("name", "value"), [("", "off"), ("_ADDRESSES", "http://db"), ("_FOLDERS", "relative/folder")])
def test_a_setting_that_is_wrong_is_named(name: str, value: str, tmp_path: Path) -> None:
    variable = f"MERGEPLAN_ISOLATION_SPARK{name}"

    with pytest.raises(RequestError, match=variable):
        reason(tmp_path, {**REQUIRED, variable: value})


def test_a_derby_database_and_folders_of_the_operators_own_can_be_written(tmp_path: Path) -> None:
    there, to_come = tmp_path / "there/metastore", tmp_path / "to_come/metastore"
    there.mkdir(parents=True)
    url = "spark.hadoop.javax.jdo.option.ConnectionURL"
    warehouse = {"spark.sql.warehouse.dir": f"file://{tmp_path}/warehouse", "spark.eventLog.dir": "hdfs:///logs"}

    paths = [
        [*_output_paths({**warehouse, url: f"jdbc:derby:;databaseName={folder};create=true"})]
        for folder in (there, to_come)
    ]
    assert paths == [[f"{tmp_path}/warehouse", str(there)], [f"{tmp_path}/warehouse", str(to_come.parent)]]
    assert (tmp_path / "warehouse").is_dir()


def test_the_hosts_that_jars_come_from_are_those_of_the_installed_spark() -> None:
    hosts = _default_repositories()

    assert hosts
    assert all("." in host for host in hosts)
