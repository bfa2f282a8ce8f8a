"""One cluster, signature or crash with all that is known of it, for ``crashpath show`` and the triage page."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import select
from sqlalchemy.orm import Session

from crashpath.ingest.chunks import chunks
from crashpath.ingest.clusters import cluster_id, cluster_number
from crashpath.ingest.model import Frame, Part, Role
from crashpath.ingest.queries import ClusterRow, cluster_row
from crashpath.ingest.rows import unpack_roles, unpack_text
from crashpath.ingest.store_errors import NoSuchThing
from crashpath.ingest.tables import Cluster, ClusterEvent, Crash, Exemplar, Signature, Source, Variant
from crashpath.ingest.trees import tree_of
from crashpath.ingest.trends import Count, DayCount, Filters, counts, counts_by_day


@dataclass(frozen=True, slots=True)
class Example:
    """Redacted text of one crash, with the role of each of its lines; ``rule`` chose the root line."""

    crash_id: int
    signature_id: str
    release: str
    at: datetime
    root_line: int
    text: str
    roles: tuple[Role, ...]
    rule: str


@dataclass(frozen=True, slots=True)
class Event:
    """One line of a cluster's lineage."""

    at: datetime
    kind: str
    other: str | None
    signature_id: str | None
    detail: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class SignatureDetail:
    """A signature: the tree it was made of, its cluster and why, and examples."""

    id: str
    algorithm: str
    text: str
    tree: Part
    root_type: str
    root_message: str
    first_seen: datetime
    last_seen: datetime
    crashes: int
    cluster: str | None
    joined_by: str | None
    why: Mapping[str, object] | None
    is_exemplar: bool
    examples: tuple[Example, ...]


@dataclass(frozen=True, slots=True)
class ClusterDetail:
    """A cluster: its row in the list, class evidence, members, spread over cohorts and days, lineage, examples."""

    row: ClusterRow
    evidence: tuple[str, ...]
    spread: float | None
    created_at: datetime
    merged_into: str | None
    signatures: tuple[SignatureDetail, ...]
    by_day: tuple[DayCount, ...]
    by_release: tuple[Count, ...]
    by_platform: tuple[Count, ...]
    by_path: tuple[Count, ...]
    events: tuple[Event, ...]


@dataclass(frozen=True, slots=True)
class CrashDetail:
    """One crash with its facts, its cause, and its text where it is kept."""

    id: int
    source: str
    offset: int
    at: datetime
    at_inferred: bool
    release: str
    platform: str
    model: str
    path: str
    phase: str
    attempt_id: str | None
    format: str
    signal: str | None
    exit_code: int | None
    root_rule: str
    root_type: str
    root_message: str
    chain: tuple[str, ...]
    frames: tuple[Frame, ...]
    signature_id: str
    cluster: str | None
    truncated: bool
    night_id: int
    example: Example | None


def show(session: Session, thing: str, *, examples: int = 3) -> ClusterDetail | SignatureDetail | CrashDetail:
    """Find what an id names: ``C-0042`` a cluster, ``sig2-…`` a signature, a number a crash. Raises ``NoSuchThing``."""
    wanted = thing.strip()
    if wanted.lower().startswith("sig"):
        return show_signature(session, wanted, examples=examples)
    if wanted.isdigit():
        return show_crash(session, int(wanted))
    return show_cluster(session, wanted, examples=examples)


def show_cluster(
    session: Session, shown: str, *, examples: int = 3, most: int | None = None, events: int | None = None
) -> ClusterDetail:
    """Return a cluster with its members, at most ``examples`` examples each. Raises ``NoSuchThing``.

    With ``most``, only the members with the most crashes are read, and with ``events`` only the last of them.
    """
    number = cluster_number(shown)
    cluster, row = session.get(Cluster, number), cluster_row(session, number)
    if cluster is None or row is None:
        raise NoSuchThing(f"There is no cluster {cluster_id(number)}.", "`crashpath clusters` lists them.")
    mine = Filters(cluster=number)
    return ClusterDetail(
        row=row,
        evidence=tuple(cluster.evidence),
        spread=cluster.spread,
        created_at=cluster.created_at,
        merged_into=None if cluster.merged_into is None else cluster_id(cluster.merged_into),
        signatures=members(session, number, examples=examples, limit=most),
        by_day=counts_by_day(session, "release", mine),
        by_release=counts(session, "release", mine),
        by_platform=counts(session, "platform", mine),
        by_path=counts(session, "path", mine),
        events=_events(session, number, events),
    )


