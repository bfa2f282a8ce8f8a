"""What tracing costs: the factor of a traced run on tiny and on heavy nodes, the bytes of a run file a unit, and what
the routes-only mode (a session counts its routes anyway; this reads the counts) costs a request: with a look after
every LOOK_EVERY requests, more often than anything here looks, and with one after every single request.

Traced runs stand beside production, so the factor is the price of a sampled request, not of every request.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from overhead import interval
from results_file import write_results
from tables import table

from crashpath.clustering.encoder import minilm
from crashpath.clustering.exports import exported
from crashpath.coverage.onnx_trace import MainTracer
from crashpath.coverage.script_trace import FallbackTracer
from crashpath.coverage.tracer import Tracer
from crashpath.runtime import open_session
from crashpath.runtime.backends import CPU, OrtBackend, TorchScriptBackend
from crashpath.runtime.folder import ModelFolder
from crashpath.runtime.testing import tiny_folder
from crashpath.runtime.values import Arrays

AIM = 1.0
"""Percent of a request that the routes-only mode may cost."""
LOOK_EVERY = 20
"""Requests (a quarter of a second and more) between two looks at the counts."""


def main(arguments: Sequence[str] = ()) -> int:
    """Print the tables and write the figures; 1 where the routes-only mode may cost more than its aim."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=100)
    options = parser.parse_args(arguments)
    encoder = exported(minilm().source, minilm().id)
    figures: dict[str, Any] = {}
    rows = []
    with tempfile.TemporaryDirectory(prefix="crashpath-bench-") as scratch:
        tiny = tiny_folder(Path(scratch) / "branches", kind="branches")
        turns = {"x": np.full((2, 4), 0.25, np.float32), "steps": np.array([200])}
        for name, folder, feed in (("tiny nodes", tiny, turns), ("heavy nodes", encoder, _long(encoder))):
            told = _factors(folder, feed, max(options.rounds // 10, 5))
            told |= _size(folder, feed, Path(scratch) / f"runs-{name.split()[0]}")
            figures[name] = told
            rows.append(
                (
                    name,
                    f"{told['main']:.2f}",
                    f"{told['fallback']:.2f}",
                    f"{told['bytes']:,.0f}",
                    f"{told['units']:.0f}",
                )
            )
    table("A traced run", ("", "main ×", "fallback ×", "bytes a unit", "units"), rows)
    figures["routes_only"] = routes = _routes_only(encoder, options.rounds)
    table(
        f"Routes only (a look takes {routes['look_us']:.0f} µs; aim {AIM:g} %)",
        ("a look after", "% of a request", "95 %", "A/A %"),
        [
            (label, f"{told['percent']:+.2f}", f"{told['low']:+.2f} to {told['high']:+.2f}", f"{told['A/A']:+.2f}")
            for label, told in ((f"{LOOK_EVERY} requests", routes["some"]), ("each request", routes["each"]))
        ],
    )
    write_results("tracing", figures)
    return int(routes["some"]["high"] > AIM)


def _long(folder: ModelFolder) -> Arrays:
    feed: dict[str, Any] = {}
    for spec in folder.inputs:
        whole = np.full((8, 256), 2000) if spec.name == "input_ids" else np.ones((8, 256))
        feed[spec.name] = (whole * (spec.name != "token_type_ids")).astype(spec.dtype)
    return feed


def _factors(folder: ModelFolder, feed: Arrays, rounds: int) -> dict[str, float]:
    plain, script = OrtBackend(folder), TorchScriptBackend(folder)
    with MainTracer(folder, (CPU,)) as main, FallbackTracer(folder, timed=False) as fallback:
        main.run(feed)  # after which it knows how often it may run before it has to write its profile
        arms: dict[str, Callable[[Arrays], Any]] = {
            "plain main": plain.run, "main": main.run, "plain fallback": script.run, "fallback": fallback.run,
        }  # fmt: skip
        times = _interleaved(arms, feed, rounds)
    return {path: float(np.median(times[path]) / np.median(times[f"plain {path}"])) for path in ("main", "fallback")}


def _size(folder: ModelFolder, feed: Arrays, data: Path) -> dict[str, float]:
    with Tracer(folder, data=data, timed=False) as tracer:
        tracer.run(feed)
        units = sum(len(seen.declared.units) for seen in tracer.result().seen)
    (file,) = data.iterdir()
    return {"bytes": file.stat().st_size / units, "units": float(units)}


def _routes_only(folder: ModelFolder, rounds: int) -> dict[str, Any]:
    feed = {name: array[:1, :64] for name, array in _long(folder).items()}
    with open_session(folder, sample=0.0, deadline_ms=60_000) as session:
        before = dict(session.facts().figures.routes)

        def look() -> None:
            now = session.facts().figures.routes
            sum(count - before[route] for route, count in now)

        def some(feed: Arrays, requests: int = LOOK_EVERY) -> None:
            for _ in range(requests):
                session.run(feed)

        told: dict[str, Any] = {
            "each": _price(lambda feed: some(feed, 1), look, feed, rounds),
            "some": _price(some, look, feed, max(rounds // 2, 5)),
        }
        began = time.perf_counter()
        for _ in range(1000):
            look()
        return told | {"look_us": (time.perf_counter() - began) * 1000}


def _price(requests: Callable[[Arrays], None], look: Callable[[], None], feed: Arrays, rounds: int) -> dict[str, float]:
    """What a look after the requests adds to them, in percent, with what the same arm differs by from itself."""

    def watched(feed: Arrays) -> None:
        requests(feed)
        look()

    times = _interleaved({"bare": requests, "A/A": requests, "routes": watched}, feed, rounds)
    base = float(np.median(times["bare"]))
    difference = times["routes"] - times["bare"]
    low, high = (100 * one / base for one in interval(difference))
    return {
        "percent": 100 * float(np.median(difference)) / base, "low": low, "high": high,
        "A/A": 100 * float(np.median(times["A/A"] - times["bare"])) / base,
    }  # fmt: skip


def _interleaved(arms: dict[str, Callable[[Arrays], Any]], feed: Arrays, rounds: int) -> dict[str, Any]:
    rng, order = random.Random(0), list(arms)
    times: dict[str, list[float]] = {name: [] for name in arms}
    for number in range(rounds + 3):
        rng.shuffle(order)
        for name in order:
            began = time.perf_counter()
            arms[name](feed)
            if number >= 3:
                times[name].append(time.perf_counter() - began)
    return {name: np.array(told) for name, told in times.items()}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
