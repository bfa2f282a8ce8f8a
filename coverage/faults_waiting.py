"""Faults of waiting with the standard library: deadlines, watchdogs and sockets that nobody answers."""

from __future__ import annotations

from crashpath.coverage import localhub
from crashpath.coverage.app import Code
from crashpath.coverage.drillplan import BOUND_S, DrillPlan
from crashpath.coverage.fault import Arena, Fault

_STUCK = """
def wait_for_gpu_lock(lock):
    with lock:
        return True


def compute(batch):
    lock = threading.Lock()
    lock.acquire()  # the worker that holds it died
    return wait_for_gpu_lock(lock)
"""


def _future(arena: Arena) -> None:
    seconds = arena.rng.choice((0.5, 1, 1.5, 2))
    # the interpreter would wait for the stuck thread at exit: a server ends itself after the error is logged
    arena.serve(
        Code.of(
            f"""
            pool = ThreadPoolExecutor(max_workers=2, thread_name_prefix="infer")
            try:
                return pool.submit(compute, batch).result(timeout={seconds})
            except FutureTimeout:
                logging.getLogger("watchdog").exception("inference did not finish in {seconds} s (batch %d)", batch)
                os._exit(1)
            """,
            """
            import logging
            import os
            import threading
            from concurrent.futures import ThreadPoolExecutor
            from concurrent.futures import TimeoutError as FutureTimeout
            """,
            definitions=_STUCK,
            phase="infer",
            batch=arena.variation.batch,
        )
    )


def _coroutine(arena: Arena) -> None:
    seconds = arena.rng.choice((0.5, 1, 1.5))
    arena.serve(
        Code.of(
            """
            return asyncio.run(answer(batch))
            """,
            "import asyncio",
            definitions=f"""
            async def next_batch(queue):
                return await queue.get()  # the producer is gone


            async def answer(batch):
                queue = asyncio.Queue(batch)
                return await asyncio.wait_for(next_batch(queue), timeout={seconds})
            """,
            phase="infer",
            once=True,
            batch=arena.variation.batch,
        )
    )


def _watchdog(arena: Arena) -> None:
    seconds = arena.rng.choice((1, 2))
    arena.serve(
        Code.of(
            f"faulthandler.dump_traceback_later({seconds}, exit=True)\nreturn compute(batch)",
            "import faulthandler\nimport threading",
            definitions=_STUCK,
            phase="infer",
            batch=arena.variation.batch,
        ),
        fresh=True,
    )


def _helper_program(arena: Arena) -> None:
    seconds = arena.rng.choice((1, 2))
    arena.serve(
        Code.of(
            f"""
            command = [sys.executable, "-c", "import time; time.sleep(600)", "--batch", str(batch)]
            return subprocess.run(command, check=True, capture_output=True, timeout={seconds})
            """,
            "import subprocess\nimport sys",
            phase="infer",
            once=True,
            batch=arena.variation.batch,
        )
    )


def _worker_queue(arena: Arena) -> None:
    seconds = arena.rng.choice((1, 2))
    arena.serve(
        Code.of(
            f"""
            context = multiprocessing.get_context("fork")
            requests, answers = context.Queue(), context.Queue()
            context.Process(target=worker, args=(requests, answers), name="infer-0", daemon=True).start()
            requests.put(batch)
            return wait_for_answer(answers, {seconds})
            """,
            "import multiprocessing\nimport queue\nimport time",
            definitions="""
            def worker(requests, answers):
                requests.get()
                time.sleep(600)


            def wait_for_answer(answers, seconds):
                try:
                    return answers.get(timeout=seconds)
                except queue.Empty as exc:
                    raise TimeoutError(f"worker infer-0 did not answer within {seconds} s, request abandoned") from exc
            """,
            phase="infer",
            once=True,
            batch=arena.variation.batch,
        )
    )


