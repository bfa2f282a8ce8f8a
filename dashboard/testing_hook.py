"""A real web server for tests of the webhook: it keeps what was posted, and answers as it is told."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Hook:
    """What a test sees of the server, and how that answers: with ``status``, after ``delay`` seconds.

    ``paths`` are those of all requests. ``drip``: a byte now and then, without an end. ``location``: where a redirect
    leads. ``hang_up``: no answer once the request was read.
    """

    port: int = 0
    status: int = 200
    delay: float = 0.0
    drip: bool = False
    hang_up: bool = False
    location: str = ""
    posts: list[dict[str, Any]] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    types: list[str] = field(default_factory=list)
    over: threading.Event = field(default_factory=threading.Event)

    @property
    def address(self) -> str:
        """Its address, with something in it that has to stay secret."""
        return f"http://127.0.0.1:{self.port}/hook/s3cr3t-t0ken"


@contextmanager
def hook_server() -> Iterator[Hook]:
    """Run the server in a thread."""
    hook = Hook()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            hook.posts.append(json.loads(body))
            hook.paths.append(self.path)
            hook.types.append(self.headers["Content-Type"])
            hook.over.wait(hook.delay)
            if hook.hang_up:
                return
            if hook.drip:
                self._drip()
                return
            self.send_response(hook.status)
            if hook.location:
                self.send_header("Location", hook.location)
            self.end_headers()

        def do_GET(self) -> None:
            hook.paths.append(self.path)
            self.send_response(200)
            self.end_headers()

        def _drip(self) -> None:
            for byte in b"HTTP/1.1 200 OK\r\n" + b"X-Slow: " + b"x" * 10_000:
                if hook.over.is_set():
                    return
                self.wfile.write(bytes([byte]))
                time.sleep(0.05)

        def log_message(self, *_: object) -> None:
            """Keep quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    hook.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield hook
    finally:
        hook.over.set()
        server.shutdown()
        server.server_close()
        thread.join()
