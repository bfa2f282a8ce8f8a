"""The command line ``crashpath``: thin commands over the library, one sentence an error, exit codes as documented."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Sequence

import typer
from typer.exceptions import Abort, TyperException

from crashpath.dashboard import cli_db, cli_diagnose, cli_drill, cli_export, cli_night, cli_read, cli_records, cli_show
from crashpath.dashboard.errors import EXPECTED, WRONG_USE
from crashpath.dashboard.exits import Exit
from crashpath.dashboard.faces import complain

app = typer.Typer(
    help="Which failures your ML deployments really have, and which of them your fallback survives.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for part in (cli_night, cli_records, cli_read, cli_show, cli_export, cli_drill, cli_diagnose):
    part.register(app)
app.add_typer(cli_db.app, name="db")


@app.callback()
def _root(debug: bool = typer.Option(False, "--debug", help="Print the traceback of an error.")) -> None:
    """Options that stand before any command."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit with a documented code. 1 is never used for an error: it means NO-GO."""
    sys.exit(run(sys.argv[1:] if arguments is None else arguments))


def run(arguments: Sequence[str]) -> int:
    """Run one command and return its exit code; every error becomes one sentence on standard error."""
    debug = "--debug" in arguments
    rest = [argument for argument in arguments if argument != "--debug"]
    try:
        code = app(rest, prog_name="crashpath", standalone_mode=False)
    except TyperException as error:
        if str(error):  # without a command the help was printed, and says it all
            complain(f"{str(error).rstrip('.')}. Run crashpath --help for what is there.")
        return Exit.USAGE
    except SystemExit:  # the command line's library ends with 1 where who reads the output has gone: no NO-GO
        return Exit.FAILED
    except (Abort, KeyboardInterrupt):
        complain("Stopped. What was stored up to here stays; run the same command again to go on.")
        return Exit.FAILED
    except (*WRONG_USE, *EXPECTED) as error:
        if debug:
            traceback.print_exc()
        complain(str(error))
        return Exit.USAGE if isinstance(error, WRONG_USE) else Exit.FAILED
    except Exception as error:  # noqa: BLE001  the outermost boundary: no error may read as NO-GO
        if debug:
            traceback.print_exc()
        complain(f"{type(error).__name__}: {error}. This is a defect of crashpath; run again with --debug for details.")
        return Exit.FAILED
    return int(code or Exit.DONE)


if __name__ == "__main__":
    main()
