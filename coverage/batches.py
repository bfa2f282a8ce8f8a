"""The batch of a feed."""

from __future__ import annotations

from crashpath.runtime.values import Arrays


def batch_of(feed: Arrays) -> int:
    """Return the rows of a feed's first input; 1 where it has no dimension."""
    first = next(iter(feed.values()), None)
    return int(first.shape[0]) if first is not None and first.ndim else 1
