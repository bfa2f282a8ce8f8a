"""Faults of fetching a model: refused, forbidden, not trusted, unknown, reset, and never answered, by many clients."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass

from crashpath.coverage import netserver
from crashpath.coverage.app import Code
from crashpath.coverage.fault import Arena, Fault
from crashpath.coverage.native import write_script

SHORT, LONG = 1.0, 15.0  # seconds that a client waits: for a late answer, and for a refusal
URL = "{scheme}://{host}:{port}/{place}/{model}/{file}"


@dataclass(frozen=True, slots=True)
class Client:
    """How a library fetches ``url``. ``phase`` infer means a call to another service while serving."""

    library: str
    imports: str
    body: str
    needs: tuple[str, ...] = ()
    timeout_s: float = 20.0


CLIENTS = {
    "urllib": Client(
        "urllib",
        "import urllib.request",
        """
        with urllib.request.urlopen(url, timeout=seconds) as response:
            return response.read()
        """,
    ),
    "requests": Client(
        "requests",
        "import requests",
        """
        response = requests.get(url, timeout=seconds)
        response.raise_for_status()
        return response.content
        """,
        ("module:requests",),
    ),
    "session": Client(
        "requests",
        "import requests\nfrom requests.adapters import HTTPAdapter, Retry",
        """
        session = requests.Session()
        session.mount("http", HTTPAdapter(max_retries=Retry(total=2, backoff_factor=0.05)))
        with session.get(url, stream=True, timeout=seconds) as response:
            response.raise_for_status()
            return b"".join(response.iter_content(1 << 16))
        """,
        ("module:requests",),
    ),
    "urllib3": Client(
        "urllib3",
        "import urllib3",
        """
        pool = urllib3.PoolManager(timeout=seconds, retries=1)
        return pool.request("GET", url).data
        """,
        ("module:urllib3",),
    ),
    "httpx": Client(
        "httpx",
        "import httpx2 as httpx",
        """
        response = httpx.get(url, timeout=seconds)
        response.raise_for_status()
        return response.content
        """,
        ("module:httpx2",),
    ),
    "asyncio": Client(
        "asyncio",
        "import asyncio\nfrom urllib.parse import urlsplit",
        """
        return asyncio.run(asyncio.wait_for(read(url), seconds))


