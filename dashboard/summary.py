"""What a night did, as values, as the JSON document of the contract, and as text for 80 columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from crashpath.clustering.map_step import Mapped
from crashpath.clustering.recluster_write import Reclustered
from crashpath.dashboard.plurals import many
from crashpath.ingest.classes import CLASSES, HEADLINES, UNCLASSIFIED, headline_of


@dataclass(frozen=True, slots=True)
class NightSummary:
    """Figures of one night. ``records``, ``new_*``, ``embedded`` are of the night; the others count the whole store.

    ``attempts`` are rows of the file of ``--attempts``, each a sum; ``attempts_told`` are attempts that events told of
    and that were not counted before, ``events`` the lines of the runtime's events: both of the night.
    """

    night: int
    status: str
    sources: int
    skipped: int
    empty: int
    unreadable: int
    lines: int
    records: int
    crashes: int
    new_crashes: int
    variants: int
    signatures: int
    new_signatures: int
    embedded: int
    clusters: int
    new_clusters: int
    joined: int
    classes: tuple[tuple[str, int], ...]
    quarantined: int
    redactions: int
    attempts: int
    events: int
    attempts_told: int
    umap_points: int
    umap_components: int
    hdbscan_groups: int
    hdbscan_noise: int
    clustering_method: str
    seconds: tuple[tuple[str, float], ...]
    problems: tuple[str, ...]
    advice: tuple[str, ...] = ()
    reclustered: Reclustered | None = None
    mapped: Mapped | None = None

    @property
    def headline(self) -> tuple[tuple[str, int], ...]:
        """Crashes of the store by headline, in the order in which headlines are always shown."""
        counts = dict.fromkeys(HEADLINES, 0)
        for failure_class, count in self.classes:
            counts[headline_of(failure_class)] += count
        return tuple(counts.items())

    @property
    def unclassified_share(self) -> float:
        """Share of the store's crashes that have no class, 0 for an empty store."""
        total = sum(count for _, count in self.classes)
        return dict(self.classes).get(UNCLASSIFIED, 0) / total if total else 0.0

    @property
    def note(self) -> str | None:
        """A sentence where the night was given nothing to read; ``None`` where it was."""
        if self.sources or self.skipped or self.empty or self.unreadable:
            return None
        return "There was nothing to read: no log file lies where this night looked, or --exclude leaves all out."

    def document(self) -> dict[str, Any]:
        """The document that ``nightly --json`` prints."""
        return {
            "status": self.status,
            "night": self.night,
            "sources": {
                "read": self.sources,
                "unchanged": self.skipped,
                "empty": self.empty,
                "unreadable": self.unreadable,
            },
            "lines": self.lines,
            "records": self.records,
            "crashes": self.crashes,
            "new_crashes": self.new_crashes,
            "variants": self.variants,
            "signatures": self.signatures,
            "new_signatures": self.new_signatures,
            "embedded": self.embedded,
            "clusters": self.clusters,
            "new_clusters": self.new_clusters,
            "joined": self.joined,
            "classes": dict(self.classes),
            "headline": dict(self.headline),
            "unclassified_share": round(self.unclassified_share, 6),
            "quarantined": self.quarantined,
            "redactions": self.redactions,
            "attempts": self.attempts,
            "events": {"lines": self.events, "attempts": self.attempts_told},
            "umap": {"points": self.umap_points, "components": self.umap_components},
            "hdbscan": {"groups": self.hdbscan_groups, "noise": self.hdbscan_noise},
            "clustering_method": self.clustering_method,
            "reclustered": self.reclustered.document() if self.reclustered else None,
            "map": self.mapped.document() if self.mapped else None,
            "seconds": {stage: round(spent, 3) for stage, spent in self.seconds},
            "problems": list(self.problems),
            "advice": list(self.advice),
            "note": self.note,
        }


def print_summary(summary: NightSummary, console: Console) -> None:
    """Print a night for a person, within 80 columns."""
    console.print(Group(*_blocks(summary)))


def _blocks(summary: NightSummary) -> list[RenderableType]:
    blocks: list[RenderableType] = [Text(f"Night {summary.night} · {summary.status}", style="bold"), _figures(summary)]
    if summary.note:
        blocks.insert(1, Text(summary.note))
    if summary.crashes:
        blocks += [Text(), _headline(summary), Text(), _classes(summary)]
    blocks += [Text(), Text("seconds  " + " · ".join(f"{stage} {spent:.1f}" for stage, spent in summary.seconds))]
    blocks += [Text(f"! {problem}", style="yellow") for problem in summary.problems]
    blocks += [Text(f"· {advice}") for advice in summary.advice]
    return blocks


