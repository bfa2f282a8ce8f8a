"""``crashpath diagnose``: look at a model folder before anything is served from it."""

from __future__ import annotations

import textwrap
from dataclasses import asdict
from pathlib import Path

import typer
from rich.text import Text

from crashpath.dashboard.errors import UsageError
from crashpath.dashboard.exits import Exit
from crashpath.dashboard.faces import JsonOption, console, emit
from crashpath.runtime.diagnose import Diagnosis, diagnose
from crashpath.runtime.finding import Finding, Status
from crashpath.runtime.look import CPU, Wanted

_STYLES = {Status.OK: "green", Status.WARN: "yellow", Status.FAIL: "bold red", Status.SKIP: "dim"}
_WORDS = {Status.OK: "ok", Status.WARN: "WARN", Status.FAIL: "FAIL", Status.SKIP: "skip"}
_LEFT = 27
_WIDTH = 80
_FEW = 4


def register(app: typer.Typer) -> None:
    """Add the command of this module."""
    app.command(name="diagnose")(command)


def command(
    model: Path = typer.Option(..., "--model", metavar="DIR", help="The model folder."),
    provider: list[str] = typer.Option([CPU], "--provider", help="Execution provider of the main path; repeatable."),
    strict: bool = typer.Option(False, "--strict", help="A warning is a failure, too."),
    as_json: JsonOption = False,
) -> int:
    """Say what would fail if this model folder were served here, and how to put it right.

    Exit 0: it can be served (with --strict: without a warning). 6: it cannot.
    """
    if not model.is_dir():
        raise UsageError(f"{model} is no folder; give the folder that crashpath export wrote")
    show = None if as_json else _show
    found = diagnose(model, Wanted(providers=tuple(provider)), progress=show)
    code = _code(found, strict=strict)
    if as_json:
        emit(
            {"verdict": found.status, "line": found.verdict, "model": found.model, "strict": strict, "exit": int(code)}
            | {"counts": {one: sum(f.status is one for f in found.findings) for one in Status}}
            | {"findings": [asdict(one) for one in found.findings]}
        )
    else:
        _show_skipped(found)
        console().print(Text(f"\n{found.verdict}", _STYLES[found.status]), soft_wrap=True)
    return code


def _code(found: Diagnosis, *, strict: bool) -> Exit:
    red = (Status.FAIL, Status.WARN) if strict else (Status.FAIL,)
    return Exit.RED if found.status in red else Exit.DONE


def _show(finding: Finding) -> None:
    """Print one finding as it comes; where something is to do, with the class that it prevents, and the fix."""
    if finding.status is Status.SKIP:
        return  # together, at the end
    lines = _wrapped(finding.evidence)
    if finding.status in (Status.FAIL, Status.WARN):
        lines += _wrapped(f"prevents: {finding.prevents}") + _wrapped(f"fix: {finding.fix}")
    head = Text(f"{_WORDS[finding.status]:<5}", _STYLES[finding.status]) + Text(f"{finding.check:<22}")
    console().print(head + Text(lines[0]), soft_wrap=True)
    for line in lines[1:]:
        console().print(Text(" " * _LEFT + line), soft_wrap=True)


def _show_skipped(found: Diagnosis) -> None:
    """Print what has no answer, by the reason for it; with --json each check is named."""
    reasons: dict[str, list[str]] = {}
    for one in found.findings:
        if one.status is Status.SKIP:
            reasons.setdefault(one.evidence, []).append(one.check)
    for reason, checks in reasons.items():
        for line in textwrap.wrap(f"skip {reason}: {_brief(checks)}", _WIDTH, subsequent_indent="     "):
            console().print(Text(line, _STYLES[Status.SKIP]), soft_wrap=True)


def _brief(checks: list[str]) -> str:
    """Name few checks; of many say how many there are, and of what."""
    if len(checks) <= _FEW:
        return ", ".join(checks)
    return f"{len(checks)} checks of {', '.join(dict.fromkeys(one.partition('.')[0] for one in checks))}"


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, _WIDTH - _LEFT, break_on_hyphens=False, break_long_words=False) or [""]
