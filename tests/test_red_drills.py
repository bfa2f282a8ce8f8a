"""Red route drills and mixes of a release, from a real store: they are named, and mended by what repeats them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from crashpath.coverage.drillcells import Verdict as Seen
from crashpath.coverage.drillkept import Kept, Planned
from crashpath.coverage.drillmix import MixResult
from crashpath.coverage.drillstore import Evidence
from crashpath.coverage.routescenario import RouteResult
from crashpath.dashboard.policy import Proven
from crashpath.dashboard.proven import proof_rules, proven
from crashpath.dashboard.review_model import Proof, Verdict
from crashpath.dashboard.review_tables import proof_lines
from crashpath.ingest.store import Store

NOW = datetime(2026, 12, 1, 12, tzinfo=UTC)
DAY = timedelta(days=1)
ROUTE = "route wrong-feed"


def kept(store: Store, days: float, release: str, model_hash: str, policy: str) -> Kept:
    at = NOW - days * DAY
    return Kept(store, Evidence(at, release, "scores", model_hash, policy, ()), Planned(0, 1, 1))


def route(
    store: Store,
    verdict: Seen = Seen.RED,
    *,
    days: float = 1,
    isolation: str = "process",
    policy: str = "breaker",
    release: str = "2.1",
    model_hash: str = "abc",
    scenario: str = "wrong-feed",
) -> None:
    """Keep a route drill of so many days ago."""
    run = kept(store, days, release, model_hash, policy)
    run.add_route(RouteResult(scenario, isolation, policy, ("request:input_wrong",), verdict, "why"), NOW - days * DAY)
    run.end(NOW - days * DAY, (), whole=True)


def mix(
    store: Store,
    unanswered: int = 1,
    *,
    days: float = 1,
    isolation: str = "process",
    policy: str = "breaker",
    release: str = "2.1",
    model_hash: str = "abc",
    wanted: int = 20,
) -> None:
    """Keep a mix of so many days ago, under the name that the policy of a mix has."""
    named = "breaker, patient" if policy == "breaker" else policy
    result = MixResult(
        wanted, isolation, named, (), wanted, 40, unanswered, 0, 0, 0, (("model-killed", wanted),), 0, (), ()
    )
    run = kept(store, days, release, model_hash, policy)
    run.add_mix(result, NOW - days * DAY)
    run.end(NOW - days * DAY, (), whole=True)


def proof(store: Store, release: str = "2.1") -> Proof:
    """Return what is proven of the release."""
    with store.read() as session:
        return proven(session, release, Proven(), now=NOW)


def commands(store: Store, weight: str = "HOLD") -> dict[str, tuple[Verdict, str, str]]:
    """Return verdict, sentence and command of each reason."""
    reasons, _ = proof_rules(proof(store), Proven.model_validate({"red_drill": weight}), "2.1")
    return {one.subject: (one.verdict, one.sentence, one.command) for one in reasons}


def test_a_red_route_drill_is_a_reason(any_store: Store) -> None:
    """It weighs as a red fault does, with the command that repeats it, and is no drill of a fault."""
    route(any_store, isolation="in_process")
    route(any_store, scenario="sticky-switches", policy="sticky")
    assert commands(any_store, "NO-GO") == {
        f"{ROUTE}/in_process": (
            Verdict.NO_GO,
            "The last route drill wrong-feed is red (isolation in_process).",
            "crashpath drill --routes --isolation in_process --model DIR --release 2.1",
        ),
        "route sticky-switches/process/sticky": (
            Verdict.NO_GO,
            "The last route drill sticky-switches is red (isolation process, policy sticky).",
            "crashpath drill --routes --isolation process --policy sticky --model DIR --release 2.1",
        ),
    }
    assert commands(any_store, "note") == {}
    found = proof(any_store)
    assert (found.drills, found.lower_bound) == (0, None)
    _, (threshold, *_) = proof_rules(found, Proven(), "2.1")
    assert (threshold.met, threshold.measured) == (False, "2 route drills red")
    assert f"Red: {ROUTE}/in_process" in proof_lines(found)


def test_a_red_mix_is_a_reason(any_store: Store) -> None:
    """Its command has as many requests, and the policy that was asked for."""
    mix(any_store)
    mix(any_store, isolation="in_process", policy="sticky")
    mix(any_store, 0, isolation="in_process")
    assert commands(any_store) == {
        "mix of 20/process": (
            Verdict.HOLD,
            "The last mix of 20 requests is red (isolation process).",
            "crashpath drill --n 20 --isolation process --model DIR --release 2.1",
        ),
        "mix of 20/in_process/sticky": (
            Verdict.HOLD,
            "The last mix of 20 requests is red (isolation in_process, policy sticky).",
            "crashpath drill --n 20 --isolation in_process --policy sticky --model DIR --release 2.1",
        ),
    }


def test_what_mends_a_route_drill(store: Store) -> None:
    """A later green one in the same isolation, also on the artefacts that were made since; none that was not driven."""
    route(store, days=9)
    route(store, days=9, isolation="in_process")
    assert proof(store).red == (ROUTE,)
    route(store, Seen.GREEN, days=8, isolation="in_process")
    route(store, Seen.NULL, days=7)
    route(store, Seen.GREEN, days=7, scenario="another")
    route(store, Seen.GREEN, days=7, release="2.0")
    assert proof(store).red == (f"{ROUTE}/process",)
    route(store, Seen.GREEN, days=6, model_hash="def")
    assert proof(store).red == ()
    route(store, days=5, model_hash="abc")
    assert proof(store).red == (f"{ROUTE}/process",)
    route(store, Seen.GREEN, days=4)
    assert proof(store).red == ()


def test_what_mends_a_mix(store: Store) -> None:
    """A green one of as many requests in the same place: fewer may have missed what was red in more of them."""
    mix(store, days=9)
    mix(store, 0, days=8, wanted=19)
    mix(store, 0, days=8, isolation="in_process")
    mix(store, 0, days=8, policy="sticky")
    mix(store, 2, days=7, wanted=5)
    assert proof(store).red == ("mix of 20/process",)
    mix(store, 0, days=6)
    assert proof(store).red == ()
    mix(store, days=5, wanted=50)
    mix(store, 0, days=4, wanted=49, model_hash="def")
    assert proof(store).red == ("mix of 50/process",)
    mix(store, 0, days=3, wanted=50, model_hash="def")
    assert proof(store).red == ()


@pytest.mark.parametrize("days", [31, -2])
def test_of_another_time_it_is_none(store: Store, days: float) -> None:
    """Neither what is too old, nor what was driven after the time of the review."""
    route(store, days=days)
    mix(store, days=days)
    assert proof(store).red == ()


def test_of_another_release_or_no_policy_in_use_it_is_none(store: Store) -> None:
    """A policy that leaves requests unanswered by design is red for no release."""
    for policy in ("account", "off"):
        route(store, policy=policy)
        mix(store, policy=policy)
    route(store, release="2.0")
    mix(store, release="2.0")
    assert proof(store).red == ()
    assert proof(store, "2.0").red == ("mix of 20/process", f"{ROUTE}/process")
