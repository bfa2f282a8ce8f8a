"""Where benchmarks leave their figures: one JSON document each in benchmarks/results/, replaced as a whole."""

from __future__ import annotations

import json
import os
import platform
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"


def write_results(name: str, figures: dict[str, Any]) -> Path:
    """Write the figures of benchmark ``name``, and what they were measured on."""
    RESULTS.mkdir(exist_ok=True)
    where = {"python": platform.python_version(), "machine": platform.machine(), "cores": os.cpu_count()}
    path = RESULTS / f"{name}.json"
    unfinished = path.with_suffix(".tmp")
    unfinished.write_text(json.dumps({"measured_on": where, **figures}, indent=1) + "\n", encoding="utf-8")
    os.replace(unfinished, path)
    return path
