"""A server of TLS on this machine, with a certificate of its own."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec


def write_certificate(folder: Path) -> tuple[Path, Path]:
    """The files of a certificate for `localhost`, and of its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(UTC)
    builder = x509.CertificateBuilder(name, name, key.public_key(), 1, now - timedelta(1), now + timedelta(1))
    builder = builder.add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    certificate = builder.sign(key, hashes.SHA256())
    plain = serialization.NoEncryption()
    pem, form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    (folder / "certificate.pem").write_bytes(certificate.public_bytes(pem))
    (folder / "key.pem").write_bytes(key.private_bytes(pem, form, plain))
    return folder / "certificate.pem", folder / "key.pem"


@contextmanager
def serve_tls(folder: Path, content: bytes) -> Iterator[tuple[int, Path]]:
    """The port of a server that answers everything with this, and the file of its certificate."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    class Server(ThreadingHTTPServer):
        def handle_error(self, request: object, client_address: object) -> None:
            """Say nothing: who asked did not trust us."""

    certificate, key = write_certificate(folder)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    with Server(("127.0.0.1", 0), Handler) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        try:
            yield server.server_port, certificate
        finally:
            server.shutdown()
            thread.join()
