"""The packages that a dbt project names, at the newest version that it admits, from copies of their repositories.

A copy lies in `FOLDER/owner+name/repo`, as a git directory. The package `fivetran/shopify_source` is looked up as
`fivetran+shopify_source`, `fivetran+dbt_shopify_source` and `fivetran+dbt-shopify-source`.
"""

from __future__ import annotations

import io
import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import yaml
from packaging.specifiers import SpecifierSet
from packaging.version import InvalidVersion, Version

PLACEHOLDER = b"id\n1\n"
FILES = ("packages.yml", "dependencies.yml")


def git(repository: Path, *arguments: str) -> bytes:
    command = ["git", "-C", str(repository), *arguments]
    done = subprocess.run(command, check=False, capture_output=True, timeout=300)
    if done.returncode:
        raise ValueError(f"git {arguments[0]}: {done.stderr.decode('utf-8', 'replace')[:300]}")
    return done.stdout


def write_tree(repository: Path, commit: str, folder: str, root: Path) -> None:
    """Write the files of a folder at a commit into another folder; one that the copy lacks has one row, `id` is 1."""
    tree = f"{commit}:{folder.strip('/')}" if folder.strip("/.") else commit
    lines = git(repository, "ls-tree", "-rz", tree).decode("utf-8", "replace").split("\0")
    files = [line.split("\t", 1) for line in lines if line.startswith("100")]
    asked = "".join(f"{about.split()[2]}\n" for about, _ in files).encode()
    command = ["git", "-C", str(repository), "cat-file", "--batch"]
    answer = io.BytesIO(subprocess.run(command, input=asked, check=True, capture_output=True, timeout=300).stdout)
    for _, name in files:
        words = answer.readline().split()
        is_missing = words[-1] == b"missing"
        content = PLACEHOLDER if is_missing else answer.read(int(words[2]) + 1)[:-1]
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def lay_out_packages(root: Path, mirrors: Path) -> None:
    """Write a project's packages, and what these need, into `dbt_packages`; name them as local ones in packages.yml."""
    waiting, names = [*_read_packages(root)], {}
    while waiting:
        package, versions = waiting.pop(0)
        short = package.rpartition("/")[2]
        if short in names:
            continue
        names[short] = package
        repository = _find_repository(package, mirrors)
        target = root / "dbt_packages" / short
        target.mkdir(parents=True)
        write_tree(repository, _newest_tag(repository, versions), "", target)
        waiting += _read_packages(target)
    for name in (*FILES, "package-lock.yml"):
        (root / name).unlink(missing_ok=True)
    if names:
        entries = [{"local": f"dbt_packages/{name}"} for name in sorted(names)]
        (root / "packages.yml").write_text(json.dumps({"packages": entries}))


def _read_packages(root: Path) -> Iterator[tuple[str, str]]:
    for name in FILES:
        file = root / name
        content = yaml.safe_load(file.read_text("utf-8")) if file.is_file() else None
        for entry in (content or {}).get("packages") or ():
            versions = entry.get("version", entry.get("revision", ""))
            text = ",".join(versions) if isinstance(versions, list) else str(versions)
            address = str(entry.get("package") or entry.get("git") or entry.get("local")).removesuffix(".git")
            yield "/".join(address.split("/")[-2:]), text


def _find_repository(package: str, mirrors: Path) -> Path:
    owner, _, name = package.partition("/")
    for spelling in (name, f"dbt_{name}", f"dbt-{name}", name.replace("_", "-"), f"dbt-{name}".replace("_", "-")):
        if (repository := mirrors / f"{owner}+{spelling}/repo").is_dir():
            return repository
    raise ValueError(f"there is no copy of the package {package}")


def _newest_tag(repository: Path, versions: str) -> str:
    """Return the newest tag of a release that the ranges admit; the branch's newest commit if none does."""
    tags: dict[Version, str] = {}
    for tag in git(repository, "tag").decode().split():
        try:
            tags[Version(tag)] = tag
        except InvalidVersion:
            continue
    exact = versions if not versions or versions[0] in "<>=!~" else f"=={versions}"
    try:
        admitted = [version for version in SpecifierSet(exact).filter(tags) if not version.is_prerelease]
    except ValueError:
        admitted = []
    return tags[max(admitted)] if admitted else "HEAD"
