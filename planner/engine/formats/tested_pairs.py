"""The release of a table format for a session's Spark: the tested one; a pair that is known to break is refused.

A session of a project with such tables needs the format's jars, its SQL extension and its catalog. A project with only
parquet or ORC needs none of this.
"""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from mergeplan.planner.errors import RequestError
from mergeplan.planner.model.table_format import CATALOG, FORMATS, Release, TableFormat

EXTENSIONS, PACKAGES, JARS = "spark.sql.extensions", "spark.jars.packages", "spark.jars"
Conf = Mapping[str, str]
_JAR = re.compile(r"(.+_\d+\.\d+)-(\d[\w.-]*)\.jar")
_LINE = re.compile(r"[-_](\d+\.\d+)_\d+\.\d+$")  # of an artifact's name: the Spark that it is built for


def settings_for(
    formats: Iterable[str], conf: Conf, spark: str, folder: str | None, separate_formats: Iterable[str] = ()
) -> dict[str, str]:
    """Return the settings of a session with these formats besides its own `conf`: jars, extensions and catalogs.

    For `separate_formats`, whose catalogs `conf` configures, only jars and extensions are returned.

    The jars are those of `folder` if one is given, else those that `conf` names, else the tested release. Raise
    RequestError for a pair that is known to break, and if no pair was tested and no jars are given.
    """
    format_names, separate_names = sorted(set(formats)), set(separate_formats)
    if not format_names and not separate_names:
        return {}
    jars = _jars_of(folder) if folder else []
    packages = _split_setting(conf, PACKAGES)
    releases = _list_releases(packages, [*jars, *_split_setting(conf, JARS)])
    settings: dict[str, str] = {}
    extensions = _split_setting(conf, EXTENSIONS)
    for name in sorted(separate_names.union(format_names)):
        form = FORMATS[name]
        release = _choose_release(form, spark, releases, folder)
        _refuse_broken(form, release, spark, releases)
        if not _is_among(release, releases):
            packages.append(release.package)
        extensions += [release.apart] if name in separate_names and release.apart else []
        extensions += [release.extension] if release.extension else []
        for key, value in release.settings if name in format_names else ():
            if settings.setdefault(key, value) != value:
                raise RequestError(
                    f"one session cannot have tables of {' and '.join(format_names)}: each needs a `{key}` of its own.",
                    hint="Use one `table_format` in a catalog.",
                )
    lists = {EXTENSIONS: extensions, PACKAGES: packages, JARS: [*_split_setting(conf, JARS), *jars]}
    settings = {key: value for key, value in settings.items() if key not in conf}
    return settings | {key: ",".join(dict.fromkeys(parts)) for key, parts in lists.items() if parts}


def sign_of(format: str) -> tuple[str, str]:
    """Return the setting, and the class in it, by which a session that knows a format is recognised."""
    release = FORMATS[format].releases[0]
    return (EXTENSIONS, release.extension) if release.extension else (CATALOG, release.catalog)


def how_to_bring(packages: str) -> str:
    return (
        f"Copy {packages} and what it depends on into a folder and name it as `jars_dir` of the connection; or "
        "configure access to your registry: `spark.jars.repositories` or `spark.jars.ivySettings` in its `config`, "
        "a proxy as "
        "`-Dhttps.proxyHost=...` in `spark.driver.extraJavaOptions`."
    )


def _choose_release(form: TableFormat, spark: str, artifacts: Iterable[tuple[str, str]], folder: str | None) -> Release:
    """Return the release for this Spark; if none was tested, the newest, for the settings of the given jars.

    Raise RequestError if `folder` holds no jar of the format, or if no release was tested and none is given.
    """
    newest = form.releases[-1]
    brought = _is_among(newest, artifacts)
    if folder and not brought:
        raise RequestError(f"`jars_dir` {folder} holds no jar of {form.title}.", hint=how_to_bring(newest.package))
    release = next((candidate for candidate in form.releases if spark.startswith(f"{candidate.spark}.")), newest)
    if not brought and not spark.startswith(f"{release.spark}."):
        raise RequestError(
            f"no release of {form.title} is known to work with Spark {spark}.",
            hint=f"{form.title} {release.version} was tested with Spark {release.spark}: install that, or bring a "
            "release of your own with `jars_dir` or `spark.jars.packages`.",
        )
    return release


def _is_among(release: Release, releases: Iterable[tuple[str, str]]) -> bool:
    return any(artifact.startswith(release.stem) for artifact, _ in releases)


def _refuse_broken(form: TableFormat, release: Release, spark: str, artifacts: Iterable[tuple[str, str]]) -> None:
    for artifact, version in artifacts:
        reason = ""
        for broken in form.broken:
            if (broken.artifact, broken.version) == (artifact, version) and _is_at_least(spark, broken.spark):
                reason = broken.shows
        line = _LINE.search(artifact)
        if line and artifact.startswith(release.stem) and not spark.startswith(f"{line[1]}."):
            reason = f"it is built for Spark {line[1]}"
        if reason:
            raise RequestError(
                f"{artifact} {version} does not work with Spark {spark}: {reason}.",
                hint=f"Spark {release.spark} and `{release.package}` work together; without a release of its own in "
                "`config` mergeplan takes that one.",
            )


def _list_releases(packages: Iterable[str], jars: Iterable[str]) -> list[tuple[str, str]]:
    """Return the name and the version of each package (`group:artifact:version`) and of each jar."""
    parts = (package.split(":") for package in packages)
    named = [(fields[1], fields[2]) for fields in parts if len(fields) > 2]
    matches = filter(None, (_JAR.fullmatch(Path(jar).name) for jar in jars))
    return named + [(_artifact_name(match[1]), match[2]) for match in matches]


def _artifact_name(name: str) -> str:
    """Return the name of a jar without the group, which precedes it in Spark's folder of fetched jars."""
    stems = (release.stem for form in FORMATS.values() for release in form.releases)
    stem = next((stem for stem in stems if f"_{stem}" in name), "")
    return name[name.index(stem) :]


def _is_at_least(version: str, least: str) -> bool:
    numbers = ([int(digits) for digits in re.findall(r"\d+", text)[:3]] for text in (version, least))
    first, second = numbers
    return first[:2] == second[:2] and first >= second


def _jars_of(folder: str) -> list[str]:
    if not Path(folder).is_dir():
        raise RequestError(f"there is no folder `{folder}`, which `jars_dir` names.")
    return sorted(str(path.resolve()) for path in Path(folder).glob("*.jar"))


def _split_setting(conf: Conf, key: str) -> list[str]:
    return [entry.strip() for entry in conf.get(key, "").split(",") if entry.strip()]
