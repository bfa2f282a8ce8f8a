"""The guide to wrapping a model is run as it stands: each of its scripts, by the names that it gives them."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from prometheus_client import CollectorRegistry

from crashpath.runtime import open_folder, open_session
from crashpath.runtime.errors import LoadCorrupt
from crashpath.runtime.fakelane import FakeLane
from crashpath.runtime.folder import TensorSpec
from crashpath.runtime.metrics import register
from crashpath.runtime.session import FallbackSession
from crashpath.runtime.values import Path as Way

GUIDE = Path(__file__).parent.parent / "docs" / "wrap-your-model.md"
README = GUIDE.parent.parent / "README.md"
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PATIENCE = 240.0

pytestmark = pytest.mark.timeout(900)


def blocks(kind: str) -> list[str]:
    """Blocks of the guide of one kind; shell blocks have none."""
    return [text for found, text in BLOCK.findall(GUIDE.read_text(encoding="utf-8")) if found == kind]


def environment() -> dict[str, str]:
    """The environment after the line that the guide tells to begin with."""
    return os.environ | {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}


def ran(place: Path, *command: str) -> str:
    """Run a command of the guide to its end; what it printed."""
    done = subprocess.run(
        command, cwd=place, env=environment(), capture_output=True, text=True, check=False, timeout=PATIENCE
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def command(start: str) -> list[str]:
    """Words of the one line of a shell block that begins so, without its comment."""
    lines = [line.partition("#")[0].split() for text in blocks("") for line in text.splitlines()]
    return next(words for words in lines if " ".join(words).startswith(start))


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with all scripts of the guide, and the model folder that its first command writes."""
    folder = tmp_path_factory.mktemp("guide")
    for text in blocks("python"):
        name, _, script = text.partition("\n")
        (folder / name.removeprefix("# ")).write_text(script, encoding="utf-8")
    ran(folder, *command("crashpath export"))
    return folder


def test_the_folder_is_exported_once_and_can_be_served(place: Path) -> None:
    """The export is called as its folder; diagnose finds nothing; a second export says how to replace the first."""
    folder = open_folder(place / "models" / "scores")
    assert (folder.name, [one.shape for one in folder.inputs]) == ("scores", [("batch", "length")])
    assert "OK: scores" in ran(place, *command("crashpath diagnose"))
    again = subprocess.run(
        command("crashpath export"), cwd=place, env=environment(), capture_output=True, text=True, check=False
    )
    assert again.returncode == 4
    assert "--force, or replace=True" in again.stderr


def test_ten_lines_serve(place: Path) -> None:
    """The main path answers, and the event file has the request in its counts."""
    (place / "events.jsonl").unlink(missing_ok=True)
    path, *route, _, _, id = ran(place, sys.executable, "serve.py").split()
    assert (path, route) == ("ort", ["main:answered"])
    session = id.partition("-")[0]
    told = [json.loads(line) for line in (place / "events.jsonl").read_text().splitlines()]
    assert [one["attempts"] for one in told if (one["event"], one.get("unit")) == ("attempts", "request")] == [1]
    assert {(one["session"], one["release"]) for one in told} == {(session, "1.4")}


def test_errors_are_as_the_guide_says(place: Path) -> None:
    """A wrong dtype names its input; a bad value is `NoAnswer` for one reason and leaves the breaker closed."""
    wrong, bad = ran(place, sys.executable, "errors.py").splitlines()
    assert wrong.startswith("ids | input 'ids' is float64")
    assert bad == "ShapeInference ShapeInference closed"


