"""What a pull request's code could write below MERGEPLAN_HOME: the service runs none of it and takes none for main."""

from __future__ import annotations

import shutil
import subprocess
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from mergeplan.bot.git.call import CheckoutFailed
from mergeplan.bot.git.checkout import Checkout
from mergeplan.bot.git.objects import Tampered, name_of
from mergeplan.bot.records import PullState
from mergeplan_sandbox.server import Sandbox
from tests.bot.conftest import COLUMN, PROJECT, SHOP, Bench
from tests.bot.test_pull_requests import GREEN

EVIL = b"SELECT 666 AS id\n"
MORE = {"models/more.sql": "SELECT 3 AS id\n"}
FILES = {"models/a.sql": "SELECT 1\n", "models/b.sql": "SELECT 2\n"}
STEALING = """
[core]
    alternateRefsCommand = {run}
"""
CHANGING = """
[filter "evil"]
    smudge = "{run}; echo SELECT 666 AS id"
    required = true
"""
# Every setting that names a program, another place to read from, or another address for the token.
EVERYTHING = """
[core]
    alternateRefsCommand = {run}
    fsmonitor = {run}
    sshCommand = {run}
    gitProxy = {run}
    askPass = {run}
    editor = {run}
    pager = {run}
    hooksPath = {hooks}
    attributesFile = {hooks}/attributes
[credential]
    helper = "!{run}"
[credential "{url}"]
    helper = "!{run}"
[filter "evil"]
    clean = {run}
    smudge = "{run}; echo SELECT 666 AS id"
    process = {run}
    required = true
[merge "evil"]
    driver = {run}
[diff "evil"]
    command = {run}
    textconv = {run}
[diff]
    external = {run}
[gpg]
    program = {run}
[uploadpack]
    packObjectsHook = {run}
[http]
    proxy = http://127.0.0.1:9
[url "ext::{run} "]
    insteadOf = {url}
[remote "{url}"]
    url = ext::{run}
    uploadpack = {run}
    vcs = ext
[protocol "ext"]
    allow = always
[include]
    path = {hooks}/more
[extensions]
    partialClone = evil
[remote "evil"]
    url = ext::{run}
    promisor = true
"""
ATTRIBUTES = "* filter=evil merge=evil diff=evil ident eol=crlf working-tree-encoding=UTF-16\n"


