"""What has to hold before a session serves: both paths loaded side by side, alike in what they take and answer."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, replace

from crashpath.runtime import routes
from crashpath.runtime.compare import same
from crashpath.runtime.errors import Failure, LoadCorrupt, ModelFolderError
from crashpath.runtime.folder import TensorSpec, Tolerance
from crashpath.runtime.lane import Lane, LaneSignature
from crashpath.runtime.ledger import Ledger
from crashpath.runtime.values import Arrays, Path

_ADVICE = "export both artefacts of the folder again (crashpath export)"


@dataclass(frozen=True, slots=True)
class Expected:
    """What both paths are held to. ``golden`` is the answer to the feed that they warm up on, where there is one."""

    inputs: tuple[TensorSpec, ...]
    tolerance: Tolerance
    golden: Arrays | None = None


@dataclass(frozen=True, slots=True)
class Loaded:
    """How one load ended."""

    lane: Lane
    seconds: float
    error: Exception | None


def load_all(lanes: tuple[Lane, ...], load_s: float, ledger: Ledger, clock: Callable[[], float]) -> tuple[Loaded, ...]:
    """Load every lane on a thread of its own, and wait for all of them. Each lane keeps its own deadline."""
    done: dict[int, Loaded] = {}

    def load(at: int, lane: Lane) -> None:
        began = clock()
        error: Exception | None = None
        try:
            lane.load(load_s)
        except Exception as raised:  # noqa: BLE001  # carried to the thread that waits, which raises it
            error = raised
        done[at] = Loaded(lane, clock() - began, error)

    threads = [threading.Thread(target=load, args=one, daemon=True) for one in enumerate(lanes)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    loaded = tuple(done[at] for at in range(len(lanes)))
    others = {one.lane.path: all(two.error is None for two in loaded if two is not one) for one in loaded}
    for one in loaded:
        route = routes.LOADED if one.error is None else routes.LOAD_FAILED
        served = len(loaded) > 1 and one.lane.path is Path.MAIN and others[one.lane.path]
        ledger.load(one.lane.path, route, one.error, one.seconds, served=served)
    return loaded


def check_lane(lane: Lane, expected: Expected) -> None:
    """Hold a loaded lane to what its model declares. Raises `ModelFolderError`, one sentence."""
    _check(lane.path, lane.signature(), lane.warm(), expected)


def _check(path: Path, signature: LaneSignature, answer: Arrays | None, expected: Expected) -> None:
    declared = tuple(spec.name for spec in expected.inputs)
    found = signature.inputs
    if sorted(found) != sorted(declared):
        raise ModelFolderError(
            f"the {path} artefact takes {_told(found)} where model.toml declares {_told(declared)}; {_ADVICE}"
        )
    if answer is not None and expected.golden is not None:
        _check_answer(f"the {path} artefact", answer, "golden.npz", expected.golden, expected.tolerance)


def check_alike(main: Lane, fallback: Lane, expected: Expected) -> None:
    """Hold both loaded paths to each other. Raises `ModelFolderError`, one sentence."""
    ours, theirs = main.signature(), fallback.signature()
    if sorted(ours.inputs) != sorted(theirs.inputs):
        raise ModelFolderError(
            f"the two artefacts take different inputs: {main.path} {_told(ours.inputs)}, {fallback.path} "
            f"{_told(theirs.inputs)}; {_ADVICE}"
        )
    a, b = main.warm(), fallback.warm()
    if a is not None and b is not None:
        _check_answer(f"the {main.path} artefact", a, f"the {fallback.path} artefact", b, expected.tolerance)


def agreed(expected: Expected, answer: Arrays | None) -> Expected:
    """Return what later loads are held to: where there is no golden answer, the one that both paths gave."""
    return expected if expected.golden is not None else replace(expected, golden=answer)


def wrong_load(path: Path, signature: LaneSignature, answer: Arrays | None, expected: Expected) -> Failure | None:
    """Check what a load of a path gave, before it serves; what does not hold is a failure of that load."""
    try:
        _check(path, signature, answer, expected)
    except ModelFolderError as error:
        failure = LoadCorrupt(str(error), "checked after a load")
        failure.phase = "load"
        return failure
    return None


def _check_answer(who: str, answer: Arrays, whom: str, golden: Arrays, tolerance: Tolerance) -> None:
    missing = sorted(set(golden) - set(answer))
    if missing:
        raise ModelFolderError(f"{who} gives no output {missing[0]!r} that {whom} has; {_ADVICE}")
    found = same({name: answer[name] for name in golden}, golden, tolerance)
    if not found.equal:
        raise ModelFolderError(f"{who} answers the golden feed otherwise than {whom} ({found.where}); {_ADVICE}")


def _told(names: tuple[str, ...]) -> str:
    return ", ".join(names) if names else "nothing"
