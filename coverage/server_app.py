"""Write and start the small web services of the server faults, with the real gunicorn and uvicorn on the loopback."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path

from crashpath.coverage.fault import Arena
from crashpath.coverage.netserver import free_port

_WSGI = """
import os
import time

{imports}

{load}


def app(environ, start_response):
    {request}
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [b"ok"]
"""
_ASGI = """
import asyncio
import contextlib
import os
import time

{imports}

{load}


@contextlib.asynccontextmanager
async def lifespan(send):
    {startup}
    yield


async def app(scope, receive, send):
    if scope["type"] == "lifespan":
        await receive()
        try:
            async with lifespan(send):
                await send({{"type": "lifespan.startup.complete"}})
                await receive()
                await send({{"type": "lifespan.shutdown.complete"}})
        except BaseException as error:
            import traceback

            await send({{"type": "lifespan.startup.failed", "message": traceback.format_exc()}})
            raise
        return
    {request}
    await send({{"type": "http.response.start", "status": 200, "headers": []}})
    await send({{"type": "http.response.body", "body": b"ok"}})
"""


def _indented(body: str) -> str:
    return textwrap.indent(textwrap.dedent(body).strip(), "    ").strip()


def write_wsgi(arena: Arena, *, load: str = "", request: str = "pass", imports: str = "") -> Path:
    """Write a WSGI module: what it does when it is imported and at a request."""
    path = arena.path(arena.rng.choice(("wsgi.py", "service.py", "predictor.py", "inference.py")))
    source = _WSGI.format(imports=imports, load=textwrap.dedent(load).strip(), request=_indented(request))
    path.write_text(source.lstrip(), encoding="utf-8")
    return path


def write_asgi(
    arena: Arena, *, load: str = "", startup: str = "pass", request: str = "pass", imports: str = ""
) -> Path:
    """Write an ASGI module with a lifespan."""
    path = arena.path(arena.rng.choice(("main.py", "asgi.py", "api.py", "serve.py")))
    source = _ASGI.format(
        imports=imports, load=textwrap.dedent(load).strip(), startup=_indented(startup), request=_indented(request)
    )
    path.write_text(source.lstrip(), encoding="utf-8")
    return path


def gunicorn(
    arena: Arena, module: Path, *flags: str, seconds: float = 6.0, ask: bool = False, workers: int = 1
) -> None:
    """Start gunicorn's master with ``module`` and end it after ``seconds``; ``ask`` sends it a request meanwhile."""
    port = free_port()
    command = [sys.executable, "-m", "gunicorn", "--bind", f"127.0.0.1:{port}", "--workers", str(workers)]
    _run([*command, *flags, f"{module.stem}:app"], arena, port, seconds, ask)


def uvicorn(arena: Arena, target: str, *flags: str, port: int = 0, seconds: float = 40.0, ask: bool = False) -> None:
    """Start uvicorn with ``target`` (``module:app``)."""
    port = port or free_port()
    command = [sys.executable, "-m", "uvicorn", target, "--host", "127.0.0.1", "--port", str(port), "--no-use-colors"]
    _run([*command, *flags], arena, port, seconds, ask)


def _run(command: list[str], arena: Arena, port: int, seconds: float, ask: bool) -> None:
    os.chdir(arena.root)
    server = subprocess.Popen(command, cwd=arena.root)
    if ask:
        threading.Thread(target=_ask, args=(port,), daemon=True).start()
    try:
        server.wait(seconds)
    except subprocess.TimeoutExpired:
        server.terminate()
        try:
            server.wait(3)
        except subprocess.TimeoutExpired:
            server.kill()
    raise SystemExit(server.wait())


def _ask(port: int) -> None:
    """Send requests until one was taken; what comes of it is the server's affair."""
    for _ in range(200):
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/predict", timeout=30).read()
            return
        except urllib.error.URLError as error:
            if not isinstance(error.reason, ConnectionRefusedError):
                return
        except OSError:
            return
        time.sleep(0.1)
