"""``crashpath faults`` and ``crashpath drill``: the catalogue, and its faults driven through the runtime."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Any

import typer

from crashpath.coverage.drill import Case, DrillError, cases_of
from crashpath.coverage.drillcells import DrillResult, Verdict
from crashpath.coverage.drilllogs import write_logs
from crashpath.coverage.drillmix import Mix, MixResult, mixable, patient
from crashpath.coverage.drillplan import ISOLATIONS
from crashpath.coverage.drillrun import Runner, folder_to_drill
from crashpath.coverage.drillstage import Pace, opened
from crashpath.coverage.drillstore import Evidence, store_drills
from crashpath.coverage.fault import Fault, missing
from crashpath.coverage.faults import FAULTS
from crashpath.dashboard.drill_text import LEGEND, drill_line, field_lines, mix_lines, summary_lines, totals
from crashpath.dashboard.errors import InputError, UsageError
from crashpath.dashboard.exits import Exit
from crashpath.dashboard.faces import DbOption, JsonOption, console, emit
from crashpath.dashboard.settings import load_settings
from crashpath.ingest.classes import CLASSES, UNCLASSIFIED
from crashpath.ingest.store import open_store
from crashpath.runtime.errors import ServingError
from crashpath.runtime.folder import ModelFolder
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
        emit([_fault_json(one) for one in chosen])
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
        help="Send N requests to one session under a mix of these faults; with --all, after them.",
    ),
    model: Path | None = typer.Option(None, "--model", help="The model folder. Default: a tiny one, made now."),
    isolation: Isolation = typer.Option(_BOTH, "--isolation", help="Where the paths run."),
    policy: Preset = typer.Option(_BREAKER, "--policy", help="The session's policy."),
    release: str = typer.Option("", "--release", help="The release that the evidence is for."),
    logs: Path | None = typer.Option(None, "--logs", help="A folder for what the struck processes print, labelled."),
    seed: int = typer.Option(0, "--seed", help="Seed of the mix."),
    store: bool = typer.Option(True, "--store/--no-store", help="Keep the results in the store."),
    db: DbOption = None,
    as_json: JsonOption = False,
) -> int:
    """Raise real faults inside the runtime, on a copy of a model folder, and see whether every request is answered."""
    cases = _chosen(fault or [], failure_class, everything or (n > 0 and not fault and failure_class is None))
    isolations = ISOLATIONS if isolation == BOTH else (str(isolation),)
    say: Say = _silent if as_json else _aloud
    driven = cases if everything or not n else ()
    try:
        with _ended_in_order(), folder_to_drill(model) as folder:
            say(f"{folder.name} {folder.hash}, policy {policy}")
            if driven:
                say(LEGEND)
            results, versions = _drive(folder, driven, isolations, str(policy), say)
            if n:
                say(f"{n:,} requests under a mix of faults …")
            mix = _mix(folder, cases, isolations[0], str(policy), n, seed) if n else None
            versions = versions or (mix.versions if mix is not None else ())
            evidence = Evidence(datetime.now(UTC), release, folder.name, folder.hash, str(policy), versions)
    except ServingError as error:
        raise InputError(str(error)) from error
    except DrillError as error:
        raise InputError(f"The drills cannot be driven: {error}") from error
    if logs is not None:
        write_logs(logs, results)
    if store:
        _store(load_settings(db=db).db, evidence, results, mix, say)
    if as_json:
        emit(_document(evidence, results, mix))
    else:
        for line in (*summary_lines(results), *mix_lines(mix)):
            say(line)
    red = any(one.verdict is Verdict.RED for one in results) or (mix is not None and bool(mix.unanswered + mix.wrong))
    return Exit.RED if red else Exit.DONE


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
    folder: ModelFolder, cases: Sequence[Case], isolations: Sequence[str], policy: str, say: Say
) -> tuple[list[DrillResult], tuple[tuple[str, str], ...]]:
    results: list[DrillResult] = []
    versions: dict[str, str] = {}
    for isolation in isolations if cases else ():
        with Runner(folder, isolation, POLICIES[policy], pace=Pace()) as runner:
            for result in runner.run(cases):
                results.append(result)
                say(drill_line(result))
            versions |= dict(runner.versions)
    return results, tuple(versions.items())


def _mix(folder: ModelFolder, cases: Sequence[Case], isolation: str, policy: str, n: int, seed: int) -> MixResult:
    usable = mixable(cases, isolation)
    if not usable:
        raise UsageError("None of these faults can strike single requests; choose others for --n.")
    with ExitStack() as stack:
        stage = stack.enter_context(opened(folder, isolation, patient(POLICIES[policy])))
        return Mix(stage, usable, seed).run(n)


def _store(url: str, evidence: Evidence, results: Sequence[DrillResult], mix: MixResult | None, say: Say) -> None:
    with open_store(url) as store:
        with store.write() as session:
            store_drills(session, evidence, results, mix)
        with store.read() as session:
            for line in field_lines(session, evidence.model, evidence.model_hash):
                say(line)


def _fault_json(one: Fault) -> dict[str, Any]:
    plan = one.drill
    return {
        "id": one.id,
        "class": one.failure_class,
        "phase": one.phase,
        "library": one.library,
        "title": one.title,
        "missing": missing(one),
        "drill": None
        if plan is None
        else {
            "phases": plan.phases,
            "path": plan.path,
            "raises": plan.strike or plan.spoiler,
            "isolations": ["process"] if plan.process_only else list(ISOLATIONS),
            "not_in_process": plan.process_only or None,
        },
    }


def _document(evidence: Evidence, results: Sequence[DrillResult], mix: MixResult | None) -> dict[str, Any]:
    sums = totals(results, mix)
    return {
        "model": evidence.model,
        "model_hash": evidence.model_hash,
        "release": evidence.release,
        "policy": evidence.policy,
        "at": evidence.at.isoformat(),
        "versions": dict(evidence.versions),
        "drills": [_drill_json(one) for one in results],
        "requests": sums.requests,
        "unanswered": sums.unanswered,
        "wrong": sums.wrong,
        "trials": sums.trials,
        "lower_bound": sums.bound,
        "mix": None
        if mix is None
        else {
            "requests": mix.requests,
            "others": mix.others,
            "unanswered": mix.unanswered,
            "wrong": mix.wrong,
            "late": mix.late,
            "misnamed": mix.misnamed,
            "restarts": mix.restarts,
            "faults": dict(mix.faults),
            "errors": list(mix.errors),
            "lower_bound": mix.bound,
        },
    }


def _drill_json(one: DrillResult) -> dict[str, Any]:
    return {
        "fault": one.fault,
        "class": one.failure_class,
        "phase": one.phase,
        "isolation": one.isolation,
        "policy": one.policy,
        "path": one.path,
        "verdict": one.verdict,
        "cells": {cell.name: cell.value for cell in one.cells},
        "why": {cell.name: cell.why for cell in one.cells if cell.why},
        "requests": one.requests,
        "unanswered": one.unanswered,
        "wrong": one.wrong,
        "seconds": round(one.seconds, 3),
        "observed": one.observed,
    }
