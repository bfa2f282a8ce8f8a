"""What the page of one cluster reads: its facts, two of its texts, what came of it, its members. SQL in, values out.

Bounded whatever a cluster holds: members are read page by page, texts are those of two crashes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from crashpath.coverage.field import FieldRow, Names, field_against_proof
from crashpath.ingest.cluster_facts import Seen, seen
from crashpath.ingest.clusters import cluster_id, cluster_number
from crashpath.ingest.decisions import Taken, decisions
from crashpath.ingest.details import ClusterDetail, CrashDetail, SignatureDetail, members, show_cluster, show_crash
from crashpath.ingest.embeddings import embeddings
from crashpath.ingest.failed_read import failed_releases
from crashpath.ingest.following import followed
from crashpath.ingest.tables import Crash, Exemplar, Project, Signature
from crashpath.ingest.tables_counts import FailedDaily
from crashpath.ingest.trends import Count, Filters, counts

if TYPE_CHECKING:
    from crashpath.dashboard.nearness import Near

MOST_MEMBERS = 200
"""Members that a cluster is read with; all of them are on the pages of ``read_members``."""
MOST_EVENTS = 200
MEMBERS = 20
"""Members on a page."""
_LOOKED_AT = 64
"""Members that are compared to find the most different one."""
_MOST_TEXT = 400
"""Characters that are compared where there are no vectors."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """One cluster: ``moved`` says where its id leads now, where that is elsewhere."""

    found: ClusterDetail
    moved: str | None
    seen: Seen | None
    by_phase: tuple[Count, ...]
    by_model: tuple[Count, ...]
    decisions: tuple[Taken, ...]


@dataclass(frozen=True, slots=True)
class Pair:
    """Two crashes of a cluster: one that stands for it, and of its exemplars the one that is the most different.

    ``other`` is ``None`` where only one of its signatures has a text; ``compared`` says what is different is taken by.
    """

    shown: CrashDetail
    other: CrashDetail | None
    compared: str


@dataclass(frozen=True, slots=True)
class UnitOutcomes:
    """Failed attempts of one unit, and those of which an event says what came of them."""

    unit: str
    attempts: int
    contained: int
    unanswered: int

    @property
    def known(self) -> int:
        """Those of which it is known."""
        return self.contained + self.unanswered


@dataclass(frozen=True, slots=True)
class Containment:
    """What came of the failed attempts of a cluster, and what is proven for its class where it happens."""

    units: tuple[UnitOutcomes, ...]
    standing: FieldRow | None


def read_cluster(session: Session, shown: str) -> Cluster:
    """Return what an id means. A merged cluster is what it was, and where it went is said. Raises ``NoSuchThing``."""
    number = cluster_number(shown)
    found = show_cluster(session, shown, examples=0, most=MOST_MEMBERS, events=MOST_EVENTS)
    mine = Filters(cluster=number)
    return Cluster(
        found=found,
        moved=followed(session, number)[1],
        seen=seen(session, [number]).get(number),
        by_phase=counts(session, "phase", mine),
        by_model=counts(session, "model", mine),
        decisions=decisions(session, number),
    )


def read_pair(session: Session, number: int) -> Pair | None:
    """Return two texts of a cluster; ``None`` where none is kept."""
    texts = _with_text(session, number)
    if not texts:
        return None
    sums = dict(counts(session, "signature", Filters(cluster=number)))
    order = sorted(texts, key=lambda one: (-sums.get(one, 0), one))[:_LOOKED_AT]
    stands, rest = order[0], order[1:]
    found = show_crash(session, _newest(session, stands))
    if not rest:
        return Pair(found, None, "Only one of its signatures has a text that is kept.")
    other, compared = _most_different(session, stands, rest, texts)
    return Pair(found, show_crash(session, _newest(session, other)), compared)


def read_members(session: Session, number: int, page: int) -> tuple[SignatureDetail, ...]:
    """Return a page of the members, from 1, those with the most crashes first."""
    return members(session, number, offset=(page - 1) * MEMBERS, limit=MEMBERS)


def read_near(session: Session, number: int) -> tuple[Near, ...]:
    """Return the nearest other clusters."""
    from crashpath.dashboard.nearness import nearest_clusters  # only where it is asked for: it takes long to import

    own = session.scalars(select(Signature.id).where(Signature.cluster_id == number, Signature.is_exemplar)).all()
    return nearest_clusters(session, own, cluster_id(number))


def read_containment(session: Session, number: int, failure_class: str) -> Containment:
    """Return what came of a cluster's failed attempts, by unit, and what is proven of its class."""
    from crashpath.runtime.diagnose import CHECKS  # takes long to import

    own = select(Signature.id).where(Signature.cluster_id == number)
    columns = (FailedDaily.attempts, FailedDaily.contained, FailedDaily.unanswered)
    query = (
        select(FailedDaily.unit, *(func.sum(column) for column in columns))
        .where(FailedDaily.release.in_(failed_releases(session)), FailedDaily.signature_id.in_(own))
        .group_by(FailedDaily.unit)
        .order_by(FailedDaily.unit)
    )
    units = tuple(UnitOutcomes(unit, *map(int, sums)) for unit, *sums in session.execute(query))
    checks = [Names(check.id, check.prevents) for check in CHECKS]
    rows = field_against_proof(session, checks, filters=Filters(cluster=number))
    return Containment(units, next((row for row in rows if row.failure_class == failure_class), None))


def _with_text(session: Session, number: int) -> dict[str, str]:
    """Return the exemplars of a cluster of which a crash is kept as text; all such members where no exemplar is."""
    kept = select(Exemplar.id).where(Exemplar.signature_id == Signature.id).exists()
    query = select(Signature.id, Signature.text).where(Signature.cluster_id == number, kept).order_by(Signature.id)
    for condition in ([Signature.is_exemplar], []):
        found = dict(session.execute(query.where(*condition).limit(_LOOKED_AT)).all())
        if found:
            return found
    return {}


def _newest(session: Session, signature: str) -> int:
    """Return the newest crash of a signature whose text is kept."""
    query = select(Crash.id).join(Exemplar, Exemplar.crash_id == Crash.id).where(Exemplar.signature_id == signature)
    return session.scalars(query.order_by(Crash.at.desc(), Crash.id.desc()).limit(1)).one()


def _most_different(session: Session, stands: str, rest: Sequence[str], texts: Mapping[str, str]) -> tuple[str, str]:
    """Return the signature that is least like the one that stands for the cluster, and by what that is known."""
    encoder = session.scalar(select(Project.encoder_id))
    vectors = {} if encoder is None else embeddings(session, encoder, [texts[one] for one in (stands, *rest)])
    own = vectors.get(texts[stands])
    compared = [one for one in rest if texts[one] in vectors]
    if own is not None and compared:
        far = {one: float(1 - _cosine(own, vectors[texts[one]])) for one in compared}
        other = max(far, key=lambda one: (far[one], one))
        return other, f"Of its exemplars, the one whose vector is farthest (cosine distance {far[other]:.2f})."
    other = min(rest, key=lambda one: (_alike(texts[stands], texts[one]), one))
    return other, "Of its exemplars, the one whose text is least alike; there are no vectors to compare."


def _cosine(one: NDArray[np.float32], other: NDArray[np.float32]) -> float:
    product: Any = np.dot(one, other) / max(float(np.linalg.norm(one) * np.linalg.norm(other)), 1e-12)
    return float(product)


def _alike(one: str, other: str) -> float:
    return SequenceMatcher(None, one[:_MOST_TEXT], other[:_MOST_TEXT], autojunk=False).ratio()
