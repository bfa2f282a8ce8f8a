"""Faults of Java services: memory, libraries, classes, files, fetches, deadlines, a crash of the machine itself."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path

from crashpath.coverage import netserver
from crashpath.coverage.fault import Arena, Fault
from crashpath.coverage.native import write_script

_NAMES = (
    ("com.example.serving", "ModelServer", "OnnxLoader", "openSession", "start"),
    ("io.example.rank", "RankingService", "EngineFactory", "create", "boot"),
    ("org.example.inference", "InferenceMain", "WeightStore", "readWeights", "initialize"),
    ("net.example.search.embed", "EmbeddingApp", "SessionPool", "borrow", "warmUp"),
)


def _compile(arena: Arena, serving: bool) -> tuple[Path, str]:
    """Compile the packaged program under names that vary. Returns the class path and the main class."""
    package, main, loader, method, wrapper = arena.rng.choice(_NAMES)
    if serving:
        method, wrapper = arena.rng.choice((("score", "handle"), ("predict", "onRequest"), ("embed", "answer")))
    source = files("crashpath.coverage").joinpath("ServeFault.java").read_text(encoding="utf-8")
    names = {"PACKAGE": package, "CLASSNAME": main, "LOADERNAME": loader, "METHODNAME": method, "WRAPPERNAME": wrapper}
    for word, name in names.items():
        source = source.replace(word, name)
    code = arena.path(f"src/{main}.java")
    code.write_text(source, encoding="utf-8")
    classes = arena.path("classes/.keep").parent
    subprocess.run(["javac", "-nowarn", "-d", str(classes), str(code)], check=True, stdout=sys.stderr)
    return classes, f"{package}.{main}"


def _java(
    step: str,
    *flags: str,
    argument: Callable[[Arena], object] = lambda arena: "",
    spoil: Callable[[Path, str], None] = lambda classes, main: None,
    as_nobody: bool = False,
    late: bool = False,
    serving: bool = False,
    after: str = "",
) -> Callable[[Arena], None]:
    """Return a fault's ``run``: compile, spoil what was compiled, start the service, tell of its exit."""

    def run(arena: Arena) -> None:
        classes, main = _compile(arena, serving)
        spoil(classes, main)
        environment = {
            **os.environ,
            "SERVE_STEP": step,
            "SERVE_ARGUMENT": str(argument(arena)),
            "SERVE_SECONDS": "1" if late else "15",
            "SERVE_SENTENCE": "request to %s failed" if serving else "model %s is not available",
            "SERVE_MODEL": arena.variation.model,
            "SERVE_DEPTH": arena.rng.choice(("0", "1", "2")),
        }
        option = " ".join(("-Xshare:auto", "-XX:-CreateCoredumpOnCrash", *flags))
        ending = arena.rng.choice(
            (
                "exit $?",
                'echo "java exited with code $?"',
                'status=$?; echo "[supervisor] process stopped, status $status"; exit $status',
            )
        )
        switch = "setpriv --reuid 65534 --regid 65534 --clear-groups " if as_nobody else ""
        script = write_script(arena, f"{switch}java {option} -cp {classes} {main}\n{after}{ending}")
        os.chdir(arena.root)
        raise SystemExit(subprocess.run(["bash", str(script)], env=environment, check=False).returncode)

    return run


def _future_version(classes: Path, main: str) -> None:
    """Mark the main class as compiled by a newer Java."""
    path = classes / (main.replace(".", "/") + ".class")
    data = bytearray(path.read_bytes())
    data[6:8] = (66).to_bytes(2, "big")
    path.write_bytes(data)


def _without(suffix: str) -> Callable[[Path, str], None]:
    def spoil(classes: Path, main: str) -> None:
        (classes / (main.replace(".", "/") + suffix)).unlink()

    return spoil


def _cut_class(classes: Path, main: str) -> None:
    path = classes / (main.replace(".", "/") + "$Helper.class")
    path.write_bytes(path.read_bytes()[:120])


def _broken_library(content: bytes) -> Callable[[Arena], object]:
    def make(arena: Arena) -> object:
        path = arena.path(f"lib/lib{arena.rng.choice(('onnxruntime4j_jni', 'tensorflow_jni', 'djl_torch'))}.so")
        path.write_bytes(content)
        return path

    return make


def _url(kind: str) -> Callable[[Arena], object]:
    def make(arena: Arena) -> object:
        ports: dict[str, Callable[[], int]] = {
            "refused": netserver.free_port,
            "silent": netserver.silent,
            "tls": lambda: netserver.self_signed(arena.folder),
        }
        scheme = "https" if kind == "tls" else "http"
        if kind == "unknown":
            return f"http://model-store.invalid:9000/models/{arena.variation.model}.onnx"
        return f"{scheme}://localhost:{ports[kind]()}/models/{arena.variation.model}/{arena.variation.stem}.onnx"

    return make


def _full_disk(arena: Arena) -> object:
    folder = arena.path("cache/.keep").parent
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(folder)], check=True)
    return folder / f"{arena.variation.stem}.bin"