def _upstream(arena: Arena) -> None:
    address = localhub.silent()
    arena.serve(
        Code.of(
            """
            request = urllib.request.Request(url, data=json.dumps({"inputs": [[0.0] * width]}).encode())
            with urllib.request.urlopen(request, timeout=1) as response:
                return json.load(response)
            """,
            "import json\nimport urllib.request",
            phase="infer",
            once=True,
            url=f"{address}/v1/models/{arena.variation.model}:predict",
            width=arena.variation.width,
        )
    )


def _download_silent(arena: Arena) -> None:
    address = localhub.silent()
    arena.serve(
        Code.of(
            """
            with urllib.request.urlopen(url, timeout=1) as response, open(target, "wb") as file:
                file.write(response.read())
            """,
            "import urllib.request",
            once=True,
            url=f"{address}/models/{arena.variation.model}/{arena.variation.stem}.onnx",
            target=arena.path("models/{model}.onnx"),
        )
    )


def _download_refused(arena: Arena) -> None:
    case = arena.rng.choice(("refused", "403", "401", "reset", "tls"))
    address = {
        "refused": localhub.refusing,
        "403": lambda: localhub.answering(403, "", ""),
        "401": lambda: localhub.answering(401, "", ""),
        "reset": localhub.resetting,
        "tls": localhub.without_tls,
    }[case]()
    arena.serve(
        Code.of(
            """
            with urllib.request.urlopen(url, timeout=5) as response, open(target, "wb") as file:
                file.write(response.read())
            """,
            "import urllib.request",
            phase="prepare",
            url=f"{address}/artifacts/{arena.variation.model}/{arena.variation.stem}.safetensors",
            target=arena.path("models/{model}.safetensors"),
        )
    )


def _readiness(arena: Arena) -> None:
    """A supervisor that waits for its model server's port; the server is still busy loading."""
    seconds = arena.rng.choice((1, 2))
    arena.serve(
        Code.of(
            f"""
            server = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)", "--model", path])
            wait_until_ready(server, port, {seconds})
            """,
            "import socket\nimport subprocess\nimport sys\nimport time",
            definitions="""
            def wait_until_ready(server, port, seconds):
                deadline = time.monotonic() + seconds
                while time.monotonic() < deadline:
                    try:
                        return socket.create_connection(("127.0.0.1", port), timeout=0.2)
                    except OSError:
                        time.sleep(0.2)
                server.kill()
                raise TimeoutError(f"model server on port {port} not ready after {seconds} s, pid {server.pid} killed")
            """,
            once=True,
            path=arena.path("models/{model}.onnx"),
            port=int(localhub.refusing().rsplit(":", 1)[1]),
        )
    )


FAULTS = (
    Fault("python-future-deadline", "hang", "infer", "python", "wait for a thread that is stuck on a lock", _future),
    Fault(
        "python-coroutine-deadline", "hang", "infer", "asyncio", "wait for a queue whose producer is gone", _coroutine
    ),
    Fault("python-watchdog", "hang", "infer", "faulthandler", "a deadlock that a watchdog dumps and ends", _watchdog),
    Fault(
        "python-program-deadline", "hang", "infer", "python", "wait for a helper program that sleeps", _helper_program
    ),
    Fault("python-worker-deadline", "hang", "infer", "multiprocessing", "wait for a worker that sleeps", _worker_queue),
    Fault("python-upstream-deadline", "hang", "infer", "python", "ask a model server that never answers", _upstream),
    Fault(
        "python-download-silent",
        "load_timeout",
        "load",
        "python",
        "download from a server that never answers",
        _download_silent,
        drill=DrillPlan(
            ("load", "warmup"),
            "hit, and not back",
            "waiting.waits_for_a_server",
            "{address-silent}",
            bounded=f"{{address-silent}}|{BOUND_S}",
        ),
    ),
    Fault(
        "python-download-refused",
        "network_auth",
        "prepare",
        "python",
        "download where the answer is no",
        _download_refused,
    ),
    Fault(
        "python-not-ready",
        "load_timeout",
        "load",
        "python",
        "wait for a model server that does not listen in time",
        _readiness,
    ),
)