class Attack:
    """What a model's code writes into the mirror; `ran` is there as soon as any of it ran."""

    def __init__(self, home: Path, git: Path, folder: Path) -> None:
        self.home, self.git = home, git
        self.mirror = home / "mirror.git"
        self.objects = self.mirror / "objects"
        self.ran = folder / "ran"
        self.run = f"env > {self.ran}"
        self.aside = folder / "aside"
        subprocess.run(["git", "init", "--quiet", "--bare", str(self.aside)], check=True)

    def configure(self, text: str, url: str) -> None:
        hooks = self.mirror / "evil"
        hooks.mkdir()
        for name in ("reference-transaction", "post-checkout", "pre-auto-gc", "post-index-change"):
            (hooks / name).write_text(f"#!/bin/sh\n{self.run}\n")
            (hooks / name).chmod(0o755)
        (hooks / "attributes").write_text(ATTRIBUTES)
        (hooks / "more").write_text(f"[core]\n\talternateRefsCommand = {self.run}\n")
        with (self.mirror / "config").open("a") as config:
            config.write(text.format(run=self.run, hooks=hooks, url=url))
        (self.mirror / "info").mkdir(exist_ok=True)
        (self.mirror / "info" / "attributes").write_text(ATTRIBUTES)
        (self.objects / "info").mkdir(parents=True, exist_ok=True)
        (self.objects / "info" / "alternates").write_text(f"{self.aside / 'objects'}\n")

    def oid(self, name: str) -> str:
        asked = ["git", "-C", str(self.git), "rev-parse", name]
        return subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()

    def put(self, oid: str, kind: str, content: bytes) -> None:
        """Under that name lies something else, loose and in no pack."""
        for pack in list((self.objects / "pack").glob("*.pack")):
            moved = self.aside / pack.name
            pack.rename(moved)
            pack.with_suffix(".idx").unlink()
            environment = {"PATH": "/usr/bin:/bin", "GIT_OBJECT_DIRECTORY": str(self.objects)}
            with moved.open("rb") as packed:
                asked = ["git", "-C", str(self.aside), "unpack-objects", "-q"]
                subprocess.run(asked, stdin=packed, check=True, env=environment)
        path = self.objects / oid[:2] / oid[2:]
        path.parent.mkdir(exist_ok=True)
        path.unlink(missing_ok=True)
        path.write_bytes(zlib.compress(b"%s %d\0" % (kind.encode(), len(content)) + content))

    # --- what may lie there ---

    def a_file(self) -> None:
        self.put(self.oid("main:models/a.sql"), "blob", EVIL)

    def a_folder(self) -> None:
        evil = name_of("blob", EVIL)
        self.put(evil, "blob", EVIL)
        self.put(self.oid("main:models"), "tree", b"100644 a.sql\0" + bytes.fromhex(evil))

    def a_commit(self) -> None:
        """Main's own commit has the tree of the pull request, and no parents."""
        by = "a <a@b> 1 +0000"
        text = f"tree {self.oid('change^{tree}')}\nauthor {by}\ncommitter {by}\n\nEvil\n"
        self.put(self.oid("main"), "commit", text.encode())

    def another_kind(self) -> None:
        self.put(self.oid("main:models"), "blob", EVIL)

    def no_object(self) -> None:
        path = self.objects / self.oid("main")[:2] / self.oid("main")[2:]
        self.put(self.oid("main"), "blob", EVIL)
        path.write_bytes(b"no object")

    def references(self) -> None:
        """A reference of that name, and a note of what was fetched, say what main is."""
        (self.mirror / "refs" / "heads").mkdir(parents=True, exist_ok=True)
        (self.mirror / "refs" / "heads" / "main").write_text(self.oid("change") + "\n")
        self.tips(f'{{"refs/heads/main": "{self.oid("change")}", "x": 1, "y": ["z"], "z": "{"f" * 40}"}}')
        (self.mirror / "shallow").write_text(self.oid("main") + "\n")

    def tips(self, text: str = "[no JSON") -> None:
        (self.mirror / "tips.json").unlink(missing_ok=True)
        (self.mirror / "tips.json").write_text(text)

    def a_link(self) -> None:
        shutil.move(self.mirror, self.aside / "moved")
        self.mirror.symlink_to(self.aside / "moved")

    def no_folder(self) -> None:
        shutil.rmtree(self.mirror)
        self.mirror.write_text("no folder")

    def nothing(self) -> None:
        shutil.rmtree(self.objects)

    def packs_that_are_none(self) -> None:
        for path in (self.objects / "pack").iterdir():
            path.chmod(0o644)
            path.write_bytes(b"")

    def links_for_locks(self) -> None:
        (self.home / "mirror.lock").unlink(missing_ok=True)
        (self.home / "mirror.new").symlink_to(self.aside)
        shutil.rmtree(self.home / "trees", ignore_errors=True)
        (self.home / "trees").symlink_to(self.aside)


POISONS: tuple[Callable[[Attack], None], ...] = (
    Attack.a_file, Attack.a_folder, Attack.a_commit, Attack.another_kind, Attack.no_object, Attack.references,
    Attack.tips, Attack.a_link, Attack.no_folder, Attack.nothing, Attack.packs_that_are_none, Attack.links_for_locks,
)  # fmt: skip


STARTED_AGAIN = (Attack.a_commit, Attack.references, Attack.tips, Attack.a_link)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(STEALING, id="stealing", marks=pytest.mark.prove),
        pytest.param(CHANGING, id="changing", marks=pytest.mark.prove),
        pytest.param(EVERYTHING, id="everything"),
    ],
)
def test_a_configuration_in_the_mirror_runs_nothing_and_changes_no_text(
    bench: Bench, tmp_path: Path, text: str
) -> None:
    """Behaviour 43: the next pull request's fetch has the token in its environment; main is read as it was reviewed."""
    bench.open(COLUMN)
    bench.idle()
    attack = Attack(bench.home, bench.github.state.git(SHOP), tmp_path)
    attack.configure(text, bench.github.clone_url(SHOP))
    number = bench.open(MORE, "more")
    bench.idle()

    assert not attack.ran.exists()
    assert bench.conclusions(bench.head(number)) == GREEN
    bench.github.merge(SHOP, number, author="ann")
    bench.idle()
    assert bench.record(number).state is PullState.PROMOTED
    assert bench.planner_state()["environments"]["prod"]["models"]["shop.orders"] == PROJECT["models/orders.sql"]
    assert not attack.ran.exists()


