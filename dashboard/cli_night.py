"""``crashpath nightly``."""

from __future__ import annotations

import socket
import sys
from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from crashpath.dashboard.engines import clusterer, mapper, reclusterer
from crashpath.dashboard.errors import InputError, UsageError
from crashpath.dashboard.exits import Exit
from crashpath.dashboard.faces import DbOption, JsonOption, complain, console, emit
from crashpath.dashboard.inputs import sources
from crashpath.dashboard.moment import as_of_time
from crashpath.dashboard.nightly import NightOptions, run_night
from crashpath.dashboard.plurals import many
from crashpath.dashboard.settings import Settings, load_settings
from crashpath.dashboard.summary import NightSummary, print_summary
from crashpath.dashboard.telling import Telling, tell_night, telling_of
from crashpath.ingest.facts import PATH_WORDS, path_named
from crashpath.ingest.feed import Fed, FeedOptions
from crashpath.ingest.lease import utc_now
from crashpath.ingest.model import Facts, Phase
from crashpath.ingest.store import open_store
from crashpath.ingest.store_errors import StoreMissing


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    app.command()(nightly)


def nightly(
    paths: list[str] = typer.Argument(..., metavar="PATH…", help="Log files, folders, globs, or - for standard input."),
    db: DbOption = None,
    attempts: str | None = typer.Option(None, metavar="FILE", help="Attempt counts: CSV, JSONL or Parquet."),
    release: str | None = typer.Option(None, help="Release of logs that do not say it themselves."),
    platform: str | None = typer.Option(None, help="Platform of logs that do not say it themselves."),
    model: str | None = typer.Option(None, help="Model of logs that do not say it themselves."),
    path: str | None = typer.Option(None, help="Path of logs that do not say it themselves: ort or torchscript."),
    phase: str | None = typer.Option(None, help="Phase of logs that do not say it themselves."),
    host: str | None = typer.Option(None, help="Host that the logs come from. Default: this one."),
    tz: str | None = typer.Option(None, help="Zone of stamps that name none. Default: UTC."),
    as_of: str | None = typer.Option(None, metavar="TIME", help="Take this as now (ISO 8601); for replays."),
    source: str | None = typer.Option(None, metavar="NAME", help="Name of standard input as a source."),
    max_quarantine: float | None = typer.Option(None, help="Share in quarantine above which the night is partial."),
    exclude: list[str] | None = typer.Option(
        None, metavar="GLOB", help="Leave these files out: by name (*.bin), or by path (old/*). Repeat it for more."
    ),
    wait: float | None = typer.Option(None, metavar="SECONDS", help="Wait this long for a night that is running."),
    digest: Path | None = typer.Option(None, metavar="FILE", help="Also write figures and what is new as Markdown."),
    as_json: JsonOption = False,
) -> int:
    """Read the night's logs, group them, and update the trends. Running it again on the same logs adds nothing."""
    settings = load_settings(
        db=db, tz=tz, max_quarantine=max_quarantine, lease_wait=wait, exclude=tuple(exclude) if exclude else None
    )
    now = as_of_time(as_of, settings.tz) if as_of else None
    options = NightOptions(
        feed=FeedOptions(
            tz=ZoneInfo(settings.tz),
            as_of=now,
            facts=Facts(release=release, platform=platform, model=model, path=_path(path), phase=_phase(phase)),
            patterns=settings.patterns,
            host=host or socket.gethostname(),
        ),
        attempts=attempts,
        exclude=settings.exclude,
        max_quarantine=settings.max_quarantine,
        examples=settings.examples,
        lease_wait=settings.lease_wait,
        source_name=source,
    )
    summary = _run(settings, paths, options, telling_of(settings, digest), now, as_json)
    if as_json:
        emit(summary.document())
    else:
        print_summary(summary, console())
    for problem in summary.problems:
        complain(problem)
    return Exit.DONE if summary.status == "complete" else Exit.PARTIAL


def _path(word: str | None) -> str | None:
    found = path_named(word) if word is not None else None
    if word is not None and found is None:
        raise UsageError(f"--path {word} is none of {', '.join(PATH_WORDS)}.")
    return found


def _phase(word: str | None) -> str | None:
    """In small letters, as a phase that a log names."""
    if word is not None and word.strip().lower() not in tuple(Phase):
        raise UsageError(f"--phase {word} is none of {', '.join(Phase)}.")
    return word.strip().lower() if word is not None else None


def _run(
    settings: Settings,
    paths: list[str],
    options: NightOptions,
    telling: Telling,
    now: datetime | None,
    as_json: bool,
) -> NightSummary:
    def clock() -> datetime:
        return now or datetime.now(UTC)

    with open_store(settings.db, create=_may_make(settings, paths)) as store, watching(as_json) as progress:
        anew = reclusterer(settings)
        made = clusterer(settings)
        summary = run_night(
            store, paths, options, made, clock=clock, progress=progress, reclusterer=anew, mapper=mapper()
        )
        return tell_night(store, summary, telling, at=clock(), clock=utc_now)


def _may_make(settings: Settings, paths: list[str]) -> bool:
    """Whether a store may be made where there is none: not for paths of which none can be read, a slip of the pen.

    Raises ``InputError`` where there is no store, either.
    """
    problems = [found.problem for found in sources(paths, settings.exclude)]
    if not problems or None in problems:
        return True
    try:
        open_store(settings.db, create=False).close()
    except StoreMissing as missing:
        more = f" (and {many(len(problems) - 1, 'more path')})" if len(problems) > 1 else ""
        raise InputError(f"{str(problems[0]).rstrip('.')}{more}. Nothing was read and no store was made.") from missing
    return False


class Bar:
    """A progress bar on a terminal."""

    def __init__(self) -> None:
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=Console(stderr=True),
            transient=True,
        )
        self._task = self._bar.add_task("read", total=None)

    def __enter__(self) -> Bar:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def source(self, number: int, total: int, path: str) -> None:
        """Show which source is being read."""
        self._bar.update(self._task, total=total, completed=number - 1, description=f"read {Path(path).name[:32]}")

    def done(self, fed: Fed) -> None:
        """Count a source."""
        self._bar.advance(self._task)

    def stage(self, name: str) -> None:
        """Show the stage."""
        self._bar.update(self._task, description=name)


class Lines:
    """One line a source where nobody watches: in a job's log the last line then tells where it stood."""

    def __enter__(self) -> Lines:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing to end."""

    def source(self, number: int, total: int, path: str) -> None:
        """Say nothing yet: the line comes when the source is done."""

    def done(self, fed: Fed) -> None:
        """Say what came of a source that was not as it had been."""
        if fed.records or fed.problem:
            sys.stderr.write(
                f"{fed.outcome} {fed.path}: {many(fed.records, 'record')}, {fed.counts.new_crashes:,} new\n"
            )

    def stage(self, name: str) -> None:
        """Say that a stage begins."""
        sys.stderr.write(f"{name} …\n")


def watching(as_json: bool) -> Bar | Lines:
    """The progress that fits where standard error goes."""
    return Bar() if sys.stderr.isatty() and not as_json else Lines()
