"""What clustering reads from and writes to the store: new signatures, clusters and their lineage.

A cluster's id is a number, shown as ``C-0042``; it is given once and never used again. Everything is returned in
the order of ids, so that what is made of it does not depend on when or how it was stored.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from sqlalchemy import func, select, update
from sqlalchemy.orm import Session

from crashpath.ingest.chunks import chunks
from crashpath.ingest.model import Frame, Part
from crashpath.ingest.schema import UNKNOWN, Json
from crashpath.ingest.store_errors import NoSuchThing
from crashpath.ingest.tables import Cluster, ClusterEvent, Crash, Signature, Variant
from crashpath.ingest.trees import tree_of

JoinedBy = Literal["birth", "join", "recluster", "person"]
ClassBy = Literal["classifier", "rule", "person"]


@dataclass(frozen=True, slots=True)
class SignatureFacts:
    """A signature with what is most often true of its crashes (ties go to the smallest value).

    ``frames`` and ``chain`` are those of its variant with the smallest key.
    """

    id: str
    text: str
    tree: Part
    root_type: str
    root_message: str
    cue_class: str | None
    format: str
    signal: str | None
    exit_code: int | None
    phase: str
    chain: tuple[str, ...]
    frames: tuple[Frame, ...]
    crashes: int


@dataclass(frozen=True, slots=True)
class StoredCluster:
    """A cluster as the registry knows it: ``members`` and ``exemplars`` are signature ids, in order."""

    number: int
    members: tuple[str, ...]
    exemplars: tuple[str, ...]
    spread: float
    failure_class: str
    probability: float | None
    class_by: str
    name: str | None
    label: str

    @property
    def id(self) -> str:
        """The id that people see."""
        return cluster_id(self.number)


def cluster_id(number: int) -> str:
    """Return a cluster's id as people see it: ``C-0042``."""
    return f"C-{number:04d}"


def cluster_number(shown: str) -> int:
    """Return the number of an id as people write it: ``C-0042``, ``c-42``, ``42``. Raises ``NoSuchThing``."""
    match = re.fullmatch(r"(?:[Cc]-?)?0*(\d{1,9})", shown.strip())
    if match is None:
        raise NoSuchThing(f"{shown!r} is not a cluster's id.", "Ids look like C-0042: `crashpath clusters` lists them.")
    return int(match[1])


def pending_signatures(session: Session) -> tuple[SignatureFacts, ...]:
    """Return the signatures that have no cluster yet."""
    ids = session.scalars(select(Signature.id).where(Signature.cluster_id.is_(None)).order_by(Signature.id)).all()
    return signature_facts(session, ids)


def signature_facts(session: Session, ids: Sequence[str]) -> tuple[SignatureFacts, ...]:
    """Return the facts of signatures, in the order of their ids; unknown ids are left out."""
    out: list[SignatureFacts] = []
    for chunk in chunks(sorted(set(ids))):
        usual = _usual(session, chunk)
        variants: dict[str, Variant] = {}
        for variant in session.scalars(
            select(Variant).where(Variant.signature_id.in_(chunk)).order_by(Variant.key.desc())
        ):
            variants[variant.signature_id] = variant  # the smallest key comes last and stays
        rows = session.scalars(select(Signature).where(Signature.id.in_(chunk)).order_by(Signature.id))
        out += [_facts(row, variants.get(row.id), usual.get(row.id)) for row in rows]
        session.expunge_all()
    return tuple(out)


def known_clusters(session: Session) -> tuple[StoredCluster, ...]:
    """Return all active clusters with their members."""
    members: dict[int, list[str]] = {}
    exemplars: dict[int, list[str]] = {}
    query = select(Signature.id, Signature.cluster_id, Signature.is_exemplar).order_by(Signature.id)
    for signature, number, is_exemplar in session.execute(query):
        if number is None:
            continue
        members.setdefault(number, []).append(signature)
        if is_exemplar:
            exemplars.setdefault(number, []).append(signature)
    rows = session.scalars(select(Cluster).where(Cluster.status == "active").order_by(Cluster.id))
    return tuple(
        StoredCluster(
            row.id, tuple(members.get(row.id, ())), tuple(exemplars.get(row.id, ())), row.spread or 0.0,
            row.failure_class, row.probability, row.class_by, row.name, row.label,
        )
        for row in rows
    )  # fmt: skip


def next_number(session: Session) -> int:
    """Return the number of the next birth; numbers of merged and retired clusters are never used again."""
    return (session.scalar(select(func.max(Cluster.id))) or 0) + 1


