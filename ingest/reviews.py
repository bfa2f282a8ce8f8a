"""Release reviews as the store keeps them: each look at a release, and what people put in the place of its verdict.

A row of ``review`` is added and never changed, so that it says for ever what was seen at a look, also by whoever
overrode its verdict. An override is a decision on one look, taken back as every other (``undoing``). Of several that
stand, the last one is the word of people on the release; taking it back gives the one before it its place again.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeAlias

from sqlalchemy import Row, func, select
from sqlalchemy.orm import Session

from crashpath.ingest.changes import Recorder
from crashpath.ingest.decisions import By, hold, record, undoers
from crashpath.ingest.schema import Json
from crashpath.ingest.storable import storable
from crashpath.ingest.store_errors import NoSuchThing, Refused
from crashpath.ingest.tables_evidence import Decision, Review

Counts = Mapping[str, Mapping[str, tuple[int, int]]]
"""Failures and attempts by unit and measure."""
VERDICTS = ("GO", "NO-GO", "HOLD")
_COLUMNS = (
    Review.id, Review.look, Review.at, Review.release, Review.baseline, Review.unit, Review.verdict, Review.state,
)  # fmt: skip
"""All but the policy and the report: those are long, and no list of looks needs them."""
_Row: TypeAlias = "Row[*tuple[Any, ...]]"


@dataclass(frozen=True, slots=True)
class Seen:
    """One look at a release. ``number`` counts the looks at it from 1.

    ``failures`` of ``attempts`` are the headline unit's unanswered ones, both 0 where no ``unit`` was told. ``keys``
    are the reasons that stood against a GO. What another version did not keep is 0 or empty.
    """

    id: int
    number: int
    at: datetime
    release: str
    baseline: str | None
    unit: str | None
    verdict: str
    failures: int
    attempts: int
    keys: frozenset[str]
    counts: Counts


@dataclass(frozen=True, slots=True)
class Overridden:
    """A person's word on a release: ``verdict`` in the place of ``over``, with the reasons and counts of that look."""

    decision: int
    at: datetime
    who: str
    why: str
    verdict: str
    over: str
    release: str
    keys: frozenset[str]
    counts: Counts
    undone: bool


def record_look(
    session: Session,
    *,
    at: datetime,
    release: str,
    baseline: str | None,
    unit: str | None,
    verdict: str,
    fingerprint: str,
    failures: int,
    attempts: int,
    keys: Collection[str],
    counts: Counts,
    policy: Json,
    report: Json,
) -> Seen:
    """Keep a look at a release and return it; where nothing changed, return the newest one, which stays as it is.

    ``fingerprint`` stands for all that a look is of: looking twice at the same is one look. Two reviews of one moment
    wait for each other until the first one's transaction ends, so that each look has a number of its own.
    """
    hold(session)
    name = storable(release)
    newest = _newest(session, name)
    if newest is not None and _state(newest).get("fingerprint") == fingerprint:
        return _seen(newest)
    state = {
        "fingerprint": fingerprint,
        "failures": failures,
        "attempts": attempts,
        "keys": sorted(map(storable, keys)),
        "counts": {one: {measure: list(pair) for measure, pair in of.items()} for one, of in counts.items()},
    }
    row = Review(
        at=at, release=name, baseline=None if baseline is None else storable(baseline), unit=unit or "",
        verdict=verdict, look=1 if newest is None else newest.look + 1, policy=policy, state=state, report=report,
    )  # fmt: skip
    session.add(row)
    session.flush()
    return _seen(session.execute(select(*_COLUMNS).where(Review.id == row.id)).one())


def number_of(session: Session, release: str, fingerprint: str) -> int:
    """Return the number that a look has, or would have if it were recorded now: of what is unchanged the newest's."""
    newest = _newest(session, storable(release))
    if newest is None:
        return 1
    unchanged: bool = _state(newest).get("fingerprint") == fingerprint
    return int(newest.look) + (not unchanged)


def newest_looks(session: Session) -> tuple[Seen, ...]:
    """Return the newest look at each release that was ever looked at, in order of release."""
    last = select(Review.release, func.max(Review.look).label("look")).group_by(Review.release).subquery()
    query = (
        select(*_COLUMNS)
        .join(last, (last.c.release == Review.release) & (last.c.look == Review.look))
        .order_by(Review.release, Review.id)
    )
    return tuple({one.release: one for one in map(_seen, session.execute(query))}.values())


