"""What drills and mixes allow to be claimed: one unit a claim, and the claim says which."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from crashpath.coverage.claims import lower_bound
from crashpath.coverage.drillcells import DrillResult, Verdict
from crashpath.coverage.drillmix import MixResult

DRILL = "drill"
REQUEST = "struck request"


@dataclass(frozen=True, slots=True)
class Claim:
    """``misses`` of ``trials`` were not answered rightly; ``unit`` says trials of what: `DRILL` or `REQUEST`."""

    unit: str
    trials: int
    misses: int

    @property
    def bound(self) -> float:
        """Clopper-Pearson, one-sided, 95 %; 0.0 without a trial."""
        return lower_bound(self.trials, self.misses)


def claimed(results: Sequence[DrillResult], mixes: Sequence[MixResult]) -> Claim:
    """Return the claim of a run: of the struck requests of its mixes where it has any, else of its drills.

    Of several mixes it is the weakest one's. A drill is one trial, missed where one of its requests was not answered,
    or not rightly: requests of one drill are no trials of their own.
    """
    if mixes:
        each = [Claim(REQUEST, mix.requests, mix.misses) for mix in mixes]
        return min(each, key=lambda one: one.bound)
    driven = [one for one in results if one.verdict is not Verdict.NULL]
    return Claim(DRILL, len(driven), sum(bool(one.unanswered or one.wrong or not one.requests) for one in driven))