def _figures(summary: NightSummary) -> Table:
    table = Table.grid(padding=(0, 2))
    rows = (
        ("sources", _sources(summary)),
        ("records", f"{summary.records:,} in {many(summary.lines, 'line')}"),
        ("crashes", f"{summary.new_crashes:,} new, {summary.crashes:,} in the store"),
        ("variants", f"{summary.variants:,}"),
        ("signatures", f"{summary.new_signatures:,} new, {summary.signatures:,} in the store"),
        ("embedded", f"{many(summary.embedded, 'text')} (only what had no vector yet)"),
        *_proposal(summary),
        (
            "clusters",
            f"{summary.new_clusters:,} born, {many(summary.joined, 'signature')} joined, {summary.clusters:,} in all",
        ),
        *((("re-clustered", reclustered_in_words(summary.reclustered)),) if summary.reclustered else ()),
        *((("map", summary.mapped.sentence),) if summary.mapped else ()),
        ("quarantine", f"{summary.quarantined:,}"),
        ("redactions", f"{summary.redactions:,}"),
        *((("events", f"{many(summary.events, 'line')} of the runtime"),) if summary.events else ()),
        ("attempts", _attempts(summary)),
    )
    for name, value in rows:
        table.add_row(name, value)
    return table


def reclustered_in_words(done: Reclustered) -> str:
    """Say what a re-clustering did, in one line."""
    looked = f"{many(done.looked_at, 'cluster')} looked at"
    if not (done.merged or done.split or done.retired):
        return f"{looked}, all as they were ({done.because})"
    parts = [f"{done.merged:,} merged", f"{many(done.split, 'part')} split off"]
    if done.retired:
        parts.append(f"{done.retired:,} retired")
    return f"{looked}: {', '.join(parts)}; {many(done.moved, 'signature')} moved ({done.because})"


def _headline(summary: NightSummary) -> Table:
    return _shares("headline", summary.headline)


def _classes(summary: NightSummary) -> Table:
    counts = dict(summary.classes)
    order = [c.id for c in CLASSES] + [UNCLASSIFIED]
    present = [(name, counts[name]) for name in order if counts.get(name)]
    present.sort(key=lambda pair: (pair[0] == UNCLASSIFIED, -pair[1]))
    return _shares("class", tuple(present))


def _shares(title: str, rows: tuple[tuple[str, int], ...]) -> Table:
    total = sum(count for _, count in rows) or 1
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column(title, min_width=22)
    table.add_column("crashes", justify="right")
    table.add_column("share", justify="right")
    table.add_column("")
    for name, count in rows:
        table.add_row(name, f"{count:,}", f"{count / total:.1%}", "█" * round(30 * count / total))
    return table


def _sources(summary: NightSummary) -> str:
    parts = [f"{summary.sources} read"]
    for count, name in (
        (summary.skipped, "unchanged"),
        (summary.empty, "empty"),
        (summary.unreadable, "not readable"),
    ):
        if count:
            parts.append(f"{count} {name}")
    return ", ".join(parts)


def _attempts(summary: NightSummary) -> str:
    """How many attempts the night came to know, by where they were told: in rows of a file, or by events."""
    told = [f"{many(summary.attempts, 'row')} of a file"] if summary.attempts else []
    if summary.attempts_told:
        told.append(f"{summary.attempts_told:,} told by events")
    return ", ".join(told) or "none told"


def _proposal(summary: NightSummary) -> tuple[tuple[str, str], ...]:
    """What UMAP and HDBSCAN were given and what came out, or what stood in for them and why."""
    if summary.clustering_method == "none":
        return (("UMAP", "not run: no new signature was left to group"),)
    if not summary.umap_points or summary.clustering_method != "umap+hdbscan":
        return (("UMAP", f"not run: too few points, {summary.clustering_method} on cosine distance instead"),)
    return (
        ("UMAP", f"{many(summary.umap_points, 'point')} -> {many(summary.umap_components, 'component')}"),
        (
            "HDBSCAN",
            f"proposed {many(summary.hdbscan_groups, 'group')}, {many(summary.hdbscan_noise, 'point')} "
            f"{'is' if summary.hdbscan_noise == 1 else 'are'} noise",
        ),
    )
