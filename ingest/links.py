"""What people decided about pairs of signatures, as clustering takes it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Links:
    """Pairs of signature ids that belong together (``must``) and apart (``cannot``). A pair is unordered."""

    must: frozenset[frozenset[str]] = frozenset()
    cannot: frozenset[frozenset[str]] = frozenset()


NO_LINKS = Links()
