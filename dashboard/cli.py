"""The command line ``crashpath``: thin commands over the library, one sentence an error, exit codes as documented."""

from __future__ import annotations

import errno
import sys
import traceback
from collections.abc import Sequence

import typer
from typer.exceptions import Abort, TyperException

from crashpath.dashboard.commands import add_commands, asked_for
from crashpath.dashboard.errors import is_expected, is_wrong_use
from crashpath.dashboard.exits import Exit
from crashpath.dashboard.faces import complain
from crashpath.dashboard.misuse import misuse

_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EIO)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit with a documented code. 1 is never used for an error: it means NO-GO."""
    sys.exit(run(sys.argv[1:] if arguments is None else arguments))


def run(arguments: Sequence[str]) -> int:
    """Run one command and return its exit code; every error becomes one sentence on standard error."""
    if sys.stdout is None:
        complain("Standard output is closed: there is nowhere to print to.")
        return Exit.FAILED
    debug = "--debug" in arguments
    rest = [argument for argument in arguments if argument != "--debug"]
    try:
        code = _app(rest)(rest, prog_name="crashpath", standalone_mode=False)
    except TyperException as error:
        if sentence := misuse(error, asked_for(rest)):
            complain(sentence)
        return Exit.USAGE
    except SystemExit:  # the command line's library ends with 1 where who reads the output has gone: no NO-GO
        return Exit.FAILED
    except (Abort, KeyboardInterrupt):
        complain("Stopped. What was stored up to here stays; run the same command again to go on.")
        return Exit.FAILED
    except Exception as error:  # noqa: BLE001  the outermost boundary: no error may read as NO-GO
        if debug:
            traceback.print_exc()
        if is_expected(error):
            complain(str(error))
        elif isinstance(error, OSError) and error.errno in _NO_ROOM:
            complain(f"What was to be written could not be: {error.strerror}.")
        else:
            told = f"{type(error).__name__}: {error}"
            complain(f"{told}. This is a defect of crashpath; run again with --debug for details.")
        return Exit.USAGE if is_wrong_use(error) else Exit.FAILED
    return int(code or Exit.DONE)


def _app(arguments: Sequence[str]) -> typer.Typer:
    """Make the command line with the commands that these arguments may mean."""
    app = typer.Typer(
        help="Which failures your ML deployments really have, and which of them your fallback survives.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_root)
    add_commands(app, arguments)
    return app


def _root(debug: bool = typer.Option(False, "--debug", help="Print the traceback of an error.")) -> None:
    """Options that stand before any command."""


if __name__ == "__main__":
    main()
