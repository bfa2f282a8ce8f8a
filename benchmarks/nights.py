"""Sixty nights of drifting logs through the real pipeline, with clusters formed anew never, nightly, or weekly.

Weekly is what a night does by itself: after 7 days, or when a fifth of the signatures is new. Each policy has a store
of its own and reads the same logs (``drift``); every few nights a person looks at the store and merges, splits, names
and classifies a cluster.

What must hold: nearly all crash mass keeps its cluster's id from night to night, no decision of people is lost, and
every planted new failure is a birth on its first night. Beside that: crashes under a cluster of another failure (false
joins), clusters too many of one failure (missed joins), births of what was known (wrong births), BCubed at the end.
``--nights N`` for a quick run, ``--hosts M`` log files a night.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

from drift import HOSTS, NIGHTS, SEED, Night, drift
from nights_figures import Figures, report
from results_file import write_results
from sqlalchemy import select
from sqlalchemy.orm import Session
from stories import FAMILY, MERGE, REWORD, SIDES, SPLIT, at_the_end

from crashpath.clustering.encoder import Encoder
from crashpath.clustering.metrics import bcubed
from crashpath.clustering.night import Clusterer
from crashpath.clustering.recluster_step import Reclusterer, Schedule
from crashpath.dashboard.engines import classifier, encoder
from crashpath.dashboard.nightly import NightOptions, run_night
from crashpath.ingest import deciding
from crashpath.ingest.decisions import By
from crashpath.ingest.following import followed
from crashpath.ingest.lineage import crash_mass
from crashpath.ingest.store import Store, open_store
from crashpath.ingest.tables import Cluster, Crash, Signature, Source, Variant

POLICIES: tuple[tuple[str, Schedule | None], ...] = (
    ("never", None),
    ("nightly", Schedule(days=0.0)),
    ("weekly", Schedule()),
)
LEAST_KEPT = 0.99
DECIDING = 6
"""How often a person decides, spread over the nights; four decisions each time."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What people decided, told of signatures: together, apart, or a cluster's name or class."""

    kind: str
    one: str
    other: str = ""
    value: str = ""

    def holds(self, session: Session, homes: dict[str, int]) -> bool:
        """Whether it still stands."""
        if self.kind == "merge":
            return homes[self.one] == homes[self.other]
        if self.kind == "split":
            return homes[self.one] != homes[self.other]
        cluster = session.get_one(Cluster, homes[self.one])
        return cluster.name == self.value if self.kind == "name" else cluster.failure_class == self.value


