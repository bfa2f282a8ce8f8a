"""Serving a model leaves no trace of telemetry."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from crashpath.runtime.testing import tiny_folder

SERVE = """
import sys
from crashpath.runtime import open_folder, open_session
with open_session(sys.argv[1], isolation=sys.argv[2]) as session:
    session.run(open_folder(sys.argv[1]).golden()[0])
"""


def test_onnxruntime_keeps_no_record_of_its_use(tmp_path: Path) -> None:
    """Rule: without any setting of the caller's, a served model writes nothing into the home or cache folder."""
    folder = tiny_folder(tmp_path / "model")
    home = tmp_path / "home"
    home.mkdir()
    environment = {name: value for name, value in os.environ.items() if name != "ORT_DISABLE_TELEMETRY"}
    environment |= {"HOME": str(home), "XDG_CACHE_HOME": str(home / "cache"), "PYTHONDONTWRITEBYTECODE": "1"}
    for isolation in ("in_process", "process"):
        command = [sys.executable, "-c", SERVE, str(folder.path), isolation]
        subprocess.run(command, env=environment, check=True, timeout=300)
    assert [str(path) for path in home.rglob("*") if path.is_file()] == []
