"""Write and run a small serving app around a failing call, so that its traceback has the frames of a real app.

The innermost function holds the failing call; `Variation` says how many callers stand above it, what they are
named, where they live and how they hand an error on. Messages of the failure always come from the library.
"""

from __future__ import annotations

import importlib
import os
import pprint
import runpy
import sys
import textwrap
import traceback
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from crashpath.coverage.variation import Chain, Layer, Layout, Variation


@dataclass(frozen=True, slots=True)
class Code:
    """The innermost function of an app: its body, what its module imports, extra definitions, and its arguments.

    ``once`` forbids the retrying caller, for failures that take seconds.
    """

    body: str
    imports: str = ""
    definitions: str = ""
    phase: str = "load"
    once: bool = False
    args: tuple[tuple[str, object], ...] = ()

    @classmethod
    def of(
        cls,
        body: str,
        imports: str = "",
        *,
        definitions: str = "",
        phase: str = "load",
        once: bool = False,
        **args: object,
    ) -> Code:
        """Make one from indented source and keyword arguments (values with a literal form; paths become text)."""
        plain = tuple((name, str(value) if isinstance(value, Path) else value) for name, value in args.items())
        return cls(_clean(body), _clean(imports), _clean(definitions), phase, once, plain)


def write_app(root: Path, variation: Variation, code: Code) -> Path:
    """Write every module of the app below ``root`` and return its entry file."""
    layout = variation.layout
    stack = (layout.request_layers if code.phase == "infer" else layout.layers)[: variation.depth]
    chain = Chain.PLAIN if code.once and variation.chain is Chain.RETRY else variation.chain
    catcher = variation.seed % (len(stack) + 1) - 1  # -1: the entry file catches
    core = _core_name(layout, code.phase)
    arguments = ", ".join(f'settings["{name}"]' for name, _ in code.args)
    inner, call = _import_of(layout.core_file, core), f"{core}({arguments})"
    _write(root / layout.core_file, _core_source(core, code))
    for index in range(len(stack) - 1, -1, -1):
        layer = stack[index]
        handling = _handle(call, chain if index == catcher else Chain.PLAIN, layout.error, code.phase)
        _write(root / layer.file, _layer_source(layer, inner, handling, layout.error, variation.chatty))
        inner = _import_of(layer.file, layer.owner or layer.function)
        call = f"{layer.owner}(settings).{layer.function}()" if layer.owner else f"{layer.function}(settings)"
    handling = _handle(call, chain if catcher == -1 else Chain.PLAIN, layout.error, code.phase)
    return _write(root / layout.entry, _entry_source(inner, handling, variation, code))


def preload() -> None:
    """Import what apps import: after rights or memory are taken away the interpreter may not be able to."""
    for module in ("asyncio", "concurrent.futures.thread", "logging", "pkgutil"):
        importlib.import_module(module)


