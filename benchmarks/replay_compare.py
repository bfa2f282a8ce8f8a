"""Set what the pipeline found in a replay beside what its generator knows: rates, shares, classes line by line."""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from replay_truth import Release, Truth, largest
from scipy.stats import binom, binomtest
from sqlalchemy import select
from statsmodels.stats.proportion import multinomial_proportions_confint

from crashpath.ingest.store import open_store
from crashpath.ingest.tables import Cluster, Crash, Signature, Source, Variant

UNIT = "deployment"
UNLIKELY = 0.001


@dataclass(frozen=True, slots=True)
class Row:
    """One figure, as shares from 0 to 1: the truth, what was drawn from it, what was found and its 95 % interval.

    The intervals of ``simultaneous`` rows are 95 % ones together: in 95 of 100 tables all of them hold their truth.
    """

    name: str
    truth: float
    drawn: float
    found: float
    low: float
    high: float
    simultaneous: bool = False

    @property
    def holds(self) -> bool:
        """Whether the interval of what was found holds the truth that was drawn from."""
        return self.low <= self.truth <= self.high


@dataclass(frozen=True, slots=True)
class Reading:
    """How a data set was read, line by line.

    ``lines`` were written, ``crashes`` came of them, ``same`` of these have the class of their label; ``mistaken``
    counts (label, class) of the others. ``failed`` attempts are in the truth (0 where nobody counts attempts).
    """

    lines: int
    crashes: int
    same: int
    mistaken: Mapping[tuple[str, str], int]
    retries: int
    kernel: int
    failed: int

    @property
    def share(self) -> float:
        """Share of the crashes that have their label's class."""
        return self.same / self.crashes if self.crashes else 0.0


def deployment_rows(truth: Truth, folder: Path, review: Mapping[str, Any]) -> tuple[Row, ...]:
    """Return rates, the reduction and the shares of the account's classes, from the review of ``after``."""
    drawn = json.loads((folder / "truth.json").read_text(encoding="utf-8"))["releases"]
    primary = review["rates"]["primary"]
    before, after = truth.before, truth.after
    rates = {one.name: sum(drawn[one.name]["failed"].values()) / drawn[one.name]["attempts"] for one in (before, after)}
    ratio = primary["ratio"]
    return (
        _rate("failed before", before, rates, primary["baseline"]),
        _rate("failed after", after, rates, primary),
        Row(
            "fewer after than before",
            1 - after.rate / before.rate,
            1 - rates[after.name] / rates[before.name],
            1 - ratio["value"],
            1 - ratio["high"],
            1 - ratio["low"],
        ),
        *_shares("before", before, drawn[before.name]["failed"], counts(review, "baseline"), before.largest()),
        *_shares("after", after, drawn[after.name]["failed"], counts(review, "release"), before.largest()),
    )


def _rate(name: str, release: Release, drawn: Mapping[str, float], found: Mapping[str, Any]) -> Row:
    return Row(name, release.rate, drawn[release.name], found["rate"], found["low"], found["high"])


def counts(review: Mapping[str, Any], side: str) -> dict[str, int]:
    """Return failed deployments by class; ``side`` is ``release`` or ``baseline``."""
    unit = next(one for one in review["units"] if one["unit"] == UNIT)
    rows = [row for row in unit["classes"] if row["class"] is not None]
    told = {row["class"]: row if side == "release" else row["baseline"] for row in rows}
    return {name: one["failures"] for name, one in told.items() if one is not None}


def _shares(
    when: str, release: Release, drawn: Mapping[str, int], found: Mapping[str, int], names: Sequence[str]
) -> list[Row]:
    rows = []
    for name in names:
        k, n = found.get(name, 0), sum(found.values())
        low, high = exact(k, n)
        share = drawn.get(name, 0) / sum(drawn.values())
        rows.append(Row(f"{name}, of those {when}", release.shares.get(name, 0.0), share, k / n, low, high))
    return rows


def log_rows(truth: Truth, folder: Path, night: Mapping[str, Any]) -> tuple[Row, ...]:
    """Return the shares of the crash logs: shape inference, the three largest, and each class on its own.

    The intervals of single classes are simultaneous ones (Goodman's), those of the first two rows exact ones.
    """
    (release,) = json.loads((folder / "truth.json").read_text(encoding="utf-8"))["releases"].values()
    drawn, found = release["failed"], night["classes"]
    total, all_found = sum(drawn.values()), sum(found.values())
    three = largest(truth.logs)
    rows = []
    for name, parts in (("shape_inference", ("shape_inference",)), ("the three largest", three)):
        k = sum(found.get(part, 0) for part in parts)
        low, high = exact(k, all_found)
        true, was = (sum(known.get(part, 0) for part in parts) for known in (truth.logs, drawn))
        rows.append(Row(name, true, was / total, k / all_found, low, high))
    names = sorted(set(truth.logs) | set(found), key=lambda name: -truth.logs.get(name, 0.0))
    bounds = multinomial_proportions_confint([found.get(name, 0) for name in names], 0.05, method="goodman")
    for name, (low, high) in zip(names, bounds, strict=True):
        known, was, share = truth.logs.get(name, 0.0), drawn.get(name, 0) / total, found.get(name, 0) / all_found
        rows.append(Row(f"  {name}", known, was, share, float(low), float(high), simultaneous=True))
    return tuple(rows)


def exact(k: int, n: int) -> tuple[float, float]:
    """Return the exact (Clopper-Pearson) 95 % interval of ``k`` of ``n``."""
    interval = binomtest(k, n).proportion_ci(0.95, method="exact")
    return float(interval.low), float(interval.high)


def few_hold(rows: Sequence[Row]) -> bool:
    """Whether fewer intervals hold the truth than chance leaves, if each holds it 95 times in a hundred.

    Simultaneous rows are one event, which comes where all of them hold; each other row is one of its own.
    """
    events = [row.holds for row in rows if not row.simultaneous]
    together = [row.holds for row in rows if row.simultaneous]
    if together:
        events.append(all(together))
    return bool(binom.cdf(sum(events), len(events), 0.95) < UNLIKELY)


def reading(folder: Path, url: str) -> Reading:
    """Set the class of every crash beside the label of the line that it came from."""
    with (folder / "truth.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    truth = {(row["file"], int(row["offset"])): row["class"] for row in rows}
    files = {row["file"] for row in rows}
    found = {key: name for key, name in _classes(url).items() if key[0] in files}
    mistaken = Counter((truth[key], name) for key, name in found.items() if truth.get(key, name) != name)
    return Reading(
        lines=len(rows),
        crashes=len(found),
        same=sum(truth.get(key) == name for key, name in found.items()),
        mistaken=mistaken,
        retries=sum(row["role"] == "retry" for row in rows),
        kernel=sum(row["role"] == "kernel" for row in rows),
        failed=len({row["attempt"] for row in rows} - {""}),
    )


def _classes(url: str) -> dict[tuple[str, int], str]:
    query = (
        select(Source.path, Crash.offset, Cluster.failure_class)
        .join(Source, Source.id == Crash.source_id)
        .join(Variant, Variant.id == Crash.variant_id)
        .join(Signature, Signature.id == Variant.signature_id)
        .outerjoin(Cluster, Cluster.id == Signature.cluster_id)
    )
    with open_store(url, create=False) as store, store.read() as session:
        return {(path, offset): name or "none" for path, offset, name in session.execute(query)}


def plain(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Return rows as they are written to the results."""
    return [
        {k: round(v, 6) if isinstance(v, float) else v for k, v in asdict(row).items()} | {"holds": row.holds}
        for row in rows
    ]