def _closed_file(arena: Arena) -> object:
    path = arena.path("models/{model}.onnx")
    path.write_bytes(b"model")
    path.chmod(0)
    return path


def _fault(name: str, failure: str, phase: str, title: str, run: Callable[[Arena], None], *needs: str) -> Fault:
    return Fault(f"java-{name}", failure, phase, "java", title, run, ("java", "javac", "bash", *needs), 60.0)


LIBRARY = "dependency"
FAULTS: tuple[Fault, ...] = (
    _fault("heap", "oom_host", "load", "fill the heap", _java("heap", "-Xmx48m")),
    _fault(
        "heap-exit",
        "oom_host",
        "load",
        "fill the heap of a machine that exits on it",
        _java("heap", "-Xmx48m", "-XX:+ExitOnOutOfMemoryError"),
    ),
    _fault("direct", "oom_host", "load", "fill the direct memory", _java("direct", "-XX:MaxDirectMemorySize=16m")),
    _fault("array", "oom_host", "load", "ask for the largest array", _java("array", "-Xmx64m")),
    _fault("metaspace", "oom_host", "load", "fill the metaspace", _java("metaspace", "-XX:MaxMetaspaceSize=20m")),
    _fault(
        "library-absent",
        LIBRARY,
        "load",
        "load a library that is not there",
        _java(
            "library",
            argument=lambda arena: arena.rng.choice(
                ("onnxruntime4j_jni", "tensorflowlite_jni", "djl_torch", "opencv_java490")
            ),
        ),
    ),
    _fault(
        "library-cut",
        LIBRARY,
        "load",
        "load a library that was cut off",
        _java("library-file", argument=_broken_library(b"\x7fELF\x02\x01\x01")),
    ),
    _fault(
        "library-text",
        LIBRARY,
        "load",
        "load a library that is none",
        _java("library-file", argument=_broken_library(b"<html>404</html>" * 50)),
    ),
    _fault("native-method", LIBRARY, "load", "call a native method without its library", _java("native-method")),
    _fault(
        "class-gone",
        LIBRARY,
        "load",
        "miss a class that was there when it was compiled",
        _java("helper", spoil=_without("$Helper.class")),
    ),
    _fault(
        "class-unknown",
        LIBRARY,
        "load",
        "name a class that is not there",
        _java(
            "by-name",
            argument=lambda arena: arena.rng.choice(
                ("ai.onnxruntime.OrtEnvironment", "org.tensorflow.SavedModelBundle", "ai.djl.pytorch.engine.PtEngine")
            ),
        ),
    ),
    _fault("class-version", LIBRARY, "load", "run a class of a newer Java", _java("none", spoil=_future_version)),
    _fault("class-cut", LIBRARY, "load", "load a class that was cut off", _java("helper", spoil=_cut_class)),
    _fault(
        "file-missing",
        "load_corrupt",
        "load",
        "map a model that is not there",
        _java("map", argument=lambda arena: arena.path("models/{model}/{stem}.onnx")),
    ),
    _fault(
        "file-closed",
        "permission_disk",
        "load",
        "map a model of mode 000",
        _java("map", argument=_closed_file, as_nobody=True),
        "root",
        "setpriv",
    ),
    _fault(
        "folder-closed",
        "permission_disk",
        "load",
        "make a cache in another user's folder",
        _java("folder", argument=lambda arena: arena.root / "cache/engines", as_nobody=True),
        "root",
        "setpriv",
    ),
    _fault(
        "disk-full",
        "permission_disk",
        "prepare",
        "write past a full disk",
        _java("write", argument=_full_disk),
        "root",
        "mount",
    ),
    _fault(
        "fetch-refused",
        "network_auth",
        "prepare",
        "fetch from a port where nobody listens",
        _java("fetch", argument=_url("refused")),
    ),
    _fault(
        "fetch-unknown",
        "network_auth",
        "prepare",
        "fetch from a host that has no address",
        _java("url", argument=_url("unknown")),
    ),
    _fault(
        "fetch-tls",
        "network_auth",
        "prepare",
        "fetch from a server that is not trusted",
        _java("url", argument=_url("tls")),
        "openssl",
    ),
    _fault(
        "fetch-silent",
        "load_timeout",
        "load",
        "fetch from a server that never answers",
        _java("fetch", argument=_url("silent"), late=True),
    ),
    _fault(
        "url-silent",
        "load_timeout",
        "load",
        "read from a server that never answers",
        _java("url", argument=_url("silent"), late=True),
    ),
    _fault("future-late", "hang", "infer", "wait for a task that never ends", _java("future", serving=True)),
    _fault(
        "completable-late", "hang", "infer", "wait for a promise that nobody keeps", _java("completable", serving=True)
    ),
    _fault(
        "wild-read",
        "native_crash",
        "infer",
        "read a wild address",
        _java("wild", "-XX:ErrorFile=hs_err.log", serving=True, after="\nhead -n 40 hs_err.log\n"),
    ),
)
