"""Events in a file: whole lines, a bounded number of files, nothing lost between them."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from crashpath.runtime.eventfile import EventFile
from crashpath.runtime.events import AttemptsEvent, Cohort, CompareEvent, FailureEvent, Told, as_json, shortened

COHORT = Cohort("1.2", "linux", "m", "abc", "h", 7)


def _told(number: int, message: str = "boom") -> Told:
    event = FailureEvent(
        at=1.5,
        attempt_id=f"a-{number}",
        unit="request",
        phase="infer",
        path="ort",
        failure_class="oom_host",
        type="Fail",
        message=message,
        route="r",
        answered=True,
        by="torchscript",
        milliseconds=2.5,
        breaker="open",
    )
    return Told(event, COHORT, "s")


def _attempts(path: Path) -> list[str]:
    return [json.loads(line)["attempt_id"] for line in path.read_text(encoding="utf-8").splitlines()]


def test_schema() -> None:
    """The keys are the declared ones, in their order; times are UTC; an infinity is ``null``."""
    told = as_json(_told(1))
    assert " ".join(told) == (
        "schema at event attempt_id unit phase path class type message route answered by milliseconds breaker "
        "worker_pid release platform model model_hash host pid session"
    )
    assert (told["schema"], told["at"]) == ("crashpath.event/1", "1970-01-01T00:00:01.500Z")
    counts = as_json(Told(AttemptsEvent(3.0, "load", 1.0, 2.0, 5, 1, 0, 0, "s-1"), COHORT, "s"))
    assert (counts["from"], counts["to"]) == ("1970-01-01T00:00:01.000Z", "1970-01-01T00:00:02.000Z")
    assert (counts["attempts"], counts["failures"], counts["batch_id"]) == (5, 1, "s-1")
    assert as_json(Told(CompareEvent(1.0, "r", "a", False, math.inf, 0.5, ""), COHORT, "s"))["worst_abs"] is None


def test_one_line_an_event(tmp_path: Path) -> None:
    """A message with line ends and undecodable bytes is still one line."""
    with EventFile(tmp_path / "sub" / "e.jsonl") as file:
        file(_told(1, "two\nlines\r\u2028\udcff"))
        file(_told(2))
    raw = (tmp_path / "sub" / "e.jsonl").read_bytes()
    assert raw.count(b"\n") == 2
    assert [json.loads(line)["attempt_id"] for line in raw.decode().split("\n")[:-1]] == ["a-1", "a-2"]


def test_rotation(tmp_path: Path) -> None:
    """Files stay below their size and below their number; the newest events are kept, in order."""
    path = tmp_path / "e.jsonl"
    with EventFile(path, max_bytes=2000, keep=3) as file:
        for number in range(60):
            file(_told(number))
    files = sorted(tmp_path.iterdir())
    assert [one.name for one in files] == ["e.jsonl", "e.jsonl.1", "e.jsonl.2"]
    assert all(one.stat().st_size <= 2000 for one in files)
    kept = [one for name in ("e.jsonl.2", "e.jsonl.1", "e.jsonl") for one in _attempts(tmp_path / name)]
    assert kept == [f"a-{number}" for number in range(60 - len(kept), 60)]
    assert len(kept) > 8


def test_one_event_above_the_size(tmp_path: Path) -> None:
    """An event above the size is written all the same, once."""
    with EventFile(tmp_path / "e.jsonl", max_bytes=10, keep=2) as file:
        file(_told(1))
        file(_told(2))
    assert _attempts(tmp_path / "e.jsonl") == ["a-2"]
    assert _attempts(tmp_path / "e.jsonl.1") == ["a-1"]


def test_removed_and_rotated_by_others(tmp_path: Path) -> None:
    """A file that somebody moved away or removed is begun anew, not written into the void."""
    path = tmp_path / "e.jsonl"
    with EventFile(path) as file:
        file(_told(1))
        path.rename(tmp_path / "kept")
        file(_told(2))
        path.unlink()
        file(_told(3))
    assert _attempts(tmp_path / "kept") == ["a-1"]
    assert _attempts(path) == ["a-3"]


def test_threads(tmp_path: Path) -> None:
    """Events of many threads across rotations: none lost, none twice, no torn line."""
    with EventFile(tmp_path / "e.jsonl", max_bytes=5000, keep=100) as file:

        def write(start: int) -> None:
            for number in range(start, start + 50):
                file(_told(number))

        threads = [threading.Thread(target=write, args=(50 * at,)) for at in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    found = [one for path in tmp_path.iterdir() for one in _attempts(path)]
    assert sorted(found) == sorted(f"a-{number}" for number in range(400))


_WRITER = """
import sys
from crashpath.runtime.eventfile import EventFile
from crashpath.runtime.events import Cohort, BreakerEvent, Told
with EventFile(sys.argv[1], max_bytes=4000, keep=100) as file:
    for number in range(100):
        file(Told(BreakerEvent(1.0, "closed", "open", "rate", f"{sys.argv[2]}-{number}"), Cohort(), "s"))
"""


def test_processes(tmp_path: Path) -> None:
    """Two processes share a file that both rotate: none lost, none twice."""
    command = [sys.executable, "-c", _WRITER, str(tmp_path / "e.jsonl")]
    writers = [subprocess.Popen([*command, name]) for name in "ab"]
    assert [writer.wait(60) for writer in writers] == [0, 0]
    found = [json.loads(line)["route"] for path in tmp_path.iterdir() for line in path.read_text("utf-8").splitlines()]
    assert sorted(found) == sorted(f"{name}-{number}" for name in "ab" for number in range(100))


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no device that is always full")
def test_full_disk() -> None:
    """A disk that is full is an error to whoever counts dropped events, not silence."""
    with pytest.raises(OSError), EventFile("/dev/full") as file:
        file(_told(1))


def test_closed(tmp_path: Path) -> None:
    """A closed file takes no event; closing twice is harmless."""
    file = EventFile(tmp_path / "e.jsonl")
    file.close()
    file.close()
    with pytest.raises(ValueError, match="closed"):
        file(_told(1))


def test_shortened() -> None:
    """A long message keeps its head and its tail within the limit."""
    text = shortened("a" * 3000 + "z" * 3000, 100)
    assert len(text) <= 100
    assert text.startswith("a")
    assert text.endswith("z")
    assert shortened("short") == "short"
