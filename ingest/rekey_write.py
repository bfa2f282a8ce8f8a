"""Write a re-key: one transaction of the caller's, so that it is there whole or not at all.

What moves many rows is done by the database itself, over two temporary tables: which variant gets which signature, and
which new signature stands for an old one. Daily counts go to that one, and the crashes of variants that go elsewhere
are then moved on, so that counts of pruned crashes stay too.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Column, Integer, MetaData, String, Table, delete, func, insert, null, select, text, update
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.orm import Session

from crashpath.ingest.chunks import chunks
from crashpath.ingest.clusters import add_event, cluster_id
from crashpath.ingest.decisions import hold, rekey
from crashpath.ingest.model import Part
from crashpath.ingest.rekey import Plan, Rekeyed
from crashpath.ingest.rekey_check import relabel
from crashpath.ingest.rekey_failed import move_failures
from crashpath.ingest.schema import BigId, Json
from crashpath.ingest.storable import storable
from crashpath.ingest.tables import Cluster, ClusterEvent, Crash, CrashDaily, Exemplar, Project, Variant
from crashpath.ingest.tables import Signature as Row
from crashpath.ingest.trees import tree_json

_CELL = ("day", "release", "platform", "model", "path", "phase")
_KEPT = [column for column in Row.__table__.c if column.name not in ("text", "tree")]
"""What a signature may inherit."""
_INDEX = "CREATE INDEX ix_rekey_told ON cluster_event (signature_id)"
"""Without it, every signature that goes would be looked for in the whole lineage, which has no index for that."""
_TEMPORARY = MetaData()
_moves = Table(
    "rekey_moves", _TEMPORARY, Column("variant_id", BigId, primary_key=True, autoincrement=False),
    Column("old", String), Column("new", String), prefixes=["TEMPORARY"],
)  # fmt: skip
_mains = Table(
    "rekey_mains", _TEMPORARY, Column("old", String, primary_key=True), Column("new", String), prefixes=["TEMPORARY"]
)
_counts = Table(
    "rekey_counts", _TEMPORARY, *(Column(name, CrashDaily.__table__.c[name].type) for name in _CELL),
    Column("signature_id", String), Column("crashes", Integer), prefixes=["TEMPORARY"],
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Shape:
    """How far a cluster spreads under its new texts or vectors."""

    cluster: int
    spread: float


def write_plan(
    session: Session, plan: Plan, *, shapes: Sequence[Shape] = (), encoder: str | None = None, now: datetime
) -> bool:
    """Write a plan; return false, with nothing written, where people moved signatures since it was made.

    ``encoder`` is the id of the encoder that the store is tied to from now on; its vectors have to be stored before.
    """
    if hold(session) != plan.mark:
        return False
    _Writing(session, plan, now).write()
    for shape in shapes:
        session.execute(update(Cluster).where(Cluster.id == shape.cluster).values(spread=shape.spread))
    if encoder is not None:
        _tie(session, encoder, now)
    return True


def _tie(session: Session, encoder: str, now: datetime) -> None:
    """Tie the store to another encoder; every cluster's lineage says so."""
    session.execute(update(Project).values(encoder_id=encoder))
    for cluster in session.scalars(select(Cluster).where(Cluster.status == "active").order_by(Cluster.id)):
        add_event(session, cluster.id, "rekeyed", {"encoder": [cluster.encoder_id, encoder]}, night_id=None, now=now)
        cluster.encoder_id = encoder


