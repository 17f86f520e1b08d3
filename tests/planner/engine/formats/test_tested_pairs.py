"""Jars, extensions and catalogs of table formats: what a session is started with, and which pairs are refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from mergeplan.planner.engine.formats.tested_pairs import PACKAGES, settings_for
from mergeplan.planner.errors import RequestError
from mergeplan.planner.model.table_format import TABLE_FORMATS
from mergeplan.planner.semantics.spark.spark_settings import result_settings

DELTA = "io.delta:delta-spark_4.1_2.13"
ICEBERG = "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0"


def test_plain_files_need_nothing() -> None:
    assert settings_for((), {}, "4.1.4", None) == {}


@pytest.mark.parametrize("form", TABLE_FORMATS)
def test_a_format_changes_no_setting_that_changes_results(form: str) -> None:
    settings = settings_for([form], {}, "4.1.4", None)

    assert settings["spark.sql.catalog.spark_catalog"]
    assert result_settings(settings) == ()


def test_lists_that_are_given_are_added_to_and_other_settings_win() -> None:
    conf = {"spark.sql.extensions": "x.Y", PACKAGES: "a:b:1", "spark.sql.catalog.spark_catalog": "x.Catalog"}

    settings = settings_for(["delta"], conf, "4.1.4", None)

    assert settings["spark.sql.extensions"] == "x.Y,io.delta.sql.DeltaSparkSessionExtension"
    assert settings[PACKAGES].startswith(f"a:b:1,{DELTA}:")
    assert "spark.sql.catalog.spark_catalog" not in settings


@pytest.mark.parametrize(
    ("form", "package", "spark", "said"),
    [
        (
            "delta",
            f"{DELTA}:4.1.0",
            "4.1.4",
            r"4\.1\.0 does not work with Spark 4\.1\.4: columns cannot be added.*4\.4\.0",
        ),
        ("delta", f"{DELTA}:4.3.0", "4.2.0", r"does not work with Spark 4\.2\.0: it is built for Spark 4\.1\."),
        ("iceberg", ICEBERG, "4.2.0", r"runtime-4\.1_2\.13 1\.12\.0 does not work with Spark 4\.2\.0"),
        (
            "delta",
            "",
            "4.3.0",
            r"no release of Delta is known to work with Spark 4\.3\.0\. Delta 4\.4\.0 was tested with Spark 4\.2",
        ),
    ],
)
def test_a_pair_that_breaks_is_refused_with_one_that_works(form: str, package: str, spark: str, said: str) -> None:
    with pytest.raises(RequestError) as caught:
        settings_for([form], {PACKAGES: package}, spark, None)

    caught.match(said)


def test_a_release_that_is_brought_is_taken_as_it_is() -> None:
    settings = settings_for(["delta"], {PACKAGES: "io.delta:delta-spark_2.13:4.0.1"}, "4.0.5", None)

    assert settings[PACKAGES] == "io.delta:delta-spark_2.13:4.0.1"


def test_two_formats_that_need_one_catalog_are_refused() -> None:
    with pytest.raises(RequestError, match="one session cannot have tables of delta and iceberg"):
        settings_for(["iceberg", "delta"], {}, "4.1.4", None)


@pytest.mark.parametrize("group", ["", "io.delta_"])  # Spark puts it before the names of what it fetched
def test_jars_of_a_folder_take_the_place_of_what_is_fetched(group: str, tmp_path: Path) -> None:
    jar = tmp_path / f"{group}delta-spark_4.1_2.13-4.3.0.jar"
    jar.touch()

    settings = settings_for(["delta"], {}, "4.1.4", str(tmp_path))

    assert (settings["spark.jars"], PACKAGES in settings) == (str(jar), False)


@pytest.mark.parametrize(
    ("name", "said"), [("delta-spark_4.1_2.13-4.1.0.jar", "does not work"), ("x.jar", "holds no jar of Delta")]
)
def test_a_folder_without_the_right_jar_is_refused(name: str, said: str, tmp_path: Path) -> None:
    (tmp_path / name).touch()

    with pytest.raises(RequestError, match=said):
        settings_for(["delta"], {}, "4.1.4", str(tmp_path))
