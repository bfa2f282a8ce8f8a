"""Servers on the loopback that refuse, stay silent, stop half-way: what the fetching faults talk to.

They run in threads of the fault's own process, and end with it.
"""

from __future__ import annotations

import socket
import ssl
import struct
import subprocess
import threading
from pathlib import Path

_REASONS = {401: "Unauthorized", 403: "Forbidden", 407: "Proxy Authentication Required"}


def free_port() -> int:
    """Return a port that nobody listens on: a connection to it is refused."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def answer(status: int, headers: str = "") -> int:
    """Answer every request with ``status``. Returns the port."""
    body = _REASONS[status].encode()
    head = f"HTTP/1.1 {status} {_REASONS[status]}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n{headers}\r\n"

    def reply(peer: socket.socket) -> None:
        peer.recv(65536)
        peer.sendall(head.encode() + body)
        peer.close()

    return _serve(reply)


def silent() -> int:
    """Take connections and requests and never answer. Returns the port."""
    kept: list[socket.socket] = []
    return _serve(kept.append)


def half() -> int:
    """Promise a file, send a part of it, then stop. Returns the port."""
    kept: list[socket.socket] = []

    def reply(peer: socket.socket) -> None:
        peer.recv(65536)
        peer.sendall(
            b"HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\nContent-Length: 90000000\r\n\r\n"
            + bytes(5000)
        )
        kept.append(peer)

    return _serve(reply)


def closing(*, reset: bool) -> int:
    """Close every connection without an answer, by a reset or in order. Returns the port."""

    def reply(peer: socket.socket) -> None:
        if reset:
            peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        else:
            peer.recv(65536)
        peer.close()

    return _serve(reply)


def full() -> int:
    """Listen with a queue that is full: new connections are not taken, and time out. Returns the port."""
    server = socket.socket()
    server.bind(("127.0.0.1", 0))
    server.listen(0)
    port = int(server.getsockname()[1])
    _KEPT.append(server)
    for _ in range(3):
        peer = socket.socket()
        peer.setblocking(False)
        peer.connect_ex(("127.0.0.1", port))
        _KEPT.append(peer)
    return port


def self_signed(folder: Path) -> int:
    """Serve TLS with a certificate that nobody trusts, made by openssl in ``folder``. Returns the port."""
    key, certificate = folder / "tls.key", folder / "tls.crt"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    extension = ["-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]
    subprocess.run(
        [*command, *extension, "-keyout", str(key), "-out", str(certificate)], check=True, capture_output=True
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)

    def reply(peer: socket.socket) -> None:
        try:
            context.wrap_socket(peer, server_side=True).close()
        except OSError:
            peer.close()

    return _serve(reply)


_KEPT: list[socket.socket] = []


def _serve(reply: object) -> int:
    server = socket.create_server(("127.0.0.1", 0), backlog=64)
    assert callable(reply)

    def loop() -> None:
        while True:
            peer, _ = server.accept()
            threading.Thread(target=reply, args=(peer,), daemon=True).start()

    threading.Thread(target=loop, daemon=True).start()
    return int(server.getsockname()[1])
