"""Faults of web servers around a model: gunicorn's master and workers, uvicorn."""

from __future__ import annotations

import socket

from crashpath.coverage.fault import Arena, Fault
from crashpath.coverage.server_app import gunicorn, uvicorn, write_asgi, write_wsgi


def _request_timeout(arena: Arena) -> None:
    body = arena.rng.choice(
        ("time.sleep(60)", "while True:\n    time.sleep(0.5)", "os.wait() if False else time.sleep(90)")
    )
    gunicorn(arena, write_wsgi(arena, request=body), "--timeout", "1", seconds=12.0, ask=True)


def _request_stuck(arena: Arena) -> None:
    """The worker ignores the abort that the master sends first, so it is killed with signal 9."""
    load = "import signal\n\nsignal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGABRT})"
    request = "import signal\nsignal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGABRT})\ntime.sleep(60)"
    gunicorn(arena, write_wsgi(arena, load=load, request=request), "--timeout", "1", seconds=13.0, ask=True)


def _worker_killed(arena: Arena) -> None:
    """A watcher of memory kills a worker that grew: the master only sees signal 9."""
    load = """
    import signal
    import threading


    def watch(limit):
        while int(open("/proc/self/statm").read().split()[1]) * 4096 < limit:
            time.sleep(0.02)
        os.kill(os.getpid(), signal.SIGKILL)


    def start(server, worker):
        threading.Thread(target=watch, args=(200 << 20,), daemon=True).start()
    """
    request = (
        "start(None, None)\nkept = []\nwhile True:\n    kept.append(bytearray(b'x') * (20 << 20))\n    time.sleep(0.02)"
    )
    gunicorn(arena, write_wsgi(arena, load=load, request=request), seconds=10.0, ask=True)


def _boot_import(arena: Arena) -> None:
    name = arena.rng.choice(("tritonclient", "xformers", "fasttext", "lightgbm", "detectron2", "sherpa_onnx"))
    gunicorn(arena, write_wsgi(arena, imports=f"import {name}"), seconds=40.0)


def _boot_missing_model(arena: Arena) -> None:
    path = arena.path("models/{model}/{stem}.onnx")
    load = f'with open("{path}", "rb") as file:\n    MODEL = file.read()'
    gunicorn(arena, write_wsgi(arena, load=load), seconds=40.0)


def _worker_segfault(arena: Arena) -> None:
    request = "import ctypes\nctypes.string_at(8)"
    gunicorn(
        arena,
        write_wsgi(arena, load="import faulthandler\n\nfaulthandler.enable()", request=request),
        seconds=4.0,
        ask=True,
    )


def _no_module(arena: Arena) -> None:
    write_asgi(arena)
    uvicorn(arena, arena.rng.choice(("app.main:app", "serving.api:app", "src.server:application", "inference:app")))


def _app_import(arena: Arena) -> None:
    name = arena.rng.choice(("torchserve_utils", "sentence_splitter", "pydub", "timm", "ultralytics"))
    uvicorn(arena, f"{write_asgi(arena, imports=f'import {name}').stem}:app")


def _port_taken(arena: Arena) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        uvicorn(arena, f"{write_asgi(arena).stem}:app", port=taken.getsockname()[1])


def _startup_timeout(arena: Arena) -> None:
    startup = arena.rng.choice(
        (
            "async with asyncio.timeout(1):\n    await asyncio.sleep(60)",
            "await asyncio.wait_for(asyncio.sleep(60), timeout=1)",
            "await asyncio.wait_for(asyncio.get_running_loop().create_future(), 1)",
        )
    )
    uvicorn(arena, f"{write_asgi(arena, startup=startup).stem}:app")


def _startup_missing_model(arena: Arena) -> None:
    path = arena.path("models/{model}/{stem}.safetensors")
    startup = f'size = os.stat("{path}").st_size'
    uvicorn(arena, f"{write_asgi(arena, startup=startup).stem}:app")


def _startup_memory(arena: Arena) -> None:
    load = "import resource\n\nresource.setrlimit(resource.RLIMIT_AS, (900 << 20, 900 << 20))"
    uvicorn(arena, f"{write_asgi(arena, load=load, startup='weights = bytearray(4 << 30)').stem}:app")


def _asgi_timeout(arena: Arena) -> None:
    request = "async with asyncio.timeout(0.5):\n    await asyncio.sleep(60)"
    uvicorn(arena, f"{write_asgi(arena, request=request).stem}:app", seconds=9.0, ask=True)


def _gunicorn(name: str, failure: str, phase: str, title: str, run: object) -> Fault:
    assert callable(run)
    return Fault(f"gunicorn-{name}", failure, phase, "gunicorn", title, run, ("linux", "module:gunicorn"), 60.0)


def _uvicorn(name: str, failure: str, phase: str, title: str, run: object) -> Fault:
    assert callable(run)
    return Fault(f"uvicorn-{name}", failure, phase, "uvicorn", title, run, ("module:uvicorn",), 60.0)


FAULTS: tuple[Fault, ...] = (
    _gunicorn("request-timeout", "hang", "infer", "a worker that does not answer", _request_timeout),
    _gunicorn("request-stuck", "hang", "infer", "a worker that does not answer and has to be killed", _request_stuck),
    _gunicorn("worker-killed", "oom_host", "infer", "a worker that grew is killed", _worker_killed),
    _gunicorn("boot-import", "dependency", "load", "a worker whose app cannot be imported", _boot_import),
    _gunicorn("boot-missing-model", "load_corrupt", "load", "a worker whose model is not there", _boot_missing_model),
    _gunicorn("worker-segfault", "native_crash", "infer", "a worker that crashes in native code", _worker_segfault),
    _uvicorn("no-module", "dependency", "load", "an app module that is not there", _no_module),
    _uvicorn("app-import", "dependency", "load", "an app that imports what is not there", _app_import),
    _uvicorn("port-taken", "unclassified", "load", "a port that is taken", _port_taken),
    _uvicorn("startup-timeout", "load_timeout", "load", "a lifespan that is not ready in time", _startup_timeout),
    _uvicorn(
        "startup-missing-model", "load_corrupt", "load", "a lifespan whose model is not there", _startup_missing_model
    ),
    _uvicorn("startup-memory", "oom_host", "load", "a lifespan that allocates past the limit", _startup_memory),
    _uvicorn("request-timeout", "hang", "infer", "a request that is not answered in time", _asgi_timeout),
)