async def read(url):
    parts = urlsplit(url)
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
    writer.write(b"GET " + parts.path.encode() + b" HTTP/1.0\\r\\n\\r\\n")
    return await reader.readexactly(4096)
        """,
    ),
    "psycopg": Client(
        "psycopg",
        "from urllib.parse import urlsplit\n\nimport psycopg",
        """
        parts = urlsplit(url)
        with psycopg.connect(host=parts.hostname, port=parts.port, dbname="registry", connect_timeout=2) as registry:
            return registry.execute("select path from artifacts").fetchone()
        """,
        ("module:psycopg",),
    ),
}
SHELL = {
    "curl": "curl -fsS --max-time {seconds} -o {target} {url}",
    "wget": "wget -nv -t 1 -T {seconds} -O {target} {url}",
    "git": "git -c http.lowSpeedTime=1 -c http.lowSpeedLimit=1000 clone --depth 1 {url} {folder}",
}


def _url(arena: Arena, mode: str) -> str:
    scheme, host = "http", arena.rng.choice(("127.0.0.1", "localhost"))
    port = {
        "401": lambda: netserver.answer(401, 'WWW-Authenticate: Bearer realm="models"\r\n'),
        "403": lambda: netserver.answer(403),
        "refused": netserver.free_port,
        "reset": lambda: netserver.closing(reset=True),
        "closed": lambda: netserver.closing(reset=False),
        "unknown": lambda: arena.rng.choice((80, 443, 8080, 9000)),
        "tls": lambda: netserver.self_signed(arena.folder),
        "silent": netserver.silent,
        "half": netserver.half,
        "connect": netserver.full,
    }[mode]()
    if mode == "unknown":
        host = arena.rng.choice(("models", "artifacts", "registry", "minio", "model-store.ml")) + ".invalid"
    elif mode in ("connect", "reset"):
        host = "127.0.0.1"
    scheme = "https" if mode == "tls" else scheme
    place = arena.rng.choice(("models", "artifacts/prod", "v1/blobs", "team-search"))
    file = arena.variation.stem + arena.rng.choice((".onnx", ".safetensors", ".pt", ".tar.gz"))
    return URL.format(scheme=scheme, host=host, port=port, place=place, model=arena.variation.model, file=file)


def _fetch(client: Client, mode: str, phase: str) -> Callable[[Arena], None]:
    def run(arena: Arena) -> None:
        body, _, rest = client.body.partition("\n\n\nasync")
        definitions = "async" + rest if rest else ""
        arena.serve(
            Code.of(
                body,
                client.imports,
                definitions=definitions,
                phase=phase,
                once=mode in ("silent", "half", "connect"),
                url=_url(arena, mode),
                seconds=SHORT if mode in ("silent", "half", "connect") else LONG,
            )
        )

    return run


def _shell(program: str, mode: str) -> Callable[[Arena], None]:
    """Run the program under a shell script, from a process that lives on as the server."""

    def run(arena: Arena) -> None:
        import subprocess

        target = arena.path("models/{model}.bin")
        command = SHELL[program].format(
            seconds=1 if mode in ("silent", "half") else 15,
            target=target,
            folder=target.with_suffix(""),
            url=_url(arena, mode),
        )
        after = arena.rng.choice(
            (
                "exit $?",
                'echo "model download failed (exit $?)" >&2; exit 1',
                'echo "init container: fetch failed with $?"; exit 1',
            )
        )
        script = write_script(arena, f'echo "fetching {arena.variation.model}"\n{command}\n{after}')
        os.chdir(arena.root)
        raise SystemExit(subprocess.run(["bash", str(script)], check=False).returncode)

    return run


_TITLES = {
    "401": "fetch what needs a login",
    "403": "fetch what is forbidden",
    "refused": "fetch from a port where nobody listens",
    "reset": "fetch from a server that resets",
    "closed": "fetch from a server that hangs up",
    "unknown": "fetch from a host that has no address",
    "tls": "fetch from a server that is not trusted",
    "silent": "fetch from a server that never answers",
    "half": "fetch a file that stops half-way",
    "connect": "fetch from a server that takes no connection",
}
_NO = {
    "urllib": ("401", "refused", "closed", "unknown", "tls"),
    "requests": ("401", "403", "refused", "reset", "unknown", "tls"),
    "session": ("403", "refused"),
    "urllib3": ("refused", "reset", "unknown"),
    "httpx": ("401", "403", "refused", "unknown", "tls"),
    "asyncio": ("refused", "closed"),
    "psycopg": ("refused", "unknown"),
}
_LATE = {
    "urllib": ("silent", "half"),
    "requests": ("silent", "connect"),
    "session": ("half",),
    "urllib3": ("silent",),
    "httpx": ("silent", "connect"),
    "asyncio": ("silent",),
    "psycopg": ("silent",),
}
_SHELL_NO = {"curl": ("403", "refused", "unknown", "tls"), "wget": ("401", "refused"), "git": ("refused", "403")}
_SHELL_LATE = {"curl": ("silent", "half"), "wget": ("silent",)}


def _table(modes: dict[str, tuple[str, ...]], failure: str) -> list[Fault]:
    return [
        Fault(
            f"fetch-{name}-{mode}",
            failure,
            "load" if failure == "load_timeout" else "prepare",
            CLIENTS[name].library,
            f"{_TITLES[mode]} ({name})",
            _fetch(CLIENTS[name], mode, "load"),
            CLIENTS[name].needs + (("openssl",) if mode == "tls" else ()),
            CLIENTS[name].timeout_s,
        )
        for name, known in modes.items()
        for mode in known
    ]


def _shell_table(modes: dict[str, tuple[str, ...]], failure: str) -> list[Fault]:
    return [
        Fault(
            f"fetch-{name}-{mode}",
            failure,
            "prepare" if failure == "network_auth" else "load",
            name,
            f"{_TITLES[mode]} ({name})",
            _shell(name, mode),
            (name, "bash", "openssl"),
        )
        for name, known in modes.items()
        for mode in known
    ]


_SERVING = tuple(
    Fault(
        f"upstream-{name}-silent",
        "hang",
        "infer",
        CLIENTS[name].library,
        f"a request to another service is never answered ({name})",
        _fetch(CLIENTS[name], "silent", "infer"),
        CLIENTS[name].needs,
    )
    for name in ("urllib", "requests", "httpx", "asyncio")
)

FAULTS: tuple[Fault, ...] = (
    *_table(_NO, "network_auth"),
    *_table(_LATE, "load_timeout"),
    *_shell_table(_SHELL_NO, "network_auth"),
    *_shell_table(_SHELL_LATE, "load_timeout"),
    *_SERVING,
)
