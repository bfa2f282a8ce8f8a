"""Build and run the small C++ programs of the native faults."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import textwrap
from importlib.resources import files
from pathlib import Path

from crashpath.coverage.breakage import drop_privileges
from crashpath.coverage.fault import Arena

NAMES = (
    ("serve_request", "run_graph", "apply_layer", "Tensor"),
    ("HandlePredict", "ExecuteNode", "ComputeKernel", "Blob"),
    ("infer_batch", "forward_pass", "gemm_tile", "Matrix"),
    ("on_message", "decode_step", "sample_token", "KvCache"),
    ("Dispatch", "InvokeSubgraph", "EvalOp", "Operand"),
)
PROGRAMS = ("engine", "model-server", "scorer", "inferd", "runner")
SCRIPTS = ("run.sh", "entrypoint.sh", "start-server.sh", "launch.sh")


def build(arena: Arena, source: str, *flags: str) -> Path:
    """Compile the packaged C++ file ``source`` under names that vary and return the program's path."""
    program = arena.path(f"bin/{arena.rng.choice(PROGRAMS)}")
    code = arena.path(f"src/{program.name.replace('-', '_')}.cpp")
    code.write_text(files("crashpath.coverage").joinpath(source).read_text(encoding="utf-8"), encoding="utf-8")
    keys = ("FN_OUTER", "FN_MIDDLE", "FN_INNER", "FN_TYPE")
    names = [f"-D{key}={name}" for key, name in zip(keys, arena.rng.choice(NAMES), strict=True)]
    subprocess.run(["g++", "-std=c++17", "-w", *names, *flags, "-o", str(program), str(code)], check=True)
    return program


def write_script(arena: Arena, body: str) -> Path:
    """Write a shell script below the app's root and return its path."""
    script = arena.path(arena.rng.choice(SCRIPTS))
    script.write_text("#!/bin/bash\n" + textwrap.dedent(body).strip("\n") + "\n", encoding="utf-8")
    script.chmod(0o755)
    return script


def become(arena: Arena, *command: str | Path, env: dict[str, str] | None = None) -> None:
    """Let ``command`` take this process's place, in the app's root folder."""
    os.chdir(arena.root)
    sys.stdout.flush()
    sys.stderr.flush()
    program = shutil.which(str(command[0])) or str(command[0])
    os.execve(program, [str(part) for part in command], {**os.environ, **(env or {})})


def run_script(arena: Arena, body: str, env: dict[str, str] | None = None, *, as_nobody: bool = False) -> None:
    """Run a shell script as the main program: bash tells of a child's signal as it does for any service."""
    script = write_script(arena, body)
    if as_nobody:
        drop_privileges()
    become(arena, "bash", script, env=env)
