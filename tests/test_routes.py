"""The table of routes is the whole decision graph: the pure decisions can lead nowhere else."""

from __future__ import annotations

import itertools
import re

import pytest

from crashpath.runtime import errors, routes
from crashpath.runtime.decide import Do, Ending, Seen, after_fallback, after_main, ending_of, first_step, stem_of
from crashpath.runtime.errors import FAILURES, DeadlineExceeded, Failure, InputError, Saturated
from crashpath.runtime.policy import POLICIES, Policy
from crashpath.runtime.values import BreakerState, Phase

ERRORS: tuple[Exception, ...] = (
    *(one("told") for one in FAILURES),
    Failure("told"),
    InputError("x", "wrong"),
    DeadlineExceeded("no turn"),
    Saturated("full"),
    ZeroDivisionError(),
)
_ENDS = {Do.RAISE_SAME, Do.RAISE_LATE, Do.RAISE_NO_ANSWER}


def test_ids() -> None:
    """Ids are unique, ASCII, and of one form."""
    ids = [route.id for route in routes.ROUTES]
    assert len(set(ids)) == len(ids)
    assert all(re.fullmatch(r"[a-z]+:[a-z_*]+( -> [a-z]+(:[a-z_]+)?)?", one) for one in ids), ids
    assert all(route.text and route.text[-1] != "." for route in routes.ROUTES)


def test_every_decision_is_declared() -> None:
    """Every policy, state of the breaker, flag, state of the main path and ending of either path ends in the table."""
    stems = (None, *(stem for stem in routes.STEMS if stem.startswith(("load", "warmup"))), routes.RESTARTING)
    seen_routes = set()
    for policy, breaker, flagged, down in itertools.product(POLICIES.values(), BreakerState, (False, True), stems):
        step = first_step(policy, Seen(breaker, flagged, down))
        if step.do in _ENDS:
            seen_routes.add(step.route)
        firsts = [step.route] if step.do is Do.TRY_FALLBACK else []
        if step.do is Do.TRY_MAIN:
            for error in ERRORS:
                after = after_main(policy, flagged, ending_of(error), error)
                if after.do in _ENDS:
                    seen_routes.add(after.route)
                else:
                    firsts.append(after.route)
        for stem in firsts:
            seen_routes.add(routes.answered(stem))
            for error in ERRORS:
                last = after_fallback(stem, ending_of(error))
                assert last.do in _ENDS, "the fallback is the last path: there is no third"
                seen_routes.add(last.route)
    assert seen_routes <= routes.IDS


def test_undeclared() -> None:
    """A route that the table does not have is a mistake that shows at once."""
    with pytest.raises(KeyError, match="no declared route"):
        routes.answered("infer:bad_mood")


def test_only_policy_off_stays() -> None:
    """With policy off the main path is all there is, whatever state it is in."""
    off = POLICIES["off"]
    for breaker, flagged, down in itertools.product(BreakerState, (False, True), (None, "load:oom_host")):
        assert first_step(off, Seen(breaker, flagged, down)).do is Do.TRY_MAIN
    for error in ERRORS:
        assert after_main(off, False, ending_of(error), error).do is Do.RAISE_SAME


@pytest.mark.parametrize("policy", POLICIES.values(), ids=POLICIES)
def test_the_callers_errors_stay_the_callers(policy: Policy) -> None:
    """A refused feed and an unknown error go to the caller under every policy, flagged or not."""
    for flagged in (False, True):
        for error, route in (
            (InputError("x", "wrong"), routes.MAIN_REFUSED),
            (ZeroDivisionError(), routes.MAIN_UNKNOWN),
        ):
            step = after_main(policy, flagged, ending_of(error), error)
            assert (step.do, step.route) == (Do.RAISE_SAME, route)


def test_policies_differ_at_the_second_failure() -> None:
    """`account` lets the second failure through, `sticky` does not try again, `breaker` falls back each time."""
    error = errors.HostMemory("told")
    flagged = Seen(flagged=True)
    assert after_main(POLICIES["account"], True, Ending.FAILED, error).route == routes.SECOND
    assert after_main(POLICIES["account"], False, Ending.FAILED, error).do is Do.TRY_FALLBACK
    assert first_step(POLICIES["account"], flagged).do is Do.TRY_MAIN
    assert first_step(POLICIES["sticky"], flagged).route == routes.SWITCHED
    assert after_main(POLICIES["breaker"], True, Ending.FAILED, error).do is Do.TRY_FALLBACK


def test_a_policy_may_leave_reasons_out() -> None:
    """A reason that the policy does not cover propagates; a kind of a covered reason is covered."""

    class Bigger(errors.HostMemory):
        pass

    policy = Policy("memory", frozenset({errors.HostMemory}))
    assert after_main(policy, False, Ending.FAILED, errors.NativeCrash("x")).route == routes.NOT_COVERED
    assert after_main(policy, False, Ending.FAILED, Bigger("x")).do is Do.TRY_FALLBACK


def test_a_failure_keeps_its_phase() -> None:
    """A failure that says it was met at a load is routed as one; a class that the phase does not expect is `other`."""
    failure = errors.LoadTimeout("x")
    failure.phase = "load"
    assert stem_of(failure) == "load:load_timeout"
    assert stem_of(errors.TokenizerBroken("x")) == "infer:other"
    failure.phase = "shutdown"
    assert stem_of(failure, Phase.INFER) == "infer:other"
