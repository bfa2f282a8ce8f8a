"""What the store of ``reviews_store`` lacks for every page to show a picture: made up by a seed, put in as rows.

Vectors and exemplars of clusters, so that a real night can join what is new to them; places on the map; texts of some
crashes; owners, mutes and marks; pieces in quarantine; traced runs and drills of three models in three releases.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray
from reviews_store import MODELS, PLATFORMS, RELEASES, SEED
from sqlalchemy import func, insert, select, update
from sqlalchemy.orm import Session

from crashpath.clustering.encoder import open_encoder
from crashpath.coverage.covstore import store_run
from crashpath.coverage.drillcells import CELLS, Cell, DrillResult
from crashpath.coverage.drillstore import Evidence, add_to_run, begin_run
from crashpath.coverage.faults import FAULTS
from crashpath.coverage.runfile import Run, Seen
from crashpath.coverage.units import Declared, Kind, Placed, Timing, Trace, Unit
from crashpath.dashboard.settings import load_settings
from crashpath.ingest.embeddings import save_embeddings, tie_encoder
from crashpath.ingest.model import Role
from crashpath.ingest.places import KEY, put_places
from crashpath.ingest.rows import pack, pack_roles
from crashpath.ingest.store import Store
from crashpath.ingest.tables import Cluster, Crash, Embedding, Exemplar, Night, Quarantine, Signature, Source, Variant
from crashpath.runtime.values import Path as Which

TRACED = tuple(name for name, _ in RELEASES[:3] if name is not None)
"""Releases with evidence of coverage."""
OWNERS = tuple(f"owner-{number}" for number in range(12))
NODES, OPS = 400, 240
"""Units of a model's main path and of its fallback."""
PIECES = 5_000
"""In quarantine."""
LINES = 60
"""Of a crash whose text is kept."""
_DIM = 384
_ISLANDS = 40
"""Groups of clusters that lie together on the map."""


def furnish(store: Store, now: datetime) -> None:
    """Put all of that into a store; one that has it is left as it is."""
    with store.read() as session:
        if session.scalar(select(func.count()).select_from(Embedding)):
            return
    rng = np.random.default_rng(SEED + 2)
    with store.write() as session:
        _vectors(session, rng)
        _texts(session)
        _decided(session, now)
        _quarantined(session)
    with store.write() as session:
        _traced(session, now)
        _drilled(session, now)


def _vectors(session: Session, rng: np.random.Generator) -> None:
    """Give signatures vectors, near that of their cluster, and places, near those of a few other clusters."""
    encoder = open_encoder(load_settings().encoder).id
    tie_encoder(session, encoder)
    rows = session.execute(select(Signature.id, Signature.text, Signature.cluster_id).order_by(Signature.id)).all()
    numbers = {row.cluster_id for row in rows}
    middles = {number: _unit(rng.normal(size=_DIM)) for number in sorted(numbers)}
    islands = rng.normal(scale=10.0, size=(_ISLANDS, 2))
    places = {number: islands[number % _ISLANDS] + rng.normal(size=2) for number in sorted(numbers)}
    vectors = {row.text: _unit(middles[row.cluster_id] + rng.normal(scale=0.004, size=_DIM)) for row in rows}
    save_embeddings(session, encoder, {text: vector.astype(np.float32) for text, vector in vectors.items()})
    spots = [(row.id, *(places[row.cluster_id] + rng.normal(scale=0.1, size=2)).tolist()) for row in rows]
    put_places(session, spots)
    session.execute(update(Signature).values(is_exemplar=True))
    session.execute(update(Cluster).values(encoder_id=encoder, spread=0.1))
    last = session.scalars(select(Night).order_by(Night.id.desc()).limit(1)).one()
    last.counts = {**last.counts, KEY: {"laid_out": len(rows), "placed": len(rows), "anew": True}}


def _unit(vector: NDArray[np.float64]) -> NDArray[np.float64]:
    return vector / np.linalg.norm(vector)


