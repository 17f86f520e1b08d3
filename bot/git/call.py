"""One call of git, with a git folder, a configuration and an environment that the service makes for it and removes.

Of a mirror git sees the objects alone. No file that project code might write is its configuration, a hook, an
attribute, a reference or a way to other objects; and what runs a program or leads elsewhere is set on the command's
own configuration too, which wins over every file.
"""

import base64
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, NamedTuple
from urllib.parse import urlsplit

GIT_SECONDS = 600
EMPTY_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
NOTHING = ":"  # a program that does nothing
FIXED: Mapping[str, str] = {
    # What runs a program.
    "core.alternateRefsCommand": NOTHING,
    "core.askPass": NOTHING,
    "core.editor": NOTHING,
    "core.fsmonitor": "false",
    "core.gitProxy": "",
    "core.hooksPath": os.devnull,
    "core.pager": "cat",
    "core.sshCommand": "false",
    "credential.helper": "",
    "diff.external": "",
    "gpg.program": "false",
    "merge.default": "text",
    # What changes a text or a history on the way.
    "core.attributesFile": os.devnull,
    "core.autocrlf": "false",
    "core.commitGraph": "false",
    "core.multiPackIndex": "false",
    "core.symlinks": "false",
    "core.useReplaceRefs": "false",
    "merge.renormalize": "false",
    # Where the token goes.
    "http.cookieFile": "",
    "http.extraHeader": "",
    "http.proxy": "",
    "http.sslVerify": "true",
    "protocol.allow": "never",
    "protocol.http.allow": "always",
    "protocol.https.allow": "always",
    # What nobody asked for.
    "fetch.fsckObjects": "true",
    "fetch.recurseSubmodules": "false",
    "fetch.writeCommitGraph": "false",
    "gc.auto": "0",
    "maintenance.auto": "false",
    "submodule.recurse": "false",
    "transfer.bundleURI": "false",
}
IDENTITY = {
    f"GIT_{who}_{what}": value
    for who in ("AUTHOR", "COMMITTER")
    for what, value in (("NAME", "mergeplan"), ("EMAIL", "mergeplan@localhost"), ("DATE", "2000-01-01T00:00:00Z"))
}
KEPT = ("PATH", "LANG", "TMPDIR", "SSL_CERT_FILE", "SSL_CERT_DIR")


class CheckoutFailed(Exception):
    """Git could not do it; the text is a sentence, and holds no token. After so many `tries` it is no use to go on."""

    tries: ClassVar[int] = 3


class ServerUnreachable(CheckoutFailed):
    """The server did not answer, or not with what it should: that may pass."""

    tries: ClassVar[int] = 30


class BadCommit(CheckoutFailed):
    """A commit that only another commit can fix: its own content cannot be fetched, or written to a disk."""

    tries: ClassVar[int] = 1

    def __init__(self, message: str, path: str = "") -> None:
        super().__init__(message)
        self.path = path  # of the file, '' for none


@dataclass(frozen=True)
class GitCall:
    """A git folder made for one call: the arguments that name it, and the environment that goes with it."""

    folder: Path
    environment: Mapping[str, str]

    @property
    def argv(self) -> tuple[str, ...]:
        return ("git", f"--git-dir={self.folder}")


@contextmanager
def open_git_folder(objects: Path, tips: Iterable[str] = (), url: str = "", token: str = "") -> Iterator[GitCall]:
    """Open a git folder over a folder of objects, for one call.

    `tips` are commits that are there with all they need, so that a fetch asks only for what is newer; the token is for
    the host of `url` and reaches git in its environment, never in argv or a file.
    """
    if os.path.lexists(neighbours := objects / "info"):  # its alternates: git follows them with any options
        remove_path(neighbours)
    with tempfile.TemporaryDirectory(prefix="mergeplan-git-") as made:
        folder = Path(made)
        (folder / "refs").mkdir()
        (folder / "HEAD").write_text("ref: refs/heads/none\n")
        (folder / "config").write_text("[core]\n\trepositoryformatversion = 0\n\tbare = true\n")
        (folder / "packed-refs").write_text("".join(f"{tip} refs/tips/{tip}\n" for tip in sorted(set(tips))))
        yield GitCall(folder, _build_environment(folder, objects, url, token))


def remove_path(path: Path) -> None:
    """Remove a file, a link or a folder; a link is not followed."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


class GitEnd(NamedTuple):
    """The end of a command: its exit code, its standard output, and its standard error."""

    code: int
    out: str
    errors: str


def run_git(call: GitCall, *arguments: str, input_lines: Iterable[str] = ()) -> GitEnd:
    """Run one command to its end, with `input_lines` as lines of its input; raise CheckoutFailed on a timeout."""
    try:
        done = subprocess.run(
            [*call.argv, *arguments],
            env=dict(call.environment),
            cwd=call.folder,
            input="".join(f"{line}\n" for line in input_lines).encode(),
            capture_output=True,
            timeout=GIT_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise CheckoutFailed(f"`git {arguments[0]}` took longer than {GIT_SECONDS} seconds.") from None
    texts = (text.decode("utf-8", "replace") for text in (done.stdout, done.stderr))
    return GitEnd(done.returncode, *texts)


def _build_environment(folder: Path, objects: Path, url: str, token: str) -> dict[str, str]:
    config = dict(FIXED)
    if token:
        place = urlsplit(url)
        basic = base64.b64encode(f"x-access-token:{token}".encode()).decode()
        config[f"http.{place.scheme}://{place.netloc}/.extraHeader"] = f"Authorization: Basic {basic}"
    pairs = {"GIT_CONFIG_COUNT": str(len(config))}
    for index, (key, value) in enumerate(config.items()):
        pairs |= {f"GIT_CONFIG_KEY_{index}": key, f"GIT_CONFIG_VALUE_{index}": value}
    return {
        **{name: os.environ[name] for name in KEPT if name in os.environ},
        **pairs,
        **IDENTITY,
        "HOME": str(folder),
        "LC_ALL": "C.UTF-8",  # GitEnd reads what git says
        "XDG_CONFIG_HOME": str(folder),
        "GIT_ALLOW_PROTOCOL": "http:https",
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_ATTR_SOURCE": EMPTY_TREE,
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_SYSTEM": os.devnull,
        "GIT_GRAFT_FILE": os.devnull,
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_OBJECT_DIRECTORY": str(objects),
        "GIT_TERMINAL_PROMPT": "0",
    }