def members(
    session: Session, number: int, *, examples: int = 0, offset: int = 0, limit: int | None = None
) -> tuple[SignatureDetail, ...]:
    """Return the members of a cluster, most crashes first (then by id), or some of them."""
    sums = dict(counts(session, "signature", Filters(cluster=number)))
    ids = session.scalars(select(Signature.id).where(Signature.cluster_id == number))
    order = sorted(ids, key=lambda one: (-sums.get(one, 0), one))
    chosen = order[offset:] if limit is None else order[offset : offset + limit]
    rows: dict[str, Signature] = {}
    for chunk in chunks(chosen):
        rows |= {row.id: row for row in session.scalars(select(Signature).where(Signature.id.in_(chunk)))}
    return tuple(_signature(session, rows[one], sums.get(one, 0), examples) for one in chosen)


def show_signature(session: Session, signature_id: str, *, examples: int = 3) -> SignatureDetail:
    """Return a signature, also by the unique beginning of its id. Raises ``NoSuchThing``."""
    found = session.scalars(
        select(Signature).where(Signature.id.startswith(signature_id, autoescape=True)).order_by(Signature.id).limit(2)
    ).all()
    if not found or (len(found) > 1 and found[0].id != signature_id):
        what = "There is no signature" if not found else "More than one signature begins with"
        raise NoSuchThing(f"{what} {signature_id}.", "`crashpath show C-…` lists a cluster's signatures.")
    sums = dict(counts(session, "signature", Filters(signature=found[0].id)))
    return _signature(session, found[0], sums.get(found[0].id, 0), examples)


def show_crash(session: Session, crash_id: int) -> CrashDetail:
    """Return one crash. Raises ``NoSuchThing``."""
    crash = session.get(Crash, crash_id)
    if crash is None:
        raise NoSuchThing(
            f"There is no crash {crash_id}.", "`crashpath show sig2-…` lists examples with their crashes."
        )
    variant = session.get_one(Variant, crash.variant_id)
    signature = session.get_one(Signature, variant.signature_id)
    kept = session.scalars(select(Exemplar).where(Exemplar.crash_id == crash_id)).one_or_none()
    return CrashDetail(
        id=crash.id,
        source=session.get_one(Source, crash.source_id).path,
        offset=crash.offset,
        at=crash.at,
        at_inferred=crash.at_inferred,
        release=crash.release,
        platform=crash.platform,
        model=crash.model,
        path=crash.path,
        phase=crash.phase,
        attempt_id=crash.attempt_id,
        format=crash.format,
        signal=crash.signal,
        exit_code=crash.exit_code,
        root_rule=crash.root_rule,
        root_type=variant.root_type,
        root_message=variant.root_message,
        chain=tuple(variant.chain),
        frames=tuple(Frame(str(f[0]), str(f[1]), bool(f[2])) for f in variant.frames),
        signature_id=signature.id,
        cluster=None if signature.cluster_id is None else cluster_id(signature.cluster_id),
        truncated=crash.truncated,
        night_id=crash.night_id,
        example=None if kept is None else _example(kept, crash),
    )


def _signature(session: Session, row: Signature, crashes: int, limit: int) -> SignatureDetail:
    kept = (
        select(Exemplar, Crash)
        .join(Crash, Crash.id == Exemplar.crash_id)
        .where(Exemplar.signature_id == row.id)
        .order_by(Crash.at, Exemplar.id)
        .limit(limit)
    )
    return SignatureDetail(
        id=row.id,
        algorithm=row.algorithm,
        text=row.text,
        tree=tree_of(row.tree),
        root_type=row.root_type,
        root_message=row.root_message,
        first_seen=row.first_seen,
        last_seen=row.last_seen,
        crashes=crashes,
        cluster=None if row.cluster_id is None else cluster_id(row.cluster_id),
        joined_by=row.joined_by,
        why=row.why,
        is_exemplar=row.is_exemplar,
        examples=tuple(_example(example, crash) for example, crash in session.execute(kept)) if limit else (),
    )


def _example(kept: Exemplar, crash: Crash) -> Example:
    return Example(
        kept.crash_id, kept.signature_id, kept.release, crash.at, kept.root_line, unpack_text(kept.text),
        unpack_roles(kept.roles), crash.root_rule,
    )  # fmt: skip


def _events(session: Session, number: int, last: int | None) -> tuple[Event, ...]:
    """Return the lineage in order, or the ``last`` of it."""
    query = (
        select(ClusterEvent)
        .where(ClusterEvent.cluster_id == number)
        .order_by(ClusterEvent.at.desc(), ClusterEvent.id.desc())
        .limit(last)
    )
    return tuple(
        Event(e.at, e.kind, None if e.other_id is None else cluster_id(e.other_id), e.signature_id, e.detail)
        for e in reversed(session.scalars(query).all())
    )
