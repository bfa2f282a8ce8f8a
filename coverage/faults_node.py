"""Faults of Node services: memory, modules, addons, files, fetches, tokenizer files, WebAssembly, aborts."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from importlib.resources import files

from crashpath.coverage import netserver
from crashpath.coverage.fault import Arena, Fault
from crashpath.coverage.native import write_script

_NAMES = (
    ("server.js", "loadModel", "ModelService", "init"),
    ("src/worker.js", "openSession", "InferenceWorker", "start"),
    ("index.js", "createPipeline", "Pipeline", "prepare"),
    ("dist/main.js", "restoreWeights", "Engine", "boot"),
)


def _node(
    step: str,
    *flags: str,
    argument: Callable[[Arena], object] = lambda arena: "",
    as_nobody: bool = False,
    late: bool = False,
    before: str = "",
) -> Callable[[Arena], None]:
    """Return a fault's ``run``: write the service under names that vary, start it, tell of its exit."""

    def run(arena: Arena) -> None:
        file, load, owner, init = arena.rng.choice(_NAMES)
        source = files("crashpath.coverage").joinpath("serve_fault.js").read_text(encoding="utf-8")
        for word, name in {"LOADNAME": load, "OWNERNAME": owner, "INITNAME": init}.items():
            source = source.replace(word, name)
        entry = arena.path(file)
        entry.write_text(source, encoding="utf-8")
        environment = {
            **os.environ,
            "SERVE_STEP": step,
            "SERVE_ARGUMENT": str(argument(arena)),
            "SERVE_SECONDS": "1" if late else "15",
            "SERVE_MODEL": arena.variation.model,
            "SERVE_DEPTH": arena.rng.choice(("0", "0", "1", "2")),
        }
        switch = "setpriv --reuid 65534 --regid 65534 --clear-groups " if as_nobody else ""
        ending = arena.rng.choice(
            ("exit $?", 'echo "node exited with code $?"', 'echo "npm ERR! code ELIFECYCLE"; echo "npm ERR! errno 1"')
        )
        script = write_script(arena, f"{before}\n{switch}node {' '.join(flags)} {entry}\n{ending}")
        os.chdir(arena.root)
        raise SystemExit(subprocess.run(["bash", str(script)], env=environment, check=False).returncode)

    return run


def _addon(abi: int) -> Callable[[Arena], object]:
    """A native addon of another Node's interface version, or (0) one that is no library."""

    def make(arena: Arena) -> object:
        name = arena.rng.choice(("onnxruntime_binding", "tfjs_binding", "opencv4nodejs", "sharp-linux-x64"))
        path = arena.path(f"node_modules/{name.split('_')[0]}/build/{name}.node")
        if not abi:
            path.write_bytes(
                arena.rng.choice((b"<html>Not found</html>" * 9, b"version https://git-lfs.github.com/spec/v1\n" * 9))
            )
            return path
        code = arena.path("src/addon.cpp")
        code.write_text(
            files("crashpath.coverage").joinpath("native_addon.cpp").read_text(encoding="utf-8"), encoding="utf-8"
        )
        subprocess.run(["g++", "-shared", "-fPIC", f"-DADDON_ABI={abi}", "-o", str(path), str(code)], check=True)
        return path

    return make


def _address(kind: str) -> Callable[[Arena], object]:
    def make(arena: Arena) -> object:
        if kind == "connect":
            return f"127.0.0.1:{netserver.full()}"
        path = f"models/{arena.variation.model}/{arena.variation.stem}.onnx"
        if kind == "unknown":
            return f"http://{arena.rng.choice(('minio', 'models', 'artifacts'))}.invalid:9000/{path}"
        if kind == "tls":
            return f"https://localhost:{netserver.self_signed(arena.folder)}/{path}"
        ports: dict[str, Callable[[], int]] = {
            "refused": netserver.free_port,
            "reset": lambda: netserver.closing(reset=True),
            "closed": lambda: netserver.closing(reset=False),
            "silent": netserver.silent,
            "401": lambda: netserver.answer(401),
        }
        return f"http://127.0.0.1:{ports[kind]()}/{path}"

    return make


def _cut_tokenizer(arena: Arena) -> object:
    path = arena.path("models/{model}/tokenizer.json")
    vocabulary = {f"tok{arena.rng.randint(0, 99999)}": index for index in range(200)}
    text = json.dumps(
        {"version": "1.0", "model": {"type": "BPE", "vocab": vocabulary, "merges": []}},
        indent=arena.rng.choice((None, 2)),
    )
    path.write_text(text[: arena.rng.randint(40, len(text) - 40)], encoding="utf-8")
    return path


def _page_for_tokenizer(arena: Arena) -> object:
    path = arena.path("models/{model}/tokenizer.json")
    path.write_text("<!DOCTYPE html><html><body>Sign in</body></html>", encoding="utf-8")
    return path


def _full_disk(arena: Arena) -> object:
    folder = arena.path("cache/.keep").parent
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(folder)], check=True)
    return folder / f"{arena.variation.stem}.bin"


