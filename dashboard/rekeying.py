"""Re-key a store under this program's masks, signature algorithm and encoder: look first, then write.

New texts get their vectors outside any transaction and in batches that stay, so that a run that was killed goes on
where it was; what the re-key itself changes is one transaction.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

import numpy as np
from sqlalchemy import select
from sqlalchemy.orm import Session

from crashpath.clustering.cohesion import TAU, spread
from crashpath.clustering.encoder import Encoder
from crashpath.clustering.items import item_of_signature
from crashpath.clustering.night import StoreCache
from crashpath.clustering.state import Point, gaps_between
from crashpath.clustering.vectors import embed
from crashpath.ingest.clusters import SignatureFacts, known_clusters, signature_facts
from crashpath.ingest.keying import Keying
from crashpath.ingest.lease import Lease
from crashpath.ingest.rekey import Plan, plan, survey
from crashpath.ingest.rekey_check import relabel
from crashpath.ingest.rekey_write import Shape, write_plan
from crashpath.ingest.store import Store
from crashpath.ingest.tables import Project
from crashpath.ingest.upgrade import backup

BATCH = 256
"""Texts that are embedded and kept at once."""


@dataclass(frozen=True, slots=True)
class Looked:
    """What a re-key changes. ``tied`` is the encoder of the store, ``None`` where nothing was clustered yet."""

    plan: Plan
    tied: str | None
    encoder: str
    texts: tuple[str, ...]

    @property
    def other_encoder(self) -> bool:
        """Whether the store's vectors are another encoder's."""
        return self.tied is not None and self.tied != self.encoder

    @property
    def changes(self) -> bool:
        """Whether there is anything to write, besides by what the store is keyed."""
        return bool(self.plan.signatures) or self.other_encoder


@dataclass(frozen=True, slots=True)
class Written:
    """What was written: the plan as it stood then, how many texts were encoded, and the backup made before."""

    looked: Looked
    embedded: int
    backup: Path | None


def look(store: Store, keying: Keying, encoder: Encoder) -> Looked:
    """Work out what a re-key would change. Nothing is written."""
    with store.read() as session:
        return _look(session, plan(session, survey(session, keying)), encoder)


def _look(session: Session, made: Plan, encoder: Encoder) -> Looked:
    """``texts`` are those whose vectors the clusters will need."""
    tied = session.scalars(select(Project.encoder_id)).one()
    texts = {made.survey.signed[one.id].text for one in made.signatures if one.cluster is not None}
    if tied is not None and tied != encoder.id:
        members = [member for cluster in known_clusters(session) for member in cluster.members]
        texts |= {one.text for one in signature_facts(session, [m for m in members if m not in made.mains])}
    return Looked(made, tied, encoder.id, tuple(sorted(texts)) if tied is not None else ())


def write(
    store: Store,
    keying: Keying,
    encoder: Encoder,
    *,
    clock: Callable[[], datetime],
    wait: float = 0.0,
    say: Callable[[str], None] = lambda stage: None,
) -> Written:
    """Re-key the store as a night of its own: nobody else writes one meanwhile. A file is backed up beside itself.

    Raises:
        LeaseHeld: a night is writing to the store.
        StoreError: the store or the backup cannot be written.
    """
    with Lease(store, wait=wait) as lease:
        say("sign")
        with store.read() as session:
            found = survey(session, keying)
            looked = _look(session, plan(session, found), encoder)
        if not looked.changes:
            with store.write() as session:
                relabel(session, keying.id)
            return Written(looked, 0, None)
        say("back up")
        kept = _back_up(store, clock())
        embedded = 0
        while True:
            say("embed")
            embedded += _embed(store, looked.texts, encoder)
            shapes = _shapes(store, looked, encoder)
            say("write")
            other = encoder.id if looked.other_encoder else None
            with store.write() as session:
                lease.fence(session)
                if write_plan(session, looked.plan, shapes=shapes, encoder=other, now=clock()):
                    return Written(looked, embedded, kept)
            with store.read() as session:  # somebody merged or split meanwhile
                looked = _look(session, plan(session, found), encoder)


def _back_up(store: Store, now: datetime) -> Path | None:
    if store.file is None:
        return None
    return backup(store, store.file.with_name(f"{store.file.name}.rekey-{now:%Y%m%dT%H%M%S%f}.bak"))


def _embed(store: Store, texts: Sequence[str], encoder: Encoder) -> int:
    cache = StoreCache(store)
    return sum(embed(texts[start : start + BATCH], encoder, cache)[1] for start in range(0, len(texts), BATCH))


def _shapes(store: Store, looked: Looked, encoder: Encoder) -> tuple[Shape, ...]:
    """How far clusters spread whose exemplars will have other texts or vectors."""
    if looked.tied is None:
        return ()
    with store.read() as session:
        exemplars = _exemplars_after(session, looked)
    shapes = []
    for number, facts in sorted(exemplars.items()):
        if len(facts) < 2:
            shapes.append(Shape(number, 0.0))
            continue
        vectors, _ = embed([one.text for one in facts], encoder, StoreCache(store))
        points = [Point(item_of_signature(one), vector) for one, vector in zip(facts, vectors, strict=True)]
        gaps = gaps_between(points, points)
        np.fill_diagonal(gaps, 0.0)
        shapes.append(Shape(number, min(spread(gaps), TAU)))
    return tuple(shapes)


def _exemplars_after(session: Session, looked: Looked) -> dict[int, list[SignatureFacts]]:
    """The facts that signatures which stand for a cluster will have, by cluster."""
    made = looked.plan
    new = [one for one in made.signatures if one.exemplar and one.cluster is not None]
    old = {one.main for one in new}
    wanted = {one.cluster for one in new}
    stay: dict[str, int] = {}
    for cluster in known_clusters(session):
        if looked.other_encoder or cluster.number in wanted:
            stay |= {one: cluster.number for one in cluster.exemplars if one not in made.mains}
    facts = {one.id: one for one in signature_facts(session, [*old, *stay])}
    out: dict[int, list[SignatureFacts]] = defaultdict(list)
    for stayed, number in stay.items():
        out[number].append(facts[stayed])
    for one in new:
        signed = made.survey.signed[one.id]
        message = next((part.value for part in signed.tree.parts if part.name == "message"), "")
        main = facts[one.main]
        after = replace(main, id=one.id, text=signed.text, root_message=message or main.root_message)
        if one.cluster is not None:
            out[one.cluster].append(after)
    return out
