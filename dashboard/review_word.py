"""A person's word on a release: a verdict in the place of what the evidence says, under a name and with a reason."""

from __future__ import annotations

from dataclasses import dataclass

from crashpath.dashboard.errors import UsageError
from crashpath.dashboard.review_model import Verdict


@dataclass(frozen=True, slots=True)
class Word:
    """Who puts ``verdict`` in the place of what the evidence says, and why."""

    verdict: Verdict
    who: str
    why: str


def word_of(verdict: Verdict, who: str | None, why: str | None) -> Word:
    """Return a word that may be recorded. Raises ``UsageError`` where name or reason is missing or too long."""
    from crashpath.dashboard.who import one_line, who_decides

    if not (who or "").strip() or not (why or "").strip():
        raise UsageError("An override needs a name and a reason: both are shown for ever.")
    return Word(verdict, who_decides(who), one_line(why or "", "--why"))
