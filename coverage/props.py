"""What strikes are played with: files, servers that refuse, small and read-only disks, memory groups. All are undone.

`Props.fill` makes what an argument names in braces when it is first asked for; leaving the context takes all away.
"""

from __future__ import annotations

import contextlib
import os
import re
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType

from crashpath.coverage.drillgraphs import FILES

_BRACES = re.compile(r"\{([a-z0-9_-]+)\}")
_GROUPS = Path("/sys/fs/cgroup/memory")
GROUP_MIB = 48


class Props:
    """Makes props in ``folder`` on demand, each once, and takes them away in the end. One thread uses it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._made: dict[str, str] = {}
        self._kills = 0
        self._stack = ExitStack()

    def __enter__(self) -> Props:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def fill(self, argument: str) -> str:
        """Return ``argument`` with each name in braces replaced by the file, folder or address of that prop."""
        return _BRACES.sub(lambda found: self._get(found[1]), argument)

    def observe(self) -> str:
        """Say what the props themselves saw since they were asked last: how often the kernel killed in a group."""
        group = self._made.get("memory-group")
        if group is None:
            return ""
        control = Path(group, "memory.oom_control").read_text(encoding="ascii")
        kills = sum(int(line.split()[1]) for line in control.splitlines() if line.startswith("oom_kill "))
        before, self._kills = self._kills, kills
        return f"oom_kill {kills - before}" if kills > before else ""

    def _get(self, name: str) -> str:
        if name not in self._made:
            if name in FILES:
                path = self._folder / name
                FILES[name](path)
                self._made[name] = str(path)
            else:
                self._made[name] = self._stack.enter_context(_PLACES[name](self._folder))
        return self._made[name]


@contextmanager
def answering(status: int) -> Iterator[str]:
    """Serve ``status`` to every request on the loopback; yields the address of a file there."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            """Stay silent."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/models/model.onnx"
    finally:
        server.shutdown()
        server.server_close()
        thread.join(5)


@contextmanager
def accepting(*, answer: bool) -> Iterator[str]:
    """Take connections and never answer, or close each at once; yields the address of a file there."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=64)
    kept: list[socket.socket] = []

    def serve() -> None:
        with contextlib.suppress(OSError):  # the listener was closed
            while True:
                peer, _ = listener.accept()
                if answer:
                    peer.recv(4096)
                    peer.close()
                else:
                    kept.append(peer)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/models/model.onnx"
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join(5)
        for peer in kept:
            peer.close()


@contextmanager
def refusing() -> Iterator[str]:
    """Hold a port that is bound and not listened on, so nobody else takes it; yields the address of a file there."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{held.getsockname()[1]}/models/model.onnx"


@contextmanager
def without_tls() -> Iterator[str]:
    """Speak plain HTTP where TLS is expected."""
    with answering(400) as address:
        yield address.replace("http://", "https://")


@contextmanager
def unresolved() -> Iterator[str]:
    """Yield an address whose name nobody knows: the top domain ``invalid`` is reserved for that."""
    yield "http://models.registry.invalid/model.onnx"


@contextmanager
def disk(folder: Path, options: str) -> Iterator[str]:
    """Mount a small memory disk with these mount options; yields its folder."""
    place = folder / f"disk-{options.replace(',', '-').replace('=', '-')}"
    place.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(place)], check=True, capture_output=True)
    try:
        yield str(place)
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True, capture_output=True)
        place.rmdir()


@contextmanager
def memory_group(folder: Path) -> Iterator[str]:
    """Make a memory group of `GROUP_MIB` MiB; yields its folder. It goes when the processes in it have gone."""
    group = _GROUPS / f"{folder.name}-{os.getpid()}"
    group.mkdir()
    (group / "memory.limit_in_bytes").write_text(str(GROUP_MIB << 20), encoding="ascii")
    try:
        yield str(group)
    finally:
        for _ in range(100):
            with contextlib.suppress(OSError):  # busy while a process that was killed is taken down
                group.rmdir()
                break
            time.sleep(0.05)


_PLACES: dict[str, Callable[[Path], AbstractContextManager[str]]] = {
    "address-401": lambda folder: answering(401),
    "address-403": lambda folder: answering(403),
    "address-silent": lambda folder: accepting(answer=False),
    "address-reset": lambda folder: accepting(answer=True),
    "address-refused": lambda folder: refusing(),
    "address-tls": lambda folder: without_tls(),
    "address-unresolved": lambda folder: unresolved(),
    "small-disk": lambda folder: disk(folder, "size=256k"),
    "read-only-disk": lambda folder: disk(folder, "size=256k,ro"),
    "memory-group": memory_group,
}
