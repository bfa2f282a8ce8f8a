"""Route drills of what is the caller's: wrong feeds, spent deadlines, a closed session, and the prepare step."""

from __future__ import annotations

from statistics import StatisticsError

import numpy as np

from crashpath.coverage.routescenario import Scenario
from crashpath.coverage.routescene import REFUSES, NotHere, Scene, Unmet
from crashpath.coverage.spoilers import Spoiler, spoiled, spoiler
from crashpath.runtime import routes
from crashpath.runtime.errors import DeadlineExceeded, InputError, NoAnswer, SessionClosed, TokenizerBroken
from crashpath.runtime.messages import RemoteError
from crashpath.runtime.values import Path as Which
from crashpath.runtime.values import Phase

_CODE = "code.mean_of_nothing"
_AT_ONCE_MS = 0.001
ONE_WAY = "this model folder declares one way to prepare, so nothing stands behind it"


def wrong_feed(scene: Scene) -> None:
    """Nothing, another type, and an input that the model does not have."""
    session, feed = scene.stage.session, scene.stage.exam.feed
    first = next(iter(feed))
    for wrong in ({}, {**feed, first: np.array(["words"])}, {**feed, "no such input": feed[first]}):
        scene.raises(routes.INPUT_WRONG, InputError, lambda wrong=wrong: session.run(wrong))  # type: ignore[misc]  # a lambda of a default


def main_refuses(scene: Scene) -> None:
    """The main artefact takes fewer rows than the folder declares: its library refuses the feed, not a path fails."""
    with scene.served(REFUSES):
        scene.raises(routes.MAIN_REFUSED, InputError, lambda: scene.stage.ask("poison"))
        scene.answered(routes.MAIN_ANSWERED)


def unknown_error(scene: Scene) -> None:
    """The main path raises what no reason knows; the caller gets it as it is."""
    error = StatisticsError if scene.stage.isolation == "in_process" else RemoteError
    with scene.struck(Which.MAIN, Phase.INFER, _CODE, times=1):
        told = scene.refused(routes.MAIN_UNKNOWN, error)
    if "data point" not in str(told):
        raise Unmet(f"{routes.MAIN_UNKNOWN}: the error lost its words: {told}")


def spent(scene: Scene) -> None:
    """The deadline is over before a path could be tried."""
    scene.refused(routes.SPENT, DeadlineExceeded, _AT_ONCE_MS)


def closed(scene: Scene) -> None:
    """A request comes when the session is closed."""
    scene.answered(routes.MAIN_ANSWERED)
    scene.closed = True
    scene.stage.session.close()
    scene.refused(routes.CLOSED, SessionClosed)


def prepare_falls_back(scene: Scene) -> None:
    """The prepare step's first way cannot read a graph, then has one that does not fit; its second way prepares."""
    _needs_a_second_way(scene)
    for graph, failure_class in (("{torn}", "load_corrupt"), ("{load_shapes}", "shape_inference")):
        with scene.prepare_struck("graph.opens", graph):
            answer = scene.answered(routes.MAIN_ANSWERED, kind="raw").answer
        found = None if answer is None or answer.cause is None else answer.cause.failure_class
        if found != failure_class:
            raise Unmet(f"{routes.prepared(failure_class)}: the cause is told as {found} instead of {failure_class}")


def prepare_fails(scene: Scene) -> None:
    """The tokenizer is cut, and the vocabulary behind it is gone."""
    stage = scene.stage
    spec = stage.folder.tokenizer
    assert spec is not None  # as `Scenario.prepares`
    assert stage.prepared is not None
    cut, gone = spoiler("tokenizer-cut"), Spoiler("vocabulary-gone", "{tokenizer}", lambda path: path.unlink())
    with spoiled(cut, stage.folder.path / spec.file):
        stage.prepared.renew()
        if spec.fallback is None:
            scene.raises(routes.PREPARE_FAILED, TokenizerBroken, lambda: stage.ask("raw"))
        else:
            with spoiled(gone, stage.folder.path / spec.fallback):
                scene.raises(routes.PREPARE_FAILED, NoAnswer, lambda: stage.ask("raw"))
    scene.answered(routes.MAIN_ANSWERED, kind="raw")


def prepare_is_the_callers(scene: Scene) -> None:
    """The prepare step refuses what is no text, and raises what no reason knows."""
    scene.raises(routes.PREPARE_REFUSED, InputError, lambda: scene.stage.session.run_raw(7))
    with scene.prepare_struck(_CODE):
        scene.raises(routes.PREPARE_UNKNOWN, StatisticsError, lambda: scene.stage.ask("raw"))


def _needs_a_second_way(scene: Scene) -> None:
    spec = scene.stage.folder.tokenizer
    if spec is None or spec.fallback is None:
        raise NotHere(ONE_WAY)


SCENARIOS: tuple[Scenario, ...] = (
    Scenario("wrong-feed", (routes.INPUT_WRONG,), wrong_feed),
    Scenario("main-refuses", (routes.MAIN_REFUSED,), main_refuses),
    Scenario("unknown-error", (routes.MAIN_UNKNOWN,), unknown_error),
    Scenario("deadline-spent", (routes.SPENT,), spent),
    Scenario("session-closed", (routes.CLOSED,), closed),
    Scenario(
        "prepare-falls-back",
        (routes.prepared("load_corrupt"), routes.prepared(routes.OTHER)),
        prepare_falls_back,
        prepares=True,
    ),
    Scenario("prepare-fails", (routes.PREPARE_FAILED,), prepare_fails, prepares=True),
    Scenario(
        "prepare-is-the-callers",
        (routes.PREPARE_REFUSED, routes.PREPARE_UNKNOWN),
        prepare_is_the_callers,
        prepares=True,
    ),
)
