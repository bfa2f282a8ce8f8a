"""What a policy asks of the rates of a release, and of its classes and clusters."""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any, get_args

import pytest

from crashpath.dashboard.evalues import above_limit, below_limit, either, no_worse_than, worse_than
from crashpath.dashboard.evidence import ClusterFacts, Evidence, Known
from crashpath.dashboard.policy import Baseline, Classes, Cohorts, Policy, UnitLimits
from crashpath.dashboard.question import Family, Question
from crashpath.dashboard.questions import questions
from crashpath.dashboard.sides import Side, make_side
from crashpath.ingest.event_attempts import AttemptCount
from crashpath.ingest.failed_read import FailedCell

DAY = date(2026, 3, 1)
BAR = math.log(20)
NOTHING = {
    "limits": {"unanswered": None}, "cohorts": {"unanswered": None}, "baseline": {"unanswered": None},
    "classes": {"new_rate": None, "regressed_ratio": None},
}  # fmt: skip
"""A policy that asks nothing."""
RULES = [
    (section, key)
    for section, model in (("limits", UnitLimits), ("cohorts", Cohorts), ("baseline", Baseline), ("classes", Classes))
    for key, field in model.model_fields.items()
    if type(None) in get_args(field.annotation)
]
"""Every key that may be left unasked."""


def told(attempts: int, **more: object) -> AttemptCount:
    """Attempts of a day and cohort."""
    row = {
        "unit": "deployment", "day": DAY, "release": "2.0", "platform": "linux", "model": "m", "path": "ort",
        "attempts": attempts, "failures": None, "unanswered": None, "rerouted": None, "users": None, "devices": None,
        "via": "file",
    }  # fmt: skip
    return AttemptCount(**(row | more))  # type: ignore[arg-type]  # values by name


def failed(attempts: int, cluster: int | None = 1, **more: object) -> FailedCell:
    """Failed attempts of a day, cohort and cluster."""
    row = {
        "unit": "deployment", "day": DAY, "release": "2.0", "platform": "linux", "model": "m", "cluster": cluster,
        "failure_class": "oom_host", "attempts": attempts, "unanswered": 0, "contained": 0, "witnesses": attempts,
    }  # fmt: skip
    return FailedCell(**(row | more))  # type: ignore[arg-type]  # values by name


def side(cells: Sequence[FailedCell], *counts: AttemptCount, release: str = "2.0", unit: str = "deployment") -> Side:
    """One release in one unit."""
    return make_side(release, unit, cells, counts)


def facts(number: int, failure_class: str = "oom_host", first: str | None = None, title: str = "") -> ClusterFacts:
    """What is known of a cluster."""
    return ClusterFacts(number, title or f"title {number}", failure_class, None, first)


def evidence(
    *sides: Side,
    base: Side | None = None,
    nameless: Mapping[str, int] | None = None,
    clusters: Sequence[ClusterFacts] = (),
) -> Evidence:
    """A release, and its baseline where there is one."""

    def known(name: str, *sides: Side) -> Known:
        return Known(name, sides, {}, (), (0, 0), DAY, DAY)

    return Evidence(
        known(sides[0].release, *sides),
        None if base is None else known(base.release, base),
        nameless or {},
        {},
        {one.number: one for one in clusters},
        {},
        None,
        ("1.0", "2.0"),
        datetime(2026, 3, 2, tzinfo=UTC),
    )


def policy(**sections: Mapping[str, Any]) -> Policy:
    """A policy that asks nothing but this."""
    document = {name: {**NOTHING.get(name, {}), **sections.get(name, {})} for name in {*NOTHING, *sections}}
    return Policy.model_validate(document)


def asked(known: Evidence, rules: Policy, *, compare: bool = True) -> dict[tuple[str, str], Question]:
    """Questions by rule and subject, all of one unit."""
    found = list(questions(known, rules, compare=compare))
    assert len({(one.rule, one.subject) for one in found}) == len(found)
    return {(one.rule, one.subject): one for one in found}


def whole(**more: Any) -> Evidence:
    """A release of which every rule can ask: one class is new in it, one was there before."""
    cells = [failed(30, 1), failed(9, 2, failure_class="hang")]
    base = side([failed(4, 1, release="1.0")], told(1000, release="1.0"), release="1.0")
    return evidence(side(cells, told(1000)), base=base, clusters=[facts(1), facts(2, "hang")], **more)


