"""What every command says and how: messages on standard error, documents on standard output."""

from __future__ import annotations

import contextlib
import sys
from typing import Annotated, Any

import typer
from rich.console import Console

from crashpath.dashboard.json_line import json_line

DbOption = Annotated[
    str | None, typer.Option("--db", help="The store, as a URL. Default: CRASHPATH_DB or sqlite:///crashpath.db.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON on standard output, and nothing else there.")]


def console() -> Console:
    """The terminal, as wide as it is, 80 columns where it is none."""
    return Console(highlight=False) if sys.stdout.isatty() else Console(highlight=False, width=80)


def complain(message: str) -> None:
    """Print one line for a person on standard error; where that is closed or full nobody can be told."""
    with contextlib.suppress(OSError, ValueError, AttributeError):  # the exit code has to be the right one all the same
        sys.stderr.write(f"crashpath: {' '.join(message.split())}\n")
        sys.stderr.flush()


def tell(message: str) -> None:
    """Print one line on standard error where a person watches it; say nothing in a job's log."""
    if sys.stderr is not None and sys.stderr.isatty():
        sys.stderr.write(f"{message}\n")


def emit(document: Any) -> None:
    """Print one JSON document, on one line, on standard output."""
    sys.stdout.write(json_line(document))
