"""docs/claims.md: every figure that its command works out stands in it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
_ASK = "from pathlib import Path; import claims; print(len(claims.missing(claims.claims(), Path({file!r}))))"


def _missing(file: Path) -> int:
    ask = [sys.executable, "-c", _ASK.format(file=str(file))]
    done = subprocess.run(ask, cwd=ROOT / "benchmarks", capture_output=True, text=True, check=True)
    return int(done.stdout)


def test_the_document_gives_every_figure(tmp_path: Path) -> None:
    """Nothing is missing; where one figure is another, that one is."""
    document = ROOT / "docs" / "claims.md"
    assert _missing(document) == 0
    other = tmp_path / "claims.md"
    other.write_text(document.read_text(encoding="utf-8").replace("27,368", "27,369"), encoding="utf-8")
    assert _missing(other) == 1
