"""What every command says and how: messages on standard error, documents on standard output."""

from __future__ import annotations

import json
import sys
from typing import Any

from rich.console import Console


def console() -> Console:
    """The terminal, as wide as it is, 80 columns where it is none."""
    return Console(highlight=False) if sys.stdout.isatty() else Console(highlight=False, width=80)


def complain(message: str) -> None:
    """Print one line for a person on standard error."""
    print(f"crashpath: {' '.join(message.split())}", file=sys.stderr)  # noqa: T201


def emit(document: Any) -> None:
    """Print one JSON document, on one line, on standard output."""
    sys.stdout.write(json.dumps(document, ensure_ascii=False, default=str) + "\n")
