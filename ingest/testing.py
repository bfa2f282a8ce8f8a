"""Helpers for tests and benchmarks of the store: made-up analyses, and a real PostgreSQL for a while."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

from crashpath.ingest.model import Analysis, Facts, Frame, Parsed, Part, Record, Role, Root, Signature, Thrown, Variant

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)
_CUES = ("oom_host", "load_timeout", "tokenizer", "shape_inference", None)
_SERVER_USER = "nobody"  # PostgreSQL refuses to run as root


def made_up(
    n: int,
    *,
    offset: int | None = None,
    kinds: int = 50,
    day: int | None = None,
    release: str | None = None,
    extra: str = "",
    stamped: bool = True,
) -> Analysis:
    """Return the ``n``-th made-up analysis: ``kinds`` signatures in turn, 2 releases, 3 platforms, 2 paths, 30 days."""
    kind = n % kinds
    at = EPOCH + timedelta(days=n % 30 if day is None else day, seconds=n % 86_400)
    facts = Facts(
        release=release or f"1.{n % 2}", platform=("linux", "android", "k8s")[n % 3], host=f"node-{n % 7}",
        model="bert", path=("ort", "torchscript")[n % 2], phase=("load", "infer")[n % 2], attempt_id=f"a{n}",
    )  # fmt: skip
    message = f"failure of kind {kind} with {n % 3} bytes{extra}"
    frame = Frame(f"run_{kind}", "server.engine", True)
    text = f"Traceback (most recent call last):\n  in run_{kind}\nRuntimeError: {message}\nworker exited"
    root = Root(
        "RuntimeError", message, 2, "python-raise", _CUES[kind % len(_CUES)],
        (Role.CONTEXT, Role.CONTEXT, Role.ROOT, Role.CASCADE),
    )  # fmt: skip
    masked = f"failure of kind {kind} with <n> bytes"
    tree = Part("signature", "", (Part("type", "RuntimeError"), Part("message", masked)))
    start = n * 200 if offset is None else offset
    return Analysis(
        Record("app.log", start, start + len(text), text, facts=facts, at=at if stamped else None),
        Parsed("python", (Thrown("RuntimeError", message, 2, (frame,)),)),
        root,
        Variant(("RuntimeError",), "RuntimeError", message, (frame,)),
        Signature(f"sig1-{kind:016x}", f"RuntimeError: {masked}", tree),
    )


def same(text: str) -> str:
    """Redact nothing."""
    return text


@contextmanager
def temporary_postgres() -> Iterator[str]:
    """Run a PostgreSQL of its own on a local socket; yield a URL without database name at its end.

    Raises ``FileNotFoundError`` where PostgreSQL is not installed.
    """
    binaries = _postgres_binaries()
    with tempfile.TemporaryDirectory(prefix="cp-pg-") as folder:
        data = Path(folder) / "data"
        if os.geteuid() == 0:
            shutil.chown(folder, _SERVER_USER)
        _as_server_user([binaries / "initdb", "-D", data, "-U", "crashpath", "-A", "trust", "-N", "-E", "UTF8"])
        port = _free_port()
        command: list[str | Path] = [binaries / "postgres", "-D", data, "-k", folder, "-p", str(port)]
        command += ["-c", "listen_addresses=", "-c", "fsync=off"]
        log = (Path(folder) / "log").open("wb")
        server = subprocess.Popen(_command(command), stdout=log, stderr=log, start_new_session=True, cwd="/")
        try:
            _wait_until_it_answers(server, Path(folder), port)
            yield f"postgresql+psycopg://crashpath@/{{name}}?host={folder}&port={port}"
        finally:
            server.send_signal(signal.SIGQUIT)  # its immediate shutdown: nothing here is kept
            server.wait(timeout=30)
            log.close()


def new_database(template: str, name: str) -> str:
    """Make an empty database on the server of ``temporary_postgres`` and return its URL."""
    from sqlalchemy import create_engine

    engine = create_engine(template.format(name="postgres"), isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.exec_driver_sql(f'CREATE DATABASE "{name}"')
    engine.dispose()
    return template.format(name=name)


def _postgres_binaries() -> Path:
    found = shutil.which("initdb")
    if found is not None:
        return Path(found).resolve().parent
    packaged = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    if not packaged:
        raise FileNotFoundError("PostgreSQL (initdb) is not installed")
    return packaged[-1].parent


def _command(command: Sequence[str | Path]) -> list[str]:
    plain = [str(part) for part in command]
    return ["setpriv", "--reuid", _SERVER_USER, "--clear-groups", *plain] if os.geteuid() == 0 else plain


def _as_server_user(command: Sequence[str | Path]) -> None:
    subprocess.run(_command(command), check=True, capture_output=True, cwd="/")


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def _wait_until_it_answers(server: subprocess.Popen[bytes], folder: Path, port: int) -> None:
    import psycopg

    for _ in range(300):
        try:
            psycopg.connect(host=str(folder), port=port, user="crashpath", dbname="postgres").close()
            return
        except psycopg.OperationalError:
            if server.poll() is not None:
                raise RuntimeError((folder / "log").read_text(errors="replace")) from None
            time.sleep(0.1)
    raise TimeoutError("PostgreSQL did not answer in 30 s")
