"""A hub of dbt packages on this machine, for the dbt that is installed."""

from __future__ import annotations

import io
import json
import tarfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


def tarball(name: str, version: str, files: Mapping[str, str]) -> bytes:
    """A package as its repository's host packs it."""
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w:gz") as archive:
        project = {"dbt_project.yml": json.dumps({"name": name, "version": version}), **files}
        for path, text in project.items():
            member = tarfile.TarInfo(f"{name}-{version}/{path}")
            member.size = len(text.encode())
            archive.addfile(member, io.BytesIO(text.encode()))
    return content.getvalue()


@contextmanager
def serve_hub(packages: Mapping[str, Mapping[str, Mapping[str, str]]]) -> Iterator[str]:
    """The address of a hub with these packages: by `owner/name`, the files of each version."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path = self.path.removeprefix("/").removeprefix("api/v1/")
            package, _, version = path.removesuffix(".tar.gz").removesuffix(".json").partition("@")
            versions = packages.get(package, {})
            if package == "index":
                self._answer(json.dumps([*packages]).encode())
            elif version in versions:
                self._answer(tarball(package.partition("/")[2], version, versions[version]))
            elif versions:
                self._answer(json.dumps(self._index(package, versions)).encode())
            else:
                self.send_error(404)

        def _index(self, package: str, versions: Mapping[str, object]) -> dict[str, object]:
            name = package.partition("/")[2]
            entries = {
                version: {
                    "name": name, "version": version, "packages": [], "require_dbt_version": [],
                    "downloads": {"tarball": f"{address}{package}@{version}.tar.gz", "format": "tgz", "sha1": ""},
                }
                for version in versions
            }  # fmt: skip
            return {"name": name, "namespace": package.partition("/")[0], "latest": max(versions), "versions": entries}

        def _answer(self, content: bytes) -> None:
            self.send_response(200)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        address = f"http://127.0.0.1:{server.server_port}/"
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield address
        finally:
            server.shutdown()
            thread.join()
