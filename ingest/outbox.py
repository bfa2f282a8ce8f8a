"""What was noticed in a night and is told to people, each thing once at each place, whatever is killed on the way.

What is noticed is kept as ``waiting`` first. Whoever tells claims it as ``sending`` in a transaction, tells, and marks
it ``told``; where it surely did not get through, it is ``waiting`` again for the next night. What stays ``sending`` was
perhaps told (the process was killed, or nobody answered), and is never told again.

A row of kind ``begun`` marks, for each place, up to which night everything was noticed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import func, select, update
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.orm import Session

from crashpath.ingest.chunks import chunks
from crashpath.ingest.clusters import cluster_id
from crashpath.ingest.tables import Cluster, Project
from crashpath.ingest.tables_counts import Told

FILE = "file"
"""The place of things that a digest's file tells."""
BEGUN = "begun"


@dataclass(frozen=True, slots=True)
class Thing:
    """One thing to tell. ``subject`` is a cluster's id or a class, ``occasion`` sets it apart from the next time.

    ``words`` are ours, ``title`` is what people call the cluster, or its root line: redacted text of a log.
    """

    kind: str
    subject: str
    occasion: str
    cluster: int | None
    words: str
    title: str = ""

    @property
    def key(self) -> str:
        """What it is known by: ``regressed C-0042 1.4``."""
        return " ".join(part for part in (self.kind, self.subject, self.occasion) if part)


@dataclass(frozen=True, slots=True)
class Claim:
    """Things that are being told at ``place``, in the order in which they were noticed."""

    place: str
    ids: tuple[int, ...]
    things: tuple[Thing, ...]


def noticed_until(session: Session, place: str) -> int | None:
    """Return the night up to which everything was noticed for a place; ``None`` for a place that is new."""
    return session.scalar(select(Told.night_id).where(Told.place == place, Told.thing == BEGUN))


def known(session: Session, place: str) -> frozenset[str]:
    """Return the keys of all that was ever noticed for a place; of clusters that were merged, as those of the last."""
    into = dict(session.execute(select(Cluster.id, Cluster.merged_into).where(Cluster.merged_into.is_not(None))).all())
    keys = set()
    for thing, number in session.execute(select(Told.thing, Told.cluster_id).where(Told.place == place)):
        keys.add(thing)
        end = _end(number, into)
        if number is not None and end != number:
            keys.add(thing.replace(cluster_id(number), cluster_id(end), 1))
    return frozenset(keys)


def _end(number: int | None, into: dict[int, int | None]) -> int:
    seen: set[int | None] = set()
    while number in into and number not in seen:
        seen.add(number)
        number = into[number]
    return number or 0


def keep(
    session: Session, place: str, things: Iterable[Thing], *, silent: Iterable[Thing] = (), night: int, now: datetime
) -> None:
    """Keep what was noticed up to ``night``. ``silent`` counts as told: something else said it already.

    A thing that is there is left as it is.
    """
    rows = [_row(one, place, "waiting", night, now) for one in things]
    rows += [_row(one, place, "told", night, now) for one in silent]
    begun = _row(Thing(BEGUN, "", "", None, ""), place, "told", night, now)
    dialect: Any = postgresql if session.get_bind().dialect.name == "postgresql" else sqlite
    for chunk in chunks([begun, *rows]):
        session.execute(dialect.insert(Told).values(list(chunk)).on_conflict_do_nothing())
    session.execute(
        update(Told).where(Told.place == place, Told.thing == BEGUN, Told.night_id < night).values(night_id=night)
    )


