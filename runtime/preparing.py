"""Runs the prepare step for one request."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from crashpath.runtime import routes
from crashpath.runtime.errors import Failure, InputError, NoAnswer
from crashpath.runtime.ledger import Ledger, Request, Trouble
from crashpath.runtime.prepare import PrepareStep
from crashpath.runtime.reasons import recognise
from crashpath.runtime.standing import Standing
from crashpath.runtime.values import Arrays, Path, Phase


def prepare_feed(
    step: PrepareStep, raw: Any, request: Request, ledger: Ledger, standing: Standing, clock: Callable[[], float]
) -> Arrays:
    """Return the feed of a raw input; a known failure of ``step.main`` goes to ``step.fallback`` if the policy lets it.

    Raises `InputError` and unknown errors of either as they are, the failure itself where there is no second way or
    the policy knows none, and `NoAnswer` where the second way failed, too.
    """

    def end(route: str) -> None:
        ledger.request(request, route, None, clock() - request.started)

    try:
        return step.main(raw)
    except Exception as error:  # the boundary of the prepare step; what is unknown is raised again
        named = _named(error, Path.MAIN)
        if isinstance(named, InputError):
            end(routes.PREPARE_REFUSED)
            raise named from _cause(named, error)
        request.troubles.append(Trouble(Phase.PREPARE, Path.MAIN, named or error))
        if named is None:
            end(routes.PREPARE_UNKNOWN)
            raise
        failure = named
    again = standing.prepare_failed()
    if step.fallback is None or again or not standing.policy.covers(failure):
        end(routes.PREPARE_FAILED)
        raise failure
    try:
        feed = step.fallback(raw)
    except Exception as error:  # the same boundary, for the second way
        named = _named(error, Path.FALLBACK)
        if isinstance(named, InputError):
            end(routes.PREPARE_REFUSED)
            raise named from _cause(named, error)
        request.troubles.append(Trouble(Phase.PREPARE, Path.FALLBACK, named or error))
        end(routes.PREPARE_FAILED)
        raise NoAnswer(failure, named or error) from error
    ledger.tally.route(routes.prepared(failure.failure_class))
    return feed


def _cause(named: Exception, error: Exception) -> BaseException | None:
    return error.__cause__ if named is error else error


def _named(error: Exception, path: Path) -> Failure | InputError | None:
    if isinstance(error, (Failure, InputError)):
        return error
    return recognise(error, Phase.PREPARE, path)
