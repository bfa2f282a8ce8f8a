"""From questions to a verdict."""

from __future__ import annotations

import math
from dataclasses import replace

from crashpath.dashboard.question import Family, Question
from crashpath.dashboard.review_model import Verdict
from crashpath.dashboard.verdict import answers, needed_in, reasons_of, thresholds_of, verdict_of

_OPEN = Question(
    Family.OVERALL, "limits.unanswered", "deployment", "", "at most 1 %", "0.5 %", "5 of 1,000 failed", 0.0, 1.0, 700
)  # fmt: skip


def _verdict(*asked: Question) -> Verdict:
    return verdict_of(reasons_of(answers(asked, 0.05)))


def test_what_is_not_shown_either_way_is_a_hold() -> None:
    """Evidence below the bar in both directions decides nothing, and says how many attempts are needed."""
    answered = answers([_OPEN], 0.05)
    assert verdict_of(reasons_of(answered)) is Verdict.HOLD
    assert needed_in(answered, "deployment") == 700
    assert [one.met for one in thresholds_of(answered)] == [None]


def test_what_is_shown_good_is_a_go() -> None:
    """Every question that asks for it is shown good at alpha."""
    assert _verdict(replace(_OPEN, good=math.log(21))) is Verdict.GO


def test_one_bad_question_is_a_no_go_whatever_the_others_say() -> None:
    """A NO-GO comes first among the reasons."""
    bad = replace(_OPEN, bad=math.log(200), rule="limits.primary")
    assert _verdict(_OPEN, bad) is Verdict.NO_GO
    assert reasons_of(answers([_OPEN, bad], 0.05))[0].rule == "limits.primary"


def test_many_questions_of_a_family_share_its_budget() -> None:
    """Of 50 cohorts one at e = 500 says nothing; alone it would be a NO-GO."""
    bad = replace(_OPEN, family=Family.COHORT, subject="linux / m", bad=math.log(500), good=math.log(30))
    quiet = replace(bad, bad=0.0)
    assert _verdict(bad) is Verdict.NO_GO
    assert _verdict(bad, *[quiet] * 49) is Verdict.GO


def test_a_cluster_is_evidence_of_its_class_and_no_second_reason() -> None:
    """Where class and cluster are both shown bad, the class is the reason and names the cluster."""
    cluster = replace(
        _OPEN, family=Family.CLASS, subject="C-0007 (x)", evidence=("C-0007",), bad=math.log(1e6), good=None
    )
    failure_class = replace(cluster, subject="tokenizer", evidence=("C-0007", "C-0009"))
    reasons = reasons_of(answers([failure_class, cluster], 0.05))
    assert [(one.subject, one.evidence[0]) for one in reasons] == [("tokenizer", "C-0007")]


def test_cohorts_need_their_attempts_side_by_side() -> None:
    """Needs of cohorts add up; where no number would do, none is told."""
    cohort = replace(_OPEN, family=Family.COHORT, needed=400)
    assert needed_in(answers([_OPEN, cohort, cohort], 0.05), "deployment") == 800
    assert needed_in(answers([_OPEN, replace(cohort, needed=None)], 0.05), "deployment") is None


def test_of_classes_the_one_that_is_shown_to_be_worst_stands_beside_its_rule() -> None:
    """Behind it stand those that are shown to be well, and behind these what failed too seldom to be asked."""
    seldom, well, worse = (
        replace(_OPEN, family=Family.CLASS, good=None, subject=name, bad=bad)
        for name, bad in (("hang", 0.0), ("tokenizer", -3.0), ("oom_host", -0.2))
    )
    assert [one.subject for one in thresholds_of(answers([seldom, well, worse], 0.05))] == ["oom_host"]
    assert [one.subject for one in thresholds_of(answers([seldom, well], 0.05))] == ["tokenizer"]
    assert [one.subject for one in thresholds_of(answers([seldom], 0.05))] == ["hang"]
