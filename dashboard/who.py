"""Who decides, and why: the options of every command that records a decision of a person."""

from __future__ import annotations

import getpass
from typing import Annotated

import typer

from crashpath.dashboard.errors import UsageError
from crashpath.ingest.storable import storable

WhoOption = Annotated[
    str | None, typer.Option("--who", envvar="CRASHPATH_WHO", help="Who decides. Default: the name of the login.")
]
WhyOption = Annotated[str | None, typer.Option("--why", help="The reason, kept with the decision.")]
LONGEST = 200
"""Characters of a name, a person, a reason: they stand in lists."""
LONGEST_NOTE = 1000
"""Characters of a note."""


def who_decides(given: str | None) -> str:
    """Return the option, ``CRASHPATH_WHO``, or the name of the login. Raises ``UsageError`` where there is none."""
    named = one_line(given or "", "--who")
    if named:
        return named
    if given:
        raise UsageError("--who is no name that anybody can read: give one.")
    try:
        return one_line(getpass.getuser(), "the login's name")
    except (OSError, KeyError, ImportError) as error:
        raise UsageError("Nobody knows who decides: give --who NAME, or set CRASHPATH_WHO.") from error


def one_line(text: str, what: str, most: int = LONGEST) -> str:
    """Return a text on one line, without what a terminal or a database would stumble over.

    ``what`` is the option that it came from. Raises ``UsageError`` where it has more than ``most`` characters.
    """
    line = " ".join("".join(c if c.isprintable() else " " for c in storable(text)).split())
    if len(line) > most:
        raise UsageError(f"{what} has {len(line):,} characters; {most:,} are enough for everybody who reads lists.")
    return line