@pytest.fixture(name="github", scope="module")
def _github(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    with Sandbox(tmp_path_factory.mktemp("github")) as sandbox:
        sandbox.add_user("ann")
        sandbox.create_repository(SHOP, FILES, private=True)
        sandbox.install_app(SHOP)
        sandbox.commit(SHOP, "change", {"models/b.sql": "SELECT 3\n"}, "A change", author="ann")
        yield sandbox


def patiently(checkout: Checkout, github: Sandbox) -> tuple[dict[str, str], str]:
    """Main's files and what a merge makes of one; as a job does, it comes back after a failure."""
    for _ in range(3):
        try:
            checkout.fetch("main")
            checkout.fetch("change")
            merged = checkout.merge(github.head(SHOP), github.head(SHOP, "change")).commit
            with checkout.files(checkout.head("main")) as place:
                queries = {str(path.relative_to(place)): path.read_text() for path in place.rglob("*.sql")}
            return queries, str(checkout.read(merged, "models/b.sql"))
        except CheckoutFailed:
            continue
    raise AssertionError("the checkout did not mend")


@pytest.mark.parametrize("poison", POISONS, ids=lambda poison: poison.__name__)
def test_an_object_is_read_as_the_commit_has_it_or_fetched_again(
    github: Sandbox, tmp_path: Path, poison: Callable[[Attack], None]
) -> None:
    """Behaviour 43: what lies under an object's name is believed when it hashes to that name, whoever fetched it."""

    def open_checkout() -> Checkout:
        return Checkout(tmp_path / "home", SHOP, github.clone_url(SHOP), lambda: github.installation_token(SHOP))

    checkout = open_checkout()
    assert patiently(checkout, github) == (FILES, "SELECT 3\n")
    attack = Attack(tmp_path / "home", github.state.git(SHOP), tmp_path)
    before = {path.name for path in attack.aside.iterdir()}
    poison(attack)

    another = open_checkout()
    assert patiently(another if poison in STARTED_AGAIN else checkout, github) == (FILES, "SELECT 3\n")
    assert before <= {path.name for path in attack.aside.iterdir()}


def test_attributes_of_a_pull_request_change_no_byte(github: Sandbox, tmp_path: Path) -> None:
    """Behaviour 43: line endings, keywords, encodings, archives and filters: what is planned is what GitHub shows."""
    text = "SELECT 1 AS id -- $Id$ $Format:%H$ \u00e9\r\n, 2 AS more\n"
    attributes = "*.sql text eol=crlf ident export-subst working-tree-encoding=UTF-16 filter=lfs merge=union\n"
    files = {"models/a.sql": text, ".gitattributes": attributes}
    commit = github.commit(SHOP, "attributes", files, "Attributes", author="ann")
    checkout = Checkout(tmp_path / "home", SHOP, github.clone_url(SHOP), lambda: github.installation_token(SHOP))
    checkout.fetch("attributes")

    with checkout.files(commit) as place:
        assert (place / "models" / "a.sql").read_bytes() == text.encode()
    assert checkout.read(commit, "models/a.sql") == text


def test_a_merge_believes_no_older_commit_of_the_mirror_that_was_read_before(github: Sandbox, tmp_path: Path) -> None:
    """With another tree under the merge base's name, a side's change would seem to be none."""
    sides = {"left": {"models/a.sql": "SELECT 2\n"}, "right": {"models/b.sql": "SELECT 4\n"}}
    left, right = (github.commit(SHOP, side, files, "A side", author="ann") for side, files in sides.items())
    checkout = Checkout(tmp_path / "home", SHOP, github.clone_url(SHOP), lambda: github.installation_token(SHOP))
    for side in sides:
        checkout.fetch(side)
    merged = checkout.merge(left, right)
    attack, by = Attack(tmp_path / "home", github.state.git(SHOP), tmp_path), "a <a@b> 1 +0000"
    text = f"tree {attack.oid(f'{right}^{{tree}}')}\nauthor {by}\ncommitter {by}\n\nEvil\n"
    attack.put(attack.oid("main"), "commit", text.encode())

    with pytest.raises(Tampered):
        checkout.merge(left, right)
    for side in sides:
        checkout.fetch(side)
    assert checkout.merge(left, right) == merged
