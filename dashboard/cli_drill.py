"""``crashpath faults`` and ``crashpath drill``: the catalogue, and its faults driven through the runtime."""

from __future__ import annotations

import signal
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from pathlib import Path

import typer

from crashpath.coverage.drill import DrillError
from crashpath.coverage.drillcase import Case, cases_of
from crashpath.coverage.drillcells import DrillResult, Verdict
from crashpath.coverage.drillclaim import claimed
from crashpath.coverage.drilllogs import write_logs
from crashpath.coverage.drillmix import Mix, MixResult, mixable, patient
from crashpath.coverage.drillplan import ISOLATIONS
from crashpath.coverage.drillrun import Runner, folder_to_drill
from crashpath.coverage.drillstage import Pace, opened
from crashpath.coverage.drillstore import Evidence, store_drills
from crashpath.coverage.faults import FAULTS
from crashpath.coverage.field import FieldRow, Names, field_against_proof
from crashpath.dashboard.drill_json import document, fault_json
from crashpath.dashboard.drill_text import (
    LEGEND,
    claim_line,
    drill_line,
    field_lines,
    mix_lines,
    nothing_driven,
    opening_lines,
    summary_lines,
    verdict_line,
)
from crashpath.dashboard.errors import InputError, UsageError
from crashpath.dashboard.exits import Exit
from crashpath.dashboard.faces import DbOption, JsonOption, console, emit
from crashpath.dashboard.settings import load_settings
from crashpath.ingest.classes import CLASSES, UNCLASSIFIED
from crashpath.ingest.store import open_store
from crashpath.runtime.diagnose import CHECKS
from crashpath.runtime.errors import ServingError
from crashpath.runtime.folder import ModelFolder
from crashpath.runtime.look import CPU
from crashpath.runtime.policy import POLICIES

BOTH = "both"
Isolation = StrEnum("Isolation", {name: name for name in (*ISOLATIONS, BOTH)})  # type: ignore[misc]  # from the plans
Preset = StrEnum("Preset", {name: name for name in POLICIES})  # type: ignore[misc]  # names come from the runtime

_BOTH, _BREAKER = Isolation(BOTH), Preset("breaker")
Say = Callable[[str], None]


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    app.command()(faults)
    app.command()(drill)


def faults(
    failure_class: str | None = typer.Option(None, "--class", help="Only faults of this class."),
    as_json: JsonOption = False,
) -> int:
    """List the fault catalogue: what can be raised for real, and where it can be drilled."""
    chosen = [one for one in FAULTS if failure_class in (None, one.failure_class)]
    if failure_class is not None and not chosen:
        raise UsageError(f"No fault has the class {failure_class!r}; crashpath classes lists them.")
    if as_json:
        emit([fault_json(one) for one in chosen])
        return Exit.DONE
    out = console()
    for known in (*(one.id for one in CLASSES), UNCLASSIFIED):
        of_class = [one for one in chosen if one.failure_class == known]
        if not of_class:
            continue
        drilled = sum(one.drill is not None for one in of_class)
        out.print(f"[bold]{known}[/bold]  {len(of_class)} faults, {drilled} of them can be drilled")
        for one in of_class:
            phases = f" [drill: {', '.join(one.drill.phases)}]" if one.drill else ""
            out.print(f"  {one.id}: {one.title}{phases}", markup=False, soft_wrap=False)
    return Exit.DONE


def drill(
    fault: list[str] | None = typer.Option(None, "--fault", help="This fault; may be given more than once."),
    failure_class: str | None = typer.Option(None, "--class", help="Every fault of this class."),
    everything: bool = typer.Option(False, "--all", help="Every fault that can be drilled."),
    n: int = typer.Option(
        0,
        "--n",
        min=0,
        help="Strike N requests of one session, in each isolation, with a mix of these faults; with --all, after them.",
    ),
    model: Path | None = typer.Option(None, "--model", help="The model folder. Default: a tiny one, made now."),
    isolation: Isolation = typer.Option(_BOTH, "--isolation", help="Where the paths run."),
    policy: Preset = typer.Option(_BREAKER, "--policy", help="The session's policy."),
    release: str = typer.Option("", "--release", help="The release that the evidence is for."),
    logs: Path | None = typer.Option(None, "--logs", help="A folder for what the struck processes print, labelled."),
    provider: list[str] = typer.Option(
        [CPU], "--provider", help="Execution provider of the main path, as in production; repeatable."
    ),
    max_age: int = typer.Option(30, "--max-age-days", min=1, help="Older drills do not stand against the field."),
    seed: int = typer.Option(0, "--seed", help="Seed of the mix."),
    store: bool = typer.Option(True, "--store/--no-store", help="Keep the results in the store."),
    db: DbOption = None,
    as_json: JsonOption = False,
) -> int:
    """Raise real faults inside the runtime, on a copy of a model folder, and see whether every request is answered.

    Exit 0: driven, and every cell that applies holds. 5: nothing could be driven here. 6: a cell or a mix is red.
    """
    cases = _chosen(fault or [], failure_class, everything or (n > 0 and not fault and failure_class is None))
    isolations = ISOLATIONS if isolation == BOTH else (str(isolation),)
    say: Say = _silent if as_json else _aloud
    setting = Setting(str(policy), tuple(provider), Pace())
    try:
        with _ended_in_order(), folder_to_drill(model) as folder:
            _say_all(say, opening_lines(folder, setting.policy, setting.providers, setting.pace))
            routes: Counter[str] = Counter()
            driven = cases if everything or not n else ()
            results, versions = _drive(folder, driven, isolations, setting, say, routes)
            mixes = _mixes(folder, cases, isolations, setting, n, seed, say) if n else ()
            evidence = _evidence(folder, release, setting, versions or (mixes[0].versions if mixes else ()))
            evidence = replace(evidence, routes=tuple(routes.items()))
    except ServingError as error:
        raise InputError(str(error)) from error
    except DrillError as error:
        raise InputError(f"The drills cannot be driven: {error}") from error
    if logs is not None:
        write_logs(logs, results)
    rows = _store(load_settings(db=db).db, evidence, results, mixes, max_age) if store else ()
    if as_json:
        emit(document(evidence, results, mixes, rows))
    else:
        _say_all(say, field_lines(rows, evidence.model, max_age))
        _say_all(say, (*summary_lines(results), *mix_lines(mixes)))
        say(claim_line(claimed(results, mixes)))
        say(verdict_line(results, mixes))
    if any(one.verdict is Verdict.RED for one in results) or any(mix.faulty for mix in mixes):
        return Exit.RED
    return Exit.PARTIAL if nothing_driven(results, mixes) else Exit.DONE


