"""The faults of a model folder as small apps: the corpus prints with them what drills raise inside the runtime.

An app has the source of the same strike, or opens the same spoiled file; nothing is raised in another way.
"""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Callable
from pathlib import Path

from crashpath.coverage.app import Code, write_app
from crashpath.coverage.fault import Arena
from crashpath.coverage.native import run_script
from crashpath.coverage.props import Props
from crashpath.coverage.spoilers import file_of, spoiler
from crashpath.coverage.strikes import module_of

_OPEN = 'return ort.InferenceSession(path, providers=["CPUExecutionProvider"])'
_RUN = """
session = ort.InferenceSession(path, providers=["CPUExecutionProvider"])
return session.run(None, {"ids": np.zeros(3, dtype=np.int64)})
"""
_WATCHED = """
session = ort.InferenceSession(path, providers=["CPUExecutionProvider"])
options = ort.RunOptions()
threading.Timer(1.0, setattr, (options, "terminate", True)).start()
return session.run(None, {"ids": np.zeros(3, dtype=np.int64)}, options)
"""
_LOADED_IN_TIME = """
loader = threading.Thread(target=ort.InferenceSession, args=(path,), daemon=True)
loader.start()
loader.join(1.5)
if loader.is_alive():
    raise TimeoutError(f"model {path} not ready after 1.5 s")
"""
_NUMPY_ORT = "import threading\n\nimport numpy as np\nimport onnxruntime as ort"
_BODIES = {"poison-loop": _WATCHED, "never-delivered": _LOADED_IN_TIME}


_WATCH = "faulthandler.dump_traceback_later(1.5, exit=True)\n"
_SUPERVISE = """
worker = subprocess.Popen([sys.executable, "-c", source + f"\\n{name}('')"])
try:
    return worker.wait(timeout=1.5)
finally:
    worker.kill()
"""


def struck(strike: str, argument: str = "", *, phase: str) -> Callable[[Arena], None]:
    """An app whose innermost call is the strike.

    One that ends the process is started by a shell, which tells of the signal; one that waits is ended by a watchdog
    that dumps the stacks.
    """

    def run(arena: Arena) -> None:
        function = strike.partition(".")[2]
        module = module_of(strike)
        kind = module.__name__.rpartition("strikes_")[2]
        source = inspect.getsource(module) + ("\n\nimport faulthandler\n" if kind == "waiting" else "")
        body = f"{_WATCH if kind == 'waiting' else ''}return {function}(argument)"
        with Props(arena.root) as props:
            code = Code.of(body, source, phase=phase, once=True, argument=props.fill(argument))
            if kind == "process":
                entry = write_app(arena.root, arena.variation, code)
                run_script(arena, f"{sys.executable} -u {entry.relative_to(arena.root)}")
            arena.serve(code, fresh=kind == "waiting")

    return run


def supervised(strike: str, *, phase: str) -> Callable[[Arena], None]:
    """An app that waits for a worker which the strike freezes, and gives it up."""

    def run(arena: Arena) -> None:
        source = inspect.getsource(module_of(strike))
        name = strike.partition(".")[2]
        arena.serve(Code.of(_SUPERVISE, "import subprocess\nimport sys", phase=phase, source=source, name=name))

    return run


def spoilt(name: str, *, phase: str = "load") -> Callable[[Arena], None]:
    """An app that opens, or for a poison runs, a model whose folder was spoiled."""

    def run(arena: Arena) -> None:
        from crashpath.runtime.testing import tiny_folder

        broken = spoiler(name)
        importlib.import_module("onnxruntime")
        folder = tiny_folder(
            arena.path("models/{model}/1"), kind="gather", external="weights.bin", fallback=broken.file == "{fallback}"
        )
        file = file_of(broken, folder.path, None)
        assert file is not None  # the folder was made with all of them
        broken.break_file(file)  # nothing is mended: the scratch folder goes as it is
        body = _BODIES.get(name, _RUN if broken.poisons else _OPEN)
        if broken.file == "{fallback}":
            arena.serve(Code.of("return torch.jit.load(path)", "import torch", phase=phase, path=folder.fallback))
        else:
            code = Code.of(body, _NUMPY_ORT, phase=phase, path=folder.main, once=name in _BODIES)
            arena.serve(code, as_nobody=name.endswith("closed"))

    return run


def spoilt_tokenizer(name: str) -> Callable[[Arena], None]:
    """An app that builds a tokenizer from a file that was spoiled."""

    def run(arena: Arena) -> None:
        file = write_tokenizer(arena.path("models/{model}/1/tokenizer.json"))
        spoiler(name).break_file(file)
        importlib.import_module("tokenizers")
        body = "return Tokenizer.from_file(path)"
        code = Code.of(body, "from tokenizers import Tokenizer", phase="prepare", path=file)
        arena.serve(code, as_nobody=name.endswith("closed"))

    return run


WORDS = ("[UNK]", "load", "run", "model", "shape", "disk", "path", "time", "kill", "loop")
"""The vocabulary of the built-in folder: one id a row of its table."""


def write_tokenizer(path: Path) -> Path:
    """Write a tokenizer of `WORDS`, split at spaces, and its plain vocabulary ``vocab.txt`` beside it."""
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.pre_tokenizers import WhitespaceSplit

    tokenizer = Tokenizer(WordLevel({word: place for place, word in enumerate(WORDS)}, unk_token=WORDS[0]))
    tokenizer.pre_tokenizer = WhitespaceSplit()
    tokenizer.save(str(path))
    path.with_name("vocab.txt").write_text("\n".join(WORDS) + "\n", encoding="utf-8")
    return path
