"""Which cohorts the lines of a source name, whether they tell of a failure or of none.

A crash is counted for the cohort that its lines name. So a source whose lines name a cohort would have told of its
failures, and where none of them does, there were none in it.
"""

from __future__ import annotations

from crashpath.ingest.model import Facts

MOST_COHORTS = 1_000
"""Most cohorts that the lines of one source may name; those that come later are not heard by them."""

MOST_CHARACTERS = 200
"""Most characters of a name: a longer one is a description, and stores index names."""

Told = tuple[str | None, str | None, str | None]
"""Release, platform and model as a source tells them; ``None`` where it does not."""


def told_by(facts: Facts, lower: Facts | None = None) -> Told:
    """Return the cohort that facts name, gaps filled from facts of lower rank."""
    if lower is None:
        return facts.release, facts.platform, facts.model
    return facts.release or lower.release, facts.platform or lower.platform, facts.model or lower.model


class Named:
    """The cohorts that lines of one source named so far. ``lower`` are the source's own facts."""

    def __init__(self, lower: Facts) -> None:
        self._lower = lower
        self._seen: set[Told] = set()
        self.cohorts: set[Told] = set()

    def add(self, facts: Facts) -> None:
        """Take the facts of a line: almost always the cohort of the lines before."""
        told = (facts.release, facts.platform, facts.model)
        if told in self._seen or not (told[0] or self._lower.release) or len(self._seen) >= MOST_COHORTS:
            return
        if all(len(name or "") <= MOST_CHARACTERS for name in told):
            self._seen.add(told)
            self.cohorts.add(told_by(facts, self._lower))
