"""What a library says of a file, asked in a process of its own, apart from the runtime that a drill is about."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

_TELL = """
import sys
path = sys.argv[1]
try:
    {opens}
except Exception as error:
    print(f"{{type(error).__name__}}: {{error}}")
"""
_OPENS = {
    "{main}": "import onnxruntime; onnxruntime.InferenceSession(path, providers=['CPUExecutionProvider'])",
    "{fallback}": "import torch; torch.jit.load(path)",
    "{tokenizer}": "import tokenizers; tokenizers.Tokenizer.from_file(path)",
}
_OPENS["{external}"] = _OPENS["{main}"]
KINDS = tuple(_OPENS)
_LONGEST_S = 120.0


def refusal(kind: str, path: Path) -> str:
    """Return the error, type and message, with which the library refuses ``path``; ``""`` where it takes it.

    ``kind`` is one of `KINDS`, as a spoiler names its file. A process that dies of it is told by its exit status.
    """
    command = [sys.executable, "-P", "-c", _TELL.format(opens=_OPENS[kind]), str(path)]
    try:
        ended = subprocess.run(
            command, capture_output=True, text=True, errors="replace", check=False, timeout=_LONGEST_S
        )
    except subprocess.TimeoutExpired:
        return f"no word within {_LONGEST_S:.0f} s"
    if ended.returncode:
        return f"exit status {ended.returncode}: {ended.stderr.strip()[-500:]}"
    return ended.stdout.strip()
