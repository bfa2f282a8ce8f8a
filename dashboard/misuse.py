"""What is wrong with a command line, in one sentence that names the option and the command whose help tells more."""

from __future__ import annotations

from typing import Any

import typer
from typer.exceptions import TyperException


def misuse(error: TyperException, asked: str) -> str:
    """Return the sentence; empty where the command line's library printed the help, which says it all.

    ``asked`` is the command that was typed, for errors that do not say in which they arose.
    """
    context = getattr(error, "ctx", None)
    command = context.command_path if context is not None else f"crashpath {asked}".rstrip()
    if isinstance(error, typer.BadParameter) and error.param is not None:
        if error.message:
            what = error.message.removeprefix("Value error, ")
            said = f"{_named(error.param)}: {what[:1].lower()}{what[1:]}"
        else:  # it is missing
            said = f"{command.removeprefix('crashpath ')} needs {_named(error.param, value=True)}"
    else:
        said = str(error)
    if not said:
        return ""
    return f"{said}{'' if said.endswith(('.', '?')) else '.'} Run {command} --help for what is there."


def _named(param: Any, *, value: bool = False) -> str:
    """What a person types: an option by its longest name, with what it takes if asked; an argument as help has it."""
    word = param.metavar or str(param.name).upper()
    if param.param_type_name == "argument":
        return str(word)
    option = max(param.opts, key=len)
    return f"{option} {word}" if value else str(option)
