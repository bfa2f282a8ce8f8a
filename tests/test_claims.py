"""docs/claims.md: every figure that its command works out stands in it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
_ASK = "from pathlib import Path; import claims; print(len(claims.missing(claims.claims(), Path({file!r}))))"


@pytest.fixture(name="claims")
def _claims(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    import claims

    return claims


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


def test_a_figure_within_a_longer_one_is_missing(claims: Any, tmp_path: Path) -> None:
    """``37`` is not given by ``7,237`` or ``37.5``, nor ``2.4 %`` by ``12.4 %``; the end of a sentence is no digit."""
    document = tmp_path / "claims.md"
    document.write_text("Of all 7,237 logs, 37.5 and 0.37 and 12.4 % and 371.", encoding="utf-8")
    found = (claims.Claim("x", False, ("37", "2.4 %")),)
    assert claims.missing(found, document) == ("x: 37", "x: 2.4 %")
    document.write_text("Of all 7,237 logs, 37. And `2.4 %`, too.", encoding="utf-8")
    assert claims.missing(found, document) == ()
    text = (ROOT / "docs" / "claims.md").read_text(encoding="utf-8")
    document.write_text(text.replace("the other one 37.", "the other one 36."), encoding="utf-8")
    assert claims.missing(claims.claims(), document) == ("units of coverage: 37",)


def test_ten_unanswered_are_not_none(claims: Any) -> None:
    """What a drill prints is read as whole numbers."""
    assert claims.gives("12 requests, 0 unanswered.", "0 unanswered")
    assert not claims.gives("12 requests, 10 unanswered.", "0 unanswered")
    assert not claims.gives("12 requests, 21 unanswered.", "1 unanswered")


def test_the_growth_is_a_lower_bound(claims: Any) -> None:
    """No figures that round to the account's give a smaller growth, and those at their edges give just that."""
    named, room, before, after = 0.024, 3 * 0.0005, 0.143, 0.0104
    for off in (-1, 0, 1):
        then = room * (before + off * 0.0005)
        for low in (-1, 0, 1):
            for share in (-1, 0, 1):
                now = (1 - named + share * room) * (after + low * 0.00005)
                assert now / then >= claims.least_growth()
    assert claims.least_growth() == 46
