"""From questions to a verdict: what is shown to be bad, what is not shown to be good, and what each weighs.

False NO-GOs share the policy's alpha over all questions and all looks: half for the whole release, a quarter for
cohorts, a quarter for classes and clusters, each corrected by Holm's method over the p-values 1 / e. For a GO every
question that asks for it has to be shown good at alpha; whichever of them is false keeps the GO away by itself, so
nothing is corrected there (Berger, 1982).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from crashpath.dashboard.evalues import e_value, p_value
from crashpath.dashboard.holm import rejected
from crashpath.dashboard.question import BUDGET, Family, Question
from crashpath.dashboard.review_model import Reason, Threshold, Verdict

_WORST_FIRST = (Verdict.NO_GO, Verdict.HOLD, Verdict.GO)


@dataclass(frozen=True, slots=True)
class Answer:
    """A question with its answer: ``met`` is ``None`` where neither was shown."""

    question: Question
    met: bool | None


def answers(asked: Iterable[Question], alpha: float) -> tuple[Answer, ...]:
    """Answer every question, in order."""
    everything = tuple(asked)
    bad: set[int] = set()
    for family, share in BUDGET.items():
        places = [place for place, one in enumerate(everything) if one.family is family]
        if places:
            chances = [p_value(everything[place].bad) for place in places]
            shown = rejected(chances, alpha * share)
            bad |= {place for place, is_bad in zip(places, shown, strict=True) if is_bad}
    bar = -math.log(alpha)

    def met(place: int, one: Question) -> bool | None:
        if place in bad:
            return False
        return True if one.good is None or one.good >= bar else None

    return tuple(Answer(one, met(place, one)) for place, one in enumerate(everything))


def verdict_of(reasons: Iterable[Reason]) -> Verdict:
    """Return the worst verdict among reasons; without any, GO."""
    given = {one.verdict for one in reasons}
    return next((one for one in _WORST_FIRST if one in given), Verdict.GO)


def reasons_of(answered: Sequence[Answer]) -> tuple[Reason, ...]:
    """Return a reason for each answer that is no GO, ranked: NO-GO before HOLD, the strongest evidence first.

    A cluster whose class is a reason itself is evidence of that one, and no reason more.
    """
    named = {id for one in answered if one.met is False for id in _inside(one.question)}
    found = [
        _reason(one)
        for one in answered
        if one.met is not True and not (_is_cluster(one.question) and one.question.evidence[0] in named)
    ]
    return ranked(found)


def ranked(reasons: Iterable[Reason]) -> tuple[Reason, ...]:
    """Return reasons, NO-GO before HOLD, the strongest evidence first.

    Of a HOLD those without a test come before: where the figures are in doubt, more attempts would not help.
    """

    def place(one: Reason) -> tuple[int, bool, float]:
        tested = one.verdict is Verdict.HOLD and one.e_value is not None
        return _WORST_FIRST.index(one.verdict), tested, -(one.e_value or 0.0)

    return tuple(sorted(reasons, key=place))


def thresholds_of(answered: Sequence[Answer]) -> tuple[Threshold, ...]:
    """Return every question as a threshold beside what was measured; of classes and clusters the worst of each rule."""
    worst: dict[tuple[str, str], Answer] = {}
    for one in answered:
        if one.question.family is Family.CLASS:
            key = (one.question.rule, one.question.unit)
            if key not in worst or _badness(one.question) > _badness(worst[key].question):
                worst[key] = one
    kept = [one for one in answered if one.question.family is not Family.CLASS]
    return tuple(
        Threshold(f"{one.question.rule} ({one.question.unit})", one.question.subject, one.question.limit,
                  one.question.measured, one.met, one.question.limit_rate, one.question.good is None)
        for one in (*kept, *worst.values())
    )  # fmt: skip


def needed_in(answered: Sequence[Answer], unit: str) -> int | None:
    """Return how many attempts more of a unit until every open question of it is likely answered; 0 without any.

    Cohorts need theirs side by side. ``None`` where no number would do for one of them.
    """
    overall, cohorts = 0, 0
    for one in answered:
        if one.met is None and one.question.unit == unit:
            if one.question.needed is None:
                return None
            if one.question.family is Family.COHORT:
                cohorts += one.question.needed
            else:
                overall = max(overall, one.question.needed)
    return max(overall, cohorts)


def _badness(question: Question) -> float:
    """How bad a class is shown to be; behind all others what failed too seldom to be asked, whose evidence is none."""
    return question.bad or -math.inf


def _is_cluster(question: Question) -> bool:
    return question.subject.startswith("C-") and len(question.evidence) == 1


def _inside(question: Question) -> tuple[str, ...]:
    return () if _is_cluster(question) or question.family is not Family.CLASS else question.evidence


def _reason(one: Answer) -> Reason:
    question = one.question
    subject = f"{question.subject}: " if question.family is Family.CLASS else ""
    about = question.evidence if _is_cluster(question) else ()  # the subject has its title, which people may change
    if one.met is False:
        e = e_value(question.bad)
        said = f"{subject}{question.said}; allowed is {question.limit}."
        return Reason(
            Verdict.NO_GO, question.rule, question.subject, said, question.evidence, question.command, e, None,
            question.unit, about,
        )  # fmt: skip
    more = ""
    if question.needed is None:
        more = ": no number of attempts would tell at this rate"
        more += ", beside a baseline of this size" if question.rule.startswith("baseline.") else ""
    said = f"{subject}{question.said}; not shown yet to be {question.limit}{more}."
    return Reason(
        Verdict.HOLD, question.rule, question.subject, said, question.evidence, "", e_value(question.good or 0.0),
        question.needed, question.unit, about,
    )  # fmt: skip
