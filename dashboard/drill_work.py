"""What ``crashpath drill`` does: it drives cases and mixes one after the other, keeps what comes, and shows how far."""

from __future__ import annotations

import signal
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from crashpath.coverage.drillcase import Case, not_here
from crashpath.coverage.drillkept import Kept
from crashpath.coverage.drillmix import Mix, mixable, patient
from crashpath.coverage.drillroutes import RouteRunner
from crashpath.coverage.drillrun import Runner
from crashpath.coverage.drillsaid import Said, kept_apart
from crashpath.coverage.drillstage import Pace, opened
from crashpath.coverage.drillstore import Evidence
from crashpath.coverage.routescenario import Scenario
from crashpath.dashboard.drill_text import LEGEND, drill_line, route_line
from crashpath.ingest.store import Store, open_store
from crashpath.runtime.folder import ModelFolder
from crashpath.runtime.policy import POLICIES

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Order:
    """What is to be driven: ``drills`` one by one, ``routes``, then ``n`` struck requests of a mix of ``mixed``."""

    drills: tuple[Case, ...]
    mixed: tuple[Case, ...]
    isolations: tuple[str, ...]
    policy: str
    providers: tuple[str, ...]
    pace: Pace
    n: int
    seed: int
    routes: tuple[Scenario, ...] = ()


class Ending:
    """Ctrl-C and SIGTERM end a command in order, but not in the middle of what is `held`: that is ended first."""

    def __init__(self) -> None:
        self._held = self._asked = False

    def __call__(self, *_: object) -> None:
        """Take a signal."""
        if not self._held:
            raise KeyboardInterrupt
        self._asked = True

    @contextmanager
    def held(self) -> Iterator[None]:
        """Do something whole."""
        self._held = True
        try:
            yield
        finally:
            self._held = False
        if self._asked:
            self._asked = False
            raise KeyboardInterrupt


@contextmanager
def ended_in_order() -> Iterator[Ending]:
    """Take both signals meanwhile, so that workers, mounts, groups and folders are taken away then, too."""
    ending = Ending()
    if threading.current_thread() is not threading.main_thread():
        yield ending  # only the main thread may say what a signal does
        return
    taken = [one for one in (signal.SIGINT, signal.SIGTERM) if signal.getsignal(one) is not signal.SIG_IGN]
    before = {one: signal.signal(one, ending) for one in taken}  # what was to be ignored, as in a shell's job, is
    try:
        yield ending
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def writable_store(url: str | None) -> Iterator[Store | None]:
    """Open the store and try that it can be written to, before long work is to be kept in it. Raises `StoreError`."""
    if url is None:
        yield None
        return
    with open_store(url) as store:
        with store.write() as session:
            session.connection()  # which a session opens no sooner than it is used
        yield store


def evidence_of(folder: ModelFolder, release: str, order: Order) -> Evidence:
    """What all drills have in common; versions and routes are not known before they ran."""
    limits = asdict(replace(folder.limits, load_s=order.pace.load))
    return Evidence(
        datetime.now(UTC), release, folder.name, folder.hash, order.policy, (), order.providers, tuple(limits.items())
    )


class Work:
    """Drives an order. What it came to is in ``kept``; what no drill wrote on standard error is in ``outside``."""

    def __init__(self, folder: ModelFolder, order: Order, kept: Kept, ending: Ending, say: Say, bar: bool) -> None:
        self._folder = folder
        self._order = order
        self._kept = kept
        self._ending = ending
        self._say = say
        self._bar = bar
        self._versions: dict[str, str] = {}
        self._routes: Counter[str] = Counter()
        self.outside = ""

    def drive(self) -> None:
        """Drive it all. Whatever ends it early, what was driven is kept, and says so; that error is raised."""
        whole = False
        try:
            with kept_apart() as said:
                try:
                    self._drive(said)
                    whole = True
                finally:
                    said.put_aside()
                    self.outside = said.outside
        finally:
            with self._ending.held():
                self._kept.end(datetime.now(UTC), tuple(self._routes.items()), whole=whole)

    def _drive(self, said: Said) -> None:
        console = Console(file=said.terminal) if self._bar else Console(quiet=True)
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        with Progress(
            *columns,
            console=console,
            transient=True,
            refresh_per_second=2,
            disable=not self._bar,
            redirect_stdout=sys.stdout.isatty(),
            redirect_stderr=False,
        ) as progress:
            if self._order.drills:
                self._say(LEGEND)
                task = progress.add_task("drills", total=self._kept.plan.drills)
                for isolation in self._order.isolations:
                    self._drills(isolation, said, lambda: progress.advance(task))
            if self._order.routes:
                self._say("")
                task = progress.add_task("route drills", total=self._kept.plan.routes)
                for isolation in self._order.isolations:
                    self._edges(isolation, said, lambda: progress.advance(task))
            for isolation in self._order.isolations if self._order.n else ():
                self._mix(isolation, said, progress)

    def _drills(self, isolation: str, said: Said, advance: Callable[[], None]) -> None:
        order, before = self._order, self._routes.copy()
        runner = Runner(
            self._folder, isolation, POLICIES[order.policy], pace=order.pace, providers=order.providers, said=said
        )
        try:
            with runner:
                for case, result in zip(order.drills, runner.run(order.drills), strict=True):
                    self._versions |= dict(runner.versions)
                    self._routes = before + runner.routes
                    with self._ending.held():
                        at = datetime.now(UTC)
                        self._kept.add(result, at, tuple(self._versions.items()), tuple(self._routes.items()))
                    self._say(drill_line(result))
                    if not_here(case, isolation) is None:
                        advance()
        finally:
            self._routes = before + runner.routes

    def _edges(self, isolation: str, said: Said, advance: Callable[[], None]) -> None:
        order, before = self._order, self._routes.copy()
        runner = RouteRunner(self._folder, isolation, pace=order.pace, providers=order.providers)
        for scenario, result in zip(order.routes, runner.run(order.routes), strict=True):
            self._versions |= dict(runner.versions)
            self._routes = before + runner.routes
            with self._ending.held():
                at = datetime.now(UTC)
                self._kept.add_route(result, at, tuple(self._versions.items()), tuple(self._routes.items()))
            said.put_aside()
            self._say(route_line(result))
            if scenario.not_here(isolation) is None:
                advance()

    def _mix(self, isolation: str, said: Said, progress: Progress) -> None:
        order = self._order
        mine = mixable(order.mixed, isolation)
        if not mine:
            self._say(f"no mix in {isolation}: none of these faults can strike single requests there")
            return
        self._say(f"{order.n:,} requests under a mix of {len(mine)} faults in {isolation} …")
        task = progress.add_task(f"mix in {isolation}", total=order.n)
        policy = patient(POLICIES[order.policy])
        with opened(self._folder, isolation, policy, pace=order.pace, providers=order.providers) as stage:
            mix = Mix(stage, mine, order.seed).run(order.n, lambda done: progress.update(task, completed=done))
            with self._ending.held():
                self._kept.add_mix(mix, datetime.now(UTC))
        said.put_aside()
        progress.remove_task(task)


def write_outside(folder: Path, text: str) -> Path:
    """Write what no drill wrote on standard error beside the logs of drills."""
    folder.mkdir(parents=True, exist_ok=True)
    partial, target = folder / ".outside-drills.part", folder / "outside-drills.log"
    partial.write_text(text, encoding="utf-8", errors="backslashreplace")
    partial.replace(target)
    return target