@pytest.mark.parametrize(("section", "key"), RULES)
def test_each_rule_is_asked_when_it_is_set_and_only_then(section: str, key: str) -> None:
    """A policy with one rule asks of that one alone; without any it asks nothing."""
    value = 2.0 if section == "baseline" or key == "regressed_ratio" else 0.01
    found = asked(whole(), policy(**{section: {key: value}}))
    assert found
    assert {rule for rule, _ in found} == {f"{section}.{key}"}
    assert asked(whole(), policy()) == {}


def test_the_rules_that_may_be_left_unasked() -> None:
    """The defaults ask five of them; the test above goes over all."""
    assert set(RULES) == {
        ("limits", "unanswered"), ("limits", "primary"), ("cohorts", "unanswered"), ("cohorts", "primary"),
        ("baseline", "unanswered"), ("baseline", "primary"), ("classes", "new_rate"), ("classes", "regressed_ratio"),
    }  # fmt: skip
    assert {rule for rule, _ in asked(whole(), Policy())} == {
        "limits.unanswered", "cohorts.unanswered", "baseline.unanswered", "classes.new_rate", "classes.regressed_ratio",
    }  # fmt: skip


def test_a_limit_is_asked_of_the_measure_that_it_names() -> None:
    """30 loads failed on the main path and 25 of them were answered: 5 were not."""
    one = evidence(side([failed(30, contained=25)], told(1000)))
    found = asked(one, policy(limits={"unanswered": 0.01, "primary": 0.05}))
    bare, main = found["limits.unanswered", ""], found["limits.primary", ""]
    assert (bare.family, bare.unit, bare.limit, bare.limit_rate) == (
        Family.OVERALL,
        "deployment",
        "at most 1.00 %",
        0.01,
    )
    assert (bare.measured, bare.said) == ("0.50 % (5 of 1,000)", "5 of 1,000 deployments (0.50 %) were not answered")
    assert main.said == "30 of 1,000 deployments (3.00 %) failed on the main path"
    assert (bare.bad, bare.good) == (above_limit(5, 1000, 0.01), below_limit(5, 1000, 0.01))
    assert (main.bad, main.good) == (above_limit(30, 1000, 0.05), below_limit(30, 1000, 0.05))
    assert bare.command == "crashpath clusters --release 2.0"


def test_a_unit_has_its_own_limit_or_that_of_all() -> None:
    """Requests have their own limit, loads that of all; both are asked, each on its own attempts."""
    counts = (told(1000, unit="load"), told(5000, unit="request"))
    cells = [failed(3, unit="load"), failed(2, unit="request")]
    sides = [make_side("2.0", unit, cells, counts) for unit in ("load", "request")]
    found = list(questions(evidence(*sides), policy(limits={"unanswered": 0.02, "request": {"unanswered": 0.001}}),
                           compare=False))  # fmt: skip
    assert [(one.unit, one.limit_rate, one.measured) for one in found] == [
        ("load", 0.02, "0.30 % (3 of 1,000)"), ("request", 0.001, "0.0400 % (2 of 5,000)"),
    ]  # fmt: skip


def test_what_stands_apart_counts_for_no_no_go_and_against_a_go() -> None:
    """Failures without attempts, without a phase and without a release are in the evidence of good alone."""
    counts = (told(1000), told(1000, unit="request"))
    cells = [failed(5), failed(7, day=DAY + timedelta(days=1)), failed(11, unit="unknown")]
    one = make_side("2.0", "deployment", cells, counts)
    assert (one.bare, one.phaseless) == (7, 11)
    known = evidence(one, nameless={"deployment": 13, "request": 400})
    (limit,) = asked(known, policy(limits={"unanswered": 0.01})).values()
    assert limit.measured == "0.50 % (5 of 1,000), and 31 failures apart"
    assert limit.bad == above_limit(5, 1000, 0.01)
    assert limit.good == below_limit(36, 1000, 0.01)
    base = side([], told(1000, release="1.0"), release="1.0")
    found = asked(
        evidence(one, base=base, nameless={"deployment": 13}), policy(baseline={"unanswered": 2.0, "floor": 0.003})
    )
    overall = found["baseline.unanswered", ""]
    assert overall.bad == min(worse_than(5, 1000, 0, 1000, 2.0), above_limit(5, 1000, 0.003))
    assert overall.good == either(no_worse_than(36, 1000, 0, 1000, 2.0), below_limit(36, 1000, 0.003))


