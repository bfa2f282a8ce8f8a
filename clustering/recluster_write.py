"""Writes what a re-clustering decided: members that move, clusters that end or are made, and their lineage."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from sqlalchemy.orm import Session

from crashpath.clustering.recluster import Moved, Reclustering
from crashpath.ingest import lineage
from crashpath.ingest.clusters import add_event, assign, cluster_number, create_cluster, set_shape


@dataclass(frozen=True, slots=True)
class Reclustered:
    """What a re-clustering did to a store. ``looked_at``, ``merged``, ``made``, ``retired`` count clusters, ``split``
    parts that left one, ``moved`` signatures and ``moved_crashes`` their crashes; ``signatures`` are all there were."""

    at: datetime
    because: str
    signatures: int
    looked_at: int
    merged: int
    split: int
    made: int
    retired: int
    moved: int
    moved_crashes: int

    def document(self) -> dict[str, Any]:
        """These figures as JSON."""
        return asdict(self) | {"at": self.at.isoformat()}


@dataclass(frozen=True, slots=True)
class Made:
    """A cluster that a part becomes: its label, and the class that the classifier gives it."""

    label: str
    failure_class: str
    probability: float | None
    evidence: tuple[str, ...]


class Write:
    """Writes what was decided, in one transaction of the caller's."""

    def __init__(
        self, session: Session, mass: Mapping[str, int], encoder: str | None, night: int | None, now: datetime
    ) -> None:
        """``mass`` is the number of crashes by signature, ``encoder`` the one that the store is tied to."""
        self._session, self._mass, self._encoder, self._night, self._now = session, mass, encoder, night, now

    def write(self, outcome: Reclustering, made: Mapping[str, Made], because: str) -> Reclustered:
        """Write moves, ends, shapes and lineage, and return the figures."""
        for name, one in made.items():
            self._create(cluster_number(name), one)
        for moved in outcome.split:
            self._move(moved)
            lineage.split_off(self._session, *_numbers(moved), **self._told(moved))
            if moved.new in made:
                lineage.persons_word(self._session, *_numbers(moved))
        for moved in outcome.merged:
            self._move(moved)
            lineage.end_in(self._session, *_numbers(moved), **self._told(moved))
        for shape in outcome.shapes:
            exemplars = [point.item.id for point in shape.exemplars]
            set_shape(self._session, cluster_number(shape.id), spread=shape.spread, exemplars=exemplars)
            if shape.id not in made:
                detail = {"by": "recluster", "signatures": len(shape.members)}
                number = cluster_number(shape.id)
                add_event(self._session, number, "continued", detail, night_id=self._night, now=self._now)
        retired = lineage.retire_empty(self._session, night_id=self._night, now=self._now)
        return Reclustered(
            at=self._now,
            because=because,
            signatures=lineage.signature_count(self._session),
            looked_at=outcome.looked_at,
            merged=len(outcome.merged),
            split=len(outcome.split),
            made=len(made),
            retired=len(retired),
            moved=outcome.moved,
            moved_crashes=self._crashes(one for moved in (*outcome.merged, *outcome.split) for one in moved.items),
        )

    def _create(self, number: int, one: Made) -> None:
        """A part is no birth: it belongs to no night, so that nobody is told of a new failure."""
        create_cluster(
            self._session,
            number,
            label=one.label,
            encoder_id=self._encoder or "",
            failure_class=one.failure_class,
            probability=one.probability,
            class_by="classifier",
            evidence=one.evidence,
            night_id=None,
            now=self._now,
        )

    def _move(self, moved: Moved) -> None:
        for one in moved.items:
            number = cluster_number(moved.new)
            why = moved.why.document()
            assign(self._session, one, number, by="recluster", why=why, night_id=self._night, now=self._now)

    def _told(self, moved: Moved) -> dict[str, Any]:
        return {
            "signatures": len(moved.items), "why": moved.why.document(), "night_id": self._night, "now": self._now,
        }  # fmt: skip

    def _crashes(self, ids: Iterable[str]) -> int:
        return sum(self._mass.get(one, 0) for one in ids)


def _numbers(moved: Moved) -> tuple[int, int]:
    return cluster_number(moved.old), cluster_number(moved.new)
