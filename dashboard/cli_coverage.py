"""``crashpath coverage``: what of both paths was really exercised, by evidence that counts."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

import typer
from sqlalchemy.orm import Session

from crashpath.coverage.covstore import newest_run, store_run
from crashpath.coverage.domain import asked_for
from crashpath.coverage.report import Report
from crashpath.coverage.runfile import Run, RunFileError, State, read_run, run_files
from crashpath.dashboard.coverage_json import document
from crashpath.dashboard.coverage_report import Asked, stored_report
from crashpath.dashboard.coverage_text import lines, percent
from crashpath.dashboard.coverage_work import drawn, feeds_of, golden_feed, model_folder, stripped, told, traced
from crashpath.dashboard.errors import InputError, UsageError
from crashpath.dashboard.exits import Exit
from crashpath.dashboard.faces import DbOption, JsonOption, complain, console, emit
from crashpath.dashboard.plurals import many
from crashpath.dashboard.settings import load_settings
from crashpath.ingest.store import Store, open_store
from crashpath.runtime.folder import ModelFolder
from crashpath.runtime.look import CPU

_NUMBER = re.compile(r"[0-9]+(\.[0-9]+)?")
GATES = ("main", "fallback", "blocks", "routes", "drills")


def register(app: typer.Typer) -> None:
    """Add the command of this module."""
    app.command()(coverage)


def coverage(
    release: str | None = typer.Option(None, "--release", help="Only evidence of this release."),
    before: str | None = typer.Option(None, "--before", metavar="R", help="Show this release's figures beside."),
    model: Path | None = typer.Option(None, "--model", metavar="DIR", help="The model. Default: the one traced last."),
    trace: Path | None = typer.Option(None, "--trace", metavar="DIR", help="Trace this model folder first."),
    feed: list[Path] = typer.Option([], "--feed", metavar="NPZ", help="With --trace: arrays by input, besides golden."),
    failing_feed: list[Path] = typer.Option(
        [],
        "--failing-feed",
        metavar="NPZ",
        help="With --trace: arrays on which the model shall fail (an assert).",
    ),
    provider: list[str] = typer.Option([CPU], "--provider", help="With --trace: execution provider, as in production."),
    add: list[Path] = typer.Option([], "--add", metavar="PATH", help="Run files, or folders of them, to take in."),
    events: list[Path] = typer.Option([], "--events", metavar="FILE", help="Event files of production: its shapes."),
    max_age: int = typer.Option(30, "--max-age-days", min=1, max=36_500, help="Older evidence does not count."),
    gate: list[str] = typer.Option(
        [], "--gate", metavar="NAME=PERCENT", help="Exit 6 below: main, fallback, blocks, routes, drills."
    ),
    strip: list[int] = typer.Option(
        [], "--strip", metavar="EXPERT", help="With --trace: name the rows of the feeds that would break without it."
    ),
    perfetto: Path | None = typer.Option(
        None, "--perfetto", metavar="FILE", help="With --trace: one request over both paths, for Perfetto or Chrome."
    ),
    html: Path | None = typer.Option(None, "--html", metavar="FILE", help="Write the report as one page."),
    db: DbOption = None,
    as_json: JsonOption = False,
) -> int:
    """Say what of the main path, the fallback, the routes and the drills was exercised, and what was not.

    Exit 0: done. 5: a run file could not be read, or the model fails on a feed. 6: a gate is red.
    """
    limits = _gates(gate)
    if trace is None and (perfetto is not None or strip or feed or failing_feed):
        raise UsageError("--feed, --failing-feed, --strip and --perfetto need --trace DIR, the model folder")
    code = Exit.DONE
    broken: list[dict[str, Any]] = []
    with open_store(load_settings(db=db).db) as store:
        taken, problems = _read(add)
        if trace is not None:
            traced_folder = model_folder(trace)
            golden = golden_feed(traced_folder)
            feeds, unread = feeds_of(traced_folder, feed)
            failing, unread_too = feeds_of(traced_folder, failing_feed)
            feeds = (golden, *feeds)
            run, failed = traced(traced_folder, feeds, failing, provider, release or "")
            taken, problems = [*taken, run], [*problems, *unread, *unread_too, *failed]
        for problem in (*problems, *_take(store, taken)):
            complain(problem)
            code = Exit.PARTIAL
        if trace is not None:  # what was traced is kept, whatever becomes of these
            if perfetto is not None:
                drawn(traced_folder, golden, provider, perfetto)
            if strip:
                broken = stripped(traced_folder, feeds, strip)
        named = model or trace
        folder = None if named is None else model_folder(named)
        production = _production(events, folder) if events else None
        asked = Asked(max_age, db)
        now = datetime.now(UTC)
        with store.read() as session:
            report = stored_report(session, folder, release, asked, now=now, production=production)
            earlier = None if before is None else _earlier(session, report, before, asked, now)
    red = _red(report, limits)
    if html is not None:
        from crashpath.dashboard.coverage_html import write_page

        try:
            write_page(html, report, earlier)
        except OSError as error:
            raise InputError(f"{html} cannot be written: {error.strerror}") from error
    if as_json:
        emit(document(report, earlier, red) | ({"would_break": broken} if strip else {}))
    else:
        out = console()
        for line in (*lines(report, earlier), *told(strip, broken), *(f"GATE RED: {one}" for one in red)):
            out.print(line, markup=False, soft_wrap=True)  # commands stay in one piece
    return Exit.RED if red else code


@dataclass(frozen=True, slots=True)
class Gate:
    """The least share, in percent, of one of `GATES`."""

    name: str
    percent: Fraction


def _gates(given: Sequence[str]) -> tuple[Gate, ...]:
    found = []
    for one in given:
        name, equals, number = one.partition("=")
        least = Fraction(number) if _NUMBER.fullmatch(number) else Fraction(-1)
        if name not in GATES or not equals or not 0 <= least <= 100:
            raise UsageError(f"--gate {one} is none of {', '.join(GATES)} with a percentage, as in --gate main=95")
        found.append(Gate(name, least))
    return tuple(found)


def _red(report: Report, gates: Sequence[Gate]) -> tuple[str, ...]:
    ratios = {
        "main": report.main(),
        "fallback": report.fallback(),
        "blocks": report.blocks(),
        "routes": report.taken(),
        "drills": report.drilled(),
    }
    said = []
    for gate in gates:
        ratio = ratios[gate.name]
        if not ratio.total or 100 * ratio.covered < gate.percent * ratio.total:
            said.append(f"{gate.name} {percent(ratio)} is below {float(gate.percent):g} %")
    return tuple(said)


def _read(places: Sequence[Path]) -> tuple[list[Run], list[str]]:
    """Return the runs of these files that have ended, and a sentence for each file that is of no use."""
    runs, problems = [], []
    for path in run_files(places):
        try:
            run = read_run(path)
        except RunFileError as error:
            problems.append(str(error))
            continue
        if run.state is State.RUNNING:
            problems.append(f"{path}: this run has not ended yet; add it again when it has")
        else:
            runs.append(run)
    return runs, problems


def _take(store: Store, runs: Sequence[Run]) -> list[str]:
    """Store the runs that are not there yet; return a sentence for each of them that was lost."""
    problems = []
    for run in runs:
        with store.write() as session:
            new = store_run(session, run)
        if new and run.state is State.LOST:
            problems.append(f"run {run.id}: its process ended before it could tell what it saw; trace it again")
    return problems


def _earlier(session: Session, report: Report, release: str, asked: Asked, now: datetime) -> Report:
    """Return the report of an earlier release of the same model, by its own artefacts."""
    newest = newest_run(session, release=release, model=report.model, now=now)
    if newest is None:
        raise InputError(
            f"The store has no traced run of {report.model} in release {release}; "
            "trace that release's model folder: crashpath coverage --trace DIR --release R"
        )
    return stored_report(session, None, release, asked, now=now, model_hash=newest.model_hash)


def _production(events: Sequence[Path], folder: ModelFolder | None) -> Mapping[str, int]:
    if folder is None:
        raise UsageError("--events needs --model DIR, which says what the open dimensions are called")
    try:
        asked = asked_for(events, folder.inputs, folder.hash)
    except OSError as error:
        raise InputError(f"{error.filename} cannot be read: {error.strerror}") from error
    if asked.unreadable:
        complain(f"{many(asked.unreadable, 'line')} of the event files could not be read.")
    return asked.requests