def create_cluster(
    session: Session,
    number: int,
    *,
    label: str,
    encoder_id: str,
    failure_class: str,
    probability: float | None,
    class_by: ClassBy,
    evidence: Sequence[str] = (),
    spread: float = 0.0,
    night_id: int | None,
    now: datetime,
) -> None:
    """Store a birth and its lineage event; ``label`` is the root line that stands for it until a person names it."""
    session.add(
        Cluster(
            id=number, name=None, label=label, status="active", merged_into=None, created_at=now, night_id=night_id,
            encoder_id=encoder_id, spread=spread, failure_class=failure_class, probability=probability,
            class_by=class_by, evidence=list(evidence), assignee=None, resolved_in=None, muted_until=None, ticket=None,
        )
    )  # fmt: skip
    session.flush()
    add_event(session, number, "born", {"class": failure_class}, night_id=night_id, now=now)


def assign(
    session: Session, signature_id: str, number: int, *, by: JoinedBy, why: Json, night_id: int | None, now: datetime
) -> None:
    """Make a signature a member of a cluster and keep why. ``why`` is JSON: nearest exemplar, distance, terms …"""
    changed = session.execute(
        update(Signature)
        .where(Signature.id == signature_id)
        .values(cluster_id=number, joined_at=now, joined_by=by, why=why, is_exemplar=False)
        .returning(Signature.id)
    ).all()
    if not changed:
        raise NoSuchThing(
            f"There is no signature {signature_id}.", "`crashpath show C-…` lists a cluster's signatures."
        )
    if by != "birth":
        add_event(session, number, "joined", {"by": by}, signature_id=signature_id, night_id=night_id, now=now)


def set_shape(session: Session, number: int, *, spread: float, exemplars: Sequence[str]) -> None:
    """Keep how far a cluster spreads and which of its members stand for it."""
    session.execute(update(Cluster).where(Cluster.id == number).values(spread=spread))
    member = Signature.cluster_id == number
    session.execute(update(Signature).where(member, Signature.is_exemplar).values(is_exemplar=False))
    for chunk in chunks(exemplars):
        session.execute(update(Signature).where(member, Signature.id.in_(chunk)).values(is_exemplar=True))


def classify(
    session: Session,
    number: int,
    failure_class: str,
    probability: float | None,
    *,
    by: ClassBy,
    evidence: Sequence[str],
    night_id: int | None,
    now: datetime,
) -> bool:
    """Give a cluster its class and tell whether it changed; a class that a person gave is left alone."""
    row = session.get_one(Cluster, number)
    if row.class_by == "person" and by != "person":
        return False
    before = row.failure_class
    row.failure_class, row.probability, row.class_by, row.evidence = failure_class, probability, by, list(evidence)
    if before != failure_class:
        add_event(session, number, "classified", {"old": before, "new": failure_class}, night_id=night_id, now=now)
    return before != failure_class


def add_event(
    session: Session,
    number: int,
    kind: str,
    detail: Json,
    *,
    other: int | None = None,
    signature_id: str | None = None,
    night_id: int | None,
    now: datetime,
) -> None:
    """Write one line of a cluster's lineage."""
    session.add(
        ClusterEvent(
            at=now, night_id=night_id, kind=kind, cluster_id=number, other_id=other, signature_id=signature_id,
            detail=detail,
        )
    )  # fmt: skip


def _usual(session: Session, ids: Sequence[str]) -> dict[str, tuple[tuple[Any, ...], int]]:
    """Return, by signature, the most frequent (format, signal, exit code, phase, cue) and the number of crashes."""
    columns = (Crash.format, Crash.signal, Crash.exit_code, Crash.phase, Crash.cue_class)
    query = (
        select(Variant.signature_id, func.count(), *columns)
        .join(Variant, Variant.id == Crash.variant_id)
        .where(Variant.signature_id.in_(ids))
        .group_by(Variant.signature_id, *columns)
    )
    counts: dict[str, Counter[tuple[Any, ...]]] = {}
    for signature, n, *values in session.execute(query):
        counts.setdefault(signature, Counter())[tuple(values)] += n
    return {
        signature: (min(seen, key=lambda v: (-seen[v], repr(v))), sum(seen.values()))
        for signature, seen in counts.items()
    }


def _facts(row: Signature, variant: Variant | None, usual: tuple[tuple[Any, ...], int] | None) -> SignatureFacts:
    (form, signal, exit_code, phase, cue), crashes = usual or ((UNKNOWN, None, None, UNKNOWN, row.cue_class), 0)
    frames = () if variant is None else tuple(Frame(str(f[0]), str(f[1]), bool(f[2])) for f in variant.frames)
    chain = () if variant is None else tuple(variant.chain)
    return SignatureFacts(
        row.id, row.text, tree_of(row.tree), row.root_type, row.root_message, cue, form, signal, exit_code, phase,
        chain, frames, crashes,
    )  # fmt: skip