class _Writing:
    def __init__(self, session: Session, plan: Plan, now: datetime) -> None:
        self._session, self._plan, self._now = session, plan, now
        self._signed = plan.survey.signed

    def write(self) -> None:
        session = self._session
        gone = set(self._plan.mains) - {one.id for one in self._plan.signatures} - set(self._stayed())
        if self._plan.signatures:
            self._labels()
            self._signatures()
            self._rows()
            self._explanations()
            rekey(session, self._new_ids())
            for chunk in chunks(sorted(gone)):
                session.execute(delete(Row).where(Row.id.in_(chunk)))
            session.execute(text("DROP INDEX ix_rekey_told"))
            self._end()
            self._stand()
            self._events()
        relabel(session, self._plan.survey.keying)

    def _stayed(self) -> list[str]:
        return [flow.old for flow in self._plan.survey.flows if flow.old == flow.new]

    def _new_ids(self) -> dict[str, list[str]]:
        """All new signatures of each old one, the one that stands for it first."""
        out: dict[str, list[str]] = {old: [new] for old, new in self._plan.mains.items()}
        for flow in self._plan.survey.flows:
            if flow.old in out and flow.new not in out[flow.old]:
                out[flow.old].append(flow.new)
        return {old: new for old, new in out.items() if new != [old]}

    def _signatures(self) -> None:
        """Store new signatures and change those that are there; nothing is new: they inherit when they were seen."""
        ids = {flow.old for one in self._plan.signatures for flow in one.made_of}
        ids |= {one.id for one in self._plan.signatures}
        old: dict[str, Json] = {}
        for chunk in chunks(sorted(ids)):
            found = self._session.execute(select(*_KEPT).where(Row.id.in_(chunk))).mappings()
            old |= {one["id"]: dict(one) for one in found}
        rows = [self._row(one, old) for one in self._plan.signatures]
        new = [row for row in rows if row["id"] not in old]
        unexplained = [{k: v for k, v in row.items() if k != "why"} for row in new if row["why"] is None]
        for several in ([row for row in new if row["why"] is not None], unexplained):  # no reason is no JSON either
            if several:
                self._session.connection().execute(insert(Row.__table__), several)  # type: ignore[arg-type]  # a Table
        for row in rows:
            if row["id"] in old:
                values = row | {"why": null() if row["why"] is None else row["why"]}
                self._session.execute(update(Row).where(Row.id == row["id"]).values(values))

    def _row(self, one: Rekeyed, old: Mapping[str, Json]) -> Json:
        parts = [old[flow.old] for flow in one.made_of]
        main, signed = parts[0], self._signed[one.id]
        return main | {
            "id": one.id,
            "algorithm": self._plan.survey.keying,
            "text": storable(signed.text),
            "tree": tree_json(signed.tree),
            "root_message": storable(_message(signed.tree) or main["root_message"]),
            "first_seen": min(part["first_seen"] for part in parts),
            "last_seen": max(part["last_seen"] for part in parts),
            "night_id": min(part["night_id"] for part in parts),
            "cluster_id": one.cluster,
            "is_exemplar": one.exemplar,
        }

    def _labels(self) -> None:
        """A cluster that is shown by the text of a signature is shown by its new text."""
        shown = select(Row.id, Row.cluster_id, Row.text).join(Cluster, Cluster.id == Row.cluster_id)
        for old, number, label in self._session.execute(shown.where(Cluster.label == Row.text)).all():
            signed = self._signed.get(self._plan.mains.get(old, ""))
            if signed is not None and storable(signed.text) != label:
                self._session.execute(update(Cluster).where(Cluster.id == number).values(label=storable(signed.text)))

    def _rows(self) -> None:
        """Point variants, kept texts, lineage and daily counts at the new signatures."""
        session, connection = self._session, self._session.connection()
        _TEMPORARY.create_all(connection, checkfirst=False)
        moved = [{"variant_id": v, "old": old, "new": new} for v, old, new in self._plan.survey.moved]
        if moved:
            connection.execute(insert(_moves), moved)
        connection.execute(text(_INDEX))
        connection.execute(insert(_mains), [{"old": old, "new": new} for old, new in self._plan.mains.items()])
        stayed = (
            select(Variant.id, Variant.signature_id, Variant.signature_id)
            .join(_mains, _mains.c.old == Variant.signature_id)
            .where(Variant.id.not_in(select(_moves.c.variant_id)))
        )
        connection.execute(insert(_moves).from_select(["variant_id", "old", "new"], stayed))
        self._count_days()
        move_failures(session, _moves, _mains)
        variant = select(_moves.c.new).where(_moves.c.variant_id == Variant.id).scalar_subquery()
        session.execute(
            update(Variant).where(Variant.id.in_(select(_moves.c.variant_id))).values(signature_id=variant),
            execution_options={"synchronize_session": False},
        )
        kept = (
            select(_moves.c.new)
            .join(Crash, Crash.variant_id == _moves.c.variant_id)
            .where(Crash.id == Exemplar.crash_id)
            .scalar_subquery()
        )
        main = select(_mains.c.new).where(_mains.c.old == ClusterEvent.signature_id).scalar_subquery()
        old = select(_mains.c.old)
        for change in (
            update(Exemplar).where(Exemplar.signature_id.in_(old)).values(signature_id=kept),
            update(ClusterEvent).where(ClusterEvent.signature_id.in_(old)).values(signature_id=main),
        ):
            session.execute(change, execution_options={"synchronize_session": False})
        for table in (_moves, _mains, _counts):
            table.drop(connection)

    def _count_days(self) -> None:
        connection = self._session.connection()
        daily, names = CrashDaily.__table__, [*_CELL, "signature_id", "crashes"]
        crash = Crash.__table__.join(_moves, _moves.c.variant_id == Crash.variant_id).join(
            _mains, _mains.c.old == _moves.c.old
        )
        cell = [Crash.__table__.c[name] for name in _CELL]
        elsewhere = select(*cell).select_from(crash).where(_moves.c.new != _mains.c.new)
        for query in (
            select(*(daily.c[name] for name in _CELL), _mains.c.new, daily.c.crashes).join(
                _mains, _mains.c.old == daily.c.signature_id
            ),
            elsewhere.add_columns(_moves.c.new, func.count()).group_by(*cell, _moves.c.new),
            elsewhere.add_columns(_mains.c.new, -func.count()).group_by(*cell, _mains.c.new),
        ):
            connection.execute(insert(_counts).from_select(names, query))
        connection.execute(delete(daily).where(daily.c.signature_id.in_(select(_mains.c.old))))  # type: ignore[arg-type]
        key = [_counts.c[name] for name in names[:-1]]
        summed = select(*key, func.sum(_counts.c.crashes)).group_by(*key).having(func.sum(_counts.c.crashes) > 0)
        dialect = postgresql if connection.dialect.name == "postgresql" else sqlite
        statement: Any = dialect.insert(daily).from_select(names, summed)
        added = {"crashes": daily.c.crashes + statement.excluded.crashes}
        connection.execute(statement.on_conflict_do_update(index_elements=names[:-1], set_=added))

    def _explanations(self) -> None:
        """Let every reason that names a signature name the one that stands for it now."""
        mains = self._plan.mains
        for one, why in self._session.execute(select(Row.id, Row.why).where(Row.why.is_not(None))).all():
            nearest = why.get("exemplar") if why else None
            new = mains.get(nearest) if isinstance(nearest, str) else None
            if why is None or new is None or new == nearest:
                continue
            change: Json = {"exemplar": new}
            if new == one:  # it came together with what it was compared with
                change = {"exemplar": None, "words": f"is one with {nearest}, its nearest, since a re-key"}
            self._session.execute(update(Row).where(Row.id == one).values(why=why | change))

    def _end(self) -> None:
        """Merge clusters that are left empty into where their crashes went; what people said of them goes along."""
        for ended in self._plan.ended:
            gone = self._session.get_one(Cluster, ended.cluster)
            into = self._session.get_one(Cluster, ended.into)
            into.name, into.assignee = into.name or gone.name, into.assignee or gone.assignee
            if gone.class_by == "person" and into.class_by != "person":
                for field in ("failure_class", "probability", "class_by", "evidence"):
                    setattr(into, field, getattr(gone, field))
            gone.status, gone.merged_into = "merged", ended.into
            for number, other, word in ((ended.cluster, ended.into, "into"), (ended.into, ended.cluster, "taken")):
                detail = {word: cluster_id(other), "by": "rekey"}
                add_event(self._session, number, "merged", detail, other=other, night_id=None, now=self._now)

    def _stand(self) -> None:
        """Let somebody stand for every cluster that was touched."""
        touched = sorted(set(self._plan.clusters))
        for chunk in chunks(touched):
            query = (
                select(Row.cluster_id, func.min(Row.id), func.max(Row.id).filter(Row.is_exemplar))
                .where(Row.cluster_id.in_(chunk))
                .group_by(Row.cluster_id)
            )
            for _, first, exemplar in self._session.execute(query).all():
                if exemplar is None:
                    self._session.execute(update(Row).where(Row.id == first).values(is_exemplar=True))

    def _events(self) -> None:
        """One line of lineage for each cluster: which of its signatures became which."""
        pairs: dict[int, list[list[object]]] = defaultdict(list)
        for one in self._plan.signatures:
            for flow in one.made_of:
                for number in (one.cluster, *one.left):
                    if number is not None:
                        pairs[number].append([flow.old, flow.new, flow.crashes])
        keyed_by = [[name for name, _ in self._plan.survey.algorithms], self._plan.survey.keying]
        for number, several in sorted(pairs.items()):
            detail = {"keyed_by": keyed_by, "signatures": several}
            add_event(self._session, number, "rekeyed", detail, night_id=None, now=self._now)


def _message(tree: Part) -> str | None:
    return next((part.value for part in tree.parts if part.name == "message"), None)
