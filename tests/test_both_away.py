"""Both paths are away at once: a request waits for the first that is back."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path as FilePath

import pytest

from crashpath.runtime import FallbackSession, NoAnswer, Path, open_session, routes
from crashpath.runtime.testing import tiny_folder

LONG_MS = 120_000.0


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="signals to a worker")
def test_request_waits_for_the_first_path_that_is_back(tmp_path: FilePath) -> None:
    """Rule: with both workers killed a request is answered within its deadline, by whichever restarts first."""
    folder = tiny_folder(tmp_path / "model", deadline_ms=LONG_MS)
    with open_session(folder, isolation="process", sample=0.0) as session:
        feed, golden = folder.golden()
        session.run(feed)
        _kill_both(session)
        answer = session.run(feed)
        assert (abs(answer.outputs["y"] - golden["y"]) < 1e-4).all()
        assert answer.path is Path.FALLBACK or answer.route in (routes.MAIN_AGAIN, routes.MAIN_ANSWERED)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="signals to a worker")
def test_paths_that_do_not_come_back_are_not_waited_for(tmp_path: FilePath) -> None:
    """Rule: where neither artefact can be loaded any more a request ends in NoAnswer, long before a long deadline."""
    folder = tiny_folder(tmp_path / "model", deadline_ms=LONG_MS)
    with open_session(folder, isolation="process", sample=0.0) as session:
        feed, _ = folder.golden()
        folder.main.write_bytes(b"cut")
        folder.fallback.write_bytes(b"cut")
        _kill_both(session)
        with pytest.raises(NoAnswer) as caught:
            session.run(feed)
        assert caught.value.main is not None
        assert caught.value.fallback is not None


def _kill_both(session: FallbackSession) -> None:
    """Kill both workers and return when the session knows, so that no request is in the hands of a dead one."""
    facts = session.facts()
    for pid in (facts.main.pid, facts.fallback.pid):
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
    by = time.monotonic() + LONG_MS / 1000
    while any(lane.restarts == 0 for lane in (session.facts().main, session.facts().fallback)):
        assert time.monotonic() < by, "the deaths were not noticed"
        time.sleep(0.005)