def looks(session: Session, release: str) -> tuple[Seen, ...]:
    """Return all looks at a release, oldest first; none of a release that nobody reviewed."""
    query = select(*_COLUMNS).where(Review.release == storable(release)).order_by(Review.look, Review.id)
    return tuple(map(_seen, session.execute(query)))


def override(session: Session, look: int, verdict: str, by: By) -> Decision:
    """Put another verdict in the place of a look's; ``look`` is the ``id`` of one that was seen.

    Raises ``NoSuchThing``, or ``Refused`` without a reason and for what is said already: by the look itself, or by the
    last override of its release that stands, where that is on this very look. To come back to the look's own verdict,
    an override is undone, not overridden.
    """
    hold(session)
    found = session.execute(select(*_COLUMNS).where(Review.id == look)).first()
    if found is None:
        raise NoSuchThing(f"There is no look {look} at a release.", "`crashpath review --release R` makes one.")
    if verdict not in VERDICTS:
        raise Refused(f"{verdict} is no verdict.", f"It is one of {', '.join(VERDICTS)}.")
    if not (by.why or "").strip():
        raise Refused("An override needs a reason.", "Give it with --why; it is shown beside the verdict for ever.")
    standing = [one for one in overrides(session, found.release) if not one.undone]
    if standing:
        _refuse_again(session, standing[-1], found, verdict)
    if verdict == found.verdict:
        others = " or ".join(one for one in VERDICTS if one != verdict)
        raise Refused(f"The verdict is {verdict} already.", f"An override puts {others} in its place.")
    return record(session, "override", by, Recorder(session).changes(), cluster=None, review=found.id, value=verdict)


def _refuse_again(session: Session, last: Overridden, found: _Row, verdict: str) -> None:
    """Refuse what ``last``, the last override that stands, says of this very look, and what it only has to be undone
    for."""
    if last.verdict == verdict != found.verdict and session.get_one(Decision, last.decision).review_id == found.id:
        raise Refused(
            f"Decision {last.decision} by {last.who} overrode {last.over} to {verdict} already.",
            f"It stands until `crashpath undo {last.decision}`.",
        )
    if verdict == found.verdict != last.verdict:
        raise Refused(
            f"The verdict is {verdict} already, and decision {last.decision} by {last.who} put {last.verdict} in its "
            "place.",
            f"To have {verdict} again, take that one back: `crashpath undo {last.decision}`.",
        )


def overrides(session: Session, release: str) -> tuple[Overridden, ...]:
    """Return all overrides that ever were of a release, oldest first, those that were undone as well."""
    undone = undoers(session)
    query = (
        select(Decision.id, Decision.at, Decision.who, Decision.why, Decision.value, Review.verdict, Review.state)
        .join(Review, Review.id == Decision.review_id)
        .where(Decision.kind == "override", Review.release == storable(release))
        .order_by(Decision.id)
    )
    return tuple(
        Overridden(
            row.id, row.at, row.who, row.why or "", row.value or "", row.verdict, storable(release),
            frozenset(_state(row).get("keys") or ()), _counts(_state(row)), row.id in undone,
        )
        for row in session.execute(query)
    )  # fmt: skip


def _newest(session: Session, release: str) -> _Row | None:
    query = select(*_COLUMNS).where(Review.release == release).order_by(Review.look.desc(), Review.id.desc())
    return session.execute(query.limit(1)).first()


def _seen(row: _Row) -> Seen:
    state = _state(row)
    return Seen(
        row.id, row.look, row.at, row.release, row.baseline, row.unit or None, row.verdict,
        state.get("failures") or 0, state.get("attempts") or 0, frozenset(state.get("keys") or ()), _counts(state),
    )  # fmt: skip


def _state(row: _Row) -> Json:
    state: Json | None = row.state
    return state or {}


def _counts(state: Json) -> Counts:
    told: Mapping[str, Mapping[str, list[int]]] = state.get("counts") or {}
    return {unit: {measure: (pair[0], pair[1]) for measure, pair in of.items()} for unit, of in told.items()}