def test_failures_that_fit_several_cohorts_count_against_each() -> None:
    """Six failures name no platform, and four one without attempts: each cohort has to be good in spite of all ten."""
    counts = (told(400), told(300, platform="mac"))
    cells = [failed(1), failed(6, platform="unknown"), failed(4, platform="bsd")]
    found = asked(evidence(side(cells, *counts)), policy(cohorts={"unanswered": 0.08}))
    assert [subject for _, subject in found] == ["linux / m", "mac / m"]
    linux = found["cohorts.unanswered", "linux / m"]
    assert (linux.family, linux.bad, linux.good) == (
        Family.COHORT,
        above_limit(1, 400, 0.08),
        below_limit(11, 400, 0.08),
    )
    assert linux.said == "1 of 400 deployments (0.25 %) of linux / m were not answered"
    assert found["cohorts.unanswered", "mac / m"].good == below_limit(10, 300, 0.08)


def test_a_small_cohort_need_not_be_shown_to_be_good() -> None:
    """Below its share of the attempts a cohort can be bad, and cannot hold a release back."""
    known = evidence(side([failed(40, platform="mac")], told(900), told(100, platform="mac")))
    for share, small in ((0.1, False), (0.11, True)):
        found = asked(known, policy(cohorts={"unanswered": 0.08, "min_share": share}))
        mac, linux = found["cohorts.unanswered", "mac / m"], found["cohorts.unanswered", "linux / m"]
        assert (mac.good is None) is small
        assert mac.bad == above_limit(40, 100, 0.08) > BAR
        assert linux.good is not None


def test_a_baseline_is_beaten_by_the_margin_or_by_the_floor() -> None:
    """Below the floor nobody asks how the baseline was, and above it both have to be shown for a NO-GO."""
    base = side([failed(20, release="1.0")], told(20_000, release="1.0"), release="1.0")
    rules = policy(baseline={"unanswered": 1.25, "floor": 0.01})
    rare = asked(evidence(side([failed(50)], told(10_000)), base=base), rules)["baseline.unanswered", ""]
    assert worse_than(50, 10_000, 20, 20_000, 1.25) > BAR
    assert rare.bad < 0
    assert rare.good is not None
    assert rare.good > BAR
    often = asked(evidence(side([failed(300)], told(10_000)), base=base), rules)["baseline.unanswered", ""]
    assert often.bad > BAR
    assert often.limit == "at most 1.25 times the baseline's 0.10 %, or the floor of 1.00 %"
    assert often.said == "300 of 10,000 deployments (3.00 %) were not answered, against 0.10 % in the baseline"
    assert often.limit_rate is None


def test_cohorts_are_set_against_their_own_baseline() -> None:
    """A cohort that both have is compared, for a NO-GO alone; one that the baseline did not have is not."""
    base = side(
        [failed(5, release="1.0")], told(500, release="1.0"), told(0, release="1.0", platform="bsd"), release="1.0"
    )
    now = side([failed(90)], told(900), told(900, platform="mac"), told(900, platform="bsd"))
    found = asked(evidence(now, base=base), policy(baseline={"unanswered": 2.0}))
    assert [subject for _, subject in found] == ["", "linux / m"]
    linux = found["baseline.unanswered", "linux / m"]
    assert (linux.family, linux.good) == (Family.COHORT, None)
    assert linux.bad == min(worse_than(90, 900, 5, 500, 2.0), above_limit(90, 900, 0.001))