def run_app(entry: Path, folder: Path) -> None:
    """Run the app as the main program of this process; an uncaught error shows the frames from its entry file on."""
    sys.path.insert(0, str(entry.parent))
    os.chdir(entry.parent)
    sys.argv = [str(entry)]

    def show(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        while trace is not None and not trace.tb_frame.f_code.co_filename.startswith(str(folder)):
            trace = trace.tb_next
        sys.stdout.flush()
        traceback.print_exception(kind, error, trace)

    sys.excepthook = show
    runpy.run_path(str(entry), run_name="__main__")


def run_app_fresh(entry: Path, folder: Path) -> None:
    """Run the app in a new interpreter that takes this process's place."""
    del folder
    os.chdir(entry.parent)
    sys.stdout.flush()
    sys.stderr.flush()
    os.execv(sys.executable, [sys.executable, "-u", str(entry)])


def _clean(source: str) -> str:
    return textwrap.dedent(source).strip("\n")


def _core_name(layout: Layout, phase: str) -> str:
    return {"infer": layout.infer_name, "prepare": layout.prepare_name}.get(phase, layout.load_name)


def _import_of(file: str, name: str) -> str:
    return f"from {file.removesuffix('.py').replace('/', '.')} import {name}"


def _core_source(name: str, code: Code) -> str:
    parameters = ", ".join(name for name, _ in code.args)
    blocks = [code.imports, code.definitions, f"def {name}({parameters}):\n{textwrap.indent(code.body, '    ')}"]
    return "\n\n\n".join(block for block in blocks if block) + "\n"


def _layer_source(layer: Layer, inner: str, handling: str, error: str, chatty: bool) -> str:
    say = f'log.info("{layer.function}: %s", settings["model"])\n' if chatty else ""
    head = f"import logging\nimport sys\nimport time\n\n{inner}\n\nlog = logging.getLogger(__name__)\n\n\n"
    head += f"class {error}(RuntimeError):\n    pass\n\n\n" if error in handling else ""
    if layer.owner is None:
        return f"{head}def {layer.function}(settings):\n{textwrap.indent(say + handling, '    ')}\n"
    body = textwrap.indent("settings = self.settings\n" + say + handling, "        ")
    init = "    def __init__(self, settings):\n        self.settings = settings\n\n"
    return f"{head}class {layer.owner}:\n{init}    def {layer.function}(self):\n{body}\n"


def _entry_source(inner: str, handling: str, variation: Variation, code: Code) -> str:
    settings = {"model": variation.model, **dict(code.args)}
    say = 'log.info("starting %s", settings["model"])\n' if variation.chatty else ""
    error = variation.layout.error
    define = f"class {error}(RuntimeError):\n    pass\n\n\n" if error in handling else ""
    return (
        f"import logging\nimport sys\nimport time\n\n{inner}\n\n"
        f'logging.basicConfig(level=logging.INFO, format="{variation.log_format}")\n'
        f'log = logging.getLogger("{variation.layout.entry.removesuffix(".py")}")\n'
        f"SETTINGS = {pprint.pformat(settings)}\n\n\n{define}"
        f"def main(settings):\n{textwrap.indent(say + handling, '    ')}\n\n\n"
        'if __name__ == "__main__":\n    main(SETTINGS)\n'
    )


_WHAT = {"infer": "request to %s failed", "prepare": "input for %s could not be prepared"}


def _handle(call: str, chain: Chain, error: str, phase: str) -> str:
    """Return the statements of a caller that makes ``call`` and hands an error on as ``chain`` says."""
    what = _WHAT.get(phase, "%s could not be loaded")
    wrapped = f'{error}("{what}" % settings["model"])'
    tried = f"try:\n    return {call}\nexcept Exception"
    match chain:
        case Chain.CAUSE:
            return f"{tried} as exc:\n    raise {wrapped} from exc"
        case Chain.CONTEXT:
            return f"{tried}:\n    raise {wrapped}"
        case Chain.NOTE:
            return f'{tried} as exc:\n    exc.add_note("while serving " + settings["model"])\n    raise'
        case Chain.LOGGED:
            return f'{tried}:\n    log.exception("{what}", settings["model"])\n    sys.exit(3)'
        case Chain.RETRY:
            return (
                "for attempt in (1, 2, 3):\n"
                f"    try:\n        return {call}\n"
                "    except Exception as exc:\n"
                '        log.warning("attempt %d of 3 failed: %s", attempt, exc)\n'
                "        if attempt == 3:\n            raise\n"
                "        time.sleep(0.05)"
            )
        case Chain.FUTURE:
            return (
                "from concurrent.futures import ThreadPoolExecutor\n\n"
                'with ThreadPoolExecutor(1, thread_name_prefix="model") as pool:\n'
                f"    return pool.submit(lambda: {call}).result()"
            )
        case Chain.GROUP:
            return (
                "import asyncio\n\n\nasync def run_all():\n    async with asyncio.TaskGroup() as group:\n"
                f"        group.create_task(asyncio.to_thread(lambda: {call}))\n\n\nasyncio.run(run_all())"
            )
        case _:
            return f"return {call}"


def _write(path: Path, source: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(source, encoding="utf-8")
    return path