def test_the_second_way_to_prepare_is_taken(place: Path) -> None:
    """The main path answers a request whose feed came from the second way, and says why."""
    assert ran(place, sys.executable, "prepare.py") == "ort network_auth\n"


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def asked(port: int, path: str = "/", body: bytes | None = None) -> tuple[int, str]:
    """Status and body of one request."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", body, timeout=60) as reply:
            return reply.status, reply.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


@contextmanager
def serving(place: Path, port: int, *words: str, **more: str) -> Iterator[subprocess.Popen[bytes]]:
    """A server of the guide that answers on ``port``; it is ended by SIGTERM, as a supervisor ends it."""
    log = (place / "server.log").open("wb")
    server = subprocess.Popen(words, cwd=place, env=environment() | more, stdout=log, stderr=log)
    try:
        wait_for(lambda: server.poll() is not None or answers(port), place)
        assert server.poll() is None, (place / "server.log").read_text()
        yield server
        server.send_signal(signal.SIGTERM)
        assert server.wait(PATIENCE) == 0
    finally:
        server.kill()
        server.wait()
        log.close()


def answers(port: int) -> bool:
    """Whether somebody takes requests there."""
    try:
        return asked(port)[0] == 200
    except OSError:
        return False


def wait_for(holds: Callable[[], bool], place: Path) -> None:
    """Wait until something holds."""
    end = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < end, (place / "server.log").read_text()
        time.sleep(0.1)


def test_the_service_answers_is_ready_shows_metrics_and_ends_in_order(place: Path) -> None:
    """Probe, answer, a 400 for a wrong feed, metrics; SIGTERM ends it with 0 and its last counts are told."""
    (place / "events.jsonl").unlink(missing_ok=True)
    port, metrics = free_port(), free_port()
    with serving(place, port, sys.executable, "service.py", PORT=str(port), METRICS_PORT=str(metrics)):
        assert json.loads(asked(port)[1]) == {"degraded": False, "why": ""}
        status, body = asked(port, body=b"[[1, 2, 3]]")
        assert (status, len(json.loads(body)["scores"][0])) == (200, 3)
        assert asked(port, body=b"[[0.5]]")[0] == 400
        assert asked(port, body=b"[[100]]")[0] == 503
        assert 'crashpath_routes_total{model="scores",route="main:answered"} 1.0' in asked(metrics, "/metrics")[1]
    told = [json.loads(line) for line in (place / "events.jsonl").read_text().splitlines()]
    counts = [one for one in told if one["event"] == "attempts" and one["unit"] == "request"]
    assert sum(one["attempts"] for one in counts) == 3
    failed = {one["attempt_id"] for one in told if one["event"] == "failure"}
    assert len(failed) == 1
    assert f"attempt {failed.pop()}]" in (place / "server.log").read_text()


def test_a_server_that_forks_opens_a_session_in_each_worker(place: Path) -> None:
    """The two files of the guide serve under gunicorn, whose workers are forked after the program was imported."""
    pytest.importorskip("gunicorn")
    port = free_port()
    words = ("-m", "gunicorn", "--bind", f"127.0.0.1:{port}", "--workers", "2", "--timeout", "240", "app:application")
    with serving(place, port, sys.executable, *words):
        assert asked(port) == (200, "ort")
    assert "SessionClosed" not in (place / "server.log").read_text()


def test_a_broken_artefact_is_what_the_guide_says(place: Path, tmp_path: Path) -> None:
    """Without its main path a session opens degraded; without its fallback it does not, and names the file."""
    good = place / "models" / "scores"
    for file in ("model.onnx", "model.ts.pt"):
        broken = Path(shutil.copytree(good, tmp_path / file))
        os.truncate(broken / file, (broken / file).stat().st_size // 2)
    with open_session(tmp_path / "model.onnx") as session:
        assert (session.ready().ready, session.ready().degraded) == (True, True)
        assert session.run({"ids": np.array([[1]])}).path == "torchscript"
    with pytest.raises(LoadCorrupt, match=r"model\.ts\.pt"):
        open_session(tmp_path / "model.ts.pt")
    with open_session(tmp_path / "model.ts.pt", policy="off") as session:
        assert session.run({"ids": np.array([[1]])}).path == "ort"


def test_the_table_of_metrics_is_complete() -> None:
    """Every metric is in the guide by the name under which it is scraped, and none that is not there."""
    text = GUIDE.read_text(encoding="utf-8").partition("<!-- metrics -->")[2].partition("<!-- /metrics -->")[0]
    registry = CollectorRegistry()
    lanes = (FakeLane(Way.MAIN, dict), FakeLane(Way.FALLBACK, dict))
    with FallbackSession(*lanes, inputs=(TensorSpec("x", "float32", ("n",)),), sample=0.0) as session:
        register(session, "m", registry)
        names = {f"{one.name}_total" if one.type == "counter" else one.name for one in registry.collect()}
    assert set(re.findall(r"`(crashpath_\w+)`", text)) == names


def test_commands_of_the_readme_and_the_guide_write_to_folders_of_their_own() -> None:
    """Who follows one after the other is not refused, and the command is in reach before it is used."""
    readme = README.read_text(encoding="utf-8")
    exported = re.findall(r"^crashpath export \S+ (\S+)", readme, re.MULTILINE)
    assert exported == ["models/minilm"] != command("crashpath export")[3:]
    section = readme.partition("## A fallback that is proven")[2]
    assert section.index("export PATH=") < section.index("crashpath export")
