"""Which class data archive fits, who may have written it, who makes it, and that Spark starts without a good one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from mergeplan.planner.engine.spark.process.class_archive import MAKER, ClassArchive, archive_folder, archive_of
from mergeplan.planner.engine.spark.process.installed import find_java, spark_home
from mergeplan.planner.engine.spark.process.java import Profile, start_jvm
from tests.planner.engine.spark.process.test_installed import fake_java

CONF = {"spark.master": "local[1]", "spark.driver.host": "127.0.0.1", "spark.driver.memory": "600m"}


@pytest.fixture
def archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ClassArchive:
    """An archive that is none, for a Java with a base archive of its own."""
    folder, java = tmp_path / "archives", fake_java(tmp_path, "17.0.1")
    folder.mkdir(mode=0o700)
    base = tmp_path / "lib" / "server" / "classes.jsa"
    base.parent.mkdir(parents=True)
    base.touch()
    monkeypatch.setenv("MERGEPLAN_SPARK_ARCHIVE", str(folder))
    class_archive = archive_of(java, spark_home())
    assert class_archive is not None
    class_archive.path.write_bytes(b"damaged" * 1000)
    class_archive.path.chmod(0o600)
    return class_archive


def test_archives_are_in_the_users_cache_unless_the_variable_says_otherwise(tmp_path: Path) -> None:
    home, cache = {"HOME": str(tmp_path)}, {"XDG_CACHE_HOME": "/c"}

    assert archive_folder(home) == tmp_path / ".cache" / "mergeplan" / "spark"
    assert archive_folder(home | cache) == Path("/c/mergeplan/spark")
    assert archive_folder(home | cache | {"MERGEPLAN_SPARK_ARCHIVE": "/a"}) == Path("/a")
    assert archive_folder(home | {"MERGEPLAN_SPARK_ARCHIVE": "off"}) is None
    assert archive_folder({"HOME": "/nonexistent"}) is None


def test_another_java_or_other_jars_have_another_archive(tmp_path: Path) -> None:
    spark, folder = tmp_path / "spark", {"MERGEPLAN_SPARK_ARCHIVE": str(tmp_path / "archives")}
    (spark / "jars").mkdir(parents=True)
    jar = spark / "jars" / "a.jar"
    jar.write_text("a")
    old, new = fake_java(tmp_path / "old", "17.0.1"), fake_java(tmp_path / "new", "17.0.2")

    first = archive_of(old, spark, folder)
    assert first != archive_of(new, spark, folder)
    assert first == archive_of(old, spark, folder)
    os.utime(jar, (1, 1))
    assert first != archive_of(old, spark, folder)


@pytest.mark.parametrize("others", ["file", "folder", "link"])
def test_an_archive_that_somebody_else_could_have_written_is_not_used(archive: ClassArchive, others: str) -> None:
    assert archive.options[0] == f"-XX:SharedArchiveFile={archive.path}"

    if others == "link":
        archive.path.rename(archive.path.with_suffix(".moved"))
        archive.path.symlink_to(archive.path.with_suffix(".moved"))
    else:
        (archive.path if others == "file" else archive.path.parent).chmod(0o777)

    assert archive.options == ()


def test_one_of_two_processes_makes_it_and_neither_when_it_is_there(archive: ClassArchive) -> None:
    with archive.making() as made_again:
        assert not made_again
    archive.path.unlink()

    with archive.making() as first, archive.making() as second:
        assert (first, second) == (True, False)


def test_what_could_not_be_made_is_not_tried_again_on_the_same_day(archive: ClassArchive) -> None:
    archive.path.unlink()
    assert archive.is_missing()

    with archive.making():
        pass

    assert not archive.is_missing()
    os.utime(archive.path.with_suffix(".tried"), (0, 0))
    assert archive.is_missing()


def test_the_archives_that_served_last_are_kept_and_so_are_those_of_other_programs(archive: ClassArchive) -> None:
    names = [f"{number:032x}.jsa" for number in range(5)] + ["of_another.jsa"]
    for number, name in enumerate(names):
        old = archive.path.with_name(name)
        old.touch()
        os.utime(old, (number, number))
    archive.path.with_suffix(".tried").touch()
    draft = archive.draft("spark")
    draft.touch()

    archive.put(draft, archive.path)

    assert {path.name for path in archive.path.parent.glob("*.jsa")} == {archive.path.name, *names[3:]}


def test_where_no_archive_can_be_written_nothing_happens(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    ClassArchive(tmp_path / "file" / "below" / "a.jsa", find_java()).make_later({})


def test_spark_starts_with_a_damaged_archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MERGEPLAN_SPARK_ARCHIVE", str(tmp_path / "archives"))
    class_archive = archive_of(find_java(), spark_home())
    assert class_archive is not None
    class_archive.path.parent.mkdir(mode=0o700)
    for file in (class_archive.path, class_archive.base):
        file.write_bytes(os.urandom(100_000))
        file.chmod(0o600)
    assert class_archive.options

    jvm = start_jvm(tmp_path / "spark", CONF, Profile.METADATA)

    assert jvm.port
    jvm.stop()


@pytest.mark.prove
def test_an_archive_with_which_java_ends_is_removed_and_spark_starts(
    tmp_path: Path, archive: ClassArchive, monkeypatch: pytest.MonkeyPatch
) -> None:
    java = tmp_path / "bin" / "java"
    java.write_text(
        "#!/bin/sh\n"
        'case "$*" in *SharedArchiveFile*) exit 134;; esac\n'
        '[ "$1" = -version ] && { echo \'openjdk version "17.0.1" 2024-01-01\' >&2; exit; }\n'
        f'exec {find_java()} "$@"\n'
    )
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))

    jvm = start_jvm(tmp_path / "spark", CONF, Profile.METADATA)

    jvm.stop()
    assert jvm.archive == archive
    assert not archive.path.exists()
    assert not archive.is_missing()  # one that Java cannot use is not made again at once


@pytest.mark.prove
def test_spark_starts_with_the_archive_that_was_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "archives"
    folder.mkdir(mode=0o700)
    monkeypatch.setenv("MERGEPLAN_SPARK_ARCHIVE", str(folder))
    class_archive = archive_of(find_java(), spark_home())
    assert class_archive is not None
    subprocess.run([sys.executable, "-P", "-m", MAKER], check=True, timeout=600)  # this process has a Spark already

    jvm = start_jvm(tmp_path / "spark", CONF, Profile.METADATA)

    mapped = Path(f"/proc/{jvm.process.pid}/maps").read_text()
    jvm.stop()
    assert str(class_archive.path) in mapped


def children() -> set[str]:
    """The ids of this process's children."""
    id_lists = (file.read_text().split() for file in Path("/proc/self/task").glob("*/children"))
    return {child for ids in id_lists for child in ids}


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="there is no /proc here")
def test_who_starts_the_maker_has_no_child_left(tmp_path: Path) -> None:
    archive = ClassArchive(tmp_path / "archives" / "a.jsa", find_java())
    (tmp_path / "archives" / "lock").mkdir(parents=True)  # so that the maker ends before it starts a Java
    before = children()

    archive.make_later({"PATH": os.defpath})

    assert children() == before