@dataclass(frozen=True, slots=True)
class Setting:
    """What all drills of a command have in common."""

    policy: str
    providers: tuple[str, ...]
    pace: Pace


@contextmanager
def _ended_in_order() -> Iterator[None]:
    """Take SIGTERM as Ctrl-C meanwhile, so that workers, mounts, groups and folders are taken away then, too."""
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread may say what a signal does
        return
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _silent(line: str) -> None:
    """Say nothing: the document is all that is printed."""


def _aloud(line: str) -> None:
    console().print(line, markup=False, overflow="fold")


def _chosen(ids: Sequence[str], failure_class: str | None, everything: bool) -> tuple[Case, ...]:
    known = {one.id: one for one in FAULTS}
    unknown = [one for one in ids if one not in known]
    if unknown:
        raise UsageError(f"No fault is called {unknown[0]!r}; crashpath faults lists them.")
    if failure_class is not None and failure_class not in {one.id for one in CLASSES}:
        raise UsageError(f"No failure class is called {failure_class!r}; crashpath classes lists them.")
    if not (ids or failure_class or everything):
        raise UsageError("Say what to drill: --fault F, --class C, --all or --n N.")
    chosen = tuple(
        one for one in FAULTS if everything or one.id in ids or (failure_class and one.failure_class == failure_class)
    )
    cases = cases_of(chosen)
    if not cases:
        raise UsageError("None of these faults can be drilled; crashpath faults says which can.")
    return cases


def _drive(
    folder: ModelFolder,
    cases: Sequence[Case],
    isolations: Sequence[str],
    setting: Setting,
    say: Say,
    routes: Counter[str],
) -> tuple[list[DrillResult], tuple[tuple[str, str], ...]]:
    """Drive the cases; ``routes`` gets the edges that the sessions took."""
    results: list[DrillResult] = []
    versions: dict[str, str] = {}
    if cases:
        say(LEGEND)
    for isolation in isolations if cases else ():
        with Runner(
            folder, isolation, POLICIES[setting.policy], pace=setting.pace, providers=setting.providers
        ) as runner:
            for result in runner.run(cases):
                results.append(result)
                say(drill_line(result))
            versions |= dict(runner.versions)
        routes.update(runner.routes)
    return results, tuple(versions.items())


def _mixes(
    folder: ModelFolder,
    cases: Sequence[Case],
    isolations: Sequence[str],
    setting: Setting,
    n: int,
    seed: int,
    say: Say,
) -> tuple[MixResult, ...]:
    usable = {isolation: mixable(cases, isolation) for isolation in isolations}
    if not any(usable.values()):
        raise UsageError("None of these faults can strike single requests; choose others for --n.")
    results = []
    for isolation, mine in usable.items():
        if not mine:
            say(f"no mix in {isolation}: none of these faults can strike single requests there")
            continue
        say(f"{n:,} requests under a mix of {len(mine)} faults in {isolation} …")
        policy = patient(POLICIES[setting.policy])
        with opened(folder, isolation, policy, pace=setting.pace, providers=setting.providers) as stage:
            results.append(Mix(stage, mine, seed).run(n))
    return tuple(results)


def _evidence(folder: ModelFolder, release: str, setting: Setting, versions: tuple[tuple[str, str], ...]) -> Evidence:
    limits = asdict(replace(folder.limits, load_s=setting.pace.load))
    return Evidence(
        datetime.now(UTC),
        release,
        folder.name,
        folder.hash,
        setting.policy,
        versions,
        setting.providers,
        tuple(limits.items()),
    )


def _store(
    url: str, evidence: Evidence, results: Sequence[DrillResult], mixes: Sequence[MixResult], max_age: int
) -> tuple[FieldRow, ...]:
    """Keep what was driven, and return what stands against the field now."""
    checks = [Names(check.id, check.prevents) for check in CHECKS]
    with open_store(url) as store:
        with store.write() as session:
            store_drills(session, evidence, results, mixes)
        with store.read() as session:
            since = evidence.at - timedelta(days=max_age)
            return field_against_proof(session, checks, model_hash=evidence.model_hash, since=since)


def _say_all(say: Say, lines: Iterable[str]) -> None:
    for line in lines:
        say(line)