@pytest.mark.parametrize("failures", [0, 3, 70])
def test_a_comparison_needs_what_would_settle_it(failures: int) -> None:
    """With as many attempts more as are needed, at the same rate, the question is answered; with half of them not."""
    base = side([failed(40, release="1.0")], told(4000, release="1.0"), release="1.0")
    rules = policy(baseline={"unanswered": 1.5, "floor": 0.002})
    first = asked(evidence(side([failed(failures)], told(2000)), base=base), rules)["baseline.unanswered", ""]
    assert first.needed is not None

    def after(more: int) -> float:
        cells = [failed(failures + round(failures * more / 2000))]
        later = asked(evidence(side(cells, told(2000 + more)), base=base), rules)["baseline.unanswered", ""]
        assert later.good is not None
        return max(later.bad, later.good)

    assert after(first.needed) >= BAR * 0.99
    assert first.needed == 0 or after(first.needed // 2) < BAR


def test_a_class_is_new_or_regressed_against_a_baseline() -> None:
    """What the baseline had none of is held to a limit, what it had to a margin: of classes and of clusters alike."""
    rules = policy(classes={"new_rate": 0.002, "regressed_ratio": 1.5, "regressed_floor": 0.001})
    found = asked(whole(), rules)
    assert set(found) == {
        ("classes.regressed_ratio", "oom_host"), ("classes.new_rate", "hang"),
        ("classes.regressed_ratio", "C-0001 (title 1)"), ("classes.new_rate", "C-0002 (title 2)"),
    }  # fmt: skip
    for subject in ("oom_host", "C-0001 (title 1)"):
        one = found["classes.regressed_ratio", subject]
        assert one.bad == min(worse_than(30, 1000, 4, 1000, 1.5), above_limit(30, 1000, 0.001))
        assert one.limit == "at most 1.5 times the baseline's 0.40 %, or the floor of 0.10 %"
        assert one.said == "30 of 1,000 deployments (3.00 %) failed with it, against 0.40 % in the baseline"
    for subject in ("hang", "C-0002 (title 2)"):
        one = found["classes.new_rate", subject]
        assert (one.bad, one.good) == (min(above_limit(9, 1000, 0.002), worse_than(9, 1000, 0, 1000, 1.0)), None)
        assert one.said == "9 of 1,000 deployments (0.90 %) failed with it, against none of 1,000 in the baseline"
    assert {one.family for one in found.values()} == {Family.CLASS}


def test_what_a_short_baseline_had_none_of_is_not_shown_to_be_new() -> None:
    """A class at 1 % is over a limit of 0.2 %; that 50 attempts before had none says nothing of its rate then."""
    rules = policy(classes={"new_rate": 0.002, "regressed_ratio": 1.5})

    def bad(tried: int) -> float:
        base = side([], told(tried, release="1.0"), release="1.0")
        return asked(evidence(side([failed(100)], told(10_000)), base=base), rules)["classes.new_rate", "oom_host"].bad

    assert above_limit(100, 10_000, 0.002) > BAR
    assert bad(50) < BAR < bad(10_000)


def test_what_is_gone_is_no_question_of_being_bad() -> None:
    """A class of the baseline that the release has none of is asked and cannot be bad."""
    base = side([failed(40, 7, release="1.0")], told(1000, release="1.0"), release="1.0")
    found = asked(evidence(side([], told(1000)), base=base), policy(classes={"regressed_ratio": 1.5}))
    assert {subject: one.bad for (_, subject), one in found.items()} == {"oom_host": 0.0, "C-0007": 0.0}


@pytest.mark.parametrize("way", ["no baseline", "not to be trusted", "not in this unit"])
def test_without_a_baseline_only_what_was_born_here_is_new(way: str) -> None:
    """Of clusters that were first seen in this release it can be asked; of others, and of classes, it cannot."""
    cells = [failed(30, 1), failed(9, 2), failed(9, 3), failed(9, 4), failed(9, None)]
    clusters = [facts(1, first="1.0"), facts(2, first="2.0"), facts(3)]
    base = {
        "no baseline": None,
        "not to be trusted": side([], told(100, release="1.0"), release="1.0"),
        "not in this unit": side([], told(100, release="1.0", unit="load"), release="1.0", unit="load"),
    }[way]
    known = evidence(side(cells, told(1000)), base=base, clusters=clusters)
    found = asked(known, Policy(), compare=way != "not to be trusted")
    assert [key for key in found if key[0].startswith(("classes", "baseline"))] == [
        ("classes.new_rate", "C-0002 (title 2)")
    ]
    one = found["classes.new_rate", "C-0002 (title 2)"]
    assert one.said == "9 of 1,000 deployments (0.90 %) failed with it; it was first seen in this release"


@pytest.mark.parametrize(("count", "speaks"), [(4, False), (5, True)])
def test_of_few_failures_nothing_is_said(count: int, speaks: bool) -> None:
    """Fewer failed attempts than the least count are no evidence, of what is new and of what regressed."""
    base = side([failed(1, 1, release="1.0")], told(100_000, release="1.0"), release="1.0")
    cells = [failed(count, 1), failed(count, 2, failure_class="hang")]
    found = asked(
        evidence(side(cells, told(50)), base=base), policy(classes={"new_rate": 0.002, "regressed_ratio": 2.0})
    )
    assert len(found) == 4
    assert {one.bad > 0 for one in found.values()} == {speaks}
    assert speaks or {one.bad for one in found.values()} == {0.0}


def test_a_class_names_its_five_most_frequent_clusters() -> None:
    """The most failures first; the command shows the first of them. A class without clusters has the trends."""
    cells = [failed(number, number) for number in range(1, 8)] + [failed(20, None, failure_class="unclassified")]
    base = side([], told(1000, release="1.0"), release="1.0")
    known = evidence(side(cells, told(1000)), base=base, clusters=[facts(number) for number in range(1, 8)])
    found = asked(known, policy(classes={"new_rate": 0.01}))
    memory = found["classes.new_rate", "oom_host"]
    assert memory.evidence == ("C-0007", "C-0006", "C-0005", "C-0004", "C-0003")
    assert memory.command == "crashpath show C-0007"
    assert memory.measured == "2.80 % (28 of 1,000)"
    other = found["classes.new_rate", "unclassified"]
    assert (other.evidence, other.command) == ((), "crashpath trends --by class --release 2.0")
    cluster = found["classes.new_rate", "C-0007 (title 7)"]
    assert (cluster.evidence, cluster.command) == (("C-0007",), "crashpath show C-0007")


def test_names_in_commands_are_quoted() -> None:
    """A release or a platform with blanks, quotes or what a shell would run comes out of a shell as it was."""
    name, platform = "2.0 $(rm -rf x); 'y'", "a b`c`"
    now = make_side(name, "deployment", [], [told(1000, platform=platform, release=name)])
    base = side([], told(1000, release="1.0", platform=platform), release="1.0")
    rules = policy(limits={"unanswered": 0.1}, cohorts={"unanswered": 0.1}, baseline={"unanswered": 2.0})
    found = asked(evidence(now, base=base), rules)
    words = {key: shlex.split(one.command) for key, one in found.items()}
    trends = ["crashpath", "trends", "--by", "class", "--release", name]
    assert words["limits.unanswered", ""] == ["crashpath", "clusters", "--release", name]
    assert words["baseline.unanswered", ""] == trends
    assert words["cohorts.unanswered", f"{platform} / m"] == [*trends, "--platform", platform]


@pytest.mark.parametrize(("attempts", "rate"), [(0, "no rate (0 of 0)"), (20, "no rate (50 of 20)")])
def test_a_side_without_a_rate_has_its_limits_in_the_report_and_no_evidence(attempts: int, rate: str) -> None:
    """Nothing tried, or more failed than was tried: nothing is shown either way, nothing is compared."""
    base = side([failed(4, 1, release="1.0")], told(1000, release="1.0"), release="1.0")
    cells = [failed(50)] if attempts else []
    known = evidence(side(cells, told(attempts)), base=base, clusters=[facts(1, first="2.0")])
    found = asked(known, Policy())
    assert {rule for rule, _ in found} == {"limits.unanswered", "cohorts.unanswered"}
    assert {(one.bad, one.good, one.measured) for one in found.values()} == {(0.0, 0.0, rate)}
    assert all((one.needed is None) is (attempts > 0) for one in found.values())


@pytest.mark.parametrize("attempts", [0, 3])
def test_a_baseline_without_a_rate_is_none(attempts: int) -> None:
    """Against a baseline that was not tried, or failed more often than that, nothing is compared and nothing new."""
    base = side([failed(4, 1, release="1.0")] if attempts else [], told(attempts, release="1.0"), release="1.0")
    known = evidence(side([failed(30, 1), failed(30, 2)], told(1000)), base=base, clusters=[facts(2, first="2.0")])
    found = asked(known, policy(baseline={"unanswered": 1.5}, classes={"new_rate": 0.001, "regressed_ratio": 1.5}))
    assert set(found) == {("classes.new_rate", "C-0002 (title 2)")}


def test_one_cohort_that_cannot_be_says_nothing_and_the_others_do() -> None:
    """More failures than attempts in one cohort are no evidence of that one."""
    counts = (told(10), told(5000, platform="mac"))
    found = asked(evidence(side([failed(30)], *counts)), policy(cohorts={"unanswered": 0.08}))
    linux, mac = found["cohorts.unanswered", "linux / m"], found["cohorts.unanswered", "mac / m"]
    assert (linux.bad, linux.good, linux.needed) == (0.0, 0.0, None)
    assert mac.good is not None
    assert mac.good > BAR
