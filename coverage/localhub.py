"""A model hub on this machine that answers badly: refusals, silence, cut connections. Real sockets, one thread each."""

from __future__ import annotations

import hashlib
import socket
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


def answering(status: int, code: str, message: str) -> str:
    """Start a hub that answers every request with ``status``, error ``code`` and ``message``; return its address."""
    return _speaking(status, {"X-Error-Code": code, "X-Error-Message": message}, b"")


def serving(content: bytes) -> str:
    """Start a hub that has every file that is asked for, all with this ``content``; return its address."""
    digest = hashlib.sha1(content, usedforsecurity=False).hexdigest()
    return _speaking(200, {"X-Repo-Commit": digest, "ETag": f'"{digest}"'}, content)


def _speaking(status: int, headers: dict[str, str], content: bytes) -> str:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            for name, value in headers.items():
                if value:
                    self.send_header(name, value)
            self.send_header("X-Request-Id", f"Root=1-{id(self):x}")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(content)

        do_HEAD = do_GET  # noqa: N815

        def log_message(self, format: str, *args: object) -> None:
            """Stay silent: the log is the client's."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_address[1]}"


def refusing() -> str:
    """Return the address of a port that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    return f"http://127.0.0.1:{port}"


def silent() -> str:
    """Start a hub that accepts connections and never answers."""
    return _accepting(lambda: time.sleep(300))


def resetting() -> str:
    """Start a hub that closes each connection without an answer."""
    return _accepting(lambda: None)


def without_tls() -> str:
    """Return an ``https`` address behind which plain HTTP is spoken."""
    return answering(400, "", "").replace("http://", "https://")


def _accepting(serve: Callable[[], object]) -> str:
    listener = socket.create_server(("127.0.0.1", 0))

    def handle(connection: socket.socket) -> None:
        with connection:
            connection.recv(65536)
            serve()

    def accept() -> None:
        while True:
            connection, _ = listener.accept()
            threading.Thread(target=handle, args=(connection,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    return f"http://127.0.0.1:{listener.getsockname()[1]}"
