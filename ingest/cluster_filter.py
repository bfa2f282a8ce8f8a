"""Which clusters people ask for: by class, by who cares for them, by number, or by a text in what they printed."""

from __future__ import annotations

import re
from dataclasses import dataclass

from sqlalchemy import ColumnElement, or_, select

from crashpath.ingest.tables import Cluster, Signature, Variant

NOBODY = ""
"""The owner of clusters that nobody was given."""
_ID = re.compile(r"[Cc]-?0*(\d{1,9})")


@dataclass(frozen=True, slots=True)
class ClusterFilter:
    """Which clusters pass; ``None`` lets all pass. ``numbers`` are cluster numbers, ``classes`` failure classes.

    ``search`` is found in any letter case (of ASCII letters) in a cluster's name, its root lines with and without
    masks, and as its id.
    """

    classes: tuple[str, ...] | None = None
    owner: str | None = None
    numbers: tuple[int, ...] | None = None
    search: str | None = None

    @property
    def passes_all(self) -> bool:
        """Whether nothing is left out."""
        return self == EVERY


EVERY = ClusterFilter()


def cluster_conditions(wanted: ClusterFilter) -> list[ColumnElement[bool]]:
    """Return the filter as conditions on ``cluster``; merged and retired clusters are left out."""
    where: list[ColumnElement[bool]] = [Cluster.status == "active"]
    if wanted.classes is not None:
        where.append(Cluster.failure_class.in_(wanted.classes))
    if wanted.owner is not None:
        where.append(Cluster.assignee.is_(None) if wanted.owner == NOBODY else Cluster.assignee == wanted.owner)
    if wanted.numbers is not None:
        where.append(Cluster.id.in_(wanted.numbers))
    if wanted.search:
        where.append(_printed(wanted.search))
    return where


def _printed(text: str) -> ColumnElement[bool]:
    """Whether a text is in what people read of a cluster; ``%`` and ``_`` stand for themselves."""
    masked = Signature.root_type + ": " + Signature.root_message
    printed = Variant.root_type + ": " + Variant.root_message
    members = select(Signature.cluster_id).where(Signature.cluster_id.is_not(None))
    of_variants = members.join(Variant, Variant.signature_id == Signature.id)
    found = [
        Cluster.name.icontains(text, autoescape=True),
        Cluster.label.icontains(text, autoescape=True),
        Cluster.id.in_(members.where(masked.icontains(text, autoescape=True))),
        Cluster.id.in_(of_variants.where(printed.icontains(text, autoescape=True))),
    ]
    if number := _ID.fullmatch(text.strip()):
        found.append(Cluster.id == int(number[1]))
    return or_(*found)