def claim(session: Session, place: str, *, now: datetime, every: float = 0.0, again: bool = False) -> Claim | None:
    """Claim all that waits, in the caller's transaction; ``None`` where nothing does.

    Less than ``every`` seconds after the last claim that may have been told, all is left waiting. ``again`` also claims
    what was claimed and not settled, for a place where telling twice does no harm.
    """
    session.execute(select(Project.id).with_for_update()).all()  # one after the other on a server, too
    if every and _since(session, place, now) < timedelta(seconds=every):
        return None
    states = ("waiting", "sending") if again else ("waiting",)
    query = update(Told).where(Told.place == place, Told.state.in_(states)).values(state="sending", told_at=now)
    rows = session.execute(query.returning(Told.id, Told.kind, Told.thing, Told.cluster_id, Told.sentence)).all()
    found = {number: _thing(kind, key, cluster, said) for number, kind, key, cluster, said in sorted(rows, key=_id)}
    return Claim(place, tuple(found), tuple(found.values())) if found else None


def _id(row: Any) -> int:
    return int(row[0])


def settle(session: Session, claimed: Claim, *, told: bool, now: datetime) -> None:
    """Mark what was claimed as told, or let it wait again where it surely was not."""
    values = {"state": "told", "told_at": now} if told else {"state": "waiting", "told_at": None}
    for chunk in chunks(claimed.ids):
        session.execute(update(Told).where(Told.id.in_(chunk), Told.state == "sending").values(**values))


def waiting(session: Session, place: str) -> int:
    """Return how many things wait to be told."""
    query = select(func.count()).select_from(Told).where(Told.place == place, Told.state == "waiting")
    return session.scalar(query) or 0


@dataclass(frozen=True, slots=True)
class Standing:
    """What one place was told: things that ``wait``, that are ``uncertain`` (claimed and never settled), and ``told``.

    ``last`` is when something was last told there (UTC).
    """

    place: str
    waiting: int
    uncertain: int
    told: int
    last: datetime | None


def standings(session: Session, *, limit: int = 50) -> tuple[Standing, ...]:
    """Return how it stands with each place that was ever told something, or has something waiting; the file first."""
    waits, sent, told = (func.count().filter(Told.state == state) for state in ("waiting", "sending", "told"))
    last = func.max(Told.told_at).filter(Told.state == "told")
    query = select(Told.place, waits, sent, told, last).where(Told.kind != BEGUN).group_by(Told.place)
    rows = session.execute(query.order_by(Told.place != FILE, Told.place).limit(limit))
    return tuple(Standing(place, w, s, t, at) for place, w, s, t, at in rows)


def uncertain(session: Session, place: str, *, before: datetime) -> int:
    """Return how many things were claimed before ``before`` and never settled, with nothing told since."""
    last = session.scalar(select(func.max(Told.told_at)).where(Told.place == place, Told.state == "told"))
    query = select(func.count()).where(Told.place == place, Told.state == "sending", Told.told_at < before)
    return session.scalar(query if last is None else query.where(Told.told_at > last)) or 0


def _since(session: Session, place: str, now: datetime) -> timedelta:
    """How long ago something may have been told; a time to come (another clock) is long ago."""
    last = session.scalar(select(func.max(Told.told_at)).where(Told.place == place))
    return timedelta.max if last is None or last > now else now - last


def _row(one: Thing, place: str, state: str, night: int, now: datetime) -> dict[str, Any]:
    return {
        "thing": one.key, "place": place, "kind": one.kind, "cluster_id": one.cluster, "night_id": night,
        "noticed_at": now, "told_at": None, "state": state, "sentence": f"{one.words}\n{one.title}".rstrip("\n"),
    }  # fmt: skip


def _thing(kind: str, key: str, cluster: int | None, sentence: str) -> Thing:
    _, subject, occasion = (*key.split(" ", 2), "", "")[:3]
    words, _, title = sentence.partition("\n")
    return Thing(kind, subject, occasion, cluster, words, title)


def by_kind(things: Sequence[Thing], kinds: Sequence[str]) -> list[tuple[str, list[Thing]]]:
    """Return the things of each kind, in the order of ``kinds``, without kinds of which there are none."""
    found = [(kind, [one for one in things if one.kind == kind]) for kind in kinds]
    return [(kind, several) for kind, several in found if several]
