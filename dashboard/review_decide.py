"""What a page records of a review: a look at it, a person's word on it, and that word taken back."""

from __future__ import annotations

from datetime import datetime

from crashpath.dashboard import decide_text
from crashpath.dashboard.policy import Policy
from crashpath.dashboard.review_looks import keep
from crashpath.dashboard.review_model import Review
from crashpath.dashboard.review_word import Word
from crashpath.ingest import undoing
from crashpath.ingest.decisions import By, taken
from crashpath.ingest.reviews import newest_looks
from crashpath.ingest.store import Store
from crashpath.ingest.store_errors import Refused


def record(store: Store, review: Review, policy: Policy, word: Word | None, now: datetime) -> Review:
    """Keep the look at a review that somebody sees, with a word on it if there is one; return it as it stands then.

    Raises ``Refused`` where somebody recorded a newer look at the release since: that one is to be seen first.
    """
    with store.write() as session:
        seen = {one.release: one for one in newest_looks(session)}.get(review.release)
        if seen is not None and seen.at > review.at and seen.number >= review.looks:
            raise Refused(
                f"Somebody recorded a look at release {review.release} since this page was drawn.",
                "See first what it says: reload the page.",
            )
        return keep(session, review, policy, word, now)


def take_back(store: Store, decision: int, who: str, why: str | None, now: datetime) -> str:
    """Undo an override and return what was done, as the command says it. Raises ``NoSuchThing`` or ``Refused``."""
    with store.write() as session:
        done = undoing.undo(session, decision, By(who, now, why))
        row, what = taken(session, done.decision), taken(session, done.what)
    return f"Decision {row.number}: undo of {what.number}, {decide_text.what(what)}."