def _texts(session: Session) -> None:
    """Keep the text of the first and the last crash of each signature."""
    ends = select(func.min(Crash.id), func.max(Crash.id)).group_by(Crash.variant_id)
    chosen = sorted({number for pair in session.execute(ends) for number in pair})
    lines = [f"2026-02-01 03:{line:02}:00 INFO server: step {line} of the request done" for line in range(LINES)]
    roles = pack_roles(tuple(Role.ROOT if line == LINES // 2 else Role.CONTEXT for line in range(LINES)))
    columns = (Crash.id, Crash.release, Variant.signature_id, Variant.root_message)
    rows: list[dict[str, Any]] = []
    for start in range(0, len(chosen), 500):
        query = select(*columns).join(Variant, Variant.id == Crash.variant_id)
        for crash, release, signature, message in session.execute(query.where(Crash.id.in_(chosen[start:][:500]))):
            said = [*lines]
            said[LINES // 2] = f"RuntimeError: {message}"
            rows.append(
                {"crash_id": crash, "signature_id": signature, "release": release, "root_line": LINES // 2,
                 "text": pack("\n".join(said)), "roles": roles}
            )  # fmt: skip
    session.execute(insert(Exemplar), rows)


def _decided(session: Session, now: datetime) -> None:
    """Give every third cluster an owner, and mute every fiftieth."""
    for place, owner in enumerate(OWNERS):
        session.execute(update(Cluster).where(Cluster.id % (3 * len(OWNERS)) == 3 * place).values(assignee=owner))
    session.execute(update(Cluster).where(Cluster.id % 50 == 7).values(muted_until=now + timedelta(days=30)))


def _quarantined(session: Session) -> None:
    sources = session.execute(select(Source.id, Source.first_night_id, Source.mtime).order_by(Source.id)).all()
    reasons = ("binary", "undecodable", "too long")
    rows = [
        {"source_id": source, "offset": 100_000_000 + number, "end": 100_000_900 + number, "night_id": night,
         "touched_id": night, "at": at or datetime.now(UTC), "reason": reasons[number % 3], "sha256": f"{number:064x}",
         "preview": f"piece {number} " + "· " * 40}
        for number in range(PIECES)
        for source, night, at in [sources[number % len(sources)]]
    ]  # fmt: skip
    session.execute(insert(Quarantine), rows)


def _traced(session: Session, now: datetime) -> None:
    for model, (place, release), back in product(MODELS[:3], enumerate(TRACED), range(3)):
        at = now - timedelta(days=1 + 3 * back + place)
        hits = NODES - 40 * (1 + back) - 10 * place
        nodes = tuple(Unit(Kind.NODE, f"/{one}:{_NAMES[one % len(_NAMES)]}", _NAMES[one % 5]) for one in range(NODES))
        ops = tuple(Unit(Kind.OP, f"/{one}:aten::op{one % 9}", f"aten::op{one % 9}") for one in range(OPS))
        here = "CPUExecutionProvider"
        main = Trace(
            Which.MAIN, {one.id: 3 for one in nodes[:hits]},
            tuple(Timing(Which.MAIN, name, size, 20, 0.02 * size) for name, size in product(_NAMES, (1, 8, 32))),
            tuple(Placed(one.id, one.label, here, here) for one in nodes[:hits]),
        )  # fmt: skip
        timings = (Timing(Which.FALLBACK, "aten::op1", 1, 9, 0.2),)
        fallback = Trace(Which.FALLBACK, {one.id: 2 for one in ops[:200]}, timings)
        seen = (Seen(Declared(Which.MAIN, nodes), main), Seen(Declared(Which.FALLBACK, ops), fallback))
        run = Run(f"run-{model}-{release}-{back}", "trace", model, f"hash-{model}", release, at, at, asked=(here,),
                  seen=seen, routes={"main:answered": 20})  # fmt: skip
        store_run(session, run)


def _drilled(session: Session, now: datetime) -> None:
    """Keep a run of drills a model and release, of each fault that can be drilled; one in twenty is red."""
    for model, (place, release) in product(MODELS[:3], enumerate(TRACED)):
        at = now - timedelta(days=1 + place)
        evidence = Evidence(at, release, model, f"hash-{model}", "breaker", (("torch", "2"),))
        add_to_run(session, begin_run(session, evidence), evidence, list(_drills(place)), (), {})


def _drills(place: int) -> Iterator[DrillResult]:
    for number, fault in enumerate(one for one in FAULTS if one.drill is not None):
        red = (number + place) % 20 == 0
        cells = tuple(
            Cell(one.id, not (red and one.id == "equal"), "two answers differ" if red else "") for one in CELLS
        )
        yield DrillResult(
            fault.id, fault.failure_class, fault.phase, "process", "breaker", "ort", cells, requests=20
        )  # fmt: skip


_NAMES: Sequence[str] = ("Add", "MatMul", "Gather", "Softmax", "LayerNormalization")
__all__ = ["OWNERS", "PLATFORMS", "TRACED", "furnish"]