def _closed_file(arena: Arena) -> object:
    path = arena.path("models/{model}.onnx")
    path.write_bytes(b"model")
    path.chmod(0)
    return path


def _broken_wasm(arena: Arena) -> object:
    path = arena.path("dist/ort-wasm-simd.wasm")
    path.write_bytes(arena.rng.choice((b"<!DOCTYPE html>", b"\0asm\1\0\0\0\1\4\1", b"\0asm\7\0\0\0")))
    return path


def _module(arena: Arena) -> object:
    return arena.rng.choice(
        (
            "onnxruntime-node",
            "@xenova/transformers",
            "@tensorflow/tfjs-node",
            "sharp",
            "./lib/preprocess",
            "onnxruntime-web",
        )
    )


def _package(arena: Arena) -> object:
    return arena.rng.choice(("onnxruntime-node", "@huggingface/transformers", "@tensorflow/tfjs-node", "openvino-node"))


def _fault(name: str, failure: str, phase: str, title: str, run: Callable[[Arena], None], *needs: str) -> Fault:
    return Fault(f"node-{name}", failure, phase, "node", title, run, ("node", "bash", *needs), 40.0)


ROOT = ("linux", "root")
FAULTS: tuple[Fault, ...] = (
    _fault("heap", "oom_host", "load", "fill the heap", _node("heap", "--max-old-space-size=64")),
    _fault("buffer", "oom_host", "load", "ask for a buffer that cannot be", _node("buffer")),
    _fault(
        "wasm-memory",
        "oom_host",
        "load",
        "ask for memories past the limit",
        _node("wasm-memory", before="ulimit -v 30000000"),
    ),
    _fault("module", "dependency", "load", "require a module that is not there", _node("require", argument=_module)),
    _fault("package", "dependency", "load", "import a package that is not there", _node("import", argument=_package)),
    _fault("abi", "dependency", "load", "load an addon of another Node", _node("addon", argument=_addon(93)), "g++"),
    _fault("addon-text", "dependency", "load", "load an addon that is none", _node("addon", argument=_addon(0))),
    _fault(
        "refused",
        "network_auth",
        "prepare",
        "fetch from a port where nobody listens",
        _node("get", argument=_address("refused")),
    ),
    _fault(
        "fetch-refused",
        "network_auth",
        "prepare",
        "fetch() from a port where nobody listens",
        _node("fetch", argument=_address("refused")),
    ),
    _fault(
        "reset", "network_auth", "prepare", "fetch from a server that resets", _node("get", argument=_address("reset"))
    ),
    _fault(
        "closed",
        "network_auth",
        "prepare",
        "fetch from a server that hangs up",
        _node("get", argument=_address("closed")),
    ),
    _fault(
        "unknown",
        "network_auth",
        "prepare",
        "fetch from a host that has no address",
        _node("fetch", argument=_address("unknown")),
    ),
    _fault(
        "tls",
        "network_auth",
        "prepare",
        "fetch from a server that is not trusted",
        _node("get", argument=_address("tls")),
        "openssl",
    ),
    _fault(
        "unauthorised", "network_auth", "prepare", "fetch what needs a login", _node("fetch", argument=_address("401"))
    ),
    _fault(
        "silent",
        "load_timeout",
        "load",
        "fetch from a server that never answers",
        _node("fetch", argument=_address("silent"), late=True),
    ),
    _fault(
        "connect",
        "load_timeout",
        "load",
        "connect to a server that takes no connection",
        _node("connect", argument=_address("connect")),
        "linux",
    ),
    _fault(
        "file-missing",
        "load_corrupt",
        "load",
        "read a model that is not there",
        _node("open", argument=lambda arena: arena.path("models/{model}/{stem}.onnx")),
    ),
    _fault(
        "wasm-broken",
        "load_corrupt",
        "load",
        "compile a runtime that was replaced",
        _node("wasm", argument=_broken_wasm),
    ),
    _fault(
        "file-closed",
        "permission_disk",
        "load",
        "read a model of mode 000",
        _node("read", argument=_closed_file, as_nobody=True),
        *ROOT,
        "setpriv",
    ),
    _fault(
        "folder-closed",
        "permission_disk",
        "load",
        "make a cache in another user's folder",
        _node("mkdir", argument=lambda arena: arena.root / "cache/hub", as_nobody=True),
        *ROOT,
        "setpriv",
    ),
    _fault(
        "disk-full",
        "permission_disk",
        "prepare",
        "write past a full disk",
        _node("write", argument=_full_disk),
        *ROOT,
        "mount",
    ),
    _fault(
        "tokenizer-cut",
        "tokenizer",
        "load",
        "read a tokenizer file that was cut in half",
        _node("tokenizer", argument=_cut_tokenizer),
    ),
    _fault(
        "tokenizer-page",
        "tokenizer",
        "load",
        "read a page in a tokenizer's place",
        _node("tokenizer", argument=_page_for_tokenizer),
    ),
    _fault("abort", "native_crash", "infer", "abort", _node("abort")),
)
