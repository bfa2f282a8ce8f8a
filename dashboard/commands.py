"""Where the commands of ``crashpath`` are: a module is imported when one of its commands is asked for.

Importing all of them takes seconds, which nobody should wait for to read that a folder is not there.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence

import typer

HOMES: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("cli_night", ("nightly",)),
    ("cli_attempts", ("attempts",)),
    ("cli_quarantine", ("quarantine",)),
    ("cli_records", ("classify", "group")),
    ("cli_read", ("classes", "clusters", "trends", "dashboard")),
    ("cli_show", ("show",)),
    ("cli_decide", ("merge", "split", "name", "assign", "undo", "decisions")),
    ("cli_mark", ("resolve", "mute", "ticket", "note")),
    ("cli_export", ("export",)),
    ("cli_drill", ("faults", "drill")),
    ("cli_diagnose", ("diagnose",)),
    ("cli_coverage", ("coverage",)),
    ("cli_review", ("review", "policy")),
    ("cli_recluster", ("recluster",)),
    ("cli_rekey", ("rekey",)),
    ("cli_db", ("db",)),
)
"""Modules of this part and the commands that each adds, in the order in which help shows them."""


def asked_for(arguments: Sequence[str]) -> str:
    """Return the command among the arguments, known or not; empty where there is none."""
    return next((one for one in arguments if not one.startswith("-")), "")


def add_commands(app: typer.Typer, arguments: Sequence[str]) -> None:
    """Add the command that these arguments ask for, or all where they ask for none that is known."""
    asked = asked_for(arguments)
    for home, _ in [one for one in HOMES if asked in one[1]] or HOMES:
        importlib.import_module(f"crashpath.dashboard.{home}").register(app)
