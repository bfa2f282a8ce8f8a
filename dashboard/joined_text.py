"""How a signature came to its cluster, and what it was compared with, in sentences of plain text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from crashpath.ingest.details import SignatureDetail

JOINED = {
    "birth": "began this cluster or came in together with the first one",
    "join": "joined this cluster, which was there before",
    "recluster": "came here when clusters were formed anew",
    "person": "was put here by a person",
}
"""What the store calls the ways into a cluster, in words."""


class Joined(NamedTuple):
    """How it came in; in short, why (empty where there is no more to say); which terms both have, and which one has."""

    how: str
    why: str
    terms: tuple[str, ...]


def joined(one: SignatureDetail) -> Joined:
    """Say how a signature came to its cluster, and what it was compared with."""
    if one.joined_by is None:
        return Joined("the next night puts it into one", "", ())
    words = JOINED.get(one.joined_by, one.joined_by)
    why = one.why or {}
    if one.joined_by == "person":  # what it was compared with before may be in another cluster now
        return Joined(words, "", ())
    said = _in_short(one, why)
    terms = tuple(terms_words(why.get("shared"), why.get("differing")))
    return Joined(words + _compared(one, why), f"in short: {said}" if said else "", terms)


def terms_words(shared: object, differing: object) -> Iterator[str]:
    """Say which terms two texts share, and which only one of them has."""
    for name, terms in (("both have", shared), ("only one has", differing)):
        if isinstance(terms, list | tuple) and terms:
            yield f"{name}: {', '.join(map(str, terms))}"


def _in_short(one: SignatureDetail, why: Mapping[str, Any]) -> str:
    if one.joined_by == "birth" and not why.get("exemplar"):
        return "no cluster was known before" if why else ""
    if _born_near(one, why):
        return "near that one, but its cluster as a whole did not take it"
    return str(why.get("words") or "")


def _born_near(one: SignatureDetail, why: Mapping[str, Any]) -> bool:
    """Whether one that began a cluster is as near its nearest as one that joins: the cluster of that is tighter."""
    distance, limit = why.get("distance"), why.get("threshold")
    if one.joined_by != "birth" or not why.get("exemplar"):
        return False
    return isinstance(distance, int | float) and isinstance(limit, int | float) and distance <= limit


def _compared(one: SignatureDetail, why: Mapping[str, Any]) -> str:
    nearest, distance, limit = why.get("exemplar"), why.get("distance"), why.get("threshold")
    if not nearest or not isinstance(distance, int | float):
        return ""
    allowed = ""
    if isinstance(limit, int | float) and not _born_near(one, why):
        allowed = f" (joins up to {limit:.2f})"
    place = "nearest outside it" if one.joined_by == "birth" else "nearest in it"
    apart = "contradicts it" if distance > 1 else f"at distance {distance:.2f}"
    return f"; {place}: {nearest} {apart}{allowed}"
