"""``crashpath faults`` and ``crashpath drill``: the catalogue, and its faults driven through the runtime."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from pathlib import Path

import typer

from crashpath.coverage.drill import DrillError
from crashpath.coverage.drillcase import Case, cases_of
from crashpath.coverage.drillcells import Verdict
from crashpath.coverage.drillclaim import claimed
from crashpath.coverage.drillkept import Kept, planned
from crashpath.coverage.drilllogs import write_logs
from crashpath.coverage.drillmix import mixable
from crashpath.coverage.drillplan import ISOLATIONS
from crashpath.coverage.drillroutes import scenarios_of
from crashpath.coverage.drillrun import folder_to_drill
from crashpath.coverage.drillstage import Pace
from crashpath.coverage.drillstore import Evidence
from crashpath.coverage.faults import FAULTS
from crashpath.coverage.field import FieldRow, Names, field_against_proof
from crashpath.dashboard.drill_json import document, fault_json
from crashpath.dashboard.drill_text import (
    claim_lines,
    field_lines,
    mix_lines,
    nothing_driven,
    opening_lines,
    repeat_lines,
    route_lines,
    summary_lines,
    verdict_line,
    wrapped,
)
from crashpath.dashboard.drill_work import Order, Work, ended_in_order, evidence_of, writable_store, write_outside
from crashpath.dashboard.errors import InputError, UsageError
from crashpath.dashboard.exits import Exit
from crashpath.dashboard.faces import DbOption, JsonOption, complain, console, emit
from crashpath.dashboard.settings import load_settings
from crashpath.ingest.classes import CLASSES, UNCLASSIFIED
from crashpath.ingest.store import Store
from crashpath.runtime.diagnose import CHECKS
from crashpath.runtime.errors import ServingError
from crashpath.runtime.look import CPU
from crashpath.runtime.policy import POLICIES

BOTH = "both"
Isolation = StrEnum("Isolation", {name: name for name in (*ISOLATIONS, BOTH)})  # type: ignore[misc]  # from the plans
Preset = StrEnum("Preset", {name: name for name in POLICIES})  # type: ignore[misc]  # names come from the runtime

_BOTH, _BREAKER = Isolation(BOTH), Preset("breaker")


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
    everything: bool = typer.Option(False, "--all", help="Every fault that can be drilled, and --routes."),
    routes: bool = typer.Option(False, "--routes", help="Take the edges of the decision graph that no fault takes."),
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
    chosen = fault or []
    if everything and (chosen or failure_class is not None):
        one = "--fault" if chosen else "--class"
        raise UsageError(f"--all drives every fault, {one} only some: say one of them.")
    named = bool(chosen) or failure_class is not None
    cases = (
        ()
        if routes and not (named or everything or n)
        else _chosen(chosen, failure_class, everything or (n > 0 and not named))
    )
    isolations = tuple(ISOLATIONS) if isolation == BOTH else (str(isolation),)
    if n and not any(mixable(cases, one) for one in isolations):
        raise UsageError("None of these faults can strike single requests; choose others for --n.")
    driven = cases if everything or not n else ()
    order = Order(driven, cases if n else (), isolations, str(policy), tuple(provider), Pace(), n, seed)
    if routes or everything:
        order = replace(order, routes=scenarios_of(order.policy))
    face = Face(model, release, logs, max_age, as_json)
    return _driven(order, face, load_settings(db=db).db if store else None)


@dataclass(frozen=True, slots=True)
class Face:
    """What was asked for besides the order: whose evidence it is, where logs go, how it is told."""

    model: Path | None
    release: str
    logs: Path | None
    max_age: int
    as_json: bool

    def say(self, line: str) -> None:
        """Print for people; where a document was asked for, it is all that is printed."""
        if not self.as_json:
            for one in wrapped(line, console().width):
                sys.stdout.write(f"{one}\n")  # not past a progress bar, as a console of its own would
            sys.stdout.flush()


def _driven(order: Order, face: Face, url: str | None) -> int:
    with ended_in_order() as ending, writable_store(url) as store, _spoken(), folder_to_drill(face.model) as folder:
        plan = planned(order.drills, order.mixed, order.isolations, order.routes)
        for line in opening_lines(folder, order.policy, order.providers, order.pace, plan):
            face.say(line)
        kept = Kept(store, evidence_of(folder, face.release, order), plan)
        work = Work(folder, order, kept, ending, face.say, bar=sys.stderr.isatty() and not face.as_json)
        whole = False
        try:
            work.drive()
            whole = True
        except KeyboardInterrupt:
            complain(f"Stopped: {kept.early}.")
            return Exit.FAILED
        finally:
            with ending.held():
                _keep_logs(face.logs, kept, work.outside)
                _report(order, face, store if whole else None, kept, whole)
    verdicts = {*(one.verdict for one in kept.results), *(one.verdict for one in kept.routes)}
    if Verdict.RED in verdicts or any(mix.faulty for mix in kept.mixes):
        return Exit.RED
    return Exit.PARTIAL if nothing_driven(kept.results, kept.mixes, kept.routes) else Exit.DONE


@contextmanager
def _spoken() -> Iterator[None]:
    try:
        yield
    except ServingError as error:
        raise InputError(str(error)) from error
    except DrillError as error:
        raise InputError(f"The drills cannot be driven: {error}") from error


def _keep_logs(logs: Path | None, kept: Kept, outside: str) -> None:
    if logs is not None:
        write_logs(logs, kept.results)
    if not outside.strip():
        return
    if logs is None:
        complain(f"{len(outside.splitlines())} lines came on standard error outside of drills; --logs DIR keeps them.")
    else:
        complain(f"What came on standard error outside of drills is in {write_outside(logs, outside)}.")


def _report(order: Order, face: Face, store: Store | None, kept: Kept, whole: bool) -> None:
    """Print the document, or the sums; of a run that ended early those of what was driven, and that it did."""
    rows = () if store is None else _field(store, kept.evidence, face.max_age)
    if face.as_json:
        told = document(kept.evidence, kept.results, kept.mixes, rows, kept.routes)
        emit(told | ({} if whole else {"ended_early": kept.early}))
        return
    lines = [*field_lines(rows, kept.evidence.model, face.max_age)]
    lines += (*summary_lines(kept.results), *route_lines(kept.routes), *mix_lines(kept.mixes))
    lines += claim_lines(claimed(kept.results, kept.mixes))
    verdict = verdict_line(kept.results, kept.mixes, kept.routes)
    if whole or verdict.startswith("RED"):
        lines.append(verdict)
    options = [f"--provider={one}" for one in order.providers if order.providers != (CPU,)]
    options += [f"--policy={order.policy}"] if order.policy != _BREAKER else []
    lines += repeat_lines(kept.results, face.model, options, kept.routes)
    if not whole:
        lines.append(kept.early)
    for line in lines:
        face.say(line)


def _field(store: Store, evidence: Evidence, max_age: int) -> tuple[FieldRow, ...]:
    """Return what stands against the field now."""
    checks = [Names(check.id, check.prevents) for check in CHECKS]
    since = datetime.now(UTC) - timedelta(days=max_age)
    with store.read() as session:
        return field_against_proof(session, checks, model_hash=evidence.model_hash, since=since)


def _chosen(ids: Sequence[str], failure_class: str | None, everything: bool) -> tuple[Case, ...]:
    known = {one.id: one for one in FAULTS}
    unknown = [one for one in ids if one not in known]
    if unknown:
        raise UsageError(f"No fault is called {unknown[0]!r}; crashpath faults lists them.")
    if failure_class is not None and failure_class not in {one.id for one in CLASSES}:
        raise UsageError(f"No failure class is called {failure_class!r}; crashpath classes lists them.")
    if not (ids or failure_class or everything):
        raise UsageError("Say what to drill: --fault F, --class C, --all, --routes or --n N.")
    chosen = tuple(
        one for one in FAULTS if everything or one.id in ids or (failure_class and one.failure_class == failure_class)
    )
    cases = cases_of(chosen)
    if not cases:
        raise UsageError("None of these faults can be drilled; crashpath faults says which can.")
    return cases
