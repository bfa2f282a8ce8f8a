"""Helpers for tests and benchmarks of whole nights: logs, a night with a light encoder, and what a store holds."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from sqlalchemy import select

from crashpath.clustering.encoder import FakeEncoder
from crashpath.clustering.night import Clusterer
from crashpath.dashboard.engines import classifier
from crashpath.dashboard.nightly import NightOptions, run_night
from crashpath.dashboard.summary import NightSummary
from crashpath.ingest.queries import store_totals
from crashpath.ingest.store import Store, open_store
from crashpath.ingest.tables import Crash, Signature, Variant

DIMENSION = 384
"""The classifier was trained on vectors of this size; the light encoder's must fit it."""


@dataclass(frozen=True, slots=True)
class Contents:
    """What a store holds, in words that do not depend on when or in which order it came in."""

    crashes: tuple[tuple[int, str], ...]
    variants: int
    clusters: frozenset[frozenset[str]]


def light_clusterer() -> Clusterer:
    """Cluster with word hashes in place of the encoder's vectors: quick, and everything else is real."""
    return Clusterer(lambda: FakeEncoder(DIMENSION), classifier)


def a_night(store: Store, paths: Sequence[Path | str], options: NightOptions | None = None) -> NightSummary:
    """Run a night over some paths."""
    return run_night(
        store,
        [str(path) for path in paths],
        options or NightOptions(),
        light_clusterer(),
        clock=lambda: datetime.now(UTC),
    )


def contents(store: Store) -> Contents:
    """Return what the store holds."""
    with store.read() as session:
        rows = session.execute(
            select(Crash.offset, Variant.signature_id).join(Variant, Variant.id == Crash.variant_id)
        ).all()
        homes: dict[int | None, set[str]] = {}
        for signature, cluster in session.execute(select(Signature.id, Signature.cluster_id)):
            homes.setdefault(cluster, set()).add(signature)
        return Contents(
            tuple(sorted((offset, signature) for offset, signature in rows)),
            store_totals(session).variants,
            frozenset(frozenset(members) for members in homes.values()),
        )


def main() -> None:
    """Run a night in a process of its own, to be killed: ``python -m crashpath.dashboard.testing URL PATH…``."""
    url, *paths = sys.argv[1:]
    with open_store(url) as store:
        a_night(store, paths)


if __name__ == "__main__":
    main()
