"""Run one fault in a child process: ``python -m crashpath.coverage.faultrun FAULT_ID --seed N --folder DIR``.

The child's output, stdout and stderr as one stream, is the crash log. `run_fault` starts it in a session of its
own with a clean environment, ends whatever is left when it is over or too late, and removes the scratch folder.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import sysconfig
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from crashpath.coverage.fault import Arena, Fault, missing
from crashpath.coverage.faults import fault_by_id
from crashpath.coverage.variation import Variation


class FaultError(Exception):
    """Root of what running a fault may raise: a need of the fault is absent."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one run printed and how it ended.

    ``text`` is stdout and stderr as they came, with the scratch folder and this installation's folders rewritten to
    the ones that the variation chose. ``exit_code`` and ``signal`` (``SIGSEGV`` …) exclude each other; ``None`` for
    both means ended by the time limit (``timed_out``).
    """

    fault_id: str
    seed: int
    text: str
    exit_code: int | None
    signal: str | None
    seconds: float
    timed_out: bool


def run_fault(fault: Fault, seed: int, *, scratch: Path | None = None) -> Outcome:
    """Run ``fault`` once with ``seed`` and clean up. ``scratch`` (default: the system's) is where its folder is made.

    Raises `FaultError` where the fault needs what this machine lacks.
    """
    if need := missing(fault):
        raise FaultError(f"{fault.id} needs {need}, which is not here")
    folder = Path(tempfile.mkdtemp(prefix="run-", dir=scratch)).resolve()
    folder.chmod(0o755)  # a fault that drops its privileges still has to reach its files
    try:
        return _run(fault, seed, folder)
    finally:
        _unmount_below(folder)
        shutil.rmtree(folder, ignore_errors=True)


def _run(fault: Fault, seed: int, folder: Path) -> Outcome:
    command = [
        sys.executable,
        "-m",
        "crashpath.coverage.faultrun",
        fault.id,
        "--seed",
        str(seed),
        "--folder",
        str(folder),
    ]
    started = time.monotonic()
    log = folder / ".output"
    with log.open("wb") as sink:
        child = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=sink,
            stderr=subprocess.STDOUT,
            cwd=folder,
            env=_environment(folder),
            start_new_session=True,
        )
        timed_out = False
        try:
            child.wait(fault.timeout_s)
        except subprocess.TimeoutExpired:
            timed_out = True
        finally:
            _end_group(child)
    seconds = time.monotonic() - started
    code = child.returncode
    return Outcome(
        fault_id=fault.id,
        seed=seed,
        text=_rewrite(log.read_bytes().decode("utf-8", errors="replace"), folder, Variation.choose(seed, fault.id)),
        exit_code=code if code >= 0 and not timed_out else None,
        signal=signal.Signals(-code).name if code < 0 and not timed_out else None,
        seconds=seconds,
        timed_out=timed_out,
    )


def _environment(folder: Path) -> dict[str, str]:
    """Return the few variables a fault's process gets: nothing of the caller's but the search paths."""
    home = folder / "root"
    home.mkdir()
    places = {name: os.environ[name] for name in ("LD_LIBRARY_PATH", "CUDA_HOME") if name in os.environ}
    return places | {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": str(home),
        "HF_HOME": str(home / ".cache/huggingface"),
        "HF_HUB_DISABLE_TELEMETRY": "1",
        "ORT_DISABLE_TELEMETRY": "1",
        "TMPDIR": str(folder),
        "LANG": "C.UTF-8",
        "OMP_NUM_THREADS": "1",
        "TOKENIZERS_PARALLELISM": "false",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONUNBUFFERED": "1",
        "NO_COLOR": "1",
        "NCCL_NVLS_ENABLE": "0",  # a fault must not touch what all devices of a host share
        "no_proxy": "*",
    }


def _end_group(child: subprocess.Popen[bytes]) -> None:
    """End the child and everything that it left in its process group, and wait for the child."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()


def _unmount_below(folder: Path) -> None:
    mounts = Path("/proc/mounts")
    if not mounts.exists():
        return
    points = [line.split()[1] for line in mounts.read_text(encoding="utf-8", errors="replace").splitlines()]
    for point in sorted((p for p in points if p.startswith(f"{folder}/")), key=len, reverse=True):
        subprocess.run(["umount", "-l", point], check=False, capture_output=True)


def _rewrite(text: str, folder: Path, variation: Variation) -> str:
    """Put the paths and host that the variation chose in the place of this machine's."""
    packages = sysconfig.get_paths()["purelib"]
    host = socket.gethostname()
    swaps = [
        (packages, f"{variation.venv}/lib/python{sys.version_info.major}.{sys.version_info.minor}/site-packages"),
        (sys.prefix, variation.venv),
        (str(folder), ""),
    ]
    if sys.base_prefix != "/usr":  # what every Linux has there is nobody's own
        swaps.insert(2, (sys.base_prefix, variation.venv if "venv" not in variation.venv else "/usr"))
    if len(host) > 3:
        swaps.append((host, f"{variation.model.replace('_', '-')}-{variation.seed % 7}"))
    for here, there in swaps:
        text = text.replace(here, there)
    return text


def main(arguments: list[str] | None = None) -> None:
    """Run one fault in this process; its output and its end are the result."""
    parser = argparse.ArgumentParser(prog="faultrun", description="Run one fault of the catalogue in this process.")
    parser.add_argument("fault")
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--folder", type=Path, required=True)
    options = parser.parse_args(arguments)
    fault = fault_by_id(options.fault)
    variation = Variation.choose(options.seed, fault.id)
    fault.run(Arena(options.folder, variation, random.Random(f"{fault.id}/{options.seed}")))


if __name__ == "__main__":
    main()
