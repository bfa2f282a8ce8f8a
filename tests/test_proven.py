"""What was proven for a release, from a real store, and what each rule of a policy says of it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from crashpath.coverage.claims import lower_bound
from crashpath.coverage.covstore import store_run
from crashpath.coverage.drillcells import CELLS, Cell, DrillResult
from crashpath.coverage.drillplan import ISOLATIONS
from crashpath.coverage.drillroutes import SCENARIOS
from crashpath.coverage.drillstore import Evidence, add_to_run, begin_run
from crashpath.coverage.faults import FAULTS
from crashpath.coverage.runfile import Run, Seen
from crashpath.coverage.units import Declared, Kind, Trace, Unit
from crashpath.dashboard import cli
from crashpath.dashboard.nightly import NightOptions
from crashpath.dashboard.policy import Proven
from crashpath.dashboard.proven import proof_rules, proven
from crashpath.dashboard.red_drills import Red
from crashpath.dashboard.review_model import Proof, Reason, Share, Threshold, Verdict
from crashpath.dashboard.review_tables import proof_lines
from crashpath.dashboard.testing import a_night
from crashpath.ingest.feed import FeedOptions
from crashpath.ingest.store import Store
from crashpath.runtime.values import Path as Which

NOW = datetime(2026, 12, 1, 12, tzinfo=UTC)
DAY = timedelta(days=1)
NOTHING = Proof((), None, None, 0, (), None, None, None, None, ())
DEFAULT = Proven()
CATALOGUE = {one.id: one for one in FAULTS}
OOM = "model-bytes-refused"
"""A fault of the catalogue: memory is refused while the main path answers."""
RED = f"{OOM}/process"
"""As it is named where its drills are red."""


def trace(store: Store, *, days: float = 1, release: str = "2.1", model_hash: str = "abc", hits: int = 9) -> None:
    """Keep a traced run that ended so many days ago, which hit so many of 10 nodes, and all of 2 operators."""
    nodes = tuple(Unit(Kind.NODE, f"/{one}:Add", "Add") for one in range(10))
    ops = tuple(Unit(Kind.OP, f"/{one}:aten::add", "aten::add") for one in range(2))
    at = NOW - days * DAY
    run = Run(
        f"run-{release}-{model_hash}-{days}", "trace", "scores", model_hash, release, at, at,
        seen=(
            Seen(Declared(Which.MAIN, nodes), Trace(Which.MAIN, {node.id: 1 for node in nodes[:hits]})),
            Seen(Declared(Which.FALLBACK, ops), Trace(Which.FALLBACK, {one.id: 2 for one in ops})),
        ),
        routes={"main:answered": 2},
    )  # fmt: skip
    with store.write() as session:
        assert store_run(session, run)


def drill(
    store: Store,
    passed: bool = True,
    *,
    days: float = 1,
    release: str = "2.1",
    model_hash: str = "abc",
    fault: str = OOM,
    model: str = "scores",
    phase: str = "infer",
    isolation: str = "process",
    policy: str = "breaker",
    routes: Sequence[tuple[str, int]] = (),
) -> None:
    """Keep a drill of so many days ago."""
    evidence = Evidence(NOW - days * DAY, release, model, model_hash, policy, (("torch", "2"),), routes=tuple(routes))
    cells = tuple(Cell(one.id, passed) for one in CELLS)
    failure_class = CATALOGUE[fault].failure_class
    result = DrillResult(fault, failure_class, phase, isolation, policy, "ort", cells, requests=2)
    with store.write() as session:
        add_to_run(session, begin_run(session, evidence), evidence, [result], (), {})


def crashes(store: Store, folder: Path, errors: Sequence[str], release: str = "2.1") -> None:
    """Let one request fail with each of these errors."""
    place = folder / "logs" / release
    place.mkdir(parents=True)
    for number, error in enumerate(errors):
        where = f"/srv/app/{error.partition(':')[0]}.py"
        frames = f'  File "{where}", line 3, in predict\n    go()\n'
        (place / f"{number}.log").write_text(f"Traceback (most recent call last):\n{frames}{error}\n")
    a_night(store, [folder / "logs"], NightOptions(feed=FeedOptions(patterns=("{release}/*.log",))))


def proof(store: Store, policy: Proven = DEFAULT, release: str = "2.1") -> Proof:
    """Return what is proven of the release."""
    with store.read() as session:
        return proven(session, release, policy, now=NOW)


def rule(store: Store, policy: Proven, name: str) -> tuple[Threshold, tuple[Reason, ...]]:
    """Return the one threshold of a rule, and its reasons."""
    reasons, thresholds = proof_rules(proof(store, policy), policy, "2.1")
    (threshold,) = [one for one in thresholds if one.rule == name]
    return threshold, tuple(one for one in reasons if one.rule == name)


def held(store: Store, policy: Proven, name: str) -> Reason:
    """Return the reason of a rule that holds the release back."""
    threshold, (reason,) = rule(store, policy, name)
    assert (threshold.met, reason.verdict) == (None, Verdict.HOLD)
    return reason


def met(store: Store, policy: Proven, name: str) -> str:
    """Return what was measured by a rule that is met."""
    threshold, reasons = rule(store, policy, name)
    assert (threshold.met, reasons) == (True, ())
    return threshold.measured


def test_nothing_is_proven(any_store: Store) -> None:
    """Of an empty store the proof is empty; the default policy has no reason, one that asks for all holds back."""
    assert proof(any_store) == NOTHING
    reasons, thresholds = proof_rules(NOTHING, DEFAULT, "2.1")
    assert (reasons, [one.rule for one in thresholds]) == ((), ["coverage.red_drill"])
    assert met(any_store, DEFAULT, "coverage.red_drill") == "no drill"
    everything = Proven(required=True, main=0.5, fallback=0.5, routes=0.5, drills=0.5, max_uncovered=0.0)
    reasons, thresholds = proof_rules(NOTHING, everything, "2.1")
    names = [f"coverage.{one}" for one in ("required", "main", "fallback", "routes", "drills")]
    assert [one.rule for one in reasons] == names
    assert [one.rule for one in thresholds] == [*names, "coverage.red_drill", "coverage.max_uncovered"]
    assert {one.verdict for one in reasons} == {Verdict.HOLD}


def test_all_there_is(any_store: Store) -> None:
    """Shares are those of the coverage report of the model that was traced last; the age is that of the newest."""
    trace(any_store, days=3)
    drill(any_store, days=2)
    found = proof(any_store)
    main, fallback, routes, drills = found.shares
    assert (main, fallback) == (Share("main", 9, 10), Share("fallback", 2, 2))
    assert (routes.name, routes.covered, drills.name, drills.covered) == ("routes", 1, "drills", 1)
    assert (found.model, found.age_days, found.drills, found.red) == ("scores", 2.0, 1, ())
    assert found.lower_bound == lower_bound(1, 0)
    assert (found.contained, found.checked, found.unproven) == (None, None, None)


def test_the_shares_are_those_of_the_report(store: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`crashpath coverage` on the same store says the same."""
    now = datetime.now(UTC)
    trace(store, days=(NOW - now) / DAY + 1)
    drill(store, days=(NOW - now) / DAY + 1)
    with store.read() as session:
        found = proven(session, "2.1", DEFAULT, now=now)
    assert cli.run(["coverage", "--release", "2.1", "--db", f"sqlite:///{tmp_path}/crashpath.db", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert {one.name: {"covered": one.covered, "total": one.total} for one in found.shares} == {
        name: told[name] for name in ("main", "fallback", "routes", "drills")
    }


def test_evidence_is_required(store: Store) -> None:
    """Whatever counts is enough; without any, and with none that counts, it is a HOLD that says which of them."""
    policy = Proven(required=True)
    reason = held(store, policy, "coverage.required")
    assert "no traced run and no drill" in reason.sentence
    assert reason.command == "crashpath coverage --trace DIR --release 2.1"
    trace(store, days=30.01)
    reason = held(store, policy, "coverage.required")
    assert "is 30.1 days old; of more than 30 days it does not count" in reason.sentence
    trace(store, days=29.99)
    assert met(store, policy, "coverage.required") == "30 days old"


def test_evidence_that_is_too_old(store: Store) -> None:
    """It counts for nothing, and the proof says how old it is and of which model; a longer time lets it count."""
    trace(store, days=40, hits=10)
    drill(store, False, days=35, model="other", model_hash="def")
    found = proof(store)
    assert found == replace(NOTHING, model="other", age_days=35.0)
    assert proof_rules(found, DEFAULT, "2.1")[0] == ()
    longer = Proven(max_age_days=41, main=1 - 2**-30)
    assert met(store, longer, "coverage.main") == "100.0 % (10 of 10)"
    assert proof(store, longer).red == (RED,)
    assert proof(store, Proven(max_age_days=1e300)).drills == 1


def test_what_is_too_old_is_told_to_count_for_nothing(store: Store) -> None:
    """Each form of the report says so, why, and never an age that the policy would allow."""
    trace(store, days=30.01)
    words = "30.1 days old, does not count: it is older than the policy allows (coverage.max_age_days)"
    assert proof_lines(proof(store)) == [f"Evidence of model scores, {words}."]
    trace(store, days=29.99)
    assert proof_lines(proof(store)) == ["Evidence of model scores, 30.0 days old."]


def test_evidence_of_another_release(store: Store) -> None:
    """It counts for nothing, though it is of the same artefacts."""
    trace(store, release="2.0")
    drill(store, False, release="2.0")
    assert proof(store) == NOTHING
    assert proof(store, release="2.0").red == (RED,)


def test_evidence_of_a_clock_that_is_ahead(store: Store) -> None:
    """A run or drill that is some hours ahead is of now; one of days to come is none."""
    trace(store, days=-3)
    drill(store, days=-2)
    assert proof(store).shares == ()
    drill(store, days=-0.1)
    assert proof(store).age_days == 0.0
    assert {one.name: one.covered for one in proof(store).shares} == {
        "main": 0,
        "fallback": 0,
        "routes": 0,
        "drills": 1,
    }


def test_drills_alone(store: Store) -> None:
    """Without a traced run shares are of what drills have shown of the model that was drilled last."""
    drill(store, days=2, model_hash="old", routes=[("infer:oom_host -> fallback:answered", 2), ("main:answered", 5)])
    drill(store, days=1, model="new", model_hash="def", routes=[("main:answered", 5)])
    found = proof(store)
    assert {one.name: one.covered for one in found.shares} == {"routes": 1, "drills": 1}
    assert (found.model, found.age_days, found.drills) == ("new", 1.0, 2)
    policy = Proven(main=0.1, fallback=0.1)
    assert "nodes of the main path" in held(store, policy, "coverage.main").sentence
    assert held(store, policy, "coverage.fallback").command == "crashpath coverage --trace DIR --release 2.1"


def test_a_route_drill_alone(any_store: Store) -> None:
    """It is evidence of the routes that it took; a run in which nothing could be driven is none."""
    at = NOW - DAY
    nothing = Evidence(at, "2.1", "scores", "abc", "breaker", ())
    with any_store.write() as session:
        begin_run(session, nothing)
    assert proof(any_store) == NOTHING
    took = replace(nothing, routes=(("main:answered", 3),))
    with any_store.write() as session:
        add_to_run(session, begin_run(session, took), took, (), (), {})
    found = proof(any_store)
    assert {one.name: one.covered for one in found.shares} == {"routes": 1, "drills": 0}
    assert (found.age_days, found.drills, found.lower_bound) == (1.0, 0, None)


@pytest.mark.parametrize(("name", "command"), [
    ("main", "coverage --trace DIR"), ("routes", "drill --routes --model DIR"), ("drills", "drill --all --model DIR"),
])  # fmt: skip
def test_a_least_share(store: Store, name: str, command: str) -> None:
    """A share at its limit is met, one below is a HOLD with what was measured and the command that changes it."""
    trace(store)
    drill(store)
    share = next(one for one in proof(store).shares if one.name == name)
    here = share.covered / share.total
    threshold, reasons = rule(store, Proven.model_validate({name: here - 1e-9}), f"coverage.{name}")
    assert (threshold.met, reasons) == (True, ())
    reason = held(store, Proven.model_validate({name: here + 1e-9}), f"coverage.{name}")
    assert reason.command == f"crashpath {command} --release 2.1"
    assert f"({share.covered} of {share.total})" in reason.sentence


@pytest.mark.parametrize("covered", range(1, 100))
def test_a_share_is_set_against_the_limit_as_written(covered: int) -> None:
    """No share that is exactly the limit misses it: 0.07 is 7 of 100, whatever 0.07 * 100 is in binary."""
    policy = Proven(main=covered / 100)
    shown = replace(NOTHING, shares=(Share("main", covered, 100),))
    assert proof_rules(shown, policy, "2.1")[0] == ()
    (reason,) = proof_rules(replace(shown, shares=(Share("main", covered * 10 - 1, 1000),)), policy, "2.1")[0]
    assert reason.sentence.endswith(f"asked is at least {covered} %.")


def test_a_share_is_never_rounded_up_to_all() -> None:
    """Neither what was measured nor what was asked is told as 100 % where it is less."""
    shown = replace(NOTHING, shares=(Share("main", 99_989, 100_000),))
    (reason,) = proof_rules(shown, Proven(main=0.9999), "2.1")[0]
    assert "99.9 % (99,989 of 100,000) are covered; asked is at least 99.99 %" in reason.sentence


@pytest.mark.parametrize(("weight", "verdicts"), [
    ("NO-GO", [Verdict.NO_GO] * 2), ("HOLD", [Verdict.HOLD] * 2), ("note", []),
])  # fmt: skip
def test_red_drills_weigh_what_the_policy_says(store: Store, weight: str, verdicts: list[Verdict]) -> None:
    """Each fault whose last drill is red is a reason with the command that repeats it; as a note, a threshold alone."""
    drill(store, False)
    drill(store, False, fault="model-killed")
    drill(store, True, fault="model-abort")
    policy = Proven.model_validate({"red_drill": weight})
    threshold, reasons = rule(store, policy, "coverage.red_drill")
    assert (threshold.met, threshold.measured) == (False, "2 faults red in 3 drills")
    assert [one.verdict for one in reasons] == verdicts
    assert proof(store).lower_bound == lower_bound(3, 2)
    if verdicts:
        killed = "model-killed"
        assert [(one.subject, one.evidence) for one in reasons] == [(RED, (OOM,)), (f"{killed}/process", (killed,))]
        assert reasons[0].command == f"crashpath drill --fault {OOM} --isolation process --model DIR --release 2.1"


def test_a_red_drill_is_mended_by_a_later_one(any_store: Store) -> None:
    """The last drill of a fault counts: of other artefacts of the same model, too, of another phase or model not."""
    drill(any_store, False, days=5)
    drill(any_store, True, days=4, phase="load")
    drill(any_store, True, days=3, model="another", model_hash="xyz")
    drill(any_store, True, days=2, fault="model-killed", model_hash="def")
    assert proof(any_store).red == (RED,)
    drill(any_store, True, days=1, model_hash="def")
    drill(any_store, False, days=0.9, release="2.0")  # of the artefacts that this release has no longer
    assert met(any_store, DEFAULT, "coverage.red_drill") == "none of 4 drills"
    drill(any_store, False, days=0.5, model_hash="def")
    drill(any_store, True, days=0.1, release="2.0", model_hash="def")
    assert proof(any_store).red == (RED,)


@pytest.mark.parametrize(("driven", "named", "arguments", "where"), [
    ([("process", "breaker")], f"{OOM}/process", "--isolation process", " (isolation process)"),
    ([("process", "breaker"), ("in_process", "breaker")], OOM, "", ""),
    ([("in_process", "sticky")], f"{OOM}/in_process/sticky", "--isolation in_process --policy sticky",
     " (isolation in_process, policy sticky)"),
    ([("process", "sticky"), ("in_process", "sticky")], f"{OOM}/both/sticky", "--policy sticky", " (policy sticky)"),
])  # fmt: skip
def test_a_red_drill_is_repeated_as_it_was(
    store: Store, driven: list[tuple[str, str]], named: str, arguments: str, where: str
) -> None:
    """The command has isolation and policy of what is red, where a drill that is told nothing has others."""
    for isolation, policy in driven:
        drill(store, False, isolation=isolation, policy=policy)
    drill(store, True, isolation="process", policy="breaker", fault="model-killed")
    _, (reason,) = rule(store, DEFAULT, "coverage.red_drill")
    assert (reason.subject, reason.evidence) == (named, (OOM,))
    assert reason.sentence == f"The last drill of {OOM} is red{where}."
    given = f" {arguments}" if arguments else ""
    assert reason.command == f"crashpath drill --fault {OOM}{given} --model DIR --release 2.1"


def test_a_fault_red_under_two_policies_is_two_reasons(store: Store) -> None:
    """One command cannot repeat both; it is one fault all the same."""
    drill(store, False)
    drill(store, False, policy="sticky")
    threshold, reasons = rule(store, DEFAULT, "coverage.red_drill")
    assert (threshold.measured, [one.subject for one in reasons]) == ("1 fault red in 2 drills", [RED, f"{RED}/sticky"])
    drill(store, policy="breaker", days=0.5)
    assert proof(store).red == (f"{RED}/sticky",)


def test_no_fault_is_named_as_what_else_is_red() -> None:
    """What a proof names is told apart from its text, whatever the catalogue and the scenarios are called."""
    everything = [*CATALOGUE, *(f"route {one.id}" for one in SCENARIOS), "mix of 20"]
    for what in everything:
        for policy in ("breaker", "sticky"):
            for isolation in ("both", *ISOLATIONS):
                red = Red(what, isolation, policy)
                assert Red.named(str(red)) == red
                assert red.fault == (what if what in CATALOGUE else None)


def test_no_crash_of_the_release(store: Store, tmp_path: Path) -> None:
    """Crashes of another release are not this one's field."""
    crashes(store, tmp_path, ["MemoryError"], release="2.0")
    drill(store)
    assert met(store, Proven(max_uncovered=0.0), "coverage.max_uncovered") == "no crash of the release"
    assert proof(store, release="2.0").contained == 0


def test_crashes_that_no_drill_contains(store: Store, tmp_path: Path) -> None:
    """What no passing drill contains is told with its classes, the most crashes first; a share at the limit is met."""
    crashes(
        store,
        tmp_path,
        [*["MemoryError"] * 7, *["RuntimeError: odd thing"] * 2, "ModuleNotFoundError: No module named 'tokenizers'"],
    )
    policy = Proven(max_uncovered=0.3)
    reason = held(store, policy, "coverage.max_uncovered")
    assert "100.0 % of the field's crashes contained (oom_host, " in reason.sentence
    assert reason.command == "crashpath drill --class oom_host --model DIR --release 2.1"
    drill(store)
    found = proof(store, policy)
    assert (found.contained, found.checked, found.unproven) == pytest.approx((0.7, 0.1, 0.2))
    assert found.uncovered_field_classes == ("unclassified", "dependency")
    assert met(store, policy, "coverage.max_uncovered") == "30.0 %"
    reason = held(store, Proven(max_uncovered=0.29), "coverage.max_uncovered")
    assert reason.command == "crashpath drill --class dependency --model DIR --release 2.1"
    drill(store, False, days=0.5)
    assert proof(store).contained == 0


def test_drills_of_other_artefacts_contain_nothing(store: Store, tmp_path: Path) -> None:
    """What was drilled is not what was traced last; and without evidence of the release none of any contains."""
    crashes(store, tmp_path, ["MemoryError"])
    drill(store, release="2.0", model_hash="other")
    assert (proof(store).shares, proof(store).contained) == ((), 0)
    drill(store, days=3)
    assert proof(store).contained == 1
    trace(store, days=2, model_hash="def")
    drill(store, days=1)
    assert (proof(store).contained, proof(store).age_days) == (0, 2.0)


def test_drills_of_another_release_contain_nothing(store: Store, tmp_path: Path) -> None:
    """Though they are of the same artefacts: what this release was not driven through stands against nothing."""
    crashes(store, tmp_path, ["MemoryError"])
    trace(store)
    drill(store, release="2.0")
    assert (proof(store).contained, proof(store).drills) == (0, 0)
    drill(store, days=2)
    drill(store, False, release="2.0")
    assert proof(store).contained == 1


def test_drills_of_later_count_for_nothing(store: Store, tmp_path: Path) -> None:
    """A review of an earlier moment neither finds what was red after it, nor what contained its crashes after it."""
    crashes(store, tmp_path, ["MemoryError"])
    trace(store)
    drill(store, days=-2)
    found = proof(store)
    assert (found.contained, found.drills, found.age_days) == (0, 0, 1.0)
    assert {one.name: one.covered for one in found.shares}["drills"] == 0
    drill(store, days=0.5)
    drill(store, False, days=-1.5)
    found = proof(store)
    assert (found.contained, found.drills, found.red, found.age_days) == (1, 1, (), 0.5)
    drill(store, False, days=-0.9)
    assert (proof(store).contained, proof(store).drills, len(proof(store).red)) == (0, 1, 1)


def test_a_run_that_went_on_is_as_old_as_its_last_drill_until_now(store: Store) -> None:
    """Of drills that were driven for days a review of a moment between them knows those before it alone."""
    evidence = Evidence(NOW - 3 * DAY, "2.1", "scores", "abc", "breaker", ())
    cells = tuple(Cell(one.id, True) for one in CELLS)
    result = DrillResult(OOM, CATALOGUE[OOM].failure_class, "infer", "process", "breaker", "ort", cells)
    with store.write() as session:
        run = begin_run(session, evidence)
        for days in (2, -2):
            add_to_run(session, run, replace(evidence, at=NOW - days * DAY), [result], (), {})
    assert (proof(store).drills, proof(store).age_days) == (1, 2.0)


def test_the_commands_are_one_word_a_value(store: Store) -> None:
    """A release's name with a blank stays one word of the command line."""
    reasons, _ = proof_rules(replace(NOTHING, drills=1, red=("a b",)), Proven(required=True), "2.1 rc")
    assert [one.command for one in reasons] == [
        "crashpath coverage --trace DIR --release '2.1 rc'",
        "crashpath drill --fault 'a b' --model DIR --release '2.1 rc'",
    ]