class Simulation:
    """One policy over all nights, in a store of its own."""

    def __init__(self, policy: str, schedule: Schedule | None, store: Store, made: Encoder, count: int) -> None:
        self._store, self._made = store, made
        self._deciding = {count * n // (DECIDING + 1) for n in range(1, DECIDING + 1)}
        self._reclusterer = None if schedule is None else Reclusterer(lambda: made, classifier, schedule=schedule)
        self._truth: dict[str, Counter[str]] = defaultdict(Counter)
        self._known: set[str] = set()
        self._wanted: list[Wanted] = []
        self._unlike: list[frozenset[str]] = []
        self._cut = 0
        self.figures = Figures(policy)

    def night(self, night: Night, folder: Path) -> None:
        """Run one night over its folder, and compare with what was there before it."""
        figures = self.figures
        with self._store.read() as session:
            homes, mass = _homes(session), crash_mass(session)
        done = run_night(
            self._store, [str(folder)], NightOptions(), Clusterer(lambda: self._made, classifier),
            clock=lambda: night.at, reclusterer=self._reclusterer,
        )  # fmt: skip
        figures.crashes = done.crashes
        if done.reclustered is not None:
            figures.reclusterings += 1
            figures.moved += done.reclustered.moved
            figures.merged += done.reclustered.merged
            figures.split += done.reclustered.split
            figures.recluster_seconds += dict(done.seconds).get("re-cluster", 0.0)
        with self._store.read() as session:
            now = _homes(session)
            self._keep(session, homes, now, mass)
            self._births(session, night, done.night, homes, now)
            lost = [one for one in self._wanted if not one.holds(session, now)]
        figures.lost += [f"night {night.number}: {one.kind} {one.value}" for one in lost]
        self._wanted = [one for one in self._wanted if one not in lost]
        if night.number in self._deciding:
            self._decide(night, now)

    def _keep(self, session: Session, before: dict[str, int], now: dict[str, int], mass: dict[str, int]) -> None:
        total = sum(mass.get(one, 0) for one in before)
        if total:
            same = sum(mass.get(one, 0) for one, home in before.items() if now[one] == home)
            led = sum(mass.get(one, 0) for one, home in before.items() if now[one] == followed(session, home)[0])
            self.figures.kept.append(same / total)
            self.figures.resolved.append(led / total)

    def _births(self, session: Session, night: Night, number: int, before: dict[str, int], now: dict[str, int]) -> None:
        tonight: dict[int, Counter[str]] = defaultdict(Counter)
        for signature, truth in _told(session, number):
            self._truth[signature][truth] += 1
            tonight[now[signature]][truth] += 1
        born = set(session.scalars(select(Cluster.id).where(Cluster.night_id == number, Cluster.status == "active")))
        self.figures.alerts += len(born - {home for one, home in now.items() if one not in before})
        for cluster in born & set(tonight):
            (most, _), *_ = tonight[cluster].most_common(1)
            self.figures.wrong_births += most in self._known
        for truth in sorted(night.new):
            homes = [cluster for cluster, told in tonight.items() if truth in told]
            self.figures.planted += 1
            if homes and all(cluster in born and set(tonight[cluster]) == {truth} for cluster in homes):
                self.figures.born += 1
            else:
                self.figures.hidden.append(f"night {night.number}: {truth}")
        self._known |= {one.truth for one in night.logs}

    def _decide(self, night: Night, homes: dict[str, int]) -> None:
        """A person merges what is one failure (each third time what is two), splits, names, and gives a class."""
        with self._store.read() as session:
            mass = crash_mass(session)
        members: dict[int, list[str]] = defaultdict(list)
        for signature in sorted(homes, key=lambda one: (-mass.get(one, 0), one)):
            members[homes[signature]].append(signature)
        decided = {homes[one] for wanted in self._wanted for one in (wanted.one, wanted.other) if one in homes}
        free = [number for number in members if number not in decided]
        wide, part = self._to_split(members, free)
        free.remove(wide)
        into, gone = self._to_merge(members, free, unlike=self.figures.decisions % 12 == 8)
        named, classed = [number for number in free if number not in (into, gone)][:2]
        by, name = By("operator", night.at), f"known since {night.number}"
        with self._store.write() as session:
            deciding.merge(session, into, [gone], by)
            deciding.split(session, wide, part, by)
            deciding.name(session, named, name, by)
            deciding.assign(session, classed, "hang", by)
        stays = next(one for one in members[wide] if one not in part)
        self._wanted += [
            *(Wanted("merge", members[into][0], one) for one in members[gone]),
            *(Wanted("split", stays, one) for one in part),
            Wanted("name", members[named][0], value=name),
            Wanted("assign", members[classed][0], value="hang"),
        ]
        self.figures.decisions += 4

    def _to_split(self, members: dict[int, list[str]], free: Sequence[int]) -> tuple[int, list[str]]:
        """A cluster of two failures and the signatures of the lesser one, else one of one failure and a signature."""
        wide = [number for number in free if len(members[number]) > 1]
        for number in wide:
            most = self._most(members[number])
            part = [one for one in members[number] if most not in self._truth[one]]
            if part:
                return number, part
        self._cut += 1
        return wide[-1], members[wide[-1]][1:2]

    def _to_merge(self, members: dict[int, list[str]], free: Sequence[int], *, unlike: bool) -> tuple[int, int]:
        """The heaviest two clusters of one failure; of two failures where ``unlike`` or where there are none."""
        by_truth: dict[str, list[int]] = defaultdict(list)
        for number in free:
            by_truth[at_the_end(self._most(members[number]))].append(number)
        like = [several for several in by_truth.values() if len(several) > 1]
        if like and not unlike:
            return like[0][0], like[0][1]
        one, other = [several for several in by_truth.values() if len(several) == 1][3:5]
        self._unlike.append(frozenset(at_the_end(self._most(members[each[0]])) for each in (one, other)))
        return one[0], other[0]

    def _most(self, signatures: Sequence[str]) -> str:
        told = sum((self._truth[one] for one in signatures), Counter[str]())
        return min(told, key=lambda truth: (-told[truth], truth)) if told else ""

    def finish(self) -> Figures:
        """Compare all crashes with the truth at the end."""
        with self._store.read() as session:
            homes = _homes(session)
        crashes = [(homes[one], self._label(truth)) for one, told in self._truth.items() for truth in told.elements()]
        found, truth = [cluster for cluster, _ in crashes], [label for _, label in crashes]
        agreement, figures = bcubed(found, truth), self.figures
        figures.precision, figures.recall = agreement.precision, agreement.recall
        figures.clusters, figures.signatures = len(set(homes.values())), len(homes)
        spread: dict[str, set[int]] = defaultdict(set)
        for cluster, label in crashes:
            spread[label].add(cluster)
        figures.missed_joins = sum(len(clusters) - 1 for clusters in spread.values()) - self._cut
        self._mixed(crashes)
        apart = not spread[SIDES[0]] & spread[SIDES[1]]
        figures.stories = {one: f"{len(spread[one])} cluster(s)" for one in (REWORD, MERGE)}
        figures.stories[SPLIT] = "apart" if apart else "still together"
        return figures

    def _label(self, truth: str) -> str:
        """Which failure a crash is, seen from the end: what people put together is one."""
        label = at_the_end(truth)
        for pair in self._unlike:
            label = min(pair) if label in pair else label
        return label

    def _mixed(self, crashes: Sequence[tuple[int, str]]) -> None:
        told: dict[int, Counter[str]] = defaultdict(Counter)
        for cluster, label in crashes:
            told[cluster][label] += 1
        wrong = 0
        for labels in told.values():
            (most, _), *others = labels.most_common()
            for label, n in others:
                pair = {most, label}
                if not pair <= FAMILY or pair >= set(SIDES):
                    wrong += n
                    self.figures.mixed.append(f"{label} in {most} ({n})")
        self.figures.false_joins = wrong / len(crashes)


def _homes(session: Session) -> dict[str, int]:
    rows = session.execute(select(Signature.id, Signature.cluster_id).where(Signature.cluster_id.is_not(None)))
    return {signature: cluster for signature, cluster in rows if cluster is not None}


def _told(session: Session, night: int) -> list[tuple[str, str]]:
    """The signature of each crash of a night, and its truth, which its file's name tells."""
    query = (
        select(Variant.signature_id, Source.path)
        .join(Crash, Crash.variant_id == Variant.id)
        .join(Source, Source.id == Crash.source_id)
        .where(Crash.night_id == night)
    )
    return [(signature, Path(path).name.partition("--")[0]) for signature, path in session.execute(query)]


def simulate(policy: str, schedule: Schedule | None, nights: Sequence[Night], place: Path) -> Figures:
    """Run all nights under one policy."""
    started = time.perf_counter()
    made = encoder("minilm")
    with open_store(f"sqlite:///{place}/{policy}.db") as store:
        simulation = Simulation(policy, schedule, store, made, len(nights))
        for night in nights:
            simulation.night(night, place / f"night{night.number:02d}")
        figures = simulation.finish()
    figures.seconds = time.perf_counter() - started
    return figures


def write_logs(nights: Sequence[Night], place: Path) -> None:
    """Write the files of each night into a folder; a file's name begins with its truth."""
    for night in nights:
        folder = place / f"night{night.number:02d}"
        folder.mkdir()
        for number, log in enumerate(night.logs):
            (folder / f"{log.truth}--{number:03d}.log").write_text(log.text, encoding="utf-8")


def main(arguments: Sequence[str] = ()) -> int:
    """Print the table and write the figures; 1 where, weekly, an id, a decision or a new failure is lost."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nights", type=int, default=NIGHTS)
    parser.add_argument("--hosts", type=int, default=HOSTS, help="log files a night")
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--jobs", type=int, default=2, help="policies at a time, each in a process of its own")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="crashpath-bench-") as name:
        nights, place = drift(options.nights, options.hosts, options.seed), Path(name)
        write_logs(nights, place)
        with ProcessPoolExecutor(options.jobs, mp_context=get_context("spawn")) as pool:
            running = [pool.submit(simulate, policy, schedule, nights, place) for policy, schedule in POLICIES]
            figures = [one.result() for one in running]
    report(figures)
    sizes = {"nights": options.nights, "hosts": options.hosts, "seed": options.seed}
    if options.nights >= NIGHTS:
        write_results("nights", {**sizes, "policies": [one.document() for one in figures]})
    weekly = figures[-1]
    return int(bool(weekly.lost or weekly.hidden or weekly.alerts) or weekly.least < LEAST_KEPT)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
