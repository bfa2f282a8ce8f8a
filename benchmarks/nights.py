"""Sixty nights of drifting logs through the real pipeline, with clusters formed anew never, nightly, or weekly.

Weekly is what a night does by itself: after 7 days, or when a fifth of the signatures is new.

What must hold: nearly all crash mass keeps its cluster's id from night to night, no decision of people is lost, and
every planted new failure is a birth on its first night. Beside that: crashes under a cluster of another failure (false
joins), clusters too many of one failure (missed joins), births of what was known (wrong births), BCubed at the end.
``--nights N`` for a quick run, ``--crashes M`` a night.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, field
from datetime import UTC
from multiprocessing import get_context
from pathlib import Path

from nights_logs import MERGE, REWORD, SIDES, SPLIT, Night, nights, truths_at_the_end
from results_file import write_results
from sqlalchemy import select
from sqlalchemy.orm import Session
from tables import ROOT, table

from crashpath.clustering.encoder import Encoder
from crashpath.clustering.metrics import bcubed
from crashpath.clustering.night import Clusterer
from crashpath.clustering.recluster_step import Reclusterer, Schedule
from crashpath.dashboard.engines import classifier, encoder
from crashpath.dashboard.nightly import NightOptions, run_night
from crashpath.ingest import deciding
from crashpath.ingest.decisions import By
from crashpath.ingest.lineage import crash_mass, resolve
from crashpath.ingest.store import Store, open_store
from crashpath.ingest.tables import Cluster, Crash, Signature, Source, Variant

POLICIES: tuple[tuple[str, Schedule | None], ...] = (
    ("never", None),
    ("nightly", Schedule(days=0.0)),
    ("weekly", Schedule()),
)
LEAST_KEPT = 0.99
FAMILY = {SPLIT, *SIDES}
"""Before the one failure was two, its crashes may be with either."""


@dataclass(slots=True)
class Figures:
    """What one policy came to. ``kept`` and ``resolved`` have one share a night: same id, or an id that leads there."""

    policy: str
    kept: list[float] = field(default_factory=list)
    resolved: list[float] = field(default_factory=list)
    moved: int = 0
    merged: int = 0
    split: int = 0
    reclusterings: int = 0
    wrong_births: int = 0
    planted: int = 0
    born: int = 0
    hidden: list[str] = field(default_factory=list)
    decisions: int = 0
    lost: list[str] = field(default_factory=list)
    false_joins: float = 0.0
    joined_wrongly: list[str] = field(default_factory=list)
    missed_joins: int = 0
    clusters: int = 0
    signatures: int = 0
    precision: float = 0.0
    recall: float = 0.0
    stories: dict[str, str] = field(default_factory=dict)
    seconds: float = 0.0
    recluster_seconds: float = 0.0

    @property
    def f1(self) -> float:
        """BCubed F1 at the end."""
        both = self.precision + self.recall
        return 2 * self.precision * self.recall / both if both else 0.0


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
        self._store, self._made, self._count = store, made, count
        self._reclusterer = None if schedule is None else Reclusterer(lambda: made, classifier, schedule=schedule)
        self._truth: dict[str, Counter[str]] = defaultdict(Counter)
        self._known: set[str] = set()
        self._wanted: list[Wanted] = []
        self._merged: set[frozenset[str]] = set()
        self.figures = Figures(policy)

    def night(self, night: Night, folder: Path) -> None:
        """Run one night over its folder, and compare with what was there before it."""
        with self._store.read() as session:
            homes, mass = _homes(session), crash_mass(session)
        at = night.at.replace(tzinfo=UTC)
        done = run_night(
            self._store, [str(folder)], NightOptions(), Clusterer(lambda: self._made, classifier),
            clock=lambda: at, reclusterer=self._reclusterer,
        )  # fmt: skip
        if done.reclustered is not None:
            self.figures.reclusterings += 1
            self.figures.moved += done.reclustered.moved
            self.figures.merged += done.reclustered.merged
            self.figures.split += done.reclustered.split
            self.figures.recluster_seconds += dict(done.seconds).get("re-cluster", 0.0)
        with self._store.read() as session:
            now = _homes(session)
            self._keep(session, homes, now, mass)
            self._births(session, night, done.night, set(homes.values()), now)
            self.figures.lost += [
                f"night {night.number}: {one.kind} {one.value}" for one in self._wanted if not one.holds(session, now)
            ]
            self._wanted = [one for one in self._wanted if one.holds(session, now)]
        if night.number in {max(2, self._count // 6), max(3, self._count // 3), max(4, self._count // 2)}:
            self._decide(night, now)

    def _keep(self, session: Session, before: dict[str, int], now: dict[str, int], mass: dict[str, int]) -> None:
        total = sum(mass.get(one, 0) for one in before)
        if total:
            same = sum(mass.get(one, 0) for one, home in before.items() if now[one] == home)
            ends = {home: resolve(session, home) for home in set(before.values())}
            led = sum(mass.get(one, 0) for one, home in before.items() if now[one] == ends[home])
            self.figures.kept.append(same / total)
            self.figures.resolved.append(led / total)

    def _births(self, session: Session, night: Night, number: int, old: set[int], now: dict[str, int]) -> None:
        tonight: dict[int, Counter[str]] = defaultdict(Counter)
        for signature, truth in _told(session, number):
            self._truth[signature][truth] += 1
            tonight[now[signature]][truth] += 1
        made = set(session.scalars(select(Cluster.id).where(Cluster.night_id == number)))
        for cluster in made & set(tonight) - old:
            (most, _), *_ = tonight[cluster].most_common(1)
            self.figures.wrong_births += most in self._known
        for truth in sorted(night.new):
            homes = [cluster for cluster, told in tonight.items() if truth in told]
            self.figures.planted += 1
            if homes and all(cluster in made and set(tonight[cluster]) == {truth} for cluster in homes):
                self.figures.born += 1
            else:
                self.figures.hidden.append(f"night {night.number}: {truth}")
        self._known |= {one.truth for one in night.crashes}

    def _decide(self, night: Night, homes: dict[str, int]) -> None:
        """People merge two failures, split a signature off, name a cluster and give it a class."""
        with self._store.read() as session:
            mass = crash_mass(session)
        by = By("operator", night.at.replace(tzinfo=UTC))
        members: dict[int, list[str]] = defaultdict(list)
        for signature in sorted(homes, key=lambda one: (-mass.get(one, 0), one)):
            members[homes[signature]].append(signature)
        decided = {homes[one] for wanted in self._wanted for one in (wanted.one, wanted.other) if one in homes}
        free = [number for number in members if number not in decided]
        wide = next(number for number in reversed(free) if len(members[number]) > 1)
        into, gone, named, classed = [number for number in free if number != wide][5:9]
        a, b = members[wide][:2]
        with self._store.write() as session:
            deciding.merge(session, into, [gone], by)
            deciding.split(session, wide, [b], by)
            deciding.name(session, named, f"known since {night.number}", by)
            deciding.assign(session, classed, "hang", by)
        self._merged.add(frozenset(self._most(members[one]) for one in (into, gone)))
        self._wanted += [
            Wanted("merge", members[into][0], members[gone][0]), Wanted("split", a, b),
            Wanted("name", members[named][0], value=f"known since {night.number}"),
            Wanted("assign", members[classed][0], value="hang"),
        ]  # fmt: skip
        self.figures.decisions += 4

    def _most(self, signatures: Sequence[str]) -> str:
        told = sum((self._truth[one] for one in signatures), Counter[str]())
        return told.most_common(1)[0][0] if told else ""

    def finish(self) -> Figures:
        """Compare all crashes with the truth at the end."""
        with self._store.read() as session:
            homes = _homes(session)
        crashes = [
            (homes[one], self._label(truth), n) for one, told in self._truth.items() for truth, n in told.items()
        ]
        found = [cluster for cluster, _, n in crashes for _ in range(n)]
        truth = [label for _, label, n in crashes for _ in range(n)]
        agreement = bcubed(found, truth)
        figures = self.figures
        figures.precision, figures.recall = agreement.precision, agreement.recall
        self._joins(found, truth)
        figures.clusters, figures.signatures = len(set(homes.values())), len(homes)
        where: dict[str, set[int]] = defaultdict(set)
        for cluster, label, _ in crashes:
            where[label].add(cluster)
        apart = not where[SIDES[0]] & where[SIDES[1]]
        figures.stories = {
            REWORD: f"{len(where[REWORD])} cluster(s)",
            SPLIT: "apart" if apart else "still together",
            MERGE: f"{len(where[MERGE])} cluster(s)",
        }
        return figures

    def _label(self, truth: str) -> str:
        """Which failure a crash is, seen from the end: what people put together is one."""
        label = truths_at_the_end(truth)
        return next((min(pair) for pair in self._merged if label in pair), label)

    def _joins(self, found: Sequence[int], truth: Sequence[str]) -> None:
        told: dict[int, Counter[str]] = defaultdict(Counter)
        spread: dict[str, set[int]] = defaultdict(set)
        for cluster, label in zip(found, truth, strict=True):
            told[cluster][label] += 1
            spread[label].add(cluster)
        wrong = 0
        for labels in told.values():
            (most, _), *others = labels.most_common()
            for label, n in others:
                pair = {most, label}
                if pair <= FAMILY and not pair >= set(SIDES):
                    continue
                wrong += n
                self.figures.joined_wrongly.append(f"{label} in {most} ({n})")
        self.figures.false_joins = wrong / len(truth)
        splits = sum(one.kind == "split" for one in self._wanted)
        self.figures.missed_joins = sum(len(clusters) - 1 for clusters in spread.values()) - splits


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


def simulate(
    policy: str, schedule: Schedule | None, made: Encoder, all_nights: Sequence[Night], place: Path
) -> Figures:
    """Run all nights under one policy."""
    started = time.perf_counter()
    made = encoder("minilm")
    with open_store(f"sqlite:///{place}/{policy}.db") as store:
        simulation = Simulation(policy, schedule, store, made, len(all_nights))
        for night in all_nights:
            simulation.night(night, place / f"night{night.number:02d}")
        figures = simulation.finish()
    figures.seconds = time.perf_counter() - started
    return figures


def write_logs(all_nights: Sequence[Night], place: Path) -> None:
    """Write one file a crash; its name begins with the truth."""
    for night in all_nights:
        folder = place / f"night{night.number:02d}"
        folder.mkdir()
        for number, made in enumerate(night.crashes):
            (folder / f"{made.truth}--{number:03d}.log").write_text(made.text)


def report(figures: Sequence[Figures]) -> None:
    """Print the tables."""
    head = ("clusters formed anew", *(one.policy for one in figures))
    rows = [
        ("mass that keeps its id, worst night", *(f"{min(one.kept):.4f}" for one in figures)),
        ("mass that keeps its id, mean", *(f"{sum(one.kept) / len(one.kept):.5f}" for one in figures)),
        ("mass whose old id leads to it, worst", *(f"{min(one.resolved):.4f}" for one in figures)),
        ("planted new failures born", *(f"{one.born}/{one.planted}" for one in figures)),
        ("decisions lost", *(f"{len(one.lost)}/{one.decisions}" for one in figures)),
        ("crashes joined to another failure", *(f"{one.false_joins:.2%}" for one in figures)),
        ("clusters too many (missed joins)", *(str(one.missed_joins) for one in figures)),
        ("births of what was known", *(str(one.wrong_births) for one in figures)),
        ("BCubed precision", *(f"{one.precision:.4f}" for one in figures)),
        ("BCubed recall", *(f"{one.recall:.4f}" for one in figures)),
        ("BCubed F1", *(f"{one.f1:.4f}" for one in figures)),
        ("clusters / signatures", *(f"{one.clusters}/{one.signatures}" for one in figures)),
        ("merged / split / signatures moved", *(f"{one.merged}/{one.split}/{one.moved}" for one in figures)),
        ("seconds (re-clustering)", *(f"{one.seconds:.0f} ({one.recluster_seconds:.0f})" for one in figures)),
    ]
    table("Nights of drifting logs", head, rows)
    for story in (REWORD, SPLIT, MERGE):
        print(f"  {story}: " + ", ".join(f"{one.policy}: {one.stories[story]}" for one in figures))
    for one in figures:
        for what in (*one.hidden, *one.lost):
            print(f"  {one.policy}: {what}")


def main(arguments: Sequence[str] = ()) -> int:
    """Print the tables and write the figures; 1 where an id, a decision or a new failure is lost."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nights", type=int, default=60)
    parser.add_argument("--crashes", type=int, default=100, help="a night")
    parser.add_argument("--jobs", type=int, default=2, help="policies at a time, each in a process of its own")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="crashpath-bench-") as name:
        all_nights = nights(ROOT / "data", options.nights, options.crashes)
        write_logs(all_nights, Path(name))
        place = Path(name)
        with ProcessPoolExecutor(options.jobs, mp_context=get_context("spawn")) as pool:
            running = [pool.submit(simulate, policy, schedule, all_nights, place) for policy, schedule in POLICIES]
            figures = [one.result() for one in running]
    report(figures)
    if options.nights >= 60:
        write_results("nights", {
            "nights": options.nights, "crashes": sum(len(one.crashes) for one in all_nights),
            "policies": [asdict(one) | {"f1": one.f1} for one in figures],
        })  # fmt: skip
    red = [one for one in figures if one.lost or one.born < one.planted or min(one.kept) < LEAST_KEPT]
    return int(any(one.policy == POLICIES[-1][0] for one in red))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
