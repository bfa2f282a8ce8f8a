"""What a model folder declares, where no run that counts has said it: denominators are there before anything ran."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from crashpath.coverage.covered import Covered, PathCoverage
from crashpath.coverage.units import Declared
from crashpath.runtime.backends import CPU
from crashpath.runtime.folder import ModelFolder


def with_declared(covered: Covered, folder: ModelFolder | None) -> Covered:
    """Return ``covered`` with every path that no run traced, nothing of it hit.

    What it consists of is said by the newest run of the same artefacts that does not count, else by ``folder``. Raises
    what an artefact of the folder raises that cannot be read.
    """
    known = {one.path for one in covered.paths}
    found, model = _of_runs(covered), covered.model or next((one.run.model for one in covered.left), "")
    if folder is not None:
        found, model = found or (() if known else declared_paths(folder)), covered.model or folder.name
    missing = tuple(_unhit(one) for one in found if one.path not in known)
    return replace(covered, model=model, paths=(*covered.paths, *missing))


def _of_runs(covered: Covered) -> Sequence[Declared]:
    same = [one.run for one in covered.left if one.run.model_hash == covered.model_hash and one.run.seen]
    return [seen.declared for seen in same[-1].seen] if same else ()


def declared_paths(folder: ModelFolder) -> tuple[Declared, ...]:
    """Return the units of both paths, as their artefacts have them. Runs neither."""
    from crashpath.coverage.onnx_trace import MainTracer
    from crashpath.coverage.script_trace import FallbackTracer

    with (
        MainTracer(folder, (CPU,)) as main,
        FallbackTracer(folder, timed=False, routers=main.declared.routers) as fallback,
    ):
        return main.declared.declared, fallback.declared


def _unhit(declared: Declared) -> PathCoverage:
    return PathCoverage(declared.path, declared.units, hits={}, timings=(), placed=(), shipped=None)
