"""What ``crashpath coverage --trace`` does with a model folder: trace it, draw a request, strip experts."""

from __future__ import annotations

import tempfile
import zipfile
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from crashpath.coverage.runfile import Run
from crashpath.dashboard.errors import InputError
from crashpath.runtime.errors import ServingError
from crashpath.runtime.feeds import FeedCheck
from crashpath.runtime.folder import ModelFolder, open_folder
from crashpath.runtime.values import Arrays


@dataclass(frozen=True, slots=True)
class Feed:
    """A feed and the name of its file."""

    name: str
    arrays: Arrays


def model_folder(path: Path) -> ModelFolder:
    """Open a model folder. Raises `InputError`."""
    try:
        return open_folder(path)
    except ServingError as error:
        raise InputError(str(error)) from error


def golden_feed(folder: ModelFolder) -> Feed:
    """Return the folder's own feed. Raises `InputError`."""
    try:
        return Feed("golden.npz", folder.golden()[0])
    except ServingError as error:
        raise InputError(str(error)) from error


def feeds_of(folder: ModelFolder, files: Sequence[Path]) -> tuple[tuple[Feed, ...], tuple[str, ...]]:
    """Return the feeds of these files, held to what the model declares, and a sentence for each that is none."""
    check = FeedCheck(folder.inputs)
    feeds, problems = [], []
    for path in files:
        try:
            feeds.append(Feed(path.name, _read(path, check)))
        except InputError as error:
            problems.append(str(error))
    return tuple(feeds), tuple(problems)


def _read(path: Path, check: FeedCheck) -> Arrays:
    try:
        with np.load(path, allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in stored.files}
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}") from error
    except (ValueError, AttributeError, TypeError, EOFError, zipfile.BadZipFile) as error:
        raise InputError(f"{path} is no file of arrays; numpy.savez writes one, an array an input") from error
    try:
        return check(arrays)
    except ServingError as error:
        raise InputError(f"{path}: {error}") from error


def traced(
    folder: ModelFolder, feeds: Sequence[Feed], failing: Sequence[Feed], providers: Sequence[str], release: str
) -> tuple[Run, tuple[str, ...]]:
    """Trace every feed on both paths; a sentence for each on which a path fails, of which what ran counts.

    On those in ``failing`` both shall fail, and a sentence is told of one that does not.
    What makes the counts less than what ran is a sentence, too. Raises `InputError` where the folder cannot be traced.
    """
    from crashpath.coverage.tracer import FeedError, Tracer, in_short

    problems = []
    with tempfile.TemporaryDirectory(prefix="crashpath-coverage-") as scratch, ExitStack() as opened:
        try:
            tracer = opened.enter_context(Tracer(folder, providers=providers, data=scratch, release=release))
        except Exception as error:  # a library's: of an artefact that it cannot load
            raise InputError(
                f"{folder.path} cannot be traced ({in_short(error)}); crashpath diagnose --model DIR says more"
            ) from error
        for feed in feeds:
            try:
                tracer.run(feed.arrays)
            except FeedError as error:  # the other feeds are traced all the same
                problems.append(f"{feed.name}: {error}")
        for feed in failing:
            with suppress(FeedError):
                tracer.run(feed.arrays)
                problems.append(f"{feed.name}: the model was said to fail on this feed, and it answered")
        run = tracer.result()
    return run, (*problems, *(told for seen in run.seen for told in seen.trace.problems))


def drawn(folder: ModelFolder, feed: Feed, providers: Sequence[str], target: Path) -> None:
    """Write the trace of one request over both paths. Raises `InputError`: it cannot be made, or not be written."""
    from crashpath.coverage.perfetto import request_trace, write_trace
    from crashpath.coverage.tracer import in_short

    try:
        trace = request_trace(folder, feed.arrays, providers)
    except ServingError as error:
        raise InputError(f"{feed.name} cannot be drawn: {error}") from error
    except Exception as error:  # a library's, or a scratch folder's: no fault of the target
        raise InputError(f"{feed.name} cannot be drawn ({in_short(error)})") from error
    try:
        write_trace(target, trace)
    except OSError as error:
        raise InputError(f"{target} cannot be written: {error.strerror or error}") from error


def stripped(folder: ModelFolder, feeds: Sequence[Feed], experts: Sequence[int]) -> list[dict[str, Any]]:
    """Return the rows that would break without these experts, as JSON has them. Raises `InputError`."""
    from crashpath.coverage.strip import StripError, would_break

    try:
        found = would_break(folder, experts, [one.arrays for one in feeds])
    except StripError as error:
        raise InputError(str(error)) from error
    return [
        {"feed": feeds[one.feed].name, "row": one.row, "experts": one.experts, "differs": one.differs} for one in found
    ]


def told(experts: Sequence[int], broken: Sequence[dict[str, Any]]) -> list[str]:
    """Return the same in lines for people; none where no expert was named."""
    if not experts:
        return []
    stripped_ones = _experts(experts)
    if not broken:
        return ["", f"without {stripped_ones} no row of these feeds would break"]
    lines = [f"without {stripped_ones} these rows would break:"]
    for one in broken:
        how = "answers otherwise" if one["differs"] else "answers the same"
        lines.append(f"  {one['feed']} row {one['row']}: goes to {_experts(one['experts'])}, {how} without")
    return ["", *lines]


def _experts(numbers: Sequence[int]) -> str:
    return f"expert{'s' if len(numbers) > 1 else ''} {', '.join(map(str, numbers))}"
